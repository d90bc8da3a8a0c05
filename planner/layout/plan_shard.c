/* This file measures the share of a batch on one device (plan_course.h). The share is made at once,
 * in the fewest parts that fit, or in more parts where the device may be taken away. */
#include "planner/layout/plan_course.h"

#include <math.h>

enum { PARTS_MOST = 4096 };

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
    if (trial != NULL && plan_try_single_device(trial, device) &&
        trial->overflow_on == PLAN_ANYWHERE) {
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

bool plan_shard_cut(const struct plan_case *whole, uint32_t device, int64_t items, int64_t parts,
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
