/* This file plans stages of steps, which pipeline.h finds. Its layers are the steps, and their
 * times are lines through the times of one item and of more. Data across a cut goes over the link
 * of the cut, whatever its stage. Then each number of micro-batches is timed by the rules of
 * plan.h, and the best is taken. */
#include "planner/layout/plan_internal.h"

#include "planner/layout/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MICRO_BATCHES = 1024 };
#define FOUND_BY "stages of steps"
#define STEPS_OF_SEARCH 3e6 /* layers^2 x devices x 2^devices */

struct stage {
    uint32_t device;
    uint32_t first, count; /* steps */
    double time_s, p90_s;  /* times of a micro-batch */
    struct figure rests_on;
    struct figure energy_j;
    double in_bytes;               /* data over the cut before it */
    double fixed_bytes, one_bytes; /* weights and kept data; the rest for a micro-batch */
    bool is_streamed;
    uint32_t samples;
};

struct pipe {
    const struct plan_case *whole;
    uint32_t devices[PIPELINE_DEVICES]; /* device of each device number of pipeline.h */
    size_t device_count;
    struct stage stages[PIPELINE_DEVICES + 1]; /* the last entry marks the end */
    size_t stage_count;
    int64_t micro_batches, items; /* number of micro-batches, and items of each */
};

/* ---------------------------------------------------------------- stages */

/* Returns how well a device does: the sum over steps of the best time over its own. */
static double merit_of(const struct plan_case *of, uint32_t device)
{
    double sum = 0;
    for (size_t s = 0; s < of->steps->step_count; s++) {
        double least = INFINITY;
        for (size_t d = 0; d < of->input->device_count; d++) {
            double time_s = plan_cost_at(of, s, d)->here.time_s.value;
            least = plan_can_run(of, s, d) ? fmin(least, time_s) : least;
        }
        double own = plan_cost_at(of, s, device)->here.time_s.value;
        sum += plan_can_run(of, s, device) ? (own > 0 ? least / own : 1) : 0;
    }
    return sum;
}

/* Chooses the best devices, as many as the search can handle. */
static void choose_devices(struct pipe *pipe, const struct plan_case *one)
{
    size_t layers = one->steps->step_count;
    double merits[PLAN_DEVICES];
    bool is_taken[PLAN_DEVICES] = {false};
    for (uint32_t d = 0; d < one->input->device_count; d++) {
        merits[d] = merit_of(one, d);
    }
    pipe->device_count = 0;
    for (size_t count = 1; count <= PIPELINE_DEVICES && count <= one->input->device_count;
         count++) {
        uint32_t best = 0;
        if ((double)(layers * layers * count << count) > STEPS_OF_SEARCH && count > 2) {
            break;
        }
        while (is_taken[best]) {
            best++;
        }
        for (uint32_t d = best + 1; d < one->input->device_count; d++) {
            best = !is_taken[d] && merits[d] > merits[best] ? d : best;
        }
        is_taken[best] = true;
        pipe->devices[pipe->device_count++] = best;
    }
}

/* Returns the bytes of edges from steps before `step` to it and later steps. */
static double cut_bytes(const struct plan_case *of, size_t step)
{
    double sum = 0;
    for (size_t i = 0; i < of->steps->edge_count; i++) {
        const struct step_edge *edge = &of->steps->edges[i];
        sum += edge->from < step && edge->to >= step ? (double)edge->bytes : 0;
    }
    return sum;
}

/* Computes lines through the times of one item and of `few`. If more do not fit, one item counts
 * alone. */
static void fill_times(const struct pipe *pipe, const struct plan_case *one,
                       const struct plan_case *few, double *fixed_s, double *item_s)
{
    for (size_t s = 0; s < one->steps->step_count; s++) {
        for (size_t i = 0; i < pipe->device_count; i++) {
            uint32_t d = pipe->devices[i];
            size_t at = s * pipe->device_count + i;
            bool can = plan_can_run(one, s, d) && plan_can_run(few, s, d);
            double one_s = plan_cost_at(one, s, d)->here.time_s.value;
            double few_s = plan_cost_at(few, s, d)->here.time_s.value;
            item_s[at] = can ? fmax((few_s - one_s) / (double)(few->items - 1), 0) : INFINITY;
            fixed_s[at] = can ? fmax(one_s - item_s[at], 0) : INFINITY;
        }
    }
}

