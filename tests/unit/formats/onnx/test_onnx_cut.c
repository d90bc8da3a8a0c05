/* The tests cut small models into stages, and read the stages again: what each of them takes and
 * leaves, which weights it has, and which cuts are refused. */
#include "formats/onnx/onnx_cut.h"
#include "formats/onnx/onnx_infer.h"

#include "base/cleanup.h"
#include "tests/support/onnx_writer.h"
#include "tests/support/suite.h"

#include <string.h>

/* y = x w + b, z = Tanh(y), with w and b in "weights.bin", and a shape that both stages use. */
static struct onnx_bytes bytes;
static struct onnx_model *model;
static struct onnx_shapes *shapes;
static struct onnx_cut *cut;
static struct problem problem;

static void begin(void)
{
    struct onnx_writer writer = {.opset = 13};
    const int64_t flat[] = {-1, 2};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "5,3");
    onnx_write_output(&writer, "z", WRITER_FLOAT, "n,2");
    onnx_write_weights(&writer, "w", "3,4");
    onnx_write_weights(&writer, "b", "4");
    onnx_write_integers(&writer, "flat", 2, flat);
    onnx_write_node(&writer, "MatMul", "x w", "p");
    onnx_write_node(&writer, "Add", "p b", "q");
    onnx_write_node(&writer, "Tanh", "q", "t");
    onnx_write_node(&writer, "Reshape", "t flat", "z");
    bytes = onnx_write_end(&writer);
    ck_assert_int_eq(onnx_read(bytes.at, bytes.size, &model, &problem), ONNX_OK);
    const struct onnx_infer_input input = {.model = model};
    ck_assert_int_eq(onnx_infer(&input, &shapes, &problem), ONNX_OK);
    cut = NULL;
}

static void end(void)
{
    onnx_cut_destroy(&cut);
    onnx_shapes_destroy(&shapes);
    onnx_destroy(&model);
    onnx_bytes_fini(&bytes);
}

static enum onnx_status make(const uint32_t *stage_of, uint32_t stages,
                             const struct onnx_shapes *other)
{
    const struct onnx_cut_input input = {.bytes = {bytes.at, bytes.size},
                                         .model = model,
                                         .shapes = shapes,
                                         .other = other,
                                         .stage_of = stage_of,
                                         .stage_count = stages};
    return onnx_cut_make(&input, &cut, &problem);
}

/* The other file has at each place the low byte of the place. */
static bool read_other(void *context, struct onnx_span path, uint64_t offset, size_t length,
                       uint8_t *ret_bytes)
{
    unsigned *calls = context;
    ck_assert(onnx_span_is(path, "weights.bin"));
    for (size_t i = 0; i < length; i++) {
        ret_bytes[i] = (uint8_t)(offset + i);
    }
    (*calls)++;
    return true;
}

static bool read_nothing(void *context, struct onnx_span path, uint64_t offset, size_t length,
                         uint8_t *ret_bytes)
{
    (void)context;
    (void)path;
    (void)offset;
    (void)length;
    (void)ret_bytes;
    return false;
}

/* Reads a stage of the cut as a model. The caller frees both. */
static struct onnx_model *read_stage(uint32_t number, uint8_t **ret_bytes)
{
    const struct onnx_stage *stage = &cut->stages[number];
    struct onnx_model *read = NULL;
    unsigned calls = 0;
    *ret_bytes = malloc(stage->size);
    ck_assert_ptr_nonnull(*ret_bytes);
    for (uint64_t at = 0; at < stage->size; at += 7) { /* in reads that end within pieces */
        const uint64_t left = stage->size - at;
        ck_assert(
            onnx_cut_read(stage, at, left < 7 ? left : 7, read_other, &calls, *ret_bytes + at));
    }
    ck_assert_msg(onnx_read(*ret_bytes, stage->size, &read, &problem) == ONNX_OK, "%s",
                  problem.text);
    return read;
}

