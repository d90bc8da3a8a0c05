/* A graph that our own operators run: what is refused when it is opened, what memory a run takes,
 * and who owns what afterwards. */
#include "provider/onnx/own/own_graph.h"
#include "runtime/files.h"
#include "tests/support/onnx_models.h"
#include "tests/support/own_case.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHAIN = 10, LONG = 1000 };

static void refused(struct own_case *self, enum onnx_engine_status status, const char *words)
{
    const enum onnx_engine_status found = own_case_run(self);
    ck_assert_msg(found == status, "status %d: %s", (int)found, self->problem.text);
    ck_assert_msg(strstr(self->problem.text, words) != NULL, "\"%s\" does not say \"%s\"",
                  self->problem.text, words);
    own_case_fini(self);
}

START_TEST(what_is_not_in_the_table_is_refused_by_name)
{
    struct own_case unknown = {.writer.opset = 13};
    own_case_input(&unknown, "x", "f1: 1");
    own_case_node(&unknown, "Frobnicate", "", "x", "y");
    own_case_output(&unknown, "y", ONNX_FLOAT);
    refused(&unknown, ONNX_ENGINE_UNSUPPORTED, "the operator Frobnicate is not computed here");

    struct own_case known_elsewhere = {.writer.opset = 13};
    own_case_input(&known_elsewhere, "x", "f1: 1");
    own_case_node(&known_elsewhere, "RandomNormalLike", "", "x", "y");
    own_case_output(&known_elsewhere, "y", ONNX_FLOAT);
    refused(&known_elsewhere, ONNX_ENGINE_UNSUPPORTED, "RandomNormalLike");

    struct own_case attribute = {.writer.opset = 13};
    own_case_input(&attribute, "x", "f1: 1");
    own_case_node(&attribute, "Relu", "speed=3", "x", "y");
    own_case_output(&attribute, "y", ONNX_FLOAT);
    refused(&attribute, ONNX_ENGINE_UNSUPPORTED, "node \"y\" (Relu): the attribute \"speed\"");

    struct own_case form = {.writer.opset = 13};
    own_case_input(&form, "x", "f1: 1");
    own_case_node(&form, "Relu", "", "x x", "y");
    own_case_output(&form, "y", ONNX_FLOAT);
    refused(&form, ONNX_ENGINE_UNSUPPORTED, "2 inputs, which is not its form");

    struct own_case opset = {.writer.opset = 8};
    own_case_input(&opset, "x", "f1: 1");
    own_case_node(&opset, "Erf", "", "x", "y");
    own_case_output(&opset, "y", ONNX_FLOAT);
    refused(&opset, ONNX_ENGINE_UNSUPPORTED, "opset 8 does not have Erf");

    struct own_case lacking = {.writer.opset = 13};
    own_case_input(&lacking, "x", "f1: 1");
    own_case_node(&lacking, "CumSum", "", "x -", "y");
    own_case_output(&lacking, "y", ONNX_FLOAT);
    refused(&lacking, ONNX_ENGINE_UNSUPPORTED, "node \"y\" (CumSum) lacks input 1");

    struct own_case output = {.writer.opset = 13};
    own_case_input(&output, "x", "f1: 1");
    own_case_node(&output, "Relu", "", "x", "-");
    own_case_output(&output, "x", ONNX_FLOAT);
    refused(&output, ONNX_ENGINE_UNSUPPORTED, "no first output");
}
END_TEST

/* The type is known from the file alone, so that no run is needed. */
START_TEST(types_are_refused_when_the_model_is_opened)
{
    struct own_case self = {.writer.opset = 13};
    struct problem problem = {""};
    struct own_graph *graph = NULL;
    onnx_write_input(&self.writer, "x", ONNX_DOUBLE, "2,2");
    own_case_node(&self, "Transpose", "", "x", "t");
    own_case_node(&self, "MatMul", "", "t x", "y");
    own_case_output(&self, "y", ONNX_DOUBLE);
    self.model = onnx_write_end(&self.writer);
    const struct own_graph_input input = {
        .bytes = self.model.at, .size = self.model.size, .threads = 1};
    ck_assert_int_eq(own_graph_open(&input, &graph, &problem), ONNX_OPERATOR);
    ck_assert_ptr_null(graph);
    ck_assert_ptr_nonnull(strstr(problem.text, "MatMul of float64"));
    own_case_fini(&self);
}
END_TEST

