/* This file quotes the parts of a job. It computes cost and time on the present offers, and
 * suggests limits and a budget from them. */
#include "consumer/client/client.h"
#include "consumer/client/rows.h"
#include "consumer/job/bourse_job.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/manifest.h"
#include "consumer/job/result_checks.h"
#include "consumer/job/single_device.h"
#include "consumer/job/submit.h"
#include "consumer/job/supply.h"
#include "consumer/market/history.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "formats/units.h"

#include <stdlib.h>
#include <string.h>

/* A larger array is not laid out, because its quote is exact enough. */
enum { LAID_OUT_MOST = 1 << 16 };

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the dearest price among the offers for the part's slots; -1: no offer. */
static int64_t dearest_of(const struct order_part *part, const struct bourse_quote *quote)
{
    int64_t wanted = part->at_most != 0 ? part->at_most : INT64_MAX;
    if (part->subtasks < wanted / part->slots) {
        wanted = (int64_t)part->subtasks * part->slots;
    }
    int64_t dearest_micro = -1;
    for (uint32_t i = 0; i < quote->level_count && wanted > 0; i++) {
        dearest_micro = quote->levels[i].price_micro;
        wanted -= quote->levels[i].slots;
    }
    return dearest_micro;
}

/* Returns the price to pay when all present slots are donated and then go away. Other asks give the
 * price, leased slots included, else the job's cap, else the price paid lately. 0: the job pays
 * anyway, or no price is known. */
static int64_t price_elsewhere(const struct job_file *file, const struct order_part *part,
                               const struct bourse_quote *quote)
{
    if (dearest_of(part, quote) != 0) {
        return 0;
    }
    const int64_t other_micro =
        limit_is_set(file->cap_micro) ? file->cap_micro : quote->suggested_cap_micro;
    return quote->elsewhere_micro > 0 ? quote->elsewhere_micro : larger(other_micro, 0);
}

/* The default order is a market order with a cap. Without a cap a waiting order would rest at all
 * that its budget allows, and the next ask would fill it at that. With checks the cap admits a
 * second account too. The cheapest account may not check its own results, and another one must redo
 * wrong ones. */
static int64_t limit_of(const struct job_file *file, const struct order_part *part,
                        const struct bourse_quote *quote)
{
    if (limit_is_set(file->cap_micro)) {
        return file->cap_micro;
    }
    if (file->value.rate != RATE_NONE) {
        return LIMIT_NONE; /* the limit differs between devices */
    }
    int64_t dearest_micro = dearest_of(part, quote);
    if (dearest_micro == 0) {
        dearest_micro = price_elsewhere(file, part, quote);
    }
    if (strcmp(file->verify, "cheap") == 0 && quote->second_micro > dearest_micro) {
        dearest_micro = quote->second_micro;
    }
    if (dearest_micro <= 0 || dearest_micro > INT64_MAX / 2) {
        return LIMIT_NONE; /* nothing on offer, or only donations */
    }
    const int64_t limit_micro = dearest_micro + dearest_micro / 2;
    return limit_micro > quote->band_most_micro    ? quote->band_most_micro
           : limit_micro < quote->band_least_micro ? quote->band_least_micro
                                                   : limit_micro;
}

Bourse__V1__Value *submit_value(const struct job_file *file, Bourse__V1__Value *ret_wire)
{
    bourse__v1__value__init(ret_wire);
    ret_wire->micro = file->value.micro;
    ret_wire->rate = file->value.rate;
    return file->value.rate == RATE_NONE ? NULL : ret_wire;
}

static bool is_checks(const struct bourse_job *job, size_t part)
{
    return job->checks > 0 && part + 1 == job->part_count;
}

