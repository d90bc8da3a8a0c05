/* consumer/model/model_generate.h makes a job of a language model complete, and refuses what cannot
 * work before anything is sent or held.
 *
 * A person names a model and prompts. The tokenizer, the places that the model knows, and the
 * tokens that end a text lie beside the model: in tokenizer.json, config.json and
 * generation_config.json. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_GENERATE_H
#define BOURSE_CONSUMER_MODEL_MODEL_GENERATE_H

#include "base/problem.h"
#include "formats/job.h"

#include <stdbool.h>

/* Settles a job whose words are those of generate_words.h; any other job stays as it is. Adds the
 * model, its weights and the tokenizer to `files`, the text's files to `outputs`, and to `run` what
 * config.json says and the words do not. The model must be a decoder with a past, its vocabulary
 * that of the tokenizer, and each prompt shorter than the model's context. Paths are relative to
 * `folder`. Lines of a file that share steps of the model (-b) become one subtask with the file.
 * Returns false with the problem; the job is then of no use. */
bool model_generate_settle(struct job_file *file, const char *folder, struct problem *ret_problem);

#endif
