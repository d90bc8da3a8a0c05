/* broker/storage/head.h - the HEAD file: an outside mark of where the journal stood
 * (docs/decisions.md D3, promise P12).
 *
 * SQLite drops everything after a damaged WAL frame without a word, and an old backup looks
 * healthy. HEAD lies beside the database, is fsynced after every commit, and is kept OUT of
 * backups: a journal that ends short of it was cut or replaced. It never runs ahead of the
 * journal, because it is written after the commit.
 *
 * Four slots of 512 bytes. A mark is written twice, into slots n and n + 2, where n is its counter
 * modulo 2: a damaged slot never hides the newest mark, and a torn write spoils the newest mark
 * only, which nobody was told of. A file of before has the first two slots alone.
 *
 *     0  8 magic "BJHEAD1\0"      8  8 counter (the higher valid one counts)
 *    16  8 index                 24 32 chain hash of that entry (zeros at index 0)
 *    56  8 signed tree size      64  8 number of the newest record of the audit log (0: none)
 *    72 32 its chain hash       104 64 signature of both (broker/core/acts.h)
 *   168  1 1: by a restore       169  8 records of the audit log that it lost
 *   177 zeros up to 480
 *   480 32 SHA-256 of bytes 0 .. 479 */
#ifndef BOURSE_BROKER_STORAGE_HEAD_H
#define BOURSE_BROKER_STORAGE_HEAD_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

enum { HEAD_SLOT_BYTES = 512 };

struct acts_mark { /* the end of the audit log */
    uint64_t number;
    struct hash32 chain;
    struct signature64 signature; /* by audit.key */
};

struct head {
    uint64_t index;      /* last entry that was durable; 0: none */
    struct hash32 chain; /* its chain hash */
    uint64_t tree_size;  /* of the newest signed checkpoint */
    struct acts_mark acts;
    bool restored; /* written by a restore; the next start says so in the audit log */
    uint64_t
        acts_lost; /* by that restore: the audit log that came back ended so many records short */
    unsigned damaged_slots; /* of the file that was read: they were written once, and say nothing */
};

enum head_status {
    HEAD_OK,
    HEAD_MISSING, /* there is no such file, or it is empty or all zeros: never written */
    HEAD_CORRUPT, /* no slot is valid */
    HEAD_FAILED,  /* I/O: stop */
};

struct head_file;

/* Reads without opening for writing (auditors, tests). */
enum head_status head_read(const char *path, struct head *ret_head, struct problem *ret_problem);

/* Opens for writing. MISSING leaves *ret_file NULL: only head_create makes the file, before the
 * first entry of a new journal, so that a missing HEAD beside a journal always means that it was
 * lost. */
enum head_status head_open(const char *path, struct head_file **ret_file, struct head *ret_head,
                           struct problem *ret_problem);
enum head_status head_create(const char *path, const struct head *head, struct head_file **ret_file,
                             struct problem *ret_problem);
/* Writes the two slots of the older mark and fdatasyncs. FAILED is fatal to the caller, as a failed
 * commit is. */
enum head_status head_write(struct head_file *file, const struct head *head);
enum head_place {
    HEAD_STANDS,
    HEAD_REMOVED,
    HEAD_REPLACED, /* another file has its name */
    HEAD_UNSEEN,   /* errno */
};
/* What has the file's name in its folder, wherever that folder was moved to. */
enum head_place head_look(const struct head_file *file);
/* After REMOVED: makes the file anew, in its folder. FAILED with errno; never writes over
 * another. */
enum head_status head_create_again(struct head_file *file, const struct head *head);
void head_close(struct head_file **self);

#endif
