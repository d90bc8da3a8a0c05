/* This file plans each step on any device, by schedulers and a local search. */
#include "planner/layout/plan_internal.h"

#include "planner/schedule/bound.h"

#include <assert.h>
#include <string.h>

/* ---------------------------------------------------------------- first placements */

enum {
    BEGINNINGS = 5 + PLAN_OBJECTIVES,
    /* Share of the effort for a search within limits, which begins where one without ended. */
    WITHIN_LIMITS = 2,
};

struct beginning {
    struct plan_trial *trial;
    const char *found_by;
};

struct soonest {
    struct plan_input aim;
    struct plan_trial *trial; /* NULL: not wanted */
    const char *found_by;
};

/* The search does not depend on the objective: it judges `best` alone; aims judge the rest. */
struct search {
    const struct plan_case *of;
    struct workload *graph;
    struct schedule *schedule;
    struct plan_trial *now, *start, *end, *best;
    const char *found_by;
    struct soonest soonest[PLAN_SOONEST];
    struct plan_input aims[PLAN_AIMS];
    size_t aim_count;
    struct beginning beginnings[BEGINNINGS];
    size_t beginning_count;
    uint64_t effort; /* effort of each aim */
    uint64_t *left;  /* effort left of all searches without limits; it does not bound them */
};

/* Returns what a step on a device adds to the aim. */
static double merit_of(const struct plan_case *of, const struct plan_input *aim, size_t step,
                       size_t device)
{
    const struct plan_figures *figures = &plan_cost_at(of, step, device)->here;
    double price = (double)of->input->devices[device].price_micro;
    switch (aim->objective) {
    case PLAN_PRICE:
        return price < 0 ? INFINITY : price * figures->time_s.value;
    case PLAN_ENERGY:
        return figures->energy_j.source == FIGURE_UNKNOWN ? INFINITY : figures->energy_j.value;
    case PLAN_VALUE:
        return price < 0 ? INFINITY : (price + (double)aim->worth_micro) * figures->time_s.value;
    case PLAN_TIME:
    case PLAN_OBJECTIVES:
        break;
    }
    return figures->time_s.value;
}

/* Puts each step where it alone adds least. */
static void place_cheapest(struct plan_trial *trial, const struct plan_input *aim)
{
    const struct plan_case *of = trial->of;
    for (uint32_t s = 0; s < of->steps->step_count; s++) {
        uint32_t best = PLAN_ANYWHERE;
        for (uint32_t d = 0; d < of->input->device_count; d++) {
            if (plan_can_run(of, s, d) &&
                (best == PLAN_ANYWHERE || merit_of(of, aim, s, d) < merit_of(of, aim, s, best))) {
                best = d;
            }
        }
        trial->on[s] = best;
        trial->sequence[s] = s;
    }
}

static bool fits_beside(const struct plan_case *of, size_t step, uint32_t device, double filled)
{
    const struct step *what = &of->steps->steps[step];
    const struct figure *memory = &of->input->devices[device].cost->profile->figures[FIGURE_MEMORY];
    double bytes = (double)what->weight_bytes + (double)what->held_bytes;
    return plan_can_run(of, step, device) &&
           (memory->source == FIGURE_UNKNOWN ||
            filled + bytes + (double)what->working_bytes <= memory->value);
}

/* Packs the steps in order, on one device while they fit, then on the next. */
static bool place_packed(struct plan_trial *trial)
{
    const struct plan_case *of = trial->of;
    uint32_t device = 0;
    double filled = 0;
    for (uint32_t s = 0; s < of->steps->step_count; s++) {
        const struct step *step = &of->steps->steps[s];
        while (!fits_beside(of, s, device, filled)) {
            filled = 0;
            if (++device == of->input->device_count) {
                return false;
            }
        }
        filled += (double)step->weight_bytes + (double)step->held_bytes;
        trial->on[s] = device;
        trial->sequence[s] = s;
    }
    return true;
}

static enum scheduler_status place_by_schedulers(struct search *search, bool is_contended,
                                                 struct plan_trial *trial,
                                                 struct portfolio *ret_portfolio)
{
    struct portfolio_options options = portfolio_defaults();
    options.is_contended = is_contended;
    options.exact_steps = search->effort;
    options.improve_steps = search->effort;
    enum scheduler_status status =
        portfolio_schedule(search->graph, &options, search->schedule, ret_portfolio);
    if (status == SCHEDULER_OK) {
        memcpy(trial->on, search->schedule->processor,
               search->graph->task_count * sizeof *trial->on);
        if (!schedule_sequence(search->graph, search->schedule, trial->sequence)) {
            status = SCHEDULER_NO_MEMORY;
        }
    }
    return status;
}

/* ---------------------------------------------------------------- local search */

