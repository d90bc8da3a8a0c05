#include "consumer/job/replan.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/order.h"
#include "consumer/job/report.h"
#include "consumer/job/submit.h"
#include "planner/schedule/online.h"
#include "runtime/clock.h"

#include <stdlib.h>
#include <string.h>

/* Larger jobs use the market's own figures, because reading all outcomes again and again would cost
 * too much. */
enum { LAID_OUT_MOST = 1 << 16 };

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct pace { /* expected and measured times of results */
    int64_t planned_ns, took_ns;
    uint64_t results;
};

static bool is_weighty(const struct pace *pace, const struct plan *plan, uint64_t subtasks)
{
    int64_t all_ns = 0;
    for (uint64_t i = 0; i < subtasks && i < plan->row_count; i++) {
        all_ns = sum_of(all_ns, plan_row_ns(&plan->rows[i]));
    }
    return online_is_weighty(&(struct online_done){.sum = {pace->planned_ns, pace->took_ns},
                                                   .samples = pace->results,
                                                   .all_ns = all_ns,
                                                   .subtasks = subtasks});
}

/* A row knows only the average of a part. A known plan gives the expected time of each subtask. */
static bool find_pace(struct bourse *bourse, const struct bourse_job_row *row,
                      struct pace *ret_pace, struct bourse_error *error)
{
    CLEANUP(report_destroy) struct report *report = NULL;
    if (!consumer_report(bourse, row->id, &report, error)) {
        return false;
    }
    struct pace pace = {.results = 0};
    for (size_t i = 0; report->plan != NULL && i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        if (attempt->fate == REPORT_ACCEPTED &&
            attempt->index < report->subtasks - report->checks &&
            attempt->index < report->plan->row_count) {
            pace.planned_ns =
                sum_of(pace.planned_ns, plan_row_ns(&report->plan->rows[attempt->index]));
            pace.took_ns = sum_of(pace.took_ns, attempt->busy_ns);
            pace.results++;
        }
    }
    bool is_known = true;
    if (report->plan == NULL) {
        pace = (struct pace){row->foreseen_ms, row->took_ms, row->timed};
    } else {
        is_known = is_weighty(&pace, report->plan, report->subtasks - report->checks);
    }
    *ret_pace = pace;
    return (is_known && online_drifts(pace.planned_ns, pace.took_ns, pace.results)) ||
           client_fail(error, BOURSE_NOT_FOUND, "the job goes as it was planned");
}

/* Scales `expect_ns` by the measured pace, up to the longest time that a job may state. */
static int64_t at_pace(const struct pace *pace, int64_t expect_ns)
{
    const int64_t most_ns = UINT32_MAX * NS_PER_MS;
    int64_t ns = 0;
    const bool is_known = checked_muldiv_ceil(expect_ns, pace->took_ns, pace->planned_ns, &ns);
    return !is_known || ns > most_ns ? most_ns : ns > 0 ? ns : 1;
}

/* Returns true when all parts have only guessed times. */
static bool has_guesses_only(const struct bourse_job *job)
{
    bool guess = true;
    for (size_t i = 0; i < job->part_count; i++) {
        guess =
            guess && job->parts[i].expect_ns == order_expect_ns(JOB_ABSENT, job->parts[i].limit_ms);
    }
    return guess;
}

/* The job's own results replace what the market measured of such work. */
static void set_pace(const struct pace *pace, struct bourse_job *job)
{
    job->learned.is_done = true;
    for (size_t i = 0; i < job->part_count; i++) {
        job->parts[i].expect_ns = at_pace(pace, job->parts[i].expect_ns);
    }
    for (uint64_t i = 0; job->expect_ns != NULL && i < job->subtasks - job->checks; i++) {
        job->expect_ns[i] = at_pace(pace, job->expect_ns[i]);
    }
}

/* The limit of the longest subtask counts. */
static void find_limit(const struct bourse_job *job, struct replan *replan)
{
    uint32_t index = 0;
    for (size_t i = 0; i < job->part_count; i++) {
        for (uint32_t k = 0; k < job->parts[i].subtasks; k++, index++) {
            const int64_t takes_ms = supply_takes_ns(job, i, index) / NS_PER_MS;
            if (takes_ms > replan->takes_ms) {
                replan->takes_ms = takes_ms;
                replan->limit_ms = job->parts[i].limit_ms;
            }
        }
    }
}

/* ---------------------------------------------------------------- more slots at a time */

static int64_t dearest(const struct job_plan *plan)
{
    int64_t price_micro = plan->is_on_leases ? 0 : INT64_MAX; /* no lease: no known price */
    for (size_t i = 0; plan->is_on_leases && i < plan->supply->count; i++) {
        const int64_t price = plan->supply->places[i].slots.price_micro;
        price_micro = price > price_micro ? price : price_micro;
    }
    return price_micro;
}

/* Returns the job's leases and the free slots at prices that it pays, in the order of price.
 * Returns NULL when memory is short. */
