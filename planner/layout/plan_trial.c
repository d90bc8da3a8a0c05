/* This file times a trial, which has a device for each step, and checks its memory. */
#include "planner/layout/plan_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HOLDS_OF_EDGE = 4, HOLDS_OF_STEP = 2 };

struct plan_trial *plan_trial_create(const struct plan_case *of)
{
    size_t steps = of->steps->step_count;
    size_t edges = of->steps->edge_count;
    struct plan_trial *trial = calloc(1, sizeof *trial);
    if (trial == NULL) {
        return NULL;
    }
    trial->of = of;
    trial->aims = of->input;
    trial->on = calloc(steps, sizeof *trial->on);
    trial->sequence = calloc(steps, sizeof *trial->sequence);
    trial->start = calloc(steps, sizeof *trial->start);
    trial->finish = calloc(steps, sizeof *trial->finish);
    trial->transfers = calloc(edges + steps + 1, sizeof *trial->transfers);
    trial->traffic.free_s = calloc(plan_ports(of->input), sizeof *trial->traffic.free_s);
    trial->holds = calloc(HOLDS_OF_EDGE * edges + HOLDS_OF_STEP * steps, sizeof *trial->holds);
    trial->after = calloc(steps, sizeof *trial->after);
    trial->missing = calloc(steps, sizeof *trial->missing);
    trial->arrived = calloc(steps, sizeof *trial->arrived);
    trial->has_set = calloc(of->steps->set_count + 1, sizeof *trial->has_set);
    if (trial->on == NULL || trial->sequence == NULL || trial->start == NULL ||
        trial->finish == NULL || trial->transfers == NULL || trial->traffic.free_s == NULL ||
        trial->holds == NULL || trial->after == NULL || trial->missing == NULL ||
        trial->arrived == NULL || trial->has_set == NULL) {
        plan_trial_destroy(&trial);
        return NULL;
    }
    for (uint32_t s = 0; s < steps; s++) {
        trial->sequence[s] = s;
    }
    return trial;
}

void plan_trial_destroy(struct plan_trial **self)
{
    struct plan_trial *trial = *self;
    if (trial != NULL) {
        free(trial->on);
        free(trial->sequence);
        free(trial->start);
        free(trial->finish);
        free(trial->transfers);
        free(trial->traffic.free_s);
        free(trial->holds);
        free(trial->after);
        free(trial->missing);
        free(trial->arrived);
        free(trial->has_set);
        free(trial);
        *self = NULL;
    }
}

void plan_trial_copy(struct plan_trial *to, const struct plan_trial *from)
{
    size_t steps = from->of->steps->step_count;
    assert(to->of == from->of);
    memcpy(to->on, from->on, steps * sizeof *to->on);
    memcpy(to->sequence, from->sequence, steps * sizeof *to->sequence);
    memcpy(to->start, from->start, steps * sizeof *to->start);
    memcpy(to->finish, from->finish, steps * sizeof *to->finish);
    memcpy(to->transfers, from->transfers, from->transfer_count * sizeof *to->transfers);
    memcpy(to->streams, from->streams, sizeof to->streams);
    memcpy(to->uses, from->uses, sizeof to->uses);
    to->is_slow = from->is_slow;
    to->transfer_count = from->transfer_count;
    to->outcome = from->outcome;
    to->overflow_bytes = from->overflow_bytes;
    to->overflow_on = from->overflow_on;
}

/* ---------------------------------------------------------------- times */

struct run {
    struct plan_trial *trial;
    uint32_t next[PLAN_DEVICES];    /* next step of each device */
    uint32_t running[PLAN_DEVICES]; /* running step, or PLAN_ANYWHERE */
    double free_s[PLAN_DEVICES];
    bool is_stuck; /* an edge has no path */
};

static double duration(const struct plan_trial *trial, uint32_t step)
{
    const struct plan_figures *figures = plan_figures_of(trial, step);
    return trial->is_slow ? figures->p90_s : figures->time_s.value;
}

/* Starts the next step of the device, once the arrival of all its inputs is known. */
static void begin_next(struct run *run, uint32_t device)
{
    struct plan_trial *trial = run->trial;
    uint32_t step = run->next[device];
    if (run->running[device] != PLAN_ANYWHERE || step == PLAN_ANYWHERE ||
        trial->missing[step] > 0) {
        return;
    }
    trial->start[step] = fmax(trial->arrived[step], run->free_s[device]);
    trial->finish[step] = trial->start[step] + duration(trial, step);
    run->running[device] = step;
    run->next[device] = trial->after[step];
}