/* Keeps the trial if it is better by `aim`. */
static void offer_by(const struct plan_input *aim, struct plan_trial *trial, const char *found_by,
                     struct plan_trial *best, const char **best_by)
{
    trial->aims = aim;
    plan_judge(aim, &trial->outcome);
    if (trial->overflow_on != PLAN_ANYWHERE) {
        trial->outcome.status = PLAN_NO_ROOM;
    }
    if (plan_is_better(trial, best)) {
        plan_trial_copy(best, trial);
        *best_by = found_by;
    }
}

/* Keeps a timed trial if it is better by the objective. */
static void offer(struct search *search, struct plan_trial *trial, const char *found_by)
{
    const struct plan_input *aim = trial->aims;
    const struct plan_outcome by_aim = trial->outcome;
    offer_by(search->of->input, trial, found_by, search->best, &search->found_by);
    for (int i = 0; i < PLAN_SOONEST; i++) {
        struct soonest *soonest = &search->soonest[i];
        const bool counts = plan_has_limits(&soonest->aim) || !plan_has_limits(aim);
        if (soonest->trial != NULL && counts) {
            offer_by(&soonest->aim, trial, found_by, soonest->trial, &soonest->found_by);
        }
    }
    trial->aims = aim;
    trial->outcome = by_aim;
}

static bool is_unlike(const struct plan_trial *trial, uint32_t first, uint32_t count, uint32_t to)
{
    bool is_unlike = false;
    for (uint32_t s = first; s < first + count; s++) {
        is_unlike = is_unlike || trial->on[s] != to;
    }
    return is_unlike;
}

/* Keeps `now` if it is better than `start`. */
static bool keep(struct search *search, uint64_t *effort)
{
    uint64_t steps = search->of->steps->step_count;
    *effort -= steps < *effort ? steps : *effort;
    /* Searches within limits come on top, so that they do not change the set of devices tried. */
    if (!plan_has_limits(search->now->aims)) {
        *search->left -= steps < *search->left ? steps : *search->left;
    }
    if (!plan_try(search->now)) {
        return false;
    }
    offer(search, search->now, "local search");
    if (plan_is_better(search->now, search->start)) {
        plan_trial_copy(search->start, search->now);
        return true;
    }
    return false;
}

/* Moves all steps of one device to another. */
static bool move_devices(struct search *search, uint64_t *effort)
{
    uint32_t devices = (uint32_t)search->of->input->device_count;
    bool is_better = false;
    for (uint32_t from = 0; from < devices; from++) {
        for (uint32_t to = 0; to<devices && * effort> 0; to++) {
            if (to == from || search->start->uses[from].row_count == 0) {
                continue;
            }
            plan_trial_copy(search->now, search->start);
            for (uint32_t s = 0; s < search->of->steps->step_count; s++) {
                search->now->on[s] = search->now->on[s] == from ? to : search->now->on[s];
            }
            is_better = keep(search, effort) || is_better;
        }
    }
    return is_better;
}

/* Moves `count` consecutive steps. */
static bool move_runs(struct search *search, uint32_t count, uint64_t *effort)
{
    const struct plan_case *of = search->of;
    uint32_t steps = (uint32_t)of->steps->step_count;
    bool is_better = false;
    for (uint32_t first = 0; first + count <= steps; first++) {
        for (uint32_t to = 0; to<of->input->device_count && * effort> 0; to++) {
            if (!is_unlike(search->start, first, count, to)) {
                continue;
            }
            plan_trial_copy(search->now, search->start);
            for (uint32_t s = first; s < first + count; s++) {
                search->now->on[s] = to;
            }
            is_better = keep(search, effort) || is_better;
        }
    }
    return is_better;
}

static void climb(struct search *search, uint64_t *effort)
{
    bool is_better = *effort > 0;
    while (is_better && *effort > 0) {
        is_better = move_devices(search, effort);
        for (uint32_t count = 1; count <= search->of->steps->step_count; count *= 2) {
            is_better = move_runs(search, count, effort) || is_better;
        }
    }
}

/* ---------------------------------------------------------------- the graph */

/* A plan by time without limits is already the soonest. */
static bool init_soonest(struct search *search)
{
    const struct plan_input *input = search->of->input;
    const bool is_limited = plan_has_limits(input);
    const bool is_wanted[PLAN_SOONEST] = {is_limited || input->objective != PLAN_TIME, is_limited};
    struct plan_input aims[PLAN_SOONEST];
    bool ok = true;
    plan_soonest_aims(input, aims);
    for (int i = 0; i < PLAN_SOONEST; i++) {
        search->soonest[i] = (struct soonest){.aim = aims[i], .found_by = "single"};
        if (is_wanted[i]) {
            search->soonest[i].trial = plan_trial_create(search->of);
            ok = ok && search->soonest[i].trial != NULL;
        }
    }
    return ok;
}

