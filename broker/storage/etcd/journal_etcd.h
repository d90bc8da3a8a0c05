/* The etcd journal keeps the log of commands on an etcd cluster, as an engine of journal.h.
 *
 * A thread of its own makes all calls, so that a member that stands still holds nobody but the
 * caller that waits. An operation tries the members in turn and ends within its bound. The thread
 * looks every second whether this broker still leads, while nothing else is asked. Etcd_log.h
 * decides what is sent, and what an answer means. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_JOURNAL_ETCD_H
#define BOURSE_BROKER_STORAGE_ETCD_JOURNAL_ETCD_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/core/outage/quorum_note.h"
#include "broker/storage/etcd/etcd_config.h"
#include "broker/storage/etcd/replica_note.h"
#include "broker/storage/journal.h"

#include <stdint.h>

enum {
    JOURNAL_ETCD_APPEND_MS = 1500, /* an append is answered within this time, or UNKNOWN */
    JOURNAL_ETCD_START_MS = 10000, /* the bound of what a start does */
    JOURNAL_ETCD_CUT_MS = 200,     /* a truncation ends with UNKNOWN then; the next goes on */
    JOURNAL_ETCD_FOLLOW_MS = 1000, /* a read that waits for an entry ends with UNKNOWN then */
    JOURNAL_ETCD_RESIGN_MS = 500,  /* the leader is then gone without a word */
    JOURNAL_ETCD_LOOK_MS = 1000    /* between two looks at the leader */
};

/* The thread calls this once when it finds that another broker leads. */
typedef void journal_etcd_deposed(void *context, const struct journal_leader *leader);

struct journal_etcd_start {
    const struct etcd_config *config; /* outlives the journal */
    struct id128 cluster;             /* that the journal's keys have */
    /* The market's own id, which differs once the market was recovered. Zeros: the same. */
    struct id128 market;
    uint64_t etcd_cluster; /* the etcd cluster that must answer; 0: any */
    /* The newest entry of this broker, from which the log goes on where etcd has none. */
    struct journal_base last;
    struct journal_entry entry;
    journal_etcd_deposed *deposed; /* may be NULL */
    void *context;
    /* Says while etcd takes no entry, and why. May be NULL. */
    struct quorum_note *quorum;
    /* Says when a read reached the end of the journal. May be NULL. */
    struct replica_note *replica;
};

/* Checks the versions of the members that answer, opens or makes the market's log, and starts the
 * thread. *ret_etcd_cluster is the id of the etcd cluster. Returns UNAVAILABLE or CORRUPT with a
 * problem. */
enum journal_status journal_etcd_open(const struct journal_etcd_start *start,
                                      struct journal **ret_journal, uint64_t *ret_etcd_cluster,
                                      struct problem *ret_problem);

#endif
