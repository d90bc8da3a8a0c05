#include "provider/device/kernel_device.h"

#include "base/text.h"

#include <jansson.h>

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the list */

static void read_text(const json_t *object, const char *key, char *ret_text, size_t capacity)
{
    const char *text = json_string_value(json_object_get(object, key));
    text_printable(text != NULL ? text : "", text != NULL ? strlen(text) : 0, ret_text, capacity);
}

static uint64_t read_figure(const json_t *object, const char *key)
{
    const json_int_t figure = json_integer_value(json_object_get(object, key));
    return figure > 0 ? (uint64_t)figure : 0;
}

enum { INSTANCE_MOST = 0xFFFF };

static bool read_device(const json_t *object, enum kernel_api api, uint32_t index,
                        struct kernel_device *ret_device)
{
    struct kernel_device device = {
        .api = api, .index = index, .node = -1, .render = -1, .caps = {-1, -1}};
    const uint64_t units = read_figure(object, "compute_units");
    read_text(object, "id", device.id, sizeof device.id);
    read_text(object, "whole", device.whole, sizeof device.whole);
    device.gpu_instance = (int)(read_figure(object, "gpu_instance") & INSTANCE_MOST);
    device.compute_instance = (int)(read_figure(object, "compute_instance") & INSTANCE_MOST);
    read_text(object, "place", device.place, sizeof device.place);
    read_text(object, "target", device.target, sizeof device.target);
    read_text(object, "name", device.name, sizeof device.name);
    read_text(object, "vendor", device.vendor, sizeof device.vendor);
    read_text(object, "platform", device.platform, sizeof device.platform);
    read_text(object, "driver", device.driver, sizeof device.driver);
    read_text(object, "kind", device.kind, sizeof device.kind);
    read_text(object, "unusable", device.unusable, sizeof device.unusable);
    device.memory_bytes = read_figure(object, "memory_bytes");
    device.local_bytes = read_figure(object, "local_bytes");
    device.compute_units = units < UINT32_MAX ? (uint32_t)units : 0;
    device.work_group = read_figure(object, "work_group");
    device.has_fp64 = json_is_true(json_object_get(object, "fp64"));
    device.has_fp16 = json_is_true(json_object_get(object, "fp16"));
    *ret_device = device;
    return device.id[0] != '\0' && device.name[0] != '\0' && device.kind[0] != '\0';
}

bool kernel_device_read(const char *text, size_t length, enum kernel_api api,
                        struct kernel_device_list *ret_list)
{
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *devices = json_object_get(root, "devices");
    const size_t count = json_array_size(devices);
    const char *word = json_string_value(json_object_get(root, "api"));
    bool good = word != NULL && strcmp(word, kernel_op_api_word(api)) == 0 &&
                json_is_array(devices) && count <= KERNEL_DEVICES_MAX;
    *ret_list = (struct kernel_device_list){.api = api, .is_known = true};
    for (size_t i = 0; good && i < count; i++) {
        good = read_device(json_array_get(devices, i), api, (uint32_t)i, &ret_list->items[i]);
    }
    if (good) {
        ret_list->count = count;
        read_text(root, "problem", ret_list->problem, sizeof ret_list->problem);
    }
    json_decref(root);
    return good;
}

/* ---------------------------------------------------------------- names */

/* Returns true when `name` has `part` in it, whatever the case of letters. */
static bool has_part(const char *name, const char *part)
{
    const size_t length = strlen(part);
    bool found = false;
    for (size_t i = 0; !found && length > 0 && name[i] != '\0'; i++) {
        size_t k = 0;
        while (k < length &&
               tolower((unsigned char)name[i + k]) == tolower((unsigned char)part[k])) {
            k++;
        }
        found = k == length;
    }
    return found;
}

