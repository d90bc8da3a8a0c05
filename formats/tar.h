/* formats/tar.h decides whether an archive can become the root file system of a job.
 *
 * The archive is not trusted. The check reads the headers alone, one block of 512 bytes after
 * another, and unpacks nothing. A client checks before it buys, and an agent before tar creates any
 * file. The check refuses everything that implementations of tar read differently, so that its
 * counts hold for the tar that unpacks. The formats are those of POSIX (ustar, pax) and of GNU
 * without sparse files. */
#ifndef BOURSE_FORMATS_TAR_H
#define BOURSE_FORMATS_TAR_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tar_status {
    TAR_OK,
    TAR_UNFIT,      /* no archive, a truncated one, no file, or an entry that no root may have */
    TAR_TOO_MANY,   /* too many files, folders and links */
    TAR_TOO_LARGE,  /* too many bytes in all files together */
    TAR_UNREADABLE, /* the caller's function failed: nothing is known about the archive */
};

/* `entries` bounds the files, folders and links that unpacking makes. An entry counts every part of
 * its path that the path of the entry before does not have, and at least 1. So a folder that comes
 * before its files counts once. */
struct tar_limits {
    uint64_t entries, bytes;
};

struct tar_source {
    uint64_t size; /* bytes of the archive */
    /* Reads all of `length` bytes at `offset`, which lie within the archive. Returns false when
     * the read fails. */
    bool (*read)(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length);
    void *context;
};

/* Checks every header. For TAR_OK, *ret_has (may be NULL) gets the entries and bytes of the
 * archive. Any other status leaves a problem that names the entry and the reason. An entry whose
 * name is not known yet is named by the one before. The problem of a limit has both figures. The
 * call costs one read for each entry, and two blocks of memory. */
enum tar_status tar_check(const struct tar_source *source, const struct tar_limits *limits,
                          struct tar_limits *ret_has, struct problem *ret_problem);

/* One entry of an archive. The texts are valid during the visit. */
struct tar_entry {
    const char *name; /* as written: it may begin with "/" or "./", and never has ".." */
    const char *link; /* target of a link, which stays inside the root; "": no link */
    /* '0' file, '1' hard link, '2' symbolic link, '3' and '4' device, '5' folder, '6' FIFO */
    char type;
    unsigned mode;   /* the lower 12 bits: setuid, setgid, sticky and permissions */
    uint64_t offset; /* where the content begins in the archive */
    uint64_t size;   /* bytes of the content */
};
/* Returns false, with the reason in the problem, to end the walk with TAR_UNFIT. */
typedef bool tar_visit(void *context, const struct tar_entry *entry, struct problem *ret_problem);

/* Checks every header as tar_check does, and shows every entry in the archive's order. The archive
 * may be without a file, since a layer of an image may only remove files. */
enum tar_status tar_walk(const struct tar_source *source, const struct tar_limits *limits,
                         tar_visit *visit, void *context, struct tar_limits *ret_has,
                         struct problem *ret_problem);

#endif
