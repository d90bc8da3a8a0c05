/* vector_add.c is an example of a plug-in (docs/plugins.md): a device with one operation.
 *
 *     vector-add A B SUM [TIMES]    adds two files of float32 numbers, number by number; B is added
 *                                   so many times, without TIMES once
 *
 * The operation can be cancelled: the plug-in looks for a line between two additions.
 *
 * The sum is computed on the processor, and the description says so. A plug-in for hardware has the
 * same loop, and calls the hardware's library where this program has its `add`. The plug-in also
 * multiplies matrices, so that the market can challenge the speed that it claims.
 *
 *     cc -O2 -o vector_add vector_add.c -ljansson */
#include <jansson.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROBE_NUMBERS = 1 << 18, PROBE_ROUNDS = 20, PROBE_SIDE = 192 };
#define PROBE_SECONDS 0.2

static void add(const float *a, const float *b, float *sum, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sum[i] = a[i] + b[i];
    }
}

/* Multiplies matrices of `side` rows and columns, stored row by row. */
static void multiply(const float *left, const float *right, float *product, size_t side)
{
    memset(product, 0, side * side * sizeof *product);
    for (size_t i = 0; i < side; i++) {
        for (size_t k = 0; k < side; k++) {
            const float factor = left[i * side + k];
            for (size_t j = 0; j < side; j++) {
                product[i * side + j] += factor * right[k * side + j];
            }
        }
    }
}

