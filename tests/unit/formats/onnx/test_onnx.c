/* Models that are read, and models that lie: each lie is refused by a status of its own, with the
 * name of what lies. */
#include "formats/onnx/onnx.h"
#include "tests/support/onnx_models.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* Reads a model that the writer ends, and returns the status. */
static enum onnx_status read_written(struct onnx_writer *writer, struct problem *ret_problem)
{
    struct onnx_bytes bytes = onnx_write_end(writer);
    struct onnx_model *model = NULL;
    const enum onnx_status status = onnx_read(bytes.at, bytes.size, &model, ret_problem);
    onnx_destroy(&model);
    onnx_bytes_fini(&bytes);
    return status;
}

static void expect_refusal(struct onnx_writer *writer, enum onnx_status status, const char *text)
{
    struct problem problem = {""};
    ck_assert_int_eq(read_written(writer, &problem), status);
    ck_assert_msg(strstr(problem.text, text) != NULL, "\"%s\" does not say \"%s\"", problem.text,
                  text);
}

/* Begins a model with one input and one output "y". */
static struct onnx_writer small_model(void)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "2,3");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "2,3");
    return writer;
}

START_TEST(a_model_of_each_kind_is_read)
{
    struct onnx_bytes bytes = onnx_model_write((size_t)_i);
    struct onnx_model *model = NULL;
    struct problem problem = {""};
    const enum onnx_status status = onnx_read(bytes.at, bytes.size, &model, &problem);
    ck_assert_msg(status == ONNX_OK, "%s: %s", onnx_model_names[_i], problem.text);
    ck_assert_uint_gt(model->node_count, 80);
    ck_assert(model->initializers[0].elements > 0);
    onnx_destroy(&model);
    ck_assert_ptr_null(model);
    onnx_bytes_fini(&bytes);
}
END_TEST

START_TEST(a_model_cut_anywhere_is_refused)
{
    struct onnx_bytes bytes = onnx_model_write(1);
    for (size_t size = 0; size < bytes.size; size += 1 + size / 16) {
        struct onnx_model *model = NULL;
        ck_assert_int_ne(onnx_read(bytes.at, size, &model, NULL), ONNX_OK);
        ck_assert_ptr_null(model);
    }
    onnx_bytes_fini(&bytes);
}
END_TEST

START_TEST(a_circle_is_refused_by_its_nodes)
{
    struct onnx_writer writer = small_model();
    onnx_write_node(&writer, "Add", "x c", "b");
    onnx_write_node(&writer, "Relu", "b", "c");
    onnx_write_node(&writer, "Relu", "c", "y");
    expect_refusal(&writer, ONNX_CYCLE, "node \"c\" (Relu) needs what node \"b\" (Add) makes");
    writer = small_model();
    onnx_write_node(&writer, "Relu", "y", "y");
    expect_refusal(&writer, ONNX_CYCLE, "\"y\"");
}
END_TEST

START_TEST(nodes_out_of_order_are_no_circle)
{
    struct onnx_writer writer = small_model();
    onnx_write_node(&writer, "Relu", "b", "y");
    onnx_write_node(&writer, "Relu", "x", "b");
    expect_refusal(&writer, ONNX_ORDER, "\"y\" (Relu) stands before node \"b\" (Relu)");
}
END_TEST

START_TEST(a_name_stands_once)
{
    struct onnx_writer writer = small_model();
    onnx_write_node(&writer, "Relu", "x", "y");
    onnx_write_node(&writer, "Sin", "x", "y");
    expect_refusal(&writer, ONNX_TWICE, "\"y\" stands twice");
    writer = small_model();
    onnx_write_input(&writer, "x", WRITER_FLOAT, "1");
    onnx_write_node(&writer, "Relu", "x", "y");
    expect_refusal(&writer, ONNX_TWICE, "\"x\" stands twice");
    writer = small_model();
    onnx_begin_node(&writer, "Softmax", "x", "y");
    onnx_node_integer(&writer, "axis", 0);
    onnx_node_integer(&writer, "axis", 1);
    onnx_end_node(&writer);
    expect_refusal(&writer, ONNX_TWICE, "\"axis\" twice");
}
END_TEST

