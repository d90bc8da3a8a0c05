/* The program onnx-cases handles one of ONNX's own test cases, for scripts/onnx-cases:
 *
 *     onnx-cases prepare CASE FOLDER       writes what the case has as files: model.onnx, i0.npy
 *                                          for its first input, e0.npy ... for the outputs that it
 *                                          states, and `words`, with a line for each input and
 *                                          output: "i NAME=i0.npy"
 *     onnx-cases direct LIBRARY FOLDER [SETTINGS]
 *                                          lets ONNX Runtime compute the case here, into o0.npy
 *                                          and so on, by the provider of the settings' file
 *     onnx-cases close A.npy B.npy         compares: same type, same dims, values within 1e-3 of
 *                                          their size and 1e-5
 *
 * The exit status is 0, 1 when the case fails or differs, with a line that says why, and 3 when
 * files cannot hold the case: strings, sequences, and bfloat16. */
#include "base/cleanup.h"
#include "formats/npy.h"
#include "formats/onnx/onnx_interface.h"
#include "formats/onnx/onnx_npy.h"
#include "formats/onnx/onnx_wire.h"
#include "provider/onnx/onnx_engines.h"
#include "provider/onnx/onnx_file.h"
#include "provider/onnx/onnx_serve.h"
#include "runtime/files.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_SIZE = 4096,
    FILE_MOST = 512 << 20,
    WORDS = 2 * ONNX_WORDS_FILES,
    FAILED = 1,
    UNFIT = 3
};

static int say(int status, const char *format, const char *what)
{
    (void)printf(format, what);
    (void)putchar('\n');
    return status;
}

/* ---------------------------------------------------------------- tensors of files */

/* Copies the elements of a list of protocol buffers, as numbers of the wire or of fixed size. */
struct filling {
    uint8_t *at;
    size_t item, left;
};

static void put(struct filling *filling, uint64_t bits)
{
    if (filling->left >= filling->item) {
        memcpy(filling->at, &bits, filling->item); /* low byte first, as this machine has it */
        filling->at += filling->item;
        filling->left -= filling->item;
    }
}

static void put_list(struct filling *filling, const struct onnx_field *field, size_t fixed)
{
    if (field->kind != ONNX_WIRE_BYTES) {
        put(filling, field->value);
        return;
    }
    struct onnx_wire wire = onnx_wire_over(field->bytes);
    uint64_t bits = 0;
    if (fixed == 0) {
        while (onnx_wire_number(&wire, &bits)) {
            put(filling, bits);
        }
        return;
    }
    for (size_t i = 0; i + fixed <= field->bytes.size; i += fixed) {
        bits = 0;
        memcpy(&bits, field->bytes.at + i, fixed);
        put(filling, bits);
    }
}

/* Reads the elements of a TensorProto. Complex elements are pairs in their lists. */
static void fill(const struct onnx_tensor *tensor, struct onnx_array *array)
{
    enum { FLOATS = 4, INT32S = 5, INT64S = 7, RAW = 9, DOUBLES = 10, UINT64S = 11 };
    const bool is_complex = tensor->type == ONNX_COMPLEX64 || tensor->type == ONNX_COMPLEX128;
    struct filling filling = {.at = array->bytes,
                              .item = (size_t)onnx_type_bytes(array->type) / (is_complex ? 2 : 1),
                              .left = (size_t)array->size};
    struct onnx_wire wire = onnx_wire_over(tensor->message);
    struct onnx_field field;
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == RAW && field.bytes.size == array->size && array->size > 0) {
            memcpy(array->bytes, field.bytes.at, field.bytes.size);
        } else if (field.number == FLOATS) {
            put_list(&filling, &field, 4);
        } else if (field.number == DOUBLES) {
            put_list(&filling, &field, 8);
        } else if (field.number == INT32S || field.number == INT64S || field.number == UINT64S) {
            put_list(&filling, &field, 0);
        }
    }
}

