/* This file deals out the batch by split.h. For split.h, a device is a line: a fixed time and a
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
    PARTS_MOST = 4096,
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

struct deal {
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

static int64_t summed_parts(const struct step *step, double *ret_bytes)
{
    int64_t parts = 0;
    for (size_t i = 0; i < step->part_count; i++) {
        const struct operation *operation = &step->parts[i].operation;
        if (operation->kind == OPERATION_ALL_REDUCE) {
            const struct all_reduce_shape *shape = &operation->shape.all_reduce;
            *ret_bytes += (double)shape->elements * dtype_bits(operation->dtype) / 8 *
                          (double)step->parts[i].times;
            parts = shape->devices;
        }
    }
    return parts;
}

/* Parts meet at a sum over them, and at a step that the whole work does not have. */
static void add_step(const struct plan_trial *trial, const struct plan_case *whole, uint32_t step,
                     double *at_s, struct plan_shard *shard)
{
    const struct step *it = &trial->of->steps->steps[step];
    struct plan_meeting meeting = {.after_s = trial->start[step] - *at_s,
                                   .takes_s = trial->finish[step] - trial->start[step]};
    shard->brought_bytes += (double)it->brought_bytes;
    shard->fetched_bytes += (double)it->fetched_bytes;
    if (!plan_has_replicas(whole->input)) {
        return;
    }
    meeting.parts = summed_parts(it, &meeting.bytes);
    meeting.is_behind = meeting.parts > 0 && trial->of->steps->sums_behind;
    if (meeting.parts == 0 && steps_find(whole->steps, it->name) < whole->steps->step_count) {
        return;
    }
    if (shard->meeting_count < PLAN_MEETINGS) {
        shard->meetings[shard->meeting_count++] = meeting;
    } else {
        struct plan_meeting *last = &shard->meetings[PLAN_MEETINGS - 1];
        last->takes_s += meeting.after_s + meeting.takes_s;
        last->bytes += meeting.bytes;
    }
    *at_s = trial->finish[step];
}

static void measure_shard(struct plan_trial *trial, const struct plan_case *whole, uint32_t device,
                          struct plan_shard *shard)
{
    double at_s = 0;
    for (size_t i = 0; i < trial->of->steps->step_count; i++) {
        add_step(trial, whole, trial->sequence[i], &at_s, shard);
    }
    shard->time_s = trial->outcome.makespan_s;
    shard->rest_s = shard->time_s.value - at_s;
    shard->use = trial->uses[device];
    shard->use.row_count = 1;
    shard->is_streamed = trial->streams[device];
    shard->samples = plan_samples(trial->of, 0, trial->of->steps->step_count, device);
    shard->p90_s = plan_try_p90(trial);
}

/* Times all steps of `items` on one device at once. Returns false when memory is short; the time is
 * unknown if it is impossible. */
static bool cut_once(const struct plan_case *whole, uint32_t device, int64_t items, int64_t parts,
                     struct plan_shard *ret_shard)
{
    struct plan_case *share = NULL;
    *ret_shard = (struct plan_shard){.items = items, .rounds = 1};
    if (!plan_case_share(whole, items, parts, device, PLAN_AS_IT_IS, &share)) {
        return false;
    }
    struct plan_trial *trial = share == NULL ? NULL : plan_trial_create(share);
    if (trial != NULL && plan_try_alone(trial, device) && trial->overflow_on == PLAN_ANYWHERE) {
        measure_shard(trial, whole, device, ret_shard);
    }
    bool ok = share == NULL || trial != NULL;
    plan_trial_destroy(&trial);
    plan_case_destroy(&share);
    return ok;
}

