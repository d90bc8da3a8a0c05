#include "broker/answer/standby_reads.h"

#include "base/checked.h"
#include "broker/answer/figures_board.h"
#include "broker/answer/follow.h"
#include "broker/answer/listings.h"
#include "broker/answer/replies.h"
#include "broker/challenge/challenge_facts.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "broker/fatal.h"
#include "broker/gateway/waiting_reads.h"
#include "protocol/codec.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/process.h"

#include <stdlib.h>

/* The longest wait for a request: news of the market are looked for as often. */
#define TURN_NS (100 * NS_PER_MS)

struct standby_reads {
    struct standby_reads_config config;
    pthread_t thread;
    struct follow *follow;
    /* Agents post figures and solve challenges at the leader alone, so both stay empty. */
    struct figures_board *figures;
    struct challenge_facts *facts;
    struct waiting_reads waiting;
};

/* ---- answers */

static void send(struct standby_reads *reads, struct outgoing *outgoing)
{
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    if (!queue_push(reads->config.releases, &outgoing->link)) {
        outgoing_destroy(&outgoing); /* the gateway has ended */
    }
}

/* Sends an answer made from the present state, which the caller holds. */
static void send_marked(struct standby_reads *reads, struct outgoing *outgoing)
{
    if (outgoing != NULL) {
        outgoing->index = exchange_index(reads->config.exchange);
        outgoing->log_time_ns = exchange_log_time_ns(reads->config.exchange);
    }
    send(reads, outgoing);
}

static bool is_watch(const struct request *request)
{
    const Bourse__V1__JobsRequest *body = (const void *)request->translation.body;
    return request->envelope.type == MESSAGE_JOBS_REQUEST && body->has_watch && body->watch;
}

static void name_leader(struct standby_reads *reads, const struct request *request)
{
    struct following now = following_now(reads->config.following, clock_monotonic_ns());
    send(reads, outgoing_not_leader(request->session, &request->envelope.id, now.leader));
}

static void charge(struct standby_reads *reads, const struct request *request, int64_t steps)
{
    const struct budget_asker asker = {
        .account = request->account, .session = request->session, .kind = BUDGET_READS};
    if (reads->config.budget != NULL) {
        budget_charge(reads->config.budget, &asker, steps, clock_monotonic_ns());
    }
}

/* Takes the request over. The reader waits until the ledger has the present state. */
static void pass_on(struct standby_reads *reads, struct request *request)
{
    const struct exchange *exchange = reads->config.exchange;
    struct outgoing *refusal = replies_refuse_read(exchange, request);
    request->state_index = exchange_index(exchange);
    request->state_ns = exchange_log_time_ns(exchange);
    charge(reads, request, BUDGET_LEDGER_STEPS);
    if (refusal == NULL && queue_try_push(reads->config.reader, &request->link)) {
        return;
    }
    send_marked(reads, refusal != NULL ? refusal : outgoing_refuse(request, REJECT_BUSY, "", 0, 0));
    request_destroy(&request);
}

/* Returns NULL when the answer comes with news of the market. */
static struct outgoing *follow_market(struct standby_reads *reads, const struct request *request)
{
    struct outgoing *former;
    struct outgoing *reply = follow_answer(reads->follow, reads->config.exchange, request,
                                           clock_monotonic_ns(), &former);
    if (former != NULL) {
        send_marked(reads, former);
    }
    return reply;
}

static struct outgoing *reply_to(struct standby_reads *reads, const struct request *request)
{
    const struct exchange *exchange = reads->config.exchange;
    const int64_t log_ns = exchange_log_time_ns(exchange);
    if (request->envelope.type == MESSAGE_DEVICES_REQUEST) {
        const struct listings_sources sources = {.figures = reads->figures,
                                                 .now_ns = clock_monotonic_ns(),
                                                 .challenges = reads->facts,
                                                 .log_ns = log_ns};
        return listings_devices(exchange, &sources, request);
    }
    const struct replies_sources sources = {.facts = reads->facts, .log_ns = log_ns};
    return replies_to_read(exchange, &sources, request);
}