/* Turns a .pb file into a .npy file. */
static int convert(const char *from, const char *folder, const char *name)
{
    struct problem problem = {""};
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct onnx_tensor tensor;
    struct onnx_array array = {.type = ONNX_UNDEFINED};
    if (!file_read(from, FILE_MOST, &bytes, &size, &problem)) {
        return say(UNFIT, "the case has no file %s", from);
    }
    int status = 0;
    if (onnx_tensor_read((struct onnx_span){bytes, size}, &tensor, &problem) != ONNX_OK ||
        !onnx_array_make(tensor.type, tensor.rank, tensor.dims, &array, &problem)) {
        status = say(UNFIT, "no array of numbers: %s", problem.text);
    } else {
        const int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const struct onnx_words_file file = {.name = {(const uint8_t *)name, strlen(name)},
                                             .file = {(const uint8_t *)name, strlen(name)}};
        fill(&tensor, &array);
        if (onnx_file_write(at, &file, &array, &problem) != ONNX_FILE_OK) {
            status = say(UNFIT, "%s", problem.text);
        }
        (void)close(at);
    }
    onnx_array_release(&array);
    free(bytes);
    return status;
}

/* ---------------------------------------------------------------- prepare */

static int prepare_port(const char *from, const char *folder, const struct onnx_port *port,
                        bool is_input, size_t index, FILE *words)
{
    char path[PATH_SIZE];
    char name[32];
    if (!port->is_tensor || port->type == ONNX_STRING || port->type == ONNX_BFLOAT16) {
        return say(UNFIT, "\"%s\" is no array that .npy files hold", onnx_label(port->name).text);
    }
    (void)snprintf(path, sizeof path, "%s/test_data_set_0/%s_%zu.pb", from,
                   is_input ? "input" : "output", index);
    (void)snprintf(name, sizeof name, "%c%zu.npy", is_input ? 'i' : 'e', index);
    (void)fprintf(words, "%c %.*s=%c%zu.npy\n", is_input ? 'i' : 'o', (int)port->name.size,
                  (const char *)port->name.at, is_input ? 'i' : 'o', index);
    return convert(path, folder, name);
}

static int prepare_all(const char *from, const char *folder, const struct onnx_interface *interface)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/words", folder);
    FILE *words = fopen(path, "we");
    if (words == NULL) {
        return say(FAILED, "%s cannot be written", path);
    }
    int status = 0;
    for (size_t i = 0; status == 0 && i < interface->input_count; i++) {
        status = prepare_port(from, folder, &interface->inputs[i], true, i, words);
    }
    for (size_t i = 0; status == 0 && i < interface->output_count; i++) {
        status = prepare_port(from, folder, &interface->outputs[i], false, i, words);
    }
    return fclose(words) == 0 ? status : FAILED;
}

static int prepare(const char *from, const char *folder)
{
    char model[PATH_SIZE];
    char copy[PATH_SIZE];
    struct problem problem = {""};
    uint8_t *bytes = NULL;
    size_t size = 0;
    (void)snprintf(model, sizeof model, "%s/model.onnx", from);
    (void)snprintf(copy, sizeof copy, "%s/model.onnx", folder);
    struct onnx_interface *interface = calloc(1, sizeof *interface);
    if (interface == NULL || !file_read(model, FILE_MOST, &bytes, &size, &problem) ||
        !file_copy(model, copy, &problem)) {
        return say(FAILED, "%s", problem.text);
    }
    int status = 0;
    if (onnx_interface_read(bytes, size, interface, &problem) != ONNX_OK) {
        status = say(UNFIT, "%s", problem.text);
    } else {
        status = prepare_all(from, folder, interface);
    }
    free(interface);
    free(bytes);
    return status;
}

/* ---------------------------------------------------------------- direct */

struct words {
    char model[16];
    char lines[WORDS][ONNX_NAME_BYTES + 32];
    const char *items[1 + 2 * WORDS];
    size_t count;
};

static bool read_words(struct words *words)
{
    static const char *const options[] = {"-i", "-o"};
    FILE *file = fopen("words", "re");
    size_t lines = 0;
    (void)snprintf(words->model, sizeof words->model, "model.onnx");
    words->items[words->count++] = words->model;
    while (file != NULL && lines < WORDS &&
           fgets(words->lines[lines], sizeof words->lines[lines], file) != NULL) {
        char *line = words->lines[lines++];
        line[strcspn(line, "\n")] = '\0';
        words->items[words->count++] = options[line[0] == 'o'];
        words->items[words->count++] = line + 2;
    }
    return file != NULL && fclose(file) == 0;
}