static void fill_links(const struct pipe *pipe, const struct plan_input *input, int64_t bytes,
                       double *latency_s, double *bandwidth, double *staging_s)
{
    for (size_t i = 0; i < pipe->device_count; i++) {
        for (size_t j = 0; j < pipe->device_count; j++) {
            size_t at = i * pipe->device_count + j;
            uint32_t from = input->devices[pipe->devices[i]].memory;
            uint32_t to = input->devices[pipe->devices[j]].memory;
            latency_s[at] = from == to ? 0 : INFINITY;
            bandwidth[at] = INFINITY;
            struct topology_pair pair;
            if (from != to && input->topology != NULL &&
                topology_pair(input->topology, from, to, bytes, &pair) == TOPOLOGY_OK) {
                latency_s[at] = pair.latency_s;
                bandwidth[at] = pair.bandwidth;
                staging_s[at] = pair.staging_s;
            }
        }
    }
}

/* A set shared with earlier steps of the stage is stored once. */
static void fill_shared(const struct steps *steps, bool *has_set, double *shared)
{
    for (size_t first = 0; first < steps->step_count; first++) {
        memset(has_set, 0, steps->set_count * sizeof *has_set);
        for (size_t s = first; s < steps->step_count; s++) {
            const struct step *step = &steps->steps[s];
            for (uint32_t i = step->first_set; i < step->first_set + step->set_count; i++) {
                shared[first * steps->step_count + s] += has_set[i] ? (double)steps->sets[i] : 0;
                has_set[i] = true;
            }
        }
    }
}

/* Returns false when memory is short. No stages means that none were found. */
static bool cut_stages(struct pipe *pipe, const struct plan_case *one, const struct plan_case *few)
{
    size_t layers = one->steps->step_count;
    size_t devices = pipe->device_count;
    const struct plan_input *input = one->input;
    struct pipeline found;
    double memory[PIPELINE_DEVICES];
    double most_bytes = 0;
    double *figures =
        calloc(2 * layers * devices + 3 * layers + 3 * devices * devices + layers * layers,
               sizeof *figures);
    bool *has_set = calloc(one->steps->set_count + 1, sizeof *has_set);
    if (figures == NULL || has_set == NULL) {
        free(figures);
        free(has_set);
        return false;
    }
    double *fixed_s = figures;
    double *item_s = fixed_s + layers * devices;
    double *weights = item_s + layers * devices;
    double *held = weights + layers;
    double *out = held + layers;
    double *latency_s = out + layers;
    double *bandwidth = latency_s + devices * devices;
    double *staging_s = bandwidth + devices * devices;
    double *shared = staging_s + devices * devices;
    fill_shared(one->steps, has_set, shared);
    free(has_set);
    fill_times(pipe, one, few, fixed_s, item_s);
    for (size_t s = 0; s < layers; s++) {
        weights[s] = (double)one->steps->steps[s].weight_bytes + one->own_bytes[s];
        out[s] = cut_bytes(one, s + 1);
        most_bytes = fmax(most_bytes, cut_bytes(few, s + 1));
    }
    fill_links(pipe, input, (int64_t)most_bytes, latency_s, bandwidth, staging_s);
    for (size_t i = 0; i < devices; i++) {
        const struct figure *room =
            &input->devices[pipe->devices[i]].cost->profile->figures[FIGURE_MEMORY];
        memory[i] = room->source == FIGURE_UNKNOWN ? INFINITY : room->value;
    }
    const struct pipeline_input work = {.layer_count = layers,
                                        .device_count = devices,
                                        .fixed_s = fixed_s,
                                        .item_s = item_s,
                                        .weight_bytes = weights,
                                        .shared_bytes = shared,
                                        .held_bytes = held,
                                        .out_bytes = out,
                                        .memory_bytes = memory,
                                        .latency_s = latency_s,
                                        .bandwidth = bandwidth,
                                        .staging_s = staging_s,
                                        .staging_bytes = TOPOLOGY_CHUNK,
                                        .items = (uint64_t)pipe->whole->items,
                                        .micro_batches_most = MICRO_BATCHES};
    enum pipeline_status status = pipeline_make(&work, &found);
    free(figures);
    pipe->stage_count = status == PIPELINE_OK ? found.stage_count : 0;
    for (size_t i = 0; i < pipe->stage_count; i++) {
        pipe->stages[i] = (struct stage){.device = pipe->devices[found.stages[i].device],
                                         .first = found.stages[i].first_layer,
                                         .count = found.stages[i].layer_count};
    }
    return status != PIPELINE_NO_MEMORY;
}

