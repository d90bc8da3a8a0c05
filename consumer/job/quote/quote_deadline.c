#include "consumer/job/quote/quote_deadline.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/quote/quote_energy.h"
#include "consumer/job/quote/quote_limits.h"
#include "consumer/job/quote/quote_objective.h"
#include "consumer/job/quote/quote_part.h"
#include "consumer/job/submit.h"
#include "consumer/job/supply.h"
#include "formats/limits.h"
#include "formats/units.h"
#include "runtime/clock.h"

#include <stdlib.h>

/* A change may make the job end sooner. */
struct change {
    bool drops_at_most, drops_limit;
};

/* The outcome is what the changed job would do. */
struct outcome {
    bool is_known;
    int64_t makespan_ns, cost_micro;
    int64_t dearest_micro; /* highest price of a slot-hour that the plan uses */
};

static int64_t dearest_of(const struct plan *plan, const struct supply *supply)
{
    int64_t dearest_micro = 0;
    for (size_t i = 0; i < plan->row_count; i++) {
        const uint32_t device = plan->rows[i].device;
        const int64_t price_micro =
            device < supply->count ? supply->places[device].slots.price_micro : 0;
        dearest_micro = quote_larger(dearest_micro, price_micro);
    }
    return dearest_micro;
}

/* Plans the changed job on what the market offers to it now. `objective: price` chooses the slots
 * anew. Leaves the outcome unknown when nothing is on offer or the job is too large to plan. */
