#include "planner/layout/plan_team.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- input */

static bool is_amount(double value)
{
    return value >= 0 && value <= 1e18; /* a NaN is no amount */
}

static bool check_device(const struct plan_input *input, uint32_t d, struct plan_fault *fault)
{
    const struct plan_device *device = &input->devices[d];
    bool is_good = device->memory < TOPOLOGY_MEMORIES && device->price_micro >= PLAN_UNPRICED &&
                   is_amount(device->idle_w.value) && is_amount(device->risk.per_hour) &&
                   is_amount(device->risk.restart_s) && is_amount(device->risk.interval_s) &&
                   is_amount(device->risk.checkpoint_s);
    if (!is_good) {
        fault->device = d;
        problem_set(&fault->problem,
                    "device %" PRIu32
                    ": the number of its memory must be below %d, and each of its "
                    "figures must be 0 or more",
                    d, TOPOLOGY_MEMORIES);
    }
    return is_good;
}

static bool check_placed(const struct plan_input *input, struct plan_fault *fault)
{
    for (uint32_t s = 0; input->placed != NULL && s < input->steps->step_count; s++) {
        if (input->placed[s] != PLAN_ANYWHERE && input->placed[s] >= input->device_count) {
            fault->step = s;
            problem_set(&fault->problem,
                        "step \"%s\" must be on a device that the input does not have",
                        input->steps->steps[s].name);
            return false;
        }
    }
    return true;
}

static bool check(const struct plan_input *input, struct plan_fault *fault)
{
    if (input->device_count < 1 || input->device_count > PLAN_DEVICES) {
        problem_set(&fault->problem, "the input has %zu devices; a plan takes 1 to %d",
                    input->device_count, PLAN_DEVICES);
        return false;
    }
    if (!is_amount(input->deadline_s) || input->budget_micro < LIMIT_NONE) {
        problem_set(&fault->problem, "the deadline or the budget is negative or not a number");
        return false;
    }
    if (input->objective == PLAN_VALUE && input->worth_micro < 1) {
        problem_set(&fault->problem, "the objective value needs the worth of an hour, above 0");
        return false;
    }
    for (uint32_t d = 0; d < input->device_count; d++) {
        if (!check_device(input, d, fault)) {
            return false;
        }
    }
    return check_placed(input, fault);
}

/* ---------------------------------------------------------------- all forms */

enum {
    /* More devices than this need no chain for a set, since the search on all has seen all sets. */
    LINE_DEVICES = 4,
};
enum { EFFORT_DEVICES = 16 }; /* the whole effort is for this many devices */

struct making {
    const struct plan_input *input;
    struct plan_case *whole;
    struct layout_found forms[PLAN_FORMS];
    struct plan_variants variants; /* variants of all sets of devices */
    struct plan_soonest soonest;
    uint32_t single;
    struct plan_bounds bounds;
};

static void making_fini(struct making *making)
{
    for (int i = 0; i < PLAN_FORMS; i++) {
        plan_destroy(&making->forms[i].plan);
    }
    plan_soonest_fini(&making->soonest);
    plan_case_destroy(&making->whole);
}

