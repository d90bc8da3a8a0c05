/* The work of known models, and the steps that they become. */
#include "consumer/model/model_steps.h"
#include "tests/support/onnx_models.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

struct known {
    struct onnx_bytes bytes;
    struct onnx_model *model;
    struct onnx_shapes *shapes;
    struct model_plan *plan;
};

static struct onnx_span span_of(const char *text)
{
    return (struct onnx_span){(const uint8_t *)text, strlen(text)};
}

static enum steps_status make(struct known *known, struct problem *problem)
{
    const struct onnx_binding bindings[] = {{span_of("batch"), 1}, {span_of("sequence"), 128}};
    ck_assert_int_eq(onnx_read(known->bytes.at, known->bytes.size, &known->model, problem),
                     ONNX_OK);
    struct onnx_infer_input input = {.model = known->model, .bindings = bindings};
    const struct onnx_port *port = &known->model->inputs[0];
    for (uint32_t i = 0; i < port->rank; i++) {
        input.binding_count += port->dims[i].value < 0;
    }
    ck_assert_msg(onnx_infer(&input, &known->shapes, problem) == ONNX_OK, "%s", problem->text);
    return model_plan_make(known->model, known->shapes, &known->plan, problem);
}

static void known_fini(struct known *known)
{
    model_plan_destroy(&known->plan);
    onnx_shapes_destroy(&known->shapes);
    onnx_destroy(&known->model);
    onnx_bytes_fini(&known->bytes);
}

/* Published: 4.09 billion multiplications and 25.6 million parameters of ResNet-50, 569 million and
 * 4.2 million of MobileNet. BERT and GPT-2 have 12 layers of 12 x 768 x 768 weights, of which each
 * token is multiplied with all, and attention besides; 2 x 128 x 50257 x 768 for the words. */
START_TEST(known_models_have_their_published_work)
{
    static const struct {
        double operations, parameters;
    } published[ONNX_MODELS] = {
        {2 * 4.09e9, 25.6e6},
        {2 * 569e6, 4.25e6},
        {2.0 * 128 * 12 * 12 * 768 * 768 + 12 * 4.0 * 128 * 128 * 768, 109.3e6},
        {2.0 * 128 * (12.0 * 12 * 768 * 768 + 50257.0 * 768) + 12 * 4.0 * 128 * 128 * 768,
         163.0e6}};
    struct known known = {.bytes = onnx_model_write((size_t)_i)};
    struct problem problem = {""};
    ck_assert_msg(make(&known, &problem) == STEPS_OK, "%s", problem.text);
    double heavy = 0;
    for (uint32_t i = 0; i < known.plan->node_count; i++) {
        struct operation_size size;
        if (known.plan->nodes[i].is_heavy) {
            ck_assert_int_eq(operation_measure(&known.plan->nodes[i].operation, &size, NULL),
                             OPERATION_OK);
            heavy += (double)size.flops;
        }
    }
    ck_assert_double_eq_tol(heavy / published[_i].operations, 1, 0.01);
    ck_assert_double_eq_tol((double)known.plan->parameters / published[_i].parameters, 1, 0.02);
    known_fini(&known);
}
END_TEST

START_TEST(steps_have_all_weights_and_flow_forward)
{
    struct known known = {.bytes = onnx_model_write((size_t)_i)};
    struct problem problem = {""};
    ck_assert_int_eq(make(&known, &problem), STEPS_OK);
    const struct steps *steps = known.plan->steps;
    int64_t weights = 0;
    ck_assert_uint_le(steps->step_count, MODEL_STEPS_MOST);
    ck_assert_uint_gt(steps->step_count, 20);
    for (size_t i = 0; i < steps->step_count; i++) {
        weights += steps->steps[i].weight_bytes;
        ck_assert_uint_gt(steps->steps[i].part_count, 0);
    }
    for (size_t i = 0; i < steps->edge_count; i++) {
        ck_assert_uint_lt(steps->edges[i].from, steps->edges[i].to);
        ck_assert_int_gt(steps->edges[i].bytes, 0);
    }
    /* A few numbers are used by many steps; nothing else is. */
    ck_assert_int_ge(weights, known.plan->weight_bytes - 64);
    ck_assert_int_le(weights, known.plan->weight_bytes + 65536);
    ck_assert_int_gt(steps->steps[0].brought_bytes, 0);
    ck_assert_int_gt(steps->steps[steps->step_count - 1].fetched_bytes, 0);
    known_fini(&known);
}
END_TEST

/* Writes a node of one input and weights, and counts it. */
static struct operation_size counted(const char *operator, const char * input, const char *weights,
                                     const char *strides, const char *pads, const char *expected)
{
    struct onnx_writer writer = {.opset = 13};
    struct known known = {.model = NULL};
    struct problem problem = {""};
    struct operation_size size = {.flops = 0};
    char text[OPERATION_TEXT_SIZE];
    onnx_write_input(&writer, "x", WRITER_FLOAT, input);
    onnx_write_weights(&writer, "w", weights);
    onnx_write_output(&writer, "y", WRITER_FLOAT, NULL);
    onnx_begin_node(&writer, operator, "x w", "y");
    onnx_node_integers(&writer, "strides", strides);
    onnx_node_integers(&writer, "pads", pads);
    onnx_end_node(&writer);
    known.bytes = onnx_write_end(&writer);
    ck_assert_msg(make(&known, &problem) == STEPS_OK, "%s", problem.text);
    ck_assert_int_eq(operation_measure(&known.plan->nodes[0].operation, &size, NULL), OPERATION_OK);
    operation_write(&known.plan->nodes[0].operation, text);
    ck_assert_str_eq(text, expected);
    known_fini(&known);
    return size;
}

