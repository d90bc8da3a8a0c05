#include "consumer/job/image/image_description.h"

#include "base/sha256.h"
#include "base/text.h"
#include "consumer/job/input_list.h"
#include "formats/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEX_BYTES = 2 * sizeof(struct hash32) + 1,
    PART_BYTES = 255, /* one name in a path */
    INDEXES = 3,      /* an index in an index in the index */
};

void image_description_fini(struct image_description *description)
{
    image_config_fini(&description->config);
}

static void blob_path(const struct hash32 *digest, char ret_path[IMAGE_PATH_BYTES])
{
    char hex[HEX_BYTES];
    text_hex(digest->bytes, sizeof digest->bytes, hex);
    (void)snprintf(ret_path, IMAGE_PATH_BYTES, "blobs/sha256/%s", hex);
}

static bool read_blob(const struct image_source *source, const struct image_blob *blob,
                      uint8_t **ret_bytes, size_t *ret_length, struct problem *problem)
{
    char path[IMAGE_PATH_BYTES];
    blob_path(&blob->digest, path);
    return image_source_read(source, path, &blob->digest, ret_bytes, ret_length, problem);
}

/* ---------------------------------------------------------------- one of several */

static bool is_for(const struct image_choice *choice, const char *arch)
{
    const char *name = choice->has_platform ? image_arch(choice->arch) : NULL;
    return !choice->has_platform || arch == NULL ||
           (strcmp(choice->os, "linux") == 0 && name != NULL && strcmp(name, arch) == 0);
}

/* Writes what there is to choose from: "base:1 (linux/amd64), ...". */
static void list_choices(const struct image_index *index, char *ret_text, size_t capacity)
{
    size_t at = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < index->count && at < capacity; i++) {
        const struct image_choice *choice = &index->items[i];
        if (!choice->is_attestation) {
            at += (size_t)snprintf(
                ret_text + at, capacity - at, "%s%.60s%s%.20s%s%.20s%s", at > 0 ? ", " : "",
                choice->name[0] != '\0' ? choice->name : "one without a name",
                choice->has_platform ? " (" : "", choice->os, choice->has_platform ? "/" : "",
                choice->arch, choice->has_platform ? ")" : "");
        }
    }
}

static const struct image_choice *choose(const struct image_index *index, const char *arch,
                                         struct problem *problem)
{
    const struct image_choice *chosen = NULL;
    size_t fits = 0;
    char text[240];
    for (size_t i = 0; i < index->count; i++) {
        if (!index->items[i].is_attestation && is_for(&index->items[i], arch)) {
            chosen = fits++ == 0 ? &index->items[i] : chosen;
        }
    }
    list_choices(index, text, sizeof text);
    if (fits == 0) {
        problem_set(problem, "it has no image for linux and %s, only: %s", arch != NULL ? arch : "",
                    text[0] != '\0' ? text : "nothing");
        return NULL;
    }
    if (fits > 1) {
        problem_set(problem,
                    "it has %zu images: %s; say which, as in `oci:FOLDER:NAME` (skopeo copies that "
                    "one)",
                    fits, text);
        return NULL;
    }
    return chosen;
}

/* Reads the manifest that the index leads to. */
static bool find_manifest(const struct image_source *source, const char *arch,
                          struct image_manifest *ret_manifest, struct problem *problem)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    bool is_index = true;
    bool good = image_source_read(source, "index.json", NULL, &bytes, &length, problem);
    for (int depth = 0; good && is_index; depth++) {
        struct image_index index = {.items = NULL};
        good = image_index_read(bytes, length, &index, problem);
        free(bytes);
        bytes = NULL;
        const struct image_choice *choice = good ? choose(&index, arch, problem) : NULL;
        good = choice != NULL && read_blob(source, &choice->blob, &bytes, &length, problem);
        is_index = good && choice->is_index;
        image_index_fini(&index);
        if (is_index && depth + 1 == INDEXES) {
            problem_set(problem, "it has indexes in indexes, more than %d deep", INDEXES);
            good = false;
        }
    }
    good = good && image_manifest_read(bytes, length, ret_manifest, problem);
    free(bytes);
    return good;
}

/* ---------------------------------------------------------------- forms */

static void hash_root(struct image_description *description)
{
    const struct image_config *config = &description->config;
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, config->diff_ids, config->layer_count * sizeof config->diff_ids[0]);
    sha256_add(&hash, config->directory, strlen(config->directory));
    description->root_hash = sha256_end(&hash);
}

