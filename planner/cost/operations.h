/* planner/cost/operations.h - what an operation needs: work, bytes moved, memory, from its shape
 * and type.
 *
 * Every kind has a small struct for its shape and one formula; docs/operations.md lists all of them
 * with their sources. They count what has to be done whoever does it: each operand once into the
 * processor, each result once out of it, what is kept on the chip in between not at all. A device
 * does not do less; what it does more is for calibration to say (cost.h). Work is counted in
 * operations: a sum, a product, a comparison, a quotient, a root, an exponential are one each, so a
 * product with its sum is two.
 *
 *     "attention:1x32x4096x4096x128,kv=8,causal:bf16"
 *      kind      shape             options     type
 *
 * Exact integers: a figure that does not fit is refused, never cut. Pure. */
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
    OPERATION_TEXT_SIZE = 320, /* of any operation as text, with the NUL */
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

/* Kinds that a device does in the same way, so that one calibration holds for all of a class. */
enum operation_class {
    OPERATION_MATRIX, /* sums of products on the matrix units, where there are any */
    OPERATION_CONVOLUTION,
    OPERATION_ATTENDING,
    OPERATION_VECTOR,     /* element by element, in fp64 or fp32 whatever the type is */
    OPERATION_MOVING,     /* bytes and nothing else */
    OPERATION_LOOKUP,     /* in tables: no published rate says how fast */
    OPERATION_COLLECTIVE, /* over the links between devices */
    OPERATION_STORING,    /* from or to storage */
    OPERATION_CLASSES,
};

/* ---------------------------------------------------------------- shapes
 * A dimension is 1 to OPERATION_DIMENSION_MOST; those after the blank line are options of the text,
 * with the default that stands there. A flag is 0 or 1. */

struct product_shape { /* matmul, gemm: A is m x k, B is k x n */
    int64_t m, n, k;

    int64_t batch;   /* 1: as many such products */
    int64_t sparse;  /* 0; 1: B is 2:4 sparse, two of every four in a column are zero */
    int64_t weights; /* 0: B is of the operation's type; else 1 + the dtype that it is stored in.
                        Templates set it: it is no part of the text */
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

    int64_t training; /* 0: by the means known; 1: by those of the batch */
};

struct attention_shape {
    int64_t batch, heads, query, keys, size; /* `size` elements of a head; decoding: query = 1 */

    int64_t kv;       /* 0: as many as heads; heads is a multiple of it (GQA; 1: MQA) */
    int64_t causal;   /* 0; 1: the queries are the last positions of the keys and look back only */
    int64_t backward; /* 0; 1: the gradients of queries, keys and values, from that of the result */
};

struct elements_shape { /* relu ... swiglu (of its results), add, copy */
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

    int64_t capacity; /* kv-append: 0: tokens; else tokens that the cache has room for */
};

struct topk_shape {
    int64_t rows, width, k; /* k <= width */
};

struct load_shape {
    int64_t items, bytes; /* of an item */
};

struct image_shape { /* resize, crop, normalise */
    int64_t batch, height, width, channels;
    int64_t new_height, new_width; /* crop: within the old ones; normalise: not used */
};

struct tokenise_shape {
    int64_t bytes;

    int64_t piece;     /* 6: bytes of a word with its blank */
    int64_t per_token; /* 4: bytes of a token */
};

struct loss_shape {
    int64_t rows, classes;

    int64_t gradient; /* 0; 1: the logits' gradient is a result, too */
};

struct all_reduce_shape {
    int64_t elements, devices;
};

struct optimiser_shape { /* sgd, adam, checkpoint */
    int64_t parameters;

    int64_t momentum; /* sgd: 0; 1 */
    int64_t states;   /* checkpoint: 2: float32 figures kept with each parameter */
    int64_t master;   /* adam, checkpoint: 0; 1: weights are kept in float32, too */
    int64_t async;    /* checkpoint: 0; 1: a copy is written, so that training goes on */
};

struct frames_shape { /* decode-video, encode-video: a sample of brightness for each pixel, of two
                         colours for each four */
    int64_t frames, height, width, bytes; /* of a coded frame */

    int64_t candidates; /* encode-video: 64: places looked at for each block */
};

struct operation {
    enum operation_kind kind;
    enum dtype dtype; /* load, tokenise: none */
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
    uint128 flops; /* operations; of 2:4 sparse operands as if they were dense */
    int64_t read_bytes, written_bytes; /* of the device's memory */
    int64_t working_bytes;             /* besides operands and results */
    int64_t resident_bytes; /* at once: operands, results and working memory, what is changed in its
                               place once */
    int64_t weight_bytes;   /* of resident_bytes: parameters, read only and the same at each call */
    int64_t link_bytes;     /* over the device's links, sent and received */
    int64_t storage_bytes;  /* from or to storage */
    int64_t extents[OPERATION_EXTENTS]; /* what efficiency depends on (cost.h); 1 where there are
                                           fewer */
};

enum operation_status {
    OPERATION_OK,
    OPERATION_UNKNOWN,   /* no kind is called so */
    OPERATION_SHAPE,     /* the text is no shape of that kind */
    OPERATION_DIMENSION, /* one is outside its range */
    OPERATION_CONFLICT,  /* dimensions that do not go together */
    OPERATION_DTYPE,     /* no type, or none that the kind is done in */
    OPERATION_OVERFLOW,  /* a figure does not fit: bytes above 2^63 - 1, operations above 2^128 - 1
                          */
};

/* The status as programs know it: "DIMENSION"; docs/errors.md lists them. */
const char *operation_status_name(enum operation_status status);

/* An operation with every option at its default and every dimension 1; `dtype` as given. */
struct operation operation_of(enum operation_kind kind, enum dtype dtype);

/* The figures of an operation, however it was made. Any status but OK leaves `ret_size` alone and
 * says in `ret_problem` (may be NULL) which field is wrong and what it may be. */
enum operation_status operation_measure(const struct operation *operation,
                                        struct operation_size *ret_size,
                                        struct problem *ret_problem);

/* The text above to an operation, which is checked as by operation_measure. A flag may stand
 * without "=1". */
enum operation_status operation_parse(const char *text, struct operation *ret_operation,
                                      struct problem *ret_problem);
/* And back: options at their defaults are left out. */
void operation_write(const struct operation *operation, char ret_text[OPERATION_TEXT_SIZE]);

/* ---------------------------------------------------------------- about a kind */

const char *operation_name(enum operation_kind kind); /* "kv-append" */
enum operation_class operation_class_of(enum operation_kind kind);
const char *operation_class_name(enum operation_class of); /* "matrix" */
bool operation_has_dtype(enum operation_kind kind);
bool operation_takes(enum operation_kind kind, enum dtype dtype);
/* "MxNxK[,batch=1][,sparse]": the shape as people write it. */
void operation_form(enum operation_kind kind, char ret_text[OPERATION_TEXT_SIZE]);

#endif