static bool search_init(struct search *search, const struct plan_case *of, uint64_t *effort)
{
    *search = (struct search){.of = of, .found_by = "single", .left = effort};
    search->now = plan_trial_create(of);
    search->start = plan_trial_create(of);
    search->end = plan_trial_create(of);
    search->best = plan_trial_create(of);
    search->schedule = schedule_create((uint32_t)of->steps->step_count);
    search->effort = *effort / PLAN_OBJECTIVES;
    bool ok = search->now != NULL && search->start != NULL && search->end != NULL &&
              search->best != NULL && search->schedule != NULL && init_soonest(search);
    for (size_t i = 0; i < BEGINNINGS; i++) {
        search->beginnings[i].trial = plan_trial_create(of);
        ok = ok && search->beginnings[i].trial != NULL;
    }
    search->aim_count = plan_aims(of->input, search->aims);
    return ok;
}

static void search_fini(struct search *search)
{
    workload_destroy(&search->graph);
    schedule_destroy(&search->schedule);
    plan_trial_destroy(&search->now);
    plan_trial_destroy(&search->start);
    plan_trial_destroy(&search->end);
    plan_trial_destroy(&search->best);
    for (size_t i = 0; i < BEGINNINGS; i++) {
        plan_trial_destroy(&search->beginnings[i].trial);
    }
    for (size_t i = 0; i < PLAN_SOONEST; i++) {
        plan_trial_destroy(&search->soonest[i].trial);
    }
}

static struct plan_trial *next_beginning(struct search *search)
{
    assert(search->beginning_count < BEGINNINGS);
    return search->beginnings[search->beginning_count].trial;
}

static void begin_with(struct search *search, const char *found_by)
{
    search->beginnings[search->beginning_count++].found_by = found_by;
}

/* Schedulers ignore ports. If ports make the schedule longer, they try again with one transfer at a
 * time per pair of devices. */
static bool begin_with_schedules(struct search *search, double *ret_bound_s)
{
    struct portfolio portfolio;
    struct plan_trial *first = next_beginning(search);
    enum scheduler_status status = place_by_schedulers(search, false, first, &portfolio);
    if (status != SCHEDULER_OK) {
        return status != SCHEDULER_NO_MEMORY && bound_make(search->graph, ret_bound_s);
    }
    *ret_bound_s = portfolio.bound;
    begin_with(search, portfolio_name(portfolio.found_by));
    bool is_longer =
        !plan_try_orders(first) ||
        first->outcome.makespan_s.value > search->schedule->makespan * (1 + PLAN_ROUNDING);
    if (is_longer && search->of->steps->edge_count > 0) {
        status = place_by_schedulers(search, true, next_beginning(search), &portfolio);
        if (status == SCHEDULER_OK) {
            begin_with(search, portfolio_name(portfolio.found_by));
        }
    }
    return status != SCHEDULER_NO_MEMORY;
}

/* Returns the best unused beginning, or BEGINNINGS. */
static size_t best_beginning(const struct search *search, const bool *is_done)
{
    size_t best = BEGINNINGS;
    for (size_t i = 0; i < search->beginning_count; i++) {
        bool is_better = best == BEGINNINGS || plan_is_better(search->beginnings[i].trial,
                                                              search->beginnings[best].trial);
        best = !is_done[i] && is_better ? i : best;
    }
    return best;
}

/* Returns true when a result found without limits keeps to them; a search within them would find
 * the like. */
static bool is_within(const struct plan_input *aim, const struct plan_outcome *outcome)
{
    bool is_late = aim->deadline_s > 0 && outcome->makespan_s.value > aim->deadline_s;
    bool is_dear = limit_is_set(aim->budget_micro) &&
                   (outcome->price_micro < 0 || outcome->price_micro > aim->budget_micro);
    return !is_late && !is_dear;
}

/* Searches from the best beginning, then from the next while effort is left, to `end`. */
static void search_for(struct search *search, const struct plan_input *aim)
{
    bool is_done[BEGINNINGS] = {false};
    uint64_t effort = plan_has_limits(aim) ? search->effort / WITHIN_LIMITS : search->effort;
    search->now->aims = aim;
    search->start->aims = aim;
    search->end->aims = aim;
    search->end->outcome.makespan_s.source = FIGURE_UNKNOWN;
    for (size_t i = 0; i < search->beginning_count; i++) {
        struct plan_trial *trial = search->beginnings[i].trial;
        trial->aims = aim;
        is_done[i] = !plan_try_orders(trial);
        if (!is_done[i]) {
            offer(search, trial, search->beginnings[i].found_by);
        }
    }
    size_t next = best_beginning(search, is_done);
    while (next < BEGINNINGS) {
        plan_trial_copy(search->start, search->beginnings[next].trial);
        climb(search, &effort);
        if (search->end->outcome.makespan_s.source == FIGURE_UNKNOWN ||
            plan_is_better(search->start, search->end)) {
            plan_trial_copy(search->end, search->start);
        }
        is_done[next] = true;
        next = effort > 0 ? best_beginning(search, is_done) : BEGINNINGS;
    }
}

