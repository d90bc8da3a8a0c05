#include "planner/layout/pipeline.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Least sum of all stages and links from a layer on, with `set` as the devices used from there. If
 * `device` is in `set`, the stage at this layer is on it. Otherwise `device` has the stage before,
 * and the link from it counts, too. */
struct route {
    double sum;      /* infinite: impossible */
    uint32_t layers; /* layers of the stage that begins here, if the device is in the set */
    uint32_t next;   /* device of that stage, if the device is not in the set */
};

struct search {
    const struct pipeline_input *input;
    uint64_t micro_batches;
    double items;         /* items of a micro-batch */
    double limit;         /* stages and links take less than this */
    struct route *routes; /* see route_at */
};

static struct route *route_at(const struct search *search, size_t layer, unsigned set,
                              size_t device)
{
    size_t devices = search->input->device_count;
    return &search->routes[((layer << devices) + set) * devices + device];
}

/* ---------------------------------------------------------------- input */

static bool all_between(const double *values, size_t count, double least, double most)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        ok = ok && values[i] >= least && values[i] <= most; /* false for a NaN */
    }
    return ok;
}

static bool is_good(const struct pipeline_input *input)
{
    const double most = 1e18;
    size_t layers = input->layer_count;
    size_t devices = input->device_count;
    return layers >= 1 && layers <= PIPELINE_LAYERS && devices >= 1 &&
           devices <= PIPELINE_DEVICES && input->items >= 1 && input->micro_batches_most >= 1 &&
           all_between(input->fixed_s, layers * devices, 0, INFINITY) &&
           all_between(input->item_s, layers * devices, 0, INFINITY) &&
           all_between(input->weight_bytes, layers, 0, most) &&
           (input->shared_bytes == NULL ||
            all_between(input->shared_bytes, layers * layers, 0, most)) &&
           all_between(input->held_bytes, layers, 0, most) &&
           all_between(input->out_bytes, layers, 0, most) &&
           all_between(input->memory_bytes, devices, 0, INFINITY) &&
           all_between(input->latency_s, devices * devices, 0, INFINITY) &&
           all_between(input->bandwidth, devices * devices, 1e-12, INFINITY) &&
           (input->staging_s == NULL ||
            (all_between(input->staging_s, devices * devices, 0, most) &&
             all_between(&input->staging_bytes, 1, 0, most)));
}

/* ---------------------------------------------------------------- least sum below the limit */

static unsigned count_of(unsigned set)
{
    unsigned count = 0;
    for (; set != 0; set &= set - 1) {
        count++;
    }
    return count;
}

static uint64_t in_flight_of(const struct search *search, unsigned set)
{
    unsigned stages = count_of(set); /* stages from this one to the end */
    return search->micro_batches < stages ? search->micro_batches : stages;
}

static double layer_time(const struct search *search, size_t layer, size_t device)
{
    size_t at = layer * search->input->device_count + device;
    return search->input->fixed_s[at] + search->items * search->input->item_s[at];
}

/* Returns what a layer adds to the memory of the stage that begins at `first`. */
static double layer_bytes(const struct pipeline_input *input, size_t first, size_t layer,
                          double held_items)
{
    double shared =
        input->shared_bytes == NULL ? 0 : input->shared_bytes[first * input->layer_count + layer];
    return input->weight_bytes[layer] - shared + held_items * input->held_bytes[layer];
}

static double link_time(const struct search *search, size_t layer, size_t from, size_t to)
{
    const struct pipeline_input *input = search->input;
    size_t at = from * input->device_count + to;
    double bytes = search->items * input->out_bytes[layer];
    double staged_s =
        input->staging_s == NULL ? 0 : input->staging_s[at] * fmin(bytes, input->staging_bytes);
    return input->latency_s[at] + bytes / input->bandwidth[at] + staged_s;
}

