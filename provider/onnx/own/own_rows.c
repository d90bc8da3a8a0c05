#include "provider/onnx/own/own_rows.h"

#include "provider/onnx/own/own_parallel.h"
#include "provider/onnx/own/own_walk.h"

struct job {
    struct own_walk walk;
    void (*compute)(const struct own_row *row);
    const uint8_t *a, *b;
    uint8_t *to;
    int64_t size, result_size; /* of an element */
};

static struct own_row row_at(const struct job *job, const struct own_walk *walk, int64_t row)
{
    return (struct own_row){.a = job->a + walk->at[0] * job->size,
                            .b = job->b + walk->at[1] * job->size,
                            .a_step = walk->step[0],
                            .b_step = walk->step[1],
                            .to = job->to + row * walk->length * job->result_size,
                            .count = walk->length};
}

static void work_rows(void *context, int64_t first, int64_t last)
{
    const struct job *job = context;
    struct own_walk walk = job->walk;
    for (int64_t row = first; row < last; row++) {
        own_walk_seek(&walk, row);
        const struct own_row each = row_at(job, &walk, row);
        job->compute(&each);
    }
}

/* One long row is cut by elements. */
static void work_one(void *context, int64_t first, int64_t last)
{
    const struct job *job = context;
    struct own_row row = row_at(job, &job->walk, 0);
    row.a = (const uint8_t *)row.a + first * row.a_step * job->size;
    row.b = (const uint8_t *)row.b + first * row.b_step * job->size;
    row.to = (uint8_t *)row.to + first * job->result_size;
    row.count = last - first;
    job->compute(&row);
}

void own_rows(struct own_call *call, const struct own_tensor *a, const struct own_tensor *b,
              struct own_tensor *to, void (*compute)(const struct own_row *row))
{
    struct job job = {.walk = own_walk_over(to->rank, to->dims),
                      .compute = compute,
                      .a = a->at,
                      .b = b->at,
                      .to = to->to,
                      .size = onnx_type_bytes(a->type),
                      .result_size = onnx_type_bytes(to->type)};
    own_walk_operand(&job.walk, 0, a);
    own_walk_operand(&job.walk, 1, b);
    own_walk_ready(&job.walk);
    if (job.walk.rows == 1) {
        own_parallel(call->threads, job.walk.length, own_parallel_least(1), work_one, &job);
    } else {
        own_parallel(call->threads, job.walk.rows, own_parallel_least(job.walk.length), work_rows,
                     &job);
    }
}
