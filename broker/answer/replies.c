#include "broker/answer/replies.h"

#include "base/checked.h"
#include "broker/answer/disputes.h"
#include "broker/answer/explanation.h"
#include "broker/answer/listings.h"
#include "broker/answer/quotes.h"
#include "broker/answer/why.h"
#include "broker/answer/wire_view.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPLIES_LEASES_MAX = 256, REPLIES_PROVIDER_SIZE = EXCHANGE_NAME_SIZE };

/* ---------------------------------------------------------------- small parts */

static struct outgoing *refuse(const struct request *request, enum reject_code code,
                               const char *field)
{
    return outgoing_refuse(request, code, field, 0, 0);
}

static uint32_t row_limit(bool has_limit, uint32_t limit)
{
    return has_limit && limit > 0 && limit < LIMIT_ROWS ? limit : LIMIT_ROWS;
}

/* Returns true when the job exists and belongs to the asker. */
static bool is_own_job(const struct exchange *exchange, const struct request *request,
                       ProtobufCBinaryData id)
{
    struct id128 job = codec_id(id);
    const uint32_t owner = exchange_job_owner(exchange, &job);
    return owner != EXCHANGE_NO_ACCOUNT && owner == request->account;
}

static bool own_job(const struct exchange *exchange, const struct request *request,
                    ProtobufCBinaryData id, struct exchange_job_row *ret_row)
{
    struct id128 job = codec_id(id);
    return is_own_job(exchange, request, id) && exchange_job(exchange, &job, ret_row);
}

/* ---------------------------------------------------------------- jobs */

/* A job reply is the wire form of one job with everything that the form points to. */
struct job_reply {
    struct exchange_job_row row;
    Bourse__V1__JobRow wire;
    size_t lease_count;
    struct exchange_lease_row leases[REPLIES_LEASES_MAX];
    char providers[REPLIES_LEASES_MAX][REPLIES_PROVIDER_SIZE];
    Bourse__V1__LeaseRow lease_wires[REPLIES_LEASES_MAX];
    Bourse__V1__LeaseRow *lease_pointers[REPLIES_LEASES_MAX];
    uint8_t *states; /* states of its subtasks, if they are wanted */
    uint32_t *tries;
};

static void job_reply_free(struct job_reply *job)
{
    free(job->states);
    free(job->tries);
    free(job);
}

/* Fills the wire form of a job; `now_ns` is log time. */
static void job_to_wire(const struct exchange *exchange, const struct exchange_job_row *row,
                        int64_t now_ns, Bourse__V1__JobRow *ret_wire)
{
    const int64_t left_ns = exchange_job_left_ns(exchange, &row->job, now_ns);
    bourse__v1__job_row__init(ret_wire);
    ret_wire->job = wire_view(&row->job, sizeof row->job);
    ret_wire->name = (char *)(uintptr_t)row->name; /* packing only reads it */
    ret_wire->state = row->state;
    ret_wire->subtasks = row->subtasks;
    ret_wire->waiting = row->waiting;
    ret_wire->running = row->running;
    ret_wire->accepted = row->accepted;
    ret_wire->failed = row->failed;
    ret_wire->cancelled = row->cancelled;
    ret_wire->budget_micro = row->budget_micro;
    ret_wire->charged_micro = row->charged_micro;
    ret_wire->reserved_micro = row->reserved_micro;
    ret_wire->submitted_ms = row->submitted_ns / NS_PER_MS;
    ret_wire->has_ended_ms = row->ended_ns != 0;
    ret_wire->ended_ms = row->ended_ns / NS_PER_MS;
    ret_wire->has_deadline_ms = row->deadline_ns != 0;
    ret_wire->deadline_ms = row->deadline_ns / NS_PER_MS;
    ret_wire->reason = row->reason;
    ret_wire->manifest = wire_view(&row->manifest, sizeof row->manifest);
    ret_wire->index = exchange_index(exchange);
    ret_wire->has_checking = row->checking > 0;
    ret_wire->checking = row->checking;
    ret_wire->has_saved = row->saved > 0;
    ret_wire->saved = row->saved;
    ret_wire->has_queued = row->queued > 0;
    ret_wire->queued = row->queued;
    ret_wire->has_left_ms = left_ns >= 0;
    ret_wire->left_ms = left_ns / NS_PER_MS;
    ret_wire->has_timed = ret_wire->has_foreseen_ms = ret_wire->has_took_ms = row->timed > 0;
    ret_wire->timed = row->timed < UINT32_MAX ? (uint32_t)row->timed : UINT32_MAX;
    ret_wire->foreseen_ms = row->foreseen_ns / NS_PER_MS;
    ret_wire->took_ms = row->took_ns / NS_PER_MS;
    ret_wire->has_accused = row->accused > 0;
    ret_wire->accused = row->accused;
}

