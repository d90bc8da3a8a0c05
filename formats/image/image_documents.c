#include "formats/image/image_documents.h"

#include "base/text.h"
#include "formats/limits.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char DIGEST[] = "sha256:";

static json_t *load(const void *bytes, size_t length, const char *what, struct problem *problem)
{
    json_error_t error;
    json_t *document = NULL;
    if (length > IMAGE_DOCUMENT_BYTES) {
        problem_set(problem, "its %s has %zu bytes; at most %d are read", what, length,
                    IMAGE_DOCUMENT_BYTES);
        return NULL;
    }
    document = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (document == NULL) {
        char shown[128];
        text_printable(error.text, strlen(error.text), shown, sizeof shown);
        problem_set(problem, "its %s is no JSON: line %d: %s", what, error.line, shown);
    } else if (!json_is_object(document) && !json_is_array(document)) {
        problem_set(problem, "its %s is neither an object nor a list", what);
        json_decref(document);
        document = NULL;
    }
    return document;
}

/* Returns the text at a key, or "" where there is none. */
static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static bool take_word(const json_t *object, const char *key, char *ret_text, size_t capacity,
                      struct problem *problem)
{
    const char *text = text_at(object, key);
    if (strlen(text) >= capacity) {
        problem_set(problem, "its \"%s\" has %zu bytes; at most %zu are read", key, strlen(text),
                    capacity - 1);
        return false;
    }
    text_printable(text, strlen(text), ret_text, capacity);
    return true;
}

static bool take_digest(const char *text, struct hash32 *ret_hash, struct problem *problem)
{
    char shown[100];
    if (strncmp(text, DIGEST, strlen(DIGEST)) == 0 &&
        strlen(text) == strlen(DIGEST) + 2 * sizeof ret_hash->bytes &&
        text_unhex(text + strlen(DIGEST), ret_hash->bytes, sizeof ret_hash->bytes)) {
        return true;
    }
    text_printable(text, strlen(text), shown, sizeof shown);
    problem_set(problem, "the digest \"%s\" is not sha256: and 64 hexadecimal digits", shown);
    return false;
}

/* Reads a descriptor, which names a blob by its digest and says the blob's size. */
static bool take_blob(const json_t *descriptor, const char *what, struct image_blob *ret_blob,
                      struct problem *problem)
{
    const json_t *size = json_object_get(descriptor, "size");
    if (!json_is_object(descriptor) || !json_is_integer(size) || json_integer_value(size) < 0) {
        problem_set(problem, "a descriptor of %s is no object with a digest and a size", what);
        return false;
    }
    ret_blob->size = (uint64_t)json_integer_value(size);
    return take_digest(text_at(descriptor, "digest"), &ret_blob->digest, problem);
}

/* ---------------------------------------------------------------- the index */

static bool take_choice(const json_t *item, struct image_choice *choice, struct problem *problem)
{
    const json_t *platform = json_object_get(item, "platform");
    const json_t *notes = json_object_get(item, "annotations");
    choice->is_index = strstr(text_at(item, "mediaType"), "image.index") != NULL ||
                       strstr(text_at(item, "mediaType"), "manifest.list") != NULL;
    choice->has_platform = json_is_object(platform);
    choice->is_attestation = text_at(notes, "vnd.docker.reference.type")[0] != '\0' ||
                             strcmp(text_at(platform, "os"), "unknown") == 0;
    return take_blob(item, "the index", &choice->blob, problem) &&
           take_word(platform, "os", choice->os, sizeof choice->os, problem) &&
           take_word(platform, "architecture", choice->arch, sizeof choice->arch, problem) &&
           take_word(notes, "org.opencontainers.image.ref.name", choice->name, sizeof choice->name,
                     problem);
}

void image_index_fini(struct image_index *index)
{
    free(index->items);
    *index = (struct image_index){.items = NULL};
}

