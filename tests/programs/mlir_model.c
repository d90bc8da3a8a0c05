#include "tests/programs/mlir_model.h"

#include "provider/pjrt/pjrt_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t mlir_model_item_bytes(int type)
{
    return type == PJRT_TYPE_C128 ? 16
           : type == PJRT_TYPE_S64 || type == PJRT_TYPE_U64 || type == PJRT_TYPE_F64 ||
                   type == PJRT_TYPE_C64
               ? 8
           : type == PJRT_TYPE_S32 || type == PJRT_TYPE_U32 || type == PJRT_TYPE_F32 ? 4
           : type == PJRT_TYPE_PRED || type == PJRT_TYPE_S8 || type == PJRT_TYPE_U8  ? 1
                                                                                     : 2;
}

/* ---------------------------------------------------------------- reading */

static const struct {
    const char *name;
    int type;
} types[] = {
    {"i1", PJRT_TYPE_PRED},   {"i8", PJRT_TYPE_S8},
    {"i16", PJRT_TYPE_S16},   {"i32", PJRT_TYPE_S32},
    {"i64", PJRT_TYPE_S64},   {"ui8", PJRT_TYPE_U8},
    {"ui16", PJRT_TYPE_U16},  {"ui32", PJRT_TYPE_U32},
    {"ui64", PJRT_TYPE_U64},  {"f16", PJRT_TYPE_F16},
    {"f32", PJRT_TYPE_F32},   {"f64", PJRT_TYPE_F64},
    {"bf16", PJRT_TYPE_BF16}, {"complex<f32>", PJRT_TYPE_C64},
};

/* Reads "tensor<2x3xf32>" at the text. */
static int read_tensor(const char *text, struct mlir_tensor *ret_tensor)
{
    static const char head[] = "tensor<";
    struct mlir_tensor tensor = {.data = NULL};
    if (strncmp(text, head, sizeof head - 1) != 0) {
        return 0;
    }
    text += sizeof head - 1;
    while (*text >= '0' && *text <= '9' && tensor.dimension_count < MLIR_DIMENSIONS) {
        char *end;
        tensor.shape[tensor.dimension_count++] = strtoll(text, &end, 10);
        text = *end == 'x' ? end + 1 : end;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const size_t length = strlen(types[i].name);
        if (strncmp(text, types[i].name, length) == 0 && text[length] == '>') {
            tensor.type = types[i].type;
        }
    }
    tensor.size = mlir_model_item_bytes(tensor.type);
    for (size_t i = 0; i < tensor.dimension_count; i++) {
        tensor.size *= (size_t)tensor.shape[i];
    }
    *ret_tensor = tensor;
    return tensor.type != PJRT_TYPE_INVALID;
}

/* Copies the name behind the next % of the line. Returns what follows, or NULL. */
static const char *read_name(const char *text, char ret_name[MLIR_NAME_SIZE])
{
    const char *at = strchr(text, '%');
    size_t length = 0;
    if (at == NULL) {
        return NULL;
    }
    for (at++; strchr(" ,:=)\n", *at) == NULL && length + 1 < MLIR_NAME_SIZE; at++) {
        ret_name[length++] = *at;
    }
    ret_name[length] = '\0';
    return at;
}

static size_t find(const struct mlir_program *program, const char *name)
{
    size_t i = 0;
    while (i < program->value_count && strcmp(program->names[i], name) != 0) {
        i++;
    }
    return i;
}

static int read_function(struct mlir_program *program, char *line)
{
    char *arrow = strstr(line, "->");
    if (arrow != NULL) {
        *arrow = '\0';
    }
    char name[MLIR_NAME_SIZE];
    for (const char *at = read_name(line, name); at != NULL; at = read_name(at, name)) {
        at = strstr(at, "tensor<");
        if (at == NULL || program->value_count == MLIR_VALUES ||
            !read_tensor(at, &program->values[program->value_count])) {
            return 0;
        }
        memcpy(program->names[program->value_count++], name, sizeof name);
    }
    program->input_count = program->value_count;
    return 1;
}

static int read_return(struct mlir_program *program, char *line)
{
    char name[MLIR_NAME_SIZE];
    *strchrnul(line, ':') = '\0';
    for (const char *at = read_name(line, name); at != NULL; at = read_name(at, name)) {
        const size_t place = find(program, name);
        if (place == program->value_count) {
            return 0;
        }
        program->outputs[program->output_count++] = place;
    }
    return 1;
}

static int is_known(const char *operation)
{
    static const char *const names[] = {"add",     "subtract", "multiply",  "dot_general",
                                        "convert", "reshape",  "fake_hang", "fake_lost"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], operation) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Reads "%c = stablehlo.add %a, %b : tensor<4xf32>". The type behind the last colon or arrow is the
 * result's. */
