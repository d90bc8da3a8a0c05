/* The core answers reads from the present state here, as far as their senders have earned them, and
 * tells those who follow something. */
#include "broker/core/core_internal.h"

#include "base/checked.h"
#include "broker/answer/follow.h"
#include "broker/answer/listings.h"
#include "broker/answer/replies.h"
#include "broker/answer/watches.h"
#include "broker/core/group.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "runtime/clock.h"

static void watch(struct core *core, const struct request *request)
{
    const Bourse__V1__JobsRequest *body = (const void *)request->translation.body;
    if (body->has_watch && body->watch) {
        struct id128 job = {0};
        if (body->has_job) {
            job = codec_id(body->job);
        }
        if (body->has_job && !exchange_job_is_open(core->config.exchange, &job)) {
            return; /* the answer says how the job ended */
        }
        /* A full table costs the client its events, not its answer; the client polls then. */
        (void)watches_add(core->watches, request->session, request->account,
                          body->has_job ? &job : NULL);
    }
}

/* The reader answers reads of committed data, once the core knows that the asker owns the job. The
 * keeper of blobs looks at that itself. */
void core_pass_on(struct core *core, struct request *request)
{
    struct queue *queue = replies_are_the_keepers((enum message_type)request->envelope.type)
                              ? core->config.keeper
                              : core->config.reader;
    struct outgoing *refusal = replies_refuse_read(core->config.exchange, request);
    if (refusal == NULL && queue_try_push(queue, &request->link)) {
        return;
    }
    if (refusal == NULL) {
        refusal = outgoing_refuse(request, REJECT_BUSY, "", 0, 0);
    }
    core_add_reply(core, refusal);
    request_destroy(&request);
}

/* Returns the answer that is sent now, or NULL when the answer comes later. */
static const struct outgoing *follow_market(struct core *core, const struct request *request)
{
    struct outgoing *former;
    struct outgoing *reply =
        follow_answer(core->follow, core->config.exchange, request, clock_monotonic_ns(), &former);
    if (former != NULL) {
        core_add_reply(core, former);
    }
    if (reply != NULL) {
        core_add_reply(core, reply);
    }
    return reply != NULL ? reply : former;
}

/* Returns the answer that is sent now, or NULL, as follow_market does. */
static const struct outgoing *relay_output(struct core *core, const struct request *request)
{
    struct outgoing *former;
    struct outgoing *reply =
        (request->envelope.type == MESSAGE_OUTPUT_POST ? output_relay_post : output_relay_follow)(
            core->relay, core->config.exchange, request, clock_monotonic_ns(), &former);
    if (former != NULL) {
        core_add_reply(core, former);
    }
    if (reply != NULL) {
        core_add_reply(core, reply);
    }
    return reply != NULL ? reply : former;
}

/* Returns a refusal, or the answer to a former message; NULL: the answer comes with the others. */
static const struct outgoing *relay_terminal(struct core *core, const struct request *request)
{
    struct outgoing *former;
    struct outgoing *reply = terminal_relay_take(core->terminals, core->config.exchange, request,
                                                 clock_monotonic_ns(), &former);
    if (former != NULL) {
        core_add_reply(core, former);
    }
    if (reply != NULL) {
        core_add_reply(core, reply);
    }
    return reply != NULL ? reply : former;
}

static const struct outgoing *take_ready(struct core *core, const struct request *request)
{
    struct outgoing *former;
    const struct challenges_now now = core_challenge_time(core);
    struct outgoing *reply =
        challenges_ready(core->challenges, core->config.exchange, request, &now, &former);
    if (former != NULL) {
        core_add_reply(core, former);
    }
    if (reply != NULL) {
        core_add_reply(core, reply);
    }
    return reply != NULL ? reply : former;
}

/* Takes what an agent says of its devices. */
static const struct outgoing *take_figures(struct core *core, const struct request *request)
{
    struct outgoing *reply = figures_board_post(core->figures, request, clock_monotonic_ns());
    core_add_reply(core, reply);
    return reply;
}

/* Lists devices with what their agents said of them, and what challenges found. */
static const struct outgoing *list_devices(struct core *core, const struct request *request)
{
    const struct listings_sources sources = {
        .figures = core->figures,
        .now_ns = clock_monotonic_ns(),
        .challenges = challenges_facts(core->challenges),
        .log_ns = logtime_now(core->config.clock),
    };
    struct outgoing *reply = listings_devices(core->config.exchange, &sources, request);
    core_add_reply(core, reply);
    return reply;
}

static bool is_of_terminals(enum message_type type)
{
    return type == MESSAGE_TERMINAL_SEND || type == MESSAGE_TERMINAL_RECEIVE;
}

static struct budget_asker asker_of(const struct request *request)
{
    return (struct budget_asker){
        .account = request->account, .session = request->session, .kind = BUDGET_READS};
}