/* Returns the best stage that begins at `layer` on `device`. */
static struct route best_stage(const struct search *search, size_t layer, unsigned set,
                               size_t device)
{
    const struct pipeline_input *input = search->input;
    struct route best = {.sum = INFINITY};
    double held_items = (double)in_flight_of(search, set) * search->items;
    double time = 0;
    double memory = 0;
    for (size_t end = layer + 1; end <= input->layer_count; end++) {
        time += layer_time(search, end - 1, device);
        memory += layer_bytes(input, layer, end - 1, held_items);
        if (!(time < search->limit) || memory > input->memory_bytes[device]) {
            break; /* more layers take more of both */
        }
        double sum = time + route_at(search, end, set & ~(1u << device), device)->sum;
        if (sum < best.sum) {
            best = (struct route){.sum = sum, .layers = (uint32_t)(end - layer)};
        }
    }
    return best;
}

/* Returns the best next device, when the layer before is on `device`, which is not in the set. */
static struct route best_link(const struct search *search, size_t layer, unsigned set,
                              size_t device)
{
    struct route best = {.sum = INFINITY};
    for (uint32_t next = 0; next < search->input->device_count; next++) {
        if ((set >> next & 1) != 0) {
            double link = link_time(search, layer - 1, device, next);
            double sum = link + route_at(search, layer, set, next)->sum;
            if (link < search->limit && sum < best.sum) {
                best = (struct route){.sum = sum, .next = next};
            }
        }
    }
    return best;
}

/* Sets go in rising order, so a set without one of its devices comes earlier. */
static void find_routes(struct search *search)
{
    const struct pipeline_input *input = search->input;
    size_t layers = input->layer_count;
    for (unsigned set = 0; set < 1u << input->device_count; set++) {
        for (size_t layer = 0; layer <= layers; layer++) {
            for (size_t device = 0; device < input->device_count; device++) {
                bool is_end = layer == layers;
                struct route route = {.sum = is_end && set == 0 ? 0 : INFINITY};
                if (!is_end && (set >> device & 1) != 0) {
                    route = best_stage(search, layer, set, device);
                }
                *route_at(search, layer, set, device) = route;
            }
            for (size_t device = 0; layer > 0 && layer < layers && device < input->device_count;
                 device++) {
                if ((set >> device & 1) == 0) {
                    *route_at(search, layer, set, device) = best_link(search, layer, set, device);
                }
            }
        }
    }
}

/* ---------------------------------------------------------------- reading the plan */

static void read_stages(const struct search *search, unsigned set, size_t device,
                        struct pipeline *ret_pipeline)
{
    const struct pipeline_input *input = search->input;
    size_t layer = 0;
    ret_pipeline->stage_count = 0;
    ret_pipeline->slowest_s = 0;
    while (layer < input->layer_count) {
        const struct route *route = route_at(search, layer, set, device);
        struct pipeline_stage stage = {.first_layer = (uint32_t)layer,
                                       .layer_count = route->layers,
                                       .device = (uint32_t)device,
                                       .in_flight = in_flight_of(search, set)};
        for (size_t end = layer + route->layers; layer < end; layer++) {
            stage.time_s += layer_time(search, layer, device);
            stage.memory_bytes += layer_bytes(input, stage.first_layer, layer,
                                              (double)stage.in_flight * search->items);
        }
        set &= ~(1u << device);
        if (layer < input->layer_count) {
            uint32_t next = route_at(search, layer, set, device)->next;
            stage.transfer_s = link_time(search, layer - 1, device, next);
            device = next;
        }
        ret_pipeline->slowest_s =
            fmax(ret_pipeline->slowest_s, fmax(stage.time_s, stage.transfer_s));
        assert(ret_pipeline->stage_count < PIPELINE_DEVICES);
        ret_pipeline->stages[ret_pipeline->stage_count++] = stage;
    }
}

