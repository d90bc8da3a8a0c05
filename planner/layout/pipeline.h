/* planner/layout/pipeline.h - layers one behind the other, cut into stages on unlike devices, and
 * items that go through in micro-batches.
 *
 * Each stage is some layers that follow one another on one device, each device has one stage at
 * most, and devices may be left out. While one micro-batch is in a stage, others are in the others,
 * and on the links between them:
 *
 *     device 2  |0 |1 |2 |3 |
 *     link       |0|1|2|3|                 time = sum of all stages and links + (micro-batches - 1) x the slowest of them
 *     device 0     |0  |1  |2  |3  |
 *
 * which is exact for alike micro-batches that wait in unbounded queues (a flow shop). Many
 * micro-batches fill the pipeline better, but each pays every layer's fixed time again; their
 * number is chosen, too.
 *
 * A stage needs its layers' weights, and what it holds of each micro-batch that has passed it and
 * is not through: with one forward, one backward in turn, as many as there are stages from it to
 * the end (Narayanan et al., "Memory-efficient pipeline-parallel DNN training", ICML 2021). What
 * does not fit is not planned.
 *
 * For each number of micro-batches, dynamic programming from the last layer to the first over sets
 * of devices finds the least sum with no stage or link above a limit, and the limit falls from one
 * best to the next (contiguous stages by dynamic programming: Narayanan et al., "PipeDream", SOSP
 * 2019). All of them are looked at, so the plan is the best there is. The time taken is about
 * layers^2 x devices x 2^devices for each limit. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PIPELINE_H
#define BOURSE_PLANNER_LAYOUT_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

enum { PIPELINE_LAYERS = 256, PIPELINE_DEVICES = 8 };

struct pipeline_input {
    size_t layer_count, device_count;
    const double *fixed_s; /* of a layer on a device, for each micro-batch: [layer * device_count +
                              device]; infinite where it cannot run */
    const double *item_s;  /* and for each item */
    const double *weight_bytes; /* of each layer */
    const double *shared_bytes; /* of a layer's weights, what a stage that begins at `first` has by
                                   then, for the layers before it: [first * layer_count + layer].
                                   NULL: no two layers share any */
    const double
        *held_bytes; /* of each layer, for each item; 0 where nothing comes back, as in inference */
    const double *out_bytes; /* for each item, from each layer to the next; of the last: unused */
    const double *memory_bytes; /* of each device; infinite: unknown, nothing is held against it */
    const double
        *latency_s; /* from device to device: [from * device_count + to]; infinite: no link */
    const double *bandwidth; /* bytes per second, > 0 */
    const double *
        staging_s; /* and, where data goes through memories of others, so much for each of the first
                      `staging_bytes`: [from * device_count + to], >= 0. NULL: it goes straight */
    double staging_bytes;
    uint64_t items;              /* >= 1 */
    uint64_t micro_batches_most; /* >= 1 */
};

struct pipeline_stage {
    uint32_t first_layer, layer_count, device;
    double time_s;     /* for a micro-batch */
    double transfer_s; /* to the next stage; 0 of the last */
    double memory_bytes;
    uint64_t in_flight; /* micro-batches held */
};

struct pipeline {
    double time_s;
    uint64_t micro_batches,
        micro_batch_items; /* the last one may have less; it is counted as if it had not */
    double slowest_s;      /* stage or link */
    double bubble;         /* share of the stages' device time in which they wait: 0 to 1 */
    double single_s;       /* of the best single device; infinite: none can do it */
    uint32_t single;
    uint32_t stage_count;
    struct pipeline_stage stages[PIPELINE_DEVICES]; /* in the order of the layers */
};

enum pipeline_status {
    PIPELINE_OK,
    PIPELINE_BAD_INPUT, /* nothing, more than the limits above, or a figure outside its range */
    PIPELINE_NOWHERE,   /* no way to cut it that runs, fits and is linked */
    PIPELINE_NO_MEMORY,
};

/* Any status but OK leaves `ret_pipeline` as it was. Of equal times the fewest micro-batches, then
 * what comes first. */
enum pipeline_status pipeline_make(const struct pipeline_input *input,
                                   struct pipeline *ret_pipeline);

#endif