/* Answers one request with one line, and frees the object. */
static void answer(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

static void describe(void)
{
    answer(json_pack("{s:i, s:s, s:s, s:s, s:s, s:i, s:[s], s:s, s:[s]}", "bourse", 1, "name",
                     "example: vectors added on the processor", "kind", "cpu", "vendor", "example",
                     "model", "vector-add", "memory", 0, "operations", "vector-add", "challenge",
                     "gemm_fp32", "features", "cancel"));
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns how fast the device multiplies matrices, in operations a second. */
static double product_speed(float *numbers)
{
    const size_t cells = (size_t)PROBE_SIDE * PROBE_SIDE;
    const double began_s = now_s();
    double took_s = 0;
    int rounds = 0;
    while (took_s < PROBE_SECONDS) {
        numbers[rounds % PROBE_SIDE] += 1;
        multiply(numbers, numbers + cells, numbers + 2 * cells, PROBE_SIDE);
        rounds++;
        took_s = now_s() - began_s;
    }
    return 2.0 * (double)cells * PROBE_SIDE * rounds / took_s;
}

/* Measures how fast the device adds. `bandwidth` counts the bytes read and written. */
static void probe(void)
{
    float *numbers = calloc(3 * (size_t)PROBE_NUMBERS, sizeof *numbers);
    if (numbers == NULL) {
        answer(json_pack("{s:s}", "failed", "no memory to measure"));
        return;
    }
    const double began_s = now_s();
    for (int i = 0; i < PROBE_ROUNDS; i++) {
        numbers[i] += 1;
        add(numbers, numbers + PROBE_NUMBERS, numbers + 2 * (size_t)PROBE_NUMBERS, PROBE_NUMBERS);
    }
    const double took_s = now_s() - began_s;
    const double additions = (double)PROBE_NUMBERS * PROBE_ROUNDS;
    const double products = product_speed(numbers);
    free(numbers);
    answer(json_pack("{s:f, s:f, s:f}", "fp32", additions / took_s, "bandwidth",
                     12 * additions / took_s, "gemm_fp32", products));
}

/* Reads a file of the work folder. Returns NULL and sets errno on failure. */
static float *load(const char *name, size_t *ret_count)
{
    FILE *file = fopen(name, "rb");
    float *numbers = NULL;
    if (file == NULL) {
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        rewind(file);
        *ret_count = size > 0 ? (size_t)size / sizeof *numbers : 0;
        numbers = malloc(*ret_count * sizeof *numbers + 1);
        if (numbers != NULL && fread(numbers, sizeof *numbers, *ret_count, file) != *ret_count) {
            free(numbers);
            numbers = NULL;
        }
    }
    fclose(file);
    return numbers;
}

static int store(const char *name, const float *numbers, size_t count)
{
    FILE *file = fopen(name, "wb");
    if (file == NULL) {
        return 0;
    }
    const int is_written = fwrite(numbers, sizeof *numbers, count, file) == count;
    return fclose(file) == 0 && is_written;
}

static void say(int status, const char *text)
{
    answer(json_pack("{s:i, s:s}", "status", status, "text", text));
}

/* Multiplies the two files of the request, and writes the third. */
static void multiply_files(const json_t *request)
{
    const size_t side = (size_t)json_integer_value(json_object_get(request, "side"));
    size_t counts[2] = {0, 0};
    float *left = load(json_string_value(json_object_get(request, "left")), &counts[0]);
    float *right = load(json_string_value(json_object_get(request, "right")), &counts[1]);
    float *product = malloc(side * side * sizeof *product + 1);
    int is_done = 0;
    if (left != NULL && right != NULL && product != NULL && counts[0] == side * side &&
        counts[1] == side * side) {
        multiply(left, right, product, side);
        is_done =
            store(json_string_value(json_object_get(request, "product")), product, side * side);
    }
    say(is_done ? 0 : 1, is_done ? "" : "the matrices cannot be read or written");
    free(left);
    free(right);
    free(product);
}

/* Returns true when a line waits. While an operation runs, that is `cancel` alone. */
static int is_cancelled(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

/* Adds b to a so many times. Returns 0 when the operation was cancelled. */
static int add_times(float *a, const float *b, size_t count, long times)
{
    for (long i = 0; i < times; i++) {
        if (is_cancelled()) {
            return 0;
        }
        add(a, b, a, count);
    }
    return 1;
}

static void run(const json_t *arguments)
{
    char text[200];
    const char *names[3];
    const char *times = json_string_value(json_array_get(arguments, 3));
    if (json_array_size(arguments) != 3 && times == NULL) {
        say(2, "write vector-add A B SUM [TIMES]");
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        names[i] = json_string_value(json_array_get(arguments, i));
    }
    size_t counts[2] = {0, 0};
    float *a = load(names[0], &counts[0]);
    float *b = a != NULL ? load(names[1], &counts[1]) : NULL;
    if (b == NULL) {
        snprintf(text, sizeof text, "%.80s: %s", names[a != NULL], strerror(errno));
        say(1, text);
    } else if (counts[0] != counts[1]) {
        snprintf(text, sizeof text, "%.60s has %zu numbers, and %.60s has %zu", names[0], counts[0],
                 names[1], counts[1]);
        say(1, text);
    } else if (!add_times(a, b, counts[0], times == NULL ? 1 : strtol(times, NULL, 10))) {
        say(1, "cancelled"); /* the answer to `run`; `cancel` itself has none */
    } else {
        snprintf(text, sizeof text, "%zu numbers added", counts[0]);
        if (store(names[2], a, counts[0])) {
            say(0, text);
        } else {
            snprintf(text, sizeof text, "%.80s: %s", names[2], strerror(errno));
            say(1, text);
        }
    }
    free(a);
    free(b);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        json_t *request = json_loads(line, 0, NULL);
        const char *what = json_string_value(json_object_get(request, "do"));
        if (what == NULL) {
            return 1;
        }
        if (strcmp(what, "describe") == 0) {
            describe();
        } else if (strcmp(what, "probe") == 0) {
            probe();
        } else if (strcmp(what, "multiply") == 0) {
            multiply_files(request);
        } else if (strcmp(what, "run") == 0) {
            run(json_object_get(request, "arguments"));
        } else if (strcmp(what, "cancel") == 0) {
            /* The operation has ended, or ended just before. */
        } else { /* `figures`, and requests of later versions: this device answers nothing */
            answer(json_object());
        }
        json_decref(request);
    }
    free(line);
    return 0;
}
