#include "provider/work/given.h"

#include <stdlib.h>
#include <string.h>

static bool copy(uint32_t task, const Bourse__V1__Output *output, struct given_file *ret_file)
{
    char *name = strdup(output->name);
    if (name == NULL) {
        return false;
    }
    *ret_file = (struct given_file){.task = task, .name = name, .hash = codec_hash(output->hash)};
    return true;
}

static bool add(struct given_files *given, uint32_t task, const Bourse__V1__Output *output)
{
    const bool good = copy(task, output, &given->files[given->count]);
    given->count += good;
    return good;
}

static bool copy_saved(const Bourse__V1__Saved *saved, struct given_files *given)
{
    const size_t count = saved == NULL ? 0 : saved->n_files;
    given->saved = count == 0 ? NULL : calloc(count, sizeof *given->saved);
    bool good = count == 0 || given->saved != NULL;
    for (size_t i = 0; good && i < count; i++) {
        good = copy(saved->attempt, saved->files[i], &given->saved[i]);
        given->saved_count += good;
    }
    given->restored = count == 0 ? 0 : saved->attempt;
    return good;
}

bool given_copy(const Bourse__V1__Work *work, struct given_files *ret_given)
{
    struct given_files given = {.files = NULL};
    size_t count = 0;
    for (size_t i = 0; work != NULL && i < work->n_given; i++) {
        count += work->given[i]->n_outputs;
    }
    given.files = count == 0 ? NULL : calloc(count, sizeof *given.files);
    bool good = count == 0 || given.files != NULL;
    for (size_t i = 0; good && count > 0 && i < work->n_given; i++) {
        for (size_t k = 0; good && k < work->given[i]->n_outputs; k++) {
            good = add(&given, work->given[i]->index, work->given[i]->outputs[k]);
        }
    }
    if (work != NULL && work->has_seed) { /* the codec has checked its length */
        given.has_seed = true;
        given.seed = codec_hash(work->seed);
        given.checked = work->checked;
    }
    good = good && (work == NULL || copy_saved(work->saved, &given));
    if (!good) {
        given_fini(&given);
    }
    *ret_given = given;
    return good;
}

void given_fini(struct given_files *given)
{
    for (size_t i = 0; i < given->count; i++) {
        free(given->files[i].name);
    }
    for (size_t i = 0; i < given->saved_count; i++) {
        free(given->saved[i].name);
    }
    free(given->files);
    free(given->saved);
    *given = (struct given_files){.files = NULL};
}

const struct given_file *given_find(const struct given_files *given, uint32_t task,
                                    const char *name)
{
    for (size_t i = 0; i < given->count; i++) {
        if (given->files[i].task == task && strcmp(given->files[i].name, name) == 0) {
            return &given->files[i];
        }
    }
    return NULL;
}
