/* Shapes of known models, and refusals that name the node, its operator and the input. */
#include "formats/onnx/onnx_infer.h"
#include "formats/onnx/onnx_rules.h"
#include "tests/support/onnx_models.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static struct onnx_span span_of(const char *text)
{
    return (struct onnx_span){(const uint8_t *)text, strlen(text)};
}

/* Infers a written model with batch=2 and sequence=16 where `binds`, and writes the first output's
 * shape, or the problem. */
static enum onnx_status infer(struct onnx_bytes *bytes, const struct onnx_binding *bindings,
                              size_t count, char ret_text[600])
{
    struct onnx_model *model = NULL;
    struct onnx_shapes *shapes = NULL;
    struct problem problem = {""};
    enum onnx_status status = onnx_read(bytes->at, bytes->size, &model, &problem);
    ck_assert_msg(status == ONNX_OK, "%s", problem.text);
    const struct onnx_infer_input input = {
        .model = model, .bindings = bindings, .binding_count = count};
    status = onnx_infer(&input, &shapes, &problem);
    (void)snprintf(ret_text, 600, "%s",
                   status != ONNX_OK
                       ? problem.text
                       : onnx_shape_text(&shapes->facts[model->outputs[0].value]).text);
    onnx_shapes_destroy(&shapes);
    onnx_destroy(&model);
    onnx_bytes_fini(bytes);
    return status;
}

static void expect(struct onnx_writer *writer, enum onnx_status status, const char *text)
{
    char said[600];
    struct onnx_bytes bytes = onnx_write_end(writer);
    const enum onnx_status got = infer(&bytes, NULL, 0, said);
    ck_assert_msg(got == status, "%s: %s", onnx_status_name(got), said);
    ck_assert_msg(strstr(said, text) != NULL, "\"%s\" does not say \"%s\"", said, text);
}

START_TEST(known_models_have_their_shapes)
{
    static const char *const shapes[ONNX_MODELS] = {"float32[2,1000]", "float32[2,1000]",
                                                    "float32[2,16,768]", "float32[2,16,50257]"};
    const struct onnx_binding bindings[] = {{span_of("batch"), 2}, {span_of("sequence"), 16}};
    char said[600];
    struct onnx_bytes bytes = onnx_model_write((size_t)_i);
    const enum onnx_status status = infer(&bytes, bindings, _i < 2 ? 1 : 2, said);
    ck_assert_msg(status == ONNX_OK, "%s: %s", onnx_status_name(status), said);
    ck_assert_str_eq(said, shapes[_i]);
}
END_TEST

START_TEST(a_dim_without_a_number_is_asked_for)
{
    char said[600];
    struct onnx_bytes bytes = onnx_model_write(0);
    ck_assert_int_eq(infer(&bytes, NULL, 0, said), ONNX_DIM);
    ck_assert_str_eq(said, "dim 0 of input \"data\" is \"batch\", which has no number; --dim "
                           "batch=N gives it one");
    const struct onnx_binding wrong[] = {{span_of("batch"), 2}, {span_of("bacth"), 2}};
    bytes = onnx_model_write(0);
    ck_assert_int_eq(infer(&bytes, wrong, 2, said), ONNX_DIM);
    ck_assert_ptr_nonnull(strstr(said, "--dim bacth"));
    const struct onnx_binding zero[] = {{span_of("batch"), 0}};
    bytes = onnx_model_write(0);
    ck_assert_int_eq(infer(&bytes, zero, 1, said), ONNX_DIM);
    ck_assert_ptr_nonnull(strstr(said, "1 to 2^40"));
    const struct onnx_binding large[] = {{span_of("batch"), INT64_C(1) << 40}};
    bytes = onnx_model_write(0);
    ck_assert_int_eq(infer(&bytes, large, 1, said), ONNX_OVERFLOW);
}
END_TEST

START_TEST(a_dim_without_a_name_is_bound_by_its_place)
{
    struct onnx_writer writer = {.opset = 13};
    char said[600];
    onnx_write_input(&writer, "x", WRITER_FLOAT, "?,3");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "?,3");
    onnx_write_node(&writer, "Relu", "x", "y");
    struct onnx_bytes bytes = onnx_write_end(&writer);
    const struct onnx_binding binding = {span_of("x.0"), 7};
    ck_assert_int_eq(infer(&bytes, &binding, 1, said), ONNX_OK);
    ck_assert_str_eq(said, "float32[7,3]");
}
END_TEST

/* One node over inputs a and b. */
static struct onnx_writer node_of(const char *operator, const char * a, const char *b,
                                  const char *y)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "a", WRITER_FLOAT, a);
    onnx_write_input(&writer, "b", WRITER_FLOAT, b);
    onnx_write_output(&writer, "y", WRITER_FLOAT, y);
    onnx_write_node(&writer, operator, "a b", "y");
    return writer;
}