START_TEST(a_stage_has_its_weights_and_names_what_crosses)
{
    const uint32_t stage_of[] = {0, 0, 1, 1};
    uint8_t *first = NULL;
    uint8_t *second = NULL;
    ck_assert_int_eq(make(stage_of, 2, NULL), ONNX_OK);
    struct onnx_model *front = read_stage(0, &first);
    struct onnx_model *back = read_stage(1, &second);
    ck_assert_uint_eq(front->node_count, 2);
    ck_assert_uint_eq(front->initializer_count, 2);
    ck_assert(!front->initializers[0].is_external);
    ck_assert_uint_eq(cut->stages[0].weight_bytes, 64);
    ck_assert(onnx_span_is(front->outputs[0].name, "q"));
    ck_assert_int_eq(front->outputs[0].dims[1].value, 4);
    ck_assert_uint_eq(back->node_count, 2);
    ck_assert_uint_eq(back->initializer_count, 1);
    ck_assert_uint_eq(back->input_count, 1);
    ck_assert(onnx_span_is(back->inputs[0].name, "q"));
    ck_assert_int_eq(back->inputs[0].type, ONNX_FLOAT);
    ck_assert_int_eq(back->inputs[0].dims[0].value, 5);
    ck_assert(onnx_span_is(back->outputs[0].name, "z"));
    ck_assert_uint_eq(cut->stages[1].inputs[0].from, 0);
    /* The weights lie in the stage as they lay in their file: w at 0, b at 48. */
    static const uint8_t begins[] = {48, 49, 50, 51};
    float b[4];
    ck_assert(onnx_tensor_reals(&front->initializers[1], 4, b));
    ck_assert_mem_eq(b, begins, sizeof begins);
    onnx_destroy(&front);
    onnx_destroy(&back);
    free(first);
    free(second);
}
END_TEST

START_TEST(dims_that_differ_between_runs_may_be_any_number)
{
    const uint32_t stage_of[] = {0, 0, 1, 1};
    uint8_t *bytes_of = NULL;
    struct onnx_shapes *other = NULL;
    const struct onnx_given given = {.input = 0,
                                     .tensor = {.type = ONNX_FLOAT, .rank = 2, .dims = {6, 3}}};
    const struct onnx_infer_input input = {.model = model, .given = &given, .given_count = 1};
    ck_assert_msg(onnx_infer(&input, &other, &problem) == ONNX_OK, "%s", problem.text);
    ck_assert_int_eq(make(stage_of, 2, other), ONNX_OK);
    struct onnx_model *back = read_stage(1, &bytes_of);
    ck_assert_uint_eq(back->inputs[0].rank, 2);
    ck_assert_int_eq(back->inputs[0].dims[0].value, -1);
    ck_assert_int_eq(back->inputs[0].dims[1].value, 4);
    onnx_destroy(&back);
    free(bytes_of);
    onnx_shapes_destroy(&other);
}
END_TEST

START_TEST(what_cannot_be_read_is_told)
{
    const uint32_t stage_of[] = {0, 0, 0, 0};
    uint8_t byte;
    ck_assert_int_eq(make(stage_of, 1, NULL), ONNX_OK);
    const struct onnx_stage *stage = &cut->stages[0];
    bool is_read = true;
    for (uint64_t at = 0; at < stage->size; at++) {
        is_read = is_read && onnx_cut_read(stage, at, 1, read_nothing, NULL, &byte);
    }
    ck_assert(!is_read);
    ck_assert(onnx_cut_read(stage, 0, 1, read_nothing, NULL, &byte)); /* of the model's file */
}
END_TEST

START_TEST(a_stage_that_nobody_needs_is_refused)
{
    struct onnx_writer writer = {.opset = 13};
    const uint32_t stage_of[] = {0, 1, 2};
    end();
    onnx_write_input(&writer, "x", WRITER_FLOAT, "2");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "2");
    onnx_write_node(&writer, "Neg", "x", "n");
    onnx_write_node(&writer, "Abs", "x", "unused");
    onnx_write_node(&writer, "Tanh", "n", "y");
    bytes = onnx_write_end(&writer);
    ck_assert_int_eq(onnx_read(bytes.at, bytes.size, &model, &problem), ONNX_OK);
    const struct onnx_infer_input input = {.model = model};
    ck_assert_int_eq(onnx_infer(&input, &shapes, &problem), ONNX_OK);
    ck_assert_int_eq(make(stage_of, 3, NULL), ONNX_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(problem.text, "stage 2 of 3"));
}
END_TEST

SUITE("onnx_cut", begin, end, TEST(a_stage_has_its_weights_and_names_what_crosses),
      TEST(dims_that_differ_between_runs_may_be_any_number), TEST(what_cannot_be_read_is_told),
      TEST(a_stage_that_nobody_needs_is_refused))
