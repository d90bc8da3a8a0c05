#include "planner/templates/steps.h"

#include <stdlib.h>
#include <string.h>

const char *steps_status_name(enum steps_status status)
{
    switch (status) {
    case STEPS_OK:
        return "OK";
    case STEPS_BAD_VALUE:
        return "BAD_VALUE";
    case STEPS_CONFLICT:
        return "CONFLICT";
    case STEPS_OVERFLOW:
        return "OVERFLOW";
    case STEPS_TOO_LARGE:
        return "TOO_LARGE";
    case STEPS_NO_MEMORY:
        return "NO_MEMORY";
    }
    return "";
}

void steps_destroy(struct steps **self)
{
    struct steps *steps = *self;
    if (steps != NULL) {
        for (size_t i = 0; i < steps->step_count; i++) {
            free(steps->steps[i].parts);
        }
        free(steps->steps);
        free(steps->edges);
        free(steps->sets);
        free(steps);
        *self = NULL;
    }
}

size_t steps_find(const struct steps *steps, const char *name)
{
    size_t i = 0;
    while (i < steps->step_count && strcmp(steps->steps[i].name, name) != 0) {
        i++;
    }
    return i;
}

/* ---------------------------------------------------------------- cost of a step */

/* The source of a sum is the worst of its terms. */
static void add_figure(struct figure *sum, const struct figure *term, double count)
{
    if (sum->source == FIGURE_UNKNOWN || term->source == FIGURE_UNKNOWN) {
        *sum = (struct figure){.source = FIGURE_UNKNOWN};
        return;
    }
    sum->value += count * term->value;
    sum->source = term->source < sum->source ? term->source : sum->source;
    sum->unverified |= term->unverified;
}

/* Checks whether the whole step fits, or its weights must be streamed at each pass. */
static enum cost_status fit(const struct cost_device *device, const struct step *step,
                            bool *ret_is_streamed, unsigned *ret_lacks)
{
    const struct figure *memory = &device->profile->figures[FIGURE_MEMORY];
    double others = (double)step->held_bytes + (double)step->working_bytes;
    *ret_is_streamed = false;
    if (memory->source == FIGURE_UNKNOWN && others + (double)step->weight_bytes > 0) {
        *ret_lacks |= COST_LACKS_MEMORY;
    }
    if (memory->source == FIGURE_UNKNOWN || others + (double)step->weight_bytes <= memory->value) {
        return COST_OK;
    }
    *ret_is_streamed = others <= memory->value && device->stream.source != FIGURE_UNKNOWN;
    return *ret_is_streamed ? COST_OK : COST_NO_MEMORY;
}

static struct figure longer(const struct figure *a, const struct figure *b)
{
    return (struct figure){.value = a->value > b->value ? a->value : b->value,
                           .source = a->source < b->source ? a->source : b->source,
                           .unverified = a->unverified || b->unverified};
}

/* Streaming overlaps with computing, so the longer of the two counts, at full load. */
static void add_stream(const struct cost_device *device, const struct step *step,
                       struct step_cost *cost)
{
    struct figure stream_s = device->stream;
    stream_s.value = (double)step->weight_bytes * (double)step->passes / device->stream.value;
    double before = cost->time_s.value;
    cost->bound_s = longer(&cost->bound_s, &stream_s);
    cost->time_s = longer(&cost->time_s, &stream_s);
    cost->energy_j.value *= before > 0 ? cost->time_s.value / before : 1;
    if (cost->p90_s > 0 && cost->p90_s < cost->time_s.value) {
        cost->p90_s = cost->time_s.value;
    }
    cost->is_streamed = true;
}

enum cost_status steps_cost(const struct cost_device *device, const struct step *step,
                            struct step_cost *ret_cost, size_t *ret_part)
{
    const struct figure nothing = {.source = FIGURE_MEASURED};
    struct step_cost sum = {.bound_s = nothing, .time_s = nothing, .energy_j = nothing};
    bool has_p90 = true;
    bool is_streamed = false;
    struct cost_device here = *device;
    enum cost_status status = fit(device, step, &is_streamed, &sum.lacks);
    /* Streaming is decided for the step, since one operation does not know the others. */
    here.stream.source = FIGURE_UNKNOWN;
    for (size_t i = 0; i < step->part_count && status == COST_OK; i++) {
        struct cost cost;
        double count = (double)step->parts[i].times;
        status = cost_predict(&here, &step->parts[i].operation, &cost);
        if (status != COST_OK) {
            if (ret_part != NULL) {
                *ret_part = i;
            }
            return status;
        }
        sum.operations += count * cost.operations;
        sum.bytes += count * cost.bytes;
        add_figure(&sum.bound_s, &cost.bound_s, count);
        add_figure(&sum.time_s, &cost.time_s, count);
        add_figure(&sum.energy_j, &cost.energy_j, count);
        sum.p90_s += count * cost.p90_s;
        has_p90 = has_p90 && cost.p90_s > 0;
        sum.is_widened = sum.is_widened || cost.is_widened;
        sum.lacks |= cost.lacks;
    }
    if (status != COST_OK) {
        return status;
    }
    sum.p90_s = has_p90 ? sum.p90_s : 0;
    if (is_streamed) {
        add_stream(device, step, &sum);
    }
    *ret_cost = sum;
    return COST_OK;
}
