#include "exchange/command/submit_limits.h"

#include "base/checked.h"
#include "base/limit.h"
#include "exchange/market/bids.h"
#include "exchange/state/effects.h"
#include "exchange/state/parts.h"
#include "exchange/work/graph.h"

#include <stdio.h>

struct range {
    const char *field;
    int64_t value, least, most;
    uint32_t code;
};

/* `prefix` begins the field names. */
static bool in_range(struct exchange *exchange, const char *prefix, const struct range *rules,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i].value < rules[i].least || rules[i].value > rules[i].most) {
            char field[EXCHANGE_FIELD_SIZE];
            bool is_low = rules[i].value < rules[i].least;
            (void)snprintf(field, sizeof field, "%s%s", prefix, rules[i].field); /* it fits */
            effect_reject(exchange, rules[i].code, field, rules[i].value,
                          is_low ? rules[i].least : rules[i].most);
            return false;
        }
    }
    return true;
}

/* Returns the shortest term of a part. Work that may outlast its term costs a renewal each half
 * term, so its term has a least of its own. */
static int64_t least_term_ms(const struct exchange_part *part)
{
    const int64_t least_ns =
        part->limit_ns < RENEWED_TERM_LEAST_NS ? part->limit_ns : RENEWED_TERM_LEAST_NS;
    return least_ns / NS_PER_MS + (least_ns % NS_PER_MS != 0);
}

static bool part_in_range(struct exchange *exchange, const char *prefix,
                          const struct exchange_part *part, int64_t subtasks_most)
{
    const int64_t longest_ms = 7 * 24 * NS_PER_HOUR / NS_PER_MS;
    const struct range rules[] = {
        {"subtasks", part->subtasks, 1, subtasks_most, XREJECT_QUANTITY},
        {"slots", part->slots, 1, 4096, XREJECT_QUANTITY},
        {"at_most", part->at_most, part->at_most == 0 ? 0 : part->slots, UINT32_MAX,
         XREJECT_QUANTITY},
        {"limit_ms", part->limit_ns / NS_PER_MS, 1, longest_ms, XREJECT_QUANTITY},
        {"term_ms", part->term_ns / NS_PER_MS, least_term_ms(part), longest_ms, XREJECT_QUANTITY},
        {"expect_ns", part->expect_ns, 0, longest_ms * NS_PER_MS, XREJECT_QUANTITY},
        {"value.rate", part->rate, RATE_NONE, RATES - 1, XREJECT_REQUIREMENT},
        {part->rate == RATE_NONE ? "cap_micro" : "value.micro", part->cap_micro,
         part->rate != RATE_NONE ? 0
         : part->cap_micro > 0   ? exchange->price_least_micro
                                 : LIMIT_NONE,
         part->rate == RATE_NONE ? exchange->price_band_micro : INT64_MAX, XREJECT_PRICE},
    };
    return in_range(exchange, prefix, rules, sizeof rules / sizeof rules[0]);
}

static bool needs_well_formed(struct exchange *exchange, const char *field,
                              const struct requirement *needs)
{
    bool good = requirement_well_formed(needs);
    if (!good) {
        effect_reject(exchange, XREJECT_REQUIREMENT, field, 0, 0);
    }
    return good;
}

/* Checks each further part, and that the first part has a subtask left. */
static bool parts_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    int64_t left = submit->subtasks;
    if (submit->part_count >= PARTS_MOST) {
        effect_reject(exchange, XREJECT_QUANTITY, "parts", (int64_t)submit->part_count,
                      PARTS_MOST - 1);
        return false;
    }
    for (size_t i = 0; i < submit->part_count; i++) {
        if (!part_in_range(exchange, "parts.", &submit->parts[i], left - 1) ||
            !needs_well_formed(exchange, "parts.needs", submit->parts[i].needs)) {
            return false;
        }
        left -= submit->parts[i].subtasks;
    }
    return true;
}

static bool graph_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    struct exchange_reject why;
    bool good = submit->graph == NULL || graph_well_formed(submit->graph, submit->subtasks, &why);
    if (!good) {
        effect_reject(exchange, why.code, why.field, why.value, why.limit);
    }
    return good;
}