static bool describe_layout(const struct image_source *source, const char *arch,
                            struct image_description *description, struct problem *problem)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct image_manifest *manifest = calloc(1, sizeof *manifest);
    if (manifest == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    bool good = find_manifest(source, arch, manifest, problem) &&
                read_blob(source, &manifest->config, &bytes, &length, problem) &&
                image_config_read(bytes, length, &description->config, problem);
    for (size_t i = 0; good && i < manifest->layer_count; i++) {
        struct image_layer_file *file = &description->layers[i];
        file->has_digest = true;
        file->digest = manifest->layers[i].digest;
        file->size = manifest->layers[i].size;
        blob_path(&file->digest, file->path);
    }
    description->layer_count = manifest->layer_count;
    free(bytes);
    free(manifest);
    return good;
}

/* The name of the configuration is its hash, with ".json" or in blobs/sha256. */
static bool is_named_so(const char *path, const uint8_t *bytes, size_t bytes_length)
{
    const struct hash32 hash = sha256_of(bytes, bytes_length);
    char hex[HEX_BYTES];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const size_t length = strspn(name, "0123456789abcdef");
    text_hex(hash.bytes, sizeof hash.bytes, hex);
    return length != HEX_BYTES - 1 || strncmp(name, hex, length) == 0;
}

static bool describe_saved(const struct image_source *source, struct image_description *description,
                           struct problem *problem)
{
    uint8_t *bytes = NULL;
    uint8_t *config = NULL;
    size_t length = 0;
    size_t config_length = 0;
    struct image_saved *saved = calloc(1, sizeof *saved);
    if (saved == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    bool good = image_source_read(source, "manifest.json", NULL, &bytes, &length, problem) &&
                image_saved_read(bytes, length, saved, problem) &&
                image_source_read(source, saved->config, NULL, &config, &config_length, problem) &&
                image_config_read(config, config_length, &description->config, problem);
    if (good && !is_named_so(saved->config, config, config_length)) {
        problem_set(problem,
                    "its file %s: has other bytes than its name says; save the image again",
                    input_shown(saved->config).text);
        good = false;
    }
    for (size_t i = 0; good && i < saved->layer_count; i++) {
        memcpy(description->layers[i].path, saved->layers[i], IMAGE_PATH_BYTES);
    }
    description->layer_count = saved->layer_count;
    free(bytes);
    free(config);
    free(saved);
    return good;
}

/* ---------------------------------------------------------------- fitness */

/* A path from the root, without "..", as deep as a path of an image may be. */
static bool is_directory(const char *path)
{
    size_t depth = 0;
    if (path[0] == '\0') {
        return true;
    }
    if (path[0] != '/' || !text_is_plain(path, strlen(path))) {
        return false;
    }
    while (path[0] != '\0') {
        path += strspn(path, "/");
        const size_t length = strcspn(path, "/");
        if (length > PART_BYTES || (length == 2 && strncmp(path, "..", 2) == 0)) {
            return false;
        }
        depth += length > 0;
        path += length;
    }
    return depth < FORMAT_IMAGE_DEPTH;
}

static bool is_fit(const struct image_description *description, struct problem *problem)
{
    const struct image_config *config = &description->config;
    if (strcmp(config->os, "linux") != 0) {
        problem_set(problem, "it is for the operating system \"%s\", and jobs run on linux",
                    config->os);
        return false;
    }
    if (image_arch(config->arch) == NULL) {
        problem_set(problem,
                    "it is for the architecture \"%s\"; devices run amd64, arm64, riscv64 and "
                    "loong64",
                    config->arch);
        return false;
    }
    if (!is_directory(config->directory)) {
        problem_set(problem,
                    "its WorkingDir is no plain absolute path without \"..\" of at most %d "
                    "levels",
                    FORMAT_IMAGE_DEPTH - 1);
        return false;
    }
    if (description->layer_count == 0) {
        problem_set(problem, "it has no layers, and so no program");
        return false;
    }
    if (config->layer_count != description->layer_count) {
        problem_set(problem, "its configuration names %zu layers and its manifest %zu",
                    config->layer_count, description->layer_count);
        return false;
    }
    return true;
}

bool image_describe(const struct image_source *source, enum image_form form, const char *arch,
                    struct image_description *ret_description, struct problem *ret_problem)
{
    memset(ret_description, 0, sizeof *ret_description);
    const bool good =
        (form == IMAGE_FORM_LAYOUT ? describe_layout(source, arch, ret_description, ret_problem)
                                   : describe_saved(source, ret_description, ret_problem)) &&
        is_fit(ret_description, ret_problem);
    if (good) {
        hash_root(ret_description);
    }
    return good;
}
