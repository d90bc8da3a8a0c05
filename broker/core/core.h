/* The core is the thread that owns the exchange. It gives commands their order and their log time,
 * applies them, and gathers them into groups for the committer (docs/decisions.md D2).
 *
 * The next group is gathered while one group commits; no effect leaves before its own commit.
 * Groups come back once the tables have them. When all of them wait for the tables, so does the
 * core. The core answers reads from the present state, inside the open group. So an answer leaves
 * after the state that it shows is durable. No other thread touches the exchange.
 *
 * While the journal on etcd takes no entry, the core applies nothing of others. It refuses commands
 * at once, also those that it has applied and whose answers wait, and answers reads from an earlier
 * state (broker/core/outage/). */
#ifndef BOURSE_BROKER_CORE_CORE_H
#define BOURSE_BROKER_CORE_CORE_H

#include "broker/core/logtime.h"
#include "broker/core/outage/quorum_note.h"
#include "broker/core/queue.h"
#include "broker/core/refusals.h"
#include "broker/gateway/budget.h"
#include "broker/storage/disk_reserve.h"
#include "broker/storage/epoch.h"
#include "exchange/exchange.h"

#include <stdatomic.h>

struct core;

struct core_config {
    struct exchange *exchange;  /* only the core uses it; its feed is open */
    struct logtime *clock;      /* shared with the gateway */
    struct epoch *epoch;        /* only the core uses it; epoch_start was called */
    struct queue *inbound;      /* struct request */
    struct queue *groups;       /* to the committer: struct group */
    struct queue *returned;     /* from the follower: the same groups, empty */
    atomic_uint *committing;    /* groups that the committer has not released yet */
    struct queue *reader;       /* struct request: reads of committed data */
    struct queue *keeper;       /* struct request: what accounts store and forget */
    struct queue *releases;     /* to the gateway: answers while the journal is away */
    struct quorum_note *quorum; /* of the journal on etcd; NULL: there is none */
    /* The ledger's file and the folder of snapshots, for reads meanwhile; borrowed. */
    const char *database, *snapshots;
    const struct exchange_limits *limits;
    /* The newest rules that all brokers of the market know; NULL: there is one broker, which has
     * raised them at its start. */
    const atomic_uint *rules_of_all;
    uint64_t mark_every;                /* commands between two recorded state hashes; 0: none */
    int64_t beat_ms;                    /* a tick at least so often; 0: when the log needs it */
    size_t group_bytes;                 /* most bytes of a group's commands; 0: GROUP_BYTES */
    const struct disk_reserve *reserve; /* the committer changes its state */
    int64_t challenge_ms;               /* time between two challenges of a device; 0: none */
    int64_t heartbeat_ms;
    const char *challenges_path; /* file of what challenges found; borrowed */
    struct budget *budget;       /* shared with the gateway and the reader; NULL: none */
    struct refusals *refusals;   /* counts reads that are dropped above the budget */
};

/* One group commits, one gathers, and the others wait for the tables: so far may the tables be
 * behind. The number is the capacity of the queues that groups go through. */
enum { CORE_GROUPS = 4 };

/* Starts the thread. The process ends when memory or threads are short: nothing is promised yet. */
struct core *core_start(const struct core_config *config);
/* Closes `inbound`, waits until the core has applied and handed over all of it, then ends the
 * thread. */
void core_stop(struct core **self);

#endif
