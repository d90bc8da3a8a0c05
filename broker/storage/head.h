/* HEAD is a file outside the journal that says where the journal stood (docs/decisions.md D3, P12).
 *
 * SQLite silently drops everything after a damaged WAL frame, and an old backup looks healthy. HEAD
 * lies beside the database, is fsynced after every commit, and is never part of a backup. A journal
 * that ends before HEAD was cut or replaced. HEAD never runs ahead of the journal, because it is
 * written after the commit.
 *
 * The file has four slots of 512 bytes. A mark is written twice, into slots n and n + 2, where n is
 * its counter modulo 2. A damaged slot never hides the newest mark. A torn write spoils the newest
 * mark only, which was not yet acknowledged. A file of an earlier program has only the first two
 * slots.
 *
 *     0  8 magic "BJHEAD1\0"      8  8 counter (the higher valid one counts)
 *    16  8 index                 24 32 chain hash of that entry (zeros at index 0)
 *    56  8 signed tree size      64  8 number of the newest record of the audit log (0: none)
 *    72 32 its chain hash       104 64 signature of both (broker/core/act_log.h)
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

/* The end of the audit log. */
struct act_log_mark {
    uint64_t number;
    struct hash32 chain;
    struct signature64 signature; /* by audit.key */
};

struct head {
    uint64_t index;      /* last durable entry; 0: none */
    struct hash32 chain; /* chain hash of that entry */
    uint64_t tree_size;  /* tree size of the newest signed checkpoint */
    struct act_log_mark acts;
    /* A restore wrote this HEAD; the next start records that in the audit log. */
    bool restored;
    /* Records of the audit log that the restored backup lacked. */
    uint64_t acts_lost;
    /* Damaged slots of the file that was read: slots that were written before and are not valid. */
    unsigned damaged_slots;
};

enum head_status {
    HEAD_OK,
    HEAD_MISSING, /* the file is missing, empty or all zeros: never written */
    HEAD_CORRUPT, /* no slot is valid */
    HEAD_FAILED,  /* I/O error: the caller stops */
};

struct head_file;

/* Reads the file without opening it for writing: beside a running broker, too. */
enum head_status head_read(const char *path, struct head *ret_head, struct problem *ret_problem);
/* Logs a warning when copies of a mark were damaged in the HEAD that was read from `path`. */
void head_warn(const char *path, const struct head *head);

/* Opens the file for writing. MISSING leaves *ret_file NULL. Only head_create makes the file,
 * before the first entry of a new journal. So a missing HEAD beside a journal always means that it
 * was lost. */
enum head_status head_open(const char *path, struct head_file **ret_file, struct head *ret_head,
                           struct problem *ret_problem);
enum head_status head_create(const char *path, const struct head *head, struct head_file **ret_file,
                             struct problem *ret_problem);
/* Writes the two slots of the older mark and calls fdatasync. FAILED is fatal to the caller, like a
 * failed commit. */
enum head_status head_write(struct head_file *file, const struct head *head);
/* Writes the newest mark into all slots, if any was damaged at head_open. *ret_mended: how many.
 * FAILED comes with errno; the newest mark is in the file all the same. */
enum head_status head_mend(struct head_file *file, unsigned *ret_mended);
enum head_place {
    HEAD_STANDS,
    HEAD_REMOVED,
    HEAD_REPLACED, /* another file has its name */
    HEAD_UNSEEN,   /* errno */
};
/* Returns the wall clock at the last write, from the file's time stamp, or 0 when that fails. */
int64_t head_written_ns(const struct head_file *file);
/* Looks which file has HEAD's name in its folder, wherever that folder was moved to. */
enum head_place head_look(const struct head_file *file);
/* Makes the file again in its folder after REMOVED. Returns FAILED with errno; never overwrites
 * another file. */
enum head_status head_create_again(struct head_file *file, const struct head *head);
void head_close(struct head_file **self);

#endif
