/* This file computes the figures of a chain's columns (stage_chain.h) for a micro-batch. They are
 * times, energy and memory on each group of devices, and data and routes between columns. */
#include "planner/layout/chain/stage_chain.h"

#include <stdlib.h>
#include <string.h>

bool chain_can_run(const struct plan_case *one, size_t step, uint32_t device)
{
    return plan_can_run(one, step, device) && !plan_cost_at(one, step, device)->must_stream;
}

static void add_times(struct chain_cuts *cuts, size_t s)
{
    const struct step *step = &cuts->ones[0]->steps->steps[s];
    struct chain_figures *figures = cuts->figures;
    for (size_t g = 0; g < cuts->group_count; g++) {
        const struct plan_case *one = chain_one(cuts, g);
        uint32_t device = cuts->groups[g].devices[0];
        const struct plan_cost *cost = plan_cost_at(one, s, device);
        bool is_once = step->phase == STEP_ONCE;
        double *takes_s = &figures->takes_s[step->phase][step->column][g];
        if (!chain_can_run(one, s, device)) {
            *takes_s = INFINITY;
        } else if (!cost->is_left_out) {
            *takes_s += cost->here.time_s.value;
            figures->energy_j[step->column][g] += cuts->groups[g].width *
                                                  cost->here.energy_j.value /
                                                  (is_once ? (double)cuts->micro_batches : 1);
        }
    }
}

/* Adds sets that no earlier step of the column, or of its phase, has. */
static void add_sets(struct chain_cuts *cuts, size_t g, const struct step *step, uint8_t *seen)
{
    const struct steps *steps = chain_one(cuts, g)->steps;
    struct chain_figures *figures = cuts->figures;
    int part = step->phase == STEP_DECODE;
    for (uint32_t i = step->first_set; i < step->first_set + step->set_count; i++) {
        double bytes = (double)steps->sets[i];
        figures->all_bytes[step->column][g] += seen[i] == 0 ? bytes : 0;
        figures->fixed_bytes[part][step->column][g] += (seen[i] >> part & 1) == 0 ? bytes : 0;
        seen[i] = (uint8_t)(seen[i] | 1 << part);
    }
}

static void add_memory(struct chain_cuts *cuts, size_t g, size_t s)
{
    const struct plan_case *one = chain_one(cuts, g);
    const struct step *step = &one->steps->steps[s];
    struct chain_figures *figures = cuts->figures;
    int part = step->phase == STEP_DECODE;
    double working = (double)step->working_bytes;
    figures->fixed_bytes[part][step->column][g] += one->own_bytes[s];
    figures->all_bytes[step->column][g] += one->own_bytes[s];
    if (step->phase == STEP_FORWARD || step->phase == STEP_DECODE) {
        figures->held_bytes[part][step->column][g] +=
            fmax((double)step->held_bytes - one->own_bytes[s], 0);
    } else {
        working += (double)step->held_bytes;
    }
    figures->working_bytes[part][step->column][g] =
        fmax(figures->working_bytes[part][step->column][g], working);
}

/* Data within a column takes memory there. */
static void add_within(struct chain_cuts *cuts, size_t g)
{
    const struct steps *steps = chain_one(cuts, g)->steps;
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step *from = &steps->steps[steps->edges[i].from];
        const struct step *to = &steps->steps[steps->edges[i].to];
        double own = (double)(steps->edges[i].bytes - steps->edges[i].set_bytes);
        int part = from->phase == STEP_DECODE;
        if (from->column == to->column && from->phase == to->phase && to->phase != STEP_ONCE) {
            cuts->figures->working_bytes[part][from->column][g] += own;
        }
    }
}

/* Adds the bytes of an edge, by the columns and phases of its ends. */
static void add_edge(struct chain_cuts *cuts, const struct step_edge *edge)
{
    const struct step *from = &cuts->ones[0]->steps->steps[edge->from];
    const struct step *to = &cuts->ones[0]->steps->steps[edge->to];
    struct chain_figures *figures = cuts->figures;
    double bytes = (double)edge->bytes;
    bool leaves = from->phase == STEP_FORWARD && to->phase == STEP_DECODE;
    if (leaves && from->column != to->column) {
        figures->start_bytes += bytes;
    } else if (leaves) {
        figures->kv_bytes[from->column] += bytes;
    } else if (to->phase == STEP_BACKWARD && from->column > to->column) {
        for (uint32_t c = to->column; c < from->column; c++) {
            figures->backward_bytes[c] += bytes;
        }
    } else if (from->phase == to->phase && from->column < to->column) {
        double *into = to->phase == STEP_DECODE ? figures->round_bytes : figures->forward_bytes;
        for (uint32_t c = from->column + 1u; c <= to->column; c++) {
            into[c] += to->phase == STEP_DECODE ? bytes / (double)cuts->rounds : bytes;
        }
    }
}

