#include "tests/support/own_case.h"

#include "provider/onnx/own/own_call.h"
#include "provider/onnx/own/own_half.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 256, THREADS = 2, FIELD_INITIALIZER = 5, FIELD_ATTRIBUTE = 5 };

/* ---------------------------------------------------------------- tensors as text */

static enum onnx_type type_of(char letter)
{
    static const struct {
        char letter;
        enum onnx_type type;
    } types[] = {{'f', ONNX_FLOAT}, {'d', ONNX_DOUBLE}, {'h', ONNX_FLOAT16}, {'i', ONNX_INT64},
                 {'j', ONNX_INT32}, {'s', ONNX_INT16},  {'c', ONNX_INT8},    {'u', ONNX_UINT8},
                 {'b', ONNX_BOOL},  {'w', ONNX_UINT32}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].letter == letter) {
            return types[i].type;
        }
    }
    ck_abort_msg("no type has the letter %c", letter);
    return ONNX_UNDEFINED;
}

static void put(struct onnx_array *array, int64_t at, const char *text, char **end)
{
    const double real = strtod(text, end);
    const int64_t whole = strtoll(text, NULL, 10);
    switch (array->type) {
    case ONNX_FLOAT:
        ((float *)array->bytes)[at] = (float)real;
        break;
    case ONNX_DOUBLE:
        ((double *)array->bytes)[at] = real;
        break;
    case ONNX_FLOAT16:
        ((uint16_t *)array->bytes)[at] = own_half_narrow((float)real);
        break;
    case ONNX_INT64:
        ((int64_t *)array->bytes)[at] = whole;
        break;
    case ONNX_INT32:
    case ONNX_UINT32:
        ((uint32_t *)array->bytes)[at] = (uint32_t)whole;
        break;
    case ONNX_INT16:
        ((int16_t *)array->bytes)[at] = (int16_t)whole;
        break;
    default:
        ((uint8_t *)array->bytes)[at] = (uint8_t)whole;
        break;
    }
}

void own_case_array(const char *text, struct onnx_array *ret_array)
{
    int64_t dims[ONNX_RANK_MOST];
    uint32_t rank = 0;
    const enum onnx_type type = type_of(text[0]);
    char *at = (char *)(uintptr_t)(text + 1);
    while (*at != ':') {
        dims[rank++] = strtoll(at, &at, 10);
        at += *at == ',';
    }
    struct problem problem = {""};
    ck_assert_msg(onnx_array_make(type, rank, dims, ret_array, &problem), "%s", problem.text);
    at++;
    for (int64_t i = 0; i < ret_array->elements; i++) {
        char *end = at;
        put(ret_array, i, at, &end);
        ck_assert_msg(end != at, "\"%s\" has too few elements", text);
        at = end;
    }
}

