/* A snapshot file holds the state of the exchange, so that a start need not replay everything.
 *
 *   0  4 magic "BSS1"         4  4 zeros             8  8 command index       16  8 entry index
 *  24 32 chain hash of that entry                   56 32 state hash
 *  88  8 length of the state  96  n state            96+n 32 SHA-256 of all before
 *
 * Its name is state-<command index, 20 digits>.snapshot. A snapshot is a cache: a bad one is
 * skipped, and the journal alone is enough. But one that is newer than the journal, even a damaged
 * one, is evidence that entries are lost. A whole one of this market that follows another entry
 * than the journal's is evidence that two histories were signed. Bytes 111 to 126 are the id of the
 * market's cluster: they stay there, since the auditor reads them, too (docs/ledger.md,
 * section 1). */
#ifndef BOURSE_BROKER_STORAGE_SNAPSHOT_SNAPSHOT_FILE_H
#define BOURSE_BROKER_STORAGE_SNAPSHOT_SNAPSHOT_FILE_H

#include "base/id.h"
#include "base/problem.h"
#include "exchange/exchange.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SNAPSHOT_KEPT = 2, SNAPSHOT_CLUSTER_AT = 111 };

/* A mark is a moment between two entries. */
struct snapshot_mark {
    uint64_t command;    /* last one applied */
    uint64_t entry;      /* last one applied */
    struct hash32 chain; /* chain hash of the entry */
    struct hash32 state;
};

/* Writes the state of `exchange` at `mark`, and keeps SNAPSHOT_KEPT snapshots: this one and those
 * before it. Snapshots of a later command are removed too, since `mark` is the newest moment of the
 * journal. */
bool snapshot_write(const char *folder, const struct exchange *exchange,
                    const struct snapshot_mark *mark, struct problem *ret_problem);

struct snapshot_search {
    const char *folder;
    const struct exchange_limits *limits;
    sqlite3 *journal;
    uint64_t last_entry;         /* last entry of the journal */
    uint64_t last_command;       /* last command of the journal; read only with a cluster */
    const struct id128 *cluster; /* of the market; NULL: newer snapshots are skipped */
    /* Newer snapshots and forked ones are set aside: the operator knows what is given up. */
    bool adopts;
    bool newer_only; /* only files with a name newer than last_command are loaded */
    /* Files of an entry after last_entry are skipped without a word: the caller looks at them
     * later, once it knows the market. */
    bool older_only;
};

enum snapshot_found {
    SNAPSHOT_FOUND,
    SNAPSHOT_NONE,   /* no failure */
    SNAPSHOT_BEYOND, /* a snapshot of this market is newer than the journal: entries are lost */
    SNAPSHOT_FORKED, /* one of this market follows another entry: two histories were signed */
    SNAPSHOT_UNREAD, /* the disk did not give a snapshot, or the journal */
};

/* Finds the newest whole snapshot that has its state hash and follows an entry of `journal` not
 * after `last_entry`. A damaged snapshot counts as newer only if name, head and cluster agree. A
 * damaged one of which the name alone is newer is skipped with a louder warning. With a cluster,
 * the heads of all files are looked at for a fork. A snapshot of another market is skipped. Skipped
 * ones are logged. On FOUND the caller owns *ret_exchange; BEYOND, FORKED and UNREAD come with a
 * problem. */
enum snapshot_found snapshot_newest(const struct snapshot_search *search,
                                    struct exchange **ret_exchange, struct snapshot_mark *ret_mark,
                                    struct problem *ret_problem);

/* Decodes one file's bytes. Returns NULL when they are no snapshot. Public for tests. */
struct exchange *snapshot_decode(const struct exchange_limits *limits, const uint8_t *bytes,
                                 size_t length, struct snapshot_mark *ret_mark);

#endif