/* ---------------------------------------------------------------- a micro-batch */

/* Costs a stage for the micro-batch `one`. Returns false when it cannot run there. */
static bool cost_stage(const struct plan_case *one, struct stage *stage, bool *has_set)
{
    const struct steps *steps = one->steps;
    double p90_s = 0;
    bool has_p90 = true;
    double most = 0;
    struct figure sum_s = {.source = FIGURE_MEASURED};
    stage->energy_j = (struct figure){.source = FIGURE_MEASURED};
    stage->fixed_bytes = 0;
    stage->is_streamed = false;
    memset(has_set, 0, steps->set_count * sizeof *has_set);
    for (uint32_t s = stage->first; s < stage->first + stage->count; s++) {
        const struct plan_cost *cost = plan_cost_at(one, s, stage->device);
        const struct step *step = &steps->steps[s];
        if (!plan_can_run(one, s, stage->device)) {
            return false;
        }
        if (!cost->is_left_out) {
            plan_add(&sum_s, &cost->here.time_s);
            plan_add(&stage->energy_j, &cost->here.energy_j);
            p90_s += cost->here.p90_s;
            has_p90 = has_p90 && cost->here.p90_s > 0;
        }
        stage->is_streamed = stage->is_streamed || cost->must_stream;
        stage->fixed_bytes += one->own_bytes[s];
        for (uint32_t i = step->first_set; i < step->first_set + step->set_count; i++) {
            stage->fixed_bytes += has_set[i] || cost->must_stream ? 0 : (double)steps->sets[i];
            has_set[i] = true;
        }
        most =
            fmax(most, (double)step->held_bytes - one->own_bytes[s] + (double)step->working_bytes);
    }
    stage->samples = plan_samples(one, stage->first, stage->count, stage->device);
    stage->one_bytes = most;
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step_edge *edge = &steps->edges[i];
        bool is_within = edge->from >= stage->first && edge->to < stage->first + stage->count;
        stage->one_bytes += is_within ? (double)(edge->bytes - edge->set_bytes) : 0;
    }
    stage->time_s = sum_s.value;
    stage->p90_s = has_p90 ? p90_s : 0;
    stage->rests_on = sum_s;
    stage->in_bytes = stage->first == 0 ? 0 : cut_bytes(one, stage->first);
    return true;
}

/* ---------------------------------------------------------------- all micro-batches */

struct belt {
    struct pipe *pipe;
    const struct plan_input *input;
    struct topology_traffic traffic;
    double *there_s; /* arrival at a stage: [stage * micro_batches + which] */
    double finish_s[PIPELINE_DEVICES];
    int64_t begun[PIPELINE_DEVICES], ended[PIPELINE_DEVICES];
    /* Outputs: */
    double start_s[PIPELINE_DEVICES], last_s[PIPELINE_DEVICES];
    double first_use_s[PIPELINE_DEVICES], last_use_s[PIPELINE_DEVICES];
    double waiting[PIPELINE_DEVICES];                 /* most micro-batches at a stage */
    struct plan_transfer transfers[PIPELINE_DEVICES]; /* transfers of the first micro-batch */
    bool is_stuck;
};

static double *there_at(const struct belt *belt, size_t stage, int64_t which)
{
    return &belt->there_s[stage * (size_t)belt->pipe->micro_batches + (size_t)which];
}