static void add_leases(const struct exchange *exchange, int64_t now_ns, struct job_reply *job)
{
    /* The exchange counts silence until its newest command. */
    const int64_t quiet_ns = now_ns - exchange_log_time_ns(exchange);
    static const char *const states[] = {"active", "suspect", "ending", "ended", "promised"};
    job->lease_count = exchange_leases(exchange, &job->row.job, job->leases, REPLIES_LEASES_MAX);
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct exchange_lease_row *row = &job->leases[i];
        struct exchange_account_row provider;
        bool known = exchange_account(exchange, row->provider, &provider);
        (void)snprintf(job->providers[i], sizeof job->providers[i], "%s",
                       known ? provider.name : "");
        Bourse__V1__LeaseRow *wire = &job->lease_wires[i];
        bourse__v1__lease_row__init(wire);
        wire->lease = row->lease;
        wire->provider = job->providers[i];
        wire->device = job->leases[i].device;
        wire->slots = row->slots;
        wire->price_micro = row->price_micro;
        wire->accepted = row->accepted;
        wire->paid_ns = row->paid_ns;
        wire->charged_micro = row->charged_micro;
        wire->has_simulated = row->is_simulated;
        wire->simulated = row->is_simulated;
        wire->has_interruptible = wire->interruptible = row->is_interruptible;
        wire->has_taken = wire->taken = row->is_taken;
        wire->has_silent_ms = row->silent_ns >= 0;
        wire->silent_ms = (row->silent_ns + (row->silent_ns > 0 ? quiet_ns : 0)) / NS_PER_MS;
        wire->has_frozen = wire->frozen = row->is_frozen;
        wire->frozen_why = (char *)(uintptr_t)row->frozen_why;
        wire->state =
            (char *)(uintptr_t)(row->state < sizeof states / sizeof states[0] ? states[row->state]
                                                                              : "?");
        job->lease_pointers[i] = wire;
    }
    job->wire.n_leases = job->lease_count;
    job->wire.leases = job->lease_pointers;
}

/* Returns false when memory is short. */
static bool add_subtasks(const struct exchange *exchange, struct job_reply *job)
{
    const size_t most = job->row.subtasks <= LIMIT_GRAPH_SUBTASKS ? job->row.subtasks : 0;
    job->states = malloc(most + 1);
    job->tries = calloc(most + 1, sizeof *job->tries);
    if (job->states == NULL || job->tries == NULL) {
        return false;
    }
    const size_t count = exchange_subtasks(exchange, &job->row.job, job->states, job->tries, most);
    job->wire.has_states = count > 0;
    job->wire.states = wire_view(job->states, count);
    job->wire.n_tries = count;
    job->wire.tries = job->tries;
    return true;
}

static struct outgoing *one_job(const struct exchange *exchange, const struct request *request,
                                const Bourse__V1__JobsRequest *body, int64_t now_ns)
{
    struct job_reply *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    struct outgoing *outgoing = NULL;
    if (own_job(exchange, request, body->job, &job->row)) {
        job_to_wire(exchange, &job->row, now_ns, &job->wire);
        add_leases(exchange, now_ns, job);
        if (body->has_subtasks && body->subtasks && !add_subtasks(exchange, job)) {
            job_reply_free(job);
            return NULL;
        }
        Bourse__V1__JobRow *rows[] = {&job->wire};
        Bourse__V1__JobsReply answer = BOURSE__V1__JOBS_REPLY__INIT;
        answer.index = exchange_index(exchange);
        answer.n_jobs = 1;
        answer.jobs = rows;
        outgoing = outgoing_reply(request, MESSAGE_JOBS_REPLY, &answer.base);
    } else {
        outgoing = refuse(request, REJECT_NOT_FOUND, "job");
    }
    job_reply_free(job);
    return outgoing;
}

