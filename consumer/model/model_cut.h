/* consumer/model/model_cut.h chooses where a model is cut into stages.
 *
 * Each node counts with the work that model_work.h says, on a core of a usual server; a node whose
 * work is not known counts with the bytes that it reads and writes. The stages are then level on
 * equal devices. What crosses at a cut goes over the broker, at the speed of a usual link. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_CUT_H
#define BOURSE_CONSUMER_MODEL_MODEL_CUT_H

#include "formats/limits.h"
#include "formats/onnx/onnx_shapes.h"

#include <stdbool.h>

/* The core and the link: operations and bytes per second. */
#define MODEL_CUT_OPERATIONS 20.0e9
#define MODEL_CUT_MEMORY 10.0e9
#define MODEL_CUT_LINK 300.0e6

struct model_cut {
    uint32_t *stage_of; /* by node; owned */
    double time_s[FORMAT_STAGES];
    double slowest_s, crossing_s; /* as in planner/layout/cuts.h */
};

/* Chooses the cuts for so many stages. Returns false, and says in `ret_problem` why, when the model
 * has fewer places for cuts. model_cut_fini frees what the call made. */
bool model_cut_choose(const struct onnx_model *model, const struct onnx_shapes *shapes,
                      uint32_t stages, struct model_cut *ret_cut, struct problem *ret_problem);
void model_cut_fini(struct model_cut *cut);

/* Returns how long all nodes take together on that core. */
double model_cut_time_s(const struct onnx_model *model, const struct onnx_shapes *shapes);

/* Returns true when a value can go from stage to stage as a file: its type is one of .npy files,
 * and its name can stand in the words of a run. */
bool model_cut_crosses(const struct onnx_model *model, const struct onnx_shapes *shapes,
                       uint32_t value);

#endif
