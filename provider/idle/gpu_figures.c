#include "provider/idle/gpu_figures.h"

#include "base/text.h"

#include <jansson.h>

#include <stdio.h>
#include <string.h>

enum { CELSIUS_MOST = 1000, PERCENT_MOST = 100 };
#define POWER_MOST_MW INT64_C(1000000000)
#define ENERGY_MOST_MJ (INT64_C(1) << 53)
#define BYTES_MOST (INT64_C(1) << 60)

void gpu_figures_clear(struct gpu_figures *figures)
{
    char id[GPU_ID_SIZE];
    const bool was_lost = figures->is_lost;
    memcpy(id, figures->id, sizeof id);
    *figures = (struct gpu_figures){.memory_used = -1,
                                    .memory_total = -1,
                                    .busy_percent = -1,
                                    .power_mw = -1,
                                    .power_limit_mw = -1,
                                    .energy_mj = -1,
                                    .celsius = -1};
    memcpy(figures->id, id, sizeof id);
    figures->is_lost = was_lost;
}

/* Returns -1 for a figure that is absent or impossible. */
static int64_t figure(const json_t *object, const char *name, int64_t most)
{
    const json_t *value = json_object_get(object, name);
    const json_int_t number = json_integer_value(value);
    return json_is_integer(value) && number >= 0 && number <= most ? number : -1;
}

static void read_processes(const json_t *object, const char *name, const char *memory_name,
                           struct gpu_processes *ret_processes)
{
    const json_t *list = json_object_get(object, name);
    const json_t *memories = json_object_get(object, memory_name);
    const size_t count = json_array_size(list);
    *ret_processes =
        (struct gpu_processes){.is_known = json_is_array(list) && count <= GPU_PROCESSES_MAX};
    for (size_t i = 0; ret_processes->is_known && i < count; i++) {
        const json_int_t pid = json_integer_value(json_array_get(list, i));
        if (pid > 0 && pid <= INT32_MAX) {
            const json_t *memory = json_array_get(memories, i);
            const json_int_t bytes = json_is_integer(memory) ? json_integer_value(memory) : -1;
            ret_processes->memory_bytes[ret_processes->count] =
                bytes >= 0 && bytes <= BYTES_MOST ? bytes : -1;
            ret_processes->pids[ret_processes->count++] = (pid_t)pid;
        } else { /* a driver that cannot name a process says 0 */
            ret_processes->has_unnamed = true;
        }
    }
}

static void read_why(json_t *object, char ret_why[GPU_WHY_SIZE])
{
    const char *name;
    json_t *value;
    size_t length = 0;
    ret_why[0] = '\0';
    json_object_foreach(json_object_get(object, "why"), name, value)
    {
        char phrase[128];
        const char *said = json_string_value(value);
        text_printable(said != NULL ? said : "", said != NULL ? strlen(said) : 0, phrase,
                       sizeof phrase);
        if (length < GPU_WHY_SIZE) {
            length += (size_t)snprintf(ret_why + length, GPU_WHY_SIZE - length, "%s%.32s: %s",
                                       length > 0 ? "; " : "", name, phrase);
        }
    }
}

bool gpu_figures_any(const struct gpu_figures *figures)
{
    return figures->memory_used >= 0 || figures->memory_total >= 0 || figures->busy_percent >= 0 ||
           figures->power_mw >= 0 || figures->power_limit_mw >= 0 || figures->celsius >= 0;
}

/* Returns true when the device itself told anything. */
static bool answers(const struct gpu_figures *figures)
{
    return figures->is_split || gpu_figures_any(figures) || figures->energy_mj >= 0 ||
           figures->compute.is_known || figures->graphics.is_known;
}

static void read_device(json_t *object, struct gpu_figures *figures)
{
    figures->is_split = json_is_true(json_object_get(object, "split"));
    figures->memory_used = figure(object, "memory_used", BYTES_MOST);
    figures->memory_total = figure(object, "memory_total", BYTES_MOST);
    figures->busy_percent = figure(object, "busy_percent", PERCENT_MOST);
    figures->power_mw = figure(object, "power_mw", POWER_MOST_MW);
    figures->power_limit_mw = figure(object, "power_limit_mw", POWER_MOST_MW);
    figures->energy_mj = figure(object, "energy_mj", ENERGY_MOST_MJ);
    figures->celsius = figure(object, "celsius", CELSIUS_MOST);
    read_processes(object, "compute", "compute_memory", &figures->compute);
    read_processes(object, "graphics", "", &figures->graphics);
    read_why(object, figures->why);
    figures->is_lost =
        json_is_true(json_object_get(object, "lost")) || (figures->is_lost && !answers(figures));
}

bool gpu_figures_read(const char *line, size_t length, struct gpu_figures *figures, size_t count,
                      struct problem *ret_problem)
{
    json_t *root = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *devices = json_object_get(root, "devices");
    const char *problem = json_string_value(json_object_get(root, "problem"));
    const bool good = json_is_array(devices) && problem != NULL && problem[0] == '\0';
    for (size_t i = 0; i < count; i++) {
        gpu_figures_clear(&figures[i]);
        for (size_t k = 0; good && k < json_array_size(devices); k++) {
            json_t *object = json_array_get(devices, k);
            const char *id = json_string_value(json_object_get(object, "id"));
            if (id != NULL && strcmp(id, figures[i].id) == 0) {
                read_device(object, &figures[i]);
            }
        }
    }
    if (!good) {
        char shown[256] = "bourse-kernel prints no figures";
        if (problem != NULL && problem[0] != '\0') {
            text_printable(problem, strlen(problem), shown, sizeof shown);
        }
        problem_set(ret_problem, "%s", shown);
    }
    json_decref(root);
    return good;
}
