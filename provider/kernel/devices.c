#include "provider/kernel/devices.h"

#include <jansson.h>

static json_t *facts_json(const struct device_facts *facts)
{
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "id", facts->id,
        "platform", facts->platform_name, "name", facts->name, "vendor", facts->vendor, "driver",
        facts->driver, "target", facts->target, "kind", facts->kind, "memory_bytes",
        (json_int_t)facts->memory_bytes, "buffer_bytes", (json_int_t)facts->buffer_bytes,
        "local_bytes", (json_int_t)facts->local_bytes, "compute_units",
        (json_int_t)facts->compute_units, "work_group", (json_int_t)facts->work_group, "fp64",
        (int)facts->has_fp64, "fp16", (int)facts->has_fp16);
    if (facts->whole[0] != '\0') {
        (void)json_object_set_new(object, "whole", json_string(facts->whole));
        (void)json_object_set_new(object, "gpu_instance", json_integer(facts->gpu_instance));
        (void)json_object_set_new(object, "compute_instance",
                                  json_integer(facts->compute_instance));
    }
    if (facts->place[0] != '\0') {
        (void)json_object_set_new(object, "place", json_string(facts->place));
    }
    if (facts->is_split) {
        (void)json_object_set_new(
            object, "unusable",
            json_string("it is split by MIG; offer its instances by `cuda` instead of `opencl`"));
    }
    return object;
}

bool devices_print(FILE *out, enum kernel_api api, const struct devices *devices,
                   const char *problem)
{
    json_t *list = json_array();
    for (size_t i = 0; i < devices->count; i++) {
        (void)json_array_append_new(list, facts_json(&devices->items[i]));
    }
    json_t *root = json_pack("{s:s, s:o, s:s}", "api", kernel_op_api_word(api), "devices", list,
                             "problem", problem);
    const bool good = root != NULL && json_dumpf(root, out, JSON_COMPACT) == 0;
    (void)fputc('\n', out);
    json_decref(root);
    return good;
}
