/* broker/gateway/gateway.h - the thread on the control port: sessions, roles, rates, the id window,
 * heartbeats.
 *
 * What it refuses never reaches the log. It looks at heads only: bodies are the workers' to decode
 * and to verify. It never waits for another thread: a full queue is BUSY for the sender. What comes
 * out of the broker comes through its `releases`, after the commit. */
#ifndef BOURSE_BROKER_GATEWAY_GATEWAY_H
#define BOURSE_BROKER_GATEWAY_GATEWAY_H

#include "base/id.h"
#include "broker/core/logtime.h"
#include "broker/core/messages.h"
#include "broker/core/refusals.h"
#include "broker/gateway/budget.h"
#include "broker/gateway/directory.h"
#include "broker/storage/room.h"
#include "runtime/router.h"

#include <stdatomic.h>
#include <stdint.h>

enum { GATEWAY_WORKERS_MAX = 16, GATEWAY_PENDING_BYTES = 256 << 20 };

struct gateway;

struct gateway_config {
    struct router *router;                      /* the gateway's alone while it runs */
    struct directory *directory;                /* taken over */
    struct logtime *clock;                      /* shared with the core */
    struct queue *workers[GATEWAY_WORKERS_MAX]; /* requests, by account */
    unsigned worker_count;
    struct queue *releases; /* outgoing */
    int64_t heartbeat_ms;
    uint32_t rate, rate_anonymous; /* messages per second and session */
    struct budget *budget;         /* shared with the core and the reader; NULL: none */
    struct id128 cluster;
    char origin[64];
    struct key32 log_key;
    uint64_t index;            /* newest durable command */
    int64_t index_log_ns;      /* its log time */
    const struct room *room;   /* moved by the committer */
    struct refusals *refusals; /* what members are refused is noted there */
};

/* Starts the thread; the process ends when that fails. */
struct gateway *gateway_start(const struct gateway_config *config);
/* From now on everything that comes in is UNAVAILABLE; releases still leave. Any thread. */
void gateway_drain(struct gateway *gateway);
/* Closes `releases`, waits until what is in it is sent, ends the thread. */
void gateway_stop(struct gateway **self);

#endif
