#include "provider/given.h"

#include <stdlib.h>
#include <string.h>

static bool add(struct given_files *given, uint32_t task, const Bourse__V1__Output *output)
{
    char *name = strdup(output->name);
    if (name == NULL) {
        return false;
    }
    given->files[given->count++] =
        (struct given_file){.task = task, .name = name, .hash = codec_hash(output->hash)};
    return true;
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
    if (work != NULL && work->has_seed) { /* the codec has seen to its length */
        given.has_seed = true;
        given.seed = codec_hash(work->seed);
        given.checked = work->checked;
    }
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
    free(given->files);
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
