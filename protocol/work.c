#include "protocol/work.h"

#include "base/sha256.h"

#include <assert.h>
#include <string.h>

enum { TILE_DIGITS = 18 };

static void add_number(struct sha256 *hash, uint32_t number)
{
    const uint8_t bytes[4] = {(uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16),
                              (uint8_t)(number >> 24)};
    sha256_add(hash, bytes, sizeof bytes);
}

static void add_text(struct sha256 *hash, const char *text)
{
    const size_t length = text == NULL ? 0 : strlen(text);
    add_number(hash, (uint32_t)length);
    sha256_add(hash, text == NULL ? "" : text, length);
}

static void add_variables(struct sha256 *hash, Bourse__V1__ManifestVariable *const *variables,
                          size_t count)
{
    add_number(hash, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        add_text(hash, variables[i]->name);
        add_text(hash, variables[i]->value);
    }
}

/* Returns the slots of a subtask, or 0 when the manifest does not say. */
static uint32_t slots_of(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    uint64_t end = 0;
    for (size_t i = 0; manifest->terms != NULL && i < manifest->terms->n_parts; i++) {
        end += manifest->terms->parts[i]->subtasks;
        if (index < end) {
            return manifest->terms->parts[i]->slots;
        }
    }
    return 0;
}

uint32_t work_size(uint64_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    const uint32_t log = 63 - (uint32_t)__builtin_clzll(bytes);
    const uint64_t quarters = log >= 2 ? bytes >> (log - 2) : bytes << (2 - log);
    return 1 + 4 * log + (uint32_t)(quarters & 3);
}

/* Reads the rows and columns of a tile of a product, whose subtask's value is "ROW COLUMN ROWS
 * COLUMNS". Returns false when the subtask is no tile. */
static bool tile_of(const Bourse__V1__Manifest *manifest, uint32_t index, uint64_t ret_extents[2])
{
    const Bourse__V1__ManifestSubtask *subtask = subtask_at(manifest, index);
    uint64_t numbers[4] = {0, 0, 0, 0};
    if (strcmp(manifest->executor, "tensor") != 0 || subtask == NULL || subtask->value == NULL) {
        return false;
    }
    const char *at = subtask->value;
    for (size_t i = 0; i < 4; i++) {
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > TILE_DIGITS || at[digits] != (i < 3 ? ' ' : '\0')) {
            return false;
        }
        for (size_t k = 0; k < digits; k++) {
            numbers[i] = 10 * numbers[i] + (uint64_t)(at[k] - '0');
        }
        at += digits + 1;
    }
    ret_extents[0] = numbers[2];
    ret_extents[1] = numbers[3];
    return true;
}

static struct hash32 name_of(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    static const char domain[] = "bourse/work/v1"; /* hashed with its NUL */
    const struct subtask_terms terms = subtask_terms(manifest, index);
    const Bourse__V1__ManifestTask *task = subtask_task(manifest, index);
    /* The files of such a subtask say what it computes: a program, a module or a model. */
    const bool is_program = strcmp(manifest->executor, "command") == 0 ||
                            strcmp(manifest->executor, "wasm") == 0 ||
                            strcmp(manifest->executor, "onnx") == 0;
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, domain, sizeof domain);
    add_number(&hash, slots_of(manifest, index));
    add_text(&hash, manifest->executor);
    add_number(&hash, manifest->has_image ? (uint32_t)manifest->image.len : 0);
    if (manifest->has_image) {
        sha256_add(&hash, manifest->image.data, manifest->image.len);
    }
    add_number(&hash, (uint32_t)terms.argument_count);
    for (size_t i = 0; i < terms.argument_count; i++) {
        add_text(&hash, terms.arguments[i]);
    }
    add_text(&hash, terms.standard_input);
    add_variables(&hash, manifest->environment, manifest->n_environment);
    add_variables(&hash, task == NULL ? NULL : task->environment,
                  task == NULL ? 0 : task->n_environment);
    add_number(&hash, is_program ? (uint32_t)manifest->n_shared : 0);
    for (size_t i = 0; is_program && i < manifest->n_shared; i++) {
        add_text(&hash, manifest->shared[i]->name);
        sha256_add(&hash, manifest->shared[i]->hash.data, manifest->shared[i]->hash.len);
    }
    uint64_t extents[2];
    if (tile_of(manifest, index, extents)) {
        add_number(&hash, work_size(extents[0]));
        add_number(&hash, work_size(extents[1]));
    }
    return sha256_end(&hash);
}

uint64_t work_bytes(uint32_t size)
{
    assert(size < WORK_SIZES);
    if (size == 0) {
        return 0;
    }
    const uint32_t log = (size - 1) / 4;
    const uint64_t quarters = 4 + (size - 1) % 4;
    return log >= 2 ? quarters << (log - 2) : (quarters + (UINT64_C(4) >> log) - 1) >> (2 - log);
}

struct work work_of(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const Bourse__V1__ManifestSubtask *subtask = subtask_at(manifest, index);
    uint64_t bytes = 0;
    for (size_t i = 0; subtask != NULL && i < subtask->n_inputs; i++) {
        const uint64_t more = subtask->inputs[i]->size;
        bytes = more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
    }
    return (struct work){.name = name_of(manifest, index), .size = work_size(bytes)};
}
