/* broker/core/core.h - the thread that owns the exchange: sequences commands, stamps log time,
 * applies, and gathers what it applied into groups for the committer (docs/decisions.md D2).
 *
 * While one group commits, the next is gathered; effects never leave before their own commit. Reads
 * are answered from the state as it stands, inside the open group, and so leave after what they
 * show is durable. Nobody else touches the exchange. */
#ifndef BOURSE_BROKER_CORE_CORE_H
#define BOURSE_BROKER_CORE_CORE_H

#include "broker/core/logtime.h"
#include "broker/core/queue.h"
#include "broker/core/refusals.h"
#include "broker/gateway/budget.h"
#include "broker/storage/epoch.h"
#include "broker/storage/room.h"
#include "exchange/exchange.h"

struct core;

struct core_config {
    struct exchange *exchange; /* the core's alone while it runs; its feed is open */
    struct logtime *clock;     /* shared with the gateway */
    struct epoch *epoch;       /* the core's alone too; epoch_start was called */
    struct queue *inbound;     /* struct request */
    struct queue *groups;      /* to the committer: struct group */
    struct queue *returned;    /* from the committer: the same groups, empty */
    struct queue *reader;      /* struct request: reads of committed data */
    uint64_t mark_every;       /* commands between two recorded state hashes; 0: none */
    const struct room *room;   /* moved by the committer */
    struct budget *budget;     /* shared with the gateway and the reader; NULL: none */
    struct refusals *refusals; /* what is dropped above the budget is noted there */
};

enum { CORE_GROUPS = 2 }; /* one commits, one gathers; capacity of `groups` and `returned` */

/* Starts the thread. Short of memory or threads, the process ends: nothing has been promised
 * yet. */
struct core *core_start(const struct core_config *config);
/* Closes `inbound`, waits until all that was in it is applied and handed over, then the thread. */
void core_stop(struct core **self);

#endif