/* Each aim begins with the best single device and with each step on its best device. Where one
 * search ended, others begin, too. Above all this helps searches within limits, which otherwise
 * rarely fit. */
static bool search_all(struct search *search, double *ret_bound_s)
{
    if (!begin_with_schedules(search, ret_bound_s)) {
        return false;
    }
    if (place_packed(next_beginning(search))) {
        begin_with(search, "packed");
    }
    bool is_met[PLAN_OBJECTIVES] = {false}; /* the limits, by a result without them */
    for (size_t i = 0; i < search->aim_count; i++) {
        const struct plan_input *aim = &search->aims[i];
        if (plan_has_limits(aim) && is_met[aim->objective]) {
            continue;
        }
        size_t shared = search->beginning_count;
        search->now->aims = aim;
        if (plan_best_single(search->now, next_beginning(search)) != PLAN_ANYWHERE) {
            begin_with(search, "single");
        }
        place_cheapest(next_beginning(search), aim);
        begin_with(search, "each by itself");
        search_for(search, aim);
        search->beginning_count = shared;
        is_met[aim->objective] = search->end->outcome.makespan_s.source != FIGURE_UNKNOWN &&
                                 search->end->overflow_on == PLAN_ANYWHERE &&
                                 is_within(search->of->input, &search->end->outcome);
        if (!plan_has_limits(aim) && search->end->outcome.makespan_s.source != FIGURE_UNKNOWN) {
            plan_trial_copy(next_beginning(search), search->end);
            begin_with(search, "local search");
        }
    }
    return true;
}

static void refuse_edge(const struct plan_case *of, const struct workload_fault *fault,
                        struct plan_outcome *outcome)
{
    const struct step_edge *edge = &of->steps->edges[fault->edge];
    outcome->status = PLAN_UNREACHED;
    problem_set(&outcome->problem,
                "no device that can run \"%s\" has a link to one that can run \"%s\"",
                of->steps->steps[edge->from].name, of->steps->steps[edge->to].name);
}

/* Takes the soonest plans whose outcome is OK. */
static bool take_soonest(struct search *search, struct plan_soonest *ret_soonest)
{
    bool ok = true;
    for (int i = 0; ok && i < PLAN_SOONEST; i++) {
        struct soonest *soonest = &search->soonest[i];
        if (soonest->trial == NULL || soonest->trial->outcome.makespan_s.source == FIGURE_UNKNOWN ||
            soonest->trial->outcome.status != PLAN_OK) {
            continue;
        }
        soonest->trial->aims = &soonest->aim;
        ret_soonest->plans[i] = plan_of_trial(soonest->trial, PLAN_GRAPH, soonest->found_by);
        ok = ret_soonest->plans[i] != NULL;
    }
    return ok;
}

bool plan_graph(const struct plan_case *of, uint64_t *effort, struct layout_found *ret_found,
                struct plan_soonest *ret_soonest, double *ret_bound_s)
{
    struct search search;
    struct workload_fault fault;
    double slack_s = 0;
    double bound_s = 0;
    *ret_found = (struct layout_found){
        .outcome = {.status = PLAN_UNREACHED, .price_micro = PLAN_UNPRICED, .merit = INFINITY}};
    *ret_bound_s = 0;
    *ret_soonest = (struct plan_soonest){.plans = {NULL}};
    problem_set(&ret_found->outcome.problem,
                "no device can run every step, and links between those that can run some are "
                "missing");
    if (of->nowhere != PLAN_ANYWHERE) {
        ret_found->outcome.status = PLAN_NOWHERE;
        plan_explain_nowhere(of, &ret_found->outcome.problem);
        return true;
    }
    bool ok = search_init(&search, of, effort);
    if (ok) {
        enum workload_status status = plan_workload(of, &search.graph, &slack_s, &fault);
        if (status == WORKLOAD_OK) {
            ok = search_all(&search, &bound_s);
            *ret_bound_s = fmax(bound_s * (1 - PLAN_ROUNDING) - slack_s, 0);
            if (ok && search.best->outcome.makespan_s.source != FIGURE_UNKNOWN) {
                ok = plan_take_best(search.best, PLAN_GRAPH, search.found_by, ret_found) &&
                     take_soonest(&search, ret_soonest);
            }
        } else if (status == WORKLOAD_NO_LINK) {
            refuse_edge(of, &fault, &ret_found->outcome);
        }
        ok = ok && status != WORKLOAD_NO_MEMORY;
    }
    search_fini(&search);
    return ok;
}