START_TEST(inputs_have_to_fit)
{
    struct own_case self = {.writer.opset = 13};
    own_case_array("f3: 1 2 3", &self.inputs[self.input_count++]);
    onnx_write_input(&self.writer, "x", ONNX_FLOAT, "batch,2");
    own_case_node(&self, "Relu", "", "x", "y");
    own_case_output(&self, "y", ONNX_FLOAT);
    ck_assert_int_eq(own_case_run(&self), ONNX_ENGINE_INPUT);
    onnx_array_release(&self.inputs[0]);
    own_case_array("f2,2: 1 -2 3 -4", &self.inputs[0]);
    ck_assert_int_eq(own_case_run(&self), ONNX_ENGINE_OK);
    own_case_assert_array(&self.found[0], "f2,2: 1 0 3 0", "another batch");
    onnx_array_release(&self.inputs[0]);
    own_case_array("f1,2: -1 5", &self.inputs[0]);
    ck_assert_int_eq(own_case_run(&self), ONNX_ENGINE_OK);
    own_case_assert_array(&self.found[0], "f1,2: 0 5", "a batch of one");
    own_case_fini(&self);
}
END_TEST

/* Makes a chain of operators over LONG elements. */
static void write_chain(struct own_case *self, unsigned count)
{
    onnx_write_input(&self->writer, "v0", ONNX_FLOAT, "n");
    for (unsigned i = 0; i < count; i++) {
        char from[16];
        char to[16];
        (void)snprintf(from, sizeof from, "v%u", i);
        (void)snprintf(to, sizeof to, "v%u", i + 1);
        own_case_node(self, i % 2 == 0 ? "Neg" : "Identity", "", from, to);
    }
    char last[16];
    (void)snprintf(last, sizeof last, "v%u", count);
    own_case_output(self, last, ONNX_FLOAT);
    self->model = onnx_write_end(&self->writer);
}

START_TEST(values_are_freed_after_their_last_use)
{
    static float values[LONG];
    struct own_case self = {.writer.opset = 13};
    struct problem problem = {""};
    struct own_graph *graph = NULL;
    struct own_tensor made = {.type = ONNX_UNDEFINED};
    write_chain(&self, CHAIN);
    const struct own_graph_input input = {.bytes = self.model.at,
                                          .size = self.model.size,
                                          .threads = 1,
                                          .memory_bytes = 2 * sizeof values};
    const struct own_tensor x = {.type = ONNX_FLOAT,
                                 .rank = 1,
                                 .dims = {LONG},
                                 .elements = LONG,
                                 .bytes = sizeof values,
                                 .at = values};
    ck_assert_int_eq(own_graph_open(&input, &graph, &problem), ONNX_OK);
    ck_assert_msg(own_graph_run(graph, &x, &made, &problem) == ONNX_OK, "%s", problem.text);
    ck_assert_int_eq(graph->memory.peak, 2 * sizeof values);
    ck_assert_int_eq(graph->memory.used, sizeof values); /* the output, until it is dropped */
    own_tensor_drop(&made);
    ck_assert_int_eq(graph->memory.used, 0);
    own_graph_close(&graph);
    own_case_fini(&self);
}
END_TEST

START_TEST(a_bound_on_memory_is_kept_before_it_is_taken)
{
    struct own_case self = {.writer.opset = 13, .memory_bytes = 100};
    own_case_input(&self, "x", "f8: 1 2 3 4 5 6 7 8");
    own_case_node(&self, "Neg", "", "x", "a");
    own_case_node(&self, "Neg", "", "a", "b");
    own_case_node(&self, "Concat", "axis=0", "a b", "y");
    own_case_output(&self, "y", ONNX_FLOAT);
    ck_assert_int_eq(own_case_run(&self), ONNX_ENGINE_MEMORY);
    ck_assert_ptr_nonnull(strstr(self.problem.text, "64 bytes more than the 64 in use"));
    ck_assert_ptr_nonnull(strstr(self.problem.text, "the bound is 100"));
    /* The session runs again: what the refused run took is given back. */
    ck_assert_int_eq(own_case_run(&self), ONNX_ENGINE_MEMORY);
    ck_assert_ptr_nonnull(strstr(self.problem.text, "64 bytes more than the 64 in use"));
    own_case_fini(&self);
}
END_TEST

