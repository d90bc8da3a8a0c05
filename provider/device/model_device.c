#include "provider/device/model_device.h"

#include "base/text.h"
#include "provider/device/kernel_device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

/* ---------------------------------------------------------------- names */

void model_device_slug(const char *provider, char ret_slug[MODEL_PROVIDER_SIZE])
{
    static const char suffix[] = "executionprovider";
    size_t length = 0;
    for (; provider[length] != '\0' && length + 1 < MODEL_PROVIDER_SIZE; length++) {
        const char at = provider[length];
        ret_slug[length] = (char)(isalnum((unsigned char)at) ? tolower((unsigned char)at) : '-');
    }
    ret_slug[length] = '\0';
    if (length > sizeof suffix - 1 && strcmp(ret_slug + length - sizeof suffix + 1, suffix) == 0) {
        ret_slug[length - sizeof suffix + 1] = '\0';
    }
}

const char *model_device_kind(const char *provider)
{
    static const struct {
        const char *provider, *kind;
    } kinds[] = {
        {"webgpu", "webgpu"}, {"cuda", "gpu"},     {"tensorrt", "gpu"}, {"nvtensorrtrtx", "gpu"},
        {"rocm", "gpu"},      {"migraphx", "gpu"}, {"dml", "gpu"},      {"qnn", "npu"},
        {"snpe", "npu"},      {"vitisai", "npu"},  {"cann", "npu"},     {"rknpu", "npu"},
        {"coreml", "npu"},    {"nnapi", "npu"},    {"xnnpack", "cpu"},  {"acl", "cpu"},
        {"dnnl", "cpu"},      {"cpu", "cpu"},
    };
    char slug[MODEL_PROVIDER_SIZE];
    model_device_slug(provider, slug);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].provider, slug) == 0) {
            return kinds[i].kind;
        }
    }
    return "custom";
}

void model_device_instrument(const struct model_device *device,
                             char ret_instrument[ATTRIBUTE_TEXT_SIZE])
{
    char slug[MODEL_PROVIDER_SIZE];
    model_device_slug(device->provider.name, slug);
    (void)snprintf(ret_instrument, ATTRIBUTE_TEXT_SIZE, "%s.%s.%s", device->kind,
                   device->vendor[0] != '\0' ? device->vendor : "onnxruntime", slug);
}

const struct model_device *model_device_find(const struct model_device_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- the trial's lines */

/* Notes what a plug-in library says of the hardware. The library's word counts more than the
 * provider's name. */
static void note_type(struct model_device *device, const char *type)
{
    const char *kind = strcmp(type, "cpu") == 0   ? "cpu"
                       : strcmp(type, "gpu") == 0 ? "gpu"
                       : strcmp(type, "npu") == 0 ? "npu"
                                                  : NULL;
    if (kind != NULL && strcmp(device->kind, "webgpu") != 0) {
        (void)snprintf(device->kind, sizeof device->kind, "%s", kind);
    }
}

static void note(struct model_device *device, const char *key, const char *value)
{
    if (strcmp(key, "type") == 0) {
        note_type(device, value);
    } else if (strcmp(key, "vendor") == 0) {
        char slug[MODEL_PROVIDER_SIZE];
        model_device_slug(value, slug);
        slug[strcspn(slug, "-")] = '\0';
        (void)snprintf(device->vendor, sizeof device->vendor, "%.23s", slug);
    } else if (strcmp(key, "mflops") == 0) {
        const long long mflops = strtoll(value, NULL, 10);
        device->mflops = mflops > 0 && mflops < INT64_MAX / 1000000 ? mflops : 0;
    }
}

bool model_device_read(const char *text, size_t length, struct model_device *device,
                       struct problem *ret_problem)
{
    const char *end = text + length;
    const char *newline = length > 0 ? memchr(text, '\n', length) : NULL;
    if (newline == NULL || newline == text) {
        return REFUSE(ret_problem, "bourse-onnx does not say what computes models");
    }
    text_printable(text, (size_t)(newline - text), device->engine, sizeof device->engine);
    (void)snprintf(device->kind, sizeof device->kind, "%s",
                   model_device_kind(device->provider.name));
    device->vendor[0] = '\0';
    device->mflops = 0;
    for (text = newline + 1; text < end; text = newline + 1) {
        char line[160];
        newline = memchr(text, '\n', (size_t)(end - text));
        if (newline == NULL) {
            break;
        }
        text_printable(text, (size_t)(newline - text), line, sizeof line);
        char *value = strchr(line, ' ');
        if (value != NULL) {
            *value = '\0';
            note(device, line, value + 1);
        }
    }
    return device->mflops > 0 || REFUSE(ret_problem, "the trial has no speed");
}

/* ---------------------------------------------------------------- the owner's words */

bool model_provider_equal(const struct model_provider *a, const struct model_provider *b)
{
    bool equal = strcmp(a->name, b->name) == 0 && strcmp(a->settings, b->settings) == 0 &&
                 a->names_nodes == b->names_nodes && a->node_count == b->node_count;
    for (size_t i = 0; equal && i < a->node_count; i++) {
        equal = strcmp(a->nodes[i], b->nodes[i]) == 0;
    }
    return equal;
}

bool model_provider_has_nodes(const struct model_provider *provider)
{
    const char *nodes[MODEL_NODES_MAX + 1];
    model_provider_nodes(provider, nodes);
    return nodes[0] != NULL;
}

void model_provider_nodes(const struct model_provider *provider,
                          const char *ret_nodes[MODEL_NODES_MAX + 1])
{
    size_t count = 0;
    for (size_t i = 0; i < provider->node_count; i++) {
        ret_nodes[count++] = provider->nodes[i];
    }
    for (const char *const *node = kernel_device_nodes(NULL);
         !provider->names_nodes && *node != NULL && count < MODEL_NODES_MAX; node++) {
        if (access(*node, F_OK) == 0) {
            ret_nodes[count++] = *node;
        }
    }
    ret_nodes[count] = NULL;
}