/* Answers a read from the present state, and charges its cost. */
static void answer_now(struct core *core, struct request *request)
{
    core_make_room(core, 2);
    const struct budget_asker asker = asker_of(request);
    enum message_type type = (enum message_type)request->envelope.type;
    if (core->is_away) {
        core_charge(core, &asker, BUDGET_LEDGER_STEPS);
        core_outage_answer(core, request);
        return;
    }
    if (replies_are_the_readers(type) || replies_are_the_keepers(type)) {
        core_charge(core, &asker, BUDGET_LEDGER_STEPS);
        core_pass_on(core, request);
        return;
    }
    const struct exchange *exchange = core->config.exchange;
    const uint64_t before = exchange_steps(exchange);
    const struct outgoing *told = NULL;
    if (type == MESSAGE_MARKET_REQUEST) {
        told = follow_market(core, request);
    } else if (type == MESSAGE_OUTPUT_POST || type == MESSAGE_OUTPUT_REQUEST) {
        told = relay_output(core, request);
    } else if (type == MESSAGE_FIGURES_POST) {
        told = take_figures(core, request);
    } else if (type == MESSAGE_DEVICES_REQUEST) {
        told = list_devices(core, request);
    } else if (type == MESSAGE_CHALLENGE_READY) {
        told = take_ready(core, request);
    } else if (is_of_terminals(type)) {
        told = relay_terminal(core, request);
    } else {
        const struct replies_sources sources = {.facts = challenges_facts(core->challenges),
                                                .departures = core->departures,
                                                .log_ns = logtime_now(core->config.clock)};
        struct outgoing *reply = replies_to_read(exchange, &sources, request);
        if (type == MESSAGE_JOBS_REQUEST && reply != NULL && reply->type == MESSAGE_JOBS_REPLY) {
            watch(core, request);
        }
        core_add_reply(core, reply);
        told = reply;
    }
    /* The requests of live output and of terminals are large: their bytes are passed on. */
    const bool is_large = type == MESSAGE_OUTPUT_POST || type == MESSAGE_TERMINAL_SEND;
    const int64_t brought = is_large ? (int64_t)(request->length / BUDGET_RESULTS_PER_STEP) : 0;
    core_charge(core, &asker,
                brought + budget_of_answer(exchange_steps(exchange) - before,
                                           told == NULL ? 0 : told->length));
    request_destroy(&request);
}

void core_answer(struct core *core, struct request *request)
{
    struct outgoing *refusal;
    if (waiting_reads_admit(&core->waiting, core->config.budget, core->config.refusals, request,
                            &refusal)) {
        answer_now(core, request);
    } else if (refusal != NULL) {
        core_make_room(core, 1);
        core_add_reply(core, refusal);
    }
}

static void answer_waiting(void *context, struct request *request)
{
    answer_now(context, request);
}

void core_answer_waiting(struct core *core)
{
    waiting_reads_look(&core->waiting, core->config.budget, answer_waiting, core);
}

/* ---------------------------------------------------------------- what comes unasked */

/* Makes events for the watchers of changed jobs, from the present state. */
static void add_events(struct core *core)
{
    struct watch_event event;
    while (core->open->reply_count < GROUP_REPLIES_MAX &&
           watches_next_event(core->watches, &event)) {
        const uint64_t before = exchange_steps(core->config.exchange);
        struct outgoing *reply =
            replies_job_event(core->config.exchange, &event.job, logtime_now(core->config.clock));
        if (reply != NULL) { /* a job may be gone before its event is made */
            core_charge(
                core, &(struct budget_asker){event.account, event.session, BUDGET_READS},
                budget_of_answer(exchange_steps(core->config.exchange) - before, reply->length));
            reply->session = event.session;
            core_add_reply(core, reply);
        }
        if (!exchange_job_is_open(core->config.exchange, &event.job)) {
            /* The watcher knows of the job's end, or nothing is left to tell. */
            watches_drop(core->watches, event.session, &event.job);
        }
    }
    core->events_due_ns = watches_pending(core->watches) ? clock_monotonic_ns() : INT64_MAX;
}

static void add_output(struct core *core)
{
    struct outgoing *reply = NULL;
    while (core->open->reply_count < GROUP_REPLIES_MAX &&
           (reply = output_relay_next(core->relay, core->config.exchange, clock_monotonic_ns())) !=
               NULL) {
        core_charge(core, &(struct budget_asker){reply->account, reply->session, BUDGET_READS},
                    budget_of_answer(0, reply->length));
        core_add_reply(core, reply);
    }
}

static void add_terminals(struct core *core)
{
    struct outgoing *reply = NULL;
    while (core->open->reply_count < GROUP_REPLIES_MAX &&
           (reply = terminal_relay_next(core->terminals, clock_monotonic_ns())) != NULL) {
        core_charge(core, &(struct budget_asker){reply->account, reply->session, BUDGET_READS},
                    budget_of_answer(0, reply->length));
        core_add_reply(core, reply);
    }
}

static void add_market(struct core *core)
{
    struct outgoing *reply = NULL;
    while (core->open->reply_count < GROUP_REPLIES_MAX &&
           (reply = follow_next(core->follow, core->config.exchange, clock_monotonic_ns())) !=
               NULL) {
        core_add_reply(core, reply);
    }
}

void core_add_news(struct core *core, int64_t now_ns)
{
    if (core->events_due_ns <= now_ns) {
        add_events(core);
    }
    if (follow_due_ns(core->follow) <= now_ns) {
        add_market(core);
    }
    if (output_relay_due_ns(core->relay) <= now_ns) {
        add_output(core);
    }
    if (terminal_relay_due_ns(core->terminals) <= now_ns) {
        add_terminals(core);
    }
    if (challenges_due_ns(core->challenges) <= now_ns) {
        core_add_challenges(core);
    }
}
