#include "provider/kernel/nvml.h"

#include "provider/tensor/ask.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- reading */

/* Notes the result of one call. */
static nvml_result note(struct nvml_figures *figures, nvml_result result)
{
    figures->is_lost = figures->is_lost || result == NVML_GPU_IS_LOST;
    return result;
}

typedef nvml_result list_function(nvml_device device, unsigned *count,
                                  struct nvml_process *ret_processes);

/* A driver that writes longer entries stays within these bytes. */
union process_buffer {
    struct nvml_process items[NVML_PROCESSES_MAX];
    unsigned char bytes[NVML_PROCESSES_MAX * NVML_PROCESS_BYTES_MOST];
};
enum { UNTOUCHED = 0xA5, LIST_TRIES = 4 };

/* Lists the processes with room for exactly as many as there are, because a driver may clear the
 * room that is left over. A process that comes or goes between two calls makes another try. */
static nvml_result list_exactly(list_function *list, nvml_device device, unsigned *ret_count,
                                union process_buffer *buffer)
{
    unsigned count = NVML_PROCESSES_MAX;
    nvml_result result = list(device, &count, buffer->items);
    for (int i = 0; i < LIST_TRIES; i++) {
        if (result != NVML_OK && result != NVML_INSUFFICIENT_SIZE) {
            return result;
        }
        if (count > NVML_PROCESSES_MAX) {
            return NVML_INSUFFICIENT_SIZE;
        }
        *ret_count = count;
        memset(buffer->bytes, UNTOUCHED, sizeof buffer->bytes);
        result = count == 0 ? NVML_OK : list(device, &count, buffer->items);
        if (result == NVML_OK && count == *ret_count) {
            return NVML_OK;
        }
    }
    return result == NVML_OK ? NVML_NO_DATA : result;
}

/* Returns how many bytes apart the entries are. Only longer entries reach beyond the bytes of
 * `count` short ones. */
static size_t entry_bytes(const union process_buffer *buffer, unsigned count)
{
    for (size_t i = count * sizeof buffer->items[0]; i < sizeof buffer->bytes; i++) {
        if (buffer->bytes[i] != UNTOUCHED) {
            return NVML_PROCESS_BYTES_MOST;
        }
    }
    return sizeof buffer->items[0];
}

static void read_processes(struct nvml_figures *figures, list_function *list, nvml_device device,
                           struct nvml_processes *ret_processes)
{
    static union process_buffer buffer;
    unsigned count = 0;
    if (list == NULL) {
        ret_processes->result = NVML_FUNCTION_NOT_FOUND;
        return;
    }
    ret_processes->result = note(figures, list_exactly(list, device, &count, &buffer));
    const size_t apart = entry_bytes(&buffer, count);
    for (unsigned i = 0; ret_processes->result == NVML_OK && i < count; i++) {
        struct nvml_process process;
        memcpy(&process, buffer.bytes + i * apart, sizeof process);
        ret_processes->pids[ret_processes->count] = process.pid;
        /* A library that does not know the memory says ULLONG_MAX. */
        ret_processes->memory_bytes[ret_processes->count++] =
            process.memory_bytes <= INT64_MAX ? (int64_t)process.memory_bytes : -1;
    }
}

static void read_memory(const struct nvml_api *api, nvml_device device,
                        struct nvml_figures *figures)
{
    struct nvml_memory memory = {0, 0, 0};
    figures->memory_result = api->nvmlDeviceGetMemoryInfo == NULL
                                 ? NVML_FUNCTION_NOT_FOUND
                                 : note(figures, api->nvmlDeviceGetMemoryInfo(device, &memory));
    figures->memory_used = memory.used;
    figures->memory_total = memory.total;
}

static void read_busy(const struct nvml_api *api, nvml_device device, struct nvml_figures *figures)
{
    struct nvml_utilization busy = {0, 0};
    figures->busy_result = api->nvmlDeviceGetUtilizationRates == NULL
                               ? NVML_FUNCTION_NOT_FOUND
                               : note(figures, api->nvmlDeviceGetUtilizationRates(device, &busy));
    figures->busy_percent = busy.gpu;
}