static int read_operation(struct mlir_program *program, char *line)
{
    struct mlir_line *next = &program->lines[program->line_count];
    char result[MLIR_NAME_SIZE];
    char name[MLIR_NAME_SIZE];
    const char *at = read_name(line, result);
    const char *word = at == NULL ? NULL : strstr(at, "stablehlo.");
    const char *type = strrchr(line, '<');
    if (word == NULL || type == NULL || program->line_count == MLIR_LINES ||
        program->value_count == MLIR_VALUES) {
        return 0;
    }
    const char *called = strstr(word, "custom_call @");
    word = called != NULL ? called + strlen("custom_call @") : word + strlen("stablehlo.");
    const size_t length = strcspn(word, " (");
    (void)snprintf(next->operation, sizeof next->operation, "%.*s", (int)length, word);
    *strchrnul(line, ':') = '\0';
    for (at = read_name(word, name); at != NULL && next->operand_count < 2;
         at = read_name(at, name)) {
        next->operands[next->operand_count] = find(program, name);
        if (next->operands[next->operand_count++] == program->value_count) {
            return 0;
        }
    }
    next->result = program->value_count;
    memcpy(program->names[program->value_count], result, sizeof result);
    program->line_count++;
    return is_known(next->operation) && next->operand_count > 0 &&
           read_tensor(type - strlen("tensor"), &program->values[program->value_count++]);
}

enum mlir_status mlir_model_read(const char *code, size_t size, struct mlir_program *ret_program,
                                 char *ret_why, size_t why_size)
{
    char line[512];
    int number = 0;
    *ret_program = (struct mlir_program){.value_count = 0};
    for (const char *at = code; at < code + size; number++) {
        const char *newline = memchr(at, '\n', (size_t)(code + size - at));
        const char *end = newline != NULL ? newline : code + size;
        (void)snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        at = newline != NULL ? newline + 1 : end;
        const char *trimmed = line + strspn(line, " ");
        const int good = strstr(line, "func.func") != NULL     ? read_function(ret_program, line)
                         : strncmp(trimmed, "return ", 7) == 0 ? read_return(ret_program, line)
                         : strchr(trimmed, '=') != NULL
                             ? read_operation(ret_program, line)
                             : strncmp(trimmed, "module", 6) == 0 || strcmp(trimmed, "}") == 0 ||
                                   trimmed[0] == '\0';
        if (!good) {
            (void)snprintf(ret_why, why_size, "program:%d:\nerror: this line is not understood",
                           number + 1);
            return MLIR_WRONG;
        }
    }
    if (ret_program->output_count == 0) {
        (void)snprintf(ret_why, why_size, "the program returns nothing");
        return MLIR_WRONG;
    }
    return MLIR_OK;
}

/* ---------------------------------------------------------------- computing */

static int is_same_type(const struct mlir_tensor *a, const struct mlir_tensor *b)
{
    return a->type == b->type && a->dimension_count == b->dimension_count && a->size == b->size &&
           memcmp(a->shape, b->shape, a->dimension_count * sizeof a->shape[0]) == 0;
}

#define ELEMENTWISE(number)                                                                        \
    do {                                                                                           \
        const number *x = a->data;                                                                 \
        const number *y = b->data;                                                                 \
        number *z = result->data;                                                                  \
        for (size_t i = 0; i < result->size / sizeof *z; i++) {                                    \
            z[i] = (number)(operation[0] == 'a'   ? x[i] + y[i]                                    \
                            : operation[0] == 's' ? x[i] - y[i]                                    \
                                                  : x[i] * y[i]);                                  \
        }                                                                                          \
    } while (0)

static int compute_elements(const char *operation, const struct mlir_tensor *a,
                            const struct mlir_tensor *b, struct mlir_tensor *result)
{
    if (!is_same_type(a, b) || !is_same_type(a, result)) {
        return 0;
    }
    switch (result->type) {
    case PJRT_TYPE_F32:
        ELEMENTWISE(float);
        return 1;
    case PJRT_TYPE_F64:
        ELEMENTWISE(double);
        return 1;
    case PJRT_TYPE_S32:
        ELEMENTWISE(int32_t);
        return 1;
    default:
        return 0;
    }
}

static int compute_product(const struct mlir_tensor *a, const struct mlir_tensor *b,
                           struct mlir_tensor *result)
{
    if (a->type != PJRT_TYPE_F32 || b->type != PJRT_TYPE_F32 || a->dimension_count != 2 ||
        b->dimension_count != 2 || a->shape[1] != b->shape[0]) {
        return 0;
    }
    const size_t rows = (size_t)a->shape[0];
    const size_t depth = (size_t)a->shape[1];
    const size_t columns = (size_t)b->shape[1];
    const float *x = a->data;
    const float *y = b->data;
    float *z = result->data;
    if (result->size != rows * columns * sizeof *z) {
        return 0;
    }
    memset(z, 0, result->size);
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < depth; k++) {
            for (size_t j = 0; j < columns; j++) {
                z[i * columns + j] += x[i * depth + k] * y[k * columns + j];
            }
        }
    }
    return 1;
}

static int convert(const struct mlir_tensor *a, struct mlir_tensor *result)
{
    uint16_t *z = result->data;
    if (a->type != PJRT_TYPE_F32 || result->type != PJRT_TYPE_BF16 || a->size != 2 * result->size) {
        return 0;
    }
    for (size_t i = 0; i < result->size / sizeof *z; i++) {
        uint32_t bits;
        memcpy(&bits, (const char *)a->data + 4 * i, sizeof bits);
        z[i] = (uint16_t)(bits >> 16);
    }
    return 1;
}