/* Writes the reason why an outcome with known cost is rejected. */
static void explain_limits(const struct plan_input *input, struct plan_outcome *outcome)
{
    double takes_s = outcome->makespan_s.value;
    double price = (double)outcome->price_micro / MICRO_PER_CREDIT;
    double budget = (double)input->budget_micro / MICRO_PER_CREDIT;
    switch (outcome->status) {
    case PLAN_DEADLINE:
        problem_set(&outcome->problem, "the plan takes %.6g s, and the deadline is %.6g s", takes_s,
                    input->deadline_s);
        break;
    case PLAN_BUDGET:
        problem_set(&outcome->problem, "the plan costs %.6g credits, and the budget is %.6g", price,
                    budget);
        break;
    case PLAN_LIMITS:
        problem_set(&outcome->problem,
                    "the plan takes %.6g s and costs %.6g credits; the limits are %.6g s and %.6g",
                    takes_s, price, input->deadline_s, budget);
        break;
    case PLAN_NO_PRICE:
        problem_set(&outcome->problem, "the plan uses a device whose price is unknown");
        break;
    case PLAN_NO_POWER:
        problem_set(&outcome->problem, "the plan uses a device whose power is unknown");
        break;
    case PLAN_OK:
    case PLAN_BAD_INPUT:
    case PLAN_TOO_MANY:
    case PLAN_NOWHERE:
    case PLAN_UNKNOWN:
    case PLAN_PLACEMENT:
    case PLAN_NO_ROOM:
    case PLAN_UNREACHED:
    case PLAN_INDIVISIBLE:
    case PLAN_NO_GAIN:
    case PLAN_NO_MEMORY: /* these outcomes already have a reason */
        break;
    }
}

static bool is_missed(const struct plan_outcome *outcome)
{
    return outcome->status == PLAN_DEADLINE || outcome->status == PLAN_BUDGET ||
           outcome->status == PLAN_LIMITS;
}

/* Returns true when `found` is the better answer. A plan beats no plan, and a miss of the limits
 * beats any other reason. Else the result for the input's own objective wins. */
static bool is_preferred(const struct plan_input *input, const struct plan_input *aim,
                         const struct layout_found *found, const struct layout_found *best)
{
    if ((found->plan != NULL) != (best->plan != NULL)) {
        return found->plan != NULL;
    }
    if (found->plan != NULL || (is_missed(&found->outcome) && is_missed(&best->outcome))) {
        return plan_outcome_is_better(input, &found->outcome, &best->outcome);
    }
    return is_missed(&found->outcome) ||
           (!is_missed(&best->outcome) && aim->objective == input->objective);
}

/* Searches with each aim, and keeps the result that is best for the given input. */
static bool search_shares(struct plan_case *whole, const struct plan_input *input,
                          struct layout_found *best)
{
    struct plan_input aims[PLAN_AIMS];
    size_t count = plan_aims(input, aims);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        struct layout_found found = {.plan = NULL};
        whole->input = &aims[i];
        ok = plan_split(whole, input, &found);
        if (found.plan != NULL && found.outcome.status != PLAN_OK) {
            plan_destroy(&found.plan);
        }
        if (i == 0 || is_preferred(input, &aims[i], &found, best)) {
            plan_destroy(&best->plan);
            *best = found;
        } else {
            plan_destroy(&found.plan);
        }
    }
    whole->input = input;
    return ok;
}

/* Plans shares for groups of `width` devices, and keeps the result if it is better. */
static bool split_groups(struct making *making, uint32_t width, struct plan_variants *variants)
{
    static const char *const found_by[] = {[2] = "shares for groups of 2 devices",
                                           [4] = "shares for groups of 4 devices",
                                           [8] = "shares for groups of 8 devices"};
    const struct plan_input *input = making->input;
    struct layout_found *best = &making->forms[PLAN_SPLIT];
    struct layout_found found;
    if (!plan_team_split(making->whole, width, search_shares, &found)) {
        plan_destroy(&found.plan);
        return false;
    }
    if (found.outcome.makespan_s.source == FIGURE_UNKNOWN || found.outcome.status == PLAN_NO_GAIN) {
        return true;
    }
    plan_note(variants, input, &(struct plan_variant){PLAN_SPLIT, found_by[width], found.outcome});
    if (is_preferred(input, input, &found, best)) {
        plan_destroy(&best->plan);
        *best = found;
    } else {
        plan_destroy(&found.plan);
    }
    if (best->plan != NULL && best->plan->rows[0].team_size == width) {
        best->plan->found_by = found_by[width];
    }
    return true;
}