Bourse__V1__Requirement *submit_needs(const struct bourse_job *job, size_t part,
                                      struct bourse_error *error)
{
    struct requirement needs = job->parts[part].needs;
    if (job->spares_referee && !is_checks(job, part) && !result_checks_need_no_referee(&needs)) {
        (void)client_fail(error, BOURSE_USAGE,
                          "needs: too many terms to keep the only referee for the checks");
        return NULL;
    }
    Bourse__V1__Requirement *wire = codec_requirement_to_wire(&needs);
    if (wire == NULL) {
        (void)client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    return wire;
}

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

static int64_t with_half(int64_t micro)
{
    return sum_of(micro, micro / 2 + (micro & 1));
}

static bool is_whole(const struct job_file *file)
{
    return file->order == JOB_ORDER_FOK || file->order == JOB_ORDER_ALL_OR_NONE;
}

static int64_t lanes_of(const struct order_part *part)
{
    const int64_t most = part->at_most > 0 ? part->at_most / part->slots : part->subtasks;
    return most < part->subtasks ? most : part->subtasks;
}

/* The budget follows the market's rule without donations: 1.5 times the cost, a term of the slots
 * in use, and one term more. */
static int64_t budget_elsewhere(const struct job_file *file, const struct order_part *part,
                                const struct bourse_quote *quote)
{
    const int64_t price_micro = price_elsewhere(file, part, quote);
    if (price_micro == 0) {
        return 0;
    }
    const int64_t expect_ms = part->expect_ns / NS_PER_MS + (part->expect_ns % NS_PER_MS > 0);
    const int64_t lanes = larger(quote->elsewhere_slots / part->slots, 1);
    const int64_t cost_micro =
        order_price_micro(price_micro, (int64_t)part->subtasks * part->slots, expect_ms);
    const int64_t lease_micro = order_price_micro(price_micro, part->slots, part->term_ms);
    int64_t leases_micro;
    return checked_mul(lease_micro, lanes + 1, &leases_micro)
               ? sum_of(with_half(cost_micro), leases_micro)
               : INT64_MAX;
}

/* An order for all slots at once starts with at least a term of all of them, and its bid is bounded
 * by the budget. The suggestion therefore covers the limit. */
static int64_t budget_for(const struct job_file *file, const struct order_part *part,
                          const struct bourse_quote *quote, int64_t limit_micro)
{
    if (quote->suggested_micro <= 0) {
        return 0; /* no price is known */
    }
    const int64_t least_micro = larger(quote->suggested_micro, budget_elsewhere(file, part, quote));
    if (!is_whole(file)) {
        return least_micro;
    }
    const bool is_price = file->value.rate == RATE_NONE && limit_micro > 0;
    const int64_t lanes = lanes_of(part);
    const int64_t whole_micro = order_price_micro(is_price ? limit_micro : quote->price_high_micro,
                                                  lanes * part->slots, part->term_ms);
    return larger(least_micro, sum_of(whole_micro, lanes)); /* each lease is rounded up by itself */
}

/* Returns the file's budget, else the suggestion, which may be LIMIT_NONE. */
static int64_t budget_or(const struct bourse_job *job, int64_t suggested_micro)
{
    return limit_is_set(job->file->budget_micro) ? job->file->budget_micro : suggested_micro;
}

/* The budget is for all parts. A single part's share is unknown, unless the budget is 0. */
static void add_order(const struct bourse_job *job, int64_t budget_micro,
                      Bourse__V1__QuoteRequest *body)
{
    const struct job_file *file = job->file;
    body->has_order_type = file->order != JOB_ORDER_LIMIT;
    body->order_type = (uint32_t)file->order;
    body->has_interruptions = file->interruptions != JOB_ABSENT;
    body->interruptions = body->has_interruptions ? (uint32_t)file->interruptions : 0;
    body->has_budget_micro = budget_micro == 0 || (job->part_count == 1 && budget_micro > 0);
    body->budget_micro = body->has_budget_micro ? budget_micro : 0;
}

/* Quotes a part at a cap and a budget, each of which may be LIMIT_NONE. The cheapest account may
 * not make the checks. */
static bool quote_at(struct bourse *bourse, const struct bourse_job *job, size_t index,
                     int64_t cap_micro, int64_t budget_micro, struct bourse_quote *ret_quote,
                     struct bourse_error *error)
{
    const struct order_part *part = &job->parts[index];
    bool apart = is_checks(job, index);
    CLEANUP(codec_requirement_free)
    Bourse__V1__Requirement *needs = submit_needs(job, index, error);
    if (needs == NULL) {
        return false;
    }
    Bourse__V1__QuoteRequest body = BOURSE__V1__QUOTE_REQUEST__INIT;
    body.needs = needs;
    body.subtasks = part->subtasks;
    body.slots = part->slots;
    body.at_most = part->at_most;
    body.has_cap_micro = limit_is_set(cap_micro);
    body.cap_micro = body.has_cap_micro ? cap_micro : 0;
    Bourse__V1__Value value;
    body.value = submit_value(job->file, &value);
    body.limit_ms = part->limit_ms;
    body.term_ms = part->term_ms;
    body.expect_ns = part->expect_ns;
    body.has_apart = apart;
    body.apart = apart;
    add_order(job, budget_micro, &body);
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_QUOTE_REQUEST, &body.base, MESSAGE_QUOTE_REPLY, &answer,
                     error)) {
        return false;
    }
    rows_quote((const void *)answer, ret_quote);
    return true;
}

