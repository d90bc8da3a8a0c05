#include "provider/onnx/runtime/ort_provider.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX "executionprovider"

/* ---------------------------------------------------------------- the settings */

/* Writes the name as it is compared: in lower case, and without the suffix. */
static void slug_of(const char *name, char *ret_slug, size_t capacity)
{
    size_t length = 0;
    for (; name[length] != '\0' && length + 1 < capacity; length++) {
        ret_slug[length] = (char)tolower((unsigned char)name[length]);
    }
    ret_slug[length] = '\0';
    const size_t suffix = sizeof SUFFIX - 1;
    if (length > suffix && strcmp(ret_slug + length - suffix, SUFFIX) == 0) {
        ret_slug[length - suffix] = '\0';
    }
}

/* Cuts `KEY=VALUE` into a list. */
static bool take_pair(char *pair, const char **keys, const char **values, size_t *count)
{
    char *equals = strchr(pair, '=');
    if (equals == NULL || equals == pair || *count == ORT_SETTINGS_MOST) {
        return false;
    }
    *equals = '\0';
    keys[*count] = pair;
    values[(*count)++] = equals + 1;
    return true;
}

static bool take_line(struct ort_provider *provider, char *line)
{
    char *value = strchr(line, ' ');
    if (value == NULL || value[1] == '\0') {
        return false;
    }
    *value++ = '\0';
    if (strcmp(line, "provider") == 0 && provider->name == NULL) {
        provider->name = value;
        slug_of(value, provider->slug, sizeof provider->slug);
        return true;
    }
    if (strcmp(line, "library") == 0 && provider->library == NULL) {
        provider->library = value;
        return true;
    }
    if (strcmp(line, "option") == 0) {
        return take_pair(value, provider->keys, provider->values, &provider->option_count);
    }
    return strcmp(line, "environment") == 0 &&
           take_pair(value, provider->names, provider->settings, &provider->environment_count);
}

bool ort_provider_parse(const char *text, size_t length, struct ort_provider *ret_provider,
                        struct problem *ret_problem)
{
    struct ort_provider *provider = ret_provider;
    bool good = length < sizeof provider->text && memchr(text, '\0', length) == NULL;
    *provider = (struct ort_provider){.name = NULL};
    if (good) {
        memcpy(provider->text, text, length);
    }
    for (char *line = provider->text; good && *line != '\0';) {
        char *newline = strchr(line, '\n');
        good = newline != NULL;
        if (good) {
            *newline = '\0';
            good = take_line(provider, line);
            line = newline + 1;
        }
    }
    good = good && provider->name != NULL;
    if (!good) {
        problem_set(ret_problem, "the settings of the execution provider do not decode");
    }
    return good;
}

bool ort_provider_read(const char *path, struct ort_provider *ret_provider,
                       struct problem *ret_problem)
{
    char text[ORT_SETTINGS_BYTES];
    FILE *file = fopen(path, "re");
    const size_t length = file != NULL ? fread(text, 1, sizeof text, file) : 0;
    if (file != NULL) {
        (void)fclose(file); /* read only: nothing to lose */
    }
    return ort_provider_parse(text, length, ret_provider, ret_problem);
}

void ort_provider_prepare(const struct ort_provider *provider)
{
    for (size_t i = 0; i < provider->environment_count; i++) {
        (void)setenv(provider->names[i], provider->settings[i], 1); /* without memory, no device */
    }
}

/* ---------------------------------------------------------------- the provider */

/* Finds the first device of the provider among those of all registered libraries. */
static bool find_device(const struct ort_api *api, struct ort_env *env,
                        struct ort_provider *provider, struct problem *ret_problem)
{
    const struct ort_device *const *devices = NULL;
    size_t count = 0;
    if (ort_api_failed(api, api->list_devices(env, &devices, &count), ret_problem)) {
        return false;
    }
    for (size_t i = 0; i < count && provider->device == NULL; i++) {
        char slug[sizeof provider->slug];
        const char *name = api->device_provider(devices[i]);
        slug_of(name != NULL ? name : "", slug, sizeof slug);
        provider->device = strcmp(slug, provider->slug) == 0 ? devices[i] : NULL;
    }
    if (provider->device == NULL) {
        problem_set(ret_problem, "%.200s finds no device of the execution provider %s",
                    provider->library, provider->name);
    }
    return provider->device != NULL;
}

bool ort_provider_begin(const struct ort_api *api, struct ort_env *env,
                        struct ort_provider *provider, struct problem *ret_problem)
{
    if (provider->library == NULL) {
        return true;
    }
    if (api->register_library == NULL) {
        problem_set(ret_problem, "ONNX Runtime %s takes no plug-in libraries; 1.%d or newer does",
                    api->version, ORT_VERSION_DEVICES);
        return false;
    }
    return !ort_api_failed(api, api->register_library(env, provider->name, provider->library),
                           ret_problem) &&
           find_device(api, env, provider, ret_problem);
}