const struct kernel_device *kernel_device_find(const struct kernel_device_list *list,
                                               const char *wanted, struct problem *ret_problem)
{
    char *end = NULL;
    const unsigned long index = strtoul(wanted, &end, 10);
    const bool is_number = isdigit((unsigned char)wanted[0]) && *end == '\0';
    for (size_t i = 0; i < list->count; i++) {
        if (is_number
                ? i == index
                : has_part(list->items[i].name, wanted) || strcmp(list->items[i].id, wanted) == 0) {
            return &list->items[i];
        }
    }
    char there[300];
    size_t used = 0;
    for (size_t i = 0; i < list->count && used < sizeof there; i++) {
        used += (size_t)snprintf(there + used, sizeof there - used, "%s%zu \"%s\"",
                                 i > 0 ? ", " : "", i, list->items[i].name);
    }
    problem_set(
        ret_problem, "no %s device \"%.80s\"; %s%s", kernel_op_api_name(list->api), wanted,
        list->count > 0 ? "there is " : "there is none: ", list->count > 0 ? there : list->problem);
    return NULL;
}

const char *kernel_device_kind(const struct kernel_device *device)
{
    return strcmp(device->kind, "gpu") == 0   ? "gpu"
           : strcmp(device->kind, "cpu") == 0 ? "cpu"
                                              : "custom";
}

/* Writes letters and digits as they are, in lower case, and one dash for everything between. */
static void slug(const char *text, char *ret_slug, size_t capacity)
{
    size_t length = 0;
    for (; *text != '\0' && length + 1 < capacity; text++) {
        if (isalnum((unsigned char)*text)) {
            ret_slug[length++] = (char)tolower((unsigned char)*text);
        } else if (length > 0 && ret_slug[length - 1] != '-') {
            ret_slug[length++] = '-';
        }
    }
    length -= length > 0 && ret_slug[length - 1] == '-';
    ret_slug[length] = '\0';
}

/* Returns the word for the maker, as instruments have it. */
static const char *maker(const struct kernel_device *device, char ret_word[32])
{
    static const struct {
        const char *part, *word;
    } makers[] = {{"nvidia", "nvidia"}, {"advanced micro", "amd"}, {"amd", "amd"},
                  {"intel", "intel"},   {"qualcomm", "qualcomm"},  {"imagination", "imagination"},
                  {"apple", "apple"},   {"xilinx", "xilinx"},      {"arm", "arm"}};
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        if (has_part(device->vendor, makers[i].part)) {
            return makers[i].word;
        }
    }
    slug(device->vendor, ret_word, 32);
    ret_word[strcspn(ret_word, "-")] = '\0';
    return ret_word[0] != '\0' ? ret_word : "unknown";
}

void kernel_device_instrument(const struct kernel_device *device,
                              char ret_instrument[ATTRIBUTE_TEXT_SIZE])
{
    char word[32];
    char model[40];
    if (strcmp(device->kind, "cpu") == 0) { /* who makes a device of the cores */
        slug(strcmp(device->platform, "Portable Computing Language") == 0 ? "pocl"
                                                                          : device->platform,
             model, sizeof model);
        (void)snprintf(ret_instrument, ATTRIBUTE_TEXT_SIZE, "cpu.opencl.%.*s", 24, model);
        return;
    }
    slug(device->name, model, sizeof model);
    const char *vendor = maker(device, word);
    const size_t length = strlen(vendor); /* many names begin with the maker's */
    const bool repeats = strncmp(model, vendor, length) == 0 && model[length] == '-';
    (void)snprintf(ret_instrument, ATTRIBUTE_TEXT_SIZE, "%s.%s.%s", kernel_device_kind(device),
                   vendor, repeats ? model + length + 1 : model);
}

/* ---------------------------------------------------------------- files */

enum { NODES_MAX = 255, MINOR_MOST = 1 << 20 }; /* number 255 is nvidiactl's */
enum { RENDER_FIRST = 128, RENDERS_MAX = 64 };  /* the system's numbers of such files */

static bool is_nvidia(const struct kernel_device *device)
{
    char word[32];
    return device->api == KERNEL_CUDA || strcmp(maker(device, word), "nvidia") == 0;
}