static bool is_over_notional(const struct bourse_quote *quote)
{
    return strcmp(quote->explanation.refusal, reject_name(REJECT_NOTIONAL)) == 0;
}

/* A quote that the market would refuse is asked again as it would be submitted, with the suggested
 * budget. The notional bounds that budget where the bound makes the market accept it. */
static bool quote_as_submitted(struct bourse *bourse, const struct bourse_job *job, size_t index,
                               int64_t cap_micro, int64_t limit_micro,
                               struct bourse_quote *ret_quote, struct bourse_error *error)
{
    const struct order_part *part = &job->parts[index];
    const int64_t budget_micro = budget_for(job->file, part, ret_quote, limit_micro);
    const int64_t asked_micro = budget_micro > 0 ? budget_micro : LIMIT_NONE;
    if (!quote_at(bourse, job, index, cap_micro, budget_or(job, asked_micro), ret_quote, error)) {
        return false;
    }
    const bool is_bounded = is_over_notional(ret_quote) && job->part_count == 1 &&
                            !limit_is_set(job->file->budget_micro) && asked_micro > 0;
    struct bourse_bands bands = {.notional_micro = 0};
    if (is_bounded && !bourse_bands(bourse, &bands, error)) {
        return false;
    }
    const int64_t most_micro = bands.notional_micro;
    if (most_micro > 0 && most_micro < asked_micro) {
        if (!quote_at(bourse, job, index, cap_micro, most_micro, ret_quote, error)) {
            return false;
        }
        ret_quote->most_micro = most_micro;
    }
    return true;
}

bool submit_has_gift(const struct bourse_quote *quote)
{
    bool has = false;
    for (uint32_t i = 0; i < quote->level_count; i++) {
        has = has || quote->levels[i].price_micro == 0;
    }
    return has;
}

/* Quotes donated slots alone: the job bids its cap at most and pays nothing. Without a donated slot
 * only the least budget to start counts from a paid quote. */
static bool quote_gifts(struct bourse *bourse, const struct bourse_job *job, size_t index,
                        struct bourse_quote *ret_quote, struct bourse_error *error)
{
    const int64_t cap_micro = job->file->cap_micro;
    if (!quote_at(bourse, job, index, cap_micro, 0, ret_quote, error)) {
        return false;
    }
    ret_quote->is_of_gifts = true;
    ret_quote->limit_micro = cap_micro;
    ret_quote->suggested_micro = 0;
    if (submit_has_gift(ret_quote)) {
        return true;
    }
    struct bourse_quote paid;
    if (!quote_at(bourse, job, index, cap_micro, LIMIT_NONE, &paid, error)) {
        return false;
    }
    ret_quote->minimum_micro = paid.minimum_micro;
    ret_quote->without_gift = (uint32_t)index + 1;
    return true;
}

