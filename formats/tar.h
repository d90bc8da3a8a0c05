/* formats/tar.h - whether an archive can become the root file system of a job.
 *
 * The archive is a stranger's. Only its headers are read, one block of 512 bytes after another, and
 * nothing is unpacked: a client looks before it buys, and an agent before tar makes one file. What
 * implementations of tar read differently is refused, so that the count of entries and of bytes
 * holds for the tar that unpacks. Read are the formats of POSIX (ustar, pax) and of GNU without
 * sparse files. Pure. */
#ifndef BOURSE_FORMATS_TAR_H
#define BOURSE_FORMATS_TAR_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tar_status {
    TAR_OK,
    TAR_UNFIT,      /* no archive, cut, or with entries that no root may have */
    TAR_TOO_MANY,   /* entries */
    TAR_TOO_LARGE,  /* bytes of its files together */
    TAR_UNREADABLE, /* the caller's function failed: nothing is known of the archive */
};

struct tar_limits {
    uint64_t entries, bytes;
};

struct tar_source {
    uint64_t size; /* bytes of the archive */
    /* Reads all of `length` bytes at `offset`, which lie within the archive. False: it cannot. */
    bool (*read)(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length);
    void *context;
};

/* Looks at every header. *ret_has (may be NULL) is how many entries and bytes an archive that is
 * TAR_OK has. Anything else leaves a problem that names the entry and the reason,
 * and for limits both figures. Costs one read for each entry, and two blocks of memory. */
enum tar_status tar_check(const struct tar_source *source, const struct tar_limits *limits,
                          struct tar_limits *ret_has, struct problem *ret_problem);

#endif
