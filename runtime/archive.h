/* runtime/archive.h writes a root file system, or the files of a folder, as a tar archive.
 *
 * The same entries give the same bytes: times and owners are 0. A name or link that ustar cannot
 * hold goes into a header of pax, and so does the size of a file of 8 GiB or more. */
#ifndef BOURSE_RUNTIME_ARCHIVE_H
#define BOURSE_RUNTIME_ARCHIVE_H

#include "base/problem.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive {
    int fd; /* an empty file, written at explicit offsets */
    uint64_t length;
    struct sha256 *sum; /* NULL, or a started sum that takes every byte written */
    struct problem *problem;
};

/* Each function returns false with the problem. A name has no "/" at its end but a folder's may. */
bool archive_put_header(struct archive *archive, char type, const char *name, const char *link,
                        unsigned mode, uint64_t size);
/* Writes the content of a file, all of it in one call. */
bool archive_put_bytes(struct archive *archive, const void *bytes, size_t length);
/* Copies the content of a file from another file. `name` names the source in the problem. */
bool archive_put_file(struct archive *archive, int fd, uint64_t offset, uint64_t size,
                      const char *name);
bool archive_put_end(struct archive *archive);

#endif