/* A job without a cap gets one from the offers. Slots that are not available below it are quoted at
 * this cap. */
static bool quote_part(struct bourse *bourse, const struct bourse_job *job, size_t index,
                       struct bourse_quote *ret_quote, struct bourse_error *error)
{
    const struct order_part *part = &job->parts[index];
    const int64_t cap_micro = job->file->cap_micro;
    if (job->holds_nothing) {
        return quote_gifts(bourse, job, index, ret_quote, error);
    }
    if (!quote_at(bourse, job, index, cap_micro, budget_or(job, LIMIT_NONE), ret_quote, error)) {
        return false;
    }
    const int64_t limit_micro = limit_of(job->file, part, ret_quote);
    const bool is_refused = ret_quote->explanation.refusal[0] != '\0';
    const bool gets_cap = limit_is_set(limit_micro) && !limit_is_set(cap_micro);
    if (((gets_cap && (ret_quote->slots_now == 0 || ret_quote->slots_taken > 0)) || is_refused) &&
        !quote_as_submitted(bourse, job, index, gets_cap ? limit_micro : cap_micro, limit_micro,
                            ret_quote, error)) {
        return false;
    }
    ret_quote->limit_micro = limit_micro;
    const int64_t budget_micro = budget_for(job->file, part, ret_quote, limit_micro);
    const int64_t most_micro = ret_quote->most_micro;
    ret_quote->suggested_micro =
        most_micro > 0 && most_micro < budget_micro ? most_micro : budget_micro;
    if (is_whole(job->file) &&
        !checked_mul(ret_quote->minimum_micro, lanes_of(part), &ret_quote->minimum_micro)) {
        ret_quote->minimum_micro = INT64_MAX;
    }
    return true;
}

static bool has_level(const struct bourse_quote *quote, const struct bourse_level *level)
{
    for (uint32_t i = 0; i < quote->level_count; i++) {
        const struct bourse_level *known = &quote->levels[i];
        if (known->price_micro == level->price_micro && known->slots == level->slots &&
            known->providers == level->providers) {
            return true;
        }
    }
    return false;
}

/* Adds one part's offers to those of the others: cheapest first, each once, while there is room. */
static void add_levels(struct bourse_quote *all, const struct bourse_quote *part)
{
    for (uint32_t i = 0; i < part->level_count; i++) {
        if (has_level(all, &part->levels[i])) {
            continue; /* apparently the same devices */
        }
        uint32_t at = all->level_count < BOURSE_LEVELS_MAX ? all->level_count++ : UINT32_MAX;
        for (; at != UINT32_MAX && at > 0 &&
               all->levels[at - 1].price_micro > part->levels[i].price_micro;
             at--) {
            all->levels[at] = all->levels[at - 1];
        }
        if (at != UINT32_MAX) {
            all->levels[at] = part->levels[i];
        }
    }
}

static bool starts(const struct bourse_quote *quote)
{
    return quote->explanation.starts_at_micro >= 0;
}

