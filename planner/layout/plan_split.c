/* This file searches the set of devices that share the batch (division.h). It tries all, the
 * best few, those of each machine and of each kind. From the best set, one or all of a kind in a
 * machine are added or removed while that helps. So useless devices are left out. */
#include "planner/layout/division.h"
#include "planner/layout/split.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- sets of devices */

static bool is_near(const struct plan_input *input, uint32_t a, uint32_t b)
{
    enum topology_kind kind = TOPOLOGY_NETWORK;
    double unused_s = 0;
    return plan_course_idle(input, a, b, 1, &unused_s, &kind) && kind < TOPOLOGY_NETWORK;
}

static void sort_out(struct division *division)
{
    const struct plan_input *input = division->whole->input;
    for (uint32_t d = 0; d < input->device_count; d++) {
        division->kind[d] = d;
        division->machine[d] = d;
        for (uint32_t e = d; e-- > 0;) {
            division->kind[d] =
                plan_is_same_kind(input, e, d) ? division->kind[e] : division->kind[d];
            division->machine[d] = division->machine[d] == d && is_near(input, e, d)
                                       ? division->machine[e]
                                       : division->machine[d];
        }
    }
}

/* Returns true when two devices are interchangeable, judged by their own figures. */
static bool is_alike(const struct division *division, uint32_t a, uint32_t b)
{
    const struct plan_device *devices = division->whole->input->devices;
    return division->kind[a] == division->kind[b] && division->machine[a] == division->machine[b] &&
           devices[a].price_micro == devices[b].price_micro &&
           plan_is_same_figure(&devices[a].idle_w, &devices[b].idle_w);
}

/* Returns what an item adds to the objective. */
static double rate_of(const struct division *division, uint32_t device)
{
    const struct plan_input *input = division->whole->input;
    double price = (double)input->devices[device].price_micro;
    double watts = input->devices[device].cost->profile->figures[FIGURE_POWER].value;
    double item_s = division->each_s[device];
    switch (input->objective) {
    case PLAN_ENERGY:
        return watts > 0 ? watts * item_s : INFINITY;
    case PLAN_PRICE:
    case PLAN_VALUE:
        return price < 0 ? INFINITY : price * item_s;
    case PLAN_TIME:
    case PLAN_OBJECTIVES:
        break;
    }
    bool is_limited = limit_is_set(input->budget_micro);
    return !is_limited ? item_s : price < 0 ? INFINITY : price * item_s;
}

/* Tries all, and the best two, three, four, five, six ... in growing steps. */
static bool try_best(struct division *division, struct division_best *best)
{
    uint32_t order[PLAN_DEVICES];
    uint64_t devices = 0;
    size_t count = 0;
    for (uint32_t d = 0; d < division->whole->input->device_count; d++) {
        if (division->most[d] > 0) {
            size_t at = count++;
            for (; at > 0 && rate_of(division, d) < rate_of(division, order[at - 1]); at--) {
                order[at] = order[at - 1];
            }
            order[at] = d;
        }
    }
    size_t next = 2;
    for (size_t few = 1; few <= count; few++) {
        devices |= UINT64_C(1) << order[few - 1];
        if (few == count || few == next) {
            if (!division_try(division, devices, best)) {
                return false;
            }
            next += few < 4 ? 1 : few / 4;
        }
    }
    return true;
}

/* Tries the devices of each machine, of each kind, and of each kind in each machine. */
static bool try_groups(struct division *division, struct division_best *best)
{
    size_t count = division->whole->input->device_count;
    for (uint32_t d = 0; d < count; d++) {
        uint64_t near = 0;
        uint64_t same = 0;
        uint64_t alike = 0;
        for (uint32_t e = 0; e < count; e++) {
            near |= (uint64_t)(division->machine[e] == division->machine[d]) << e;
            same |= (uint64_t)(division->kind[e] == division->kind[d]) << e;
            alike |= (uint64_t)is_alike(division, d, e) << e;
        }
        if (!division_try(division, near, best) || !division_try(division, same, best) ||
            !division_try(division, alike, best)) {
            return false;
        }
    }
    return true;
}

/* Tries one device more or less of those like `device`, and all or none of them. */
static bool try_neighbours(struct division *division, uint32_t device, uint64_t devices,
                           struct division_best *best)
{
    uint64_t alike = 0;
    uint64_t first_out = 0;
    uint64_t last_in = 0;
    for (uint32_t d = 0; d < division->whole->input->device_count; d++) {
        uint64_t it = UINT64_C(1) << d;
        if (division->most[d] > 0 && is_alike(division, device, d)) {
            alike |= it;
            first_out = first_out == 0 && (devices & it) == 0 ? it : first_out;
            last_in = (devices & it) != 0 ? it : last_in;
        }
    }
    return division_try(division, devices | first_out, best) &&
           division_try(division, devices & ~last_in, best) &&
           division_try(division, devices | alike, best) &&
           division_try(division, devices & ~alike, best);
}

