/* The bodies of clients' requests are drawn from the seed of each request, so they are the same in
 * every life. */
#include "base/rate.h"
#include "base/sha256.h"
#include "exchange/exchange.h"
#include "protocol/codec.h"
#include "runtime/clock.h"
#include "tests/sim/client.h"

#include <assert.h>
#include <string.h>

static ProtobufCBinaryData view(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

static void put_needs(struct random *dice, struct requirement *ret_needs)
{
    memset(ret_needs, 0, sizeof *ret_needs);
    uint64_t kind = random_below(dice, 10);
    if (kind == 0) {
        return; /* anything */
    }
    ret_needs->count = 1;
    struct requirement_node *node = &ret_needs->nodes[0];
    if (kind < 8) {
        node->op = REQUIREMENT_EQ;
        (void)strcpy(node->attribute.name, "kind");
        node->attribute.is_text = true;
        (void)strcpy(node->attribute.text, kind < 6 ? "cpu" : "gpu");
    } else {
        node->op = REQUIREMENT_GE;
        (void)strcpy(node->attribute.name, "memory");
        node->attribute.number = (int64_t)(1 + random_below(dice, 10)) << 30;
    }
}

enum { PARTS_OF_ONE = 2, LARGEST_JOB = 120, SUBTASKS_OF_ONE = 2 * LARGEST_JOB };

struct more {                                   /* of a job: parts and a graph */
    struct requirement needs[PARTS_OF_ONE + 1]; /* the last: of checks */
    Bourse__V1__Requirement *wire[PARTS_OF_ONE + 1];
    Bourse__V1__Part parts[PARTS_OF_ONE + 1];
    Bourse__V1__Part *pointers[PARTS_OF_ONE + 1];
    Bourse__V1__Value values[PARTS_OF_ONE + 1]; /* the last: of the first part */
    Bourse__V1__Graph graph;
    uint32_t ranks[SUBTASKS_OF_ONE], expect_ms[SUBTASKS_OF_ONE], after_counts[SUBTASKS_OF_ONE],
        after[2 * SUBTASKS_OF_ONE];
};

static Bourse__V1__Value *put_value(struct random *dice, Bourse__V1__Value *value)
{
    bourse__v1__value__init(value);
    value->micro = (int64_t)random_below(dice, 7) * 80000;
    value->rate = random_below(dice, 40) == 0 ? RATES : RATE_BF16;
    return value;
}

/* Further parts that leave the first a subtask at least. False: out of memory. */
static bool put_parts(struct random *dice, struct more *more, Bourse__V1__SubmitJob *body)
{
    uint32_t left = body->subtasks;
    body->parts = more->pointers;
    while (body->n_parts < PARTS_OF_ONE && left > 1 && random_below(dice, 2) == 0) {
        size_t i = body->n_parts;
        Bourse__V1__Part *part = &more->parts[i];
        put_needs(dice, &more->needs[i]);
        more->wire[i] = codec_requirement_to_wire(&more->needs[i]);
        if (more->wire[i] == NULL) {
            return false;
        }
        bourse__v1__part__init(part);
        part->subtasks = 1 + (uint32_t)random_below(dice, left - 1);
        part->needs = more->wire[i];
        part->slots = 1 + (uint32_t)random_below(dice, 2);
        part->at_most = random_below(dice, 2) == 0 ? 0 : part->slots * 2;
        part->limit_ms = body->limit_ms;
        part->term_ms = body->term_ms;
        part->has_cap_micro = random_below(dice, 2) == 0;
        part->cap_micro = (int64_t)random_below(dice, 6) * 80000;
        if (!part->has_cap_micro && random_below(dice, 3) == 0) {
            part->value = put_value(dice, &more->values[i]);
        }
        part->has_expect_ns = true;
        part->expect_ns = NS_PER_S;
        left -= part->subtasks;
        more->pointers[i] = part;
        body->n_parts++;
    }
    return true;
}

static void put_graph(struct random *dice, struct more *more, Bourse__V1__SubmitJob *body)
{
    uint32_t edges = 0;
    bourse__v1__graph__init(&more->graph);
    for (uint32_t i = 0; i < body->subtasks; i++) {
        more->ranks[i] = (uint32_t)random_below(dice, 5);
        more->expect_ms[i] = 500 * (uint32_t)random_below(dice, 5);
        more->after_counts[i] = i == 0 ? 0 : (uint32_t)random_below(dice, 3);
        for (uint32_t k = 0; k < more->after_counts[i]; k++) {
            more->after[edges++] = i - 1 - (uint32_t)random_below(dice, i < 10 ? i : 10);
        }
    }
    more->graph.n_rank = random_below(dice, 3) == 0 ? 0 : body->subtasks;
    more->graph.rank = more->ranks;
    more->graph.n_expect_ms = random_below(dice, 3) == 0 ? 0 : body->subtasks;
    more->graph.expect_ms = more->expect_ms;
    more->graph.n_after_count = body->subtasks;
    more->graph.after_count = more->after_counts;
    more->graph.n_after = edges;
    more->graph.after = more->after;
    body->graph = &more->graph;
}

/* A check of each subtask, as the last part. False: out of memory. */
static bool put_checks(struct random *dice, struct more *more, Bourse__V1__SubmitJob *body)
{
    const uint32_t first = body->subtasks;
    const size_t i = body->n_parts;
    Bourse__V1__Part *part = &more->parts[i];
    if (body->graph == NULL) {
        put_graph(dice, more, body);
        more->graph.n_rank = 0;
        more->graph.n_expect_ms = 0;
        more->graph.n_after = 0;
        memset(more->after_counts, 0, sizeof more->after_counts);
    }
    for (uint32_t k = 0; k < first; k++) {
        more->ranks[first + k] = (uint32_t)random_below(dice, 5);
        more->expect_ms[first + k] = 0;
        more->after_counts[first + k] = 1;
        more->after[more->graph.n_after++] = k;
    }
    more->graph.n_rank *= 2;
    more->graph.n_expect_ms *= 2;
    more->graph.n_after_count = (size_t)2 * first;
    put_needs(dice, &more->needs[i]);
    if (random_below(dice, 3) != 0) {
        more->needs[i].count = 0; /* any referee */
    }
    more->wire[i] = codec_requirement_to_wire(&more->needs[i]);
    if (more->wire[i] == NULL) {
        return false;
    }
    bourse__v1__part__init(part);
    part->subtasks = first;
    part->needs = more->wire[i];
    part->slots = 1;
    part->limit_ms = body->limit_ms;
    part->term_ms = body->term_ms;
    body->subtasks = 2 * first;
    body->parts = more->pointers;
    more->pointers[body->n_parts++] = part;
    body->verify = (char *)(uintptr_t) "cheap";
    return true;
}

/* Draws how the job's bids are filled, mostly in a way that such a job may have, and how often its
 * leases may be taken. */
static void put_terms(struct random *dice, Bourse__V1__SubmitJob *body)
{
    const bool is_plain = body->graph == NULL && body->n_parts < 2;
    body->has_order_type = random_below(dice, 3) == 0;
    body->order_type = is_plain || random_below(dice, 8) == 0
                           ? (uint32_t)random_below(dice, EXCHANGE_MARKET + 1)
                           : EXCHANGE_POST_ONLY;
    if (body->has_order_type && body->order_type >= EXCHANGE_FOK &&
        body->order_type != EXCHANGE_MARKET && random_below(dice, 4) != 0) {
        body->at_most = body->slots * (1 + (uint32_t)random_below(dice, 3)); /* there may be that */
    }
    body->has_interruptions = random_below(dice, 4) == 0;
    body->interruptions = (uint32_t)random_below(dice, 3);
}

static enum consumer_status ask_submit(struct client *client, const struct client_request *request)
{
    struct random dice = random_seeded(request->seed);
    struct requirement needs;
    struct hash32 manifest;
    put_needs(&dice, &needs);
    for (size_t i = 0; i < sizeof manifest.bytes; i++) {
        manifest.bytes[i] = (uint8_t)random_u64(&dice);
    }
    Bourse__V1__Requirement *wire = codec_requirement_to_wire(&needs);
    if (wire == NULL) {
        return CONSUMER_OUT_OF_MEMORY;
    }
    uint32_t width = 1 + (uint32_t)random_below(&dice, random_below(&dice, 3) == 0 ? 3 : 1);
    int64_t limit_ms = 1000 + (int64_t)random_below(&dice, 20000);
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    body.name = (char *)(uintptr_t) "simulated";
    body.manifest = view(&manifest, sizeof manifest);
    body.subtasks = 1 + (uint32_t)random_below(&dice, client->largest);
    if (random_below(&dice, 12) == 0) {
        const int64_t few = (int64_t)random_below(&dice, 3);
        body.budget_micro = few * (int64_t)random_below(&dice, 150);
    } else {
        body.budget_micro = (int64_t)random_below(&dice, 4000000) + 20000;
    }
    body.has_cap_micro = random_below(&dice, 2) == 0;
    body.cap_micro = (int64_t)random_below(&dice, 6) * 80000; /* often just what is asked */
    struct more more = {.wire = {NULL}};
    if (request->is_by_value) {
        body.has_cap_micro = false;
        body.value = put_value(&dice, &more.values[PARTS_OF_ONE]);
    }
    body.needs = wire;
    body.slots = width;
    body.at_most = random_below(&dice, 2) == 0 ? 0 : width * (1 + (uint32_t)random_below(&dice, 6));
    body.limit_ms = limit_ms;
    body.term_ms = limit_ms + (int64_t)random_below(&dice, 40000);
    body.verify = (char *)(uintptr_t) "none";
    body.has_retries = true;
    body.retries = (uint32_t)random_below(&dice, 3);
    body.has_error_limit = true;
    body.error_limit = (uint32_t)random_below(&dice, 4);
    body.has_expect_ns = random_below(&dice, 2) == 0;
    body.expect_ns = NS_PER_S;
    body.has_crash_limit = random_below(&dice, 2) == 0;
    body.crash_limit = (uint32_t)random_below(&dice, 4);
    /* A third of such jobs has a deadline, a third a good_till, and a third has both. */
    body.has_good_till_ms = request->expires_ms != 0 && request->expires_ms % 3 != 0;
    body.good_till_ms = request->expires_ms;
    body.has_deadline_ms = request->expires_ms != 0 && request->expires_ms % 3 != 1;
    body.deadline_ms = request->expires_ms;
    body.has_expect_stated = body.expect_stated = request->expires_ms % 2 != 0;
    bool has_all = random_below(&dice, 4) != 0 || put_parts(&dice, &more, &body);
    if (random_below(&dice, 3) == 0) {
        put_graph(&dice, &more, &body);
    }
    if (has_all && random_below(&dice, 10) == 0) {
        has_all = put_checks(&dice, &more, &body);
    }
    put_terms(&dice, &body);
    enum consumer_status status =
        !has_all ? CONSUMER_OUT_OF_MEMORY
                 : consumer_session_request(client->session, clock_monotonic_ns(),
                                            MESSAGE_SUBMIT_JOB, &request->id, &body.base);
    for (size_t i = 0; i <= PARTS_OF_ONE; i++) {
        codec_requirement_free(&more.wire[i]);
    }
    codec_requirement_free(&wire);
    return status;
}

static enum consumer_status ask_invite(struct client *client, const struct client_request *request)
{
    struct random dice = random_seeded(request->seed);
    struct hash32 token_hash = sha256_of(&request->token, sizeof request->token);
    Bourse__V1__InviteCreate body = BOURSE__V1__INVITE_CREATE__INIT;
    body.token_hash = view(&token_hash, sizeof token_hash);
    body.roles = ROLE_CONSUMER;
    body.credits_micro = (int64_t)random_below(&dice, 2) * 40000000;
    body.expires_ms = request->expires_ms;
    return consumer_session_request(client->session, clock_monotonic_ns(), request->type,
                                    &request->id, &body.base);
}

static enum consumer_status ask_join(struct client *client, const struct client_request *request)
{
    Bourse__V1__Join body = BOURSE__V1__JOIN__INIT;
    body.account = view(identity_key(client->identity), sizeof(struct key32));
    body.token = view(&request->token, sizeof request->token);
    body.name = client->process.name;
    return consumer_session_request(client->session, clock_monotonic_ns(), request->type,
                                    &request->id, &body.base);
}

static enum consumer_status ask_place(struct client *client, const struct client_request *request)
{
    static const uint32_t types[] = {EXCHANGE_LIMIT, EXCHANGE_LIMIT, EXCHANGE_IOC,
                                     EXCHANGE_POST_ONLY};
    struct random dice = random_seeded(request->seed);
    Bourse__V1__AskPlace body = BOURSE__V1__ASK_PLACE__INIT;
    body.device = view(&request->about, sizeof request->about);
    body.slots = 1 + (uint32_t)random_below(&dice, 6);
    body.price_micro = (int64_t)random_below(&dice, 5) * 80000;
    body.has_good_till_ms = request->expires_ms != 0;
    body.good_till_ms = request->expires_ms;
    body.has_max_term_ms = random_below(&dice, 5) == 0;
    body.max_term_ms = 30000;
    body.has_order_type = true;
    body.order_type = types[random_below(&dice, sizeof types / sizeof *types)];
    body.has_interruptible = body.has_notice_ms = body.has_minimum_run_ms =
        random_below(&dice, 2) == 0;
    body.interruptible = body.has_interruptible;
    body.notice_ms = (int64_t)random_below(&dice, 4) * 700;
    body.minimum_run_ms = (int64_t)random_below(&dice, 4) * 900;
    return consumer_session_request(client->session, clock_monotonic_ns(), request->type,
                                    &request->id, &body.base);
}

static enum consumer_status ask_replace(struct client *client, const struct client_request *request)
{
    struct random dice = random_seeded(request->seed);
    const uint64_t what = 1 + random_below(&dice, 7);
    Bourse__V1__OrderReplace body = BOURSE__V1__ORDER_REPLACE__INIT;
    body.order = view(&request->about, sizeof request->about);
    body.has_part = random_below(&dice, 4) == 0;
    body.part = (uint32_t)random_below(&dice, 2);
    body.has_slots = (what & 1) != 0;
    body.slots = (uint32_t)random_below(&dice, 8);
    body.has_price_micro = (what & 2) != 0 && !request->is_by_value;
    body.price_micro = (int64_t)random_below(&dice, 6) * 80000;
    Bourse__V1__Value value;
    if ((what & 2) != 0 && request->is_by_value) {
        body.value = put_value(&dice, &value);
    }
    body.has_budget_micro = (what & 4) != 0;
    body.budget_micro = 20000 + (int64_t)random_below(&dice, 6000000);
    return consumer_session_request(client->session, clock_monotonic_ns(), request->type,
                                    &request->id, &body.base);
}

enum consumer_status client_sends(struct client *client, const struct client_request *request)
{
    int64_t now_ns = clock_monotonic_ns();
    struct random dice = random_seeded(request->seed);
    if (request->type == MESSAGE_SUBMIT_JOB) {
        return ask_submit(client, request);
    }
    if (request->type == MESSAGE_INVITE_CREATE) {
        return ask_invite(client, request);
    }
    if (request->type == MESSAGE_JOIN) {
        return ask_join(client, request);
    }
    if (request->type == MESSAGE_ORDER_REPLACE) {
        return ask_replace(client, request);
    }
    if (request->type == MESSAGE_ASK_PLACE) {
        return ask_place(client, request);
    }
    if (request->type == MESSAGE_ORDER_CANCEL) {
        Bourse__V1__OrderCancel body = BOURSE__V1__ORDER_CANCEL__INIT;
        body.order = view(&request->about, sizeof request->about);
        return consumer_session_request(client->session, now_ns, request->type, &request->id,
                                        &body.base);
    }
    if (request->type == MESSAGE_JOB_CANCEL) {
        Bourse__V1__JobCancel body = BOURSE__V1__JOB_CANCEL__INIT;
        body.job = view(&request->about, sizeof request->about);
        return consumer_session_request(client->session, now_ns, request->type, &request->id,
                                        &body.base);
    }
    if (request->type == MESSAGE_MINT) {
        Bourse__V1__Mint body = BOURSE__V1__MINT__INIT;
        body.account = view(&request->account, sizeof request->account);
        body.amount_micro = 1 + (int64_t)random_below(&dice, 5000000);
        return consumer_session_request(client->session, now_ns, request->type, &request->id,
                                        &body.base);
    }
    if (request->type == MESSAGE_FREEZE) {
        Bourse__V1__Freeze body = BOURSE__V1__FREEZE__INIT;
        body.account = view(&request->account, sizeof request->account);
        body.frozen = (request->seed & 1) != 0;
        return consumer_session_request(client->session, now_ns, request->type, &request->id,
                                        &body.base);
    }
    if (request->type == MESSAGE_JUDGE_RESULT) {
        Bourse__V1__JudgeResult body = BOURSE__V1__JUDGE_RESULT__INIT;
        body.job = view(&request->judge.job, sizeof request->judge.job);
        body.index = request->judge.index;
        body.attempt = request->judge.attempt;
        body.result = view(&request->judge.result, sizeof request->judge.result);
        body.seed = view(&request->judge.seed, sizeof request->judge.seed);
        body.verdict = request->judge.verdict;
        return consumer_session_request(client->session, now_ns, request->type, &request->id,
                                        &body.base);
    }
    if (request->type == MESSAGE_SET_BANDS) {
        Bourse__V1__SetBands body = BOURSE__V1__SET_BANDS__INIT;
        const bool is_wide = request->seed == 0;
        body.has_least_micro = body.has_most_micro = body.has_notional_micro = true;
        body.least_micro = is_wide ? 0 : (int64_t)random_below(&dice, 3) * 80000;
        body.most_micro = is_wide ? BAND_MICRO : (int64_t)(2 + random_below(&dice, 4)) * 80000;
        body.notional_micro = is_wide ? 0 : (int64_t)random_below(&dice, 5) * 320000;
        return consumer_session_request(client->session, now_ns, request->type, &request->id,
                                        &body.base);
    }
    Bourse__V1__Halt body = BOURSE__V1__HALT__INIT;
    assert(request->type == MESSAGE_HALT);
    body.halted = (request->seed & 1) != 0;
    return consumer_session_request(client->session, now_ns, request->type, &request->id,
                                    &body.base);
}
