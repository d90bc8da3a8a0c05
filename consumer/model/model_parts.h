/* consumer/model/model_parts.h chooses how many parts the rows of a model's inputs are cut into, by
 * the speeds of the devices on the market.
 *
 * A device's speed is what it measured for products of float32. The work of the model is counted as
 * for a cut (model_cut.h), and planner/layout/parts.h chooses. The market deals the parts, so that
 * a device that is slower than it said gets fewer of them. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_PARTS_H
#define BOURSE_CONSUMER_MODEL_MODEL_PARTS_H

#include "consumer/client/bourse.h"
#include "formats/job.h"
#include "planner/layout/parts.h"

#include <stdbool.h>

/* A subtask takes so long beside its nodes, and a device so long before its first one. */
#define MODEL_PARTS_OVERHEAD_S 0.050
#define MODEL_PARTS_START_S 0.100
/* Bytes per second between the broker and a device. */
#define MODEL_PARTS_LINK 300.0e6

/* Sets `parts` of a job whose words name the inputs that are split. Sets how many slots it has at a
 * time, no more than its `at_most`, and what a part is expected to take, unless the job says so.
 * Devices that are too slow for a part are kept out by the job's needs. `needs` is what the devices
 * must have, or NULL. Files are relative to `folder`. The rest of the job stays as it is. Without a
 * device that says its speed there is one part, and no device in *ret_parts. Returns false with the
 * error. */
bool model_parts_choose(struct bourse *bourse, const char *needs, const char *folder,
                        struct job_file *file, struct parts *ret_parts, struct bourse_error *error);

/* Counts the work of a job that runs a model on arrays. Returns false for any other job, and when
 * the work is not known: the model or the arrays cannot be read, or a shape is open. */
bool model_parts_count(const struct job_file *file, const char *folder,
                       struct parts_work *ret_work);
/* Sets what a subtask is expected to take on the slowest device that fits the job. The expectation
 * stays as it is when the job says one, or no device says its speed. Returns false with the
 * error. */
bool model_parts_expect(struct bourse *bourse, const struct parts_work *work, struct job_file *file,
                        struct bourse_error *error);

/* The same as model_parts_choose for work that the caller has counted. */
bool model_parts_choose_for(struct bourse *bourse, const char *needs, const struct parts_work *work,
                            struct job_file *file, struct parts *ret_parts,
                            struct bourse_error *error);

#endif