static void read_power(const struct nvml_api *api, nvml_device device, struct nvml_figures *figures)
{
    unsigned used = 0;
    unsigned limit = 0;
    unsigned long long energy = 0;
    figures->power_result = api->nvmlDeviceGetPowerUsage == NULL
                                ? NVML_FUNCTION_NOT_FOUND
                                : note(figures, api->nvmlDeviceGetPowerUsage(device, &used));
    figures->limit_result =
        api->nvmlDeviceGetEnforcedPowerLimit == NULL
            ? NVML_FUNCTION_NOT_FOUND
            : note(figures, api->nvmlDeviceGetEnforcedPowerLimit(device, &limit));
    figures->energy_result =
        api->nvmlDeviceGetTotalEnergyConsumption == NULL
            ? NVML_FUNCTION_NOT_FOUND
            : note(figures, api->nvmlDeviceGetTotalEnergyConsumption(device, &energy));
    figures->power_mw = used;
    figures->power_limit_mw = limit;
    figures->energy_mj = energy;
}

static void read_heat(const struct nvml_api *api, nvml_device device, struct nvml_figures *figures)
{
    unsigned celsius = 0;
    figures->heat_result =
        api->nvmlDeviceGetTemperature == NULL
            ? NVML_FUNCTION_NOT_FOUND
            : note(figures, api->nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &celsius));
    figures->celsius = celsius;
}

static bool is_split(const struct nvml_api *api, nvml_device device, struct nvml_figures *figures)
{
    unsigned mode = 0;
    unsigned pending = 0;
    return api->nvmlDeviceGetMigMode != NULL &&
           note(figures, api->nvmlDeviceGetMigMode(device, &mode, &pending)) == NVML_OK &&
           mode == NVML_MIG_ON;
}

/* Finds the device, and the whole device that it is or that it is an instance of. */
static nvml_result find_device(const struct nvml_api *api, const char *id, nvml_device *ret_device,
                               nvml_device *ret_whole)
{
    if (strncmp(id, KERNEL_MIG, strlen(KERNEL_MIG)) != 0) {
        const nvml_result result = api->nvmlDeviceGetHandleByPciBusId_v2(id, ret_device);
        *ret_whole = *ret_device;
        return result;
    }
    if (api->nvmlDeviceGetHandleByUUID == NULL ||
        api->nvmlDeviceGetDeviceHandleFromMigDeviceHandle == NULL) {
        return NVML_FUNCTION_NOT_FOUND;
    }
    const nvml_result result = api->nvmlDeviceGetHandleByUUID(id, ret_device);
    return result != NVML_OK
               ? result
               : api->nvmlDeviceGetDeviceHandleFromMigDeviceHandle(*ret_device, ret_whole);
}

void nvml_read(const struct nvml_api *api, const char *id, struct nvml_figures *ret_figures)
{
    nvml_device device = NULL;
    nvml_device whole = NULL;
    *ret_figures = (struct nvml_figures){.is_lost = false};
    ret_figures->found = note(ret_figures, find_device(api, id, &device, &whole));
    if (ret_figures->found != NVML_OK) {
        return;
    }
    ret_figures->is_split = device == whole && is_split(api, device, ret_figures);
    read_power(api, whole, ret_figures);
    read_heat(api, whole, ret_figures);
    if (ret_figures->is_split) {
        ret_figures->memory_result = ret_figures->busy_result = NVML_NOT_SUPPORTED;
        ret_figures->compute.result = ret_figures->graphics.result = NVML_NOT_SUPPORTED;
        return;
    }
    read_memory(api, device, ret_figures);
    read_busy(api, device, ret_figures);
    read_processes(ret_figures, api->nvmlDeviceGetComputeRunningProcesses_v3, device,
                   &ret_figures->compute);
    read_processes(ret_figures, api->nvmlDeviceGetGraphicsRunningProcesses_v3, device,
                   &ret_figures->graphics);
}

/* ---------------------------------------------------------------- printing */

/* Sets the figure when its call succeeded, and else the phrase. */
static void set(json_t *object, json_t *why, const char *name, nvml_result result, json_t *value)
{
    if (result == NVML_OK) {
        (void)json_object_set_new(object, name, value);
    } else {
        json_decref(value);
        (void)json_object_set_new(why, name, json_string(nvml_api_error(result)));
    }
}

