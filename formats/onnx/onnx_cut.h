/* formats/onnx/onnx_cut.h cuts the graph of a model into stages, each a model of its own.
 *
 *     model    x -> [ node node | node node | node ] -> y
 *     stages   x -> [ node node ] -> a   a -> [ node node ] -> b   b -> [ node ] -> y
 *
 * A stage has the nodes that the caller gives it, and only the weights of these. Values that a
 * later stage needs are outputs of the stage that makes them, and inputs of those that take them,
 * with their types and dims. Constants are copied into each stage that uses them and never cross.
 * Run one after the other, the stages compute what the model computes, node by node.
 *
 * The bytes of a stage are pieces of the model's file, of its files of weights, and some bytes
 * between. Weights are never copied here; those in files of their own become part of the stage.
 * Pure. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_CUT_H
#define BOURSE_FORMATS_ONNX_ONNX_CUT_H

#include "formats/onnx/onnx_shapes.h"

enum { ONNX_CUT_STAGES = 16 };

/* Consecutive bytes of a stage. */
struct onnx_piece {
    uint64_t begin; /* offset in the stage */
    uint64_t size;
    const uint8_t *at;     /* NULL: the bytes are in another file */
    struct onnx_span path; /* of the other file, relative to the model's folder */
    uint64_t offset;       /* in the other file */
};

/* A value that a stage takes or leaves. */
struct onnx_cut_port {
    uint32_t value; /* of the model */
    uint32_t from;  /* the stage that makes the value; ONNX_NONE: it is an input of the model */
};

struct onnx_stage {
    struct onnx_piece *pieces;
    size_t piece_count, piece_capacity;
    uint64_t size;         /* of all pieces */
    uint64_t weight_bytes; /* of the stage's weights */
    struct onnx_cut_port *inputs, *outputs;
    uint32_t input_count, output_count;
};

struct onnx_cut {
    struct onnx_stage stages[ONNX_CUT_STAGES];
    uint32_t stage_count;
    uint8_t *made; /* bytes that are in no file */
    size_t made_size, made_capacity;
};

struct onnx_cut_input {
    struct onnx_span bytes; /* of the model's file, which outlive the cut */
    const struct onnx_model *model;
    const struct onnx_shapes *shapes;
    /* Shapes for inputs of other dims, or NULL. Dims in which the two differ may be any number. */
    const struct onnx_shapes *other;
    const uint32_t *stage_of; /* by node; it never falls from a node to the next */
    uint32_t stage_count;     /* 1 to ONNX_CUT_STAGES; each has a node */
};

/* Returns true when a value is there before a run: weights, or what a node Constant makes. */
bool onnx_cut_is_constant(const struct onnx_model *model, uint32_t value);

/* Cuts a model, which the caller owns. Any status but OK gives no cut: UNSUPPORTED is a value that
 * would cross and is no tensor, or a stage whose values nobody takes; TOO_LARGE is a stage of more
 * than 2^31 bytes. */
enum onnx_status onnx_cut_make(const struct onnx_cut_input *input, struct onnx_cut **ret_cut,
                               struct problem *ret_problem);
void onnx_cut_destroy(struct onnx_cut **self);

/* Reads bytes of another file. Returns false when it cannot. */
typedef bool onnx_cut_other(void *context, struct onnx_span path, uint64_t offset, size_t length,
                            uint8_t *ret_bytes);
/* Reads bytes of a stage, from `offset` on; offset + length is at most its size. `other` may be
 * NULL for a model without other files. Returns false when `other` does. */
bool onnx_cut_read(const struct onnx_stage *stage, uint64_t offset, size_t length,
                   onnx_cut_other *other, void *context, uint8_t *ret_bytes);

#endif
