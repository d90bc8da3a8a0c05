#include "planner/layout/division.h"

#include "planner/layout/split.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 4,
    FEW = 2, /* parts in which a share is measured */
};

/* ---------------------------------------------------------------- shares */

bool division_cut(struct division *division, uint32_t device, int64_t items, int64_t parts,
                  struct plan_shard *ret_shard)
{
    const struct division_key key = {division->kind[device], items,
                                     plan_has_replicas(division->whole->input) ? parts : 1};
    uint64_t hash = (uint64_t)items * 31 + (uint64_t)key.parts * 17 + key.kind;
    size_t at = (size_t)(hash % DIVISION_CUTS);
    const struct division_key *kept = &division->keys[at];
    if (kept->items != key.items || kept->parts != key.parts || kept->kind != key.kind) {
        if (division->cuts[at] == NULL) {
            division->cuts[at] = malloc(sizeof *division->cuts[at]);
        }
        if (division->cuts[at] == NULL ||
            !plan_shard_cut(division->whole, key.kind, items, key.parts, division->cuts[at])) {
            return false;
        }
        division->keys[at] = key;
    }
    *ret_shard = *division->cuts[at];
    return true;
}

/* ---------------------------------------------------------------- lines */

static void line(double few_s, int64_t few, double many_s, int64_t many, double *ret_fixed_s,
                 double *ret_item_s)
{
    double item_s = many > few ? (many_s - few_s) / (double)(many - few) : many_s / (double)many;
    item_s = fmax(item_s, many_s / (double)many * 1e-6); /* an item always takes some time */
    *ret_item_s = fmax(item_s, 1e-12);
    *ret_fixed_s = fmax(many_s - item_s * (double)many, 0);
}

bool division_measure(struct division *division, uint32_t device)
{
    struct plan_shard one;
    struct plan_shard many;
    int64_t most = division->whole->items;
    division->most[device] = 0;
    if (!division_cut(division, device, 1, FEW, &one) ||
        !division_cut(division, device, most, FEW, &many)) {
        return false;
    }
    if (one.time_s.source == FIGURE_UNKNOWN) {
        return true;
    }
    int64_t fits = 1;
    struct plan_shard last = one;
    while (many.time_s.source == FIGURE_UNKNOWN && most - fits > 1) { /* `most` does not fit */
        int64_t middle = fits + (most - fits) / 2;
        struct plan_shard between;
        if (!division_cut(division, device, middle, FEW, &between)) {
            return false;
        }
        if (between.time_s.source == FIGURE_UNKNOWN) {
            most = middle;
        } else {
            fits = middle;
            last = between;
        }
    }
    many = many.time_s.source == FIGURE_UNKNOWN ? last : many;
    bool is_all = many.items == division->whole->items;
    division->most[device] = is_all ? many.items : many.items / division->grain * division->grain;
    line(one.time_s.value, 1, many.time_s.value, many.items, &division->begin_s[device],
         &division->each_s[device]);
    return true;
}

/* Returns the time out and back without other traffic, or false when there is no path. */
static bool carried_s(const struct division *division, uint32_t home, uint32_t device,
                      int64_t items, double *ret_s)
{
    const struct plan_input *input = division->whole->input;
    double out_s = 0;
    double back_s = 0;
    bool ok = plan_course_idle(input, home, device, division->brought_bytes * (double)items, &out_s,
                               NULL) &&
              plan_course_idle(input, device, home, division->fetched_bytes * (double)items,
                               &back_s, NULL);
    *ret_s = out_s + back_s;
    return ok;
}

/* Adds transfers to the device's line. Returns false when there is no path. */
static bool carry(struct division *division, uint32_t home, uint32_t device)
{
    double one_s = 0;
    double all_s = 0;
    int64_t all = division->whole->items;
    if (!carried_s(division, home, device, 1, &one_s) ||
        !carried_s(division, home, device, all, &all_s)) {
        return false;
    }
    double item_s = all > 1 ? fmax(all_s - one_s, 0) / (double)(all - 1) : all_s;
    division->item_s[device] += item_s;
    division->fixed_s[device] += fmax(all_s - item_s * (double)all, 0);
    return true;
}

/* ---------------------------------------------------------------- sharing out */

/* Rounds to whole grains. One grain may be smaller; the device with most items gets it. */
static void round_down(int64_t excess, size_t count, int64_t *items)
{
    size_t most = 0;
    for (size_t i = 1; i < count; i++) {
        most = items[i] > items[most] ? i : most;
    }
    items[most] -= excess;
}

