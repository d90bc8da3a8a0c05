#include "provider/onnx/own/own_copy.h"

#include "provider/onnx/own/own_parallel.h"
#include "provider/onnx/own/own_walk.h"

#include <string.h>

#define COPY(element)                                                                              \
    for (int64_t i = 0; i < count; i++) {                                                          \
        ((element *)to)[i * to_step] = ((const element *)from)[i * from_step];                     \
    }

void own_copy_row(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t count,
                  int64_t size)
{
    if (count <= 0) {
        return;
    }
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)(count * size));
        return;
    }
    switch (size) {
    case 1:
        COPY(uint8_t)
        break;
    case 2:
        COPY(uint16_t)
        break;
    case 4:
        COPY(uint32_t)
        break;
    default: /* 8: all types of the table have 1, 2, 4 or 8 bytes */
        COPY(uint64_t)
        break;
    }
}

struct job {
    struct own_walk walk;
    const uint8_t *from;
    uint8_t *to;
    int64_t size;
};

static void work(void *context, int64_t first, int64_t last)
{
    const struct job *job = context;
    struct own_walk walk = job->walk;
    for (int64_t row = first; row < last; row++) {
        own_walk_seek(&walk, row);
        own_copy_row(job->to + row * walk.length * job->size, 1, job->from + walk.at[0] * job->size,
                     walk.step[0], walk.length, job->size);
    }
}

void own_copy_out(struct own_call *call, const struct own_tensor *from, int64_t offset,
                  const int64_t *strides, struct own_tensor *to)
{
    struct job job = {
        .walk = own_walk_over(to->rank, to->dims), .to = to->to, .size = onnx_type_bytes(to->type)};
    if (to->elements == 0) {
        return;
    }
    job.from = (const uint8_t *)from->at + offset * job.size;
    own_walk_strides(&job.walk, 0, strides);
    own_walk_ready(&job.walk);
    own_parallel(call->threads, job.walk.rows, own_parallel_least(job.walk.length), work, &job);
}
