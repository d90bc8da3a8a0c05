/* This file computes the outcome of a chain's run (stage_chain.h). The outcome is what the devices
 * do, and the rows, transfers and waits of the plan. */
#include "planner/layout/chain/stage_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t loop_count(const struct stage_chain *chain)
{
    return chain->stage_count - chain->loop;
}

double chain_bytes_into(const struct stage_chain *chain, uint32_t k, enum step_phase phase)
{
    const struct chain_stage *stage = &chain->stages[k];
    bool is_in_loop = chain->rounds > 0 && k >= chain->loop && loop_count(chain) > 1;
    switch (phase) {
    case STEP_FORWARD:
        return k > 0 && k < chain->forward_count ? stage->forward_bytes : 0;
    case STEP_DECODE:
        return is_in_loop ? stage->round_bytes : 0;
    case STEP_BACKWARD:
        return chain->has_backward && k + 1 < chain->forward_count ? stage->backward_bytes : 0;
    case STEP_ONCE:
    case STEP_PHASES:
        break;
    }
    return 0;
}

/* Counts data to the first device of a stage, which hands it on. Data within one memory is not
 * sent. */
static void count_flow(const struct stage_chain *chain, uint32_t from, uint32_t to, double bytes,
                       struct plan_use *uses)
{
    const struct plan_device *devices = chain->one->input->devices;
    const struct chain_stage *target = &chain->stages[to];
    uint32_t source = chain->stages[from].devices[0];
    if (bytes > 0 && devices[source].memory != devices[target->devices[0]].memory) {
        uses[source].bytes_out += bytes;
        uses[target->devices[0]].bytes_in += bytes;
    }
    for (uint32_t i = 0; bytes > 0 && i < target->width; i++) {
        uses[target->devices[i]].bytes_in += i > 0 ? bytes : 0;
        uses[target->devices[i]].bytes_out += plan_team_receivers(i, target->width) * bytes;
    }
}

/* Counts data that is divided over the devices of both stages. */
static void count_parts(const struct stage_chain *chain, uint32_t from, uint32_t to, double bytes,
                        struct plan_use *uses)
{
    uint32_t parts = chain_parts(chain, from, to);
    for (uint32_t i = 0; i < parts; i++) {
        uses[chain_part(chain, from, i, parts)].bytes_out += bytes / parts;
        uses[chain_part(chain, to, i, parts)].bytes_in += bytes / parts;
    }
}

/* Counts the bytes of all micro-batches, by device. */
static void count_bytes(const struct stage_chain *chain, struct plan_use *uses)
{
    double count = (double)chain->micro_batches;
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        const struct chain_stage *stage = &chain->stages[k];
        uint32_t last = chain->stage_count - 1;
        uint32_t before = k == chain->loop ? last : k - 1; /* in the loop */
        double decode = chain_bytes_into(chain, k, STEP_DECODE);
        double back = chain_bytes_into(chain, k, STEP_BACKWARD);
        double forward = chain_bytes_into(chain, k, STEP_FORWARD);
        if (forward > 0) {
            count_flow(chain, k - 1, k, count * forward, uses);
        }
        if (back > 0) {
            count_flow(chain, k + 1, k, count * back, uses);
        }
        if (decode > 0) {
            count_flow(chain, before, k, count * (double)chain->rounds * decode, uses);
        }
        for (uint32_t to = chain->loop;
             chain->loop > 0 && k < chain->loop && to < chain->stage_count; to++) {
            count_parts(chain, k, to, count * chain_kv_bytes(chain, k, to), uses);
        }
        for (uint32_t i = 0; i < stage->width; i++) {
            uses[stage->devices[i]].bytes_in += count * stage->told_bytes;
            uses[stage->devices[i]].bytes_out += count * stage->told_bytes;
        }
    }
}

/* Returns the memory for data in and out: one item in use, one on its way. */
static double room_of(const struct stage_chain *chain, uint32_t k)
{
    const struct chain_stage *stage = &chain->stages[k];
    double forward = k + 1 < chain->forward_count ? chain->stages[k + 1].forward_bytes : 0;
    double back = k > 0 && chain->has_backward ? chain->stages[k - 1].backward_bytes : 0;
    double next =
        k + 1 < chain->stage_count && k >= chain->loop ? chain->stages[k + 1].round_bytes : 0;
    return 2 * (stage->forward_bytes + forward + back + stage->backward_bytes + stage->round_bytes +
                next);
}