static double duration(const struct stage *stage, bool is_slow)
{
    return is_slow ? stage->p90_s : stage->time_s;
}

static void begin_next(struct belt *belt, size_t stage, double free_s, bool is_slow)
{
    int64_t which = belt->begun[stage];
    if (which == belt->pipe->micro_batches || which > belt->ended[stage] ||
        *there_at(belt, stage, which) < 0) {
        return;
    }
    double start_s = fmax(*there_at(belt, stage, which), free_s);
    belt->finish_s[stage] = start_s + duration(&belt->pipe->stages[stage], is_slow);
    belt->start_s[stage] = which == 0 ? start_s : belt->start_s[stage];
    belt->begun[stage]++;
}

static void hand_on(struct belt *belt, size_t stage, int64_t which, double now)
{
    struct stage *stages = belt->pipe->stages;
    uint32_t from = belt->input->devices[stages[stage].device].memory;
    uint32_t to = belt->input->devices[stages[stage + 1].device].memory;
    double bytes = stages[stage + 1].in_bytes;
    struct topology_transfer route;
    *there_at(belt, stage + 1, which) = now;
    if (from == to) {
        return;
    }
    if (belt->input->topology == NULL ||
        topology_find(belt->input->topology, &belt->traffic, UINT64_C(1) << from, to,
                      (int64_t)bytes, now, &route) != TOPOLOGY_OK) {
        belt->is_stuck = true;
        return;
    }
    topology_reserve(belt->input->topology, &belt->traffic, &route);
    *there_at(belt, stage + 1, which) = route.finish_s;
    belt->last_use_s[stage] = fmax(belt->last_use_s[stage], route.finish_s);
    if (which == 0) {
        belt->first_use_s[stage + 1] = route.start_s;
        belt->transfers[stage] = (struct plan_transfer){.from = (uint32_t)stage,
                                                        .to = (uint32_t)stage + 1,
                                                        .bytes = bytes,
                                                        .kind = route.kind,
                                                        .start_s = route.start_s,
                                                        .finish_s = route.finish_s,
                                                        .link_count = route.link_count};
        memcpy(belt->transfers[stage].links, route.links, sizeof route.links);
    }
}

static void end_one(struct belt *belt, size_t stage, bool is_slow)
{
    double now = belt->finish_s[stage];
    int64_t which = belt->ended[stage]++;
    belt->last_s[stage] = now;
    belt->last_use_s[stage] = fmax(belt->last_use_s[stage], now);
    if (stage + 1 < belt->pipe->stage_count) {
        hand_on(belt, stage, which, now);
        belt->waiting[stage + 1] =
            fmax(belt->waiting[stage + 1], (double)(which + 1 - belt->ended[stage + 1]));
        begin_next(belt, stage + 1, belt->last_s[stage + 1], is_slow);
    }
    begin_next(belt, stage, now, is_slow);
}

/* Always ends the micro-batch that finishes first, among equals the furthest one. */
static bool run_belt(struct belt *belt, bool is_slow)
{
    size_t stages = belt->pipe->stage_count;
    memset(belt->traffic.free_s, 0, plan_ports(belt->input) * sizeof *belt->traffic.free_s);
    for (size_t k = 0; k < stages; k++) {
        belt->begun[k] = belt->ended[k] = 0;
        belt->start_s[k] = belt->last_s[k] = belt->last_use_s[k] = belt->first_use_s[k] = 0;
        belt->waiting[k] = 1;
        for (int64_t i = 0; i < belt->pipe->micro_batches; i++) {
            *there_at(belt, k, i) = k == 0 ? 0 : -1;
        }
    }
    begin_next(belt, 0, 0, is_slow);
    for (;;) {
        size_t first = stages;
        for (size_t k = stages; k-- > 0;) {
            bool is_running = belt->begun[k] > belt->ended[k];
            if (is_running && (first == stages || belt->finish_s[k] < belt->finish_s[first])) {
                first = k;
            }
        }
        if (first == stages) {
            return !belt->is_stuck;
        }
        end_one(belt, first, is_slow);
    }
}

