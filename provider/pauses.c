#include "provider/pauses.h"

#include "base/text.h"
#include "runtime/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 << 10 };

const struct paused_device *pauses_device(const struct pauses *pauses, const char *label)
{
    for (size_t i = 0; i < pauses->count; i++) {
        if (strcmp(pauses->devices[i].label, label) == 0) {
            return &pauses->devices[i];
        }
    }
    return NULL;
}

/* Returns the count when the device is not paused. */
static size_t place_of(const struct pauses *pauses, const struct id128 *id)
{
    size_t place = 0;
    while (place < pauses->count && !id128_equal(&pauses->devices[place].id, id)) {
        place++;
    }
    return place;
}

bool pauses_add(struct pauses *pauses, const struct paused_device *device)
{
    const size_t place = place_of(pauses, &device->id);
    if (place == PAUSES_DEVICES_MAX) {
        return false;
    }
    pauses->count += place == pauses->count;
    pauses->devices[place] = *device;
    return true;
}

void pauses_remove(struct pauses *pauses, const struct id128 *id)
{
    const size_t place = place_of(pauses, id);
    if (place < pauses->count) {
        pauses->devices[place] = pauses->devices[--pauses->count];
    }
}

json_t *pauses_json(const struct pauses *pauses)
{
    json_t *list = json_array();
    for (size_t i = 0; i < pauses->count; i++) {
        const struct paused_device *device = &pauses->devices[i];
        char id[2 * sizeof device->id.bytes + 1];
        text_hex(device->id.bytes, sizeof device->id.bytes, id);
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:I}", "device", device->label, "id", id,
                                              "until_ms", (json_int_t)device->until_ms));
    }
    return list;
}

/* ---------------------------------------------------------------- the file */

static bool read_moment(const json_t *value, int64_t *ret_ms)
{
    *ret_ms = json_integer_value(value);
    return json_is_integer(value) && *ret_ms >= 0;
}

static bool read_devices(const json_t *list, struct pauses *pauses)
{
    size_t i;
    const json_t *entry;
    if (list != NULL && !json_is_array(list)) {
        return false;
    }
    json_array_foreach(list, i, entry)
    {
        const char *label = json_string_value(json_object_get(entry, "device"));
        const char *id = json_string_value(json_object_get(entry, "id"));
        struct paused_device device = {.saved_ns = 0};
        if (label == NULL || label[0] == '\0' || strlen(label) >= ATTRIBUTE_TEXT_SIZE ||
            id == NULL || strlen(id) != 2 * sizeof device.id.bytes ||
            !text_unhex(id, device.id.bytes, sizeof device.id.bytes) ||
            !read_moment(json_object_get(entry, "until_ms"), &device.until_ms)) {
            return false;
        }
        (void)snprintf(device.label, sizeof device.label, "%s", label);
        if (!pauses_add(pauses, &device)) {
            return false;
        }
    }
    return true;
}

bool pauses_read(const char *path, struct pauses *ret_pauses, struct problem *ret_problem)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    if (!file_read(path, FILE_BYTES_MAX, &bytes, &length, ret_problem)) {
        return false;
    }
    json_t *root = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, NULL);
    struct pauses *read = calloc(1, sizeof *read);
    const json_t *until = json_object_get(root, "until_ms");
    const json_t *devices = json_object_get(root, "devices");
    bool good = read != NULL && (until != NULL || devices != NULL);
    if (good && until != NULL) {
        read->is_whole = true;
        good = read_moment(until, &read->until_ms);
    }
    good = good && read_devices(devices, read);
    if (good) {
        *ret_pauses = *read;
    } else {
        problem_set(ret_problem, "%s cannot be read", path);
    }
    free(read);
    json_decref(root);
    free(bytes);
    return good;
}

static bool sync_folder_of(const char *path, struct problem *problem)
{
    char folder[CONFIG_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path),
                   slash == NULL ? "." : path);
    return file_sync_folder(folder, problem);
}

bool pauses_write(const char *path, const struct pauses *pauses, struct problem *ret_problem)
{
    if (!pauses->is_whole && pauses->count == 0) {
        if (unlink(path) != 0 && errno != ENOENT) {
            problem_set(ret_problem, "cannot remove %s: %s", path, strerror(errno));
            return false;
        }
        return sync_folder_of(path, ret_problem);
    }
    json_t *root = json_object();
    if (pauses->is_whole) {
        (void)json_object_set_new(root, "until_ms", json_integer(pauses->until_ms));
    }
    if (pauses->count > 0) {
        (void)json_object_set_new(root, "devices", pauses_json(pauses));
    }
    char *text = json_dumps(root, JSON_COMPACT);
    const bool good = text != NULL && file_write(path, text, strlen(text), 0600, ret_problem);
    if (text == NULL) {
        problem_set(ret_problem, "no memory to write %s", path);
    }
    free(text);
    json_decref(root);
    return good;
}