/* Returns the arrival time. */
static double carry(struct run *run, uint32_t from, uint32_t to, double bytes)
{
    struct plan_trial *trial = run->trial;
    const struct plan_input *input = trial->of->input;
    const struct topology *topology = input->topology;
    uint32_t source = input->devices[trial->on[from]].memory;
    uint32_t target = input->devices[trial->on[to]].memory;
    double now = trial->finish[from];
    struct topology_transfer route;
    if (source == target) {
        return now;
    }
    if (topology == NULL || topology_find(topology, &trial->traffic, UINT64_C(1) << source, target,
                                          (int64_t)bytes, now, &route) != TOPOLOGY_OK) {
        run->is_stuck = true;
        return now;
    }
    topology_reserve(topology, &trial->traffic, &route);
    struct plan_transfer *transfer = &trial->transfers[trial->transfer_count++];
    *transfer = (struct plan_transfer){.from = from,
                                       .to = to,
                                       .bytes = bytes,
                                       .kind = route.kind,
                                       .start_s = route.start_s,
                                       .finish_s = route.finish_s,
                                       .link_count = route.link_count};
    memcpy(transfer->links, route.links, sizeof transfer->links);
    return route.finish_s;
}

static void end_step(struct run *run, uint32_t step)
{
    struct plan_trial *trial = run->trial;
    const struct plan_case *of = trial->of;
    uint32_t device = trial->on[step];
    run->running[device] = PLAN_ANYWHERE;
    run->free_s[device] = trial->finish[step];
    for (uint32_t i = of->out_first[step]; i < of->out_first[step + 1]; i++) {
        uint32_t to = of->out[i].step;
        double there =
            trial->on[to] == device ? trial->finish[step] : carry(run, step, to, of->out[i].bytes);
        if (to < step) { /* an earlier step is done, and waits for nothing */
            continue;
        }
        trial->arrived[to] = fmax(trial->arrived[to], there);
        trial->missing[to]--;
        begin_next(run, trial->on[to]);
    }
    begin_next(run, device);
}

static void line_up(struct run *run)
{
    struct plan_trial *trial = run->trial;
    const struct plan_case *of = trial->of;
    for (size_t d = 0; d < of->input->device_count; d++) {
        run->next[d] = PLAN_ANYWHERE;
        run->running[d] = PLAN_ANYWHERE;
    }
    for (size_t i = of->steps->step_count; i-- > 0;) {
        uint32_t step = trial->sequence[i];
        uint32_t device = trial->on[step];
        trial->after[step] = run->next[device];
        run->next[device] = step;
        trial->missing[step] = of->in_count[step];
        trial->arrived[step] = 0;
    }
    memset(trial->traffic.free_s, 0, plan_ports(trial->of->input) * sizeof *trial->traffic.free_s);
    trial->transfer_count = 0;
}

static bool ends_before(const struct plan_trial *trial, uint32_t a, uint32_t b)
{
    double left = trial->finish[a];
    double right = trial->finish[b];
    return left < right || (left == right && a < b);
}

/* Always ends the running step that finishes first, among equals the first one. */
static bool time_steps(struct plan_trial *trial)
{
    struct run run = {.trial = trial};
    size_t devices = trial->of->input->device_count;
    line_up(&run);
    for (uint32_t d = 0; d < devices; d++) {
        begin_next(&run, d);
    }
    for (;;) {
        uint32_t first = PLAN_ANYWHERE;
        for (size_t d = 0; d < devices; d++) {
            uint32_t step = run.running[d];
            bool is_running = step != PLAN_ANYWHERE;
            if (is_running && (first == PLAN_ANYWHERE || ends_before(trial, step, first))) {
                first = step;
            }
        }
        if (first == PLAN_ANYWHERE) {
            return !run.is_stuck;
        }
        end_step(&run, first);
    }
}

/* ---------------------------------------------------------------- memory */

static void hold(struct plan_trial *trial, uint32_t device, double from_s, double until_s,
                 double bytes)
{
    if (until_s > from_s && bytes > 0) {
        trial->holds[trial->hold_count++] = (struct plan_hold){device, from_s, bytes};
        trial->holds[trial->hold_count++] = (struct plan_hold){device, until_s, -bytes};
    }
}

/* Bytes that are freed at a moment go before bytes that are added. */
static int by_time(const void *left, const void *right)
{
    const struct plan_hold *a = left;
    const struct plan_hold *b = right;
    if (a->at_s != b->at_s) {
        return a->at_s < b->at_s ? -1 : 1;
    }
    return (a->bytes > 0) - (b->bytes > 0);
}

/* Returns the held bytes of an existing arc between two steps. Arcs are sorted by their target. */
static double held_between(const struct plan_case *of, uint32_t from, uint32_t to)
{
    uint32_t first = of->out_first[from];
    uint32_t end = of->out_first[from + 1];
    while (end - first > 1) {
        uint32_t middle = first + (end - first) / 2;
        *(of->out[middle].step <= to ? &first : &end) = middle;
    }
    assert(of->out[first].step == to);
    return of->out[first].held;
}

