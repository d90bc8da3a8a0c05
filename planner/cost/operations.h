/* An operation needs work, bytes moved and memory; this module derives them from shape and type.
 *
 * Every kind has a small struct for its shape and one formula; docs/operations.md lists the
 * formulas with their sources. The formulas count what has to be done on any device. Each operand
 * moves once into the processor, and each result once out of it. Data that stays on the chip in
 * between is not counted. A device cannot do less; what it does beyond that is for calibration to
 * say (cost.h). Work is counted in operations: a sum, a product, a comparison, a quotient, a root
 * or an exponential is one each. So a product with its sum is two.
 *
 *     "attention:1x32x4096x4096x128,kv=8,causal:bf16"
 *      kind      shape             options     type
 *
 * Exact integers: a figure that does not fit is refused, never cut. */
#ifndef BOURSE_PLANNER_COST_OPERATIONS_H
#define BOURSE_PLANNER_COST_OPERATIONS_H

#include "base/checked.h"
#include "base/problem.h"
#include "planner/cost/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERATION_DIMENSION_MOST (INT64_C(1) << 40)

enum {
    OPERATION_TEXT_SIZE = 320, /* any operation as text, with the NUL */
    OPERATION_EXTENTS = 3,
};

enum operation_kind {
    OPERATION_MATMUL, /* C = A B */
    OPERATION_GEMM,   /* C = alpha A B + beta C: C is read, too */
    OPERATION_CONV,
    OPERATION_LAYERNORM,
    OPERATION_RMSNORM,
    OPERATION_BATCHNORM,
    OPERATION_ATTENTION,
    OPERATION_RELU,
    OPERATION_SIGMOID,
    OPERATION_TANH,
    OPERATION_SILU,
    OPERATION_GELU,
    OPERATION_SWIGLU,
    OPERATION_ADD,
    OPERATION_SOFTMAX,
    OPERATION_REDUCE,
    OPERATION_COPY,
    OPERATION_TRANSPOSE,
    OPERATION_CONCAT,
    OPERATION_EMBEDDING,
    OPERATION_ROTARY,
    OPERATION_KV_APPEND,
    OPERATION_KV_READ,
    OPERATION_TOPK,
    OPERATION_SAMPLE,
    OPERATION_LOAD,
    OPERATION_RESIZE,
    OPERATION_NORMALISE,
    OPERATION_CROP,
    OPERATION_TOKENISE,
    OPERATION_CROSS_ENTROPY,
    OPERATION_ALL_REDUCE,
    OPERATION_SGD,
    OPERATION_ADAM,
    OPERATION_CHECKPOINT,
    OPERATION_DECODE_VIDEO,
    OPERATION_ENCODE_VIDEO,
    OPERATION_KINDS,
};

/* A class groups kinds that a device runs in the same way, so that one calibration holds for all of
 * them. */
enum operation_class {
    OPERATION_MATRIX, /* sums of products on the matrix units, where there are any */
    OPERATION_CONVOLUTION,
    OPERATION_ATTENDING,
    OPERATION_VECTOR,     /* element by element, in fp64 or fp32 whatever the type is */
    OPERATION_MOVING,     /* bytes and nothing else */
    OPERATION_LOOKUP,     /* look-ups in tables: no published rate says how fast */
    OPERATION_COLLECTIVE, /* over the links between devices */
    OPERATION_STORING,    /* transfers from or to storage */
    OPERATION_CLASSES,
};

/* ---------------------------------------------------------------- shapes
 *
 * A dimension is 1 to OPERATION_DIMENSION_MOST. Fields with a figure first in their comment are
 * options of the text, and the figure is the default. A flag is 0 or 1. */

struct product_shape { /* matmul, gemm: A is m x k, B is k x n */
    int64_t m, n, k;

    int64_t batch;  /* 1: number of such products */
    int64_t sparse; /* 0; 1: B is 2:4 sparse, two of every four in a column are zero */
    /* Type that B is stored in: 0 means the operation's type, else 1 + the dtype. Templates set it;
     * the text has no such option. */
    int64_t weights;
};

struct conv_shape { /* two-dimensional */
    int64_t batch, height, width, channels, filters, kernel_height, kernel_width;

    int64_t stride;   /* 1 */
    int64_t padding;  /* 0: zeros on each side */
    int64_t dilation; /* 1 */
    int64_t groups;   /* 1; channels and filters are multiples of it */
    int64_t sparse;   /* 0; 1: the filters are 2:4 sparse */
};

struct rows_shape { /* layernorm, rmsnorm, softmax, reduce, sample: along each row */
    int64_t rows, width;
};

struct batchnorm_shape {
    int64_t batch, channels, size; /* elements of a channel in one sample */

    int64_t training; /* 0: uses the known means; 1: uses those of the batch */
};

struct attention_shape {
    int64_t batch, heads, query, keys, size; /* `size`: elements of a head; decoding: query = 1 */

    int64_t kv; /* 0: as many as heads; heads is a multiple of it (GQA; 1: MQA) */
    /* 0; 1: the queries are the last positions of the keys, and look back only. */
    int64_t causal;
    /* 0; 1: gradients of queries, keys and values, computed from the gradient of the result. */
    int64_t backward;
};

struct elements_shape { /* relu ... swiglu (its results), add, copy */
    int64_t elements;
};

struct transpose_shape {
    int64_t rows, columns;

    int64_t batch; /* 1 */
};

struct concat_shape {
    int64_t rows, first, second; /* widths */
};