START_TEST(convolutions_count_what_they_do)
{
    struct operation_size size = counted("Conv", "2,3,9,9", "8,3,3,3", "2,2", "1,1,1,1",
                                         "conv:2x9x9x3x8x3x3,stride=2,padding=1:fp32");
    ck_assert(size.flops == 2 * 2 * 5 * 5 * 8 * 3 * 9);
    /* Uneven padding is counted by what the windows reach. */
    size =
        counted("Conv", "2,3,9,9", "8,3,3,3", "2,2", "0,0,1,1", "conv:2x9x9x3x8x3x3,stride=2:fp32");
    ck_assert(size.flops == 2 * 2 * 4 * 4 * 8 * 3 * 9);
    size = counted("Conv", "1,4,10", "6,4,3", "2", "1,0", "conv:1x1x7x4x6x1x3:fp32");
    ck_assert(size.flops == 2 * 5 * 6 * 4 * 3);
    size = counted("Conv", "1,1,4,4,4", "2,1,2,2,2", "1,1,1", "0,0,0,0,0,0",
                   "conv:1x12x4x1x2x4x2:fp32");
    ck_assert(size.flops == 2 * 27 * 2 * 8);
    size = counted("ConvTranspose", "1,4,5,5", "4,6,3,3", "2,2", "0,0,0,0",
                   "conv:1x11x11x6x4x3x3,stride=2:fp32");
    ck_assert(size.flops == 2 * 25 * 4 * 6 * 9);
}
END_TEST

/* A said output and strides of 2^40 would reach 2^70. */
START_TEST(windows_that_reach_too_far_are_refused)
{
    struct onnx_writer writer = {.opset = 13};
    struct known known = {.model = NULL};
    struct problem problem = {""};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "1,1,1073741825,1");
    onnx_write_weights(&writer, "w", "1,1,1,1");
    onnx_write_output(&writer, "y", WRITER_FLOAT, NULL);
    onnx_begin_node(&writer, "ConvTranspose", "x w", "y");
    onnx_node_integers(&writer, "strides", "1099511627776,1099511627776");
    onnx_node_integers(&writer, "output_shape", "5,5");
    onnx_end_node(&writer);
    known.bytes = onnx_write_end(&writer);
    ck_assert_int_eq(make(&known, &problem), STEPS_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(problem.text, "node \"y\" (ConvTranspose): "));
    known_fini(&known);
}
END_TEST

START_TEST(work_that_is_not_known_is_refused_by_name)
{
    struct onnx_writer writer = {.opset = 13};
    struct known known = {.model = NULL};
    struct problem problem = {""};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "2,3");
    onnx_write_output(&writer, "y", WRITER_FLOAT, NULL);
    onnx_begin_node(&writer, "Einsum", "x x", "y");
    onnx_node_text(&writer, "equation", "ij,ij->i");
    onnx_end_node(&writer);
    known.bytes = onnx_write_end(&writer);
    ck_assert_int_eq(make(&known, &problem), STEPS_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(problem.text, "node \"y\" (Einsum): the work"));
    known_fini(&known);
    writer = (struct onnx_writer){.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "2,3");
    onnx_write_output(&writer, "y", WRITER_FLOAT, NULL);
    onnx_write_node(&writer, "Identity", "x", "y");
    known = (struct known){.bytes = onnx_write_end(&writer)};
    ck_assert_int_eq(make(&known, &problem), STEPS_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(problem.text, "computes or moves anything"));
    known_fini(&known);
}
END_TEST

START_TEST(more_products_than_steps_share_them)
{
    struct onnx_writer writer = {.opset = 13};
    struct known known = {.model = NULL};
    struct problem problem = {""};
    char from[16] = "x";
    onnx_write_input(&writer, "x", WRITER_FLOAT, "4,4");
    onnx_write_weights(&writer, "w", "4,4");
    for (int i = 0; i < 2 * MODEL_STEPS_MOST + 1; i++) {
        char inputs[32];
        char to[16];
        (void)snprintf(inputs, sizeof inputs, "%s w", from);
        (void)snprintf(to, sizeof to, "n%d", i);
        onnx_write_node(&writer, "MatMul", inputs, to);
        memcpy(from, to, sizeof from);
    }
    onnx_write_output(&writer, from, WRITER_FLOAT, "4,4");
    known.bytes = onnx_write_end(&writer);
    ck_assert_msg(make(&known, &problem) == STEPS_OK, "%s", problem.text);
    ck_assert_uint_eq(known.plan->steps->step_count, 171);
    ck_assert_uint_eq(known.plan->steps->edge_count, 170);
    ck_assert_uint_eq(known.plan->steps->steps[0].part_count, 3);
    known_fini(&known);
}
END_TEST

SUITE("model_steps", NULL, NULL, LOOP(known_models_have_their_published_work, 0, ONNX_MODELS),
      LOOP(steps_have_all_weights_and_flow_forward, 0, ONNX_MODELS),
      TEST(convolutions_count_what_they_do), TEST(windows_that_reach_too_far_are_refused),
      TEST(work_that_is_not_known_is_refused_by_name), TEST(more_products_than_steps_share_them))
