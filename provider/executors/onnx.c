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

struct jail_model onnx_jail(const struct model_engine *engine)
{
    return (struct jail_model){.path = engine->program,
                               .library = engine->library[0] != '\0' ? engine->library : NULL};
}

/* ---------------------------------------------------------------- the trial */

void onnx_look(const struct onnx_trial *trial, struct model_engine *engine)
{
    static char said[TRIAL_SAID_BYTES];
    const char *const words[] = {ONNX_LOOK, NULL};
    const struct jail_model model = onnx_jail(engine);
    const struct jail_spec spec = {.worker_path = trial->worker_path,
                                   .model = &model,
                                   .name = "probe-onnx",
                                   .cgroups = trial->cgroups};
    struct problem problem = {""};
    engine->is_known = true;
    if (engine->library[0] != '\0' && access(engine->library, R_OK) != 0) {
        (void)snprintf(engine->unusable, sizeof engine->unusable, "%.400s: %s", engine->library,
                       strerror(errno));
        return;
    }
    const ssize_t length = trial_ask(trial->launcher, &spec, "bourse-onnx", words, TRIAL_WALL_NS,
                                     said, NULL, &problem);
    const char *newline = length > 0 ? memchr(said, '\n', (size_t)length) : NULL;
    if (length < 0) {
        (void)snprintf(engine->unusable, sizeof engine->unusable, "%.400s", problem.text);
    } else if (newline == NULL || newline == said) {
        (void)snprintf(engine->unusable, sizeof engine->unusable,
                       "bourse-onnx does not say what computes models");
    } else {
        text_printable(said, (size_t)(newline - said), engine->name, sizeof engine->name);
    }
}

void onnx_say(const struct model_engine *engine, bool is_named)
{
    if (engine->unusable[0] == '\0') {
        log_info("ONNX models are computed by %s%s%s", engine->name,
                 engine->library[0] != '\0' ? ", of " : "", engine->library);
    } else if (is_named) {
        log_warning("no ONNX models are computed here: %s", engine->unusable);
    } else {
        log_info("no ONNX models are computed here: %s", engine->unusable);
    }
}
