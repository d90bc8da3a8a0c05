/* This file cuts layers into stages on two cores, for items that go through in micro-batches. */
#include "bench/planner_reality/parts.h"

#include <math.h>

enum { LAYERS_MOST = STAGES_COLUMNS };

/* Cuts the layers for micro-batches of `items`, and keeps the cut in `best` if it ends sooner. */
static void try_cut(const struct line *line, const struct calibration *calibration,
                    struct wire_speed speed, uint32_t items, struct cut *best)
{
    static const uint32_t counts[CORES] = {1, 1};
    static const double memory_bytes[CORES] = {INFINITY, INFINITY};
    static const double nothing[LAYERS_MOST * CORES] = {0};
    const double hop_s = speed.latency_s + line->item_bytes * (double)items / speed.bytes_per_s;
    const double link_s[CORES * CORES] = {0, hop_s, hop_s, 0};
    double time_s[LAYERS_MOST * CORES];
    for (uint32_t i = 0; i < line->layer_count * CORES; i++) {
        const struct piece piece = line->layers[i / CORES];
        time_s[i] = items * calibration_seconds(calibration, i % CORES, piece);
    }
    struct cut cut = {.items = items, .micro_batches = (line->items + items - 1) / items};
    const struct stages_input input = {.column_count = line->layer_count,
                                       .group_count = CORES,
                                       .counts = counts,
                                       .time_s = time_s,
                                       .fixed_bytes = nothing,
                                       .held_bytes = nothing,
                                       .working_bytes = nothing,
                                       .memory_bytes = memory_bytes,
                                       .link_s = link_s,
                                       .micro_batches = cut.micro_batches};
    struct stages_search *search = NULL;
    double limit_s = 0;
    const bool is_cut = stages_create(&input, &search) == STAGES_OK &&
                        stages_least(search, &limit_s) == STAGES_OK &&
                        stages_find(search, limit_s) == STAGES_OK &&
                        stages_take(search, (1U << CORES) - 1, &cut.stages);
    stages_destroy(&search);
    if (!is_cut) {
        return;
    }
    double slowest_s = hop_s;
    cut.time_s = hop_s;
    for (uint32_t k = 0; k < CORES; k++) {
        const struct stages_stage *stage = &cut.stages.stages[k];
        for (uint32_t i = stage->first; i < stage->first + stage->count; i++) {
            cut.stage_s[k] += time_s[i * CORES + stage->group];
        }
        cut.time_s += cut.stage_s[k];
        slowest_s = fmax(slowest_s, cut.stage_s[k]);
    }
    cut.time_s += (cut.micro_batches - 1) * slowest_s;
    if (best->micro_batches == 0 || cut.time_s < best->time_s) {
        *best = cut;
    }
}

bool cut_line(const struct line *line, const struct calibration *calibration,
              struct wire_speed speed, struct cut *ret_cut)
{
    double all_s[CORES] = {0};
    *ret_cut = (struct cut){.micro_batches = 0};
    for (uint32_t items = 1; line->layer_count <= LAYERS_MOST && items <= line->items; items++) {
        try_cut(line, calibration, speed, items, ret_cut);
    }
    for (uint32_t i = 0; i < line->layer_count * CORES; i++) {
        const struct piece piece = line->layers[i / CORES];
        all_s[i % CORES] += line->items * calibration_seconds(calibration, i % CORES, piece);
    }
    ret_cut->single = all_s[1] < all_s[0];
    ret_cut->single_s = all_s[ret_cut->single];
    return ret_cut->micro_batches > 0;
}