static bool try_all(struct division *division, struct division_best *best)
{
    if (!try_best(division, best) || !try_groups(division, best)) {
        return false;
    }
    for (uint64_t devices = 0; best->devices != devices;) {
        devices = best->devices;
        for (uint32_t d = 0; d < division->whole->input->device_count; d++) {
            if (division->most[d] > 0 && !try_neighbours(division, d, devices, best)) {
                return false;
            }
        }
    }
    return true;
}

/* Tries each device alone; a division has to be better. */
static bool try_singles(struct division *division, struct division_best *best)
{
    uint32_t count = (uint32_t)division->whole->input->device_count;
    for (uint32_t d = 0; d < count; d++) {
        memset(division->shards, 0, sizeof division->shards);
        if (!division_cut(division, d, division->whole->items, 1, &division->shards[d])) {
            return false;
        }
        bool can = division->shards[d].time_s.source != FIGURE_UNKNOWN;
        division->single_s[d] = can ? division->shards[d].time_s.value : INFINITY;
        if (can && plan_course_run(&division->course, division->shards)) {
            division_weigh(division, best);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the plan */

static void fill_rows(const struct division *division, const struct plan_course *course,
                      struct plan *plan, uint32_t *row_of)
{
    const struct plan_case *whole = division->whole;
    uint32_t row = 0;
    for (uint32_t d = 0; d < whole->input->device_count; d++) {
        const struct plan_shard *shard = &division->shards[d];
        if (shard->items == 0) {
            continue;
        }
        assert(row < plan->row_count);
        row_of[d] = row;
        plan->rows[row++] = (struct plan_row){.device = d,
                                              .step_count = (uint32_t)whole->steps->step_count,
                                              .items = shard->items,
                                              .rounds = shard->rounds,
                                              .start_s = course->begin_s[d],
                                              .finish_s = course->end_s[d],
                                              .busy_s = shard->time_s.value,
                                              .time_s = shard->time_s,
                                              .p90_s = shard->p90_s,
                                              .samples = shard->samples,
                                              .energy_j = shard->use.energy_j,
                                              .is_streamed = shard->is_streamed};
    }
}

/* Makes the plan of the division, whose course was just run and recorded. */
static struct plan *plan_of_division(struct division *division, const struct plan_outcome *outcome)
{
    const struct plan_case *whole = division->whole;
    struct plan_course *course = &division->course;
    uint32_t row_of[PLAN_DEVICES] = {0};
    struct figure makespan_s;
    struct plan_outcome again;
    struct plan *plan = plan_alloc(whole->input, outcome->device_count, course->transfer_count);
    if (plan == NULL) {
        return NULL;
    }
    plan->form = PLAN_SPLIT;
    plan->found_by = "water-filling";
    for (size_t d = 0; d < whole->input->device_count; d++) {
        const struct plan_shard *shard = &division->shards[d];
        plan->sums_behind = plan->sums_behind || (shard->items > 0 && shard->meeting_count > 0 &&
                                                  shard->meetings[0].is_behind);
    }
    plan->total = *outcome;
    plan->left_out = whole->left_out;
    division_fill_uses(division, plan->uses, &makespan_s);
    fill_rows(division, course, plan, row_of);
    for (size_t i = 0; i < course->transfer_count; i++) {
        struct plan_transfer *transfer = &plan->transfers[i];
        *transfer = course->transfers[i];
        plan->uses[transfer->from].bytes_out += transfer->bytes;
        plan->uses[transfer->to].bytes_in += transfer->bytes;
        transfer->from = row_of[transfer->from];
        transfer->to = row_of[transfer->to];
        plan->rows[transfer->to].bytes_in += transfer->bytes;
    }
    plan_sort_transfers(plan);
    plan_sum_up(whole->input, plan->uses, &makespan_s, &again); /* prices and shares of the uses */
    plan->waits = course->waits;
    plan->wait_count = course->wait_count;
    course->waits = NULL;
    course->wait_count = 0;
    for (size_t i = 0; i < plan->wait_count; i++) {
        plan->waits[i].row = row_of[plan->waits[i].row];
    }
    return plan;
}

/* Takes the best result. */
static bool take(struct division *division, const struct division_best *best,
                 struct layout_found *ret_found)
{
    memcpy(division->shards, best->shards, sizeof division->shards);
    ret_found->outcome = best->outcome;
    ret_found->outcome.p90_s = division_slow_s(division);
    if (best->outcome.status != PLAN_OK) {
        return true;
    }
    division->course.is_recorded = true;
    if (plan_course_run(&division->course, division->shards)) {
        ret_found->plan = plan_of_division(division, &ret_found->outcome);
    }
    return ret_found->plan != NULL;
}

bool plan_is_divisible(const struct plan_case *of, struct plan_outcome *ret_outcome)
{
    const struct plan_input *input = of->input;
    const char *why = input->placed != NULL     ? "steps have to be where they are"
                      : input->template == NULL ? "nothing says how it could be divided"
                      : plan_items(input) < 2   ? "there is no batch to divide"
                      : input->device_count < 2 ? "there is one device"
                                                : NULL;
    *ret_outcome =
        (struct plan_outcome){.status = PLAN_OK, .price_micro = PLAN_UNPRICED, .merit = INFINITY};
    if (why != NULL) {
        ret_outcome->status = PLAN_INDIVISIBLE;
        problem_set(&ret_outcome->problem, "%s", why);
    }
    return why == NULL;
}

static bool search(struct division *division, struct division_best *best)
{
    const struct steps *steps = division->whole->steps;
    for (size_t s = 0; s < steps->step_count; s++) {
        division->brought_bytes +=
            (double)steps->steps[s].brought_bytes / (double)division->whole->items;
        division->fetched_bytes +=
            (double)steps->steps[s].fetched_bytes / (double)division->whole->items;
    }
    sort_out(division);
    for (uint32_t d = 0; d < division->whole->input->device_count; d++) {
        if (!division_measure(division, d)) {
            return false;
        }
    }
    return try_singles(division, best) && try_all(division, best);
}

/* Explains why there is no division. */
static void refuse(const struct division *division, const struct division_best *best,
                   struct plan_outcome *outcome)
{
    const struct plan_input *input = division->whole->input;
    const uint32_t *unlinked = division->course.unlinked;
    if (best->devices != 0) {
        *outcome = best->outcome;
    }
    if (!division->has_met && unlinked[0] != PLAN_ANYWHERE) {
        outcome->status = PLAN_UNREACHED;
        problem_set(&outcome->problem,
                    "shares of the batch have to hear of one another, and no link leads from %s to "
                    "%s",
                    input->devices[unlinked[0]].name, input->devices[unlinked[1]].name);
    } else if (best->devices != 0) {
        outcome->status = PLAN_NO_GAIN;
        problem_set(&outcome->problem,
                    "a split job, with all transfers, does not end %d %% sooner than on one device",
                    SPLIT_GAIN_PERCENT);
    } else {
        outcome->status = PLAN_NO_ROOM;
        problem_set(&outcome->problem,
                    "no devices can do all steps of shares that make up the batch");
    }
}

/* Returns true when one device has all in parts; no other form does that. */
static bool is_in_rounds(const struct division_best *best)
{
    size_t d = 0;
    while (d < PLAN_DEVICES && best->shards[d].items == 0) {
        d++;
    }
    return d < PLAN_DEVICES && best->shards[d].rounds > 1;
}

bool plan_split(const struct plan_case *of, const struct plan_input *asked,
                struct layout_found *ret_found)
{
    *ret_found = (struct layout_found){.plan = NULL};
    bool is_alone = of->input->device_count == 1;
    if (!plan_is_divisible(of, &ret_found->outcome) && !(is_alone && plan_items(of->input) > 1)) {
        return true;
    }
    struct plan_outcome refused = ret_found->outcome; /* unless one device works in parts */
    struct division *division = calloc(1, sizeof *division);
    struct division_best *best = calloc(1, sizeof *best);
    struct division_best *chosen = calloc(1, sizeof *chosen);
    bool ok = division != NULL && best != NULL && chosen != NULL;
    if (ok) {
        division->whole = of;
        division->asked = asked;
        division->chosen = chosen;
        division->grain = template_grain(of->input->template);
        ok = plan_course_init(&division->course, of->input) && search(division, best);
        if (ok && chosen->outcome.device_count > 1) {
            ok = take(division, chosen, ret_found);
        } else if (ok && is_alone && is_in_rounds(chosen)) {
            ok = take(division, chosen, ret_found);
        } else if (ok && is_alone) {
            ret_found->outcome = refused;
        } else if (ok) {
            refuse(division, chosen, &ret_found->outcome);
        }
        plan_course_fini(&division->course);
        for (size_t i = 0; i < DIVISION_CUTS; i++) {
            free(division->cuts[i]);
        }
    }
    free(division);
    free(best);
    free(chosen);
    return ok;
}