/* Deals `left` to devices that are not full. Returns false if that is impossible. */
static bool share_left(const struct division *division, const bool *is_full, int64_t left,
                       int64_t *shares)
{
    const struct plan_input *input = division->whole->input;
    struct split_device devices[PLAN_DEVICES];
    struct split_share parts[PLAN_DEVICES];
    uint32_t which[PLAN_DEVICES];
    int64_t items[PLAN_DEVICES];
    struct split split;
    size_t count = 0;
    for (uint32_t d = 0; d < input->device_count; d++) {
        if (division->may_use[d] && division->most[d] > 0 && !is_full[d]) {
            int64_t price = input->devices[d].price_micro;
            which[count] = d;
            devices[count++] =
                (struct split_device){.flops = 1 / (division->item_s[d] * (double)division->grain),
                                      .fixed_s = division->fixed_s[d],
                                      .slots = 1,
                                      .price_micro = price < 0 ? 0 : price};
        }
    }
    int64_t grains = left / division->grain + (left % division->grain != 0);
    const struct split_work work = {.units = (uint64_t)grains, .flop = 1};
    if (count == 0 || split_make(&work, devices, count, parts, &split) != SPLIT_OK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        items[i] = (int64_t)parts[i].units * division->grain;
    }
    round_down(grains * division->grain - left, count, items);
    for (size_t i = 0; i < count; i++) {
        shares[which[i]] = items[i];
    }
    return true;
}