static struct outgoing *jobs(const struct exchange *exchange, const struct request *request,
                             int64_t now_ns)
{
    const Bourse__V1__JobsRequest *body = (const void *)request->translation.body;
    if (body->has_job) {
        return one_job(exchange, request, body, now_ns);
    }
    uint32_t limit = row_limit(body->has_limit, body->limit);
    struct exchange_job_row *rows = calloc(limit, sizeof *rows);
    Bourse__V1__JobRow *wires = calloc(limit, sizeof *wires);
    Bourse__V1__JobRow **pointers = calloc(limit, sizeof(Bourse__V1__JobRow *));
    struct outgoing *outgoing = NULL;
    if (rows != NULL && wires != NULL && pointers != NULL) {
        Bourse__V1__JobsReply answer = BOURSE__V1__JOBS_REPLY__INIT;
        size_t count = exchange_jobs_from(
            exchange, request->account, body->has_from ? body->from : 0, rows, limit, &answer.next);
        for (size_t i = 0; i < count; i++) {
            job_to_wire(exchange, &rows[i], now_ns, &wires[i]);
            pointers[i] = &wires[i];
        }
        answer.index = exchange_index(exchange);
        answer.has_next = answer.next != 0;
        answer.n_jobs = count;
        answer.jobs = pointers;
        outgoing = outgoing_reply(request, MESSAGE_JOBS_REPLY, &answer.base);
    }
    free(rows);
    free(wires);
    free(pointers);
    return outgoing;
}

struct outgoing *replies_job_event(const struct exchange *exchange, const struct id128 *job,
                                   int64_t now_ns)
{
    struct exchange_job_row row;
    if (!exchange_job(exchange, job, &row)) {
        return NULL;
    }
    Bourse__V1__JobRow wire;
    job_to_wire(exchange, &row, now_ns, &wire);
    Bourse__V1__JobEvent event = BOURSE__V1__JOB_EVENT__INIT;
    event.job = &wire;
    return outgoing_message(OUTGOING_EVENT, MESSAGE_JOB_EVENT, &event.base);
}

/* ---------------------------------------------------------------- explain */

static const char *job_state_text(uint32_t state)
{
    switch ((enum job_state)state) {
    case JOB_OPEN:
        return "open";
    case JOB_DONE:
        return "done";
    case JOB_FAILED:
        return "failed";
    case JOB_CANCELLED:
        return "cancelled";
    }
    return "unknown";
}

/* Adds the progress of the part that the explanation is about. */
static void add_part(const struct exchange *exchange, const struct id128 *job, uint32_t number,
                     Bourse__V1__ExplainReply *answer)
{
    struct exchange_part_row parts[LIMIT_PARTS + 1] = {{0}};
    size_t count = exchange_parts(exchange, job, parts, LIMIT_PARTS + 1);
    assert(number < count && count <= LIMIT_PARTS + 1);
    const struct exchange_part_row *part = &parts[number];
    answer->has_parts = answer->has_part = answer->has_first = true;
    answer->has_subtasks = answer->has_waiting = answer->has_running = true;
    answer->parts = (uint32_t)count;
    answer->part = number;
    answer->first = part->first;
    answer->subtasks = part->subtasks;
    answer->waiting = part->waiting;
    answer->running = part->running;
    answer->has_queued = part->queued > 0;
    answer->queued = part->queued;
}

static const char *subtask_state_text(uint8_t state)
{
    static const char *const texts[] = {
        [SUBTASK_NOW_WAITING] = "waiting",   [SUBTASK_NOW_RUNNING] = "running",
        [SUBTASK_NOW_CHECKING] = "checking", [SUBTASK_NOW_ACCEPTED] = "accepted",
        [SUBTASK_NOW_FAILED] = "failed",     [SUBTASK_NOW_CANCELLED] = "cancelled",
    };
    return state < sizeof texts / sizeof texts[0] ? texts[state] : "unknown";
}

/* This is one subtask with everything that its wire form points to. */
struct one_subtask {
    uint32_t index;
    struct exchange_subtask_row row;
    struct exchange_account_row provider;
    char text[LIMIT_TEXT_BYTES];
};