/* Adds the memory of edges beyond the steps at their ends. There is one transfer at most between
 * two steps. */
static void hold_edges(struct plan_trial *trial)
{
    const struct plan_case *of = trial->of;
    for (uint32_t s = 0; s < of->steps->step_count; s++) {
        for (uint32_t i = of->out_first[s]; i < of->out_first[s + 1]; i++) {
            uint32_t to = of->out[i].step;
            bool is_there = to > s && of->input->devices[trial->on[s]].memory ==
                                          of->input->devices[trial->on[to]].memory;
            if (is_there) {
                hold(trial, trial->on[s], trial->finish[s], trial->start[to], of->out[i].held);
            }
        }
    }
    for (size_t i = 0; i < trial->transfer_count; i++) {
        const struct plan_transfer *transfer = &trial->transfers[i];
        if (transfer->to < transfer->from) { /* into existing weights */
            continue;
        }
        double bytes = held_between(of, transfer->from, transfer->to);
        hold(trial, trial->on[transfer->from], trial->finish[transfer->from], transfer->finish_s,
             bytes);
        hold(trial, trial->on[transfer->to], transfer->start_s, trial->start[transfer->to], bytes);
    }
}

/* Returns the bytes of weights, each set once, and of data that steps keep all the time. */
static double resident_bytes(struct plan_trial *trial, uint32_t device, bool with_weights)
{
    const struct steps *steps = trial->of->steps;
    double sum = 0;
    memset(trial->has_set, 0, steps->set_count * sizeof *trial->has_set);
    for (size_t s = 0; s < steps->step_count; s++) {
        const struct step *step = &steps->steps[s];
        if (trial->on[s] != device) {
            continue;
        }
        sum += trial->of->own_bytes[s];
        for (uint32_t i = step->first_set; with_weights && i < step->first_set + step->set_count;
             i++) {
            sum += trial->has_set[i] ? 0 : (double)steps->sets[i];
            trial->has_set[i] = true;
        }
    }
    return sum;
}

/* Keeps the holds of devices whose sum of holds may not fit. For other devices the sum serves as
 * the peak. Few trials are shown, and those are computed exactly. */
static void leave_tight(struct plan_trial *trial, double peaks[PLAN_DEVICES])
{
    const struct plan_input *input = trial->of->input;
    double sums[PLAN_DEVICES] = {0};
    bool is_tight[PLAN_DEVICES] = {false};
    size_t left = 0;
    for (size_t i = 0; i < trial->hold_count; i++) {
        sums[trial->holds[i].device] += fmax(trial->holds[i].bytes, 0);
    }
    for (uint32_t d = 0; d < input->device_count; d++) {
        const struct figure *memory = &input->devices[d].cost->profile->figures[FIGURE_MEMORY];
        is_tight[d] = memory->source != FIGURE_UNKNOWN && sums[d] > 0 &&
                      sums[d] + resident_bytes(trial, d, !trial->streams[d]) > memory->value;
        peaks[d] = is_tight[d] ? 0 : sums[d];
    }
    for (size_t i = 0; i < trial->hold_count; i++) {
        if (is_tight[trial->holds[i].device]) {
            trial->holds[left++] = trial->holds[i];
        }
    }
    trial->hold_count = left;
}

/* Finds the most bytes on each device beside those that are always there. */
static void find_peaks(struct plan_trial *trial, double peaks[PLAN_DEVICES])
{
    const struct plan_case *of = trial->of;
    double now[PLAN_DEVICES] = {0};
    trial->hold_count = 0;
    hold_edges(trial);
    for (uint32_t s = 0; s < of->steps->step_count; s++) {
        const struct step *step = &of->steps->steps[s];
        hold(trial, trial->on[s], trial->start[s], trial->finish[s],
             (double)step->held_bytes - of->own_bytes[s] + (double)step->working_bytes);
    }
    if (!trial->is_exact) {
        leave_tight(trial, peaks);
    }
    qsort(trial->holds, trial->hold_count, sizeof *trial->holds, by_time);
    for (size_t i = 0; i < trial->hold_count; i++) {
        uint32_t device = trial->holds[i].device;
        now[device] += trial->holds[i].bytes;
        peaks[device] = fmax(peaks[device], now[device]);
    }
}

