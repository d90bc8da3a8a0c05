/* consumer/job/output/folder_unpack.h reads the archive of a folder that is an output. The header
 * is not installed.
 *
 * The archive comes from a stranger. It has regular files and, where the job keeps them, empty
 * folders and then links that stay in the folder. Any other entry is a problem. The reader opens
 * nothing but the archive itself. */
#ifndef BOURSE_CONSUMER_JOB_OUTPUT_FOLDER_UNPACK_H
#define BOURSE_CONSUMER_JOB_OUTPUT_FOLDER_UNPACK_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

/* One file of the archive, or an empty folder or a link, which have no bytes. The name is as the
 * archive has it, and is checked for a link alone. */
struct folder_file {
    const char *name;
    bool is_folder;
    const char *link; /* target of a link, as staged_link_problem allows; NULL for others */
    int fd;           /* of the archive */
    uint64_t offset, size;
    struct hash32 hash;
    bool is_executable;
};
/* Returns false to end the call. */
typedef bool folder_take(void *context, const struct folder_file *file);

enum folder_status {
    FOLDER_OK,
    FOLDER_ENDED, /* `take` returned false */
    FOLDER_UNFIT, /* no archive of a folder, see the problem */
    FOLDER_FAILED /* the archive cannot be read, see the problem */
};
/* Shows every entry of the archive of `size` bytes in `fd`. With `keeps_trees` it may have empty
 * folders and links. */
enum folder_status folder_unpack(int fd, uint64_t size, bool keeps_trees, folder_take *take,
                                 void *context, struct problem *ret_problem);

/* Copies the bytes of a file to `to` from offset 0. Returns false with errno. */
bool folder_file_copy(const struct folder_file *file, int to);

#endif
