#include "consumer/command/model/stages_show.h"

#include "base/text.h"
#include "consumer/command/cell.h"
#include "consumer/model/model_stages.h"

#include <inttypes.h>

void stages_show(FILE *to, const struct bourse_job *job)
{
    const uint32_t count = model_stages_count(job);
    for (uint32_t i = 0; i < count; i++) {
        const struct model_stage stage = model_stages_at(job, i);
        (void)fprintf(to, "  %-12s  %" PRIu32 ": %" PRIu32 " node%s, %s of weights, about %s",
                      i == 0 ? "stages" : "", i + 1, stage.nodes, text_plural(stage.nodes),
                      cell_bytes(stage.weight_bytes),
                      cell_duration_ns((int64_t)(stage.time_s * (double)NS_PER_S)));
        if (stage.taken_bytes > 0) {
            (void)fprintf(to, ", takes %s", cell_bytes(stage.taken_bytes));
        }
        if (stage.left_bytes > 0) {
            (void)fprintf(to, ", leaves %s", cell_bytes(stage.left_bytes));
        }
        (void)fputc('\n', to);
    }
}

void stages_add_json(json_t *value, const struct bourse_job *job)
{
    const uint32_t count = model_stages_count(job);
    json_t *list = count > 0 ? json_array() : NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct model_stage stage = model_stages_at(job, i);
        (void)json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:I, s:I}", "nodes",
                                                    (json_int_t)stage.nodes, "weight_bytes",
                                                    (json_int_t)stage.weight_bytes, "taken_bytes",
                                                    (json_int_t)stage.taken_bytes, "left_bytes",
                                                    (json_int_t)stage.left_bytes, "expect_ns",
                                                    (json_int_t)(stage.time_s * (double)NS_PER_S)));
    }
    if (list != NULL) {
        (void)json_object_set_new(value, "stages", list);
    }
}
