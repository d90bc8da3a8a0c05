/* This file makes the shape of a case (plan_internal.h), which are its arcs by step, and an order
 * that frees data early. */
#include "planner/layout/plan_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool alloc_case(struct plan_case *of)
{
    size_t steps = of->steps->step_count;
    of->costs = calloc(steps * of->input->device_count, sizeof *of->costs);
    of->own_bytes = calloc(steps, sizeof *of->own_bytes);
    of->out_first = calloc(steps + 1, sizeof *of->out_first);
    of->out = calloc(of->steps->edge_count + steps + 1, sizeof *of->out);
    of->in_count = calloc(steps, sizeof *of->in_count);
    of->lean = calloc(steps, sizeof *of->lean);
    return of->costs != NULL && of->own_bytes != NULL && of->out_first != NULL && of->out != NULL &&
           of->in_count != NULL && of->lean != NULL;
}

void plan_case_destroy(struct plan_case **self)
{
    struct plan_case *of = *self;
    if (of != NULL) {
        steps_destroy(&of->owned);
        free(of->costs);
        free(of->own_bytes);
        free(of->out_first);
        free(of->out);
        free(of->in_count);
        free(of->lean);
        free(of);
        *self = NULL;
    }
}

static int by_step(const void *left, const void *right)
{
    const struct plan_arc *a = left;
    const struct plan_arc *b = right;
    return a->step < b->step ? -1 : a->step > b->step;
}

/* Sorts arcs by the step that they leave, and finds what each step keeps beside them. */
static void connect(struct plan_case *of)
{
    const struct steps *steps = of->steps;
    for (size_t s = 0; s < steps->step_count; s++) {
        of->own_bytes[s] = (double)steps->steps[s].held_bytes;
    }
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step_edge *edge = &steps->edges[i];
        assert(edge->from < edge->to && edge->to < steps->step_count);
        of->out_first[edge->from + 1]++;
        of->in_count[edge->to]++;
        of->own_bytes[edge->from] -= (double)(edge->bytes - edge->set_bytes);
        of->own_bytes[edge->to] -= (double)(edge->bytes - edge->set_bytes);
    }
    for (size_t s = 0; s < steps->step_count; s++) {
        assert(steps->steps[s].renewed_by == 0 || steps->steps[s].renewed_by > s);
        of->out_first[steps->steps[s].renewed_by + 1] += steps->steps[s].renewed_by > 0;
    }
    for (size_t s = 0; s < steps->step_count; s++) {
        of->out_first[s + 1] += of->out_first[s];
        of->own_bytes[s] = fmax(of->own_bytes[s], 0);
    }
    for (size_t i = steps->edge_count; i-- > 0;) { /* each row is filled from its end */
        const struct step_edge *edge = &steps->edges[i];
        of->out[--of->out_first[edge->from + 1]] =
            (struct plan_arc){.step = edge->to,
                              .bytes = (double)edge->bytes,
                              .held = (double)(edge->bytes - edge->set_bytes)};
    }
    uint32_t count = (uint32_t)steps->edge_count;
    for (uint32_t s = 0; s < steps->step_count; s++) {
        const struct step *step = &steps->steps[s];
        if (step->renewed_by > 0) {
            of->out[--of->out_first[step->renewed_by + 1]] =
                (struct plan_arc){.step = s, .bytes = (double)step->renewed_bytes};
            count++;
        }
    }
    for (size_t s = 0; s < steps->step_count; s++) { /* ends where the next began to be filled */
        of->out_first[s] = of->out_first[s + 1];
    }
    of->out_first[steps->step_count] = count;
    for (size_t s = 0; s < steps->step_count; s++) {
        qsort(&of->out[of->out_first[s]], of->out_first[s + 1] - of->out_first[s], sizeof *of->out,
              by_step);
    }
}

/* `waits` counts the arcs that each step still waits for. `growth` is the change of the bytes in
 * edges when the step is done. */
static void order_lean(struct plan_case *of, uint32_t *waits, double *growth)
{
    size_t steps = of->steps->step_count;
    memcpy(waits, of->in_count, steps * sizeof *waits);
    for (size_t i = 0; i < of->steps->edge_count; i++) {
        const struct step_edge *edge = &of->steps->edges[i];
        double held = (double)(edge->bytes - edge->set_bytes);
        growth[edge->from] += held;
        growth[edge->to] -= held;
    }
    for (size_t i = 0; i < steps; i++) {
        size_t next = steps;
        for (size_t s = 0; s < steps; s++) {
            bool is_ready = waits[s] == 0;
            next = is_ready && (next == steps || growth[s] < growth[next]) ? s : next;
        }
        assert(next < steps); /* edges lead from earlier steps to later ones */
        of->lean[i] = (uint32_t)next;
        waits[next] = UINT32_MAX;
        for (uint32_t k = of->out_first[next]; k < of->out_first[next + 1]; k++) {
            waits[of->out[k].step] -= of->out[k].step > next;
        }
    }
}

static bool find_lean(struct plan_case *of)
{
    assert(of->steps->step_count > 0);
    uint32_t *waits = calloc(of->steps->step_count, sizeof *waits);
    double *growth = calloc(of->steps->step_count, sizeof *growth);
    bool ok = waits != NULL && growth != NULL;
    if (ok) {
        order_lean(of, waits, growth);
    }
    free(waits);
    free(growth);
    return ok;
}

bool plan_case_shape(struct plan_case *of)
{
    if (!alloc_case(of)) {
        return false;
    }
    connect(of);
    return find_lean(of);
}