START_TEST(refusals_name_node_operator_and_input)
{
    struct onnx_writer writer = node_of("MatMul", "2,3", "4,5", NULL);
    expect(&writer, ONNX_SHAPE,
           "node \"y\" (MatMul), input 1 \"b\": float32[2,3] times float32[4,5]: 3 columns meet 4");
    writer = node_of("Add", "2,3", "2,4", NULL);
    expect(&writer, ONNX_SHAPE, "node \"y\" (Add), input 1 \"b\": its dims");
    writer = node_of("Conv", "1,3,8,8", "4,2,3,3", NULL);
    expect(&writer, ONNX_SHAPE, "node \"y\" (Conv), input 1 \"b\": the filters are");
    writer = node_of("Conv", "1,3,8,8", "4,3,9,9", NULL);
    expect(&writer, ONNX_SHAPE, "the kernel covers 9, and dim 2 has 8");
    writer = node_of("FlashMul", "1", "1", NULL);
    expect(&writer, ONNX_OPERATOR, "node \"y\" (FlashMul): the operator FlashMul is not known");
    writer = node_of("Relu", "1", "1", NULL);
    expect(&writer, ONNX_OPERATOR, "it has 2 inputs");
    writer = node_of("Reshape", "2,3", "1", NULL);
    expect(&writer, ONNX_DYNAMIC, "node \"y\" (Reshape), input 1 \"b\": the dims depend");
    writer = node_of("Mul", "1099511627776,1", "1,1099511627776", NULL);
    expect(&writer, ONNX_OVERFLOW, "larger than 2^46 bytes");
}
END_TEST

START_TEST(an_operator_of_another_opset_is_refused)
{
    struct onnx_writer writer = {.opset = 8};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "2");
    onnx_write_output(&writer, "y", WRITER_FLOAT, NULL);
    onnx_write_node(&writer, "Erf", "x", "y");
    expect(&writer, ONNX_OPERATOR, "opset 8 does not have it");
}
END_TEST

START_TEST(an_output_is_what_the_file_says)
{
    struct onnx_writer writer = node_of("Add", "2,3", "2,3", "2,4");
    expect(&writer, ONNX_SHAPE, "output \"y\" is float32[2,4], and its nodes make float32[2,3]");
    writer = node_of("Add", "2,3", "2,3", "n,3");
    expect(&writer, ONNX_OK, "float32[2,3]");
}
END_TEST

/* A slice of a list of integers that the graph computes with; its one element is a dim. */
START_TEST(shapes_are_computed_out_of_shapes)
{
    static const int64_t minus[] = {-1};
    static const int64_t zero[] = {0};
    static const int64_t two[] = {2};
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "4,6");
    onnx_write_output(&writer, "y", WRITER_FLOAT, NULL);
    onnx_write_integers(&writer, "minus", 1, minus);
    onnx_write_integers(&writer, "zero", 1, zero);
    onnx_write_integers(&writer, "two", 1, two);
    onnx_write_node(&writer, "Shape", "x", "shape");
    onnx_write_node(&writer, "Gather", "shape zero", "rows");
    onnx_write_node(&writer, "Div", "rows two", "half");
    onnx_begin_node(&writer, "Concat", "half minus", "dims");
    onnx_node_integer(&writer, "axis", 0);
    onnx_end_node(&writer);
    onnx_write_node(&writer, "Reshape", "x dims", "y");
    expect(&writer, ONNX_OK, "float32[2,12]");
}
END_TEST

START_TEST(slices_go_both_ways_and_never_outside)
{
    static const struct {
        int64_t start, end, step;
        const char *shape;
    } slices[] = {{0, INT64_MAX, 1, "float32[5]"},
                  {-1, INT64_MIN, -1, "float32[5]"},
                  {1, -1, 2, "float32[2]"},
                  {4, 1, 1, "float32[0]"},
                  {0, 5, INT64_MAX, "float32[1]"},
                  {4, -9, INT64_MIN, "float32[1]"},
                  {INT64_MIN, INT64_MAX, 3, "float32[2]"}};
    for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++) {
        struct onnx_writer writer = {.opset = 13};
        onnx_write_input(&writer, "x", WRITER_FLOAT, "5");
        onnx_write_output(&writer, "y", WRITER_FLOAT, NULL);
        static const int64_t zero[] = {0};
        onnx_write_integers(&writer, "starts", 1, &slices[i].start);
        onnx_write_integers(&writer, "ends", 1, &slices[i].end);
        onnx_write_integers(&writer, "axes", 1, zero);
        onnx_write_integers(&writer, "steps", 1, &slices[i].step);
        onnx_write_node(&writer, "Slice", "x starts ends axes steps", "y");
        expect(&writer, ONNX_OK, slices[i].shape);
    }
}
END_TEST

START_TEST(the_table_is_sorted_and_finds_each_operator)
{
    static const char *const some[] = {"Abs", "Xor", "MatMul", "LSTM", "LayerNormalization"};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        ck_assert(onnx_operator_is_known(span_of(some[i])));
    }
    ck_assert(!onnx_operator_is_known(span_of("")));
    ck_assert(!onnx_operator_is_known(span_of("abs")));
    ck_assert(onnx_operator_count() >= 60);
    for (size_t i = 0; i < onnx_operator_count(); i++) {
        const char *name = onnx_operator_at(i)->name;
        ck_assert_msg(onnx_operator_named(span_of(name)) == onnx_operator_at(i), "%s", name);
    }
}
END_TEST

SUITE("onnx_infer", NULL, NULL, LOOP(known_models_have_their_shapes, 0, ONNX_MODELS),
      TEST(a_dim_without_a_number_is_asked_for), TEST(a_dim_without_a_name_is_bound_by_its_place),
      TEST(refusals_name_node_operator_and_input), TEST(an_operator_of_another_opset_is_refused),
      TEST(an_output_is_what_the_file_says), TEST(shapes_are_computed_out_of_shapes),
      TEST(slices_go_both_ways_and_never_outside),
      TEST(the_table_is_sorted_and_finds_each_operator))
