#include "provider/device/plugin_device.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

static bool check_node(const char *node, struct problem *problem)
{
    struct stat status;
    if (stat(node, &status) != 0) {
        return REFUSE(problem, "the device file %s: %s", node, strerror(errno));
    }
    if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) {
        return REFUSE(problem, "%s is no device file", node);
    }
    if (access(node, R_OK | W_OK) != 0) {
        return REFUSE(problem,
                      "the device file %s: %s; put the agent's user into the group of the file",
                      node, strerror(errno));
    }
    return true;
}

bool plugin_device_check(const struct plugin_program *program, struct problem *ret_problem)
{
    struct stat status;
    if (stat(program->path, &status) != 0) {
        return REFUSE(ret_problem, "the plug-in %s: %s", program->path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode) || (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) {
        return REFUSE(ret_problem, "the plug-in %s is no program: it cannot be executed (chmod +x)",
                      program->path);
    }
    if (access(program->path, R_OK) != 0) {
        return REFUSE(ret_problem, "the plug-in %s: the agent's user must be able to read it: %s",
                      program->path, strerror(errno));
    }
    for (size_t i = 0; i < program->node_count; i++) {
        if (!check_node(program->nodes[i], ret_problem)) {
            return false;
        }
    }
    return true;
}

/* Returns the next line and moves *text behind it, or NULL. */
static const char *next_line(const char **text, const char *end, size_t *ret_length)
{
    const char *line = *text;
    const char *newline = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    if (newline == NULL) {
        return NULL;
    }
    *ret_length = (size_t)(newline - line);
    *text = newline + 1;
    return line;
}

bool plugin_device_read(const char *text, size_t length, struct plugin_device *device,
                        struct problem *ret_problem)
{
    const char *end = text + length;
    size_t sizes[3];
    const char *lines[3];
    for (size_t i = 0; i < 3; i++) {
        lines[i] = next_line(&text, end, &sizes[i]);
        if (lines[i] == NULL) {
            return REFUSE(ret_problem, "bourse-plugin prints %zu lines of 3", i);
        }
    }
    if (!plugin_read_description(lines[0], sizes[0], &device->description, ret_problem) ||
        !plugin_read_probe(lines[1], sizes[1], &device->probe, ret_problem) ||
        !plugin_read_figures(lines[2], sizes[2], &device->figures, ret_problem)) {
        return false;
    }
    if (device->description.multiplies && plugin_device_mflops(device) == 0) {
        return REFUSE(ret_problem,
                      "the plug-in lets its \"" PLUGIN_CHALLENGED "\" be challenged, and its probe "
                      "tells no such figure of 1e6 or more");
    }
    return true;
}

int64_t plugin_device_mflops(const struct plugin_device *device)
{
    return device->probe.gemm_fp32 / 1000000;
}

const struct plugin_device *plugin_device_find(const struct plugin_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

bool plugin_program_equal(const struct plugin_program *a, const struct plugin_program *b)
{
    bool equal = strcmp(a->path, b->path) == 0 && a->node_count == b->node_count;
    for (size_t i = 0; equal && i < a->node_count; i++) {
        equal = strcmp(a->nodes[i], b->nodes[i]) == 0;
    }
    return equal;
}