static struct supply *places_with_more(const struct bourse_job *job,
                                       const struct bourse_quote *quotes,
                                       const struct job_plan *plan)
{
    CLEANUP(supply_destroy) struct supply *supply = supply_create(job, quotes);
    const size_t held = plan->is_on_leases ? plan->supply->count : 0;
    struct supply_place *places =
        supply == NULL ? NULL : calloc(held + supply->count + 1, sizeof *places);
    size_t count = held;
    if (places == NULL) {
        return NULL;
    }
    memcpy(places, plan->supply->places, held * sizeof *places);
    for (size_t i = 0; i < supply->count && !supply->is_busy; i++) {
        const struct supply_place *place = &supply->places[i];
        if (place->providers > 0 && place->slots.price_micro <= dearest(plan)) {
            places[count++] = *place;
        }
    }
    for (size_t i = 0; i < count; i++) {
        places[i].slots.of_class = 0; /* the job's own pace holds everywhere */
    }
    free(supply->places);
    supply->places = places;
    supply->count = count;
    struct supply *made = supply;
    supply = NULL;
    return made;
}

static uint32_t slots_held(const struct job_plan *plan)
{
    uint32_t slots = 0;
    for (size_t i = 0; plan->is_on_leases && i < plan->supply->count; i++) {
        slots += plan->supply->places[i].slots.slots;
    }
    return slots;
}

struct bid {
    const char *job;
    int64_t price_micro; /* per slot-hour; 0: no price */
};

static bool see_order(void *context, const struct bourse_order *order)
{
    struct bid *bid = context;
    if (order->is_bid && order->part == 0 && strcmp(order->job, bid->job) == 0) {
        bid->price_micro = order->price_micro;
    }
    return true;
}

/* Returns the budget for so many further slots; each lease reserves its whole term. */
static int64_t budget_for(const struct bourse_job_row *row, const struct order_part *part,
                          int64_t price_micro, uint32_t more)
{
    int64_t slot_ms = 0;
    int64_t lease_micro = 0;
    int64_t leases_micro = 0;
    const uint32_t leases = more / part->slots;
    const bool is_known =
        checked_mul(part->slots, part->term_ms, &slot_ms) &&
        checked_muldiv_ceil(price_micro, slot_ms, NS_PER_HOUR / NS_PER_MS, &lease_micro) &&
        checked_mul(lease_micro, leases, &leases_micro);
    return is_known ? sum_of(sum_of(row->charged_micro, row->reserved_micro), leases_micro)
                    : INT64_MAX;
}

/* Finds out whether further slots would end the job sooner, when `at_most` or the budget prevents
 * them. Returns false when the broker does not answer or memory is short. */
