/* This file quotes the parts of a job. It computes cost and time on the present offers, and
 * suggests limits and a budget from them. */
#include "consumer/client/client.h"
#include "consumer/job/bourse_job.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/manifest.h"
#include "consumer/job/quote/quote_checks.h"
#include "consumer/job/quote/quote_deadline.h"
#include "consumer/job/quote/quote_energy.h"
#include "consumer/job/quote/quote_limits.h"
#include "consumer/job/quote/quote_objective.h"
#include "consumer/job/quote/quote_part.h"
#include "consumer/job/quote/quote_total.h"
#include "consumer/job/single_device.h"
#include "consumer/job/submit.h"
#include "consumer/job/supply.h"
#include "consumer/market/history.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <stdlib.h>

/* A larger array is not laid out, because its quote is exact enough. */
enum { LAID_OUT_MOST = 1 << 16 };

/* The budget gives the limit of the job's bids when there is no cap. */
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
                         ? quote_sum(planned_ms, part_ms)
                         : INT64_MAX;
        lease_ms = part->term_ms * part->slots < lease_ms ? part->term_ms * part->slots : lease_ms;
    }
    if (!limit_is_set(quote->limit_micro) && job->file->value.rate == RATE_NONE &&
        budget_micro > 0) {
        const bool good =
            checked_muldiv_ceil(budget_micro, NS_PER_HOUR / NS_PER_MS,
                                quote_larger(quote_larger(planned_ms, lease_ms), 1), &price_micro);
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

/* The suggestion never exceeds the most that one order may be worth. An account with fewer credits
 * still takes donated slots, with the credits that it has. */
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
    if (!quote_part_at(bourse, job, 0, cap_micro, quote->suggested_micro, &asked, error)) {
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
        if (!submit_is_checks(job, i) && !quote_part(bourse, job, i, &parts[i], error)) {
            return false;
        }
        if (i == 0) {
            *ret_quote = parts[0];
        } else {
            quote_total_add(ret_quote, &parts[i]);
        }
        ret_limits[i] = parts[i].limit_micro;
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

/* Sets the cost, and the budget that covers one and a half times the cost. An order for all slots
 * at once keeps the budget of a term of all, which quote_budget suggests. */
static void settle_cost(const struct bourse_job *job, struct bourse_quote *quote,
                        int64_t cost_micro)
{
    if (quote->expected_micro < 0 || quote->suggested_micro <= 0) {
        return; /* there is no price */
    }
    const int64_t rest_micro = quote->suggested_micro - quote_with_half(quote->expected_micro);
    const int64_t least_micro = quote_is_whole(job->file) ? quote->suggested_micro : 1;
    quote->expected_micro = cost_micro;
    quote->suggested_micro = quote_larger(
        quote_sum(quote_with_half(cost_micro), quote_larger(rest_micro, 1)), least_micro);
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
    quote->makespan_ns =
        quote_larger(quote->makespan_ns, order_longest_ms(&job->graph) * NS_PER_MS);
    const enum plan_status status = job_plan_on(job, supply, JOB_PLAN_SINGLE, &plan);
    if (status != PLAN_OK) {
        return status != PLAN_NO_MEMORY || client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    quote->makespan_ns = plan_makespan_ns(plan);
    settle_cost(job, quote, plan->total.price_micro);
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

/* Replaces both supplies by those of new quotes. The caller owns them, after a failure too. */
static bool find_supplies(struct bourse *bourse, const struct bourse_job *job,
                          const struct bourse_quote *parts, struct supply **supply,
                          struct supply **named, struct bourse_error *error)
{
    supply_destroy(supply);
    supply_destroy(named);
    *supply = supply_create(job, parts);
    return find_named(bourse, job, parts, named, error) &&
           (*supply != NULL || client_fail(error, BOURSE_LOCAL, "out of memory"));
}

/* Quotes the job and finds what is on offer. A job with an objective besides the time is quoted
 * once more after the choice of its slots, because budget and limits depend on them. */
static bool quote_objectively(struct bourse *bourse, struct bourse_job *job,
                              struct bourse_quote *parts, struct bourse_quote *quote,
                              int64_t limits[ORDER_PARTS_MAX], int64_t *ret_available_micro,
                              struct supply **supply, struct supply **named,
                              struct bourse_error *error)
{
    if (job->file->objective == JOB_OBJECTIVE_PRICE && job->part_count == 1) {
        job->parts[0].at_most = job->file->at_most; /* without the choice of an earlier quote */
    }
    job->power_limits.count = 0;
    if (!quote_for_account(bourse, job, parts, quote, limits, ret_available_micro, error) ||
        !find_supplies(bourse, job, parts, supply, named, error) ||
        !quote_objective(bourse, job, job->learned.subtasks > 0 ? *named : *supply, quote, error) ||
        !quote_energy(bourse, job, *named, quote, error)) {
        return false;
    }
    const struct bourse_quote before = *quote;
    if (before.chosen_slots == 0 && job->power_limits.count == 0) {
        return true;
    }
    if (!quote_for_account(bourse, job, parts, quote, limits, ret_available_micro, error) ||
        !find_supplies(bourse, job, parts, supply, named, error)) {
        return false;
    }
    quote->chosen_slots = before.chosen_slots;
    quote->chosen_of = before.chosen_of;
    quote->energy_slots = before.energy_slots;
    quote->energy_of = before.energy_of;
    quote->energy_unknown = before.energy_unknown;
    quote->energy_uj = before.energy_uj;
    return true;
}

bool submit_quote_parts(struct bourse *bourse, struct bourse_job *job,
                        struct bourse_quote *ret_parts, struct bourse_quote *ret_quote,
                        int64_t ret_limits[ORDER_PARTS_MAX], struct bourse_error *error)
{
    int64_t available_micro = 0;
    CLEANUP(supply_destroy) struct supply *supply = NULL;
    CLEANUP(supply_destroy) struct supply *named = NULL;
    if (!history_learn(bourse, job, error) ||
        !quote_objectively(bourse, job, ret_parts, ret_quote, ret_limits, &available_micro, &supply,
                           &named, error)) {
        return false;
    }
    if (!settle_plan(bourse, job, job->learned.subtasks > 0 ? named : supply, ret_quote, error)) {
        return false;
    }
    if (!fit_to_account(bourse, job, available_micro, ret_quote, ret_limits, error)) {
        return false;
    }
    supply_set_power(supply, named);
    if (!quote_deadline(bourse, job, ret_quote, error)) {
        return false;
    }
    find_rest(job, ret_quote);
    ret_quote->challenged = named->challenged;
    ret_quote->isolation = named->isolation;
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