static bool fill_uses(const struct chain_run *run, struct plan_use uses[PLAN_DEVICES],
                      struct figure *makespan_s)
{
    const struct stage_chain *chain = run->chain;
    const struct plan_input *input = chain->one->input;
    double count = (double)chain->micro_batches;
    bool fits = true;
    memset(uses, 0, PLAN_DEVICES * sizeof *uses);
    *makespan_s = (struct figure){.source = FIGURE_MEASURED};
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        const struct chain_stage *stage = &chain->stages[k];
        const struct figure *memory =
            &input->devices[stage->devices[0]].cost->profile->figures[FIGURE_MEMORY];
        struct plan_use *use = &uses[stage->devices[0]];
        struct figure rests_on = stage->rests_on;
        double held = chain->has_backward ? (double)run->most_held[k] : count;
        double energy_j = count * stage->energy_j.value;
        rests_on.value = 0;
        use->row_count = 1;
        use->first_s = run->first_use_s[k];
        use->last_s = run->last_use_s[k];
        use->busy_s = count * (stage->takes_s[STEP_FORWARD] + stage->takes_s[STEP_BACKWARD] +
                               (double)chain->rounds * stage->takes_s[STEP_DECODE]) +
                      stage->takes_s[STEP_ONCE];
        use->memory_bytes = stage->fixed_bytes + held * stage->held_bytes + stage->working_bytes +
                            room_of(chain, k);
        use->energy_j = stage->energy_j;
        use->energy_j.value = energy_j;
        plan_add(&use->energy_j, &stage->once_j);
        plan_add(makespan_s, &rests_on);
        fits = fits && (memory->source == FIGURE_UNKNOWN || use->memory_bytes <= memory->value);
        for (uint32_t i = 1; i < stage->width; i++) {
            uses[stage->devices[i]] = *use;
        }
    }
    count_bytes(chain, uses);
    makespan_s->value = run->makespan_s;
    return fits;
}

/* Names look like "embed, layers 1-9" and "decode: layers 71-80, head (2 of 4)". */
static void name_stage(const struct stage_chain *chain, uint32_t k, uint32_t number,
                       char ret_what[PLAN_WHAT_SIZE])
{
    const struct chain_stage *stage = &chain->stages[k];
    uint32_t last = chain->one->steps->column_count - 1;
    uint32_t end = stage->first + stage->count;
    uint32_t from = stage->first > 0 ? stage->first : 1;
    uint32_t until = end <= last ? end - 1 : last - 1;
    bool is_in_loop = chain->loop > 0 && k >= chain->loop;
    char layers[32] = "";
    char part_of[16] = "";
    const char *part = chain->loop == 0 ? "" : is_in_loop ? "decode: " : "prefill: ";
    if (from == until) {
        (void)snprintf(layers, sizeof layers, "layer %u", from);
    } else if (from < until) {
        (void)snprintf(layers, sizeof layers, "layers %u-%u", from, until);
    }
    bool has_layers = layers[0] != '\0';
    bool is_last = end == last + 1 && (is_in_loop || chain->loop == 0);
    const char *first_column = chain->one->steps->first_column;
    const char *first_text = stage->first > 0 ? "" : first_column != NULL ? first_column : "embed";
    const char *comma = stage->first == 0 && (has_layers || is_last) ? ", " : "";
    const char *last_text = !is_last && (has_layers || stage->first == 0) ? ""
                            : has_layers                                  ? ", head"
                                                                          : "head";
    if (stage->width > 1) {
        (void)snprintf(part_of, sizeof part_of, " (%u of %u)", number + 1, stage->width);
    }
    (void)snprintf(ret_what, PLAN_WHAT_SIZE, "%s%s%s%s%s%s", part, first_text, comma, layers,
                   last_text, part_of);
}

/* Returns the width of the widest team. */
static uint32_t width_of(const struct stage_chain *chain)
{
    uint32_t most = 1;
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        most = chain->stages[k].width > most ? chain->stages[k].width : most;
    }
    return most;
}

static const char *route_of(const struct stage_chain *chain)
{
    static const char *const divided[TEAM_MOST + 1] = {[2] = "layers divided over 2 devices",
                                                       [4] = "layers divided over 4 devices",
                                                       [8] = "layers divided over 8 devices"};
    uint32_t width = width_of(chain);
    return width > 1             ? divided[width]
           : chain->loop > 0     ? CHAIN_APART
           : chain->has_backward ? "stages there and back"
           : chain->rounds > 0   ? "stages around"
                                 : "stages";
}

static void fill_rows(const struct chain_run *run, uint32_t k, struct plan *plan)
{
    const struct stage_chain *chain = run->chain;
    const struct plan_input *input = chain->one->input;
    const struct chain_stage *stage = &chain->stages[k];
    for (uint32_t i = 0; i < stage->width; i++) {
        const struct plan_use *use = &plan->uses[stage->devices[i]];
        struct plan_row *row = &plan->rows[stage->first_row + i];
        *row = (struct plan_row){.device = stage->devices[i],
                                 .step_count = (uint32_t)input->steps->step_count,
                                 .items = plan_items(input),
                                 .team_size = stage->width,
                                 .team_number = i,
                                 .start_s = run->first_s[k],
                                 .finish_s = run->last_s[k],
                                 .busy_s = use->busy_s,
                                 .time_s = stage->rests_on,
                                 .samples = stage->samples,
                                 .bytes_in = use->bytes_in,
                                 .energy_j = use->energy_j,
                                 .is_widened = stage->is_widened};
        row->time_s.value = use->busy_s;
        name_stage(chain, k, i, plan->names[stage->first_row + i]);
    }
}

