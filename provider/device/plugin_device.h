/* provider/device/plugin_device.h knows the devices that owners attach by a plug-in, a program of
 * their own (docs/plugins.md).
 *
 * The agent never runs a plug-in itself. The program bourse-plugin speaks with it in a jail, at a
 * start as for jobs (provider/executors/plugin.h). This module checks the file, and reads what the
 * plug-in said in the trial jail. */
#ifndef BOURSE_PROVIDER_DEVICE_PLUGIN_DEVICE_H
#define BOURSE_PROVIDER_DEVICE_PLUGIN_DEVICE_H

#include "base/problem.h"
#include "base/requirement.h"
#include "formats/plugin/plugin_line.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    PLUGIN_DEVICES_MAX = 16,
    PLUGIN_PATH_SIZE = 256,
    PLUGIN_NODES_MAX = 8,
    PLUGIN_NODE_SIZE = 64,
};

/* A plugin_program has what the config says about a plug-in. */
struct plugin_program {
    char path[PLUGIN_PATH_SIZE];                    /* absolute; "": no plug-in */
    char nodes[PLUGIN_NODES_MAX][PLUGIN_NODE_SIZE]; /* device files below /dev */
    size_t node_count;
};

struct plugin_device {
    char name[ATTRIBUTE_TEXT_SIZE]; /* the config's, which is the device's label */
    struct plugin_program program;
    struct plugin_description description;
    struct plugin_probe probe;
    struct plugin_figures figures;
    char unusable[512]; /* why the device is not offered; "": it is, and the answers are there */
};

struct plugin_list {
    struct plugin_device items[PLUGIN_DEVICES_MAX];
    size_t count;
    bool is_known; /* the plug-ins were asked */
};

/* Returns true when this process can read the program and use its device files. Otherwise the
 * problem says what to change. */
bool plugin_device_check(const struct plugin_program *program, struct problem *ret_problem);
/* Reads the three lines that bourse-plugin prints of the device. Returns false with the problem. */
bool plugin_device_read(const char *text, size_t length, struct plugin_device *device,
                        struct problem *ret_problem);
/* Returns what the plug-in claims, Mflop/s of products by one process; 0: nothing. The broker may
 * challenge the claim where the description has `multiplies`. */
int64_t plugin_device_mflops(const struct plugin_device *device);
/* Returns the device with the config's name, or NULL. */
const struct plugin_device *plugin_device_find(const struct plugin_list *list, const char *name);
bool plugin_program_equal(const struct plugin_program *a, const struct plugin_program *b);

#endif