bool kernel_device_shows_others(const struct kernel_device *device)
{
    return strcmp(device->kind, "cpu") != 0 && device->whole[0] == '\0' && device->node < 0 &&
           device->render < 0;
}

/* Returns true for a place on the PCI bus, such as 0000:3b:00.0. */
static bool is_pci_place(const char *id)
{
    return id[0] != '\0' && id[0] != '.' && id[strspn(id, "0123456789abcdef:.")] == '\0';
}

/* Reads the number after the key, in a line of its own. Returns -1 when there is none. */
static int read_minor(const char *path, const char *key)
{
    char line[160];
    int minor = -1;
    FILE *file = fopen(path, "re");
    while (file != NULL && minor < 0 && fgets(line, sizeof line, file) != NULL) {
        char *end = NULL;
        const char *value = line + strlen(key);
        const bool has_key = strncmp(line, key, strlen(key)) == 0;
        const long number = has_key ? strtol(value, &end, 10) : -1;
        minor = has_key && end != value && number >= 0 && number <= MINOR_MOST ? (int)number : -1;
    }
    if (file != NULL) {
        (void)fclose(file); /* read only: nothing to lose */
    }
    return minor;
}

/* Finds the files of an instance: one for the part of the GPU, and one for its processors. */
static void learn_caps(const char *folder, struct kernel_device *device)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%s/capabilities/gpu%d/mig/gi%d/access", folder, device->node,
                   device->gpu_instance);
    device->caps[0] = read_minor(path, "DeviceFileMinor:");
    (void)snprintf(path, sizeof path, "%s/capabilities/gpu%d/mig/gi%d/ci%d/access", folder,
                   device->node, device->gpu_instance, device->compute_instance);
    device->caps[1] = read_minor(path, "DeviceFileMinor:");
}

void kernel_device_learn_node(const char *folder, struct kernel_device *device)
{
    char path[320];
    const char *place = device->api == KERNEL_OPENCL ? device->place
                        : device->whole[0] != '\0'   ? device->whole
                                                     : device->id;
    device->node = device->caps[0] = device->caps[1] = -1;
    if (!is_nvidia(device) || !is_pci_place(place)) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/gpus/%s/information", folder, place);
    const int node = read_minor(path, "Device Minor:");
    device->node = node < NODES_MAX ? node : -1;
    if (device->node >= 0 && device->whole[0] != '\0') {
        learn_caps(folder, device);
    }
    if (device->whole[0] != '\0' && (device->caps[0] < 0 || device->caps[1] < 0)) {
        (void)snprintf(device->unusable, sizeof device->unusable,
                       "the driver does not tell the files of this instance below "
                       "%s/capabilities, and its jail must have no others",
                       folder);
    }
}

void kernel_device_learn_render(const char *folder, struct kernel_device *device)
{
    static const char prefix[] = "renderD";
    char path[320];
    device->render = -1;
    if (device->api != KERNEL_OPENCL || is_nvidia(device) || !is_pci_place(device->place)) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/%s/drm", folder, device->place);
    DIR *drm = opendir(path);
    const struct dirent *entry;
    while (drm != NULL && (entry = readdir(drm)) != NULL) {
        char *end = NULL;
        const bool is_render = strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0;
        const char *digits = entry->d_name + (is_render ? sizeof prefix - 1 : 0);
        const long number = is_render ? strtol(digits, &end, 10) : -1;
        if (is_render && end != digits && *end == '\0' && number >= RENDER_FIRST &&
            number < RENDER_FIRST + RENDERS_MAX) {
            device->render = (int)number;
        }
    }
    if (drm != NULL) {
        (void)closedir(drm);
    }
}

#define NODES_NVIDIA                                                                               \
    "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2",           \
        "/dev/nvidia3", "/dev/nvidia4", "/dev/nvidia5", "/dev/nvidia6", "/dev/nvidia7"
