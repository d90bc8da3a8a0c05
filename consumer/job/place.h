/* consumer/job/place.h decides where an output goes, and writes it there safely. The header is not
 * installed.
 *
 * Names of outputs come from strangers. A path is built from plain components only, and folders are
 * opened one by one without following symbolic links. A file is written under a temporary name,
 * checked, and linked into place; it never replaces a file. Nothing outside the folder can change,
 * and a file under a final name is whole and right, after a power cut too. Bytes become durable
 * before the name is given, a batch of files at a time, because a small file costs less than an
 * fsync. */
#ifndef BOURSE_CONSUMER_JOB_PLACE_H
#define BOURSE_CONSUMER_JOB_PLACE_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLACE_PATH_SIZE = 2304 };

/* Makes the path below the output folder, by docs/consumer.md:
 *
 * - a leading "out/" of the output's name, which {out} puts there, is dropped;
 * - with an input (`each:`), the result lies in the input's relative folder;
 * - else, with several subtasks, in a folder named by the subtask's number; with one, at the top.
 *
 * `input` is NULL for none. Returns false when the name is not a plain relative path. */
bool place_path(const char *input, bool single, uint64_t number, const char *output,
                char ret_path[PLACE_PATH_SIZE]);
/* Makes the path of a task's output: TASK/output. */
bool place_path_of_task(const char *task, const char *output, char ret_path[PLACE_PATH_SIZE]);

struct place_folder; /* an output folder, and its files that wait for names */

/* Opens the output folder and makes it, with its parents, when absent. Returns NULL and the problem
 * on failure. place_folder_close discards unsettled files. */
struct place_folder *place_folder_open(const char *folder, struct problem *ret_problem);
void place_folder_close(struct place_folder **self);

/* Writes the content into `fd` from offset 0. Returns false when it cannot; the function reports
 * the reason itself. */
typedef bool place_fill(void *context, int fd);

enum place_status {
    PLACE_WRITTEN,  /* right; gets its name at the settlement */
    PLACE_PRESENT,  /* already there with this content; durable when settled */
    PLACE_OCCUPIED, /* another file has the name, which the problem gives */
    PLACE_UNFILLED, /* place_fill returned false */
    PLACE_WRONG,    /* the hash of the content differs */
    PLACE_FAILED,   /* the file system failed, see the problem */
};
/* The signed result says what the file must be. */
struct place_content {
    struct hash32 hash;
    uint64_t size;
    bool is_executable; /* whoever may read the file may execute it, too */
};
/* Writes one file. The caller gives each path once between two calls of place_folder_settle. The
 * umask decides who may read and write the file. A file that is PRESENT gets the mode of a new one.
 * A mode that the file system or the owner of a PRESENT file forbids is left as it is. */
enum place_status place_file(struct place_folder *places, const char *path,
                             const struct place_content *content, place_fill *fill, void *context,
                             struct problem *ret_problem);
/* Makes a folder, or takes the one that is there: WRITTEN or PRESENT. */
enum place_status place_empty_folder(struct place_folder *places, const char *path,
                                     struct problem *ret_problem);
/* Makes a symbolic link. Its target must stay in the output folder (formats/staging/staged_link.h);
 * another one is WRONG. A link that is there with this target is PRESENT. The caller writes every
 * file of a folder before its links. */
enum place_status place_link(struct place_folder *places, const char *path, const char *target,
                             struct problem *ret_problem);
/* Makes every written file and its name durable, and PRESENT files too. Returns WRITTEN, or the
 * status and problem of the first file that failed, OCCUPIED or FAILED. The other files are in
 * place then. place_file settles by itself when a batch is full. */
enum place_status place_folder_settle(struct place_folder *places, struct problem *ret_problem);

#endif
