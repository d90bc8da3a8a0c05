#include "consumer/train/train_place.h"

#include "formats/train/train_words.h"

#include <stdio.h>
#include <string.h>

bool train_place_is_between(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const char *const *items = (const char *const *)manifest->arguments;
    const Bourse__V1__ManifestTask *task =
        index < manifest->n_subtasks ? manifest->subtasks[index]->task : NULL;
    struct train_words words;
    struct problem ignored; /* such a job is none of training */
    unsigned step = 0;
    if (task == NULL || strcmp(manifest->executor, "onnx") != 0 ||
        !train_words_are(items, manifest->n_arguments) ||
        !train_words_read(items, manifest->n_arguments, &words, &ignored)) {
        return false;
    }
    if (sscanf(task->name, "step-%9u", &step) != 1) {
        return true;
    }
    /* All tasks lead to the last step, so that it is the last subtask. */
    const bool is_last = (size_t)index + 1 == manifest->n_subtasks;
    return !is_last && (words.every == 0 || step % words.every != 0);
}