/* ---------------------------------------------------------------- outcome */

static bool fill_uses(const struct belt *belt, struct plan_use uses[PLAN_DEVICES],
                      struct figure *makespan_s)
{
    const struct pipe *pipe = belt->pipe;
    double count = (double)pipe->micro_batches;
    bool fits = true;
    memset(uses, 0, PLAN_DEVICES * sizeof *uses);
    *makespan_s = (struct figure){.source = FIGURE_MEASURED};
    for (size_t k = 0; k < pipe->stage_count; k++) {
        const struct stage *stage = &pipe->stages[k];
        const struct plan_device *device = &belt->input->devices[stage->device];
        const struct figure *memory = &device->cost->profile->figures[FIGURE_MEMORY];
        bool is_last = k + 1 == pipe->stage_count;
        double out_bytes = is_last ? 0 : pipe->stages[k + 1].in_bytes;
        double leaving = is_last ? 0 : belt->waiting[k + 1];
        struct plan_use *use = &uses[stage->device];
        struct figure rests_on = stage->rests_on;
        rests_on.value = 0;
        *use = (struct plan_use){
            .row_count = 1,
            .first_s = k == 0 ? 0 : fmin(belt->first_use_s[k], belt->start_s[k]),
            .last_s = belt->last_use_s[k],
            .busy_s = count * stage->time_s,
            .bytes_in = count * stage->in_bytes,
            .bytes_out = count * out_bytes,
            .memory_bytes = stage->fixed_bytes + stage->one_bytes +
                            (belt->waiting[k] + 1) * stage->in_bytes + (leaving + 1) * out_bytes,
            .energy_j = stage->energy_j};
        use->energy_j.value *= count;
        plan_add(makespan_s, &rests_on);
        makespan_s->value = fmax(makespan_s->value, belt->last_s[k]);
        fits = fits && (memory->source == FIGURE_UNKNOWN || use->memory_bytes <= memory->value);
    }
    return fits;
}

/* Lists the waits of each stage between micro-batches. With `waits` NULL, only counts them. */
static size_t list_waits(const struct belt *belt, struct plan_wait *waits)
{
    size_t count = 0;
    for (size_t k = 0; k < belt->pipe->stage_count; k++) {
        double free_s = belt->start_s[k];
        for (int64_t i = 0; i < belt->pipe->micro_batches; i++) {
            double there_s = *there_at(belt, k, i);
            if (i > 0 && there_s > free_s) {
                if (waits != NULL) {
                    waits[count] = (struct plan_wait){(uint32_t)k, free_s, there_s};
                }
                count++;
                free_s = there_s;
            }
            free_s += duration(&belt->pipe->stages[k], false);
        }
    }
    return count;
}

static struct plan *plan_of_belt(const struct belt *belt, const struct plan_use *uses,
                                 const struct plan_outcome *outcome)
{
    const struct pipe *pipe = belt->pipe;
    size_t transfers = 0;
    for (size_t k = 0; k + 1 < pipe->stage_count; k++) {
        transfers += belt->transfers[k].link_count > 0;
    }
    struct plan *plan = plan_alloc(belt->input, pipe->stage_count, transfers);
    if (plan == NULL) {
        return NULL;
    }
    plan->wait_count = list_waits(belt, NULL);
    plan->waits = calloc(plan->wait_count + 1, sizeof *plan->waits);
    if (plan->waits == NULL) {
        plan_destroy(&plan);
        return NULL;
    }
    (void)list_waits(belt, plan->waits);
    plan->form = PLAN_PIPELINE;
    plan->found_by = FOUND_BY;
    plan->total = *outcome;
    plan->left_out = pipe->whole->left_out;
    plan->micro_batches = pipe->micro_batches;
    plan->micro_batch_items = pipe->items;
    memcpy(plan->uses, uses, belt->input->device_count * sizeof *uses);
    for (size_t k = 0; k < pipe->stage_count; k++) {
        const struct stage *stage = &pipe->stages[k];
        const struct plan_use *use = &uses[stage->device];
        double count = (double)pipe->micro_batches;
        plan->rows[k] = (struct plan_row){.device = stage->device,
                                          .first_step = stage->first,
                                          .step_count = stage->count,
                                          .items = pipe->whole->items,
                                          .start_s = belt->start_s[k],
                                          .finish_s = belt->last_s[k],
                                          .busy_s = use->busy_s,
                                          .time_s = stage->rests_on,
                                          .p90_s = count * stage->p90_s,
                                          .samples = stage->samples,
                                          .bytes_in = use->bytes_in,
                                          .energy_j = use->energy_j,
                                          .is_streamed = stage->is_streamed};
        plan->rows[k].time_s.value = use->busy_s;
    }
    size_t count = 0;
    for (size_t k = 0; k + 1 < pipe->stage_count; k++) {
        if (belt->transfers[k].link_count > 0) {
            plan->transfers[count++] = belt->transfers[k];
        }
    }
    return plan;
}

