/* This file shares out the batch by split.h. For split.h, a device is a line: a fixed time and a
 * time for each item. Real times are not exactly linear. So each line goes through the times of the
 * device's share and of half of it, with transfers. Shares and lines are computed in turn a few
 * times. The end of all work (plan_course.h) is what counts.
 *
 * The set of devices is searched. It tries all, the best few, those of each machine and of each
 * kind. From the best set, one or all of a kind in a machine are added or removed while that helps.
 * So useless devices are left out. */
#include "planner/layout/plan_course.h"

#include "planner/layout/split.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 4,
    TRIES = 240, /* most sets of devices that are tried */
    CUTS = 1024, /* shares whose times are kept */
    FEW = 2,     /* parts in which a share is measured */
};

struct cut_key {
    uint32_t kind;
    int64_t items, parts;
};

struct best {
    struct plan_outcome outcome;
    uint64_t devices;
    struct plan_shard shards[PLAN_DEVICES];
};

struct division {
    const struct plan_case *whole;
    const struct plan_input *asked;
    struct best *chosen; /* the best result of the search, by `asked` */
    int64_t grain;
    uint32_t kind[PLAN_DEVICES];    /* first device with the same costs */
    uint32_t machine[PLAN_DEVICES]; /* first device nearby */
    double single_s[PLAN_DEVICES];  /* the whole batch there; INFINITY: impossible */
    int64_t most[PLAN_DEVICES];     /* items that fit; 0: none */
    double begin_s[PLAN_DEVICES], each_s[PLAN_DEVICES]; /* its line, without transfers */
    double brought_bytes, fetched_bytes;                /* bytes of an item */
    struct cut_key keys[CUTS];
    struct plan_shard *cuts[CUTS]; /* NULL: none yet */
    uint64_t tried[TRIES];
    size_t tried_count;
    bool has_met; /* two linked devices were tried */
    struct plan_course course;
    /* State of the current set: */
    bool may_use[PLAN_DEVICES];
    double fixed_s[PLAN_DEVICES], item_s[PLAN_DEVICES]; /* lines with transfers */
    struct plan_shard shards[PLAN_DEVICES];
};

/* ---------------------------------------------------------------- shares */

/* Caches cuts for devices of one kind, which are asked for often. */
static bool cut(struct division *division, uint32_t device, int64_t items, int64_t parts,
                struct plan_shard *ret_shard)
{
    const struct cut_key key = {division->kind[device], items,
                                plan_has_replicas(division->whole->input) ? parts : 1};
    uint64_t hash = (uint64_t)items * 31 + (uint64_t)key.parts * 17 + key.kind;
    size_t at = (size_t)(hash % CUTS);
    const struct cut_key *kept = &division->keys[at];
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

/* Finds the most items that the device can do, and its first line. */
static bool measure(struct division *division, uint32_t device)
{
    struct plan_shard one;
    struct plan_shard many;
    int64_t most = division->whole->items;
    division->most[device] = 0;
    if (!cut(division, device, 1, FEW, &one) || !cut(division, device, most, FEW, &many)) {
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
        if (!cut(division, device, middle, FEW, &between)) {
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

/* Fills in the use of each device and the makespan, by the course. */
static void fill_uses(const struct division *division, struct plan_use *uses,
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

/* Returns the p90 makespan of all shares; 0 when it is unknown, or shares meet. */
static double slow_s(struct division *division)
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
                 const struct plan_outcome *outcome, struct best *best)
{
    if (best->devices == 0 || plan_outcome_is_better(aim, outcome, &best->outcome)) {
        best->outcome = *outcome;
        best->devices = devices;
        memcpy(best->shards, division->shards, sizeof best->shards);
    }
}

/* Weighs the division by the search's aim, and by `asked`. */
static void weigh(struct division *division, struct best *best)
{
    const struct plan_input *input = division->whole->input;
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    struct figure makespan_s;
    uint64_t devices = 0;
    fill_uses(division, uses, &makespan_s);
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
    if (!cut(division, device, shard->items / 2, parts, &half)) {
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
static bool divide_round(struct division *division, struct best *best, bool *ret_again)
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
        if (shares[d] > 0 && !cut(division, d, shares[d], parts, &division->shards[d])) {
            return false;
        }
        can = can && (shares[d] == 0 || division->shards[d].time_s.source != FIGURE_UNKNOWN);
    }
    if (!can || !plan_course_run(&division->course, division->shards)) {
        return !division->course.is_out_of_memory;
    }
    division->has_met = true;
    weigh(division, best);
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

/* Tries a set of devices. Returns false when memory is short. */
static bool try_set(struct division *division, uint64_t devices, struct best *best)
{
    for (size_t i = 0; i < division->tried_count; i++) {
        if (division->tried[i] == devices) {
            return true;
        }
    }
    if (division->tried_count == TRIES || (devices & (devices - 1)) == 0) {
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
static bool try_best(struct division *division, struct best *best)
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
            if (!try_set(division, devices, best)) {
                return false;
            }
            next += few < 4 ? 1 : few / 4;
        }
    }
    return true;
}

/* Tries the devices of each machine, of each kind, and of each kind in each machine. */
static bool try_groups(struct division *division, struct best *best)
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
        if (!try_set(division, near, best) || !try_set(division, same, best) ||
            !try_set(division, alike, best)) {
            return false;
        }
    }
    return true;
}

/* Tries one device more or less of those like `device`, and all or none of them. */
static bool try_neighbours(struct division *division, uint32_t device, uint64_t devices,
                           struct best *best)
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
    return try_set(division, devices | first_out, best) &&
           try_set(division, devices & ~last_in, best) &&
           try_set(division, devices | alike, best) && try_set(division, devices & ~alike, best);
}

static bool try_all(struct division *division, struct best *best)
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
static bool try_singles(struct division *division, struct best *best)
{
    uint32_t count = (uint32_t)division->whole->input->device_count;
    for (uint32_t d = 0; d < count; d++) {
        memset(division->shards, 0, sizeof division->shards);
        if (!cut(division, d, division->whole->items, 1, &division->shards[d])) {
            return false;
        }
        bool can = division->shards[d].time_s.source != FIGURE_UNKNOWN;
        division->single_s[d] = can ? division->shards[d].time_s.value : INFINITY;
        if (can && plan_course_run(&division->course, division->shards)) {
            weigh(division, best);
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
    fill_uses(division, plan->uses, &makespan_s);
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
static bool take(struct division *division, const struct best *best, struct layout_found *ret_found)
{
    memcpy(division->shards, best->shards, sizeof division->shards);
    ret_found->outcome = best->outcome;
    ret_found->outcome.p90_s = slow_s(division);
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

static bool search(struct division *division, struct best *best)
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
        if (!measure(division, d)) {
            return false;
        }
    }
    return try_singles(division, best) && try_all(division, best);
}

/* Explains why there is no division. */
static void refuse(const struct division *division, const struct best *best,
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
                    "dealt out, with all transfers, it is not %d %% sooner than on one device",
                    SPLIT_GAIN_PERCENT);
    } else {
        outcome->status = PLAN_NO_ROOM;
        problem_set(&outcome->problem,
                    "no devices can do all steps of shares that make up the batch");
    }
}

/* Returns true when one device has all in parts; no other form does that. */
static bool is_in_rounds(const struct best *best)
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
    struct best *best = calloc(1, sizeof *best);
    struct best *chosen = calloc(1, sizeof *chosen);
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
        for (size_t i = 0; i < CUTS; i++) {
            free(division->cuts[i]);
        }
    }
    free(division);
    free(best);
    free(chosen);
    return ok;
}