/* Returns the number of transfers within teams. */
static size_t told_of(const struct stage_chain *chain)
{
    size_t count = 0;
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        count += chain->stages[k].told_bytes > 0 ? chain->stages[k].width : 0;
    }
    return count;
}

static void fill_transfers(const struct chain_run *run, struct plan *plan)
{
    const struct stage_chain *chain = run->chain;
    struct plan_transfer *next = plan->transfers + run->transfer_count;
    memcpy(plan->transfers, run->transfers, run->transfer_count * sizeof *plan->transfers);
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        const struct chain_stage *stage = &chain->stages[k];
        if (stage->told_bytes > 0) {
            plan_team_transfers(chain->one->input, plan->rows, stage->first_row,
                                (double)chain->micro_batches * stage->told_bytes, next);
            next += stage->width;
        }
    }
}

static void fill_waits(const struct chain_run *run, uint32_t k, struct plan *plan)
{
    const struct chain_stage *stage = &run->chain->stages[k];
    for (uint32_t row = stage->first_row; row < stage->first_row + stage->width; row++) {
        for (size_t i = 0; i < run->gap_count; i++) {
            const struct chain_gap *gap = &run->gaps[i];
            if (gap->stage == k) {
                plan->waits[plan->wait_count++] =
                    (struct plan_wait){row, gap->from_s, gap->until_s};
            }
        }
    }
}

static struct plan *plan_of_run(const struct chain_run *run, const struct plan_use *uses,
                                const struct plan_outcome *outcome)
{
    const struct stage_chain *chain = run->chain;
    const struct plan_case *one = chain->one;
    struct plan *plan =
        plan_alloc(one->input, chain->row_count, run->transfer_count + told_of(chain));
    if (plan == NULL) {
        return NULL;
    }
    plan->waits = calloc(run->gap_count * width_of(chain) + 1, sizeof *plan->waits);
    plan->names = calloc(chain->row_count, sizeof *plan->names);
    if (plan->waits == NULL || plan->names == NULL) {
        plan_destroy(&plan);
        return NULL;
    }
    plan->form = PLAN_PIPELINE;
    plan->found_by = route_of(chain);
    plan->total = *outcome;
    plan->left_out = one->left_out;
    plan->micro_batches = chain->micro_batches;
    plan->micro_batch_items = chain->items;
    memcpy(plan->uses, uses, one->input->device_count * sizeof *uses);
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        fill_rows(run, k, plan);
        fill_waits(run, k, plan);
    }
    fill_transfers(run, plan);
    plan_sort_transfers(plan);
    return plan;
}

static bool has_slow(const struct stage_chain *chain)
{
    bool has = true;
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        double sum = 0;
        for (int p = 0; p < STEP_PHASES; p++) {
            sum += chain->stages[k].slow_s[p];
        }
        has = has && sum > 0;
    }
    return has;
}

bool chain_time(const struct stage_chain *chain, struct chain_run *run,
                struct plan_use uses[PLAN_DEVICES], struct plan_outcome *ret_outcome)
{
    struct figure makespan_s;
    if (!chain_run(run, chain, false) || !fill_uses(run, uses, &makespan_s)) {
        return false;
    }
    plan_sum_up(chain->one->input, uses, &makespan_s, ret_outcome);
    return true;
}

bool chain_weigh(const struct stage_chain *chain, struct chain_run *run, struct layout_found *found,
                 struct plan_outcome *ret_outcome)
{
    const struct plan_input *input = chain->one->input;
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    double p90_s = has_slow(chain) && chain_run(run, chain, true) ? run->makespan_s : 0;
    ret_outcome->makespan_s.source = FIGURE_UNKNOWN;
    if (!chain_time(chain, run, uses, &outcome)) {
        return !run->is_out_of_memory;
    }
    outcome.p90_s = p90_s;
    *ret_outcome = outcome;
    plan_note(&found->variants, input,
              &(struct plan_variant){PLAN_PIPELINE, route_of(chain), outcome});
    if (found->outcome.makespan_s.source == FIGURE_UNKNOWN ||
        plan_outcome_is_better(input, &outcome, &found->outcome)) {
        plan_destroy(&found->plan);
        found->outcome = outcome;
        if (outcome.status == PLAN_OK) {
            found->plan = plan_of_run(run, uses, &outcome);
            return found->plan != NULL;
        }
    }
    return true;
}
