#include "consumer/command/plan/samples.h"

#include "base/text.h"
#include "formats/units.h"
#include "runtime/files.h"

#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"

/* Ends the word at `*at`, goes on to the next word, and returns the first; "" when there is
 * none. */
static char *take_word(char **at)
{
    char *word = *at + strspn(*at, BLANKS);
    char *end = word + strcspn(word, BLANKS);
    *at = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

/* The user chooses the path, so it may have any length. */
static __attribute__((format(printf, 4, 5))) bool
wrong(const struct samples *samples, size_t line, struct problem *problem, const char *format, ...)
{
    char path[128];
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    text_printable(samples->path, strlen(samples->path), path, sizeof path);
    if (line > 0) {
        problem_set(problem, "%s:%zu: %s", path, line, text);
    } else {
        problem_set(problem, "%s: %s", path, text);
    }
    return false;
}

static bool read_line(char *line, size_t number, struct samples *samples, struct problem *problem)
{
    struct problem why = {""};
    char *at = line;
    char *operation = take_word(&at);
    char *duration = take_word(&at);
    int64_t ns = 0;
    if (operation[0] == '\0' || operation[0] == '#') {
        return true;
    }
    if (samples->count == SAMPLES_MOST) {
        return wrong(samples, number, problem, "there are more than %d samples", SAMPLES_MOST);
    }
    if (duration[0] == '\0' || take_word(&at)[0] != '\0') {
        return wrong(samples, number, problem,
                     "a sample is an operation and its time, as in matmul:4096x4096x4096:bf16 "
                     "195us");
    }
    struct calibrate_sample *row = &samples->rows[samples->count];
    if (operation_parse(operation, &row->operation, &why) != OPERATION_OK) {
        return wrong(samples, number, problem, "%s", why.text);
    }
    enum units_status status = units_duration(duration, &ns);
    if (status == UNITS_INEXACT) {
        char text[256];
        units_explain(UNITS_DURATION, status, duration, text, sizeof text);
        return wrong(samples, number, problem, "%s", text);
    }
    if (status != UNITS_OK || ns <= 0) {
        char text[64];
        text_printable(duration, strlen(duration), text, sizeof text);
        return wrong(samples, number, problem, "\"%s\" is no time above 0, as 195us and 1.5ms are",
                     text);
    }
    row->seconds = (double)ns / 1e9;
    samples->lines[samples->count++] = number;
    return true;
}

bool samples_read(const char *path, struct samples *ret_samples, struct problem *ret_problem)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    size_t number = 0;
    bool is_good = true;
    ret_samples->count = 0;
    ret_samples->path = path;
    if (!file_read(path, SAMPLES_BYTES_MOST, &bytes, &length, ret_problem)) {
        return false;
    }
    char *line = (char *)bytes;
    if (memchr(bytes, '\0', length) != NULL) {
        is_good = wrong(ret_samples, 0, ret_problem, "the file has a NUL byte, so it is no text");
    }
    while (is_good && *line != '\0') {
        char *end = line + strcspn(line, "\n");
        bool is_last = *end == '\0';
        *end = '\0';
        is_good = read_line(line, ++number, ret_samples, ret_problem);
        line = is_last ? end : end + 1;
    }
    free(bytes);
    return is_good && (ret_samples->count > 0 ||
                       wrong(ret_samples, 0, ret_problem,
                             "there is no sample in it; one is an operation and its time, as in "
                             "matmul:4096x4096x4096:bf16 195us"));
}

static bool is_same(const struct operation *a, const struct operation *b)
{
    char texts[2][OPERATION_TEXT_SIZE];
    operation_write(a, texts[0]);
    operation_write(b, texts[1]);
    return strcmp(texts[0], texts[1]) == 0;
}

/* The ratio is in millionths of the bound. The calibration refuses an absurd one. */
static void remember(const struct device_profile *profile, const struct calibrate_sample *sample,
                     struct history *history)
{
    struct cost cost;
    if (cost_estimate(profile, &sample->operation, &cost) == COST_OK && cost.bound_s.value > 0) {
        double ratio = sample->seconds / cost.bound_s.value * (double)HISTORY_BOUND;
        if (ratio >= 1 && ratio < 9e18) {
            (void)history_add(history, (int64_t)ratio);
        }
    }
}

void samples_remember(const struct samples *samples, const struct device_profile *profile,
                      const struct operation *operation, struct history *ret_history)
{
    *ret_history = (struct history){.count = 0};
    for (size_t i = 0; i < samples->count; i++) {
        if (is_same(&samples->rows[i].operation, operation)) {
            remember(profile, &samples->rows[i], ret_history);
        }
    }
}

bool samples_calibrate(const struct samples *samples, const struct device_profile *profile,
                       enum operation_class class, struct cost_calibration *ret_calibration,
                       struct problem *ret_problem)
{
    struct calibrate_sample rows[CALIBRATE_MOST];
    size_t lines[CALIBRATE_MOST];
    size_t count = 0;
    size_t bad = 0;
    *ret_calibration = (struct cost_calibration){.samples = 0};
    for (size_t i = 0; i < samples->count; i++) {
        if (operation_class_of(samples->rows[i].operation.kind) != class) {
            continue;
        }
        if (count == CALIBRATE_MOST) {
            return wrong(samples, 0, ret_problem, "there are more than %d samples of class %s",
                         CALIBRATE_MOST, operation_class_name(class));
        }
        lines[count] = samples->lines[i];
        rows[count++] = samples->rows[i];
    }
    if (count == 0) {
        return true;
    }
    switch (calibrate(profile, class, rows, count, ret_calibration, &bad)) {
    case CALIBRATE_OK:
        return true;
    case CALIBRATE_FEW:
        return wrong(samples, 0, ret_problem, "%zu sample%s of class %s; %d are needed", count,
                     text_plural(count), operation_class_name(class), CALIBRATE_LEAST);
    case CALIBRATE_BAD_SAMPLE:
        return wrong(samples, lines[bad], ret_problem, "by its figures the device cannot do that");
    }
    return false;
}
