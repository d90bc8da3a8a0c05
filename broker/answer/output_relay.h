/* broker/answer/output_relay.h passes what running subtasks print to those who follow their jobs.
 *
 * Nothing of it enters the log. A job is relayed while somebody follows it; the relay then keeps
 * the newest pieces in memory. A follower asks, and one answer is under way to it at most. So a
 * slow follower costs others nothing: it misses pieces, and sees from their offsets how many bytes.
 * An agent asks too (OutputPost): the answer waits until a job of the agent's leases is followed.
 * So an agent of an older version, which never asks, is never asked for anything. What is above a
 * job's rate is dropped. Only the core's thread calls these functions. */
#ifndef BOURSE_BROKER_ANSWER_OUTPUT_RELAY_H
#define BOURSE_BROKER_ANSWER_OUTPUT_RELAY_H

#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"

enum {
    OUTPUT_RELAY_JOBS = 64,            /* followed at a time */
    OUTPUT_RELAY_JOBS_OF_ACCOUNT = 16, /* of one owner */
    OUTPUT_RELAY_WAITING = 1024,       /* followers that wait for an answer */
    OUTPUT_RELAY_AGENTS = 4096,        /* agents that wait for an answer */
    OUTPUT_RELAY_KEPT_BYTES = 2 << 20, /* of one job; older pieces go */
    OUTPUT_RELAY_ANSWER_BYTES = 256 << 10,
    OUTPUT_RELAY_PIECE_BYTES = 64, /* each piece counts so much more than its bytes */
    /* Bytes a second: of one job, and of all jobs together. As many may come at once. */
    OUTPUT_RELAY_JOB_RATE = 4 << 20,
    OUTPUT_RELAY_RATE = 16 << 20,
};
/* The output of a job is relayed until this time after its last follower asked. */
#define OUTPUT_RELAY_TERM_NS (15 * INT64_C(1000000000))
/* One answer carries what came within this time. */
#define OUTPUT_RELAY_INTERVAL_NS (20 * INT64_C(1000000))

struct output_relay;

/* `feed` is a random number that followers give back. Returns NULL when memory is short. */
struct output_relay *output_relay_create(uint64_t feed);
void output_relay_destroy(struct output_relay **self);

/* Returns the answer to an OutputRequest, or NULL when output_relay_next makes it later. A session
 * has one waiting request for each job. A second one replaces the first, and *ret_former (else
 * NULL) answers the first. `now_ns` is the time of a monotonic clock. */
struct outgoing *output_relay_follow(struct output_relay *relay, const struct exchange *exchange,
                                     const struct request *request, int64_t now_ns,
                                     struct outgoing **ret_former);
/* Takes the pieces of an OutputPost, and answers it likewise. Pieces of attempts that the sender
 * does not run, and of jobs that nobody follows, are dropped. */
struct outgoing *output_relay_post(struct output_relay *relay, const struct exchange *exchange,
                                   const struct request *request, int64_t now_ns,
                                   struct outgoing **ret_former);
/* Notes that `account` was granted a lease of `job`. */
void output_relay_granted(struct output_relay *relay, uint32_t account, const struct id128 *job);
void output_relay_forget(struct output_relay *relay, uint64_t session);

/* Returns the time of the next work for output_relay_next, or INT64_MAX when it has none. */
int64_t output_relay_due_ns(const struct output_relay *relay);
/* Returns the next answer that is due, or NULL when there is none. The answer's `account` is the
 * one that asked. */
struct outgoing *output_relay_next(struct output_relay *relay, const struct exchange *exchange,
                                   int64_t now_ns);

#endif
