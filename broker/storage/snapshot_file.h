/* broker/storage/snapshot_file.h - the exchange's state in a file, so that a start need not replay
 * everything.
 *
 *   0  4 magic "BSS1"         4  4 zeros             8  8 command index       16  8 entry index
 *  24 32 chain hash of that entry                   56 32 state hash
 *  88  8 length of the state  96  n state            96+n 32 SHA-256 of all before
 *
 * Named state-<command index, 20 digits>.snapshot; a snapshot is a cache: a bad one is passed over,
 * and the journal alone is enough. */
#ifndef BOURSE_BROKER_STORAGE_SNAPSHOT_FILE_H
#define BOURSE_BROKER_STORAGE_SNAPSHOT_FILE_H

#include "base/id.h"
#include "base/problem.h"
#include "exchange/exchange.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SNAPSHOT_KEPT = 2 };

struct snapshot_mark {   /* a moment between two entries */
    uint64_t command;    /* last one applied */
    uint64_t entry;      /* last one applied */
    struct hash32 chain; /* of that entry */
    struct hash32 state;
};

/* Writes the state of `exchange` as it stands at `mark`, and removes all but it and the ones before
 * it, SNAPSHOT_KEPT in all. Those of a later command go too: `mark` is the newest moment of the
 * journal. */
bool snapshot_write(const char *folder, const struct exchange *exchange,
                    const struct snapshot_mark *mark, struct problem *ret_problem);

struct snapshot_search {
    const char *folder;
    const struct exchange_limits *limits;
    sqlite3 *journal;
    uint64_t last_entry;         /* of the journal */
    const struct id128 *cluster; /* of the market; NULL: newer ones are passed over */
    bool adopts;                 /* newer ones are set aside: the operator knows what is lost */
};

enum snapshot_found {
    SNAPSHOT_FOUND,
    SNAPSHOT_NONE,   /* which is not a failure */
    SNAPSHOT_BEYOND, /* one of this market is newer than the journal: entries are lost */
    SNAPSHOT_UNREAD, /* the disk did not give one, or the journal */
};

/* The newest snapshot that is whole, has the state hash it says, and was taken after an entry of
 * `journal` that is not after `last_entry`: one of another history, as beside a restored backup, is
 * not. What is passed over is logged. The caller owns *ret_exchange of FOUND; BEYOND and UNREAD
 * come with a problem. */
enum snapshot_found snapshot_newest(const struct snapshot_search *search,
                                    struct exchange **ret_exchange, struct snapshot_mark *ret_mark,
                                    struct problem *ret_problem);

/* One file's bytes; NULL when they are not a snapshot. Exposed for tests. */
struct exchange *snapshot_decode(const struct exchange_limits *limits, const uint8_t *bytes,
                                 size_t length, struct snapshot_mark *ret_mark);

#endif