static bool make_split(struct making *making)
{
    const struct plan_input *input = making->input;
    struct layout_found *best = &making->forms[PLAN_SPLIT];
    struct plan_variants variants = {.count = 0};
    if (input->device_count < 2) { /* make_in_parts covers one device */
        (void)plan_is_divisible(making->whole, &best->outcome);
        return true;
    }
    bool ok = search_shares(making->whole, input, best);
    if (ok) {
        plan_note(&variants, input,
                  &(struct plan_variant){PLAN_SPLIT, "water-filling", best->outcome});
    }
    for (uint32_t width = 2; ok && width <= TEAM_MOST; width *= 2) {
        ok = split_groups(making, width, &variants);
    }
    best->variants = variants;
    return ok;
}

/* Plans a pipeline of the columns of a chain, or says why the work has none. */
static bool make_pipeline(const struct plan_case *of, struct layout_found *ret_found)
{
    if (plan_can_chain(of) && !of->has_no_chain) {
        return plan_stage_chain(of, ret_found);
    }
    *ret_found = (struct layout_found){.plan = NULL};
    if (plan_is_divisible(of, &ret_found->outcome)) {
        ret_found->outcome.status = PLAN_INDIVISIBLE;
        problem_set(&ret_found->outcome.problem, "this work has no layers to make stages of");
    }
    return true;
}

static void note_all(struct making *making, const struct plan_variants *found)
{
    for (size_t i = 0; i < found->count; i++) {
        struct plan_variant variant = found->list[i];
        explain_limits(making->input, &variant.outcome);
        plan_note(&making->variants, making->input, &variant);
    }
}

/* `effort` is the effort available; the effort used is taken from it. */
static bool make_forms(struct making *making, uint64_t *effort, double *ret_bound_s)
{
    bool ok = plan_single(making->whole, &making->forms[PLAN_SINGLE], &making->single) &&
              plan_graph(making->whole, effort, &making->forms[PLAN_GRAPH], &making->soonest,
                         ret_bound_s) &&
              make_split(making) && make_pipeline(making->whole, &making->forms[PLAN_PIPELINE]);
    for (int i = 0; ok && i < PLAN_FORMS; i++) {
        explain_limits(making->input, &making->forms[i].outcome);
    }
    if (ok) {
        note_all(making, &making->forms[PLAN_SPLIT].variants);
        note_all(making, &making->forms[PLAN_PIPELINE].variants);
    }
    return ok;
}

/* Returns the effort for a number of devices, which is independent of all other devices. */
static uint64_t effort_of(const struct plan_input *input, size_t devices)
{
    uint64_t share = input->effort / EFFORT_DEVICES * devices;
    return share < input->effort ? share : input->effort;
}

/* Keeps each form that is better on the devices of the set. */
static bool merge(struct making *making, struct making *part, const struct plan_set *set)
{
    /* A reason for no plan is the same for all devices, so it is not repeated. */
    for (size_t i = 0; i < part->variants.count; i++) {
        if (part->variants.list[i].outcome.makespan_s.source != FIGURE_UNKNOWN) {
            plan_note(&making->variants, making->input, &part->variants.list[i]);
        }
    }
    for (int i = 0; i < PLAN_FORMS; i++) {
        struct layout_found *ours = &making->forms[i];
        struct layout_found *theirs = &part->forms[i];
        bool is_done = theirs->plan != NULL;
        bool is_nearer = is_missed(&theirs->outcome) && ours->plan == NULL;
        bool has_none = ours->plan == NULL && ours->outcome.status != PLAN_NO_GAIN;
        bool is_better = (is_done && has_none) ||
                         ((is_done || is_nearer) &&
                          plan_outcome_is_better(making->input, &theirs->outcome, &ours->outcome));
        if (i == PLAN_SINGLE || !is_better) { /* all single devices were tried */
            continue;
        }
        if (is_done && !plan_of_part(theirs->plan, making->input, set)) {
            return false;
        }
        plan_destroy(&ours->plan);
        *ours = *theirs;
        theirs->plan = NULL;
    }
    return true;
}