static uint64_t lanes_of(const struct exchange_submit *submit)
{
    uint64_t lanes = 0;
    uint32_t first = submit->subtasks;
    for (size_t i = 0; i < submit->part_count; i++) {
        const struct exchange_part *part = &submit->parts[i];
        first -= part->subtasks;
        lanes += part_lanes_most(part->subtasks, part->at_most, part->slots);
    }
    return lanes + part_lanes_most(first, submit->at_most, submit->slots);
}

/* The checks of a job need no cap. */
static bool lacks_cap(const struct exchange_submit *submit)
{
    const size_t checks = submit->verify == EXCHANGE_VERIFY_CHEAP && submit->part_count > 0;
    bool lacks = !limit_is_set(submit->cap_micro);
    for (size_t i = 0; i + checks < submit->part_count; i++) {
        lacks = lacks || !limit_is_set(submit->parts[i].cap_micro);
    }
    return lacks;
}

/* Returns true when the job may have bids of its type; parts and graph are well formed. */
static bool type_fits(struct exchange *exchange, const struct exchange_submit *submit)
{
    const bool is_maker = submit->type == EXCHANGE_LIMIT || submit->type == EXCHANGE_POST_ONLY;
    const bool is_at_once = !is_maker && submit->type != EXCHANGE_MARKET;
    const size_t after = submit->graph == NULL ? 0 : submit->graph->after_length;
    bool is_by_value = submit->rate != RATE_NONE;
    for (size_t i = 0; i < submit->part_count; i++) {
        is_by_value = is_by_value || submit->parts[i].rate != RATE_NONE;
    }
    if (submit->type > EXCHANGE_MARKET) {
        effect_reject(exchange, XREJECT_QUANTITY, "order", submit->type, EXCHANGE_MARKET);
    } else if ((is_at_once || submit->type == EXCHANGE_POST_ONLY) &&
               submit->verify == EXCHANGE_VERIFY_CHEAP) {
        effect_reject(exchange, XREJECT_VERIFY, "order", submit->type, EXCHANGE_LIMIT);
    } else if (is_maker && lacks_cap(submit)) {
        effect_reject(exchange, XREJECT_PRICE, "cap_micro", LIMIT_NONE, submit->type);
    } else if (is_at_once && after > 0) {
        effect_reject(exchange, XREJECT_QUANTITY, "graph.after", (int64_t)after, 0);
    } else if (submit->type == EXCHANGE_ALL_OR_NONE && is_by_value) {
        effect_reject(exchange, XREJECT_PRICE, "value", submit->type, EXCHANGE_LIMIT);
    } else if (submit->type == EXCHANGE_ALL_OR_NONE &&
               lanes_of(submit) > EXCHANGE_WHOLE_LANES_MOST) {
        effect_reject(exchange, XREJECT_QUANTITY, "at_most", (int64_t)lanes_of(submit),
                      EXCHANGE_WHOLE_LANES_MOST);
    }
    return !exchange->is_rejected;
}

/* Referees are real machines, so nobody can judge what a simulation makes. */
static bool asks_simulated(struct exchange *exchange, const struct exchange_submit *submit)
{
    bool first = requirement_asks_simulated(submit->needs);
    bool asks = first;
    for (size_t i = 0; !asks && i < submit->part_count; i++) {
        asks = requirement_asks_simulated(submit->parts[i].needs);
    }
    if (asks) {
        effect_reject(exchange, XREJECT_VERIFY, first ? "needs" : "parts.needs", 0, 0);
    }
    return asks;
}