START_TEST(weights_may_be_the_default_of_an_input)
{
    struct onnx_writer writer = small_model();
    struct problem problem = {""};
    onnx_write_input(&writer, "w", WRITER_FLOAT, "2,3");
    onnx_write_weights(&writer, "w", "2,3");
    onnx_write_node(&writer, "Add", "x w", "y");
    ck_assert_int_eq(read_written(&writer, &problem), ONNX_OK);
    writer = small_model();
    onnx_write_weights(&writer, "x", "2,3");
    onnx_write_weights(&writer, "x", "2,3");
    onnx_write_node(&writer, "Relu", "x", "y");
    expect_refusal(&writer, ONNX_TWICE, "\"x\" stands twice");
}
END_TEST

START_TEST(an_input_that_nobody_makes_is_named)
{
    struct onnx_writer writer = small_model();
    onnx_write_node(&writer, "Add", "x ghost", "y");
    expect_refusal(&writer, ONNX_UNMADE, "node \"y\" (Add) needs \"ghost\" as input 1");
    writer = small_model();
    onnx_write_node(&writer, "Relu", "x", "z");
    expect_refusal(&writer, ONNX_UNMADE, "its output \"y\"");
}
END_TEST

START_TEST(versions_that_are_not_known_are_refused)
{
    struct onnx_writer writer = small_model();
    onnx_write_node(&writer, "Relu", "x", "y");
    writer.opset = 6;
    expect_refusal(&writer, ONNX_VERSION, "opset 6 of ai.onnx; opsets 7 to 17");
    writer = small_model();
    onnx_write_node(&writer, "Relu", "x", "y");
    writer.opset = 18;
    expect_refusal(&writer, ONNX_VERSION, "opset 18");
    struct onnx_model *model = NULL;
    struct problem problem = {""};
    ck_assert_int_eq(onnx_read(NULL, 0, &model, &problem), ONNX_VERSION);
    ck_assert_ptr_nonnull(strstr(problem.text, "IR version 0"));
}
END_TEST

START_TEST(a_name_is_plain_text)
{
    struct onnx_writer writer = small_model();
    onnx_write_node(&writer, "Relu", "x", "\x1b[2J");
    expect_refusal(&writer, ONNX_NAME, "\"?[2J\", is not plain");
    char *name = calloc(1, ONNX_NAME_BYTES + 2);
    memset(name, 'n', ONNX_NAME_BYTES + 1);
    writer = small_model();
    onnx_write_input(&writer, name, WRITER_FLOAT, "1");
    expect_refusal(&writer, ONNX_NAME, "1025 bytes; at most 1024");
    free(name);
}
END_TEST

/* ---------------------------------------------------------------- weights that lie */

/* Adds a tensor with these dims, and so many bytes of raw data; -1: none at all. */
static void add_tensor(struct onnx_writer *writer, const uint64_t *dims, size_t rank, int type,
                       long raw_bytes)
{
    static const uint8_t zeros[64];
    struct onnx_bytes tensor = {NULL, 0, 0};
    for (size_t i = 0; i < rank; i++) {
        onnx_put_number(&tensor, 1, dims[i]);
    }
    onnx_put_number(&tensor, 2, (uint64_t)type);
    onnx_put_text(&tensor, 8, "liar");
    if (raw_bytes >= 0) {
        onnx_put_bytes(&tensor, WRITER_RAW_DATA, zeros, (size_t)raw_bytes);
    }
    onnx_put_message(&writer->graph, 5, &tensor);
}