/* Returns true when more weights have to be streamed than before. */
static bool check_memory(struct plan_trial *trial)
{
    const struct plan_input *input = trial->of->input;
    double peaks[PLAN_DEVICES] = {0};
    bool is_used[PLAN_DEVICES] = {false};
    bool must_stream = false;
    find_peaks(trial, peaks);
    for (size_t s = 0; s < trial->of->steps->step_count; s++) {
        is_used[trial->on[s]] = true;
    }
    trial->overflow_bytes = 0;
    trial->overflow_on = PLAN_ANYWHERE;
    for (uint32_t d = 0; d < input->device_count; d++) {
        const struct figure *memory = &input->devices[d].cost->profile->figures[FIGURE_MEMORY];
        double need = is_used[d] ? peaks[d] + resident_bytes(trial, d, !trial->streams[d]) : 0;
        trial->uses[d].memory_bytes = need;
        if (memory->source == FIGURE_UNKNOWN || need <= memory->value) {
            continue;
        }
        double without = peaks[d] + resident_bytes(trial, d, false);
        if (!trial->streams[d] && input->devices[d].cost->stream.source != FIGURE_UNKNOWN &&
            without <= memory->value) {
            trial->streams[d] = true;
            must_stream = true;
        } else {
            trial->overflow_bytes += need - memory->value;
            trial->overflow_on = d;
        }
    }
    return must_stream;
}

/* ---------------------------------------------------------------- outcome */

static void lease(struct plan_use *use, double first_s, double last_s)
{
    use->first_s = fmin(use->first_s, first_s);
    use->last_s = fmax(use->last_s, last_s);
}

static struct figure fill_uses(struct plan_trial *trial)
{
    const struct plan_case *of = trial->of;
    struct figure makespan_s = {.source = FIGURE_MEASURED};
    for (size_t d = 0; d < of->input->device_count; d++) {
        trial->uses[d] = (struct plan_use){.first_s = INFINITY,
                                           .memory_bytes = trial->uses[d].memory_bytes,
                                           .energy_j = {.source = FIGURE_MEASURED}};
    }
    for (uint32_t s = 0; s < of->steps->step_count; s++) {
        struct plan_use *use = &trial->uses[trial->on[s]];
        const struct plan_figures *figures = plan_figures_of(trial, s);
        struct figure ends_s = {.source = figures->time_s.source,
                                .unverified = figures->time_s.unverified};
        use->row_count++;
        use->busy_s += trial->finish[s] - trial->start[s];
        lease(use, trial->start[s], trial->finish[s]);
        if (!plan_cost_at(of, s, trial->on[s])->is_left_out) {
            plan_add(&use->energy_j, &figures->energy_j);
            plan_add(&makespan_s, &ends_s);
        }
        makespan_s.value = fmax(makespan_s.value, trial->finish[s]);
    }
    for (size_t i = 0; i < trial->transfer_count; i++) {
        const struct plan_transfer *transfer = &trial->transfers[i];
        struct plan_use *from = &trial->uses[trial->on[transfer->from]];
        struct plan_use *to = &trial->uses[trial->on[transfer->to]];
        from->bytes_out += transfer->bytes;
        to->bytes_in += transfer->bytes;
        lease(from, transfer->start_s, transfer->finish_s);
        lease(to, transfer->start_s, transfer->finish_s);
        makespan_s.value = fmax(makespan_s.value, transfer->finish_s);
    }
    return makespan_s;
}

bool plan_try(struct plan_trial *trial)
{
    const struct plan_case *of = trial->of;
    trial->outcome.makespan_s = (struct figure){.source = FIGURE_UNKNOWN};
    memset(trial->streams, 0, sizeof trial->streams);
    for (size_t s = 0; s < of->steps->step_count; s++) {
        if (!plan_can_run(of, s, trial->on[s])) {
            return false;
        }
    }
    do { /* each time at least one device more streams */
        if (!time_steps(trial)) {
            return false;
        }
    } while (check_memory(trial));
    struct figure makespan_s = fill_uses(trial);
    plan_sum_up(trial->aims, trial->uses, &makespan_s, &trial->outcome);
    if (trial->overflow_on != PLAN_ANYWHERE) {
        trial->outcome.status = PLAN_NO_ROOM;
    }
    return true;
}

double plan_try_p90(struct plan_trial *trial)
{
    double makespan_s = 0;
    for (size_t s = 0; s < trial->of->steps->step_count; s++) {
        if (!plan_cost_at(trial->of, s, trial->on[s])->is_left_out &&
            !(plan_figures_of(trial, s)->p90_s > 0)) {
            return 0;
        }
    }
    trial->is_slow = true;
    bool ok = plan_try(trial);
    makespan_s = ok ? trial->outcome.makespan_s.value : 0;
    trial->is_slow = false;
    ok = plan_try(trial);
    assert(ok || makespan_s == 0);
    return makespan_s;
}