static bool merge_soonest(struct making *making, struct making *part, const struct plan_set *set)
{
    struct plan_input aims[PLAN_SOONEST];
    plan_soonest_aims(making->input, aims);
    for (int i = 0; i < PLAN_SOONEST; i++) {
        struct plan **ours = &making->soonest.plans[i];
        struct plan **theirs = &part->soonest.plans[i];
        if (*theirs == NULL ||
            (*ours != NULL &&
             !plan_outcome_is_better(&aims[i], &(*theirs)->total, &(*ours)->total))) {
            continue;
        }
        if (!plan_of_part(*theirs, making->input, set)) {
            return false;
        }
        plan_destroy(ours);
        *ours = *theirs;
        *theirs = NULL;
    }
    return true;
}

/* Plans on a set of devices. Skips a set that leaves out more steps than all devices do, because a
 * step whose time is known elsewhere has to count. */
static bool make_part(struct making *making, const struct plan_set *set, uint64_t *effort)
{
    struct plan_part *part = calloc(1, sizeof *part);
    struct making of_part = {.single = PLAN_ANYWHERE};
    struct plan_fault fault;
    double bound_s = 0;
    bool ok = part != NULL && plan_part_init(part, making->input, set);
    if (ok) {
        of_part.input = &part->input;
        enum plan_status status = plan_case_create(&part->input, &of_part.whole, &fault);
        ok = status != PLAN_NO_MEMORY;
        if (status == PLAN_OK && of_part.whole->left_out == making->whole->left_out) {
            of_part.whole->has_no_chain = making->input->device_count > LINE_DEVICES &&
                                          plan_stage_chain_sees_all(making->whole);
            ok = make_forms(&of_part, effort, &bound_s) && merge(making, &of_part, set) &&
                 merge_soonest(making, &of_part, set);
        }
    }
    making_fini(&of_part);
    if (part != NULL) {
        plan_part_fini(part);
    }
    free(part);
    return ok;
}

/* Tries the whole batch on one device, one part after the other. */
static bool try_in_parts(struct making *making, uint32_t device)
{
    const struct plan_set set = {.count = 1, .devices = {device}};
    struct plan_part *part = calloc(1, sizeof *part);
    struct layout_found *single = &making->forms[PLAN_SINGLE];
    struct layout_found found = {.plan = NULL};
    struct plan_case *whole = NULL;
    struct plan_fault fault;
    bool ok = part != NULL && plan_part_init(part, making->input, &set);
    if (ok) {
        enum plan_status status = plan_case_create(&part->input, &whole, &fault);
        ok = status != PLAN_NO_MEMORY;
        bool can = status == PLAN_OK && whole->left_out == making->whole->left_out;
        ok = ok && (!can || plan_split(whole, &part->input, &found));
    }
    bool is_timed = ok && found.outcome.makespan_s.source != FIGURE_UNKNOWN;
    if (is_timed && (making->single == PLAN_ANYWHERE ||
                     plan_outcome_is_better(making->input, &found.outcome, &single->outcome))) {
        ok = found.plan == NULL || plan_of_part(found.plan, making->input, &set);
        making->single = device;
        explain_limits(making->input, &found.outcome);
        plan_destroy(&single->plan);
        *single = found;
        found.plan = NULL;
    }
    if (single->plan != NULL && making->single == device) {
        single->plan->form = PLAN_SINGLE;
        single->plan->found_by = "single";
    }
    plan_destroy(&found.plan);
    plan_case_destroy(&whole);
    if (part != NULL) {
        plan_part_fini(part);
    }
    free(part);
    return ok;
}

/* Returns true when an earlier device takes and costs the same. */
static bool is_like_another(const struct making *making, uint32_t device)
{
    const struct plan_device *devices = making->input->devices;
    uint32_t other = making->whole->like[device];
    while (other < device &&
           !(making->whole->like[other] == making->whole->like[device] &&
             devices[other].price_micro == devices[device].price_micro &&
             plan_is_same_figure(&devices[other].idle_w, &devices[device].idle_w))) {
        other++;
    }
    return other < device;
}