/* A job of several parts costs the sum of its parts, and needs a place for each. */
static void add_quote(struct bourse_quote *all, const struct bourse_quote *part)
{
    const bool explains = starts(all) && !starts(part); /* the first part that does not start */
    all->slots_now = part->slots_now < all->slots_now ? part->slots_now : all->slots_now;
    all->slots_taken = (uint32_t)larger(all->slots_taken, part->slots_taken);
    all->taken_low_micro = part->slots_taken > 0 && (all->taken_low_micro == 0 ||
                                                     part->taken_low_micro < all->taken_low_micro)
                               ? part->taken_low_micro
                               : all->taken_low_micro;
    all->taken_high_micro = larger(all->taken_high_micro, part->taken_high_micro);
    all->price_low_micro =
        part->price_low_micro < all->price_low_micro ? part->price_low_micro : all->price_low_micro;
    all->price_high_micro = larger(all->price_high_micro, part->price_high_micro);
    all->expected_micro = sum_of(all->expected_micro, part->expected_micro);
    all->minimum_micro = larger(all->minimum_micro, part->minimum_micro);
    all->suggested_micro = sum_of(all->suggested_micro, part->suggested_micro);
    all->limit_micro = larger(all->limit_micro, part->limit_micro);
    if (part->suggested_cap_micro > all->suggested_cap_micro) {
        all->suggested_cap_micro = part->suggested_cap_micro;
        all->suggested_cap_trades = part->suggested_cap_trades;
        all->suggested_cap_since_ms = part->suggested_cap_since_ms;
    }
    all->makespan_ns = larger(all->makespan_ns, part->makespan_ns);
    all->without_gift = all->without_gift > 0 ? all->without_gift : part->without_gift;
    all->index = part->index;
    if (explains && part->has_explanation) {
        all->has_explanation = true;
        all->explanation = part->explanation;
    }
    add_levels(all, part);
}

/* ---------------------------------------------------------------- who checks what */

/* Returns true when a second account's ask is within the cap. */
static bool has_second(const struct bourse_job *job, const struct bourse_quote *quote)
{
    const int64_t cap_micro = job->file->cap_micro;
    return quote->second_micro >= 0 && limit_allows(cap_micro, quote->second_micro);
}

static bool is_sole_referee(const struct bourse_job *job, const struct bourse_quote *checks)
{
    return checks->first_account[0] != '\0' && !has_second(job, checks);
}

/* Returns true when there are devices but none may check. Simulated devices, which nobody asked
 * for, may fail on that alone. */
static bool lacks_referee(const struct bourse_explanation *why)
{
    uint32_t failing = 0;
    uint32_t simulated = 0;
    for (uint32_t i = 0; i < why->predicate_count; i++) {
        const struct bourse_predicate *predicate = &why->predicates[i];
        if (strncmp(predicate->text, "referee ", 8) == 0) {
            failing = predicate->failing;
        } else if (strcmp(predicate->text, "simulated = false") == 0) {
            simulated = predicate->failing;
        }
    }
    return why->devices > 0 && failing + simulated == why->devices;
}

static void tell_no_referee(const struct bourse_quote *checks, char *ret_text, size_t size)
{
    static const char rule[] = "verify: cheap: nobody checks results of its own";
    char price[UNITS_TEXT_SIZE];
    if (checks->second_micro >= 0) { /* so the cap excludes the ask */
        units_money_text(checks->second_micro, price);
        (void)snprintf(ret_text, size,
                       "%s; a second referee asks %s credits per slot-hour, which is above the "
                       "cap: raise it to that",
                       rule, price);
    } else {
        (void)snprintf(ret_text, size,
                       "%s, and a single provider is on offer that may check (referee = true) or "
                       "compute this; it takes a second one, for either",
                       rule);
    }
}

/* Nobody judges its own results, so results of the only referee would wait for ever. Others must
 * compute instead, if every part has some. `made` has room for one quote. */
static bool spare_referee(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *made,
                          struct bourse_quote *checks, struct bourse_error *error)
{
    job->spares_referee = is_sole_referee(job, checks);
    for (size_t i = 0; job->spares_referee && i + 1 < job->part_count; i++) {
        if (!quote_part(bourse, job, i, made, error)) {
            return false;
        }
        if (made->first_account[0] == '\0') {
            job->spares_referee = false;
            tell_no_referee(checks, checks->checks_problem, sizeof checks->checks_problem);
        }
    }
    return true;
}