bool image_index_read(const void *bytes, size_t length, struct image_index *ret_index,
                      struct problem *ret_problem)
{
    json_t *document = load(bytes, length, "index", ret_problem);
    const json_t *list = json_object_get(document, "manifests");
    const size_t count = json_array_size(list);
    struct image_choice *items = NULL;
    bool good = document != NULL;
    if (good && (!json_is_array(list) || count > IMAGE_MANIFESTS)) {
        problem_set(ret_problem, "its index has no list of manifests, or more than %d",
                    IMAGE_MANIFESTS);
        good = false;
    }
    if (good && (items = calloc(count + 1, sizeof *items)) == NULL) {
        problem_set(ret_problem, "out of memory");
        good = false;
    }
    for (size_t i = 0; good && i < count; i++) {
        good = take_choice(json_array_get(list, i), &items[i], ret_problem);
    }
    json_decref(document);
    if (!good) {
        free(items);
        return false;
    }
    *ret_index = (struct image_index){.items = items, .count = count};
    return true;
}

/* ---------------------------------------------------------------- manifests */

static bool fits_layers(const json_t *list, struct problem *problem)
{
    if (json_is_array(list) && json_array_size(list) <= IMAGE_LAYERS) {
        return true;
    }
    problem_set(problem, "it has no list of layers, or more than %d: %zu", IMAGE_LAYERS,
                json_array_size(list));
    return false;
}

static bool take_layer(const json_t *descriptor, struct image_blob *ret_blob,
                       struct problem *problem)
{
    const char *type = text_at(descriptor, "mediaType");
    if (strstr(type, "encrypted") != NULL) {
        problem_set(problem, "a layer is encrypted, and no key is at hand; decrypt the image");
        return false;
    }
    if (strstr(type, "foreign") != NULL) {
        problem_set(problem, "a layer lies elsewhere (a foreign layer), as of Windows");
        return false;
    }
    return take_blob(descriptor, "a layer", ret_blob, problem);
}

bool image_manifest_read(const void *bytes, size_t length, struct image_manifest *ret_manifest,
                         struct problem *ret_problem)
{
    json_t *document = load(bytes, length, "manifest", ret_problem);
    const json_t *layers = json_object_get(document, "layers");
    bool good = document != NULL && fits_layers(layers, ret_problem) &&
                take_blob(json_object_get(document, "config"), "the configuration",
                          &ret_manifest->config, ret_problem);
    ret_manifest->layer_count = good ? json_array_size(layers) : 0;
    for (size_t i = 0; good && i < ret_manifest->layer_count; i++) {
        good = take_layer(json_array_get(layers, i), &ret_manifest->layers[i], ret_problem);
    }
    json_decref(document);
    return good;
}

static bool is_saved(const json_t *document)
{
    const json_t *image = json_array_get(document, 0);
    return json_is_string(json_object_get(image, "Config")) &&
           json_is_array(json_object_get(image, "Layers"));
}

bool image_saved_is(const void *bytes, size_t length)
{
    struct problem ignored;
    json_t *document = load(bytes, length, "manifest", &ignored);
    const bool is = document != NULL && is_saved(document);
    json_decref(document);
    return is;
}

static bool take_path(const json_t *text, char ret_path[IMAGE_PATH_BYTES], struct problem *problem)
{
    const char *path = json_string_value(text);
    if (path == NULL || path[0] == '\0' || strlen(path) >= IMAGE_PATH_BYTES) {
        problem_set(problem,
                    "its manifest.json has a path that is no text, empty, or longer than "
                    "%d bytes",
                    IMAGE_PATH_BYTES - 1);
        return false;
    }
    memcpy(ret_path, path, strlen(path) + 1);
    return true;
}

bool image_saved_read(const void *bytes, size_t length, struct image_saved *ret_saved,
                      struct problem *ret_problem)
{
    json_t *document = load(bytes, length, "manifest.json", ret_problem);
    const json_t *image = json_array_get(document, 0);
    const json_t *layers = json_object_get(image, "Layers");
    bool good = document != NULL;
    if (good && json_array_size(document) != 1) {
        problem_set(ret_problem, "it has %zu images, and a job takes one; save that one alone",
                    json_array_size(document));
        good = false;
    }
    good = good && fits_layers(layers, ret_problem) &&
           take_path(json_object_get(image, "Config"), ret_saved->config, ret_problem);
    ret_saved->layer_count = good ? json_array_size(layers) : 0;
    for (size_t i = 0; good && i < ret_saved->layer_count; i++) {
        good = take_path(json_array_get(layers, i), ret_saved->layers[i], ret_problem);
    }
    json_decref(document);
    return good;
}