static bool has_p90(const struct pipe *pipe)
{
    bool has = true;
    for (size_t k = 0; k < pipe->stage_count; k++) {
        has = has && pipe->stages[k].p90_s > 0;
    }
    return has;
}

static double end_of(const struct belt *belt)
{
    double end_s = 0;
    for (size_t k = 0; k < belt->pipe->stage_count; k++) {
        end_s = fmax(end_s, belt->last_s[k]);
    }
    return end_s;
}

/* Keeps the pipeline in `found` if it is better. */
static bool weigh(struct belt *belt, struct layout_found *found)
{
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    struct figure makespan_s;
    double p90_s = 0;
    if (has_p90(belt->pipe)) {
        p90_s = run_belt(belt, true) ? end_of(belt) : 0;
    }
    if (!run_belt(belt, false)) {
        return true;
    }
    bool fits = fill_uses(belt, uses, &makespan_s);
    plan_sum_up(belt->input, uses, &makespan_s, &outcome);
    outcome.p90_s = p90_s;
    if (!fits) {
        return true;
    }
    if (found->outcome.makespan_s.source == FIGURE_UNKNOWN ||
        plan_outcome_is_better(belt->input, &outcome, &found->outcome)) {
        plan_destroy(&found->plan);
        found->outcome = outcome;
        if (outcome.status == PLAN_OK) {
            found->plan = plan_of_belt(belt, uses, &outcome);
            return found->plan != NULL;
        }
    }
    return true;
}

static bool try_micro_batches(struct pipe *pipe, struct belt *belt, bool *has_set,
                              struct layout_found *found)
{
    struct plan_case *one = NULL;
    if (!plan_case_share(pipe->whole, pipe->items, 1, PLAN_ANYWHERE, PLAN_AS_IT_IS, &one)) {
        return false;
    }
    bool ok = true;
    bool can = one != NULL;
    for (size_t k = 0; can && k < pipe->stage_count; k++) {
        can = cost_stage(one, &pipe->stages[k], has_set);
    }
    if (can) {
        ok = weigh(belt, found);
    }
    plan_case_destroy(&one);
    return ok;
}

/* Tries 1, 2, 4 ... micro-batches. */
static bool try_all(struct pipe *pipe, struct layout_found *found)
{
    int64_t items = pipe->whole->items;
    struct belt belt = {.pipe = pipe, .input = pipe->whole->input};
    bool *has_set = calloc(pipe->whole->steps->set_count + 1, sizeof *has_set);
    belt.traffic.free_s = calloc(plan_ports(belt.input), sizeof *belt.traffic.free_s);
    belt.there_s = calloc(PIPELINE_DEVICES * (size_t)MICRO_BATCHES, sizeof *belt.there_s);
    bool ok = has_set != NULL && belt.traffic.free_s != NULL && belt.there_s != NULL;
    for (int64_t count = 1; ok && count <= MICRO_BATCHES && count <= items; count *= 2) {
        pipe->items = items / count + (items % count != 0);
        pipe->micro_batches = items / pipe->items + (items % pipe->items != 0);
        belt.is_stuck = false;
        memset(belt.transfers, 0, sizeof belt.transfers);
        ok = try_micro_batches(pipe, &belt, has_set, found);
    }
    free(has_set);
    free(belt.traffic.free_s);
    free(belt.there_s);
    return ok;
}

