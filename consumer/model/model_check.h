/* consumer/model/model_check.h compares the files of a job with the inputs of its model, before
 * anything is sent or held. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_CHECK_H
#define BOURSE_CONSUMER_MODEL_MODEL_CHECK_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"

#include "formats/onnx/onnx_words.h"

#include <stdbool.h>
#include <stdint.h>

struct model_array {
    enum onnx_type type;
    uint32_t rank;
    int64_t dims[ONNX_RANK_MOST];
};

/* Reads the type and the dims of the array in an input's file. Returns false with the problem. */
bool model_check_array(const struct onnx_words_file *input, const struct input_file *file,
                       struct model_array *ret_array, struct problem *ret_problem);
/* Returns the file of that name in the work folder, or NULL. */
const struct input_file *model_check_find(const struct input_list *list, struct onnx_span name);

/* Checks a job of a model without tasks, whose files are found. Every input of the model is given
 * and no other, every output is one of the model, and each file of an input has the type, the dims
 * and the size that the model asks for; with `each`, each of the files. Files that only a
 * placeholder names are checked where they run. Returns false with the problem. */
bool model_check_job(const struct bourse_job *job, struct problem *ret_problem);

#endif
