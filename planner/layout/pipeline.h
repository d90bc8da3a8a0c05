/* The pipeline cuts consecutive layers into stages on unlike devices; items go through in
 * micro-batches.
 *
 * Each stage is a run of consecutive layers on one device. Each device has one stage at most, and
 * devices may be left out. While one micro-batch is in a stage, others are in the other stages and
 * on the links between:
 *
 *    device 2  |0 |1 |2 |3 |
 *    link       |0|1|2|3|                 time = sum of all stages and links
 *    device 0     |0  |1  |2  |3  |              + (micro-batches - 1) x the slowest of them
 *
 * This is exact for equal micro-batches that wait in unbounded queues (a flow shop). Many
 * micro-batches fill the pipeline better, but each pays every layer's fixed time again. Their
 * number is chosen, too.
 *
 * A stage needs the weights of its layers, and what it holds of each micro-batch in flight. With
 * one forward, one backward in turn, there are as many in flight as stages from this one to the end
 * (Narayanan et al., "Memory-efficient pipeline-parallel DNN training", ICML 2021). A stage
 * that does not fit is not planned.
 *
 * For each number of micro-batches, dynamic programming runs from the last layer to the first, over
 * sets of devices. It finds the least sum in which no stage or link exceeds a limit. The limit
 * falls from one optimum to the next (contiguous stages by dynamic programming: Narayanan et al.,
 * "PipeDream", SOSP 2019). All limits are tried, so the plan is optimal. The time is about layers^2
 * x devices x 2^devices for each limit. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_PIPELINE_H
#define BOURSE_PLANNER_LAYOUT_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

enum { PIPELINE_LAYERS = 256, PIPELINE_DEVICES = 8 };

struct pipeline_input {
    size_t layer_count, device_count;
    /* Time of a layer on a device for each micro-batch: [layer * device_count + device]. It is
     * infinite where the layer cannot run. */
    const double *fixed_s;
    /* Time of a layer on a device for each item, in addition. */
    const double *item_s;
    const double *weight_bytes; /* weights of each layer */
    /* Weights of a layer that a stage beginning at `first` already has for earlier layers: [first *
     * layer_count + layer]. NULL means that no two layers share weights. */
    const double *shared_bytes;
    /* Bytes that each layer holds for each item; 0 without a backward pass, as in inference. */
    const double *held_bytes;
    /* Bytes for each item from each layer to the next; the last entry is unused. */
    const double *out_bytes;
    const double *memory_bytes; /* memory of each device; infinite: unknown, and not checked */
    /* Latency between devices: [from * device_count + to]; infinite means no link. */
    const double *latency_s;
    const double *bandwidth; /* bytes per second, > 0 */
    /* Extra time per byte for the first `staging_bytes`, where data goes through other memories:
     * [from * device_count + to], >= 0. NULL means that all paths are direct. */
    const double *staging_s;
    double staging_bytes;
    uint64_t items;              /* >= 1 */
    uint64_t micro_batches_most; /* >= 1 */
};

struct pipeline_stage {
    uint32_t first_layer, layer_count, device;
    double time_s;     /* time of a micro-batch */
    double transfer_s; /* transfer to the next stage; 0 for the last stage */
    double memory_bytes;
    uint64_t in_flight; /* micro-batches held */
};

struct pipeline {
    double time_s;
    /* Number of micro-batches, and items of each. The last one may have fewer; it counts as if it
     * were full. */
    uint64_t micro_batches, micro_batch_items;
    double slowest_s; /* slowest stage or link */
    double bubble;    /* share of the stages' device time spent waiting: 0 to 1 */
    double single_s;  /* time of the best single device; infinite: none can do it */
    uint32_t single;
    uint32_t stage_count;
    struct pipeline_stage stages[PIPELINE_DEVICES]; /* sorted by layer */
};

enum pipeline_status {
    PIPELINE_OK,
    PIPELINE_BAD_INPUT, /* an empty input, one above the limits, or a figure outside its range */
    PIPELINE_NOWHERE,   /* no cut runs, fits and is linked */
    PIPELINE_NO_MEMORY,
};

/* Computes the best pipeline. Among equal times, the fewest micro-batches win, then the first
 * found. Any status but OK leaves `ret_pipeline` as it was. */
enum pipeline_status pipeline_make(const struct pipeline_input *input,
                                   struct pipeline *ret_pipeline);

#endif