/* Writes in one line what the subtask does or waits for; `part` explains its part. */
static void subtask_text(const struct one_subtask *one, const char *part, char *ret_text,
                         size_t capacity)
{
    const struct exchange_subtask_row *row = &one->row;
    int used = snprintf(ret_text, capacity, "subtask %u ", one->index);
    char *rest = ret_text + used;
    size_t left = capacity - (size_t)used;
    if (row->provider != EXCHANGE_NO_ACCOUNT && row->behind > 0) {
        (void)snprintf(rest, left, "is sent to %.40s (%.40s), where %u before it run%s or wait%s",
                       one->provider.name, row->device, row->behind, row->behind == 1 ? "s" : "",
                       row->behind == 1 ? "s" : "");
    } else if (row->provider != EXCHANGE_NO_ACCOUNT) {
        (void)snprintf(rest, left, "runs at %.40s (%.40s), %s %u", one->provider.name, row->device,
                       "try", row->tries);
    } else if (row->state == SUBTASK_NOW_WAITING && row->waits_on > 0) {
        (void)snprintf(rest, left, "waits for %u other%s, which %s to be accepted first",
                       row->waits_on, row->waits_on == 1 ? "" : "s",
                       row->waits_on == 1 ? "has" : "have");
    } else if (row->state == SUBTASK_NOW_WAITING) {
        (void)snprintf(rest, left, "waits for a lease: %s", part);
    } else if (row->state == SUBTASK_NOW_CHECKING) {
        (void)snprintf(rest, left, "has a result, which a referee has to check");
    } else {
        (void)snprintf(rest, left, "is %s; `bourse logs` and `bourse report` say more",
                       subtask_state_text(row->state));
    }
}

static void add_subtask(const struct exchange *exchange, struct one_subtask *one,
                        Bourse__V1__ExplainReply *answer)
{
    answer->has_subtask = answer->has_tries = answer->has_waits_on = true;
    answer->subtask = one->index;
    /* Packing only reads the text. */
    answer->subtask_state = (char *)(uintptr_t)subtask_state_text(one->row.state);
    answer->tries = one->row.tries;
    answer->waits_on = one->row.waits_on;
    if (one->row.provider != EXCHANGE_NO_ACCOUNT &&
        exchange_account(exchange, one->row.provider, &one->provider)) {
        answer->provider = one->provider.name;
        answer->device = one->row.device;
        answer->has_behind = true;
        answer->behind = one->row.behind;
    }
    subtask_text(one, answer->explanation->text, one->text, sizeof one->text);
    answer->explanation->text = one->text;
}

/* Adds who left with devices that the explained part could use. */
static void add_departed(const struct exchange *exchange, const struct replies_sources *sources,
                         const struct exchange_job_row *job, struct explanation *explanation)
{
    uint32_t slots = 0;
    const struct requirement *needs =
        exchange_part_needs(exchange, &job->job, explanation->row.part, &slots);
    if (needs != NULL) {
        departures_text(sources->departures, exchange, job->owner, needs, slots, sources->log_ns,
                        explanation->departed);
    }
}

static struct outgoing *explain(const struct exchange *exchange,
                                const struct replies_sources *sources,
                                const struct request *request)
{
    const Bourse__V1__ExplainRequest *body = (const void *)request->translation.body;
    struct exchange_job_row row;
    if (!own_job(exchange, request, body->job, &row)) {
        return refuse(request, REJECT_NOT_FOUND, "job");
    }
    struct explanation *explanation = calloc(1, sizeof *explanation);
    if (explanation == NULL) {
        return NULL;
    }
    struct one_subtask one = {.index = body->has_subtask ? body->subtask : 0};
    const bool is_open = row.state == JOB_OPEN;
    if (body->has_subtask && is_open &&
        !exchange_subtask(exchange, &row.job, one.index, &one.row)) {
        free(explanation);
        return refuse(request, REJECT_NOT_FOUND, "subtask");
    }
    const uint32_t part = body->has_subtask && is_open ? one.row.part
                          : body->has_part             ? body->part
                                                       : EXCHANGE_ANY_PART;
    if (!exchange_explain_job(exchange, &row.job, part, &explanation->row)) {
        free(explanation);
        return refuse(request, REJECT_NOT_FOUND, "part");
    }
    explanation_age(explanation, exchange, sources->log_ns);
    add_departed(exchange, sources, &row, explanation);
    bool good = explanation_to_wire(explanation);
    Bourse__V1__ExplainReply answer = BOURSE__V1__EXPLAIN_REPLY__INIT;
    add_part(exchange, &row.job, explanation->row.part, &answer);
    answer.explanation = &explanation->wire;
    answer.index = exchange_index(exchange);
    answer.state = (char *)(uintptr_t)job_state_text(row.state); /* packing only reads it */
    char disputes[LIMIT_TEXT_BYTES];
    if (body->has_subtask && is_open) {
        add_subtask(exchange, &one, &answer);
    }
    disputes_explain(exchange, &row, disputes, sizeof disputes, &answer);
    struct outgoing *outgoing =
        good ? outgoing_reply(request, MESSAGE_EXPLAIN_REPLY, &answer.base) : NULL;
    explanation_free(explanation);
    return outgoing;
}

