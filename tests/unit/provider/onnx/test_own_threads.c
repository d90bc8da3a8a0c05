/* Our own ONNX operators on several threads make the same bits as on one. */
#include "provider/onnx/own/own_graph.h"
#include "provider/onnx/own/own_parallel.h"
#include "tests/support/own_case.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 640, COLUMNS = 1024, THREADS = 4, OUTPUTS = 3 };

struct seen {
    atomic_int counts[100];
    atomic_int pieces;
};

static void mark(void *context, int64_t first, int64_t last)
{
    struct seen *seen = context;
    atomic_fetch_add(&seen->pieces, 1);
    for (int64_t i = first; i < last; i++) {
        atomic_fetch_add(&seen->counts[i], 1);
    }
}

START_TEST(each_round_is_done_once)
{
    static const struct {
        unsigned threads;
        int64_t count, least;
        int pieces;
    } cases[] = {{1, 100, 1, 1}, {3, 100, 1, 3}, {4, 100, 60, 2}, {64, 100, 1, 50},
                 {100, 3, 1, 3}, {4, 0, 1, 0},   {0, 5, 1, 1},    {4, 100, 1000, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct seen seen = {.pieces = 0};
        own_parallel(cases[i].threads, cases[i].count, cases[i].least, mark, &seen);
        for (int k = 0; k < 100; k++) {
            ck_assert_int_eq(atomic_load(&seen.counts[k]), k < cases[i].count ? 1 : 0);
        }
        ck_assert_int_eq(atomic_load(&seen.pieces), cases[i].pieces);
    }
}
END_TEST

/* Writes a model of the operators that use threads, and ends the writer. */
static struct onnx_bytes write_model(void)
{
    struct own_case self = {.writer.opset = 17};
    onnx_write_input(&self.writer, "x", ONNX_FLOAT, "640,1024");
    onnx_write_input(&self.writer, "row", ONNX_FLOAT, "1024");
    own_case_node(&self, "Add", "", "x row", "sum");
    own_case_node(&self, "Mul", "", "sum x", "product");
    own_case_node(&self, "Sigmoid", "", "product", "sigmoid");
    own_case_node(&self, "Erf", "", "sigmoid", "erf");
    own_case_node(&self, "Transpose", "", "erf", "turned");
    own_case_node(&self, "Softmax", "axis=0", "turned", "soft");
    own_case_node(&self, "Transpose", "", "soft", "back");
    own_case_node(&self, "LayerNormalization", "", "back row row", "normal");
    own_case_weights(&self, "image_shape", "i4: 1 2 320 1024");
    own_case_node(&self, "Reshape", "", "normal image_shape", "image");
    own_case_node(&self, "MaxPool", "kernel_shape=[3,3] pads=[1,1,1,1]", "image", "pooled");
    own_case_node(&self, "Cast", "to=7", "pooled", "whole");
    own_case_weights(&self, "hundred", "f: 100");
    own_case_weights(&self, "byte_shape", "i4: 1 10 256 256");
    own_case_weights(&self, "flat_shape", "i1: -1");
    own_case_weights(&self, "begin", "i1: 0");
    own_case_weights(&self, "end", "i1: 360");
    own_case_weights(&self, "filter_shape", "i4: 4 10 3 3");
    own_case_node(&self, "Mul", "", "x hundred", "large");
    own_case_node(&self, "Cast", "to=3", "large", "bytes");
    own_case_node(&self, "Reshape", "", "bytes byte_shape", "byte_image");
    own_case_node(&self, "Reshape", "", "bytes flat_shape", "flat");
    own_case_node(&self, "Slice", "", "flat begin end", "few");
    own_case_node(&self, "Reshape", "", "few filter_shape", "filters");
    own_case_node(&self, "ConvInteger", "pads=[1,1,1,1]", "byte_image filters", "sums");
    own_case_output(&self, "sums", ONNX_INT32);
    own_case_output(&self, "pooled", ONNX_FLOAT);
    own_case_output(&self, "whole", ONNX_INT64);
    return onnx_write_end(&self.writer);
}

static void run(const struct onnx_bytes *model, unsigned threads, const struct own_tensor *inputs,
                struct own_graph **ret_graph, struct own_tensor *ret_outputs)
{
    struct problem problem = {""};
    const struct own_graph_input input = {
        .bytes = model->at, .size = model->size, .threads = threads};
    ck_assert_msg(own_graph_open(&input, ret_graph, &problem) == ONNX_OK, "%s", problem.text);
    ck_assert_msg(own_graph_run(*ret_graph, inputs, ret_outputs, &problem) == ONNX_OK, "%s",
                  problem.text);
}

START_TEST(threads_change_no_bit)
{
    float *x = malloc((size_t)ROWS * COLUMNS * sizeof *x);
    float *row = malloc(COLUMNS * sizeof *row);
    struct own_graph *graphs[2] = {NULL, NULL};
    struct own_tensor made[2][OUTPUTS] = {{{.type = ONNX_UNDEFINED}}};
    ck_assert(x != NULL && row != NULL);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        x[i] = (float)(i % 2003 * 79 % 2003) / 1000 - 1;
    }
    memcpy(row, x + 5, COLUMNS * sizeof *row);
    const struct own_tensor inputs[] = {{.type = ONNX_FLOAT,
                                         .rank = 2,
                                         .dims = {ROWS, COLUMNS},
                                         .elements = ROWS * COLUMNS,
                                         .bytes = ROWS * COLUMNS * (int64_t)sizeof *x,
                                         .at = x},
                                        {.type = ONNX_FLOAT,
                                         .rank = 1,
                                         .dims = {COLUMNS},
                                         .elements = COLUMNS,
                                         .bytes = COLUMNS * (int64_t)sizeof *row,
                                         .at = row}};
    struct onnx_bytes model = write_model();
    run(&model, 1, inputs, &graphs[0], made[0]);
    run(&model, THREADS, inputs, &graphs[1], made[1]);
    for (int i = 0; i < OUTPUTS; i++) {
        ck_assert_int_ge(made[0][i].elements, 4 * 256 * 256);
        ck_assert_mem_eq(made[0][i].at, made[1][i].at, (size_t)made[0][i].bytes);
    }
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < OUTPUTS; k++) {
            own_tensor_drop(&made[i][k]);
        }
        own_graph_close(&graphs[i]);
    }
    onnx_bytes_fini(&model);
    free(x);
    free(row);
}
END_TEST

SUITE("own_threads", NULL, NULL, TEST(each_round_is_done_once), TEST(threads_change_no_bit))