/* Tries parts on each device that differs. Parts help a device that cannot do the whole batch at
 * once, or that may be taken away. */
static bool make_in_parts(struct making *making)
{
    bool ok = true;
    for (uint32_t d = 0; ok && plan_may_part(making->input) && d < making->input->device_count;
         d++) {
        ok = is_like_another(making, d) || try_in_parts(making, d);
    }
    return ok;
}

/* Makes the soonest plans cheaper by moving steps that no step waits for. The plan for another
 * objective must not be worse than the soonest plans. */
static bool fold_soonest(struct making *making)
{
    struct plan_input aims[PLAN_SOONEST];
    struct layout_found *graph = &making->forms[PLAN_GRAPH];
    bool ok = true;
    plan_soonest_aims(making->input, aims);
    for (int i = 0; ok && i < PLAN_SOONEST; i++) {
        struct plan **plan = &making->soonest.plans[i];
        if (*plan == NULL) {
            continue;
        }
        making->whole->input = &aims[i];
        ok = plan_reclaim(making->whole, plan);
        making->whole->input = making->input;
        plan_judge(making->input, &(*plan)->total);
        if (ok && (*plan)->total.status == PLAN_OK &&
            (graph->plan == NULL ||
             plan_outcome_is_better(making->input, &(*plan)->total, &graph->outcome))) {
            plan_destroy(&graph->plan);
            graph->plan = *plan;
            graph->outcome = (*plan)->total;
            *plan = NULL;
        }
    }
    return ok;
}

/* Plans on all devices, then on some of them while effort is left. */
static bool make_all(struct making *making)
{
    const struct plan_input *input = making->input;
    uint64_t effort = effort_of(input, input->device_count);
    uint64_t left = 2 * input->effort;
    double bound_s = 0;
    struct plan_set *sets = calloc(PLAN_SETS, sizeof *sets);
    bool ok = sets != NULL && make_forms(making, &effort, &bound_s) && make_in_parts(making) &&
              plan_bound(making->whole, bound_s, &making->bounds);
    left -= effort_of(input, input->device_count) - effort;
    size_t count = ok ? plan_sets(input, sets) : 0;
    for (size_t i = 0; ok && i < count && left >= effort_of(input, sets[i].count); i++) {
        uint64_t given = effort_of(input, sets[i].count);
        uint64_t unused = given;
        ok = make_part(making, &sets[i], &unused);
        left -= given - unused;
    }
    free(sets);
    return ok && fold_soonest(making);
}

/* ---------------------------------------------------------------- choice */

/* Returns the best form, the first among equals, or PLAN_FORMS. */
static int best_form(const struct making *making)
{
    int best = PLAN_FORMS;
    for (int i = 0; i < PLAN_FORMS; i++) {
        const struct layout_found *found = &making->forms[i];
        if (found->plan != NULL &&
            (best == PLAN_FORMS || plan_outcome_is_better(making->input, &found->outcome,
                                                          &making->forms[best].outcome))) {
            best = i;
        }
    }
    return best;
}

static void take(struct making *making, int form, struct plan **ret_plan)
{
    struct plan *plan = making->forms[form].plan;
    making->forms[form].plan = NULL;
    for (int i = 0; i < PLAN_FORMS; i++) {
        plan->forms[i] = making->forms[i].outcome;
    }
    memcpy(plan->variants, making->variants.list, sizeof plan->variants);
    plan->variant_count = making->variants.count;
    plan->single = making->single;
    plan->time_bound_s = making->bounds.time_s;
    plan->bound = making->bounds.merit;
    *ret_plan = plan;
}

/* Computes the gap of the final plan. */
static double gap_of(const struct plan *plan)
{
    return plan->bound > 0 ? fmax(plan->total.merit / plan->bound - 1, 0) : -1;
}

