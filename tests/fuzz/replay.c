/* fuzz_replay - runs every fuzz target over its corpus, without a fuzzer: each file as it is, cut short at many
 * places, and with bytes changed, from a seed that is printed and that BOURSE_SEED sets.
 *
 *     fuzz_replay SUBJECT FOLDER
 *
 * A decoder that fails only after hours of libFuzzer is found elsewhere; what was found once stays found here. */
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