START_TEST(weights_that_lie_are_refused_by_name)
{
    static const struct {
        uint64_t dims[9];
        size_t rank;
        int type;
        long raw_bytes;
        enum onnx_status status;
        const char *text;
    } liars[] = {
        {{2, 3}, 2, 1, 20, ONNX_WEIGHTS, "24 bytes by its dims, and the file has 20"},
        {{2500000000}, 1, 1, 4, ONNX_WEIGHTS, "10000000000 bytes by its dims, and the file has 4"},
        {{2500000000}, 1, 1, -1, ONNX_WEIGHTS, "2500000000 elements by its dims"},
        {{UINT64_C(1) << 63}, 1, 1, 4, ONNX_WEIGHTS, "a dim of -9223372036854775808"},
        {{UINT64_MAX}, 1, 1, 4, ONNX_WEIGHTS, "a dim of -1"},
        {{UINT64_C(1) << 40, UINT64_C(1) << 40}, 2, 1, 0, ONNX_WEIGHTS, "more than 2^63 - 1"},
        {{UINT64_C(1) << 40, UINT64_C(1) << 20}, 2, 2, 0, ONNX_WEIGHTS, "more than 2^46 bytes"},
        {{1, 1, 1, 1, 1, 1, 1, 1, 1}, 9, 1, 4, ONNX_TOO_LARGE, "more than 8 dims"},
        {{1}, 1, 17, 4, ONNX_UNSUPPORTED, "unknown type 17"},
        {{1}, 1, 0, 4, ONNX_UNSUPPORTED, "unknown type 0"},
        {{1}, 1, 8, 4, ONNX_WEIGHTS, "0 bytes by its dims"},
    };
    for (size_t i = 0; i < sizeof liars / sizeof liars[0]; i++) {
        struct onnx_writer writer = small_model();
        onnx_write_node(&writer, "Relu", "x", "y");
        add_tensor(&writer, liars[i].dims, liars[i].rank, liars[i].type, liars[i].raw_bytes);
        struct problem problem = {""};
        ck_assert_int_eq(read_written(&writer, &problem), liars[i].status);
        ck_assert_msg(strstr(problem.text, "\"liar\"") != NULL, "%s", problem.text);
        ck_assert_msg(strstr(problem.text, liars[i].text) != NULL, "%s", problem.text);
    }
}
END_TEST

/* Adds a tensor of one element that lies in another file. */
static void add_external(struct onnx_writer *writer, const char *path, const char *length)
{
    struct onnx_bytes tensor = {NULL, 0, 0};
    struct onnx_bytes pair = {NULL, 0, 0};
    onnx_put_number(&tensor, 1, 1);
    onnx_put_number(&tensor, 2, WRITER_FLOAT);
    onnx_put_text(&tensor, 8, "far");
    onnx_put_text(&pair, 1, "location");
    onnx_put_text(&pair, 2, path);
    onnx_put_message(&tensor, 13, &pair);
    onnx_put_text(&pair, 1, "length");
    onnx_put_text(&pair, 2, length);
    onnx_put_message(&tensor, 13, &pair);
    onnx_put_number(&tensor, 14, 1);
    onnx_put_message(&writer->graph, 5, &tensor);
}

START_TEST(other_data_stays_in_the_folder)
{
    static const char *const paths[] = {"/etc/passwd", "../secret", "a/../../b", "",     "a//b",
                                        "./weights",   "a\\..\\b",  "..",        "a/..", "a/./b"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct onnx_writer writer = small_model();
        onnx_write_node(&writer, "Relu", "x", "y");
        add_external(&writer, paths[i], "4");
        expect_refusal(&writer, ONNX_PATH, "\"far\"");
    }
    struct onnx_writer writer = small_model();
    struct problem problem = {""};
    onnx_write_node(&writer, "Relu", "x", "y");
    add_external(&writer, "weights/..a/b.bin", "4");
    ck_assert_int_eq(read_written(&writer, &problem), ONNX_OK);
    writer = small_model();
    onnx_write_node(&writer, "Relu", "x", "y");
    add_external(&writer, "weights.bin", "5");
    expect_refusal(&writer, ONNX_WEIGHTS, "4 bytes by its dims and 5");
    writer = small_model();
    onnx_write_node(&writer, "Relu", "x", "y");
    add_external(&writer, "weights.bin", "99999999999999999999");
    expect_refusal(&writer, ONNX_WEIGHTS, "no number");
}
END_TEST