/* The nodes of screens, such as /dev/dri/card0, are not given to a jail. */
#define NODES_OTHERS                                                                               \
    "/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/dri/renderD130",               \
        "/dev/dri/renderD131"

/* Returns the files for one device of CUDA, or NULL when its number is not known. A list is filled
 * when it is first asked for, and stays. */
static const char *const *nodes_of(int node)
{
    static char files[NODES_MAX][sizeof "/dev/nvidia" + 3];
    static const char *lists[NODES_MAX][4];
    if (node < 0 || node >= NODES_MAX) {
        return NULL;
    }
    if (lists[node][0] == NULL) {
        (void)snprintf(files[node], sizeof files[node], "/dev/nvidia%d", node);
        lists[node][2] = files[node];
        lists[node][1] = "/dev/nvidia-uvm";
        lists[node][0] = "/dev/nvidiactl";
    }
    return lists[node];
}

/* Returns the files for one device of another maker. AMD's library needs the driver's file, too. A
 * list is filled when it is first asked for, and stays. */
static const char *const *nodes_of_render(int render, bool is_amd)
{
    static char files[RENDERS_MAX][sizeof "/dev/dri/renderD" + 3];
    static const char *lists[RENDERS_MAX][3];
    const int place = render - RENDER_FIRST;
    if (lists[place][0] == NULL) {
        (void)snprintf(files[place], sizeof files[place], "/dev/dri/renderD%d", render);
        lists[place][1] = is_amd ? "/dev/kfd" : NULL;
        lists[place][0] = files[place];
    }
    return lists[place];
}

/* Returns the files for one instance of MIG. A list is filled when it is first asked for, and
 * stays. An instance whose files are not known must not see those of others. */
static const char *const *nodes_of_instance(const struct kernel_device *device)
{
    static struct instance_files {
        int node, caps[2];
        char texts[3][40];
        const char *list[6];
    } known[KERNEL_DEVICES_MAX];
    static size_t count;
    static const char *const none[] = {"/dev/nvidiactl", NULL};
    for (size_t i = 0; i < count; i++) {
        if (known[i].node == device->node && known[i].caps[0] == device->caps[0] &&
            known[i].caps[1] == device->caps[1]) {
            return known[i].list;
        }
    }
    if (device->node < 0 || device->caps[0] < 0 || device->caps[1] < 0 ||
        count == KERNEL_DEVICES_MAX) {
        return none;
    }
    struct instance_files *files = &known[count++];
    *files = (struct instance_files){.node = device->node,
                                     .caps = {device->caps[0], device->caps[1]},
                                     .list = {"/dev/nvidiactl", "/dev/nvidia-uvm"}};
    (void)snprintf(files->texts[0], sizeof files->texts[0], "/dev/nvidia%d", device->node);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(files->texts[1 + i], sizeof files->texts[1 + i],
                       "/dev/nvidia-caps/nvidia-cap%d", device->caps[i]);
    }
    for (int i = 0; i < 3; i++) {
        files->list[2 + i] = files->texts[i];
    }
    return files->list;
}

const char *const *kernel_device_nodes(const struct kernel_device *device)
{
    static const char *const none[] = {NULL};
    static const char *const nvidia[] = {NODES_NVIDIA, NULL};
    static const char *const others[] = {NODES_OTHERS, NULL};
    static const char *const all[] = {NODES_NVIDIA, NODES_OTHERS, NULL};
    char word[32];
    if (device == NULL) {
        return all;
    }
    if (device->whole[0] != '\0') {
        return nodes_of_instance(device);
    }
    if (is_nvidia(device) && nodes_of(device->node) != NULL) {
        return nodes_of(device->node);
    }
    if (!is_nvidia(device) && device->render >= RENDER_FIRST) {
        return nodes_of_render(device->render, strcmp(maker(device, word), "amd") == 0);
    }
    return strcmp(device->kind, "cpu") == 0 ? none : is_nvidia(device) ? nvidia : others;
}
