/* fuzz_replay - runs every fuzz target over its corpus, without a fuzzer: each file as it is, cut
 * short at many places, and with bytes changed, from a seed that is printed and that BOURSE_SEED
 * sets.
 *
 *     fuzz_replay SUBJECT FOLDER
 *
 * A text of keys and values is also run with each value in turn replaced by those of every other
 * kind: a map where a list stands, nothing where a number stands, numbers beyond all ranges.
 *
 * A decoder that fails only after hours of libFuzzer is found elsewhere; what was found once stays
 * found here. */
#include "tests/fuzz/as_file.h"

#include "base/random.h"

#include <dirent.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

enum { FILE_MOST = 1 << 20, CUTS = 64, CHANGES = 300, BYTES_CHANGED = 4 };

typedef int target(const uint8_t *data, size_t size);
#define TARGET(name) int fuzz_##name(const uint8_t *data, size_t size);
#include "fuzz_targets.inc"
#undef TARGET

static const struct {
    const char *name;
    target *run;
} targets[] = {
#define TARGET(name) {#name, fuzz_##name},
#include "fuzz_targets.inc"
#undef TARGET
};

/* The target gets a copy of its own, so that a sanitizer sees every step beyond its end. */
static void run_copy(target *run, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    assert(copy != NULL);
    memcpy(copy, bytes, size);
    uint8_t *exact = realloc(copy, size > 0 ? size : 1);
    assert(exact != NULL);
    (void)run(exact, size);
    free(exact);
}

static void run_variants(target *run, uint8_t *bytes, size_t size, uint64_t seed)
{
    struct random dice = random_seeded(seed);
    run_copy(run, bytes, size);
    for (size_t i = 0; i < CUTS && i < size; i++) {
        run_copy(run, bytes, size * i / CUTS);
    }
    for (size_t i = 0; i < CHANGES && size > 0; i++) {
        uint8_t former[BYTES_CHANGED];
        size_t at[BYTES_CHANGED];
        size_t count = 1 + random_below(&dice, BYTES_CHANGED);
        for (size_t k = 0; k < count; k++) {
            at[k] = random_below(&dice, size);
            former[k] = bytes[at[k]];
            bytes[at[k]] = (uint8_t)random_below(&dice, 256);
        }
        run_copy(run, bytes, size);
        while (count-- > 0) {
            bytes[at[count]] = former[count];
        }
    }
}

/* Values of every kind that YAML and JSON have, and those that they only seem to have. */
static const char *const shapes[] = {
    "{a: b}",
    "{\"a\": \"b\"}",
    "{\"a\": {\"b\": [1]}}",
    "[a, b]",
    "[\"a\", [\"b\"], {\"c\": 1}]",
    "[{a: b}, c]",
    "[]",
    "{}",
    "[~]",
    "[\"\", \"\"]",
    "",
    "~",
    "null",
    "\"\"",
    "true",
    "0",
    "-1",
    "1e999",
    "nan",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999999999",
    "9223372036854775807ms",
    "106752d",
    "9223372036854775807GiB",
    "\"\\0\"",
    "\"\\x1b\\u202e\"",
    "\"a\\nb\"",
    "&x a",
    "*x",
    "!!int 1",
    "%s%n",
    "a: b: c",
    "{? [a] : b}",
    "|\n  a\n  b",
    "a\n---\nb",
};
enum { SHAPES = sizeof shapes / sizeof shapes[0], VALUES_MOST = 400 };

/* Returns where the value that begins at `from` ends: at the end of its line, or at the first mark
 * of a list or map. */
static size_t end_of_value(const uint8_t *bytes, size_t size, size_t from, bool is_line)
{
    size_t at = from;
    while (at < size && bytes[at] != '\n' && (is_line || memchr(",]}", bytes[at], 3) == NULL)) {
        at++;
    }
    return at;
}

static void run_shape(target *run, const uint8_t *bytes, size_t size, size_t from, size_t end,
                      const char *shape)
{
    size_t length = strlen(shape);
    uint8_t *text = malloc(size + length + 1);
    assert(text != NULL && from <= end && end <= size);
    memcpy(text, bytes, from);
    memcpy(text + from, shape, length);
    memcpy(text + from + length, bytes + end, size - end);
    run_copy(run, text, from + length + (size - end));
    free(text);
}

static void run_shapes(target *run, const uint8_t *bytes, size_t size)
{
    if (memchr(bytes, '\0', size) != NULL) {
        return; /* no text */
    }
    size_t values = 0;
    for (size_t at = 1; at + 1 < size && values < VALUES_MOST; at++) {
        const bool is_value = bytes[at - 1] == ':' && (bytes[at] == ' ' || bytes[at] == '\n');
        const bool is_item = bytes[at - 1] == '-' && bytes[at] == ' ';
        for (size_t i = 0; (is_value || is_item) && i < SHAPES; i++) {
            const size_t from = at + (bytes[at] == ' ');
            run_shape(run, bytes, size, from, end_of_value(bytes, size, from, true), shapes[i]);
            run_shape(run, bytes, size, from, end_of_value(bytes, size, from, false), shapes[i]);
        }
        values += is_value || is_item;
    }
    for (size_t i = 0; i < SHAPES; i++) {
        run_shape(run, bytes, size, 0, size, shapes[i]); /* the whole */
    }
}

static bool run_file(target *run, const char *folder, const char *name, uint64_t seed)
{
    static uint8_t bytes[FILE_MOST];
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rbe");
    size_t size = file == NULL ? 0 : fread(bytes, 1, sizeof bytes, file);
    bool good = file != NULL && ferror(file) == 0 && size < sizeof bytes;
    if (file != NULL) {
        (void)fclose(file); /* read only */
    }
    if (!good) {
        (void)fprintf(stderr, "%s cannot be read, or is too large\n", path);
        return false;
    }
    (void)fprintf(stderr, "%s (%zu bytes)\n", path, size);
    run_variants(run, bytes, size, seed);
    run_shapes(run, bytes, size);
    return true;
}

static target *target_named(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        if (strcmp(targets[i].name, name) == 0) {
            return targets[i].run;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    target *run = argc == 3 ? target_named(argv[1]) : NULL;
    if (run == NULL || sodium_init() < 0) {
        (void)fputs("usage: fuzz_replay SUBJECT FOLDER\n", stderr);
        return 2;
    }
    const char *given = getenv("BOURSE_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 1;
    (void)printf("seed %llu\n", (unsigned long long)seed);
    struct dirent **entries = NULL;
    int count = scandir(argv[2], &entries, NULL, alphasort);
    int files = 0;
    bool good = true;
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            good = run_file(run, argv[2], entries[i]->d_name, seed) && good;
            files++;
        }
        free(entries[i]);
    }
    free(entries);
    (void)printf("%s: %d files\n", argv[1], files);
    return good && files > 0 ? 0 : 1;
}