static bool quote_checks(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *made,
                         struct bourse_quote *ret_checks, struct bourse_error *error)
{
    job->spares_referee = false;
    if (job->checks == 0) {
        return true;
    }
    if (!quote_part(bourse, job, job->part_count - 1, ret_checks, error)) {
        return false;
    }
    if (ret_checks->has_explanation && lacks_referee(&ret_checks->explanation)) {
        client_copy(ret_checks->checks_problem, sizeof ret_checks->checks_problem,
                    "verify: cheap: nobody on offer may check (referee = true); it takes a "
                    "provider with the role referee, other than who computes");
    }
    return spare_referee(bourse, job, made, ret_checks, error);
}

/* Wrong results are made again by the accounts that check, at their price. Every part therefore has
 * the same limit, and the budget has a lease at it. */
static void pay_alike(const struct bourse_job *job, struct bourse_quote *parts,
                      struct bourse_quote *all, int64_t ret_limits[ORDER_PARTS_MAX])
{
    int64_t lease_micro = 0;
    for (size_t i = 0; i < job->part_count && limit_is_set(all->limit_micro); i++) {
        const struct order_part *part = &job->parts[i];
        int64_t term_micro;
        if (parts[i].limit_micro < all->limit_micro) {
            parts[i].limit_micro = ret_limits[i] = all->limit_micro;
            lease_micro = checked_muldiv_ceil(all->limit_micro, part->term_ms * part->slots,
                                              NS_PER_HOUR / NS_PER_MS, &term_micro)
                              ? larger(lease_micro, term_micro)
                              : INT64_MAX;
        }
    }
    if (all->suggested_micro > 0) {
        all->suggested_micro = sum_of(all->suggested_micro, lease_micro);
    }
}

/* The budget gives the price of parts without a known one. A waiting order pays the price of the
 * ask that arrives. */
static void find_rest(const struct bourse_job *job, struct bourse_quote *quote)
{
    const int64_t budget_micro =
        job->file->budget_micro > 0 ? job->file->budget_micro : quote->suggested_micro;
    int64_t planned_ms = 0;
    int64_t lease_ms = INT64_MAX;
    int64_t price_micro;
    for (size_t i = 0; i < job->part_count; i++) {
        const struct order_part *part = &job->parts[i];
        int64_t part_ms;
        planned_ms = checked_mul(part->expect_ns / NS_PER_MS, (int64_t)part->subtasks * part->slots,
                                 &part_ms)
                         ? sum_of(planned_ms, part_ms)
                         : INT64_MAX;
        lease_ms = part->term_ms * part->slots < lease_ms ? part->term_ms * part->slots : lease_ms;
    }
    if (!limit_is_set(quote->limit_micro) && job->file->value.rate == RATE_NONE &&
        budget_micro > 0) {
        const bool good =
            checked_muldiv_ceil(budget_micro, NS_PER_HOUR / NS_PER_MS,
                                larger(larger(planned_ms, lease_ms), 1), &price_micro);
        quote->rests_at_micro =
            good && price_micro < quote->band_most_micro ? price_micro : quote->band_most_micro;
    }
}

/* Returns true when the suggestion takes credits of the account although all slots may be
 * donated. */
static bool is_of_account(const struct bourse_job *job, const struct bourse_quote *quote)
{
    return !limit_is_set(job->file->budget_micro) && quote->minimum_micro == 0 &&
           quote->suggested_micro > 0 && quote->level_count > 0;
}

/* The suggestion never exceeds the notional. An account with fewer credits still takes donated
 * slots, with the credits it has. */
static bool fit_to_account(struct bourse *bourse, const struct bourse_job *job,
                           int64_t available_micro, struct bourse_quote *quote,
                           const int64_t limits[ORDER_PARTS_MAX], struct bourse_error *error)
{
    if (quote->most_micro > 0 && quote->most_micro < quote->suggested_micro) {
        quote->suggested_micro = quote->most_micro; /* the plan's cost differs */
    }
    if (!is_of_account(job, quote) || available_micro >= quote->suggested_micro) {
        return true;
    }
    quote->suggested_micro = available_micro;
    quote->is_all_there_is = true;
    if (job->part_count > 1) {
        return true;
    }
    struct bourse_quote asked;
    const int64_t cap_micro = limit_is_set(limits[0]) ? limits[0] : job->file->cap_micro;
    if (!quote_at(bourse, job, 0, cap_micro, quote->suggested_micro, &asked, error)) {
        return false;
    }
    quote->has_explanation = asked.has_explanation;
    quote->explanation = asked.explanation;
    return true;
}

