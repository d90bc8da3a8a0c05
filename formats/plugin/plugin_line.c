#include "formats/plugin/plugin_line.h"

#include "base/device_kind.h"
#include "base/text.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)
#define FIGURE_MOST 9e18 /* fits 64 bits */

bool plugin_takes(const struct plugin_description *description, const char *operation)
{
    for (size_t i = 0; i < description->operation_count; i++) {
        if (strcmp(description->operations[i], operation) == 0) {
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- requests */

size_t plugin_write_request(const char *what, char ret_line[PLUGIN_LINE_BYTES])
{
    const int length = snprintf(ret_line, PLUGIN_LINE_BYTES, "{\"bourse\":%d,\"do\":\"%s\"}\n",
                                PLUGIN_VERSION, what);
    return (size_t)length;
}

/* Returns the arguments as a JSON array, or NULL when one is no UTF-8 or memory is short. */
static json_t *array_of(const char *const *arguments, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < count; i++) {
        if (json_array_append_new(array, json_string(arguments[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

size_t plugin_write_run(const char *operation, const char *const *arguments, size_t count,
                        char ret_line[PLUGIN_LINE_BYTES], struct problem *ret_problem)
{
    json_t *array = array_of(arguments, count);
    json_t *request = array != NULL
                          ? json_pack("{s:i, s:s, s:s, s:o}", "bourse", PLUGIN_VERSION, "do", "run",
                                      "operation", operation, "arguments", array)
                          : NULL;
    if (request == NULL) {
        problem_set(ret_problem, "an argument of the operation is no UTF-8 text");
        return 0;
    }
    const size_t length =
        json_dumpb(request, ret_line, PLUGIN_LINE_BYTES - 1, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(request);
    if (length == 0 || length >= PLUGIN_LINE_BYTES) {
        problem_set(ret_problem, "the arguments of the operation are too long");
        return 0;
    }
    ret_line[length] = '\n';
    return length + 1;
}

size_t plugin_write_multiply(uint32_t side, char ret_line[PLUGIN_LINE_BYTES])
{
    const int length =
        snprintf(ret_line, PLUGIN_LINE_BYTES,
                 "{\"bourse\":%d,\"do\":\"multiply\",\"side\":%" PRIu32 ",\"left\":\"" PLUGIN_LEFT
                 "\",\"right\":\"" PLUGIN_RIGHT "\",\"product\":\"" PLUGIN_PRODUCT "\"}\n",
                 PLUGIN_VERSION, side);
    return (size_t)length;
}

/* ---------------------------------------------------------------- answers */

/* Returns true, with the problem, when the answer is that the device itself failed. */
static bool has_failed(const json_t *object, struct problem *problem)
{
    const json_t *failed = json_object_get(object, "failed");
    char shown[PLUGIN_TEXT_SIZE];
    if (!json_is_string(failed)) {
        return false;
    }
    text_printable(json_string_value(failed), json_string_length(failed), shown, sizeof shown);
    problem_set(problem, "the device fails: %s", shown);
    return true;
}

/* Returns the answer's object, which the caller releases, or NULL with the problem. */
static json_t *read_object(const char *line, size_t length, struct problem *problem)
{
    json_t *object =
        length <= PLUGIN_LINE_BYTES ? json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (!json_is_object(object)) {
        char shown[60];
        text_printable(line, length < sizeof shown ? length : sizeof shown, shown, sizeof shown);
        problem_set(problem, "the plug-in's answer is no JSON object in one line: %s", shown);
        json_decref(object);
        return NULL;
    }
    if (has_failed(object, problem)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* Reads a word, which is an operation or one of the others. */
static bool read_word(const json_t *value, const char *what, bool is_operation,
                      char ret_word[PLUGIN_WORD_SIZE], struct problem *problem)
{
    const char *text = json_string_value(value);
    const bool fits = text != NULL && strlen(text) == json_string_length(value) &&
                      (is_operation ? plugin_word_is_operation(text) : plugin_word_fits(text));
    if (!fits) {
        return REFUSE(problem,
                      "the plug-in's \"%s\" is no word: 1 to %d of a-z, 0-9%s, the first a letter "
                      "or digit",
                      what, PLUGIN_WORD_SIZE - 1, is_operation ? ", dot, dash and _" : " and dash");
    }
    (void)snprintf(ret_word, PLUGIN_WORD_SIZE, "%s", text);
    return true;
}

/* Reads a figure. One that is absent or null is `unknown`. */
static bool read_figure(const json_t *object, const char *key, double most, double unknown,
                        double *ret_figure, struct problem *problem)
{
    const json_t *value = json_object_get(object, key);
    *ret_figure = unknown;
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    const double figure = json_number_value(value);
    if (!json_is_number(value) || !(figure <= most) || !(figure >= -FIGURE_MOST)) {
        return REFUSE(problem, "the plug-in's \"%s\" is no number up to %g, and not null", key,
                      most);
    }
    *ret_figure = figure >= 0 ? figure : unknown;
    return true;
}

static bool read_whole(const json_t *object, const char *key, int64_t *ret_figure,
                       struct problem *problem)
{
    double figure;
    const bool good = read_figure(object, key, FIGURE_MOST, 0, &figure, problem);
    *ret_figure = (int64_t)figure;
    return good;
}

static bool is_kind(const char *word)
{
    size_t count;
    const struct device_kind *kinds = device_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kinds[i].name, word) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_operations(const json_t *list, struct plugin_description *description,
                            struct problem *problem)
{
    const size_t count = json_array_size(list);
    if (count == 0 || count > PLUGIN_OPERATIONS) {
        return REFUSE(problem, "the plug-in's \"operations\" are no list of 1 to %d names",
                      PLUGIN_OPERATIONS);
    }
    for (size_t i = 0; i < count; i++) {
        char *name = description->operations[i];
        if (!read_word(json_array_get(list, i), "operations", true, name, problem)) {
            return false;
        }
        if (plugin_takes(description, name)) {
            return REFUSE(problem, "the plug-in names the operation \"%s\" twice", name);
        }
        description->operation_count++;
    }
    return true;
}

/* A claim that this agent does not know is one of a later version, and is passed over. */
static bool read_challenge(const json_t *value, bool *ret_multiplies, struct problem *problem)
{
    const bool is_absent = value == NULL || json_is_null(value);
    *ret_multiplies =
        json_is_string(value) && strcmp(json_string_value(value), PLUGIN_CHALLENGED) == 0;
    return is_absent || json_is_string(value) ||
           REFUSE(problem, "the plug-in's \"challenge\" is no text, as in \"%s\", and not null",
                  PLUGIN_CHALLENGED);
}

/* A feature that this agent does not know is one of a later version, and is passed over. */
static bool read_features(const json_t *value, bool *ret_cancels, struct problem *problem)
{
    bool good = value == NULL || json_is_null(value) ||
                (json_is_array(value) && json_array_size(value) <= PLUGIN_FEATURES);
    *ret_cancels = false;
    for (size_t i = 0; good && i < json_array_size(value); i++) {
        const char *word = json_string_value(json_array_get(value, i));
        good = word != NULL;
        *ret_cancels = *ret_cancels || (good && strcmp(word, PLUGIN_CANCEL) == 0);
    }
    return good || REFUSE(problem,
                          "the plug-in's \"features\" is no list of at most %d words, and not null",
                          PLUGIN_FEATURES);
}

static bool read_version(const json_t *object, struct problem *problem)
{
    const json_t *version = json_object_get(object, "bourse");
    if (json_is_integer(version) && json_integer_value(version) == PLUGIN_VERSION) {
        return true;
    }
    return REFUSE(problem,
                  "the plug-in speaks version %lld of the protocol; this agent speaks version %d",
                  (long long)json_integer_value(version), PLUGIN_VERSION);
}

static bool fill_description(const json_t *object, struct plugin_description *description,
                             struct problem *problem)
{
    int64_t memory_bytes;
    const json_t *name = json_object_get(object, "name");
    const char *text = json_string_value(name);
    if (!read_version(object, problem)) {
        return false;
    }
    if (text == NULL || text[0] == '\0' || json_string_length(name) >= PLUGIN_NAME_SIZE ||
        !text_is_plain(text, json_string_length(name))) {
        return REFUSE(problem, "the plug-in's \"name\" is no text of 1 to %d bytes",
                      PLUGIN_NAME_SIZE - 1);
    }
    (void)snprintf(description->name, sizeof description->name, "%s", text);
    if (!read_word(json_object_get(object, "kind"), "kind", false, description->kind, problem) ||
        !read_word(json_object_get(object, "vendor"), "vendor", false, description->vendor,
                   problem) ||
        !read_word(json_object_get(object, "model"), "model", false, description->model, problem) ||
        !read_whole(object, "memory", &memory_bytes, problem) ||
        !read_challenge(json_object_get(object, "challenge"), &description->multiplies, problem) ||
        !read_features(json_object_get(object, "features"), &description->cancels, problem)) {
        return false;
    }
    if (!is_kind(description->kind)) {
        return REFUSE(problem,
                      "the plug-in's kind \"%s\" is none of the market's; `custom` is for all that "
                      "has no kind of its own",
                      description->kind);
    }
    description->memory_bytes = (uint64_t)memory_bytes;
    return read_operations(json_object_get(object, "operations"), description, problem);
}

bool plugin_read_description(const char *line, size_t length, struct plugin_description *ret_answer,
                             struct problem *ret_problem)
{
    json_t *object = read_object(line, length, ret_problem);
    *ret_answer = (struct plugin_description){.operation_count = 0};
    const bool good = object != NULL && fill_description(object, ret_answer, ret_problem);
    json_decref(object);
    return good;
}

bool plugin_read_probe(const char *line, size_t length, struct plugin_probe *ret_answer,
                       struct problem *ret_problem)
{
    json_t *object = read_object(line, length, ret_problem);
    *ret_answer = (struct plugin_probe){.fp32 = 0};
    const bool good = object != NULL &&
                      read_whole(object, "fp32", &ret_answer->fp32, ret_problem) &&
                      read_whole(object, "bandwidth", &ret_answer->bandwidth, ret_problem) &&
                      read_whole(object, PLUGIN_CHALLENGED, &ret_answer->gemm_fp32, ret_problem);
    json_decref(object);
    return good;
}

bool plugin_read_figures(const char *line, size_t length, struct plugin_figures *ret_answer,
                         struct problem *ret_problem)
{
    json_t *object = read_object(line, length, ret_problem);
    *ret_answer = (struct plugin_figures){.power_w = -1};
    const bool good =
        object != NULL &&
        read_figure(object, "power", 1e6, -1, &ret_answer->power_w, ret_problem) &&
        read_figure(object, "temperature", 1e4, -1, &ret_answer->temperature_c, ret_problem) &&
        read_figure(object, "utilization", 1, -1, &ret_answer->utilization, ret_problem) &&
        read_figure(object, "memory_used", FIGURE_MOST, -1, &ret_answer->memory_used, ret_problem);
    json_decref(object);
    return good;
}

bool plugin_read_result(const char *line, size_t length, struct plugin_result *ret_answer,
                        struct problem *ret_problem)
{
    json_t *object = read_object(line, length, ret_problem);
    const json_t *status = json_object_get(object, "status");
    const json_t *text = json_object_get(object, "text");
    *ret_answer = (struct plugin_result){.status = 0};
    if (object == NULL) {
        return false;
    }
    bool good = json_is_integer(status) && json_integer_value(status) >= 0 &&
                json_integer_value(status) <= 255 &&
                (text == NULL || json_is_null(text) || json_is_string(text));
    if (!good) {
        problem_set(ret_problem, "the plug-in's answer has no status of 0 to 255, or its "
                                 "\"text\" is no text");
    } else {
        ret_answer->status = (int)json_integer_value(status);
        text_printable(json_is_string(text) ? json_string_value(text) : "",
                       json_string_length(text), ret_answer->text, sizeof ret_answer->text);
    }
    json_decref(object);
    return good;
}
