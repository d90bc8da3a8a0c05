/* The tail of the journal holds the newest entries until the ledger's tables follow.
 *
 * An entry is durable, and its effects may leave, once it stands in the tail. The ledger's thread
 * writes the entry and its rows to ledger.db later, many entries in one transaction. So ledger.db
 * by itself always agrees with itself, and may only be a little old. A start applies what the tail
 * has and ledger.db has not.
 *
 * The tail is two files that are used in turns. A file holds a run of records from its first byte
 * on. The file is used again when the disk has its whole run in ledger.db, even after a power cut:
 *
 *   offset size field of a record                        all little endian
 *        0    4 magic "BJT1"
 *        4    4 length n of the entry
 *        8   32 chain hash of the entry: SHA-256 of its bytes
 *       40    n the entry (broker/storage/entry.h)
 *
 * A run ends before the first record that is not whole, or whose entry does not follow the one
 * before. The bytes from there on are a torn write, or records of an earlier run. A torn record was
 * never acknowledged, because HEAD comes after the fsync of its record. */
#ifndef BOURSE_BROKER_STORAGE_TAIL_TAIL_H
#define BOURSE_BROKER_STORAGE_TAIL_TAIL_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/journal_sqlite.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TAIL_FILES = 2,
    TAIL_RECORD_HEAD = 40,
    /* A file is long enough from here on. */
    TAIL_TURN_BYTES = 2 << 20,
    /* The tables are synced after so many bytes of entries. */
    TAIL_SYNC_BYTES = 2 << 20,
    /* No record begins behind this: the broker waits for the tables instead. */
    TAIL_MOST_BYTES = 16 << 20,
};

/* Writes the name of file 0 or 1 in `folder`. Returns false with a problem when it is too long. */
bool tail_path(const char *folder, unsigned file, char *ret_path, size_t capacity,
               struct problem *ret_problem);

struct tail_entry {
    struct journal_last end; /* the end of the journal after this entry */
    struct hash32 previous;  /* chain hash of the entry before */
    uint64_t epoch;
    const uint8_t *bytes; /* borrowed from the tail */
    size_t length;
};

struct tail {
    uint8_t *bytes[TAIL_FILES]; /* owned */
    struct tail_entry *entries; /* owned; of both runs, the earlier run first */
    size_t count;
};

/* Reads both files in `folder`; missing files hold nothing. The call writes nothing, and a broker
 * may be running. Read HEAD before and ledger.db after: then no entry that HEAD has seen is missed.
 * Returns false with a problem when a file cannot be read. */
bool tail_read(const char *folder, struct tail *ret_tail, struct problem *ret_problem);
void tail_fini(struct tail *tail);

enum tail_fit {
    TAIL_FITS,
    TAIL_BEYOND, /* entries between ledger.db and the tail are missing */
    TAIL_OTHER,  /* the tail belongs to another history */
};
/* Drops the entries that a journal which ends at `last` has, and any that follow a gap behind the
 * rest. The rest follows `last` without a gap. Every result but FITS comes with a problem; the tail
 * then stays as it was. */
enum tail_fit tail_fit(struct tail *tail, const struct journal_last *last,
                       struct problem *ret_problem);
/* Returns the end of the journal with the tail: its last entry, or `last` when it has none. */
const struct journal_last *tail_end(const struct tail *tail, const struct journal_last *last);

/* Writes the entries of a fitted tail to `folder`, for a backup, and makes the file durable. A tail
 * without an entry makes no file. */
bool tail_copy(const struct tail *tail, const char *folder, struct problem *ret_problem);

#endif
