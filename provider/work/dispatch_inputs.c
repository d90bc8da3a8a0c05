#include "provider/work/dispatch_inputs.h"

#include <stdlib.h>
#include <string.h>

static bool copy(uint32_t task, const Bourse__V1__Output *output, struct dispatch_file *ret_file)
{
    char *name = strdup(output->name);
    if (name == NULL) {
        return false;
    }
    *ret_file =
        (struct dispatch_file){.task = task,
                               .name = name,
                               .hash = codec_hash(output->hash),
                               .is_executable = output->has_executable && output->executable};
    return true;
}

static bool add(struct dispatch_inputs *inputs, uint32_t task, const Bourse__V1__Output *output)
{
    const bool good = copy(task, output, &inputs->files[inputs->count]);
    inputs->count += good;
    return good;
}

static bool copy_checkpoint(const Bourse__V1__Saved *saved, struct dispatch_inputs *inputs)
{
    const size_t count = saved == NULL ? 0 : saved->n_files;
    inputs->checkpoint = count == 0 ? NULL : calloc(count, sizeof *inputs->checkpoint);
    bool good = count == 0 || inputs->checkpoint != NULL;
    for (size_t i = 0; good && i < count; i++) {
        good = copy(saved->attempt, saved->files[i], &inputs->checkpoint[i]);
        inputs->checkpoint_count += good;
    }
    inputs->restored = count == 0 ? 0 : saved->attempt;
    return good;
}

bool dispatch_inputs_copy(const Bourse__V1__Work *work, struct dispatch_inputs *ret_inputs)
{
    struct dispatch_inputs inputs = {.files = NULL};
    size_t count = 0;
    for (size_t i = 0; work != NULL && i < work->n_given; i++) {
        count += work->given[i]->n_outputs;
    }
    inputs.files = count == 0 ? NULL : calloc(count, sizeof *inputs.files);
    bool good = count == 0 || inputs.files != NULL;
    for (size_t i = 0; good && count > 0 && i < work->n_given; i++) {
        for (size_t k = 0; good && k < work->given[i]->n_outputs; k++) {
            good = add(&inputs, work->given[i]->index, work->given[i]->outputs[k]);
        }
    }
    if (work != NULL && work->has_seed) { /* the codec has checked its length */
        inputs.has_seed = true;
        inputs.seed = codec_hash(work->seed);
        inputs.checked = work->checked;
    }
    good = good && (work == NULL || copy_checkpoint(work->saved, &inputs));
    if (!good) {
        dispatch_inputs_fini(&inputs);
    }
    *ret_inputs = inputs;
    return good;
}

void dispatch_inputs_fini(struct dispatch_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->files[i].name);
    }
    for (size_t i = 0; i < inputs->checkpoint_count; i++) {
        free(inputs->checkpoint[i].name);
    }
    free(inputs->files);
    free(inputs->checkpoint);
    *inputs = (struct dispatch_inputs){.files = NULL};
}

const struct dispatch_file *dispatch_inputs_find(const struct dispatch_inputs *inputs,
                                                 uint32_t task, const char *name)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->files[i].task == task && strcmp(inputs->files[i].name, name) == 0) {
            return &inputs->files[i];
        }
    }
    return NULL;
}