/* ---------------------------------------------------------------- the configuration */

static bool take_texts(const json_t *list, const char *what, struct job_strings *texts,
                       struct problem *problem)
{
    if (list == NULL || json_is_null(list)) {
        return true;
    }
    bool good = json_is_array(list) && json_array_size(list) <= FORMAT_ARGUMENTS;
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        good = text != NULL && strlen(text) <= FORMAT_ARGUMENT_BYTES &&
               job_strings_add(texts, FORMAT_ARGUMENTS, text);
    }
    if (!good) {
        problem_set(problem, "its %s is no list of at most %d texts of at most %d bytes", what,
                    FORMAT_ARGUMENTS, FORMAT_ARGUMENT_BYTES);
    }
    return good;
}

static bool take_environment(const json_t *list, struct job_strings *env, struct problem *problem)
{
    bool good = take_texts(list, "Env", env, problem);
    for (size_t i = 0; good && i < env->count; i++) {
        const char *equals = strchr(env->items[i], '=');
        if (equals == NULL || equals == env->items[i]) {
            problem_set(problem, "a text of its Env is not NAME=VALUE");
            good = false;
        }
    }
    return good;
}

static bool take_copy(const json_t *object, const char *key, char **ret_text,
                      struct problem *problem)
{
    const char *text = text_at(object, key);
    if (strlen(text) > FORMAT_PATH_BYTES) {
        problem_set(problem, "its %s has %zu bytes; at most %d are read", key, strlen(text),
                    FORMAT_PATH_BYTES);
        return false;
    }
    if (!job_file_set(ret_text, text)) {
        problem_set(problem, "out of memory");
        return false;
    }
    return true;
}

static bool take_diff_ids(const json_t *document, struct image_config *config,
                          struct problem *problem)
{
    const json_t *list = json_object_get(json_object_get(document, "rootfs"), "diff_ids");
    bool good = fits_layers(list, problem);
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        good = take_digest(text != NULL ? text : "", &config->diff_ids[i], problem);
        config->layer_count = i + 1;
    }
    return good;
}

bool image_config_read(const void *bytes, size_t length, struct image_config *ret_config,
                       struct problem *ret_problem)
{
    *ret_config = (struct image_config){.user = NULL};
    json_t *document = load(bytes, length, "configuration", ret_problem);
    const json_t *start = json_object_get(document, "config");
    const bool good =
        document != NULL &&
        take_word(document, "os", ret_config->os, sizeof ret_config->os, ret_problem) &&
        take_word(document, "architecture", ret_config->arch, sizeof ret_config->arch,
                  ret_problem) &&
        take_diff_ids(document, ret_config, ret_problem) &&
        take_copy(start, "User", &ret_config->user, ret_problem) &&
        take_copy(start, "WorkingDir", &ret_config->directory, ret_problem) &&
        take_texts(json_object_get(start, "Entrypoint"), "Entrypoint", &ret_config->entrypoint,
                   ret_problem) &&
        take_texts(json_object_get(start, "Cmd"), "Cmd", &ret_config->cmd, ret_problem) &&
        take_environment(json_object_get(start, "Env"), &ret_config->env, ret_problem);
    json_decref(document);
    return good;
}

static void strings_fini(struct job_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++) {
        free(strings->items[i]);
    }
    free(strings->items);
}

void image_config_fini(struct image_config *config)
{
    free(config->user);
    free(config->directory);
    strings_fini(&config->entrypoint);
    strings_fini(&config->cmd);
    strings_fini(&config->env);
    *config = (struct image_config){.user = NULL};
}

static const char *const arch_names[][2] = {
    {"amd64", "x86_64"}, {"arm64", "aarch64"}, {"riscv64", "riscv64"}, {"loong64", "loongarch64"}};

static const char *translate_arch(const char *name, size_t from, size_t to)
{
    for (size_t i = 0; i < sizeof arch_names / sizeof *arch_names; i++) {
        if (strcmp(arch_names[i][from], name) == 0) {
            return arch_names[i][to];
        }
    }
    return NULL;
}

const char *image_arch(const char *go_name)
{
    return translate_arch(go_name, 0, 1);
}

const char *image_arch_of_device(const char *name)
{
    return translate_arch(name, 1, 0);
}
