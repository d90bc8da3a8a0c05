/* provider/onnx/own/own_tensor.h holds the tensors of a run, and counts the memory that they take.
 *
 * A tensor either borrows its bytes (weights in the model, inputs of the caller) or shares a block
 * with other tensors. A block is freed with its last owner. Every block is counted against the cap
 * of its memory before it is allocated. One thread at a time uses a memory and its blocks. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_TENSOR_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_TENSOR_H

#include "formats/onnx/onnx.h"

#include <stdbool.h>
#include <stdint.h>

enum { OWN_ALIGNMENT = 64 }; /* of the bytes of a block */

/* The bytes that blocks take now, and took at most. */
struct own_memory {
    int64_t limit, used, peak;
};

/* The bytes follow this header at OWN_ALIGNMENT. */
struct own_block {
    struct own_memory *memory;
    int64_t bytes;
    uint32_t owners;
};

struct own_tensor {
    enum onnx_type type; /* UNDEFINED: there is no tensor */
    uint32_t rank;
    int64_t dims[ONNX_RANK_MOST];
    int64_t elements, bytes;
    const void *at;
    void *to;                /* the same bytes while an operator writes them, else NULL */
    struct own_block *block; /* NULL: the bytes are borrowed */
};

/* Allocates a block that has one owner. Returns NULL when the cap or the machine's memory is
 * reached; nothing is counted then. */
struct own_block *own_block_make(struct own_memory *memory, int64_t bytes);
void own_block_release(struct own_block *block);
void *own_block_bytes(struct own_block *block);

/* Gives a tensor with type, dims and sizes a block for its bytes. Returns false when there is no
 * memory. */
bool own_tensor_take(struct own_memory *memory, struct own_tensor *tensor);
/* Makes a tensor share the bytes of another one. Its type and dims stay its own. */
void own_tensor_share(struct own_tensor *tensor, const struct own_tensor *from);
/* Gives up the bytes. The tensor is none afterwards. */
void own_tensor_drop(struct own_tensor *tensor);

/* Returns the product of the dims from `first` up to `last`, which is left out. A tensor's figures
 * are checked when it is made, so that the product fits unless a dim is 0. */
int64_t own_tensor_span(const struct own_tensor *tensor, uint32_t first, uint32_t last);

#endif