static json_t *pids_json(const struct nvml_processes *processes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < processes->count; i++) {
        (void)json_array_append_new(list, json_integer(processes->pids[i]));
    }
    return list;
}

static json_t *memories_json(const struct nvml_processes *processes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < processes->count; i++) {
        (void)json_array_append_new(list, json_integer(processes->memory_bytes[i]));
    }
    return list;
}

static json_t *figures_json(const char *id, const struct nvml_figures *figures)
{
    json_t *why = json_object();
    json_t *object = json_pack("{s:s, s:b, s:b}", "id", id, "lost", (int)figures->is_lost, "split",
                               (int)figures->is_split);
    if (figures->found != NVML_OK) {
        (void)json_object_set_new(why, "device", json_string(nvml_api_error(figures->found)));
    } else {
        set(object, why, "memory_used", figures->memory_result,
            json_integer((json_int_t)figures->memory_used));
        set(object, why, "memory_total", figures->memory_result,
            json_integer((json_int_t)figures->memory_total));
        set(object, why, "busy_percent", figures->busy_result, json_integer(figures->busy_percent));
        set(object, why, "power_mw", figures->power_result, json_integer(figures->power_mw));
        set(object, why, "power_limit_mw", figures->limit_result,
            json_integer(figures->power_limit_mw));
        set(object, why, "energy_mj", figures->energy_result,
            json_integer((json_int_t)figures->energy_mj));
        set(object, why, "celsius", figures->heat_result, json_integer(figures->celsius));
        set(object, why, "compute", figures->compute.result, pids_json(&figures->compute));
        if (figures->compute.result == NVML_OK) {
            (void)json_object_set_new(object, "compute_memory", memories_json(&figures->compute));
        }
        set(object, why, "graphics", figures->graphics.result, pids_json(&figures->graphics));
    }
    (void)json_object_set_new(object, "why", why);
    return object;
}

bool nvml_print(FILE *out, const char *const *ids, const struct nvml_figures *figures, size_t count,
                const char *problem)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, figures_json(ids[i], &figures[i]));
    }
    json_t *root = json_pack("{s:o, s:s}", "devices", list, "problem", problem);
    const bool good = root != NULL && json_dumpf(root, out, JSON_COMPACT) == 0;
    json_decref(root);
    return fputc('\n', out) != EOF && fflush(out) == 0 && good;
}

/* ---------------------------------------------------------------- serving */

/* Waits for a line. Returns false at the end of the socket. */
static bool hear(int socket)
{
    char byte = '\0';
    ssize_t length;
    do {
        length = read(socket, &byte, 1);
    } while (length == 1 && byte != '\n');
    return length == 1;
}

/* Starts the library. The problem says why it does not start. */
static bool start(const char *library, struct nvml_api *ret_api, struct problem *problem)
{
    if (!nvml_api_load(library, ret_api, problem)) {
        return false;
    }
    const nvml_result result = ret_api->nvmlInit_v2();
    if (result != NVML_OK) {
        problem_set(problem, "NVIDIA's management library does not start: %s (error %d of NVML)",
                    nvml_api_error(result), result);
    }
    return result == NVML_OK;
}

int nvml_serve(const char *library, int socket, const char *const *ids, size_t count)
{
    static struct nvml_figures figures[NVML_DEVICES_MAX];
    struct nvml_api api;
    struct problem problem = {""};
    FILE *out = fdopen(socket, "w");
    bool good = out != NULL && count <= NVML_DEVICES_MAX;
    if (!good || !hear(socket)) {
        return good ? 0 : 1;
    }
    if (!start(library, &api, &problem)) {
        (void)nvml_print(out, ids, NULL, 0, problem.text);
        return 1;
    }
    do {
        for (size_t i = 0; i < count; i++) {
            nvml_read(&api, ids[i], &figures[i]);
        }
        good = nvml_print(out, ids, figures, count, "");
    } while (good && hear(socket));
    (void)api.nvmlShutdown();
    return good ? 0 : 1;
}