struct ort_status *ort_provider_append(const struct ort_api *api, struct ort_env *env,
                                       const struct ort_provider *provider,
                                       struct ort_session_options *options)
{
    if (provider->device != NULL) {
        return api->append_devices(options, env, &provider->device, 1, provider->keys,
                                   provider->values, provider->option_count);
    }
    return api->append_provider(options, provider->name, provider->keys, provider->values,
                                provider->option_count);
}

void ort_provider_describe(const struct ort_api *api, const struct ort_provider *provider,
                           char *ret_lines, size_t capacity)
{
    static const char *const types[] = {
        [ORT_HARDWARE_CPU] = "cpu", [ORT_HARDWARE_GPU] = "gpu", [ORT_HARDWARE_NPU] = "npu"};
    const struct ort_hardware *hardware =
        provider->device != NULL ? api->device_hardware(provider->device) : NULL;
    ret_lines[0] = '\0';
    if (hardware == NULL) {
        return;
    }
    const int type = api->hardware_type(hardware);
    const char *vendor = api->hardware_vendor(hardware);
    const bool is_known = type >= 0 && type <= ORT_HARDWARE_NPU;
    (void)snprintf(ret_lines, capacity, "type %s\nvendor %.60s\n",
                   is_known ? types[type] : "unknown", vendor != NULL ? vendor : "");
}

struct ort_status *ort_provider_list(const struct ort_api *api, char *ret_line, size_t capacity)
{
    char **names = NULL;
    int count = 0;
    size_t used = 0;
    ret_line[0] = '\0';
    struct ort_status *status = api->list_providers(&names, &count);
    if (status != NULL) {
        /* cppcheck-suppress returnDanglingLifetime ; a status is an object of the library's own */
        return status;
    }
    for (int i = 0; i < count && used < capacity; i++) {
        char slug[32];
        slug_of(names[i], slug, sizeof slug);
        if (strcmp(slug, "cpu") != 0) {
            used += (size_t)snprintf(ret_line + used, capacity - used, "%s%s",
                                     used == 0 ? "providers " : " ", names[i]);
        }
    }
    if (used > 0 && used + 1 < capacity) {
        (void)snprintf(ret_line + used, capacity - used, "\n");
    }
    return api->free_providers(names, count);
}

/* ---------------------------------------------------------------- what the processor computes */

/* The operators that the processor computes, each once. */
struct share {
    size_t nodes;
    char operators[160];
};

static void note_operator(struct share *share, const char *name)
{
    char word[64];
    const size_t used = strlen(share->operators);
    (void)snprintf(word, sizeof word, " %.60s,", name);
    share->nodes++;
    if (strstr(share->operators, word) == NULL &&
        used + strlen(word) + sizeof " ..." < sizeof share->operators) {
        (void)snprintf(share->operators + used, sizeof share->operators - used, "%s", word);
    }
}

static struct ort_status *read_part(const struct ort_api *api, const struct ort_part *part,
                                    struct share *share)
{
    const char *name = NULL;
    const struct ort_node *const *nodes = NULL;
    const char *type = NULL;
    size_t count = 0;
    struct ort_status *status = api->part_provider(part, &name);
    if (status != NULL || name == NULL || strcmp(name, "CPUExecutionProvider") != 0) {
        /* cppcheck-suppress returnDanglingLifetime ; a status is an object of the library's own */
        return status;
    }
    status = api->part_nodes(part, &nodes, &count);
    for (size_t i = 0; status == NULL && i < count; i++) {
        status = api->node_operator(nodes[i], &type);
        if (status == NULL) {
            note_operator(share, type != NULL ? type : "?");
        }
    }
    /* cppcheck-suppress returnDanglingLifetime ; a status is an object of the library's own */
    return status;
}

struct ort_status *ort_provider_share(const struct ort_api *api,
                                      const struct ort_provider *provider,
                                      const struct ort_session *session,
                                      char ret_line[ORT_SHARE_SIZE])
{
    const struct ort_part *const *parts = NULL;
    size_t count = 0;
    struct share share = {.nodes = 0};
    ret_line[0] = '\0';
    if (api->session_parts == NULL) {
        return NULL;
    }
    struct ort_status *status = api->session_parts(session, &parts, &count);
    for (size_t i = 0; status == NULL && i < count; i++) {
        status = read_part(api, parts[i], &share);
    }
    if (status == NULL && share.nodes > 0) {
        share.operators[strlen(share.operators) - 1] = '\0';
        (void)snprintf(ret_line, ORT_SHARE_SIZE,
                       "%s does not compute %zu node%s of the model: the "
                       "processor does, for%s",
                       provider->name, share.nodes, share.nodes == 1 ? "" : "s", share.operators);
    } else if (status == NULL) {
        (void)snprintf(ret_line, ORT_SHARE_SIZE, "%s computes all nodes of the model",
                       provider->name);
    }
    /* cppcheck-suppress returnDanglingLifetime ; a status is an object of the library's own */
    return status;
}