/* ---------------------------------------------------------------- refusal */

static void refuse_limit(const struct making *making, const struct plan_outcome *nearest,
                         struct plan_fault *fault)
{
    const struct plan_input *input = making->input;
    double takes_s = nearest->makespan_s.value;
    bool is_late = nearest->status == PLAN_DEADLINE;
    if (is_late) {
        fault->least = takes_s;
        fault->bound = making->bounds.time_s;
        problem_set(
            &fault->problem,
            "the deadline is %.6g s; the fastest plan found%s takes %.6g s, and no plan takes "
            "less than %.6g s",
            input->deadline_s, limit_is_set(input->budget_micro) ? " within the budget" : "",
            takes_s, fault->bound);
    } else {
        fault->least = (double)nearest->price_micro;
        fault->bound = making->bounds.price_micro;
        problem_set(&fault->problem,
                    "the budget is %.6g credits; the cheapest plan found%s costs %.6g, and no plan "
                    "costs less than %.6g",
                    (double)input->budget_micro / MICRO_PER_CREDIT,
                    input->deadline_s > 0 ? " within the deadline" : "",
                    fault->least / MICRO_PER_CREDIT, fault->bound / MICRO_PER_CREDIT);
    }
}

/* Gives the reason of the form that is nearest to the limits. If no form has a time, gives the
 * reason of the graph, which is the least restricted form. */
static enum plan_status refuse(const struct making *making, struct plan_fault *fault)
{
    const struct plan_outcome *nearest = &making->forms[PLAN_GRAPH].outcome;
    fault->step = making->whole->nowhere;
    for (int i = 0; i < PLAN_FORMS; i++) {
        const struct plan_outcome *outcome = &making->forms[i].outcome;
        bool is_timed = outcome->makespan_s.source != FIGURE_UNKNOWN &&
                        outcome->status != PLAN_NO_ROOM && outcome->status != PLAN_NO_GAIN;
        bool is_nearer = nearest->status == PLAN_NO_ROOM || nearest->status == PLAN_NOWHERE ||
                         plan_outcome_is_better(making->input, outcome, nearest);
        nearest = is_timed && is_nearer ? outcome : nearest;
    }
    if (nearest->status == PLAN_DEADLINE || nearest->status == PLAN_BUDGET) {
        refuse_limit(making, nearest, fault);
    } else {
        fault->problem = nearest->problem;
    }
    return nearest->status;
}

enum plan_status plan_search(const struct plan_input *input, struct plan **ret_plan,
                             struct plan_fault *ret_fault)
{
    struct making making = {.input = input, .single = PLAN_ANYWHERE};
    *ret_fault = (struct plan_fault){.step = PLAN_ANYWHERE, .device = PLAN_ANYWHERE};
    if (!check(input, ret_fault)) {
        return PLAN_BAD_INPUT;
    }
    enum plan_status status = plan_case_create(input, &making.whole, ret_fault);
    if (status == PLAN_OK && !make_all(&making)) {
        status = PLAN_NO_MEMORY;
    }
    if (status == PLAN_OK) {
        int form = best_form(&making);
        if (form == PLAN_FORMS) {
            status = refuse(&making, ret_fault);
            bool is_room = status == PLAN_NOWHERE || status == PLAN_NO_ROOM;
            if (is_room && !plan_stage_chain_explain(making.whole, &ret_fault->problem)) {
                status = PLAN_NO_MEMORY;
            }
            bool is_unknown = status == PLAN_NOWHERE && plan_lacks_figure(making.whole);
            status = is_unknown ? PLAN_UNKNOWN : status;
        } else {
            take(&making, form, ret_plan);
            if (plan_reclaim(making.whole, ret_plan)) {
                (*ret_plan)->gap = gap_of(*ret_plan);
            } else {
                plan_destroy(ret_plan);
                status = PLAN_NO_MEMORY;
            }
        }
    }
    making_fini(&making);
    return status;
}