/* Adds `rounds` like `round`. All input is there before, and all results are fetched after. */
static void add_rounds(const struct plan_shard *round, int64_t rounds, struct plan_shard *shard)
{
    double times = (double)rounds;
    struct figure time_s = round->time_s;
    struct figure energy_j = round->use.energy_j;
    bool is_first = shard->rounds == 0;
    time_s.value *= times;
    energy_j.value *= times;
    if (is_first) {
        shard->time_s = (struct figure){.source = FIGURE_MEASURED};
        shard->use.energy_j = (struct figure){.source = FIGURE_MEASURED};
        shard->samples = round->samples;
    }
    shard->p90_s = round->p90_s > 0 && (is_first || shard->p90_s > 0)
                       ? shard->p90_s + times * round->p90_s
                       : 0;
    shard->samples = round->samples < shard->samples ? round->samples : shard->samples;
    shard->rounds += rounds;
    plan_add(&shard->time_s, &time_s);
    plan_add(&shard->use.energy_j, &energy_j);
    shard->use.row_count = 1;
    shard->use.busy_s += times * round->use.busy_s;
    shard->use.memory_bytes = fmax(shard->use.memory_bytes, round->use.memory_bytes);
    shard->brought_bytes += times * round->brought_bytes;
    shard->fetched_bytes += times * round->fetched_bytes;
    shard->rest_s = shard->time_s.value;
    shard->is_streamed = shard->is_streamed || round->is_streamed;
}

/* Cuts into `rounds` parts, which differ by one item at most. Returns false when memory is short;
 * the time is unknown if they do not fit. */
static bool cut_in(const struct plan_case *whole, uint32_t device, int64_t items, int64_t rounds,
                   struct plan_shard *ret_shard)
{
    struct plan_shard less;
    struct plan_shard more;
    const int64_t larger = items % rounds; /* number of larger parts */
    *ret_shard = (struct plan_shard){.items = items};
    if (!cut_once(whole, device, items / rounds + (larger > 0), 1, &more) ||
        (more.time_s.source != FIGURE_UNKNOWN && larger > 0 &&
         !cut_once(whole, device, items / rounds, 1, &less))) {
        return false;
    }
    if (more.time_s.source == FIGURE_UNKNOWN ||
        (larger > 0 && less.time_s.source == FIGURE_UNKNOWN)) {
        return true;
    }
    add_rounds(&more, larger > 0 ? larger : rounds, ret_shard);
    if (larger > 0) {
        add_rounds(&less, rounds - larger, ret_shard);
    }
    return true;
}

/* Takes all at once, or the fewest parts that fit, of those tried. `ret_rounds` is their number. */
static bool cut_to_fit(const struct plan_case *whole, uint32_t device, int64_t items, int64_t parts,
                       int64_t *ret_rounds, struct plan_shard *ret_shard)
{
    if (!cut_once(whole, device, items, parts, ret_shard)) {
        return false;
    }
    int64_t low = 1; /* too few to fit */
    int64_t high = 1;
    while (plan_may_part(whole->input) && ret_shard->time_s.source == FIGURE_UNKNOWN &&
           high < items && high < PARTS_MOST) {
        low = high;
        high = 2 * high < items ? 2 * high : items;
        if (!cut_in(whole, device, items, high, ret_shard)) {
            return false;
        }
    }
    while (ret_shard->time_s.source != FIGURE_UNKNOWN && high - low > 1) {
        struct plan_shard between;
        int64_t middle = low + (high - low) / 2;
        if (!cut_in(whole, device, items, middle, &between)) {
            return false;
        }
        if (between.time_s.source == FIGURE_UNKNOWN) {
            low = middle;
        } else {
            high = middle;
            *ret_shard = between;
        }
    }
    *ret_rounds = high;
    return true;
}

/* Takes `rounds` parts if they are expected to take less; `ret_is_less` says so. */
static bool try_rounds(const struct plan_case *whole, uint32_t device, int64_t rounds,
                       bool *ret_is_less, struct plan_shard *shard)
{
    struct plan_shard other;
    if (!cut_in(whole, device, shard->items, rounds, &other)) {
        return false;
    }
    *ret_is_less = other.time_s.source != FIGURE_UNKNOWN &&
                   other.time_s.value < shard->time_s.value * (1 - PLAN_ROUNDING);
    if (*ret_is_less) {
        *shard = other;
    }
    return true;
}

