/* The tests compare what operations need with figures worked out by hand; the working is beside
 * them. */
#include "planner/cost/operations.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct expected {
    const char *text;
    uint64_t flops;
    int64_t read, written, working, resident, weights, link, storage;
};

/* Bytes of an element: fp64 8, fp32 and tf32 4, fp16 and bf16 2, fp8 and int8 1, int4 1/2; of a sum
 * of products the same, but fp8 2, int8 and int4 4. resident = operands + results + working, what
 * is changed in its place once. */
static const struct expected rows[] = {
    /* 2 x 2 x 3 x 4 = 48. A 2x4 and B 4x3 of 2 bytes: 16 + 24. C 2x3: 12. */
    {"matmul:2x3x4:bf16", 48, 40, 12, 0, 52, 24, 0, 0},
    /* Five of them. */
    {"matmul:2x3x4,batch=5:bf16", 240, 200, 60, 0, 260, 120, 0, 0},
    /* A 3 x 5 = 15 nibbles, so 8 bytes; B 5 x 1 = 5 nibbles, so 3. C 3 sums of 4 bytes. 2 x 3 x 1 x
     * 5 = 30. */
    {"matmul:3x1x5:int4", 30, 11, 12, 0, 23, 3, 0, 0},
    /* Six of B's 4 x 3 elements are kept, each 16 + 2 bits: 108 bits, 14 bytes. Operations as if
     * dense. */
    {"matmul:2x3x4,sparse:bf16", 48, 30, 12, 0, 42, 14, 0, 0},
    /* C, 24 bytes of fp32, comes and goes, and is there once. A 32, B 48. */
    {"gemm:2x3x4:fp32", 48, 104, 24, 0, 104, 48, 0, 0},
    /* fp8 sums are kept in 16 bits: C 2x3 x 2 = 12. A 8, B 12. */
    {"gemm:2x3x4:fp8", 48, 32, 12, 0, 32, 12, 0, 0},
    /* 5x5 image, 3x3 kernel: 3x3 places. 2 x 1 x 9 x 8 x 3 x 9 = 3888. Image 25 x 3 = 75, filters 8
     * x 3 x 9 = 216, result 9 x 8 = 72 elements of 4 bytes. */
    {"conv:1x5x5x3x8x3x3:fp32", 3888, 1164, 288, 0, 1452, 864, 0, 0},
    /* Padded by 1 to 7x7, step 2: 3x3 places; two groups halve the inner product: channels 4 -> 2.
     * 2 x 9 x 8 x 2 x 9 = 2592. Image 100, filters 8 x 2 x 9 = 144, result 72. */
    {"conv:1x5x5x4x8x3x3,stride=2,padding=1,groups=2:fp32", 2592, 976, 288, 0, 1264, 576, 0, 0},
    /* A kernel of 2 with dilation 3 reaches over 4 of 5: 2x2 places. 2 x 4 x 1 x 1 x 4 = 32. */
    {"conv:1x5x5x1x1x2x2,dilation=3:fp32", 32, 116, 16, 0, 132, 16, 0, 0},
    /* 3 (7 x 10 + 2) = 216. 30 in, 30 out, gamma and beta 20, 2 bytes each. */
    {"layernorm:3x10:bf16", 216, 100, 60, 0, 160, 40, 0, 0},
    /* 3 (4 x 10 + 2) = 126. gamma alone: 10. */
    {"rmsnorm:3x10:bf16", 126, 80, 60, 0, 140, 20, 0, 0},
    /* 2 x 2 x 3 x 10 = 120 operations on 60 elements; factor and summand of 3 channels: 6. */
    {"batchnorm:2x3x10:fp32", 120, 264, 240, 0, 504, 24, 0, 0},
    /* 3 (7 x 20 + 8) = 444. Read twice: 480, with gamma, beta, two running means: 4 x 3 x 4 = 48.
     * Written: 240 and the means, 24. There: 240 in, 240 out, 48. */
    {"batchnorm:2x3x10,training:fp32", 444, 528, 264, 0, 528, 0, 0, 0},
    /* One query over 6 keys, decoding: 4 x 1 x 4 heads x 6 x 8 = 768. Q 4 x 8 = 32; K and V of 2
     * heads: 2 x 2 x 6 x 8 = 192; O 32; 2 bytes each. A float32 for each of 4 rows. */
    {"attention:1x4x1x6x8,kv=2:bf16", 768, 448, 64, 16, 528, 0, 0, 0},
    /* Prefill of 3 positions, causal: 1 + 2 + 3 = 6 pairs of 9. 4 x 4 x 6 x 8 = 768. Q, K, V, O: 4
     * x 3 x 8 = 96 each. */
    {"attention:1x4x3x3x8,causal:bf16", 768, 576, 192, 48, 816, 0, 0, 0},
    {"attention:1x4x3x3x8:bf16", 1152, 576, 192, 48, 816, 0, 0, 0},
    /* Two new positions after three: 4 + 5 = 9 pairs of 10. 4 x 1 x 9 x 8 = 288. Q, O 16, K, V
     * 40. */
    {"attention:1x1x2x5x8,causal:fp32", 288, 384, 64, 8, 456, 0, 0, 0},
    /* Backwards: 10 x 4 x 6 x 8 = 1920. Read: Q, K, V, O and O's gradient of 192 bytes each, 12
     * sums of 4 bytes; three gradients of 192 written; 12 more sums while it works. */
    {"attention:1x4x3x3x8,causal,backward:bf16", 1920, 1008, 576, 48, 1632, 0, 0, 0},
    /* Two frames of 16 x 32, 768 samples each. 16 x 1536; 300 bytes of codes and the frames before,
     * 1536, read. */
    {"decode-video:2x16x32x150:fp32", 24576, 1836, 1536, 0, 3372, 0, 0, 0},
    /* 28 x 1536, and 3 x 10 places x 1024 pixels; frames and those before, read; codes and what
     * they come to, written. */
    {"encode-video:2x16x32x150,candidates=10:fp32", 73728, 3072, 1836, 0, 4908, 0, 0, 0},
    {"relu:100:int8", 100, 100, 100, 0, 200, 0, 0, 0},
    {"sigmoid:100:fp16", 400, 200, 200, 0, 400, 0, 0, 0},
    {"tanh:100:fp16", 100, 200, 200, 0, 400, 0, 0, 0},
    {"silu:100:bf16", 500, 200, 200, 0, 400, 0, 0, 0},
    {"gelu:100:bf16", 500, 200, 200, 0, 400, 0, 0, 0},
    /* Two operands for one result. */
    {"swiglu:100:bf16", 600, 400, 200, 0, 600, 0, 0, 0},
    {"add:100:fp32", 100, 800, 400, 0, 1200, 0, 0, 0},
    /* 3 (5 x 10 - 2) = 144. */
    {"softmax:3x10:fp32", 144, 120, 120, 0, 240, 0, 0, 0},
    /* Nine sums a row. */
    {"reduce:3x10:fp32", 27, 120, 12, 0, 132, 0, 0, 0},
    {"copy:100:bf16", 0, 200, 200, 0, 400, 0, 0, 0},
    /* 7 nibbles are 4 bytes. */
    {"copy:7:int4", 0, 4, 4, 0, 8, 0, 0, 0},
    {"transpose:3x5,batch=2:fp64", 0, 240, 240, 0, 480, 0, 0, 0},
    {"concat:3x4x6:bf16", 0, 60, 60, 0, 120, 0, 0, 0},
    /* 4 indices of 4 bytes and 4 rows of 8 x 2 bytes out of 100: the table, 1600, is there as a
     * whole. */
    {"embedding:4x8x100:bf16", 0, 80, 64, 0, 1680, 1600, 0, 0},
    /* 3 x 2 x 8 = 48 elements, 6 operations for two. In its place; 3 positions x 4 pairs x 2 x 4
     * bytes = 96. */
    {"rotary:3x2x8:bf16", 144, 192, 96, 0, 192, 0, 0, 0},
    /* 2 (keys, values) x 1 x 2 x 3 x 8 = 96 elements. */
    {"kv-append:1x2x3x8:bf16", 0, 192, 192, 0, 384, 0, 0, 0},
    /* Room for 10, of which 3 are written: the cache is 2 x 2 x 10 x 8 x 2 = 640, what comes
     * 192. */
    {"kv-append:1x2x3x8,capacity=10:bf16", 0, 192, 192, 0, 832, 0, 0, 0},
    {"kv-read:1x2x3x8:bf16", 0, 192, 0, 0, 192, 0, 0, 0},
    /* 3 (10 + 4 log2 4) = 54. 3 x 4 values of 2 bytes and as many indices of 4. */
    {"topk:3x10x4:bf16", 54, 60, 72, 0, 132, 0, 0, 0},
    /* log2 5 is rounded up to 3: 10 + 15. */
    {"topk:1x10x5:bf16", 25, 20, 30, 0, 50, 0, 0, 0},
    /* 3 (80 - 3) = 231. A token of 4 bytes a row; probabilities in float32. */
    {"sample:3x10:fp16", 231, 60, 12, 120, 192, 0, 0, 0},
    {"load:10x150:-", 0, 0, 1500, 0, 1500, 0, 0, 1500},
    /* 2x2x3 results of 7 operations; 4x4x3 read. */
    {"resize:1x4x4x3x2x2:fp32", 84, 192, 48, 0, 240, 0, 0, 0},
    /* 48 pixels of one byte, to 2 bytes each; mean and deviation of 3 channels in float32. */
    {"normalise:1x4x4x3:bf16", 96, 72, 96, 0, 168, 24, 0, 0},
    /* The window, 12 bytes, moves; the image, 48, is there. */
    {"crop:1x4x4x3x2x2:int8", 0, 12, 12, 0, 60, 0, 0, 0},
    /* 101 x 5 / 2 = 252.5; 101 bytes are 26 tokens of 4 bytes. */
    {"tokenise:101:-", 253, 101, 104, 0, 205, 0, 0, 0},
    {"tokenise:100,piece=1,per-token=5:-", 0, 100, 80, 0, 180, 0, 0, 0},
    /* 4 x 3 x 10 + 3 = 123. 60 bytes of logits, 3 targets of 4; one float32. */
    {"cross-entropy:3x10:bf16", 123, 72, 4, 0, 76, 0, 0, 0},
    /* The count is 3 (2 x 10 + 1) = 63 for 60 bytes of gradient. */
    {"cross-entropy:3x10,gradient:bf16", 186, 72, 64, 0, 136, 0, 0, 0},
    /* 4 parts of 2: 6 elements are sent and 6 received, twice: 24 x 4 bytes. 6 sums. The array 32,
     * a part 8. */
    {"all-reduce:8x4:fp32", 6, 72, 48, 8, 40, 0, 96, 0},
    /* A single device has nothing to do. */
    {"all-reduce:8x1:fp32", 0, 0, 0, 0, 32, 0, 0, 0},
    /* 9 over 4: parts of 3, 2, 2, 2; all but the smallest are 7. The largest part is 3. */
    {"all-reduce:9x4:fp32", 7, 84, 56, 12, 48, 0, 112, 0},
    /* Weights and gradients of 2 bytes. */
    {"sgd:100:bf16", 200, 400, 200, 0, 400, 0, 0, 0},
    {"sgd:100,momentum:bf16", 400, 800, 600, 0, 800, 0, 0, 0},
    /* Weights 2, gradients 2, two moments of 4: 12 bytes a parameter. */
    {"adam:100:bf16", 1400, 1200, 1000, 0, 1200, 0, 0, 0},
    /* Float32 weights take 16 bytes a parameter (Rajbhandari 2020); the copies are only written. */
    {"adam:100,master:bf16", 1400, 1400, 1400, 0, 1600, 0, 0, 0},
    /* Weights 2, two moments of 4: 1000 bytes. */
    {"checkpoint:100:bf16", 0, 1000, 0, 0, 1000, 0, 0, 1000},
    /* 14 bytes each; copied, so there twice, and the copy read for storage. */
    {"checkpoint:100,master,async:bf16", 0, 2800, 1400, 1400, 2800, 0, 0, 1400},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* "load:10x150:-" to the text that is parsed: "-" is no type. */
static struct operation read_row(const char *text, struct operation_size *ret_size)
{
    char copy[OPERATION_TEXT_SIZE];
    struct operation operation;
    struct problem problem = {""};
    size_t length = strlen(text);
    (void)snprintf(copy, sizeof copy, "%s", text);
    if (text[length - 1] == '-') {
        copy[length - 2] = '\0';
    }
    ck_assert_msg(operation_parse(copy, &operation, &problem) == OPERATION_OK, "%s: %s", text,
                  problem.text);
    ck_assert_int_eq(operation_measure(&operation, ret_size, &problem), OPERATION_OK);
    return operation;
}

START_TEST(figures_are_those_worked_out_by_hand)
{
    const struct expected *row = &rows[_i];
    struct operation_size size;
    (void)read_row(row->text, &size);
    ck_assert_msg(size.flops == row->flops, "%s: %llu operations", row->text,
                  (unsigned long long)size.flops);
    ck_assert_msg(size.read_bytes == row->read, "%s: reads %lld", row->text,
                  (long long)size.read_bytes);
    ck_assert_msg(size.written_bytes == row->written, "%s: writes %lld", row->text,
                  (long long)size.written_bytes);
    ck_assert_msg(size.working_bytes == row->working, "%s: works in %lld", row->text,
                  (long long)size.working_bytes);
    ck_assert_msg(size.resident_bytes == row->resident, "%s: takes %lld", row->text,
                  (long long)size.resident_bytes);
    ck_assert_msg(size.weight_bytes == row->weights, "%s: weights %lld", row->text,
                  (long long)size.weight_bytes);
    ck_assert_msg(size.link_bytes == row->link, "%s: links %lld", row->text,
                  (long long)size.link_bytes);
    ck_assert_msg(size.storage_bytes == row->storage, "%s: storage %lld", row->text,
                  (long long)size.storage_bytes);
}
END_TEST

START_TEST(every_kind_has_a_row_above)
{
    for (int kind = 0; kind < OPERATION_KINDS; kind++) {
        const char *name = operation_name((enum operation_kind)kind);
        size_t found = 0;
        for (size_t i = 0; i < ROWS; i++) {
            size_t length = strlen(name);
            found += strncmp(rows[i].text, name, length) == 0 && rows[i].text[length] == ':';
        }
        ck_assert_msg(found > 0, "%s", name);
    }
}
END_TEST

START_TEST(what_is_read_is_written_as_the_same)
{
    struct operation_size size;
    struct operation again;
    char text[OPERATION_TEXT_SIZE];
    char second[OPERATION_TEXT_SIZE];
    struct operation operation = read_row(rows[_i].text, &size);
    operation_write(&operation, text);
    ck_assert_msg(operation_parse(text, &again, NULL) == OPERATION_OK, "%s", text);
    operation_write(&again, second);
    ck_assert_str_eq(text, second);
    ck_assert_msg(strncmp(text, rows[_i].text, strlen(text)) == 0, "%s, %s", text, rows[_i].text);
}
END_TEST

START_TEST(what_the_work_can_be_split_over_is_said)
{
    struct operation_size size;
    (void)read_row("matmul:2x3x4:bf16", &size);
    ck_assert_int_eq(size.extents[0], 2);
    ck_assert_int_eq(size.extents[1], 3);
    ck_assert_int_eq(size.extents[2], 4);
    (void)read_row("conv:2x5x5x4x8x3x3,groups=2:fp32", &size); /* as a product, of each group */
    ck_assert_int_eq(size.extents[0], 2 * 9);
    ck_assert_int_eq(size.extents[1], 4);
    ck_assert_int_eq(size.extents[2], 2 * 9);
    (void)read_row("attention:2x4x3x6x8:bf16", &size);
    ck_assert_int_eq(size.extents[0], 2 * 4 * 3);
    ck_assert_int_eq(size.extents[1], 6);
    ck_assert_int_eq(size.extents[2], 8);
    (void)read_row("relu:100:fp32", &size);
    ck_assert_int_eq(size.extents[0], 100);
    ck_assert_int_eq(size.extents[1], 1);
}
END_TEST

START_TEST(large_figures_are_exact)
{
    struct operation_size size;
    /* 2 x 2^21 x 2^21 x 2^21 = 2^64: more than 64 bits hold. */
    (void)read_row("matmul:2097152x2097152x2097152:fp8", &size);
    ck_assert(size.flops == (uint128)1 << 64);
    ck_assert_int_eq(size.read_bytes, INT64_C(1) << 43);
    ck_assert_int_eq(size.written_bytes, INT64_C(1) << 43); /* 2^42 sums of 2 bytes */
    (void)read_row("load:1099511627776x1:-", &size);
    ck_assert_int_eq(size.storage_bytes, INT64_C(1) << 40);
}
END_TEST

/* ---------------------------------------------------------------- refusals */

START_TEST(what_is_no_operation_is_refused_by_name)
{
    static const struct {
        const char *text;
        enum operation_status status;
        const char *says;
    } wrong[] = {
        {"", OPERATION_UNKNOWN, "bourse devices --operations"},
        {"matml:1x1x1:fp32", OPERATION_UNKNOWN, "did you mean \"matmul\""},
        {"attentoin:1x1x1x1x1:fp32", OPERATION_UNKNOWN, "\"attention\""},
        {"a-word-that-is-longer-than-any-operation-has:1:fp32", OPERATION_UNKNOWN, "kind, shape"},
        {"matmul", OPERATION_SHAPE, "MxNxK"},
        {"matmul:", OPERATION_SHAPE, "MxNxK"},
        {"matmul:1x1:fp32", OPERATION_SHAPE, "MxNxK"},
        {"matmul:1x1x1x1:fp32", OPERATION_SHAPE, "MxNxK"},
        {"matmul:1x1x :fp32", OPERATION_SHAPE, "MxNxK"},
        {"matmul: 1x1x1:fp32", OPERATION_SHAPE, "MxNxK"},
        {"matmul:1e3x1x1:fp32", OPERATION_SHAPE, "MxNxK"},
        {"matmul:nanx1x1:fp32", OPERATION_SHAPE, "MxNxK"},
        {"matmul:1.5x1x1:fp32", OPERATION_SHAPE, "MxNxK"},
        {"matmul:1x1x1,:fp32", OPERATION_SHAPE, "[,batch=1]"},
        {"matmul:1x1x1,batches=2:fp32", OPERATION_SHAPE, "[,batch=1]"},
        {"matmul:1x1x1,batch:fp32", OPERATION_SHAPE, "[,batch=1]"},
        {"matmul:1x1x1,batch=:fp32", OPERATION_SHAPE, "[,batch=1]"},
        {"matmul:1x1x1,m=2:fp32", OPERATION_SHAPE, "[,batch=1]"},
        {"matmul:1x1x1,batch=2,batch=3:fp32", OPERATION_SHAPE, "batch is said twice"},
        {"load:3x5:fp32", OPERATION_SHAPE, "ITEMSxBYTES"},
        {"matmul:0x1x1:fp32", OPERATION_DIMENSION, "m is 0; it may be 1 to 1099511627776"},
        {"matmul:1x-1x1:fp32", OPERATION_DIMENSION, "n is -1"},
        {"matmul:1x1x1099511627777:fp32", OPERATION_DIMENSION, "k is more than 1099511627776"},
        {"matmul:9223372036854775808x1x1:fp32", OPERATION_DIMENSION, "m is more than"},
        {"matmul:99999999999999999999999999x1x1:fp32", OPERATION_DIMENSION, "m is more than"},
        {"matmul:-99999999999999999999999999x1x1:fp32", OPERATION_DIMENSION, "m is -"},
        {"matmul:1x1x1,batch=0:fp32", OPERATION_DIMENSION, "batch is 0"},
        {"matmul:1x1x1,sparse=2:fp16", OPERATION_DIMENSION, "sparse is more than 1"},
        {"conv:1x5x5x1x1x3x3,stride=0:fp32", OPERATION_DIMENSION, "stride is 0"},
        {"conv:1x5x5x1x1x3x3,padding=-1:fp32", OPERATION_DIMENSION, "padding is -1; it may be 0"},
        {"matmul:1x1x1", OPERATION_DTYPE, "bf16"},
        {"matmul:1x1x1:", OPERATION_DTYPE, "bf16"},
        {"matmul:1x1x1:fp31", OPERATION_DTYPE, "bf16"},
        {"matmul:1x1x1:fp32 ", OPERATION_DTYPE, "bf16"},
        {"layernorm:2x2:int8", OPERATION_DTYPE, "layernorm is not done in int8"},
        {"adam:2:fp8", OPERATION_DTYPE, "adam is not done in fp8"},
        {"copy:2:tf32", OPERATION_DTYPE, "copy is not done in tf32"},
        {"matmul:4x4x4,sparse:fp32", OPERATION_DTYPE, "not fp32"},
        {"conv:1x4x4x4x1x2x2,sparse:fp64", OPERATION_DTYPE, "not fp64"},
        {"matmul:4x4x6,sparse:fp16", OPERATION_CONFLICT, "multiple of 4"},
        {"conv:1x4x4x3x1x3x3,sparse:fp16", OPERATION_CONFLICT, "multiple of 4"},
        {"conv:1x5x5x3x4x3x3,groups=2:fp32", OPERATION_CONFLICT, "multiples of groups"},
        {"conv:1x5x5x4x3x3x3,groups=2:fp32", OPERATION_CONFLICT, "multiples of groups"},
        {"conv:1x2x5x1x1x3x3:fp32", OPERATION_CONFLICT, "larger than the image"},
        {"conv:1x5x5x1x1x3x3,dilation=3:fp32", OPERATION_CONFLICT, "larger than the image"},
        {"conv:1x5x5x1x1x3x3,dilation=1099511627776:fp32", OPERATION_CONFLICT, "larger than"},
        {"attention:1x8x1x1x1,kv=3:fp32", OPERATION_CONFLICT, "multiple of kv"},
        {"attention:1x8x1x1x1,kv=16:fp32", OPERATION_CONFLICT, "multiple of kv"},
        {"attention:1x8x2x1x1,causal:fp32", OPERATION_CONFLICT, "2, must be at most keys, 1"},
        {"rotary:1x1x3:fp32", OPERATION_CONFLICT, "size, 3, must be even"},
        {"kv-append:1x1x3x1,capacity=2:fp32", OPERATION_CONFLICT,
         "capacity, 2, must be at least tokens, 3"},
        {"topk:1x3x4:fp32", OPERATION_CONFLICT, "k, 4, must be at most width, 3"},
        {"crop:1x4x4x3x5x4:int8", OPERATION_CONFLICT, "at most the image"},
        {"crop:1x4x4x3x4x5:int8", OPERATION_CONFLICT, "at most the image"},
        {"matmul:1099511627776x1099511627776x1:fp32", OPERATION_OVERFLOW, "what is written"},
        {"copy:1099511627776:fp64", OPERATION_OK, ""},
        {"matmul:1099511627776x1099511627776x1099511627776,batch=1099511627776:int4",
         OPERATION_OVERFLOW, "operations"},
        {"load:1099511627776x1099511627776", OPERATION_OVERFLOW, "2^63 - 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct operation read = operation_of(OPERATION_TOPK, DTYPE_FP16);
        struct problem problem = {""};
        enum operation_status status = operation_parse(wrong[i].text, &read, &problem);
        ck_assert_msg(status == wrong[i].status, "'%s': %s, %s", wrong[i].text,
                      operation_status_name(status), problem.text);
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "'%s': %s", wrong[i].text,
                      problem.text);
        ck_assert_msg(status == OPERATION_OK || read.kind == OPERATION_TOPK, "%s", wrong[i].text);
    }
}
END_TEST

START_TEST(what_was_not_read_from_text_is_checked_too)
{
    struct operation_size size = {.flops = 7};
    struct operation operation = operation_of(OPERATION_KV_READ, DTYPE_FP16);
    ck_assert_int_eq(operation_measure(&operation, &size, NULL), OPERATION_OK);
    operation.shape.cache.size = -8;
    size.flops = 7;
    ck_assert_int_eq(operation_measure(&operation, &size, NULL), OPERATION_DIMENSION);
    operation = operation_of(OPERATION_KINDS - 1, DTYPE_FP16);
    operation.kind = OPERATION_KINDS;
    ck_assert_int_eq(operation_measure(&operation, &size, NULL), OPERATION_UNKNOWN);
    operation = operation_of(OPERATION_COPY, DTYPES);
    ck_assert_int_eq(operation_measure(&operation, &size, NULL), OPERATION_DTYPE);
    operation = operation_of(OPERATION_CHECKPOINT, DTYPE_FP16);
    operation.shape.optimiser.states = INT64_MAX;
    ck_assert_int_eq(operation_measure(&operation, &size, NULL), OPERATION_DIMENSION);
    ck_assert(size.flops == 7);
}
END_TEST

/* ---------------------------------------------------------------- the manual says the same */

static char *read_document(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", BOURSE_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_gt(fread(text, 1, (1 << 20) - 1, file), 0);
    (void)fclose(file);
    return text;
}

START_TEST(the_manual_has_every_kind_with_its_shape)
{
    char *text = read_document("docs/operations.md");
    for (int kind = 0; kind < OPERATION_KINDS; kind++) {
        char form[OPERATION_TEXT_SIZE];
        char row[2 * OPERATION_TEXT_SIZE];
        operation_form((enum operation_kind)kind, form);
        (void)snprintf(row, sizeof row, "\n| `%s` | `%s` |",
                       operation_name((enum operation_kind)kind), form);
        ck_assert_msg(strstr(text, row) != NULL, "docs/operations.md has no row %s", row + 1);
    }
    free(text);
}
END_TEST

START_TEST(the_list_of_errors_has_every_refusal)
{
    char *text = read_document("docs/errors.md");
    for (int status = OPERATION_UNKNOWN; status <= OPERATION_OVERFLOW; status++) {
        char row[64];
        (void)snprintf(row, sizeof row, "\n| `%s` |",
                       operation_status_name((enum operation_status)status));
        ck_assert_msg(strstr(text, row) != NULL, "docs/errors.md has no row %s", row + 1);
    }
    free(text);
}
END_TEST

SUITE("operations", NULL, NULL, LOOP(figures_are_those_worked_out_by_hand, 0, ROWS),
      TEST(every_kind_has_a_row_above), LOOP(what_is_read_is_written_as_the_same, 0, ROWS),
      TEST(what_the_work_can_be_split_over_is_said), TEST(large_figures_are_exact),
      TEST(what_is_no_operation_is_refused_by_name),
      TEST(what_was_not_read_from_text_is_checked_too),
      TEST(the_manual_has_every_kind_with_its_shape), TEST(the_list_of_errors_has_every_refusal))