START_TEST(dims_of_an_input_are_in_range)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "9223372036854775808");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "1");
    onnx_write_node(&writer, "Relu", "x", "y");
    expect_refusal(&writer, ONNX_OVERFLOW, "\"x\" has a dim of -9223372036854775808");
}
END_TEST

START_TEST(counts_have_caps)
{
    struct onnx_writer writer = small_model();
    for (int i = 0; i <= ONNX_NODES_MOST; i++) {
        onnx_put_bytes(&writer.graph, 1, "", 0);
    }
    expect_refusal(&writer, ONNX_TOO_LARGE, "65537 nodes; at most 65536");
    writer = small_model();
    onnx_begin_node(&writer, "Relu", "x", "y");
    for (int i = 0; i < 65; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "a%d", i);
        onnx_node_integer(&writer, name, i);
    }
    onnx_end_node(&writer);
    expect_refusal(&writer, ONNX_TOO_LARGE, "more than 64 attributes");
}
END_TEST

START_TEST(groups_and_long_numbers_are_no_fields)
{
    static const struct {
        uint8_t bytes[12];
        size_t size;
    } wrong[] = {{{0x0b}, 1},          /* a group */
                 {{0x0a, 0x05, 1}, 3}, /* longer than the rest */
                 {{0x02, 0x00}, 2},    /* field 0 */
                 {{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 11},
                 {{0x0d, 1, 2}, 3}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct onnx_model *model = NULL;
        ck_assert_int_eq(onnx_read(wrong[i].bytes, wrong[i].size, &model, NULL), ONNX_MALFORMED);
    }
}
END_TEST

START_TEST(small_tensors_are_decoded)
{
    static const int64_t values[] = {3, -1, INT64_MIN};
    struct onnx_bytes message = {NULL, 0, 0};
    struct onnx_bytes packed = {NULL, 0, 0};
    struct onnx_tensor tensor;
    int64_t read[3] = {0};
    onnx_put_number(&message, 1, 3);
    onnx_put_number(&message, 2, WRITER_INT64);
    for (size_t i = 0; i < 3; i++) {
        onnx_put_varint(&packed, (uint64_t)values[i]);
    }
    onnx_put_message(&message, 7, &packed);
    const struct onnx_span span = {message.at, message.size};
    ck_assert_int_eq(onnx_tensor_read(span, &tensor, NULL), ONNX_OK);
    ck_assert_int_eq(tensor.bytes, 24);
    ck_assert(onnx_tensor_integers(&tensor, 3, read));
    ck_assert_mem_eq(read, values, sizeof read);
    ck_assert(!onnx_tensor_integers(&tensor, 2, read));
    onnx_bytes_fini(&message);
}
END_TEST

SUITE("onnx", NULL, NULL, LOOP(a_model_of_each_kind_is_read, 0, ONNX_MODELS),
      TEST(a_model_cut_anywhere_is_refused), TEST(a_circle_is_refused_by_its_nodes),
      TEST(nodes_out_of_order_are_no_circle), TEST(a_name_stands_once),
      TEST(weights_may_be_the_default_of_an_input), TEST(an_input_that_nobody_makes_is_named),
      TEST(versions_that_are_not_known_are_refused), TEST(a_name_is_plain_text),
      TEST(weights_that_lie_are_refused_by_name), TEST(other_data_stays_in_the_folder),
      TEST(dims_of_an_input_are_in_range), TEST(counts_have_caps),
      TEST(groups_and_long_numbers_are_no_fields), TEST(small_tensors_are_decoded))