static void answer_from_state(struct standby_reads *reads, struct request *request)
{
    const struct exchange *exchange = reads->config.exchange;
    const uint64_t before = exchange_steps(exchange);
    const bool is_market = request->envelope.type == MESSAGE_MARKET_REQUEST;
    struct outgoing *reply = is_market ? follow_market(reads, request) : reply_to(reads, request);
    charge(reads, request,
           budget_of_answer(exchange_steps(exchange) - before, reply == NULL ? 0 : reply->length));
    if (reply != NULL || !is_market) {
        send_marked(reads, reply);
    }
    request_destroy(&request);
}

static void answer_now(void *context, struct request *request)
{
    struct standby_reads *reads = context;
    const enum message_type type = (enum message_type)request->envelope.type;
    if (replies_are_the_leaders(type) || is_watch(request)) {
        name_leader(reads, request);
        request_destroy(&request);
    } else if (replies_are_the_readers(type)) {
        pass_on(reads, request);
    } else {
        answer_from_state(reads, request);
    }
}

/* ---- the loop */

static void take(struct standby_reads *reads, struct request *request)
{
    struct outgoing *refusal = NULL;
    if (request->kind == REQUEST_MESSAGE) {
        if (waiting_reads_admit(&reads->waiting, reads->config.budget, reads->config.refusals,
                                request, &refusal)) {
            answer_now(reads, request);
        } else if (refusal != NULL) {
            send(reads, refusal);
        }
        return;
    }
    /* No agent has a session here, so the other kind is the end of a session. */
    follow_forget(reads->follow, request->session);
    waiting_reads_forget(&reads->waiting, reads->config.budget, request->session, false);
    request_destroy(&request);
}

static void tell_news(struct standby_reads *reads)
{
    const int64_t now_ns = clock_monotonic_ns();
    struct outgoing *reply;
    follow_notice(reads->follow, reads->config.exchange, now_ns);
    while ((reply = follow_next(reads->follow, reads->config.exchange, now_ns)) != NULL) {
        send_marked(reads, reply);
    }
    if (reads->waiting.first != NULL && reads->waiting.due_ns <= now_ns) {
        waiting_reads_look(&reads->waiting, reads->config.budget, answer_now, reads);
    }
}

static int64_t wait_ns(const struct standby_reads *reads)
{
    const int64_t now_ns = clock_monotonic_ns();
    int64_t due_ns = follow_due_ns(reads->follow);
    if (reads->waiting.first != NULL && reads->waiting.due_ns < due_ns) {
        due_ns = reads->waiting.due_ns;
    }
    if (due_ns <= now_ns) {
        return 0;
    }
    return due_ns - now_ns < TURN_NS ? due_ns - now_ns : TURN_NS;
}

/* A full queue of answers makes the thread wait within the lock. The gateway empties the queue and
 * never takes the lock. */
static void *run(void *argument)
{
    struct standby_reads *reads = argument;
    process_name_thread("standby reads");
    while (!queue_finished(reads->config.inbound)) {
        struct queue_link *link = queue_pop(reads->config.inbound, wait_ns(reads));
        pthread_mutex_lock(reads->config.state);
        if (link != NULL) {
            take(reads, QUEUE_ELEMENT(link, struct request, link));
        }
        tell_news(reads);
        pthread_mutex_unlock(reads->config.state);
    }
    return NULL;
}

struct standby_reads *standby_reads_start(const struct standby_reads_config *config)
{
    struct standby_reads *reads = calloc(1, sizeof *reads);
    if (reads == NULL) {
        fatal("the broker cannot follow: out of memory");
    }
    reads->config = *config;
    reads->follow = follow_create(entropy_u64() >> 1); /* fits a signed number */
    reads->figures = figures_board_create();
    reads->facts = challenge_facts_create();
    waiting_reads_init(&reads->waiting);
    if (reads->follow == NULL || reads->figures == NULL || reads->facts == NULL ||
        pthread_create(&reads->thread, NULL, run, reads) != 0) {
        fatal("the broker cannot follow: out of memory or threads");
    }
    return reads;
}

void standby_reads_stop(struct standby_reads **self)
{
    struct standby_reads *reads = *self;
    if (reads != NULL) {
        queue_close(reads->config.inbound);
        pthread_join(reads->thread, NULL);
        waiting_reads_forget(&reads->waiting, reads->config.budget, 0, true);
        follow_destroy(&reads->follow);
        figures_board_destroy(&reads->figures);
        challenge_facts_destroy(&reads->facts);
        free(reads);
        *self = NULL;
    }
}