static bool find_more(struct bourse *bourse, struct bourse_job *job,
                      const struct bourse_quote *quotes, const struct bourse_job_row *row,
                      const struct job_plan *plan, struct replan *replan,
                      struct bourse_error *error)
{
    struct order_part *part = &job->parts[0];
    const uint32_t at_most = part->at_most;
    const uint32_t held = slots_held(plan);
    /* A job with another objective has the slots that its plan chose. */
    const bool is_chosen = job->file->objective != JOB_OBJECTIVE_TIME;
    if (job->part_count != 1 || is_chosen || (at_most == 0 && held == 0)) {
        return true;
    }
    CLEANUP(supply_destroy) struct supply *supply = places_with_more(job, quotes, plan);
    CLEANUP(plan_destroy) struct plan *wider = NULL;
    if (supply == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    part->at_most = 0;
    const enum plan_status status = job_plan_on(job, supply, 0, &wider);
    part->at_most = at_most;
    if (status != PLAN_OK) {
        return status != PLAN_NO_MEMORY || client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    const int64_t makespan_ns = plan_makespan_ns(wider);
    const uint32_t slots = wider->lanes * part->slots;
    if (slots <= (at_most > 0 ? at_most : held) ||
        makespan_ns >= replan->left_ns / 100 * (100 - ONLINE_SLACK_PERCENT)) {
        return true;
    }
    struct bid bid = {.job = row->id};
    if (at_most == 0 && !bourse_orders(bourse, see_order, &bid, error)) {
        return false;
    }
    const int64_t pays_micro = dearest(plan);
    /* A replaced bid takes the free slots at their price. A standing bid pays its limit for new
     * slots. */
    const int64_t price_micro = at_most > 0 ? pays_micro : larger(bid.price_micro, pays_micro);
    const int64_t needs_micro = budget_for(row, part, price_micro, slots > held ? slots - held : 0);
    replan->budget_micro = needs_micro > row->budget_micro && needs_micro < INT64_MAX
                               ? larger(needs_micro, replan->cost_micro)
                               : 0;
    replan->slots = at_most > 0 ? slots : 0;
    replan->sooner_ns = replan->slots > 0 || replan->budget_micro > 0 ? makespan_ns : 0;
    return true;
}

/* ---------------------------------------------------------------- the whole */

/* Returns by how much the rest misses the deadline, by the market's clock; 0: the rest is in time,
 * or the job has no deadline. */
static int64_t late_ns(const struct bourse *bourse, const struct bourse_job_row *row,
                       int64_t left_ns)
{
    const int64_t now_ms = consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
    int64_t until_ns = 0;
    if (row->deadline_ms == 0 || !checked_mul(row->deadline_ms - now_ms, NS_PER_MS, &until_ns)) {
        return 0;
    }
    return left_ns > until_ns ? left_ns - larger(until_ns, 0) : 0;
}

/* `quotes` has room for SUBMIT_QUOTES. */
static bool make(struct bourse *bourse, const struct bourse_job_row *row, const struct pace *pace,
                 struct bourse_job *job, struct bourse_quote *quotes, struct replan *replan,
                 struct bourse_error *error)
{
    CLEANUP(job_plan_destroy) struct job_plan *plan = NULL;
    struct bourse_quote quote;
    int64_t limits[ORDER_PARTS_MAX];
    replan->was_guess = has_guesses_only(job);
    set_pace(pace, job);
    find_limit(job, replan);
    if (!submit_quote_parts(bourse, job, quotes, &quote, limits, error) ||
        !job_plan_make(bourse, job, quotes, row, &plan, error)) {
        return false;
    }
    if (plan->plan == NULL) {
        return client_fail(error, BOURSE_NOT_FOUND, "nothing that fits is there for what is left");
    }
    replan->was_guess = replan->was_guess && !plan->manifest->has_expect_ns;
    replan->left_ns = plan_makespan_ns(plan->plan);
    replan->cost_micro = sum_of(row->charged_micro, plan->plan->total.price_micro);
    replan->late_ns = late_ns(bourse, row, replan->left_ns);
    replan->lanes = plan->plan->lanes;
    return find_more(bourse, job, quotes, row, plan, replan, error);
}

static int64_t percent_of(int64_t planned, int64_t took)
{
    const int128 percent = (int128)100 * took / planned - 100;
    return percent < INT64_MAX ? (int64_t)percent : INT64_MAX;
}

/* Uses the market's estimate on the present lanes; the rest is assumed to cost as much as the
 * finished part. The market does not say whether the expected time was a guess. */
static bool make_large(const struct bourse_job_row *row, struct replan *replan,
                       struct bourse_error *error)
{
    const int64_t done = (int64_t)row->accepted + row->failed;
    replan->was_guess = true;
    replan->takes_ms = row->took_ms / row->timed;
    replan->limit_ms = INT64_MAX;
    replan->lanes = row->running - row->queued;
    return (row->left_ms >= 0 && done > 0 &&
            checked_mul(row->left_ms, NS_PER_MS, &replan->left_ns) &&
            checked_muldiv_ceil(row->charged_micro, row->subtasks, done, &replan->cost_micro)) ||
           client_fail(error, BOURSE_NOT_FOUND, "the market cannot tell how long the rest takes");
}

bool replan_drifts(struct bourse *bourse, const struct bourse_job_row *row, int64_t *ret_percent)
{
    struct bourse_error ignored;
    struct pace pace = {row->foreseen_ms, row->took_ms, row->timed};
    if (row->state != BOURSE_OPEN || !online_drifts(pace.planned_ns, pace.took_ns, pace.results) ||
        (row->subtasks <= LAID_OUT_MOST && !find_pace(bourse, row, &pace, &ignored))) {
        return false;
    }
    *ret_percent = percent_of(pace.planned_ns, pace.took_ns);
    return true;
}

bool replan_job(struct bourse *bourse, const char *id, struct replan *ret_replan,
                struct bourse_error *ret_error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct replan replan = {.percent = 0};
    if (!bourse_jobs(bourse, id, &jobs, ret_error)) {
        return false;
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    if (row->state != BOURSE_OPEN || row->foreseen_ms <= 0 || row->took_ms <= 0 ||
        row->timed == 0) {
        return client_fail(ret_error, BOURSE_NOT_FOUND, "nothing is left to be planned anew");
    }
    if (row->subtasks > LAID_OUT_MOST) {
        const bool told = make_large(row, &replan, ret_error);
        replan.late_ns = told ? late_ns(bourse, row, replan.left_ns) : 0;
        replan.percent = percent_of(row->foreseen_ms, row->took_ms);
        *ret_replan = told ? replan : *ret_replan;
        return told;
    }
    struct pace pace;
    if (!find_pace(bourse, row, &pace, ret_error)) {
        return false;
    }
    replan.percent = percent_of(pace.planned_ns, pace.took_ns);
    if (!resume_to_plan(bourse, id, &job, ret_error)) {
        return false;
    }
    struct bourse_quote *quotes = calloc(SUBMIT_QUOTES, sizeof *quotes);
    const bool good = quotes != NULL ? make(bourse, row, &pace, job, quotes, &replan, ret_error)
                                     : client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    free(quotes);
    if (good) {
        *ret_replan = replan;
    }
    return good;
}