START_TEST(weights_count_against_the_bound_where_they_are_copied)
{
    for (unsigned shift = 0; shift < 4; shift++) {
        struct own_case self = {.writer.opset = 13};
        struct problem problem = {""};
        struct own_graph *graph = NULL;
        char name[8] = "wwwwwww";
        name[shift + 1] = '\0'; /* moves the bytes in the file */
        own_case_weights(&self, name, "f4: 1 2 3 4");
        own_case_node(&self, "Neg", "", name, "y");
        own_case_output(&self, "y", ONNX_FLOAT);
        self.model = onnx_write_end(&self.writer);
        const struct own_graph_input input = {
            .bytes = self.model.at, .size = self.model.size, .threads = 1};
        ck_assert_int_eq(own_graph_open(&input, &graph, &problem), ONNX_OK);
        const bool is_borrowed = graph->weights[0].block == NULL;
        ck_assert_int_eq(graph->memory.used, is_borrowed ? 0 : 16);
        ck_assert_int_eq((int)((uintptr_t)graph->weights[0].at % 4), 0);
        own_graph_close(&graph);
        own_case_fini(&self);
    }
}
END_TEST

START_TEST(outputs_outlive_later_runs)
{
    struct own_case self = {.writer.opset = 13};
    struct onnx_engine engine;
    own_engine_make(&engine);
    own_case_weights(&self, "w", "f2: 10 20");
    own_case_input(&self, "x", "f2: 1 2");
    own_case_node(&self, "Add", "", "x w", "sum");
    own_case_node(&self, "Reshape", "", "x s", "view");
    own_case_weights(&self, "s", "i2: 2 1");
    own_case_output(&self, "sum", ONNX_FLOAT);
    own_case_output(&self, "view", ONNX_FLOAT);
    own_case_output(&self, "w", ONNX_FLOAT);
    own_case_output(&self, "x", ONNX_FLOAT);
    own_case_output(&self, "sum", ONNX_FLOAT);
    ck_assert_msg(own_case_run(&self) == ONNX_ENGINE_OK, "%s", self.problem.text);
    struct onnx_array first[OWN_CASE_PORTS];
    memcpy(first, self.found, sizeof first);
    memset(self.found, 0, sizeof self.found);
    ((float *)self.inputs[0].bytes)[0] = 5;
    ck_assert_int_eq(own_case_run(&self), ONNX_ENGINE_OK);
    own_case_assert_array(&first[0], "f2: 11 22", "the first sum");
    own_case_assert_array(&first[1], "f2,1: 1 2", "the first view");
    own_case_assert_array(&first[2], "f2: 10 20", "the weights");
    own_case_assert_array(&first[3], "f2: 1 2", "the first input");
    own_case_assert_array(&first[4], "f2: 11 22", "the first sum again");
    own_case_assert_array(&self.found[0], "f2: 15 22", "the second sum");
    for (size_t i = 0; i < 5; i++) {
        onnx_array_release(&first[i]);
    }
    own_case_fini(&self);
}
END_TEST

/* Models of old have weights as inputs, too, with a default. */
START_TEST(inputs_with_weights_have_a_default)
{
    struct own_case self = {.writer.opset = 13};
    struct onnx_engine engine;
    own_engine_make(&engine);
    ck_assert_str_eq(engine.name, OWN_ENGINE_NAME);
    onnx_write_input(&self.writer, "w", ONNX_FLOAT, "2");
    own_case_weights(&self, "w", "f2: 10 20");
    own_case_input(&self, "x", "f2: 1 2");
    own_case_node(&self, "Add", "", "x w", "y");
    own_case_output(&self, "y", ONNX_FLOAT);
    ck_assert_int_eq(own_case_run(&self), ONNX_ENGINE_OK);
    ck_assert_uint_eq(engine.inputs(self.session).count, 1);
    ck_assert_str_eq(engine.inputs(self.session).items[0].name, "x");
    ck_assert_uint_eq(engine.outputs(self.session).count, 1);
    own_case_assert_array(&self.found[0], "f2: 11 22", "the default");
    own_case_fini(&self);
}
END_TEST