/* Returns false when the last part is not the checks of all others; then the command is refused. */
static bool checks_well_formed(struct exchange *exchange, const struct exchange_submit *submit)
{
    if (asks_simulated(exchange, submit)) {
        return false;
    }
    const struct exchange_graph *graph = submit->graph;
    const size_t parts = submit->part_count;
    const uint32_t checks = parts == 0 ? 0 : submit->parts[parts - 1].subtasks;
    const uint32_t first = submit->subtasks - checks;
    if (checks != first) {
        effect_reject(exchange, XREJECT_VERIFY, "verify", checks, first);
        return false;
    }
    if (graph == NULL || graph->after_count_count == 0) {
        effect_reject(exchange, XREJECT_VERIFY, "graph", 0, checks);
        return false;
    }
    for (uint32_t i = 0; i < checks; i++) {
        if (graph->after_count[first + i] != 1) {
            effect_reject(exchange, XREJECT_VERIFY, "graph.after_count",
                          graph->after_count[first + i], 1);
            return false;
        }
    }
    const uint32_t *after = &graph->after[graph->after_length - checks];
    for (uint32_t i = 0; i < checks; i++) {
        if (after[i] != i) {
            effect_reject(exchange, XREJECT_VERIFY, "graph.after", after[i], i);
            return false;
        }
    }
    return true;
}

/* A moment that a job names lies ahead, and not too far; 0 names none. */
bool submit_moment_in_range(struct exchange *exchange, const char *field, int64_t moment_ns)
{
    const int64_t latest_ns = exchange->now_ns + GOOD_TILL_MOST_NS;
    if (moment_ns == 0 || (moment_ns > exchange->now_ns && moment_ns <= latest_ns)) {
        return true;
    }
    effect_reject(exchange, XREJECT_QUANTITY, field, moment_ns / NS_PER_MS,
                  (moment_ns > latest_ns ? latest_ns : exchange->now_ns) / NS_PER_MS);
    return false;
}

bool submit_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    const struct exchange_part first = {
        .subtasks = submit->subtasks,
        .slots = submit->slots,
        .at_most = submit->at_most,
        .cap_micro = submit->cap_micro,
        .limit_ns = submit->limit_ns,
        .term_ns = submit->term_ns,
        .expect_ns = submit->expect_ns,
        .rate = submit->rate,
    };
    const struct range rules[] = {
        {"budget_micro", submit->budget_micro, 0, INT64_MAX, XREJECT_BUDGET},
        {"retries", submit->retries, 0, 100, XREJECT_QUANTITY},
        {"crash_limit", submit->crash_limit, 0, 100, XREJECT_QUANTITY},
        {"interruptions", submit->interruptions, 0, 1000000, XREJECT_QUANTITY},
    };
    if (!part_in_range(exchange, "", &first, 10000000) ||
        !in_range(exchange, "", rules, sizeof rules / sizeof rules[0])) {
        return false;
    }
    if (submit->verify == EXCHANGE_VERIFY_UNKNOWN) {
        effect_reject(exchange, XREJECT_VERIFY, "verify", 0, 0);
        return false;
    }
    if (!submit_moment_in_range(exchange, "good_till_ms", submit->good_till_ns) ||
        !submit_moment_in_range(exchange, "deadline_ms", submit->deadline_ns)) {
        return false;
    }
    if (submit->good_till_ns != 0 && submit->verify == EXCHANGE_VERIFY_CHEAP) {
        effect_reject(exchange, XREJECT_VERIFY, "good_till_ms", submit->good_till_ns / NS_PER_MS,
                      0);
        return false;
    }
    if (submit->has_checkpoints && submit->verify == EXCHANGE_VERIFY_CHEAP) {
        effect_reject(exchange, XREJECT_VERIFY, "checkpoint", 1, 0);
        return false;
    }
    if (submit->has_checkpoints && submit->subtasks > SAVED_SUBTASKS_MOST) {
        effect_reject(exchange, XREJECT_QUANTITY, "subtasks", submit->subtasks,
                      SAVED_SUBTASKS_MOST);
        return false;
    }
    return needs_well_formed(exchange, "needs", submit->needs) &&
           parts_in_range(exchange, submit) && bid_caps_in_range(exchange, submit) &&
           graph_in_range(exchange, submit) && type_fits(exchange, submit) &&
           (submit->verify != EXCHANGE_VERIFY_CHEAP || checks_well_formed(exchange, submit));
}