static bool plan_changed(struct bourse *bourse, struct bourse_job *changed,
                         struct bourse_quote *quotes, struct outcome *ret_outcome,
                         struct bourse_error *error)
{
    const bool is_measured = changed->learned.subtasks > 0;
    const bool is_named = is_measured || changed->file->objective == JOB_OBJECTIVE_ENERGY;
    const int64_t budget_micro = changed->holds_nothing ? 0 : changed->file->budget_micro;
    CLEANUP(plan_destroy) struct plan *plan = NULL;
    *ret_outcome = (struct outcome){.is_known = false};
    for (size_t i = 0; i < changed->part_count; i++) {
        if (!quote_part_at(bourse, changed, i, changed->file->cap_micro, budget_micro, &quotes[i],
                           error)) {
            return false;
        }
    }
    CLEANUP(supply_destroy) struct supply *supply = supply_create(changed, quotes);
    if (supply == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if ((is_named && !supply_name(bourse, changed, supply, error)) ||
        (is_measured && !supply_learn(changed, supply, error)) ||
        !quote_objective(bourse, changed, supply, &quotes[0], error) ||
        !quote_energy(bourse, changed, supply, &quotes[0], error)) {
        return false;
    }
    quote_energy_restrict(&changed->power_limits, supply);
    const enum plan_status status = job_plan_on(changed, supply, 0, &plan);
    if (status == PLAN_NO_MEMORY) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (status == PLAN_OK) {
        *ret_outcome = (struct outcome){.is_known = true,
                                        .makespan_ns = plan_makespan_ns(plan),
                                        .cost_micro = plan->total.price_micro,
                                        .dearest_micro = dearest_of(plan, supply)};
    }
    return true;
}

/* Returns the bound of slots that the job file gives, or 0. With `objective: price`, the at_most of
 * the job's part is a choice and not this bound. */
static uint32_t at_most_of(const struct bourse_job *job, size_t part)
{
    return job->file->objective == JOB_OBJECTIVE_PRICE ? job->file->at_most
                                                       : job->parts[part].at_most;
}

/* Tries one change on a copy of the job. The copy has its own parts and file, and shares the
 * rest. */
static bool try_change(struct bourse *bourse, const struct bourse_job *job,
                       const struct change *change, struct outcome *ret_outcome,
                       struct bourse_error *error)
{
    struct bourse_job changed = *job;
    struct job_file file = *job->file;
    changed.power_limits.count = 0; /* the changed job gets a choice of its own */
    struct order_part *parts = calloc(ORDER_PARTS_MAX, sizeof *parts);
    struct bourse_quote *quotes = calloc(ORDER_PARTS_MAX, sizeof *quotes);
    bool good = parts != NULL && quotes != NULL;
    if (good) {
        for (size_t i = 0; i < job->part_count; i++) {
            parts[i] = job->parts[i];
            parts[i].at_most = change->drops_at_most ? 0 : at_most_of(job, i);
        }
        file.at_most = change->drops_at_most ? 0 : file.at_most;
        if (change->drops_limit) {
            file.cap_micro = LIMIT_NONE;
            file.value.rate = RATE_NONE;
        }
        changed.parts = parts;
        changed.file = &file;
        good = plan_changed(bourse, &changed, quotes, ret_outcome, error);
    } else {
        (void)client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    free(parts);
    free(quotes);
    return good;
}

static bool has_at_most(const struct bourse_job *job)
{
    bool has = false;
    for (size_t i = 0; i < job->part_count; i++) {
        has = has || at_most_of(job, i) > 0;
    }
    return has;
}

static void write_help(const struct change *change, const struct outcome *outcome,
                       struct bourse_quote *quote)
{
    char takes[UNITS_TEXT_SIZE];
    char price[UNITS_TEXT_SIZE];
    units_duration_text(outcome->makespan_ns, takes);
    units_money_text(outcome->dearest_micro, price);
    (void)snprintf(quote->deadline_help, sizeof quote->deadline_help, "%s%s%s%s%s it takes %s",
                   change->drops_at_most ? "without at_most" : "",
                   change->drops_at_most && change->drops_limit ? " and " : "",
                   change->drops_limit ? "with a cap of " : "", change->drops_limit ? price : "",
                   change->drops_limit ? " credits" : "", takes);
}

/* Looks for a change with which the job meets its deadline, and writes it into the quote. Without
 * such a change, a single device that is fast enough, which the quote knows already, is named. */
static bool find_help(struct bourse *bourse, const struct bourse_job *job,
                      struct bourse_quote *quote, struct bourse_error *error)
{
    static const struct change changes[] = {{true, false}, {false, true}, {true, true}};
    const struct job_file *file = job->file;
    const bool is_bounded = has_at_most(job);
    const bool is_limited = limit_is_set(file->cap_micro) || file->value.rate != RATE_NONE;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct outcome outcome;
        if ((changes[i].drops_at_most && !is_bounded) || (changes[i].drops_limit && !is_limited)) {
            continue;
        }
        if (!try_change(bourse, job, &changes[i], &outcome, error)) {
            return false;
        }
        const bool is_paid =
            !limit_is_set(file->budget_micro) || outcome.cost_micro <= file->budget_micro;
        if (outcome.is_known && outcome.makespan_ns <= quote->deadline_ns && is_paid) {
            write_help(&changes[i], &outcome, quote);
            return true;
        }
    }
    if (quote->alone.place[0] != '\0' && quote->alone.makespan_ns <= quote->deadline_ns) {
        char takes[UNITS_TEXT_SIZE];
        units_duration_text(quote->alone.makespan_ns, takes);
        (void)snprintf(quote->deadline_help, sizeof quote->deadline_help,
                       "on %s alone it takes %s (needs: %s)", quote->alone.place, takes,
                       quote->alone.needs);
    }
    return true;
}

bool quote_deadline(struct bourse *bourse, const struct bourse_job *job, struct bourse_quote *quote,
                    struct bourse_error *error)
{
    const int64_t deadline_ms = submit_deadline_ms(bourse, job);
    const int64_t now_ms = consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
    const int64_t left_ms = deadline_ms - now_ms;
    struct bourse_job_summary summary;
    quote->deadline_ns = quote->late_ns = 0;
    quote->deadline_help[0] = '\0';
    quote->deadline_is_guess = false;
    if (job->file->good_till_at_ms > 0 && job->file->good_till_at_ms <= now_ms) {
        if (error != NULL) {
            client_copy(error->field, sizeof error->field, "good_till");
        }
        return client_fail(error, BOURSE_USAGE,
                           "good_till: the moment has passed by the market's clock; give a later "
                           "one, or a time from now, as in 2h");
    }
    if (deadline_ms == 0) {
        return true;
    }
    bourse_job_summary(job, &summary);
    quote->deadline_is_guess = summary.expect_is_guess;
    if (left_ms <= 0 || left_ms > FORMAT_GOOD_TILL_MS ||
        !checked_mul(left_ms, NS_PER_MS, &quote->deadline_ns)) {
        if (error != NULL) {
            client_copy(error->field, sizeof error->field, "deadline");
        }
        return client_fail(error, BOURSE_USAGE,
                           left_ms <= 0 ? "deadline: the moment has passed by the market's clock; "
                                          "give a later one, or a time from now, as in 2h"
                                        : "deadline: the moment is more than 366d from now; give "
                                          "one within 366d");
    }
    if (quote->makespan_ns <= quote->deadline_ns) {
        return true;
    }
    quote->late_ns = quote->makespan_ns - quote->deadline_ns;
    return find_help(bourse, job, quote, error);
}