static struct outgoing *disputes(const struct exchange *exchange, const struct request *request)
{
    const Bourse__V1__DisputesRequest *body = (const void *)request->translation.body;
    const struct id128 job = codec_id(body->job);
    return is_own_job(exchange, request, body->job)
               ? disputes_page(exchange, request, &job, body->has_from ? body->from : 0)
               : refuse(request, REJECT_NOT_FOUND, "job");
}

/* ---------------------------------------------------------------- money */

static struct outgoing *balance(const struct exchange *exchange, const struct request *request)
{
    struct exchange_account_row row;
    if (!exchange_account(exchange, request->account, &row)) {
        return refuse(request, REJECT_NOT_FOUND, "account");
    }
    Bourse__V1__BalanceReply answer = BOURSE__V1__BALANCE_REPLY__INIT;
    answer.account = wire_view(&row.key, sizeof row.key);
    answer.name = row.name;
    answer.available_micro = row.available_micro;
    answer.held_micro = row.held_micro;
    answer.index = exchange_index(exchange);
    answer.has_halted = answer.halted = exchange_halted(exchange);
    answer.halted_why = (char *)(uintptr_t)exchange_halted_why(exchange);
    answer.has_frozen = answer.frozen = row.frozen;
    answer.frozen_why = (char *)(uintptr_t)row.frozen_why;
    return outgoing_reply(request, MESSAGE_BALANCE_REPLY, &answer.base);
}

static struct outgoing *donations(const struct exchange *exchange, const struct request *request)
{
    struct exchange_donated donated;
    if (!exchange_donated(exchange, request->account, &donated)) {
        return NULL; /* the account exists, so memory is short */
    }
    Bourse__V1__DonationsReply answer = BOURSE__V1__DONATIONS_REPLY__INIT;
    answer.index = exchange_index(exchange);
    answer.used_ns = donated.used_ns;
    answer.promised_ns = donated.promised_ns;
    answer.waiting = donated.waiting;
    answer.has_place = donated.is_waiting;
    answer.place = donated.before + 1;
    answer.has_given_ns = donated.given_ns > 0;
    answer.given_ns = donated.given_ns;
    return outgoing_reply(request, MESSAGE_DONATIONS_REPLY, &answer.base);
}

static struct outgoing *accounts(const struct exchange *exchange, const struct request *request)
{
    const Bourse__V1__AccountsRequest *body = (const void *)request->translation.body;
    uint32_t limit = row_limit(body->has_limit, body->limit);
    uint32_t from = body->has_from ? body->from : 0;
    struct exchange_account_row *rows = calloc(limit, sizeof *rows);
    struct exchange_standing *standings = calloc(limit, sizeof *standings);
    Bourse__V1__AccountRow *wires = calloc(limit, sizeof *wires);
    Bourse__V1__AccountRow **pointers = calloc(limit, sizeof(Bourse__V1__AccountRow *));
    struct outgoing *outgoing = NULL;
    if (rows != NULL && standings != NULL && wires != NULL && pointers != NULL) {
        uint32_t count = 0;
        uint32_t total = exchange_account_count(exchange);
        for (uint32_t number = from; number < total && count < limit; number++) {
            struct exchange_account_row *row = &rows[count];
            if (!exchange_account(exchange, number, row)) {
                continue;
            }
            Bourse__V1__AccountRow *wire = &wires[count];
            bourse__v1__account_row__init(wire);
            wire->number = row->number;
            wire->account = wire_view(&row->key, sizeof row->key);
            wire->name = row->name;
            wire->roles = row->roles;
            wire->available_micro = row->available_micro;
            wire->held_micro = row->held_micro;
            wire->frozen = row->frozen;
            standings[count] = exchange_standing(exchange, number);
            wire->owner = standings[count].owner[0] == '\0' ? NULL : standings[count].owner;
            pointers[count++] = wire;
        }
        Bourse__V1__AccountsReply answer = BOURSE__V1__ACCOUNTS_REPLY__INIT;
        answer.n_rows = count;
        answer.rows = pointers;
        answer.index = exchange_index(exchange);
        answer.has_halted = true;
        answer.halted = exchange_halted(exchange);
        outgoing = outgoing_reply(request, MESSAGE_ACCOUNTS_REPLY, &answer.base);
    }
    free(rows);
    free(standings);
    free(wires);
    free(pointers);
    return outgoing;
}

