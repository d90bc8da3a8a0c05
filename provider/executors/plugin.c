#include "provider/executors/plugin.h"

#include "provider/executors/trial.h"
#include "provider/tensor/ask.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The time is longer than the helper's own limits together, so that its message arrives. */
#define LOOK_WALL_NS UINT64_C(35000000000)

bool plugin_names(const Bourse__V1__Manifest *manifest)
{
    return strcmp(manifest->executor, "plugin") == 0;
}

static bool is_operation(char *const *arguments, size_t count)
{
    return count > 0 && plugin_word_is_operation(arguments[0]);
}

bool plugin_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem)
{
    if (manifest->has_image || manifest->n_environment > 0 || manifest->standard_input != NULL) {
        problem_set(ret_problem,
                    "a plug-in's operation has no image, no environment and no standard input");
        return false;
    }
    bool fits =
        manifest->n_arguments == 0 || is_operation(manifest->arguments, manifest->n_arguments);
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestTask *task = manifest->subtasks[i]->task;
        fits = fits && (task == NULL || (task->n_environment == 0 && task->standard_input == NULL &&
                                         (task->n_arguments == 0 ||
                                          is_operation(task->arguments, task->n_arguments))));
    }
    if (!fits) {
        problem_set(ret_problem, "a plug-in's subtask is the name of an operation and arguments");
    }
    return fits;
}

void plugin_fill(const char *helper_path, const struct plugin_program *program,
                 struct plugin_parts *ret_parts)
{
    *ret_parts = (struct plugin_parts){.jail = {.path = helper_path, .program = program->path}};
    for (size_t i = 0; i < program->node_count; i++) {
        ret_parts->nodes[i] = program->nodes[i];
    }
    ret_parts->jail.nodes = ret_parts->nodes;
}

/* Returns the length of what bourse-plugin printed, or -1 with the problem. */
static ssize_t ask(const struct plugin_trial *trial, const struct plugin_program *program,
                   char said[TRIAL_SAID_BYTES], struct problem *problem)
{
    static const char *const words[] = {PLUGIN_LOOK, NULL};
    struct plugin_parts parts;
    plugin_fill(trial->helper_path, program, &parts);
    const struct jail_spec spec = {.worker_path = trial->worker_path,
                                   .visible = trial->visible,
                                   .plugin = &parts.jail,
                                   .name = "probe-plugin",
                                   .cgroups = trial->cgroups};
    return trial_ask(trial->launcher, &spec, "bourse-plugin", words, LOOK_WALL_NS, said,
                     trial->stop, problem);
}

void plugin_look(const struct plugin_trial *trial, struct plugin_device *device)
{
    static char said[TRIAL_SAID_BYTES];
    struct problem problem = {""};
    device->unusable[0] = '\0';
    if (plugin_device_check(&device->program, &problem)) {
        const ssize_t length = ask(trial, &device->program, said, &problem);
        if (length >= 0 && plugin_device_read(said, (size_t)length, device, &problem)) {
            return;
        }
    }
    (void)snprintf(device->unusable, sizeof device->unusable, "%s", problem.text);
}
