#include "consumer/command/model/train_show.h"

#include "base/text.h"

#include <inttypes.h>

void train_show(FILE *to, const struct bourse_job *job)
{
    struct train_summary summary;
    if (train_job_summary(job, &summary)) {
        const int64_t batch = summary.rows / summary.batches;
        (void)fprintf(to,
                      "  %-12s  %" PRIu32 " step%s from step %" PRIu32 " on, %" PRId64
                      " rows each in %" PRIu32 " part%s, %" PRId64 " weights\n",
                      "training", summary.steps, text_plural(summary.steps), summary.first_step + 1,
                      batch, summary.parts, text_plural(summary.parts), summary.weights);
    }
}

void train_add_json(json_t *value, const struct bourse_job *job)
{
    struct train_summary summary;
    if (train_job_summary(job, &summary)) {
        (void)json_object_set_new(
            value, "training",
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "first_step",
                      (json_int_t)summary.first_step + 1, "steps", (json_int_t)summary.steps,
                      "parts", (json_int_t)summary.parts, "batches", (json_int_t)summary.batches,
                      "rows", (json_int_t)summary.rows, "weights", (json_int_t)summary.weights));
    }
}