/* ---------------------------------------------------------------- entry points */

struct outgoing *replies_to_read(const struct exchange *exchange,
                                 const struct replies_sources *sources,
                                 const struct request *request)
{
    switch ((int)request->envelope.type) {
    case MESSAGE_JOBS_REQUEST:
        return jobs(exchange, request, sources->log_ns);
    case MESSAGE_QUOTE_REQUEST:
        return quotes_reply(exchange, sources->departures, request, sources->log_ns);
    case MESSAGE_EXPLAIN_REQUEST:
        return explain(exchange, sources, request);
    case MESSAGE_DISPUTES_REQUEST:
        return disputes(exchange, request);
    case MESSAGE_WHY_REQUEST:
        return why_reply(exchange, sources->facts, request, sources->log_ns);
    case MESSAGE_BALANCE_REQUEST:
        return balance(exchange, request);
    case MESSAGE_DONATIONS_REQUEST:
        return donations(exchange, request);
    case MESSAGE_ACCOUNTS_REQUEST:
        return accounts(exchange, request);
    case MESSAGE_PROVIDERS_REQUEST:
        return listings_providers(exchange, request);
    case MESSAGE_BOOK_REQUEST:
        return listings_book(exchange, request);
    case MESSAGE_ORDERS_REQUEST:
        return listings_orders(exchange, request);
    case MESSAGE_PRICES_REQUEST:
        return listings_prices(exchange, request);
    default:
        return refuse(request, REJECT_TYPE, "type"); /* the control port has no such request */
    }
}

bool replies_are_the_readers(enum message_type type)
{
    return type == MESSAGE_STATEMENT_REQUEST || type == MESSAGE_OUTCOMES_REQUEST ||
           type == MESSAGE_RECEIPT_REQUEST || type == MESSAGE_RECEIPTS_REQUEST ||
           type == MESSAGE_CHECKPOINT_REQUEST || type == MESSAGE_TRADES_REQUEST ||
           type == MESSAGE_HISTORY_REQUEST;
}

bool replies_are_the_keepers(enum message_type type)
{
    return type == MESSAGE_STORAGE_REQUEST || type == MESSAGE_FORGET_REQUEST;
}

bool replies_are_the_leaders(enum message_type type)
{
    return type == MESSAGE_OUTPUT_POST || type == MESSAGE_OUTPUT_REQUEST ||
           type == MESSAGE_FIGURES_POST || type == MESSAGE_CHALLENGE_READY ||
           type == MESSAGE_TERMINAL_SEND || type == MESSAGE_TERMINAL_RECEIVE ||
           replies_are_the_keepers(type);
}

struct outgoing *replies_refuse_read(const struct exchange *exchange, const struct request *request)
{
    ProtobufCBinaryData job;
    if (request->envelope.type == MESSAGE_OUTCOMES_REQUEST) {
        job = ((const Bourse__V1__OutcomesRequest *)(const void *)request->translation.body)->job;
    } else if (request->envelope.type == MESSAGE_RECEIPT_REQUEST) {
        job = ((const Bourse__V1__ReceiptRequest *)(const void *)request->translation.body)->job;
    } else if (request->envelope.type == MESSAGE_RECEIPTS_REQUEST) {
        job = ((const Bourse__V1__ReceiptsRequest *)(const void *)request->translation.body)->job;
    } else {
        return NULL; /* the asker's own statement, or public data */
    }
    return is_own_job(exchange, request, job) ? NULL : refuse(request, REJECT_NOT_FOUND, "job");
}