/* A device that may be taken away repeats one part, not all; but each part has fixed costs. The
 * search doubles the parts while that takes less. Then it tries steps around the best, each half of
 * the last. */
static bool cut_for_risk(const struct plan_case *whole, uint32_t device, int64_t rounds,
                         struct plan_shard *shard)
{
    const int64_t fewest = rounds;
    const int64_t most = shard->items < PARTS_MOST ? shard->items : PARTS_MOST;
    bool is_less = true;
    while (is_less && rounds < most) {
        int64_t twice = 2 * rounds < most ? 2 * rounds : most;
        if (!try_rounds(whole, device, twice, &is_less, shard)) {
            return false;
        }
        rounds = is_less ? twice : rounds;
    }
    for (int64_t step = rounds / 2; step > 0; step /= 2) {
        const int64_t near[] = {rounds - step, rounds + step};
        is_less = false;
        for (size_t i = 0; i < 2 && !is_less; i++) {
            bool can = near[i] >= fewest && near[i] <= most;
            if (can && !try_rounds(whole, device, near[i], &is_less, shard)) {
                return false;
            }
            rounds = is_less ? near[i] : rounds;
        }
    }
    return true;
}

/* Cuts at once or in parts; parts that exchange data are not cut in parts. */
static bool cut_anew(const struct plan_case *whole, uint32_t device, int64_t items, int64_t parts,
                     struct plan_shard *ret_shard)
{
    int64_t rounds = 1;
    if (!cut_to_fit(whole, device, items, parts, &rounds, ret_shard)) {
        return false;
    }
    bool is_at_risk = whole->input->devices[device].risk.per_hour > 0;
    bool is_timed = ret_shard->time_s.source != FIGURE_UNKNOWN;
    return !is_at_risk || !is_timed || !plan_may_part(whole->input) ||
           cut_for_risk(whole, device, rounds, ret_shard);
}

