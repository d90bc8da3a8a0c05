/* The tests read what models take and leave, of any version, and compare arrays with it. */
#include "formats/onnx/onnx_interface.h"

#include "tests/support/onnx_writer.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static struct onnx_interface interface;
static struct problem problem;

static enum onnx_status read_bytes(const struct onnx_bytes *bytes)
{
    problem.text[0] = '\0';
    return onnx_interface_read(bytes->at, bytes->size, &interface, &problem);
}

/* A model whose inputs are x and w, of which w has weights in weights.bin. */
static struct onnx_bytes write_model(int64_t opset)
{
    struct onnx_writer writer = {.opset = opset};
    onnx_write_input(&writer, "w", WRITER_FLOAT, "4,3");
    onnx_write_input(&writer, "x", WRITER_FLOAT, "batch,3");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "batch,4");
    onnx_write_weights(&writer, "w", "4,3");
    onnx_write_weights(&writer, "b", "4");
    onnx_begin_node(&writer, "Gemm", "x w b", "y");
    onnx_node_integer(&writer, "transB", 1);
    onnx_end_node(&writer);
    return onnx_write_end(&writer);
}

START_TEST(inputs_outputs_and_files_of_weights_are_read)
{
    struct onnx_bytes model = write_model(13);
    ck_assert_msg(read_bytes(&model) == ONNX_OK, "%s", problem.text);
    ck_assert_uint_eq(interface.input_count, 1); /* w has a default */
    ck_assert(onnx_span_is(interface.inputs[0].name, "x"));
    ck_assert_uint_eq(interface.output_count, 1);
    ck_assert(onnx_span_is(interface.outputs[0].name, "y"));
    ck_assert_uint_eq(interface.file_count, 1);
    ck_assert(onnx_span_is(interface.files[0].path, "weights.bin"));
    ck_assert_int_eq(interface.files[0].end, (4 * 3 + 4) * 4);
    onnx_bytes_fini(&model);
}
END_TEST

START_TEST(a_model_of_an_opset_that_nobody_here_knows_has_an_interface)
{
    struct onnx_bytes model = write_model(99);
    struct onnx_model *graph = NULL;
    ck_assert_int_eq(onnx_read(model.at, model.size, &graph, &problem), ONNX_VERSION);
    ck_assert_msg(read_bytes(&model) == ONNX_OK, "%s", problem.text);
    ck_assert_uint_eq(interface.input_count, 1);
    onnx_bytes_fini(&model);
}
END_TEST

START_TEST(no_beginning_of_a_model_is_a_model_with_more)
{
    struct onnx_bytes model = write_model(13);
    unsigned refused = 0;
    for (size_t size = 0; size < model.size; size++) {
        uint8_t *copy = malloc(size + 1); /* so that a read beyond the end is noticed */
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, model.at, size);
        refused += onnx_interface_read(copy, size, &interface, &problem) != ONNX_OK;
        free(copy);
    }
    ck_assert_uint_ge(refused, model.size - 8); /* the opset alone may be cut off */
    onnx_bytes_fini(&model);
    static const uint8_t text[] = "this is no model";
    ck_assert_int_eq(onnx_interface_read(text, sizeof text, &interface, &problem), ONNX_MALFORMED);
    ck_assert_str_eq(problem.text, "the file is no ONNX model, or is cut short");
}
END_TEST

START_TEST(names_that_stand_twice_are_refused)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "2");
    onnx_write_input(&writer, "x", WRITER_FLOAT, "2");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "2");
    onnx_write_node(&writer, "Abs", "x", "y");
    struct onnx_bytes model = onnx_write_end(&writer);
    ck_assert_int_eq(read_bytes(&model), ONNX_TWICE);
    ck_assert_str_eq(problem.text, "two inputs are called \"x\"");
    onnx_bytes_fini(&model);
}
END_TEST

static bool fits(enum onnx_type type, uint32_t rank, const int64_t *dims)
{
    problem.text[0] = '\0';
    return onnx_interface_fits(&interface.inputs[0], type, rank, dims, &problem);
}

START_TEST(arrays_are_compared_with_what_the_model_takes)
{
    struct onnx_bytes model = write_model(13);
    ck_assert_int_eq(read_bytes(&model), ONNX_OK);
    static const int64_t good[2] = {7, 3};
    static const int64_t wide[2] = {7, 4};
    ck_assert(fits(ONNX_FLOAT, 2, good));
    ck_assert(!fits(ONNX_FLOAT, 2, wide));
    ck_assert_str_eq(problem.text,
                     "the array is float32[7,4], and the model's input \"x\" is float32[batch,3]");
    ck_assert(!fits(ONNX_DOUBLE, 2, good));
    ck_assert(!fits(ONNX_FLOAT, 1, good));
    onnx_bytes_fini(&model);

    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_INT64, NULL);
    onnx_write_output(&writer, "y", WRITER_INT64, NULL);
    onnx_write_node(&writer, "Abs", "x", "y");
    model = onnx_write_end(&writer);
    ck_assert_int_eq(read_bytes(&model), ONNX_OK);
    ck_assert(fits(ONNX_INT64, 1, good) && fits(ONNX_INT64, 2, wide));
    ck_assert(!fits(ONNX_FLOAT, 2, good));
    ck_assert_ptr_nonnull(strstr(problem.text, "int64[] of any shape"));
    onnx_bytes_fini(&model);
}
END_TEST

SUITE("onnx_interface", NULL, NULL, TEST(inputs_outputs_and_files_of_weights_are_read),
      TEST(a_model_of_an_opset_that_nobody_here_knows_has_an_interface),
      TEST(no_beginning_of_a_model_is_a_model_with_more), TEST(names_that_stand_twice_are_refused),
      TEST(arrays_are_compared_with_what_the_model_takes))