struct embedding_shape {
    int64_t tokens, width, vocabulary;
};

struct rotary_shape {
    int64_t tokens, heads, size; /* size is even */
};

struct cache_shape { /* kv-append, kv-read */
    int64_t batch, kv, tokens, size;

    int64_t capacity; /* kv-append: 0: as many as tokens; else tokens that fit in the cache */
};

struct topk_shape {
    int64_t rows, width, k; /* k <= width */
};

struct load_shape {
    int64_t items, bytes; /* bytes of an item */
};

struct image_shape { /* resize, crop, normalise */
    int64_t batch, height, width, channels;
    int64_t new_height, new_width; /* crop: within the old ones; normalise: unused */
};

struct tokenise_shape {
    int64_t bytes;

    int64_t piece;     /* 6: bytes of a word with its blank */
    int64_t per_token; /* 4: bytes of a token */
};

struct loss_shape {
    int64_t rows, classes;

    int64_t gradient; /* 0; 1: the gradient of the logits is a result, too */
};

struct all_reduce_shape {
    int64_t elements, devices;
};

struct optimiser_shape { /* sgd, adam, checkpoint */
    int64_t parameters;

    int64_t momentum; /* sgd: 0; 1 */
    int64_t states;   /* checkpoint: 2: float32 figures kept for each parameter */
    int64_t master;   /* adam, checkpoint: 0; 1: float32 weights are kept, too */
    int64_t async;    /* checkpoint: 0; 1: a copy is written, so that training goes on */
};

/* Shape of decode-video and encode-video. A frame has a brightness sample for each pixel, and two
 * colour samples for every four pixels. */
struct frames_shape {
    int64_t frames, height, width, bytes; /* `bytes`: size of a coded frame */

    int64_t candidates; /* encode-video: 64: places compared for each block */
};

struct operation {
    enum operation_kind kind;
    enum dtype dtype; /* unused by load and tokenise */
    union {
        struct product_shape product;
        struct conv_shape conv;
        struct rows_shape rows;
        struct batchnorm_shape batchnorm;
        struct attention_shape attention;
        struct elements_shape elements;
        struct transpose_shape transpose;
        struct concat_shape concat;
        struct embedding_shape embedding;
        struct rotary_shape rotary;
        struct cache_shape cache;
        struct topk_shape topk;
        struct load_shape load;
        struct image_shape image;
        struct tokenise_shape tokenise;
        struct loss_shape loss;
        struct all_reduce_shape all_reduce;
        struct optimiser_shape optimiser;
        struct frames_shape frames;
    } shape;
};

struct operation_size {
    uint128 flops;                     /* operations; 2:4 sparse operands count as dense */
    int64_t read_bytes, written_bytes; /* traffic of the device's memory */
    int64_t working_bytes;             /* besides operands and results */
    /* Memory in use at once: operands, results and working memory. Data changed in place counts
     * once. */
    int64_t resident_bytes;
    /* Part of resident_bytes: parameters, which are read only and the same at each call. */
    int64_t weight_bytes;
    int64_t link_bytes;    /* sent and received over the device's links */
    int64_t storage_bytes; /* transfers from or to storage */
    /* Extents that the efficiency depends on (cost.h); 1 where there are fewer. */
    int64_t extents[OPERATION_EXTENTS];
};

enum operation_status {
    OPERATION_OK,
    OPERATION_UNKNOWN,   /* no kind has this name */
    OPERATION_SHAPE,     /* the text is no shape of that kind */
    OPERATION_DIMENSION, /* a dimension is outside its range */
    OPERATION_CONFLICT,  /* dimensions that do not go together */
    OPERATION_DTYPE,     /* no type, or one that the kind does not support */
    /* A figure does not fit: bytes above 2^63 - 1, or operations above 2^128 - 1. */
    OPERATION_OVERFLOW,
};

/* Returns the name of a status for programs, such as "DIMENSION"; docs/errors.md lists the
 * names. */
const char *operation_status_name(enum operation_status status);

/* Returns an operation of the given dtype, with every option at its default and every other
 * dimension 1. */
struct operation operation_of(enum operation_kind kind, enum dtype dtype);

/* Computes the figures of an operation. Any status but OK leaves `ret_size` alone. Then
 * `ret_problem` (may be NULL) says which field is wrong and which values are allowed. */
enum operation_status operation_measure(const struct operation *operation,
                                        struct operation_size *ret_size,
                                        struct problem *ret_problem);

/* Parses the text form shown above, and checks the operation as operation_measure does. A flag may
 * stand without "=1". Any status but OK leaves `ret_operation` alone. */
enum operation_status operation_parse(const char *text, struct operation *ret_operation,
                                      struct problem *ret_problem);
/* Writes the text form. Options at their defaults are left out. */
void operation_write(const struct operation *operation, char ret_text[OPERATION_TEXT_SIZE]);

/* ---------------------------------------------------------------- about a kind */

const char *operation_name(enum operation_kind kind); /* "kv-append" */
enum operation_class operation_class_of(enum operation_kind kind);
const char *operation_class_name(enum operation_class of); /* "matrix" */
bool operation_has_dtype(enum operation_kind kind);
bool operation_takes(enum operation_kind kind, enum dtype dtype);
/* Writes the form of a kind's shape as people type it, such as "MxNxK[,batch=1][,sparse]". */
void operation_form(enum operation_kind kind, char ret_text[OPERATION_TEXT_SIZE]);

#endif