/* Adds memory for data at both ends of a stage and between its columns: one item on its way, and
 * one in use. */
static void add_room(struct chain_cuts *cuts)
{
    struct chain_figures *figures = cuts->figures;
    for (size_t c = 0; c < cuts->columns; c++) {
        bool is_last = c + 1 == cuts->columns;
        double forward = figures->forward_bytes[c] + (is_last ? 0 : figures->forward_bytes[c + 1]);
        double decode = figures->round_bytes[c] + (is_last ? 0 : figures->round_bytes[c + 1]);
        double back = figures->backward_bytes[c] + (c > 0 ? figures->backward_bytes[c - 1] : 0);
        for (size_t g = 0; g < cuts->group_count; g++) {
            figures->working_bytes[0][c][g] += 4 * forward + 4 * back;
            figures->working_bytes[1][c][g] += 4 * decode;
        }
    }
}

void chain_fold(struct chain_cuts *cuts, struct steps *steps)
{
    cuts->rounds = steps->rounds == 1 ? 0 : steps->rounds;
    if (steps->rounds == 1) {
        for (size_t s = 0; s < steps->step_count; s++) {
            struct step *step = &steps->steps[s];
            step->phase = step->phase == STEP_DECODE ? STEP_FORWARD : step->phase;
        }
    }
}

/* Computes routes for the largest cut, without other traffic, since cuts are similar. */
static void fill_routes(const struct chain_cuts *cuts, const double *into,
                        struct chain_routes *routes)
{
    const struct plan_input *input = cuts->whole->input;
    double most = 0;
    for (size_t c = 0; c < cuts->columns; c++) {
        most = fmax(most, into[c]);
    }
    for (size_t i = 0; i < cuts->group_count; i++) {
        for (size_t j = 0; j < cuts->group_count; j++) {
            const struct chain_group *to = &cuts->groups[j];
            uint32_t source = input->devices[cuts->groups[i].devices[0]].memory;
            uint32_t other = i == j && to->count > 1 ? to->width : 0;
            uint32_t target = input->devices[to->devices[other]].memory;
            struct topology_transfer route;
            bool can = source != target && input->topology != NULL &&
                       topology_find(input->topology, NULL, UINT64_C(1) << source, target,
                                     (int64_t)ceil(most), 0, &route) == TOPOLOGY_OK;
            routes->takes_s[i][j] = source == target ? 0 : can ? route.finish_s : INFINITY;
        }
    }
}

/* Fills in the memory of each device of the group. */
static void fill_memory(struct chain_cuts *cuts, size_t g, uint8_t *seen)
{
    const struct steps *steps = chain_one(cuts, g)->steps;
    for (uint32_t c = 0; c < steps->column_count; c++) {
        memset(seen, 0, steps->set_count * sizeof *seen);
        for (size_t s = 0; s < steps->step_count; s++) {
            if (steps->steps[s].column == c) {
                add_sets(cuts, g, &steps->steps[s], seen);
                add_memory(cuts, g, s);
            }
        }
    }
    add_within(cuts, g);
}

bool chain_fill_figures(struct chain_cuts *cuts)
{
    const struct steps *steps = cuts->ones[0]->steps;
    uint8_t *seen = calloc(steps->set_count + 1, sizeof *seen);
    if (seen == NULL) {
        return false;
    }
    memset(cuts->figures, 0, sizeof *cuts->figures);
    cuts->columns = steps->column_count;
    cuts->has_backward = false;
    for (size_t s = 0; s < steps->step_count; s++) {
        add_times(cuts, s);
        cuts->has_backward = cuts->has_backward || steps->steps[s].phase == STEP_BACKWARD;
    }
    for (size_t g = 0; g < cuts->group_count; g++) {
        fill_memory(cuts, g, seen);
    }
    for (size_t i = 0; i < steps->edge_count; i++) {
        add_edge(cuts, &steps->edges[i]);
    }
    add_room(cuts);
    fill_routes(cuts, cuts->figures->forward_bytes, &cuts->routes[0]);
    fill_routes(cuts, cuts->figures->round_bytes, &cuts->routes[1]);
    free(seen);
    return true;
}