/* Quotes each part by itself. */
static bool quote_parts(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *parts,
                        struct bourse_quote *ret_quote, int64_t ret_limits[ORDER_PARTS_MAX],
                        struct bourse_error *error)
{
    struct bourse_quote *checks = &parts[job->part_count - 1];
    if (!quote_checks(bourse, job, &parts[job->part_count], checks, error)) {
        return false;
    }
    for (size_t i = 0; i < job->part_count; i++) {
        if (!is_checks(job, i) && !quote_part(bourse, job, i, &parts[i], error)) {
            return false;
        }
        if (i == 0) {
            *ret_quote = parts[0];
        } else {
            add_quote(ret_quote, &parts[i]);
        }
        ret_limits[i] = parts[i].limit_micro;
    }
    if (job->checks > 0 && !limit_is_set(job->file->cap_micro)) {
        pay_alike(job, parts, ret_quote, ret_limits);
    }
    client_copy(ret_quote->checks_problem, sizeof ret_quote->checks_problem,
                job->checks > 0 ? checks->checks_problem : "");
    return true;
}

/* Quotes within the budget. An account without credits is quoted like a budget of 0. */
static bool quote_for_account(struct bourse *bourse, struct bourse_job *job,
                              struct bourse_quote *parts, struct bourse_quote *ret_quote,
                              int64_t ret_limits[ORDER_PARTS_MAX], int64_t *ret_available_micro,
                              struct bourse_error *error)
{
    struct bourse_balance balance = {.available_micro = INT64_MAX};
    job->holds_nothing = job->file->budget_micro == 0;
    if (!quote_parts(bourse, job, parts, ret_quote, ret_limits, error) ||
        (is_of_account(job, ret_quote) && !bourse_balance(bourse, &balance, error))) {
        return false;
    }
    *ret_available_micro = balance.available_micro;
    if (balance.available_micro > 0) {
        return true;
    }
    job->holds_nothing = true;
    const bool good = quote_parts(bourse, job, parts, ret_quote, ret_limits, error);
    ret_quote->is_all_there_is = true;
    return good;
}

/* Sets the cost, and the budget that covers one and a half times the cost. */
static void settle_cost(struct bourse_quote *quote, int64_t cost_micro)
{
    if (quote->expected_micro < 0 || quote->suggested_micro <= 0) {
        return; /* there is no price */
    }
    const int64_t rest_micro = quote->suggested_micro - with_half(quote->expected_micro);
    quote->expected_micro = cost_micro;
    quote->suggested_micro = sum_of(with_half(cost_micro), larger(rest_micro, 1));
}

/* A part's expected time becomes the average of the plan when devices have unlike speeds. The
 * results are later compared with it. */
static void expect_planned(struct bourse_job *job, const struct plan *plan)
{
    uint32_t index = 0;
    for (size_t i = 0; i < job->part_count && job->expect_ns == NULL; i++) {
        struct order_part *part = &job->parts[i];
        int128 sum_ns = 0;
        for (uint32_t k = 0; k < part->subtasks && index < plan->row_count; k++, index++) {
            sum_ns += plan_row_ns(&plan->rows[index]);
        }
        part->expect_ns = part->subtasks > 0 && job->learned.subtasks > 0
                              ? (int64_t)((sum_ns + part->subtasks - 1) / part->subtasks)
                              : part->expect_ns;
    }
}

/* The quotes spread equal work over each part's offers. Parts take each other's devices, and tasks
 * differ and wait, so the plan decides time and cost. */