/* Caches cuts for devices of one kind, which are asked for often. */
static bool cut(struct deal *deal, uint32_t device, int64_t items, int64_t parts,
                struct plan_shard *ret_shard)
{
    const struct cut_key key = {deal->kind[device], items,
                                plan_has_replicas(deal->whole->input) ? parts : 1};
    uint64_t hash = (uint64_t)items * 31 + (uint64_t)key.parts * 17 + key.kind;
    size_t at = (size_t)(hash % CUTS);
    const struct cut_key *kept = &deal->keys[at];
    if (kept->items != key.items || kept->parts != key.parts || kept->kind != key.kind) {
        if (deal->cuts[at] == NULL) {
            deal->cuts[at] = malloc(sizeof *deal->cuts[at]);
        }
        if (deal->cuts[at] == NULL ||
            !cut_anew(deal->whole, key.kind, items, key.parts, deal->cuts[at])) {
            return false;
        }
        deal->keys[at] = key;
    }
    *ret_shard = *deal->cuts[at];
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
static bool measure(struct deal *deal, uint32_t device)
{
    struct plan_shard one;
    struct plan_shard many;
    int64_t most = deal->whole->items;
    deal->most[device] = 0;
    if (!cut(deal, device, 1, FEW, &one) || !cut(deal, device, most, FEW, &many)) {
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
        if (!cut(deal, device, middle, FEW, &between)) {
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
    bool is_all = many.items == deal->whole->items;
    deal->most[device] = is_all ? many.items : many.items / deal->grain * deal->grain;
    line(one.time_s.value, 1, many.time_s.value, many.items, &deal->begin_s[device],
         &deal->each_s[device]);
    return true;
}

/* Returns the time there and back without other traffic, or false when there is no path. */
static bool carried_s(const struct deal *deal, uint32_t home, uint32_t device, int64_t items,
                      double *ret_s)
{
    const struct plan_input *input = deal->whole->input;
    double out_s = 0;
    double back_s = 0;
    bool ok =
        plan_course_alone(input, home, device, deal->brought_bytes * (double)items, &out_s, NULL) &&
        plan_course_alone(input, device, home, deal->fetched_bytes * (double)items, &back_s, NULL);
    *ret_s = out_s + back_s;
    return ok;
}

/* Adds transfers to the device's line. Returns false when there is no path. */
static bool carry(struct deal *deal, uint32_t home, uint32_t device)
{
    double one_s = 0;
    double all_s = 0;
    int64_t all = deal->whole->items;
    if (!carried_s(deal, home, device, 1, &one_s) || !carried_s(deal, home, device, all, &all_s)) {
        return false;
    }
    double item_s = all > 1 ? fmax(all_s - one_s, 0) / (double)(all - 1) : all_s;
    deal->item_s[device] += item_s;
    deal->fixed_s[device] += fmax(all_s - item_s * (double)all, 0);
    return true;
}

/* ---------------------------------------------------------------- dealing out */

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
static bool deal_left(const struct deal *deal, const bool *is_full, int64_t left, int64_t *shares)
{
    const struct plan_input *input = deal->whole->input;
    struct split_device devices[PLAN_DEVICES];
    struct split_share parts[PLAN_DEVICES];
    uint32_t which[PLAN_DEVICES];
    int64_t items[PLAN_DEVICES];
    struct split split;
    size_t count = 0;
    for (uint32_t d = 0; d < input->device_count; d++) {
        if (deal->may_use[d] && deal->most[d] > 0 && !is_full[d]) {
            int64_t price = input->devices[d].price_micro;
            which[count] = d;
            devices[count++] =
                (struct split_device){.flops = 1 / (deal->item_s[d] * (double)deal->grain),
                                      .fixed_s = deal->fixed_s[d],
                                      .slots = 1,
                                      .price_micro = price < 0 ? 0 : price};
        }
    }
    int64_t grains = left / deal->grain + (left % deal->grain != 0);
    const struct split_work work = {.units = (uint64_t)grains, .flop = 1};
    if (count == 0 || split_make(&work, devices, count, parts, &split) != SPLIT_OK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        items[i] = (int64_t)parts[i].units * deal->grain;
    }
    round_down(grains * deal->grain - left, count, items);
    for (size_t i = 0; i < count; i++) {
        shares[which[i]] = items[i];
    }
    return true;
}

/* Deals out by the lines. A device gets no more than fits; the others get the rest. */
static bool deal_out(const struct deal *deal, int64_t shares[PLAN_DEVICES])
{
    bool is_full[PLAN_DEVICES] = {false};
    int64_t left = deal->whole->items;
    memset(shares, 0, PLAN_DEVICES * sizeof *shares);
    for (bool again = true; again && left > 0;) {
        again = false;
        if (!deal_left(deal, is_full, left, shares)) {
            return false;
        }
        for (size_t d = 0; d < PLAN_DEVICES; d++) {
            if (!is_full[d] && shares[d] > deal->most[d]) {
                shares[d] = deal->most[d];
                is_full[d] = true;
                left -= shares[d];
                again = true;
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- outcome of a deal */

/* Fills in the use of each device and the makespan, by the course. */
static void fill_uses(const struct deal *deal, struct plan_use *uses, struct figure *ret_makespan_s)
{
    const struct plan_course *course = &deal->course;
    *ret_makespan_s = (struct figure){.source = FIGURE_MEASURED};
    for (size_t d = 0; d < deal->whole->input->device_count; d++) {
        const struct plan_shard *shard = &deal->shards[d];
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
static double slow_s(struct deal *deal)
{
    bool is_known = true;
    for (size_t d = 0; d < deal->whole->input->device_count; d++) {
        const struct plan_shard *shard = &deal->shards[d];
        is_known =
            is_known && (shard->items == 0 || (shard->p90_s > 0 && shard->meeting_count == 0));
    }
    deal->course.is_slow = true;
    double p90_s =
        is_known && plan_course_run(&deal->course, deal->shards) ? deal->course.makespan_s : 0;
    deal->course.is_slow = false;
    return p90_s;
}

/* A division with less gain is not worth its risk, whatever the objective. */
static bool gains(const struct deal *deal, double makespan_s, size_t device_count)
{
    double single_s = INFINITY;
    for (size_t d = 0; d < deal->whole->input->device_count; d++) {
        single_s = deal->shards[d].items > 0 ? fmin(single_s, deal->single_s[d]) : single_s;
    }
    return device_count < 2 || makespan_s <= single_s * (100 - SPLIT_GAIN_PERCENT) / 100;
}

static void keep(const struct deal *deal, const struct plan_input *aim, uint64_t devices,
                 const struct plan_outcome *outcome, struct best *best)
{
    if (best->devices == 0 || plan_outcome_is_better(aim, outcome, &best->outcome)) {
        best->outcome = *outcome;
        best->devices = devices;
        memcpy(best->shards, deal->shards, sizeof best->shards);
    }
}

/* Weighs the deal by the search's aim, and by `asked`. */
static void weigh(struct deal *deal, struct best *best)
{
    const struct plan_input *input = deal->whole->input;
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    struct figure makespan_s;
    uint64_t devices = 0;
    fill_uses(deal, uses, &makespan_s);
    plan_sum_up(input, uses, &makespan_s, &outcome);
    for (size_t d = 0; d < input->device_count; d++) {
        devices |= (uint64_t)(deal->shards[d].items > 0) << d;
    }
    if (!gains(deal, makespan_s.value, outcome.device_count)) {
        return;
    }
    keep(deal, input, devices, &outcome, best);
    plan_judge(deal->asked, &outcome);
    keep(deal, deal->asked, devices, &outcome, deal->chosen);
}

/* Draws the line anew, through the share and half of it, plus the waiting for links. Returns false
 * when memory is short. */
static bool refine(struct deal *deal, uint32_t device, int64_t parts)
{
    const struct plan_course *course = &deal->course;
    const struct plan_shard *shard = &deal->shards[device];
    struct plan_shard half;
    double alone_s = 0;
    if (shard->items < 2) {
        return true;
    }
    if (!cut(deal, device, shard->items / 2, parts, &half)) {
        return false;
    }
    if (half.time_s.source == FIGURE_UNKNOWN) {
        return true;
    }
    line(half.time_s.value, half.items, shard->time_s.value, shard->items, &deal->fixed_s[device],
         &deal->item_s[device]);
    if (device != course->home && carry(deal, course->home, device) &&
        carried_s(deal, course->home, device, shard->items, &alone_s)) {
        double took_s = course->begin_s[device] + (course->there_s[device] - course->end_s[device]);
        deal->fixed_s[device] += fmax(took_s - alone_s, 0);
    }
    return true;
}

/* Computes shares, then lines through them. `ret_again` means that another turn may help. */
static bool deal_round(struct deal *deal, struct best *best, bool *ret_again)
{
    int64_t shares[PLAN_DEVICES];
    int64_t parts = 0;
    bool is_same = true;
    *ret_again = false;
    if (!deal_out(deal, shares)) {
        return true;
    }
    for (size_t d = 0; d < PLAN_DEVICES; d++) {
        parts += shares[d] > 0;
        is_same = is_same && shares[d] == deal->shards[d].items;
    }
    if (is_same || parts < 2) { /* single devices are known */
        return true;
    }
    bool can = true;
    for (uint32_t d = 0; d < deal->whole->input->device_count; d++) {
        deal->shards[d] = (struct plan_shard){.items = 0};
        if (shares[d] > 0 && !cut(deal, d, shares[d], parts, &deal->shards[d])) {
            return false;
        }
        can = can && (shares[d] == 0 || deal->shards[d].time_s.source != FIGURE_UNKNOWN);
    }
    if (!can || !plan_course_run(&deal->course, deal->shards)) {
        return !deal->course.is_out_of_memory;
    }
    deal->has_met = true;
    weigh(deal, best);
    for (uint32_t d = 0; d < deal->whole->input->device_count; d++) {
        if (shares[d] > 0 && !refine(deal, d, parts)) {
            return false;
        }
    }
    *ret_again = true;
    return true;
}

/* Takes the fastest device as home at first; devices without a link to it cannot take part. */
static void draw_lines(struct deal *deal, uint64_t devices)
{
    uint32_t home = PLAN_ANYWHERE;
    for (uint32_t d = 0; d < PLAN_DEVICES; d++) {
        deal->may_use[d] = (devices >> d & 1) != 0 && deal->most[d] > 0;
        deal->shards[d] = (struct plan_shard){.items = 0};
        if (deal->may_use[d]) {
            deal->fixed_s[d] = deal->begin_s[d];
            deal->item_s[d] = deal->each_s[d];
            home = home == PLAN_ANYWHERE || deal->item_s[d] < deal->item_s[home] ? d : home;
        }
    }
    for (uint32_t d = 0; d < PLAN_DEVICES; d++) {
        if (deal->may_use[d] && d != home && !carry(deal, home, d)) {
            deal->may_use[d] = false;
            deal->course.unlinked[0] = home;
            deal->course.unlinked[1] = d;
        }
    }
}

/* Tries a set of devices. Returns false when memory is short. */
static bool try_set(struct deal *deal, uint64_t devices, struct best *best)
{
    for (size_t i = 0; i < deal->tried_count; i++) {
        if (deal->tried[i] == devices) {
            return true;
        }
    }
    if (deal->tried_count == TRIES || (devices & (devices - 1)) == 0) {
        return true;
    }
    deal->tried[deal->tried_count++] = devices;
    draw_lines(deal, devices);
    bool again = true;
    for (int round = 0; round < ROUNDS && again; round++) {
        if (!deal_round(deal, best, &again)) {
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
    return plan_course_alone(input, a, b, 1, &unused_s, &kind) && kind < TOPOLOGY_NETWORK;
}

static void sort_out(struct deal *deal)
{
    const struct plan_input *input = deal->whole->input;
    for (uint32_t d = 0; d < input->device_count; d++) {
        deal->kind[d] = d;
        deal->machine[d] = d;
        for (uint32_t e = d; e-- > 0;) {
            deal->kind[d] = plan_is_same_kind(input, e, d) ? deal->kind[e] : deal->kind[d];
            deal->machine[d] =
                deal->machine[d] == d && is_near(input, e, d) ? deal->machine[e] : deal->machine[d];
        }
    }
}

/* Returns true when two devices are interchangeable, judged by their own figures. */
static bool is_alike(const struct deal *deal, uint32_t a, uint32_t b)
{
    const struct plan_device *devices = deal->whole->input->devices;
    return deal->kind[a] == deal->kind[b] && deal->machine[a] == deal->machine[b] &&
           devices[a].price_micro == devices[b].price_micro &&
           plan_is_same_figure(&devices[a].idle_w, &devices[b].idle_w);
}

/* Returns what an item adds to the objective. */
static double rate_of(const struct deal *deal, uint32_t device)
{
    const struct plan_input *input = deal->whole->input;
    double price = (double)input->devices[device].price_micro;
    double watts = input->devices[device].cost->profile->figures[FIGURE_POWER].value;
    double item_s = deal->each_s[device];
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
    bool is_limited = input->budget_micro >= 0;
    return !is_limited ? item_s : price < 0 ? INFINITY : price * item_s;
}

/* Tries all, and the best two, three, four, five, six ... in growing steps. */
static bool try_best(struct deal *deal, struct best *best)
{
    uint32_t order[PLAN_DEVICES];
    uint64_t devices = 0;
    size_t count = 0;
    for (uint32_t d = 0; d < deal->whole->input->device_count; d++) {
        if (deal->most[d] > 0) {
            size_t at = count++;
            for (; at > 0 && rate_of(deal, d) < rate_of(deal, order[at - 1]); at--) {
                order[at] = order[at - 1];
            }
            order[at] = d;
        }
    }
    size_t next = 2;
    for (size_t few = 1; few <= count; few++) {
        devices |= UINT64_C(1) << order[few - 1];
        if (few == count || few == next) {
            if (!try_set(deal, devices, best)) {
                return false;
            }
            next += few < 4 ? 1 : few / 4;
        }
    }
    return true;
}

/* Tries the devices of each machine, of each kind, and of each kind in each machine. */
static bool try_groups(struct deal *deal, struct best *best)
{
    size_t count = deal->whole->input->device_count;
    for (uint32_t d = 0; d < count; d++) {
        uint64_t near = 0;
        uint64_t same = 0;
        uint64_t alike = 0;
        for (uint32_t e = 0; e < count; e++) {
            near |= (uint64_t)(deal->machine[e] == deal->machine[d]) << e;
            same |= (uint64_t)(deal->kind[e] == deal->kind[d]) << e;
            alike |= (uint64_t)is_alike(deal, d, e) << e;
        }
        if (!try_set(deal, near, best) || !try_set(deal, same, best) ||
            !try_set(deal, alike, best)) {
            return false;
        }
    }
    return true;
}

/* Tries one device more or less of those like `device`, and all or none of them. */
static bool try_neighbours(struct deal *deal, uint32_t device, uint64_t devices, struct best *best)
{
    uint64_t alike = 0;
    uint64_t first_out = 0;
    uint64_t last_in = 0;
    for (uint32_t d = 0; d < deal->whole->input->device_count; d++) {
        uint64_t it = UINT64_C(1) << d;
        if (deal->most[d] > 0 && is_alike(deal, device, d)) {
            alike |= it;
            first_out = first_out == 0 && (devices & it) == 0 ? it : first_out;
            last_in = (devices & it) != 0 ? it : last_in;
        }
    }
    return try_set(deal, devices | first_out, best) && try_set(deal, devices & ~last_in, best) &&
           try_set(deal, devices | alike, best) && try_set(deal, devices & ~alike, best);
}

static bool try_all(struct deal *deal, struct best *best)
{
    if (!try_best(deal, best) || !try_groups(deal, best)) {
        return false;
    }
    for (uint64_t devices = 0; best->devices != devices;) {
        devices = best->devices;
        for (uint32_t d = 0; d < deal->whole->input->device_count; d++) {
            if (deal->most[d] > 0 && !try_neighbours(deal, d, devices, best)) {
                return false;
            }
        }
    }
    return true;
}

/* Tries each device alone; a division has to be better. */
static bool try_singles(struct deal *deal, struct best *best)
{
    uint32_t count = (uint32_t)deal->whole->input->device_count;
    for (uint32_t d = 0; d < count; d++) {
        memset(deal->shards, 0, sizeof deal->shards);
        if (!cut(deal, d, deal->whole->items, 1, &deal->shards[d])) {
            return false;
        }
        bool can = deal->shards[d].time_s.source != FIGURE_UNKNOWN;
        deal->single_s[d] = can ? deal->shards[d].time_s.value : INFINITY;
        if (can && plan_course_run(&deal->course, deal->shards)) {
            weigh(deal, best);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the plan */

static void fill_rows(const struct deal *deal, const struct plan_course *course, struct plan *plan,
                      uint32_t *row_of)
{
    const struct plan_case *whole = deal->whole;
    uint32_t row = 0;
    for (uint32_t d = 0; d < whole->input->device_count; d++) {
        const struct plan_shard *shard = &deal->shards[d];
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

/* Makes the plan of the deal, whose course was just run and recorded. */
static struct plan *plan_of_deal(struct deal *deal, const struct plan_outcome *outcome)
{
    const struct plan_case *whole = deal->whole;
    struct plan_course *course = &deal->course;
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
        const struct plan_shard *shard = &deal->shards[d];
        plan->sums_behind = plan->sums_behind || (shard->items > 0 && shard->meeting_count > 0 &&
                                                  shard->meetings[0].is_behind);
    }
    plan->total = *outcome;
    plan->left_out = whole->left_out;
    fill_uses(deal, plan->uses, &makespan_s);
    fill_rows(deal, course, plan, row_of);
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
static bool take(struct deal *deal, const struct best *best, struct plan_found *ret_found)
{
    memcpy(deal->shards, best->shards, sizeof deal->shards);
    ret_found->outcome = best->outcome;
    ret_found->outcome.p90_s = slow_s(deal);
    if (best->outcome.status != PLAN_OK) {
        return true;
    }
    deal->course.is_kept = true;
    if (plan_course_run(&deal->course, deal->shards)) {
        ret_found->plan = plan_of_deal(deal, &ret_found->outcome);
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

static bool search(struct deal *deal, struct best *best)
{
    const struct steps *steps = deal->whole->steps;
    for (size_t s = 0; s < steps->step_count; s++) {
        deal->brought_bytes += (double)steps->steps[s].brought_bytes / (double)deal->whole->items;
        deal->fetched_bytes += (double)steps->steps[s].fetched_bytes / (double)deal->whole->items;
    }
    sort_out(deal);
    for (uint32_t d = 0; d < deal->whole->input->device_count; d++) {
        if (!measure(deal, d)) {
            return false;
        }
    }
    return try_singles(deal, best) && try_all(deal, best);
}

/* Explains why there is no division. */
static void refuse(const struct deal *deal, const struct best *best, struct plan_outcome *outcome)
{
    const struct plan_input *input = deal->whole->input;
    const uint32_t *unlinked = deal->course.unlinked;
    if (best->devices != 0) {
        *outcome = best->outcome;
    }
    if (!deal->has_met && unlinked[0] != PLAN_ANYWHERE) {
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
                struct plan_found *ret_found)
{
    *ret_found = (struct plan_found){.plan = NULL};
    bool is_alone = of->input->device_count == 1;
    if (!plan_is_divisible(of, &ret_found->outcome) && !(is_alone && plan_items(of->input) > 1)) {
        return true;
    }
    struct plan_outcome refused = ret_found->outcome; /* unless one device works in parts */
    struct deal *deal = calloc(1, sizeof *deal);
    struct best *best = calloc(1, sizeof *best);
    struct best *chosen = calloc(1, sizeof *chosen);
    bool ok = deal != NULL && best != NULL && chosen != NULL;
    if (ok) {
        deal->whole = of;
        deal->asked = asked;
        deal->chosen = chosen;
        deal->grain = template_grain(of->input->template);
        ok = plan_course_init(&deal->course, of->input) && search(deal, best);
        if (ok && chosen->outcome.device_count > 1) {
            ok = take(deal, chosen, ret_found);
        } else if (ok && is_alone && is_in_rounds(chosen)) {
            ok = take(deal, chosen, ret_found);
        } else if (ok && is_alone) {
            ret_found->outcome = refused;
        } else if (ok) {
            refuse(deal, chosen, &ret_found->outcome);
        }
        plan_course_fini(&deal->course);
        for (size_t i = 0; i < CUTS; i++) {
            free(deal->cuts[i]);
        }
    }
    free(deal);
    free(best);
    free(chosen);
    return ok;
}
