/* consumer/model/model_stages.h makes a job of tasks out of a run of a model in stages.
 *
 *     rows 0 to 3   stage-1.0 -> stage-2.0 -> stage-3.0 -> y   part 0
 *     rows 4 to 7   stage-1.1 -> stage-2.1 -> stage-3.1 -> y   part 1
 *                   device A     device B     device C
 *
 * Each stage is a model of its own, which is cut out of the whole one (formats/onnx/onnx_cut.h),
 * and has its own slots. So its weights go to the devices of these slots, once to each, and the
 * model stays open there. With parts, the parts follow one another from stage to stage. What
 * crosses goes over the broker, as files of other tasks do. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_STAGES_H
#define BOURSE_CONSUMER_MODEL_MODEL_STAGES_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"
#include "formats/onnx/onnx_words.h"

#include <stdbool.h>

struct model_stages;

/* Makes the tasks of a job whose words model_job_settle has completed. `words` are those that its
 * file had, with paths. The inputs are compared with the model here. The job's own words stay as
 * they are, but say part 0: they name the outputs for model_join. Returns false with the
 * problem. */
bool model_stages_settle(struct bourse_job *job, const char *folder, const struct onnx_words *words,
                         struct problem *ret_problem);
void model_stages_destroy(struct model_stages **self);

/* Appends the model of a task's stage to the job's own files; does nothing for other tasks. */
bool model_stages_add(struct bourse_job *job, size_t task, struct problem *ret_problem);

/* A model_stage says what a stage was planned to be. */
struct model_stage {
    uint32_t nodes;
    uint64_t weight_bytes;
    /* Bytes of one part that other stages make and this one takes, and that it leaves to them. */
    uint64_t taken_bytes, left_bytes;
    double time_s; /* of one part, by the estimate of model_cut.h */
};
/* Returns how many stages the job has; 0: none. */
uint32_t model_stages_count(const struct bourse_job *job);
/* Returns a stage of the job, from 0. */
struct model_stage model_stages_at(const struct bourse_job *job, uint32_t stage);

#endif