static bool settle_plan(struct bourse *bourse, struct bourse_job *job, const struct supply *supply,
                        struct bourse_quote *quote, struct bourse_error *error)
{
    CLEANUP(plan_destroy) struct plan *plan = NULL;
    const bool is_array = job->part_count == 1 && job->graph.after_count == NULL;
    if (is_array && (job->subtasks > LAID_OUT_MOST || quote->level_count == BOURSE_LEVELS_MAX)) {
        return true; /* the plan may not know all offers */
    }
    quote->makespan_ns = larger(quote->makespan_ns, order_longest_ms(&job->graph) * NS_PER_MS);
    const enum plan_status status = job_plan_on(job, supply, JOB_PLAN_SINGLE, &plan);
    if (status != PLAN_OK) {
        return status != PLAN_NO_MEMORY || client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    quote->makespan_ns = plan_makespan_ns(plan);
    settle_cost(quote, plan->total.price_micro);
    if (!single_device_find(bourse, job, supply, plan, &quote->alone, error)) {
        return false;
    }
    expect_planned(job, plan);
    return true;
}

/* Names the places. Work that the market measured gets its time on each instrument. */
static bool find_named(struct bourse *bourse, const struct bourse_job *job,
                       const struct bourse_quote *parts, struct supply **ret_named,
                       struct bourse_error *error)
{
    CLEANUP(supply_destroy) struct supply *named = supply_create(job, parts);
    if (named == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (!supply_name(bourse, job, named, error) ||
        (job->learned.subtasks > 0 && !supply_learn(job, named, error))) {
        return false;
    }
    *ret_named = named;
    named = NULL;
    return true;
}

/* Returns true when the plan uses the named places, and the manifest has room for their figures. */
static bool keeps_named(const struct bourse_job *job, const struct supply *named)
{
    return named->count <= LIMIT_PLACES &&
           named->class_count * history_units(job) <= LIMIT_CLASS_TIMES &&
           supply_is_unlike(job, named);
}

bool submit_quote_parts(struct bourse *bourse, struct bourse_job *job,
                        struct bourse_quote *ret_parts, struct bourse_quote *ret_quote,
                        int64_t ret_limits[ORDER_PARTS_MAX], struct bourse_error *error)
{
    int64_t available_micro = 0;
    if (!history_learn(bourse, job, error) ||
        !quote_for_account(bourse, job, ret_parts, ret_quote, ret_limits, &available_micro,
                           error)) {
        return false;
    }
    CLEANUP(supply_destroy) struct supply *supply = supply_create(job, ret_parts);
    CLEANUP(supply_destroy) struct supply *named = NULL;
    if (!find_named(bourse, job, ret_parts, &named, error)) {
        return false;
    }
    if (supply == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (!settle_plan(bourse, job, job->learned.subtasks > 0 ? named : supply, ret_quote, error)) {
        return false;
    }
    if (!fit_to_account(bourse, job, available_micro, ret_quote, ret_limits, error)) {
        return false;
    }
    supply_set_power(supply, named);
    find_rest(job, ret_quote);
    supply_set_widest(supply, named);
    supply_know(named);
    return manifest_expect(job, ret_quote, keeps_named(job, named) ? named : supply, error);
}

bool submit_quote(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *ret_quote,
                  int64_t ret_limits[ORDER_PARTS_MAX], struct bourse_error *error)
{
    struct bourse_quote *parts = calloc(SUBMIT_QUOTES, sizeof *parts);
    const bool good = parts != NULL
                          ? submit_quote_parts(bourse, job, parts, ret_quote, ret_limits, error)
                          : client_fail(error, BOURSE_LOCAL, "out of memory");
    free(parts);
    return good;
}

bool bourse_quote(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *ret_quote,
                  struct bourse_error *ret_error)
{
    int64_t limits[ORDER_PARTS_MAX];
    return submit_quote(bourse, job, ret_quote, limits, ret_error);
}
