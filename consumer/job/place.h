/* consumer/job/place.h - where an output lands, and writing it there safely. Not installed.
 *
 * Names of outputs are a stranger's text. A path is built only from plain components, folders are
 * opened one by one without following symbolic links, a file is written under a temporary name,
 * checked, and linked into place without ever replacing one. So nothing outside the folder can be
 * touched, and what stands under a final name is whole and right, after a power cut too: bytes are
 * made durable before the name is given, a batch of files at a time, because a small file costs
 * less than an fsync. */
#ifndef BOURSE_CONSUMER_JOB_PLACE_H
#define BOURSE_CONSUMER_JOB_PLACE_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLACE_PATH_SIZE = 2304 };

/* The path below the output folder, by docs/consumer.md:
 *   - a leading "out/" of the output's name (what {out} puts there) is dropped;
 *   - with an input (`each:`), the result lies in the input's relative folder;
 *   - else, with several subtasks, in a folder named by the subtask's index; with one, at the top.
 * `input` NULL: none. False when the name is not a plain relative path. */
bool place_path(const char *input, bool single, uint32_t index, const char *output,
                char ret_path[PLACE_PATH_SIZE]);
/* Of a task: TASK/output. */
bool place_path_of_task(const char *task, const char *output, char ret_path[PLACE_PATH_SIZE]);

struct places; /* an output folder, and the files in it that wait for their names */

/* Opens the output folder, made with its parents if absent; NULL with the problem. places_close
 * forgets what was not settled. */
struct places *places_open(const char *folder, struct problem *ret_problem);
void places_close(struct places **self);

/* Writes the content into `fd` (from offset 0); false when it cannot, with its own account of why.
 */
typedef bool place_fill(void *context, int fd);

enum place_status {
    PLACE_WRITTEN,  /* it is right, and gets its name when it is settled */
    PLACE_PRESENT,  /* there already, with that very content; durable when it is settled */
    PLACE_OCCUPIED, /* something else is there: the problem names it */
    PLACE_UNFILLED, /* place_fill said no */
    PLACE_WRONG,    /* what was filled in does not have the hash */
    PLACE_FAILED,   /* the file system: the problem says what */
};
/* Of each path once between two calls of places_settle. */
enum place_status place_file(struct places *places, const char *path, const struct hash32 *hash,
                             uint64_t size, place_fill *fill, void *context,
                             struct problem *ret_problem);
/* Makes every file written so far durable and gives it its name, durable too, as is what was
 * PRESENT: WRITTEN, or OCCUPIED or FAILED with the problem of the first that was not; the others
 * are in their places. place_file settles what it wrote whenever a batch is full. */
enum place_status places_settle(struct places *places, struct problem *ret_problem);

#endif