/* The writer's weights lie in weights.bin. */
START_TEST(weights_in_another_file_are_read)
{
    char folder[] = "/tmp/test_own_graph.XXXXXX";
    char path[64];
    const float values[] = {3, 4};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/weights.bin", folder);
    struct onnx_writer writer = {.opset = 13};
    struct problem problem = {""};
    struct own_graph *graph = NULL;
    struct own_tensor made = {.type = ONNX_UNDEFINED};
    onnx_write_weights(&writer, "w", "2");
    onnx_write_node(&writer, "Neg", "w", "y");
    onnx_write_output(&writer, "y", ONNX_FLOAT, NULL);
    struct onnx_bytes model = onnx_write_end(&writer);
    struct own_graph_input input = {.bytes = model.at, .size = model.size, .threads = 1};
    ck_assert_int_eq(own_graph_open(&input, &graph, &problem), ONNX_PATH);
    input.folder = folder;
    ck_assert_int_eq(own_graph_open(&input, &graph, &problem), ONNX_PATH);
    ck_assert_ptr_nonnull(strstr(problem.text, "weights.bin"));
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(values, 1, 6, file), 6);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(own_graph_open(&input, &graph, &problem), ONNX_WEIGHTS);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(values, 1, sizeof values, file), sizeof values);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_msg(own_graph_open(&input, &graph, &problem) == ONNX_OK, "%s", problem.text);
    ck_assert_int_eq(own_graph_run(graph, &made, &made, &problem), ONNX_OK);
    ck_assert_float_eq(((const float *)made.at)[1], -4);
    own_tensor_drop(&made);
    own_graph_close(&graph);
    onnx_bytes_fini(&model);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(shapes_follow_from_the_run)
{
    struct own_case self = {.writer.opset = 13};
    own_case_input(&self, "x", "f2,3: 1 0 2 0 0 3");
    own_case_node(&self, "NonZero", "", "x", "places");
    own_case_node(&self, "Transpose", "", "places", "turned");
    own_case_node(&self, "Shape", "", "turned", "shape");
    own_case_node(&self, "GatherND", "", "x turned", "found");
    own_case_node(&self, "ConstantOfShape", "", "shape", "zeros");
    own_case_output(&self, "found", ONNX_FLOAT);
    own_case_output(&self, "zeros", ONNX_FLOAT);
    ck_assert_msg(own_case_run(&self) == ONNX_ENGINE_OK, "%s", self.problem.text);
    own_case_assert_array(&self.found[0], "f3: 1 2 3", "what is not zero");
    own_case_assert_array(&self.found[1], "f3,2: 0 0 0 0 0 0", "zeros");
    own_case_fini(&self);
}
END_TEST

/* The file says that the output is a vector of 3, and the nodes make 2. */
START_TEST(outputs_are_what_the_file_says)
{
    struct own_case self = {.writer.opset = 13};
    own_case_input(&self, "x", "f2: 1 2");
    own_case_node(&self, "Neg", "", "x", "y");
    onnx_write_output(&self.writer, "y", ONNX_FLOAT, "3");
    refused(&self, ONNX_ENGINE_FAILED, "not what the file says");
}
END_TEST

START_TEST(operations_are_bounded)
{
    struct own_case self = {.writer.opset = 13};
    struct problem problem = {""};
    struct own_graph *graph = NULL;
    struct own_tensor made = {.type = ONNX_UNDEFINED};
    own_case_weights(&self, "w", "f2,2: 1 2 3 4");
    own_case_node(&self, "MatMul", "", "w w", "y");
    own_case_output(&self, "y", ONNX_FLOAT);
    self.model = onnx_write_end(&self.writer);
    struct own_graph_input input = {
        .bytes = self.model.at, .size = self.model.size, .threads = 1, .work_most = 7};
    ck_assert_int_eq(own_graph_open(&input, &graph, &problem), ONNX_OK);
    ck_assert_int_eq(own_graph_run(graph, &made, &made, &problem), ONNX_TOO_LARGE);
    own_graph_close(&graph);
    input.work_most = 8;
    ck_assert_int_eq(own_graph_open(&input, &graph, &problem), ONNX_OK);
    ck_assert_int_eq(own_graph_run(graph, &made, &made, &problem), ONNX_OK);
    own_tensor_drop(&made);
    own_graph_close(&graph);
    own_case_fini(&self);
}
END_TEST

/* Each row of the table is one of the rules' table, which knows more. */
START_TEST(the_table_is_sorted_and_known_to_the_rules)
{
    for (size_t i = 0; i < own_operator_count(); i++) {
        const char *name = own_operator_at(i)->name;
        const struct onnx_span span = {(const uint8_t *)name, strlen(name)};
        ck_assert_msg(onnx_operator_is_known(span), "%s has no rule", name);
        ck_assert_ptr_eq(own_operator_named(span), own_operator_at(i));
    }
    ck_assert_uint_ge(own_operator_count(), 60);
}
END_TEST

