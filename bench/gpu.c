/* bench/gpu.c is what scripts/gpu-check needs beside a market: matrices, the processor's word on
 * results of a GPU, and cuBLAS as the measure.
 *
 *     gpu make N SEED FILE      writes N x N float32 without a header: whole numbers from -8 to 7
 *     gpu sum A B C             checks that C = A + 0.5 B
 *     gpu product A B C N       checks that C = A B
 *     gpu cublas N              prints the rates of cuBLAS as one line of JSON; 77: no cuBLAS here
 *
 * The numbers are so small that float32 keeps every sum up to N = 131072 exact, in any order. So a
 * check wants equal bits. A product is checked in two ways: ROWS rows are computed anew, and the
 * whole product is multiplied by vectors of random numbers (Freivalds). */
#include "base/random.h"
#include "bench/gpu/cublas.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_MOST = 16384, ROWS = 16, VECTORS = 2, LARGEST = 64, SKIPPED = 77 };
#define FACTORS (UINT64_C(1) << 20)

static int fail(const char *what, const char *which)
{
    (void)fprintf(stderr, "gpu: %s %s\n", what, which);
    return 1;
}

/* Returns the floats of a file that has exactly `count`, or all of them when `count` is 0. The
 * caller frees them. Returns NULL after it has said why. */
static float *read_floats(const char *name, size_t count, size_t *ret_count)
{
    FILE *file = fopen(name, "rb");
    long bytes = -1;
    float *floats = NULL;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        bytes = ftell(file);
        rewind(file);
    }
    const size_t found = bytes > 0 ? (size_t)bytes / sizeof *floats : 0;
    if (found > 0 && (count == 0 || found == count)) {
        floats = malloc(found * sizeof *floats);
    }
    if (floats != NULL && fread(floats, sizeof *floats, found, file) != found) {
        free(floats);
        floats = NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (floats == NULL) {
        (void)fail("cannot read, or of another size:", name);
    } else if (ret_count != NULL) {
        *ret_count = found;
    }
    return floats;
}

static int make(size_t n, uint64_t seed, const char *name)
{
    struct random random = random_seeded(seed);
    FILE *file = fopen(name, "wb");
    bool good = file != NULL;
    for (size_t i = 0; good && i < n * n; i++) {
        const float value = (float)random_below(&random, 16) - 8.0F;
        good = fwrite(&value, sizeof value, 1, file) == 1;
    }
    good = file != NULL && fclose(file) == 0 && good;
    return good ? 0 : fail("cannot write", name);
}

static int check_sum(char **names)
{
    size_t count = 0;
    float *a = read_floats(names[0], 0, &count);
    float *b = a != NULL ? read_floats(names[1], count, NULL) : NULL;
    float *c = b != NULL ? read_floats(names[2], count, NULL) : NULL;
    bool good = c != NULL;
    for (size_t i = 0; good && i < count; i++) {
        good = c[i] == a[i] + 0.5F * b[i];
    }
    free(a);
    free(b);
    free(c);
    return good ? 0 : fail("another sum:", names[2]);
}

static bool check_row(const float *a, const float *b, const float *c, size_t n, size_t row,
                      int64_t *sums)
{
    memset(sums, 0, n * sizeof *sums);
    for (size_t k = 0; k < n; k++) {
        const int64_t factor = (int64_t)a[row * n + k];
        for (size_t j = 0; j < n; j++) {
            sums[j] += factor * (int64_t)b[k * n + j];
        }
    }
    for (size_t j = 0; j < n; j++) {
        if (c[row * n + j] != (float)sums[j]) {
            return false;
        }
    }
    return true;
}

/* Multiplies a matrix of whole numbers by a vector. */
static void apply(const float *matrix, size_t n, const int64_t *vector, int64_t *ret_product)
{
    for (size_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (size_t k = 0; k < n; k++) {
            sum += (int64_t)matrix[i * n + k] * vector[k];
        }
        ret_product[i] = sum;
    }
}

/* Returns true when every element is a whole number that a product of such matrices can have. So no
 * sum below leaves an int64_t. */
static bool is_whole(const float *matrix, size_t n)
{
    const float most = (float)(LARGEST * n);
    for (size_t i = 0; i < n * n; i++) {
        if (!(matrix[i] >= -most && matrix[i] <= most) || matrix[i] != (float)(int64_t)matrix[i]) {
            return false;
        }
    }
    return true;
}

static bool check_whole(const float *a, const float *b, const float *c, size_t n, int64_t *room)
{
    struct random random = random_seeded(20261130);
    int64_t *vector = room;
    int64_t *right = room + n;
    int64_t *left = room + 2 * n;
    int64_t *ours = room + 3 * n;
    for (int i = 0; i < VECTORS; i++) {
        for (size_t k = 0; k < n; k++) {
            vector[k] = (int64_t)random_below(&random, FACTORS);
        }
        apply(b, n, vector, right);
        apply(a, n, right, ours);
        apply(c, n, vector, left);
        if (memcmp(left, ours, n * sizeof *left) != 0) {
            return false;
        }
    }
    return true;
}

static int check_product(char **names, size_t n)
{
    float *a = read_floats(names[0], n * n, NULL);
    float *b = a != NULL ? read_floats(names[1], n * n, NULL) : NULL;
    float *c = b != NULL ? read_floats(names[2], n * n, NULL) : NULL;
    int64_t *room = malloc(4 * n * sizeof *room);
    bool good = c != NULL && room != NULL && is_whole(c, n) && check_whole(a, b, c, n, room);
    for (size_t i = 0; good && i < ROWS; i++) {
        good = check_row(a, b, c, n, i * n / ROWS, room);
    }
    free(a);
    free(b);
    free(c);
    free(room);
    return good ? 0 : fail("another product:", names[2]);
}

static int measure(size_t n)
{
    struct cublas_rates rates;
    struct problem problem = {""};
    if (!cublas_measure(n, &rates, &problem)) {
        (void)fprintf(stderr, "gpu: %s\n", problem.text);
        return rates.is_found ? 1 : SKIPPED;
    }
    (void)printf("{\"n\":%zu,\"library\":\"%s\",\"fp32_gflops\":%.0f,\"tf32_gflops\":%.0f,"
                 "\"bf16_gflops\":%.0f}\n",
                 n, rates.library, rates.fp32, rates.tf32, rates.bf16);
    return 0;
}

/* Returns 0 for what is no size of a matrix. */
static size_t read_size(const char *text)
{
    char *end = NULL;
    const unsigned long n = strtoul(text, &end, 10);
    return *text != '\0' && *end == '\0' && n <= N_MOST ? (size_t)n : 0;
}

int main(int count, char **words)
{
    const char *command = count > 1 ? words[1] : "";
    if (count == 5 && strcmp(command, "make") == 0 && read_size(words[2]) > 0) {
        return make(read_size(words[2]), strtoull(words[3], NULL, 10), words[4]);
    }
    if (count == 5 && strcmp(command, "sum") == 0) {
        return check_sum(words + 2);
    }
    if (count == 6 && strcmp(command, "product") == 0 && read_size(words[5]) > 0) {
        return check_product(words + 2, read_size(words[5]));
    }
    if (count == 3 && strcmp(command, "cublas") == 0 && read_size(words[2]) > 0) {
        return measure(read_size(words[2]));
    }
    (void)fprintf(stderr,
                  "usage: gpu make N SEED FILE | sum A B C | product A B C N | cublas N; N is at "
                  "most %d\n",
                  (int)N_MOST);
    return 2;
}
