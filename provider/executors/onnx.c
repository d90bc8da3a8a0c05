#include "provider/executors/onnx.h"

#include "base/text.h"
#include "provider/executors/trial.h"
#include "provider/tensor/ask.h"
#include "runtime/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRIAL_WALL_NS UINT64_C(60000000000)

bool onnx_names(const Bourse__V1__Manifest *manifest)
{
    return strcmp(manifest->executor, "onnx") == 0;
}

bool onnx_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem)
{
    bool is_bare = !manifest->has_image && manifest->directory == NULL &&
                   manifest->n_environment == 0 && manifest->standard_input == NULL &&
                   manifest->checkpoint == NULL;
    for (size_t i = 0; is_bare && i < manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestTask *task = manifest->subtasks[i]->task;
        is_bare = task == NULL || (task->n_environment == 0 && task->standard_input == NULL);
    }
    if (!is_bare) {
        problem_set(ret_problem, "a run of a model has no image, no environment, no standard input "
                                 "and no checkpoint");
    }
    return is_bare;
}

void onnx_fill(const struct model_engine *engine, const struct model_provider *provider,
               struct onnx_parts *ret_parts)
{
    ret_parts->nodes[0] = NULL;
    if (provider != NULL) {
        model_provider_nodes(provider, ret_parts->nodes);
    }
    ret_parts->jail =
        (struct jail_model){.path = engine->program,
                            .library = engine->library[0] != '\0' ? engine->library : NULL,
                            .settings = provider != NULL ? provider->settings : NULL,
                            .nodes = ret_parts->nodes};
}

/* ---------------------------------------------------------------- the trial */

/* Returns the length of what bourse-onnx printed, or -1 with the problem. */
static ssize_t ask(const struct onnx_trial *trial, const struct model_engine *engine,
                   const struct model_provider *provider, char said[TRIAL_SAID_BYTES],
                   struct problem *problem)
{
    const char *const words[] = {ONNX_LOOK, NULL};
    struct onnx_parts parts;
    onnx_fill(engine, provider, &parts);
    const struct jail_spec spec = {.worker_path = trial->worker_path,
                                   .visible = trial->visible,
                                   .model = &parts.jail,
                                   .name = "probe-onnx",
                                   .cgroups = trial->cgroups};
    return trial_ask(trial->launcher, &spec, "bourse-onnx", words, TRIAL_WALL_NS, said, NULL,
                     problem);
}

/* Reads the line that names the providers of the library. */
static void read_providers(struct model_engine *engine, const char *text, const char *end)
{
    static const char key[] = "providers ";
    const char *newline = text < end ? memchr(text, '\n', (size_t)(end - text)) : NULL;
    const size_t length = sizeof key - 1;
    engine->providers[0] = '\0';
    if (newline != NULL && (size_t)(newline - text) > length && memcmp(text, key, length) == 0) {
        text_printable(text + length, (size_t)(newline - text) - length, engine->providers,
                       sizeof engine->providers);
    }
}

void onnx_look(const struct onnx_trial *trial, struct model_engine *engine)
{
    static char said[TRIAL_SAID_BYTES];
    struct problem problem = {""};
    engine->is_known = true;
    if (engine->library[0] != '\0' && access(engine->library, R_OK) != 0) {
        (void)snprintf(engine->unusable, sizeof engine->unusable, "%.400s: %s", engine->library,
                       strerror(errno));
        return;
    }
    const ssize_t length = ask(trial, engine, NULL, said, &problem);
    const char *newline = length > 0 ? memchr(said, '\n', (size_t)length) : NULL;
    if (length < 0) {
        (void)snprintf(engine->unusable, sizeof engine->unusable, "%.400s", problem.text);
    } else if (newline == NULL || newline == said) {
        (void)snprintf(engine->unusable, sizeof engine->unusable,
                       "bourse-onnx does not say what computes models");
    } else {
        text_printable(said, (size_t)(newline - said), engine->name, sizeof engine->name);
        read_providers(engine, newline + 1, said + length);
    }
}

void onnx_look_at_device(const struct onnx_trial *trial, const struct model_engine *engine,
                         struct model_device *device)
{
    static char said[TRIAL_SAID_BYTES];
    struct problem problem = {""};
    device->unusable[0] = '\0';
    if (engine->unusable[0] == '\0' && engine->library[0] == '\0') {
        problem_set(&problem, "%s is a provider of ONNX Runtime, whose library is not here",
                    device->provider.name);
    } else if (engine->unusable[0] != '\0') {
        problem_set(&problem, "%s", engine->unusable);
    } else {
        const ssize_t length = ask(trial, engine, &device->provider, said, &problem);
        if (length >= 0 && model_device_read(said, (size_t)length, device, &problem)) {
            return;
        }
    }
    (void)snprintf(device->unusable, sizeof device->unusable, "%s", problem.text);
}

void onnx_say(const struct model_engine *engine, bool is_named)
{
    if (engine->unusable[0] == '\0') {
        log_info("ONNX models are computed by %s%s%s", engine->name,
                 engine->library[0] != '\0' ? ", of " : "", engine->library);
        if (engine->providers[0] != '\0') {
            log_info("the library also names the execution providers %s; an entry `onnx: NAME` of "
                     "`devices` offers one",
                     engine->providers);
        }
    } else if (is_named) {
        log_warning("no ONNX models are computed here: %s", engine->unusable);
    } else {
        log_info("no ONNX models are computed here: %s", engine->unusable);
    }
}
