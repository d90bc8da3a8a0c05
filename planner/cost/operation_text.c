/* This file writes an operation as a line of text, and reads it back; operations.h shows a line. */
#include "planner/cost/operations_internal.h"

#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { WORD_SIZE = 32 };

/* ---------------------------------------------------------------- writing */

struct line {
    char *text;
    size_t length;
};

static __attribute__((format(printf, 2, 3))) void append(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written =
        vsnprintf(line->text + line->length, OPERATION_TEXT_SIZE - line->length, format, arguments);
    va_end(arguments);
    assert(written >= 0 && (size_t)written < OPERATION_TEXT_SIZE - line->length);
    line->length += (size_t)written;
}

void operation_write(const struct operation *operation, char ret_text[OPERATION_TEXT_SIZE])
{
    struct line line = {ret_text, 0};
    const struct operation_facts *facts = operation_facts(operation->kind);
    append(&line, "%s:", facts->name);
    for (const struct dimension *at = facts->dimensions; at->name != NULL; at++) {
        long long value = (long long)dimension_value(operation, at);
        if (!at->is_option) {
            append(&line, "%s%lld", at == facts->dimensions ? "" : "x", value);
        } else if (value != at->usual && dimension_is_flag(at)) {
            append(&line, ",%s", at->name);
        } else if (value != at->usual) {
            append(&line, ",%s=%lld", at->name, value);
        }
    }
    if (facts->dtypes != 0) {
        append(&line, ":%s", dtype_name(operation->dtype));
    }
}

