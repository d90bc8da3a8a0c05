/* tests/crash/disk.h - a disk under watch: every change below one folder is recorded in order, and
 * calls can be made to fail.
 *
 * A program that links disk.c has its own open, write, fsync, rename ... in front of libc's, so
 * SQLite and our own code are watched alike, without a seam in either; what is not below the
 * watched folder passes through. The record lies in shared memory: a parent reads what a child did
 * until it stopped. Only calls that change what a power cut can take away are recorded: SQLite's
 * -shm is mapped memory, made anew after a crash, and is not. */
#ifndef BOURSE_TESTS_CRASH_DISK_H
#define BOURSE_TESTS_CRASH_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DISK_NAME_SIZE = 112, DISK_ROOT = 0 };

enum disk_change_kind {
    DISK_MAKE,        /* `folder`/name is the new file `node` */
    DISK_MAKE_FOLDER, /* the same for a folder */
    DISK_LINK,        /* `folder`/name is one more name of `node` */
    DISK_UNLINK,      /* `folder`/name is gone */
    DISK_RENAME,      /* `folder`/name is now `to_folder`/to_name, over what was there; `node` */
    DISK_WRITE,       /* bytes at `offset` of `node` */
    DISK_RESIZE,      /* `node` has `offset` bytes */
    DISK_SYNC,        /* file or folder `node`: what was changed before stays */
    DISK_SYNC_FAILED, /* the same asked in vain: bytes not synced before may never be written */
};

struct disk_change {
    enum disk_change_kind kind;
    uint32_t node; /* files and folders are numbered as they are made; DISK_ROOT is the root */
    uint32_t folder, to_folder;
    char name[DISK_NAME_SIZE], to_name[DISK_NAME_SIZE];
    uint64_t offset;
    size_t length;
    size_t data; /* of WRITE: disk_bytes(data) */
};

/* Calls that can fail, as bits. */
enum disk_call {
    DISK_CALL_OPEN = 1,
    DISK_CALL_READ = 2,
    DISK_CALL_WRITE = 4, /* resizing too */
    DISK_CALL_SYNC = 8,
    DISK_CALL_NAME = 16, /* rename, link, unlink, mkdir */
};

/* The first call allots the record; once per program. From now on changes below `root`, an absolute
 * path to an empty folder, are recorded. A child inherits the watch. */
void disk_watch(const char *root);
/* Forgets all that was recorded and watches another folder; what lies in `root` already counts as
 * synced. */
void disk_restart(const char *root);

size_t disk_change_count(void);
const struct disk_change *disk_change_at(size_t index);
const uint8_t *disk_bytes(size_t data);
uint32_t disk_node_count(void);
/* The name under which `node` was made, or is now when it was renamed; for words. */
const char *disk_name(uint32_t node);
bool disk_is_folder(uint32_t node);

/* The `nth` call (1, 2, ...) from now on of the kinds in `calls` fails with `error`, and every
 * later one too when `lasts`. 0: none does. */
void disk_fail(unsigned calls, uint64_t nth, int error, bool lasts);
/* Returns true when a call was made to fail, or disk_note_fault was called, since disk_fail. */
bool disk_has_failed(void);
void disk_note_fault(void); /* of another kind */

#endif