static int reshape(const struct mlir_tensor *a, struct mlir_tensor *result)
{
    if (a->type != result->type || a->size != result->size) {
        return 0;
    }
    memcpy(result->data, a->data, result->size);
    return 1;
}

static enum mlir_status run_line(const struct mlir_line *line, struct mlir_tensor *values)
{
    const struct mlir_tensor *a = &values[line->operands[0]];
    const struct mlir_tensor *b = &values[line->operands[line->operand_count - 1]];
    struct mlir_tensor *result = &values[line->result];
    while (strcmp(line->operation, "fake_hang") == 0) {
        (void)pause();
    }
    if (strcmp(line->operation, "fake_lost") == 0) {
        return MLIR_LOST;
    }
    result->data = malloc(result->size + 1);
    const int good = result->data == NULL                          ? 0
                     : strcmp(line->operation, "dot_general") == 0 ? compute_product(a, b, result)
                     : strcmp(line->operation, "reshape") == 0     ? reshape(a, result)
                     : strcmp(line->operation, "convert") == 0
                         ? convert(a, result)
                         : compute_elements(line->operation, a, b, result);
    return good ? MLIR_OK : MLIR_WRONG;
}

/* Copies what is returned: a value may be returned twice, and an input may be. */
static void take_outputs(const struct mlir_program *program, const struct mlir_tensor *values,
                         struct mlir_tensor *ret_outputs)
{
    for (size_t i = 0; i < program->output_count; i++) {
        ret_outputs[i] = values[program->outputs[i]];
        ret_outputs[i].data = malloc(ret_outputs[i].size + 1);
        if (ret_outputs[i].data == NULL) {
            abort();
        }
        memcpy(ret_outputs[i].data, values[program->outputs[i]].data, ret_outputs[i].size);
    }
}

enum mlir_status mlir_model_run(const struct mlir_program *program,
                                const struct mlir_tensor *inputs, size_t input_count,
                                struct mlir_tensor *ret_outputs, char *ret_why, size_t why_size)
{
    struct mlir_tensor values[MLIR_VALUES];
    enum mlir_status status = MLIR_OK;
    memcpy(values, program->values, sizeof values);
    if (input_count != program->input_count) {
        (void)snprintf(ret_why, why_size, "the program takes %zu inputs, and %zu are given",
                       program->input_count, input_count);
        return MLIR_WRONG;
    }
    for (size_t i = 0; i < input_count; i++) {
        if (!is_same_type(&values[i], &inputs[i])) {
            (void)snprintf(ret_why, why_size, "input %zu has another shape or type", i);
            return MLIR_WRONG;
        }
        values[i] = inputs[i];
    }
    for (size_t i = 0; i < program->line_count && status == MLIR_OK; i++) {
        status = run_line(&program->lines[i], values);
        (void)snprintf(ret_why, why_size, "%s",
                       status == MLIR_LOST ? "the device is gone" : "the operands do not fit");
    }
    if (status == MLIR_OK) {
        take_outputs(program, values, ret_outputs);
    }
    for (size_t i = input_count; i < program->value_count; i++) {
        free(values[i].data);
    }
    return status;
}

/* ---------------------------------------------------------------- options */

/* Reads the field of a message of Protocol Buffers: a number, or the length of a part, which begins
 * at *ret_part. Returns 0 when there is none. */
static int read_field(const char *message, size_t size, unsigned field, uint64_t *ret_number,
                      const char **ret_part)
{
    for (size_t at = 0; at < size;) {
        const unsigned tag = (unsigned char)message[at++];
        uint64_t number = 0;
        for (unsigned shift = 0; at < size; shift += 7) {
            const unsigned byte = (unsigned char)message[at++];
            number |= (uint64_t)(byte & 0x7f) << shift;
            if (byte < 0x80) {
                break;
            }
        }
        *ret_number = number;
        *ret_part = message + at;
        if (tag >> 3 == field) {
            return 1;
        }
        at += (tag & 7) == 2 ? (size_t)number : 0;
    }
    return 0;
}

int mlir_model_device(const char *options, size_t size, uint64_t *ret_id)
{
    uint64_t build_size, number, assignment_size, devices_size;
    const char *build, *part, *assignment, *devices;
    return read_field(options, size, 3, &build_size, &build) &&
           read_field(build, build_size, 1, &number, &part) && number == UINT64_MAX &&
           read_field(build, build_size, 4, &number, &part) && number == 1 &&
           read_field(build, build_size, 5, &number, &part) && number == 1 &&
           read_field(build, build_size, 9, &assignment_size, &assignment) &&
           read_field(assignment, assignment_size, 1, &number, &part) && number == 1 &&
           read_field(assignment, assignment_size, 2, &number, &part) && number == 1 &&
           read_field(assignment, assignment_size, 3, &devices_size, &devices) &&
           read_field(devices, devices_size, 1, ret_id, &part);
}
