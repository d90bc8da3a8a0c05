/* The gateway is the thread on the control port. It has sessions, roles, rates, id window and
 * heartbeats.
 *
 * A message that the gateway refuses never reaches the log. The gateway looks at heads only;
 * workers decode and verify bodies. The gateway never waits for another thread: a full queue is
 * BUSY for the sender. All output of the broker comes through `releases`, after the commit. */
#ifndef BOURSE_BROKER_GATEWAY_GATEWAY_H
#define BOURSE_BROKER_GATEWAY_GATEWAY_H

#include "base/id.h"
#include "broker/core/logtime.h"
#include "broker/core/outage/quorum_note.h"
#include "broker/core/queue.h"
#include "broker/core/refusals.h"
#include "broker/gateway/budget.h"
#include "broker/gateway/directory.h"
#include "broker/gateway/following.h"
#include "broker/storage/disk_reserve.h"
#include "runtime/router.h"

#include <stdint.h>

enum { GATEWAY_WORKERS_MAX = 16, GATEWAY_PENDING_BYTES = 256 << 20 };

struct gateway;

struct gateway_config {
    /* No other thread uses the router while the gateway runs. */
    struct router *router;
    /* The gateway takes the directory over. */
    struct directory *directory;
    struct logtime *clock;                      /* shared with the core; NULL: see `following` */
    struct queue *workers[GATEWAY_WORKERS_MAX]; /* requests, by account */
    unsigned worker_count;
    struct queue *releases; /* outgoing */
    int64_t heartbeat_ms;
    uint32_t rate, rate_anonymous; /* messages per second and session */
    struct budget *budget;         /* shared with the core and the reader; NULL: none */
    struct id128 cluster;
    char origin[64];
    struct key32 log_key;
    const char *blob_endpoint;          /* named in every Welcome; NULL: none */
    uint64_t index;                     /* newest durable command */
    int64_t index_log_ns;               /* log time of that command */
    const struct disk_reserve *reserve; /* the committer changes its state */
    /* The note is about the journal on etcd; NULL: the journal is on this disk alone. */
    struct quorum_note *quorum;
    struct refusals *refusals; /* counts refusals of members */
    /* This broker follows another one: it opens sessions for reads alone, and has no `clock`. NULL:
     * it leads. */
    struct following_note *following;
};

/* Starts the thread. The process ends when memory or threads are short. */
struct gateway *gateway_start(const struct gateway_config *config);
/* Sets the messages per second and session, for members and for strangers. Any thread may call
 * it. */
void gateway_set_rates(struct gateway *gateway, uint32_t rate, uint32_t rate_anonymous);
/* Returns how often the thread went through its loop: at least four times in each heartbeat while
 * it is alive. Any thread may call it. */
uint64_t gateway_turns(const struct gateway *gateway);
/* Refuses every later message as UNAVAILABLE; releases still leave. Any thread may call it. */
void gateway_drain(struct gateway *gateway);
/* Closes `releases`, waits until the gateway has sent the rest, and ends the thread. */
void gateway_stop(struct gateway **self);

#endif