/* Finds the least sum below the limit. Returns false when there is none. */
static bool solve(struct search *search, struct pipeline *ret_pipeline, double *ret_sum)
{
    unsigned best_set = 0;
    size_t best_device = 0;
    double least = INFINITY;
    find_routes(search);
    for (unsigned set = 1; set < 1u << search->input->device_count; set++) {
        for (size_t device = 0; device < search->input->device_count; device++) {
            double sum = route_at(search, 0, set, device)->sum;
            if ((set >> device & 1) != 0 && sum < least) {
                least = sum;
                best_set = set;
                best_device = device;
            }
        }
    }
    if (!(least < INFINITY)) {
        return false;
    }
    read_stages(search, best_set, best_device, ret_pipeline);
    *ret_sum = least;
    return true;
}

static double busy_of(const struct pipeline *pipeline)
{
    double busy = 0;
    for (uint32_t i = 0; i < pipeline->stage_count; i++) {
        busy += pipeline->stages[i].time_s;
    }
    return busy * (double)pipeline->micro_batches;
}

/* No plan has a slowest stage faster than the slowest layer on its best device. */
static double least_slowest(const struct search *search)
{
    double slowest = 0;
    for (size_t layer = 0; layer < search->input->layer_count; layer++) {
        double least = INFINITY;
        for (size_t device = 0; device < search->input->device_count; device++) {
            least = fmin(least, layer_time(search, layer, device));
        }
        slowest = fmax(slowest, least);
    }
    return slowest;
}

/* Tries the optimum of each limit, from no limit down, while it could beat `best`. */
static void search_limits(struct search *search, struct pipeline *best)
{
    double others = (double)(search->micro_batches - 1);
    double floor = least_slowest(search);
    struct pipeline now = *best;
    double sum = 0;
    search->limit = INFINITY;
    while (solve(search, &now, &sum)) {
        now.time_s = sum + others * now.slowest_s;
        now.micro_batches = search->micro_batches;
        now.micro_batch_items = (uint64_t)search->items;
        now.bubble = 1 - busy_of(&now) / (now.stage_count * now.time_s);
        if (now.time_s < best->time_s) {
            *best = now;
        }
        if (now.slowest_s <= floor || sum + others * floor >= best->time_s) {
            break; /* a lower limit only makes the sum grow */
        }
        search->limit = now.slowest_s;
    }
}

/* A single device takes all items at once, unless only fewer fit. More micro-batches would pay
 * fixed times again. */
static void find_single(struct search *search, struct pipeline *best)
{
    const struct pipeline_input *input = search->input;
    for (uint32_t device = 0; device < input->device_count; device++) {
        double time = 0;
        double memory = 0;
        for (size_t layer = 0; layer < input->layer_count; layer++) {
            time += layer_time(search, layer, device);
            memory += layer_bytes(input, 0, layer, search->items);
        }
        time *= (double)search->micro_batches;
        if (memory <= input->memory_bytes[device] && time < best->single_s) {
            best->single_s = time;
            best->single = device;
        }
    }
}

enum pipeline_status pipeline_make(const struct pipeline_input *input,
                                   struct pipeline *ret_pipeline)
{
    if (!is_good(input)) {
        return PIPELINE_BAD_INPUT;
    }
    struct search search = {.input = input};
    struct pipeline best = {.time_s = INFINITY, .single_s = INFINITY};
    size_t count = ((input->layer_count + 1) << input->device_count) * input->device_count;
    search.routes = calloc(count, sizeof *search.routes);
    if (search.routes == NULL) {
        return PIPELINE_NO_MEMORY;
    }
    uint64_t most =
        input->micro_batches_most < input->items ? input->micro_batches_most : input->items;
    for (uint64_t number = 1;; number = number <= most / 2 ? 2 * number : most) {
        search.micro_batches = number;
        uint64_t items = input->items / number + (input->items % number != 0);
        search.items = (double)items;
        search_limits(&search, &best);
        find_single(&search, &best);
        if (number == most) {
            break;
        }
    }
    free(search.routes);
    if (!(best.time_s < INFINITY)) {
        return PIPELINE_NOWHERE;
    }
    *ret_pipeline = best;
    return PIPELINE_OK;
}