/* Shares out by the lines. A device gets no more than fits; the others get the rest. */
static bool share_out(const struct division *division, int64_t shares[PLAN_DEVICES])
{
    bool is_full[PLAN_DEVICES] = {false};
    int64_t left = division->whole->items;
    memset(shares, 0, PLAN_DEVICES * sizeof *shares);
    for (bool again = true; again && left > 0;) {
        again = false;
        if (!share_left(division, is_full, left, shares)) {
            return false;
        }
        for (size_t d = 0; d < PLAN_DEVICES; d++) {
            if (!is_full[d] && shares[d] > division->most[d]) {
                shares[d] = division->most[d];
                is_full[d] = true;
                left -= shares[d];
                again = true;
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- outcome of a division */

void division_fill_uses(const struct division *division, struct plan_use *uses,
                        struct figure *ret_makespan_s)
{
    const struct plan_course *course = &division->course;
    *ret_makespan_s = (struct figure){.source = FIGURE_MEASURED};
    for (size_t d = 0; d < division->whole->input->device_count; d++) {
        const struct plan_shard *shard = &division->shards[d];
        struct figure rests_on = {.source = shard->time_s.source,
                                  .unverified = shard->time_s.unverified};
        uses[d] = shard->use;
        if (shard->items > 0) {
            plan_add(ret_makespan_s, &rests_on);
            uses[d].first_s = course->first_s[d];
            uses[d].last_s = course->last_s[d];
        }
    }
    ret_makespan_s->value = course->makespan_s;
}

double division_slow_s(struct division *division)
{
    bool is_known = true;
    for (size_t d = 0; d < division->whole->input->device_count; d++) {
        const struct plan_shard *shard = &division->shards[d];
        is_known =
            is_known && (shard->items == 0 || (shard->p90_s > 0 && shard->meeting_count == 0));
    }
    division->course.is_slow = true;
    double p90_s = is_known && plan_course_run(&division->course, division->shards)
                       ? division->course.makespan_s
                       : 0;
    division->course.is_slow = false;
    return p90_s;
}

/* A division with less gain is not worth its risk, whatever the objective. */
static bool gains(const struct division *division, double makespan_s, size_t device_count)
{
    double single_s = INFINITY;
    for (size_t d = 0; d < division->whole->input->device_count; d++) {
        single_s = division->shards[d].items > 0 ? fmin(single_s, division->single_s[d]) : single_s;
    }
    return device_count < 2 || makespan_s <= single_s * (100 - SPLIT_GAIN_PERCENT) / 100;
}

static void keep(const struct division *division, const struct plan_input *aim, uint64_t devices,
                 const struct plan_outcome *outcome, struct division_best *best)
{
    if (best->devices == 0 || plan_outcome_is_better(aim, outcome, &best->outcome)) {
        best->outcome = *outcome;
        best->devices = devices;
        memcpy(best->shards, division->shards, sizeof best->shards);
    }
}

void division_weigh(struct division *division, struct division_best *best)
{
    const struct plan_input *input = division->whole->input;
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    struct figure makespan_s;
    uint64_t devices = 0;
    division_fill_uses(division, uses, &makespan_s);
    plan_sum_up(input, uses, &makespan_s, &outcome);
    for (size_t d = 0; d < input->device_count; d++) {
        devices |= (uint64_t)(division->shards[d].items > 0) << d;
    }
    if (!gains(division, makespan_s.value, outcome.device_count)) {
        return;
    }
    keep(division, input, devices, &outcome, best);
    plan_judge(division->asked, &outcome);
    keep(division, division->asked, devices, &outcome, division->chosen);
}

/* Draws the line anew, through the share and half of it, plus the waiting for links. Returns false
 * when memory is short. */
static bool refine(struct division *division, uint32_t device, int64_t parts)
{
    const struct plan_course *course = &division->course;
    const struct plan_shard *shard = &division->shards[device];
    struct plan_shard half;
    double idle_s = 0;
    if (shard->items < 2) {
        return true;
    }
    if (!division_cut(division, device, shard->items / 2, parts, &half)) {
        return false;
    }
    if (half.time_s.source == FIGURE_UNKNOWN) {
        return true;
    }
    line(half.time_s.value, half.items, shard->time_s.value, shard->items,
         &division->fixed_s[device], &division->item_s[device]);
    if (device != course->home && carry(division, course->home, device) &&
        carried_s(division, course->home, device, shard->items, &idle_s)) {
        double took_s = course->begin_s[device] + (course->there_s[device] - course->end_s[device]);
        division->fixed_s[device] += fmax(took_s - idle_s, 0);
    }
    return true;
}

/* Computes shares, then lines through them. `ret_again` means that another turn may help. */
static bool divide_round(struct division *division, struct division_best *best, bool *ret_again)
{
    int64_t shares[PLAN_DEVICES];
    int64_t parts = 0;
    bool is_same = true;
    *ret_again = false;
    if (!share_out(division, shares)) {
        return true;
    }
    for (size_t d = 0; d < PLAN_DEVICES; d++) {
        parts += shares[d] > 0;
        is_same = is_same && shares[d] == division->shards[d].items;
    }
    if (is_same || parts < 2) { /* single devices are known */
        return true;
    }
    bool can = true;
    for (uint32_t d = 0; d < division->whole->input->device_count; d++) {
        division->shards[d] = (struct plan_shard){.items = 0};
        if (shares[d] > 0 && !division_cut(division, d, shares[d], parts, &division->shards[d])) {
            return false;
        }
        can = can && (shares[d] == 0 || division->shards[d].time_s.source != FIGURE_UNKNOWN);
    }
    if (!can || !plan_course_run(&division->course, division->shards)) {
        return !division->course.is_out_of_memory;
    }
    division->has_met = true;
    division_weigh(division, best);
    for (uint32_t d = 0; d < division->whole->input->device_count; d++) {
        if (shares[d] > 0 && !refine(division, d, parts)) {
            return false;
        }
    }
    *ret_again = true;
    return true;
}

/* Takes the fastest device as home at first; devices without a link to it cannot take part. */
static void draw_lines(struct division *division, uint64_t devices)
{
    uint32_t home = PLAN_ANYWHERE;
    for (uint32_t d = 0; d < PLAN_DEVICES; d++) {
        division->may_use[d] = (devices >> d & 1) != 0 && division->most[d] > 0;
        division->shards[d] = (struct plan_shard){.items = 0};
        if (division->may_use[d]) {
            division->fixed_s[d] = division->begin_s[d];
            division->item_s[d] = division->each_s[d];
            home = home == PLAN_ANYWHERE || division->item_s[d] < division->item_s[home] ? d : home;
        }
    }
    for (uint32_t d = 0; d < PLAN_DEVICES; d++) {
        if (division->may_use[d] && d != home && !carry(division, home, d)) {
            division->may_use[d] = false;
            division->course.unlinked[0] = home;
            division->course.unlinked[1] = d;
        }
    }
}

bool division_try(struct division *division, uint64_t devices, struct division_best *best)
{
    for (size_t i = 0; i < division->tried_count; i++) {
        if (division->tried[i] == devices) {
            return true;
        }
    }
    if (division->tried_count == DIVISION_TRIES || (devices & (devices - 1)) == 0) {
        return true;
    }
    division->tried[division->tried_count++] = devices;
    draw_lines(division, devices);
    bool again = true;
    for (int round = 0; round < ROUNDS && again; round++) {
        if (!divide_round(division, best, &again)) {
            return false;
        }
    }
    return true;
}