static int direct(const char *library, const char *folder, const char *settings)
{
    static struct words words;
    struct onnx_engine engine;
    struct problem problem = {""};
    if (chdir(folder) != 0 || !read_words(&words)) {
        return say(FAILED, "%s has no words", folder);
    }
    if (!onnx_engines_open(library, settings, &engine, &problem)) {
        return say(FAILED, "%s", problem.text);
    }
    struct onnx_serve *serve = onnx_serve_create(&engine, 1);
    const struct onnx_serve_run run = {
        .folder = AT_FDCWD, .words = words.items, .count = words.count};
    const enum operation_status status =
        serve != NULL ? onnx_serve_run(serve, &run, &problem) : OPERATION_MEMORY;
    onnx_serve_destroy(&serve);
    return status == OPERATION_OK ? 0 : say(FAILED, "%s", problem.text);
}

/* ---------------------------------------------------------------- close */

static float of_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const float sign = (bits & 0x8000) != 0 ? -1 : 1;
    const float fraction = (float)(bits & 1023);
    return exponent == 31  ? (fraction == 0 ? sign * INFINITY : NAN)
           : exponent == 0 ? sign * ldexpf(fraction, -24)
                           : sign * ldexpf(1024 + fraction, exponent - 25);
}

/* Returns a number of either file; integers above 2^53 are rounded alike in both. */
static double number_at(const struct onnx_array *array, int64_t index)
{
    const uint8_t *at = (const uint8_t *)array->bytes + index * onnx_type_bytes(array->type);
    float real;
    double twice;
    int64_t integer = 0;
    uint16_t half;
    switch (array->type) {
    case ONNX_FLOAT:
        memcpy(&real, at, sizeof real);
        return (double)real;
    case ONNX_DOUBLE:
        memcpy(&twice, at, sizeof twice);
        return twice;
    case ONNX_FLOAT16:
        memcpy(&half, at, sizeof half);
        return (double)of_half(half);
    default:
        memcpy(&integer, at, (size_t)onnx_type_bytes(array->type));
        return (double)integer;
    }
}

static bool is_close(double stated, double found)
{
    if (isnan(stated) || isinf(stated)) {
        return isnan(stated) ? isnan(found) : stated == found;
    }
    return fabs(stated - found) <= 1e-5 + 1e-3 * fabs(stated);
}

static int compare(const char *stated, const char *found)
{
    static const struct onnx_words none;
    const char *const names[] = {stated, found};
    struct onnx_array arrays[2] = {{.type = ONNX_UNDEFINED}, {.type = ONNX_UNDEFINED}};
    struct problem problem = {""};
    int status = 0;
    for (size_t i = 0; i < 2 && status == 0; i++) {
        const struct onnx_words_file file = {.file = {(const uint8_t *)names[i], strlen(names[i])}};
        const struct onnx_file_place place = {AT_FDCWD, -1};
        if (!onnx_file_read(&place, &file, &none, &arrays[i], &problem)) {
            status = say(FAILED, "%s", problem.text);
        }
    }
    if (status == 0 && (arrays[0].type != arrays[1].type || arrays[0].rank != arrays[1].rank ||
                        memcmp(arrays[0].dims, arrays[1].dims, sizeof arrays[0].dims) != 0)) {
        status = say(FAILED, "%s has another type or other dims", found);
    }
    for (int64_t i = 0; status == 0 && i < arrays[0].elements; i++) {
        if (!is_close(number_at(&arrays[0], i), number_at(&arrays[1], i))) {
            (void)printf("element %lld is %g, and %g is stated\n", (long long)i,
                         number_at(&arrays[1], i), number_at(&arrays[0], i));
            status = FAILED;
        }
    }
    onnx_array_release(&arrays[0]);
    onnx_array_release(&arrays[1]);
    return status;
}

int main(int count, char **words)
{
    const bool is_direct = count >= 4 && count <= 5 && strcmp(words[1], "direct") == 0;
    const char *verb = is_direct || count == 4 ? words[1] : "";
    return strcmp(verb, "prepare") == 0  ? prepare(words[2], words[3])
           : strcmp(verb, "direct") == 0 ? direct(words[2], words[3], words[4])
           : strcmp(verb, "close") == 0
               ? compare(words[2], words[3])
               : say(2, "usage: onnx-cases %s",
                     "prepare CASE FOLDER | direct LIBRARY FOLDER [SETTINGS] | close A B");
}