static bool search(struct pipe *pipe, struct layout_found *found)
{
    int64_t items = pipe->whole->items;
    int64_t some = items / 8 < 2 ? 2 : items / 8;
    struct plan_case *one = NULL;
    struct plan_case *few = NULL;
    bool ok = plan_case_share(pipe->whole, 1, 1, PLAN_ANYWHERE, PLAN_AS_IT_IS, &one) &&
              plan_case_share(pipe->whole, some, 1, PLAN_ANYWHERE, PLAN_AS_IT_IS, &few);
    if (ok && one != NULL && few != NULL) {
        choose_devices(pipe, one);
        ok = cut_stages(pipe, one, few);
    }
    plan_case_destroy(&one);
    plan_case_destroy(&few);
    if (ok && pipe->stage_count > 1) {
        ok = try_all(pipe, found);
    }
    return ok;
}

/* Cuts the steps as they are. */
static bool cut_steps(const struct plan_case *of, struct layout_found *ret_found)
{
    *ret_found = (struct layout_found){.plan = NULL};
    struct plan_outcome *outcome = &ret_found->outcome;
    if (!plan_is_divisible(of, outcome)) {
        return true;
    }
    if (plan_has_replicas(of->input)) {
        outcome->status = PLAN_INDIVISIBLE;
        problem_set(&outcome->problem,
                    "parts of the batch have to hear of one another, as micro-batches do not");
        return true;
    }
    if (of->steps->step_count < 2 || of->steps->step_count > PIPELINE_LAYERS) {
        outcome->status = PLAN_INDIVISIBLE;
        problem_set(&outcome->problem, "%zu steps; stages are made of 2 to %d",
                    of->steps->step_count, PIPELINE_LAYERS);
        return true;
    }
    struct pipe *pipe = calloc(1, sizeof *pipe);
    if (pipe == NULL) {
        return false;
    }
    pipe->whole = of;
    bool ok = search(pipe, ret_found);
    if (ok && outcome->makespan_s.source != FIGURE_UNKNOWN) {
        plan_note(&ret_found->variants, of->input,
                  &(struct plan_variant){PLAN_PIPELINE, FOUND_BY, *outcome});
    } else if (ok) {
        outcome->status = pipe->stage_count == 1 ? PLAN_NO_GAIN : PLAN_NO_ROOM;
        problem_set(&outcome->problem, pipe->stage_count == 1
                                           ? "cut into stages, it is not sooner than on one device"
                                           : "no stages were found that run, fit and are linked");
    }
    free(pipe);
    return ok;
}

bool plan_pipeline(const struct plan_case *of, struct layout_found *ret_found)
{
    struct layout_found chain;
    if (!cut_steps(of, ret_found)) {
        return false;
    }
    if (!plan_can_chain(of) || of->has_no_chain) {
        return true;
    }
    bool ok = plan_stage_chain(of, &chain);
    if (ret_found->variants.count == 0) { /* the reason is shown beside the chain's variants */
        plan_note(&ret_found->variants, of->input,
                  &(struct plan_variant){PLAN_PIPELINE, FOUND_BY, ret_found->outcome});
    }
    for (size_t i = 0; i < ret_found->variants.count; i++) {
        plan_note(&chain.variants, of->input, &ret_found->variants.list[i]);
    }
    ret_found->variants = chain.variants;
    bool is_better =
        chain.plan != NULL
            ? ret_found->plan == NULL ||
                  plan_outcome_is_better(of->input, &chain.outcome, &ret_found->outcome)
            : ret_found->plan == NULL && (chain.outcome.makespan_s.source != FIGURE_UNKNOWN ||
                                          ret_found->outcome.status == PLAN_INDIVISIBLE);
    if (is_better) {
        plan_destroy(&ret_found->plan);
        *ret_found = chain;
    } else {
        plan_destroy(&chain.plan);
    }
    return ok;
}