/* A row of the page's table has each operator. */
START_TEST(the_page_names_every_operator)
{
    uint8_t *page = NULL;
    size_t size = 0;
    struct problem problem = {""};
    ck_assert(file_read(BOURSE_SOURCE_DIR "/docs/onnx.md", 1 << 20, &page, &size, &problem));
    for (size_t i = 0; i < own_operator_count(); i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "`%s`", own_operator_at(i)->name);
        ck_assert_msg(memmem(page, size, name, strlen(name)) != NULL, "%s is missing", name);
    }
    char count[32];
    (void)snprintf(count, sizeof count, "\n%zu operators", own_operator_count());
    ck_assert_msg(memmem(page, size, count, strlen(count)) != NULL, "the count is another one");
    free(page);
}
END_TEST

/* Models that people know lack their weights alone here. Each operator in them is known. */
START_TEST(well_known_models_are_opened)
{
    for (size_t i = 0; i < ONNX_MODELS; i++) {
        struct onnx_bytes model = onnx_model_write(i);
        struct problem problem = {""};
        struct own_graph *graph = NULL;
        const struct own_graph_input input = {.bytes = model.at, .size = model.size, .threads = 1};
        const enum onnx_status status = own_graph_open(&input, &graph, &problem);
        ck_assert_msg(status == ONNX_PATH, "%s: %s", onnx_model_names[i], problem.text);
        onnx_bytes_fini(&model);
    }
}
END_TEST

/* All weights are 0, so that the logits are. The run tries the shapes of all layers. */
START_TEST(a_mobilenet_runs)
{
    enum { LOGITS = 1000, IMAGE = 3 * 224 * 224 };
    char folder[] = "/tmp/test_own_graph.XXXXXX";
    char path[64];
    size_t index = 0;
    while (strcmp(onnx_model_names[index], "mobilenet") != 0) {
        index++;
    }
    struct onnx_bytes model = onnx_model_write(index);
    struct problem problem = {""};
    struct own_graph *graph = NULL;
    struct own_tensor made = {.type = ONNX_UNDEFINED};
    float *image = calloc(IMAGE, sizeof *image);
    ck_assert_ptr_nonnull(image);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/weights.bin", folder);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ftruncate(fileno(file), 64 << 20), 0);
    ck_assert_int_eq(fclose(file), 0);
    const struct own_graph_input input = {.bytes = model.at,
                                          .size = model.size,
                                          .folder = folder,
                                          .threads = 1,
                                          .memory_bytes = 64 << 20};
    const struct own_tensor x = {.type = ONNX_FLOAT,
                                 .rank = 4,
                                 .dims = {1, 3, 224, 224},
                                 .elements = IMAGE,
                                 .bytes = IMAGE * (int64_t)sizeof *image,
                                 .at = image};
    ck_assert_msg(own_graph_open(&input, &graph, &problem) == ONNX_OK, "%s", problem.text);
    ck_assert_msg(own_graph_run(graph, &x, &made, &problem) == ONNX_OK, "%s", problem.text);
    ck_assert_int_eq(made.elements, LOGITS);
    for (int i = 0; i < LOGITS; i++) {
        ck_assert(((const float *)made.at)[i] == 0);
    }
    own_tensor_drop(&made);
    own_graph_close(&graph);
    onnx_bytes_fini(&model);
    free(image);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

SUITE("own_graph", NULL, NULL, TEST(what_is_not_in_the_table_is_refused_by_name),
      TEST(types_are_refused_when_the_model_is_opened), TEST(inputs_have_to_fit),
      TEST(values_are_freed_after_their_last_use),
      TEST(a_bound_on_memory_is_kept_before_it_is_taken),
      TEST(weights_count_against_the_bound_where_they_are_copied), TEST(outputs_outlive_later_runs),
      TEST(inputs_with_weights_have_a_default), TEST(weights_in_another_file_are_read),
      TEST(shapes_follow_from_the_run), TEST(outputs_are_what_the_file_says),
      TEST(operations_are_bounded), TEST(the_table_is_sorted_and_known_to_the_rules),
      TEST(the_page_names_every_operator), TEST(well_known_models_are_opened),
      TEST(a_mobilenet_runs))
