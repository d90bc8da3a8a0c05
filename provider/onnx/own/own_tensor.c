#include "provider/onnx/own/own_tensor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Room for the header, so that the bytes behind it are aligned. */
static_assert(sizeof(struct own_block) <= OWN_ALIGNMENT, "the header fits before the bytes");

struct own_block *own_block_make(struct own_memory *memory, int64_t bytes)
{
    assert(bytes >= 0);
    const int64_t most = INT64_MAX - 2 * OWN_ALIGNMENT;
    if (bytes > most || bytes > memory->limit - memory->used) {
        return NULL;
    }
    const size_t size =
        ((size_t)bytes + 2 * OWN_ALIGNMENT - 1) / OWN_ALIGNMENT * (size_t)OWN_ALIGNMENT;
    struct own_block *block = aligned_alloc(OWN_ALIGNMENT, size);
    if (block == NULL) {
        return NULL;
    }
    *block = (struct own_block){.memory = memory, .bytes = bytes, .owners = 1};
    memory->used += bytes;
    memory->peak = memory->used > memory->peak ? memory->used : memory->peak;
    return block;
}

void own_block_release(struct own_block *block)
{
    if (block == NULL) {
        return;
    }
    assert(block->owners > 0);
    block->owners--;
    if (block->owners == 0) {
        block->memory->used -= block->bytes;
        free(block);
    }
}

void *own_block_bytes(struct own_block *block)
{
    return (uint8_t *)block + OWN_ALIGNMENT;
}

bool own_tensor_take(struct own_memory *memory, struct own_tensor *tensor)
{
    assert(tensor->block == NULL);
    tensor->block = own_block_make(memory, tensor->bytes);
    if (tensor->block == NULL) {
        return false;
    }
    tensor->to = own_block_bytes(tensor->block);
    tensor->at = tensor->to;
    return true;
}

void own_tensor_share(struct own_tensor *tensor, const struct own_tensor *from)
{
    assert(tensor->block == NULL);
    tensor->at = from->at;
    tensor->to = NULL;
    tensor->block = from->block;
    if (tensor->block != NULL) {
        tensor->block->owners++;
    }
}

void own_tensor_drop(struct own_tensor *tensor)
{
    own_block_release(tensor->block);
    *tensor = (struct own_tensor){.type = ONNX_UNDEFINED};
}

int64_t own_tensor_span(const struct own_tensor *tensor, uint32_t first, uint32_t last)
{
    assert(last <= tensor->rank);
    int64_t product = 1;
    for (uint32_t i = first; i < last; i++) {
        if (tensor->dims[i] == 0) {
            return 0;
        }
    }
    for (uint32_t i = first; i < last; i++) {
        /* A tensor without elements may have other dims whose product would not fit. */
        const int64_t dim = tensor->dims[i];
        product = product > ONNX_TENSOR_BYTES / dim ? ONNX_TENSOR_BYTES : product * dim;
    }
    return product;
}