void own_case_assert_array(const struct onnx_array *found, const char *stated, const char *what)
{
    struct onnx_array array;
    char shape[2][ONNX_ARRAY_TEXT_SIZE];
    own_case_array(stated, &array);
    onnx_array_text(found->type, found->rank, found->dims, shape[0]);
    onnx_array_text(array.type, array.rank, array.dims, shape[1]);
    ck_assert_msg(strcmp(shape[0], shape[1]) == 0, "%s: it is %s, not %s", what, shape[0],
                  shape[1]);
    const struct own_tensor left = {.type = found->type, .at = found->bytes};
    const struct own_tensor right = {.type = array.type, .at = array.bytes};
    for (int64_t i = 0; i < array.elements; i++) {
        const double a = own_real_at(&left, i);
        const double b = own_real_at(&right, i);
        const bool is_same =
            (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-5 * (1 + fabs(b));
        ck_assert_msg(is_same, "%s: element %lld is %.9g, not %.9g", what, (long long)i, a, b);
    }
    onnx_array_release(&array);
}

/* ---------------------------------------------------------------- models */

void own_case_input(struct own_case *self, const char *name, const char *value)
{
    ck_assert_uint_lt(self->input_count, OWN_CASE_PORTS);
    struct onnx_array *array = &self->inputs[self->input_count++];
    own_case_array(value, array);
    onnx_write_input(&self->writer, name, (int)array->type, NULL);
}

static void put_tensor(struct onnx_bytes *to, uint32_t field, const char *name,
                       const struct onnx_array *array)
{
    struct onnx_bytes tensor = {NULL, 0, 0};
    for (uint32_t i = 0; i < array->rank; i++) {
        onnx_put_number(&tensor, 1, (uint64_t)array->dims[i]);
    }
    onnx_put_number(&tensor, 2, array->type);
    onnx_put_text(&tensor, 8, name);
    onnx_put_bytes(&tensor, WRITER_RAW_DATA, array->bytes, array->size);
    onnx_put_message(to, field, &tensor);
}

void own_case_weights(struct own_case *self, const char *name, const char *value)
{
    struct onnx_array array;
    own_case_array(value, &array);
    put_tensor(&self->writer.graph, FIELD_INITIALIZER, name, &array);
    onnx_array_release(&array);
}

void own_case_reals(struct own_case *self, const char *name, const char *dims, const float *values,
                    size_t count)
{
    struct onnx_array array = {
        .type = ONNX_FLOAT, .bytes = (void *)(uintptr_t)values, .size = count * sizeof *values};
    for (const char *at = dims; *at != '\0';) {
        char *end = NULL;
        array.dims[array.rank++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    put_tensor(&self->writer.graph, FIELD_INITIALIZER, name, &array);
}

static void put_real(struct onnx_writer *writer, const char *name, float value)
{
    enum { REAL_KEY = 2 << 3 | 5, KIND_REAL = 1 };
    struct onnx_bytes attribute = {NULL, 0, 0};
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    onnx_put_text(&attribute, 1, name);
    onnx_put_varint(&attribute, REAL_KEY);
    attribute.at = realloc(attribute.at, attribute.size + sizeof bits);
    ck_assert_ptr_nonnull(attribute.at);
    for (unsigned i = 0; i < sizeof bits; i++) {
        attribute.at[attribute.size++] = (uint8_t)(bits >> (8 * i));
    }
    attribute.capacity = attribute.size;
    onnx_put_number(&attribute, 20, KIND_REAL);
    onnx_put_message(&writer->node, FIELD_ATTRIBUTE, &attribute);
}

static void put_attribute(struct onnx_writer *writer, char *text)
{
    char *value = strchr(text, '=');
    ck_assert_msg(value != NULL, "\"%s\" is no attribute", text);
    *value++ = '\0';
    if (*value == '[') {
        value[strlen(value) - 1] = '\0';
        onnx_node_integers(writer, text, value + 1);
    } else if (*value == '~') {
        put_real(writer, text, strtof(value + 1, NULL));
    } else if (*value == '-' || (*value >= '0' && *value <= '9')) {
        onnx_node_integer(writer, text, strtoll(value, NULL, 10));
    } else {
        onnx_node_text(writer, text, value);
    }
}

void own_case_node(struct own_case *self, const char *operator, const char * attributes,
                   const char *inputs, const char *outputs)
{
    char text[TEXT_SIZE];
    char *rest = text;
    (void)snprintf(text, sizeof text, "%s", attributes);
    onnx_begin_node(&self->writer, operator, inputs, outputs);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        put_attribute(&self->writer, word);
    }
    onnx_end_node(&self->writer);
}

void own_case_output(struct own_case *self, const char *name, enum onnx_type type)
{
    self->output_count++;
    onnx_write_output(&self->writer, name, (int)type, NULL);
}

static void release_found(struct own_case *self)
{
    for (size_t i = 0; i < OWN_CASE_PORTS; i++) {
        onnx_array_release(&self->found[i]);
    }
}

enum onnx_engine_status own_case_run(struct own_case *self)
{
    struct onnx_engine engine;
    own_engine_make(&engine);
    release_found(self);
    if (self->session == NULL) {
        self->model = self->model.at == NULL ? onnx_write_end(&self->writer) : self->model;
        const struct onnx_engine_model model = {.bytes = self->model.at,
                                                .size = self->model.size,
                                                .threads = THREADS,
                                                .memory_bytes = self->memory_bytes};
        const enum onnx_engine_status status =
            engine.open(engine.context, &model, &self->session, &self->problem);
        if (status != ONNX_ENGINE_OK) {
            ck_assert_ptr_null(self->session);
            return status;
        }
    }
    return engine.run(self->session, self->inputs, self->found, &self->problem);
}

void own_case_fini(struct own_case *self)
{
    struct onnx_engine engine;
    own_engine_make(&engine);
    release_found(self);
    engine.close(&self->session);
    for (size_t i = 0; i < self->input_count; i++) {
        onnx_array_release(&self->inputs[i]);
    }
    onnx_bytes_fini(&self->model);
    onnx_bytes_fini(&self->writer.graph);
    onnx_bytes_fini(&self->writer.node);
}

/* ---------------------------------------------------------------- one operator */

static void build(struct own_case *self, const char *operator, const char * attributes,
                  const char *const *inputs, const char *output_types)
{
    char names[TEXT_SIZE] = "";
    char made[TEXT_SIZE] = "";
    for (size_t i = 0; inputs[i] != NULL; i++) {
        const size_t used = strlen(names);
        const bool is_there = inputs[i][0] != '\0';
        char name[8] = "-";
        if (is_there) {
            (void)snprintf(name, sizeof name, "x%u", (unsigned)(i % 100));
            own_case_input(self, name, inputs[i]);
        }
        (void)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? " " : "", name);
    }
    for (size_t i = 0; output_types[i] != '\0'; i++) {
        const size_t used = strlen(made);
        char name[8] = "-";
        if (output_types[i] != '-') {
            (void)snprintf(name, sizeof name, "y%u", (unsigned)(i % 100));
            own_case_output(self, name, type_of(output_types[i]));
        }
        (void)snprintf(made + used, sizeof made - used, "%s%s", i > 0 ? " " : "", name);
    }
    own_case_node(self, operator, attributes, names, made);
}

void own_case_check(int64_t opset, const char *operator, const char * attributes,
                    const char *const *inputs, const char *const *outputs)
{
    struct own_case self = {.writer.opset = opset};
    char types[OWN_CASE_PORTS] = "";
    size_t count = 0;
    for (; outputs[count] != NULL; count++) {
        types[count] = outputs[count][0] != '\0' ? outputs[count][0] : '-';
    }
    build(&self, operator, attributes, inputs, types);
    for (unsigned round = 0; round < 2; round++) {
        const enum onnx_engine_status status = own_case_run(&self);
        ck_assert_msg(status == ONNX_ENGINE_OK, "%s %s: status %d, %s", operator, attributes,
                      (int)status, self.problem.text);
        for (size_t i = 0, found = 0; i < count; i++) {
            if (outputs[i][0] != '\0') {
                own_case_assert_array(&self.found[found++], outputs[i], operator);
            }
        }
    }
    own_case_fini(&self);
}

void own_case_refused(int64_t opset, const char *operator, const char * attributes,
                      const char *const *inputs, char output_type, enum onnx_engine_status status,
                      const char *words)
{
    struct own_case self = {.writer.opset = opset, .memory_bytes = 1 << 20};
    const char types[] = {output_type, '\0'};
    build(&self, operator, attributes, inputs, types);
    const enum onnx_engine_status found = own_case_run(&self);
    ck_assert_msg(found == status, "%s %s: status %d, not %d: %s", operator, attributes, (int)found,
                  (int)status, self.problem.text);
    ck_assert_msg(strstr(self.problem.text, words) != NULL, "\"%s\" does not say \"%s\"",
                  self.problem.text, words);
    ck_assert_msg(strchr(self.problem.text, '\n') == NULL, "the problem is one line");
    own_case_fini(&self);
}