static void append_upper(struct line *line, const char *word)
{
    for (const char *c = word; *c != '\0'; c++) {
        append(line, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    }
}

void operation_form(enum operation_kind kind, char ret_text[OPERATION_TEXT_SIZE])
{
    struct line line = {ret_text, 0};
    const struct operation_facts *facts = operation_facts(kind);
    for (const struct dimension *at = facts->dimensions; at->name != NULL; at++) {
        if (!at->is_option) {
            append(&line, "%s", at == facts->dimensions ? "" : "x");
            append_upper(&line, at->name);
        } else if (dimension_is_flag(at)) {
            append(&line, "[,%s]", at->name);
        } else {
            append(&line, "[,%s=%lld]", at->name, (long long)at->usual);
        }
    }
}

/* ---------------------------------------------------------------- reading */

struct reading {
    const char *at;
    const struct operation_facts *facts;
    struct operation *operation;
    struct problem *problem;
};

static bool take(struct reading *reading, char c)
{
    bool found = *reading->at == c;
    reading->at += found;
    return found;
}

/* Reads up to the next of `ends` or the end. Returns false when the word is longer than any known
 * word. */
static bool take_word(struct reading *reading, const char *ends, char ret_word[WORD_SIZE])
{
    size_t length = strcspn(reading->at, ends);
    if (length >= WORD_SIZE) {
        return false;
    }
    memcpy(ret_word, reading->at, length);
    ret_word[length] = '\0';
    reading->at += length;
    return true;
}

static enum operation_status wrong_shape(struct reading *reading)
{
    char form[OPERATION_TEXT_SIZE];
    operation_form(reading->operation->kind, form);
    problem_set(reading->problem, "the shape is %s: %s:%s%s", form, reading->facts->name, form,
                reading->facts->dtypes != 0 ? ":TYPE" : "");
    return OPERATION_SHAPE;
}

/* Reads a number of up to 18 digits. A longer one becomes a value outside every range. */
static bool take_number(struct reading *reading, int64_t *ret_value)
{
    bool is_negative = take(reading, '-');
    const char *first = reading->at;
    int64_t value = 0;
    for (; *reading->at >= '0' && *reading->at <= '9'; reading->at++) {
        value = value > OPERATION_DIMENSION_MOST ? value : 10 * value + (*reading->at - '0');
    }
    *ret_value = is_negative ? -value : value;
    return reading->at != first;
}

static enum operation_status take_dimension(struct reading *reading,
                                            const struct dimension *dimension)
{
    int64_t value = 0;
    if (!take_number(reading, &value)) {
        return wrong_shape(reading);
    }
    if (value > dimension->most) { /* a number that is too long has only its first digits here */
        problem_set(reading->problem, "%s: %s is more than %lld, the most that it may be",
                    reading->facts->name, dimension->name, (long long)dimension->most);
        return OPERATION_DIMENSION;
    }
    *(int64_t *)((char *)reading->operation + dimension->offset) = value;
    return OPERATION_OK;
}

static enum operation_status take_option(struct reading *reading, uint32_t *seen)
{
    const struct dimension *dimensions = reading->facts->dimensions;
    char word[WORD_SIZE];
    if (!take_word(reading, ",=:", word)) {
        return wrong_shape(reading);
    }
    for (size_t i = 0; dimensions[i].name != NULL; i++) {
        if (!dimensions[i].is_option || strcmp(dimensions[i].name, word) != 0) {
            continue;
        }
        if ((*seen & (UINT32_C(1) << i)) != 0) {
            problem_set(reading->problem, "%s: %s is said twice", reading->facts->name, word);
            return OPERATION_SHAPE;
        }
        *seen |= UINT32_C(1) << i;
        if (!take(reading, '=')) {
            *(int64_t *)((char *)reading->operation + dimensions[i].offset) = 1;
            return dimension_is_flag(&dimensions[i]) ? OPERATION_OK : wrong_shape(reading);
        }
        return take_dimension(reading, &dimensions[i]);
    }
    return wrong_shape(reading);
}

static enum operation_status take_shape(struct reading *reading)
{
    uint32_t seen = 0;
    enum operation_status status = OPERATION_OK;
    const struct dimension *at = reading->facts->dimensions;
    for (; at->name != NULL && !at->is_option; at++) {
        if (at != reading->facts->dimensions && !take(reading, 'x')) {
            return wrong_shape(reading);
        }
        status = take_dimension(reading, at);
        if (status != OPERATION_OK) {
            return status;
        }
    }
    while (status == OPERATION_OK && take(reading, ',')) {
        status = take_option(reading, &seen);
    }
    return status;
}

static enum operation_status take_type(struct reading *reading)
{
    if (reading->facts->dtypes == 0) {
        return *reading->at == '\0' ? OPERATION_OK : wrong_shape(reading);
    }
    if (*reading->at != '\0' && *reading->at != ':') {
        return wrong_shape(reading);
    }
    if (!take(reading, ':') || !dtype_find(reading->at, &reading->operation->dtype)) {
        problem_set(reading->problem, "after the shape, the type is one of fp64, fp32, tf32, fp16, "
                                      "bf16, fp8, int8 and int4, as in matmul:64x64x64:bf16");
        return OPERATION_DTYPE;
    }
    return OPERATION_OK;
}

static enum operation_status unknown_kind(const char *word, struct problem *problem)
{
    const char *names[OPERATION_KINDS];
    for (int i = 0; i < OPERATION_KINDS; i++) {
        names[i] = operation_name((enum operation_kind)i);
    }
    const char *nearest = text_nearest(word, names, OPERATION_KINDS);
    if (nearest != NULL) {
        problem_set(problem, "there is no such operation; did you mean \"%s\"?", nearest);
    } else {
        problem_set(problem,
                    "an operation is its kind, shape and type, as in "
                    "matmul:4096x4096x4096:bf16; `bourse devices --operations` lists them");
    }
    return OPERATION_UNKNOWN;
}

enum operation_status operation_parse(const char *text, struct operation *ret_operation,
                                      struct problem *ret_problem)
{
    struct operation operation = {.kind = OPERATION_KINDS};
    struct operation_size size;
    struct reading reading = {text, NULL, &operation, ret_problem};
    char word[WORD_SIZE] = "";
    bool is_word = take_word(&reading, ":", word);
    for (int i = 0; i < OPERATION_KINDS && is_word; i++) {
        if (strcmp(operation_name((enum operation_kind)i), word) == 0) {
            operation = operation_of((enum operation_kind)i, DTYPE_FP32);
            reading.facts = operation_facts(operation.kind);
        }
    }
    if (reading.facts == NULL) {
        return unknown_kind(word, ret_problem);
    }
    if (!take(&reading, ':')) {
        return wrong_shape(&reading);
    }
    enum operation_status status = take_shape(&reading);
    if (status == OPERATION_OK) {
        status = take_type(&reading);
    }
    if (status == OPERATION_OK) {
        status = operation_measure(&operation, &size, ret_problem);
    }
    if (status == OPERATION_OK) {
        *ret_operation = operation;
    }
    return status;
}
