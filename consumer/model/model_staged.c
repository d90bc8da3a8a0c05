#include "consumer/model/model_staged.h"

#include "formats/onnx/onnx_words.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 32 };

/* Reads "stage-3" or "stage-3.17". */
static bool is_stage_name(const char *name, uint32_t *ret_part)
{
    unsigned stage = 0;
    unsigned part = 0;
    char text[NAME_SIZE];
    if (strncmp(name, "stage-", 6) != 0 || strlen(name) >= sizeof text) {
        return false;
    }
    const int found = sscanf(name, "stage-%5u.%5u", &stage, &part);
    if (found == 2) {
        (void)snprintf(text, sizeof text, "stage-%u.%u", stage, part);
    } else {
        (void)snprintf(text, sizeof text, "stage-%u", stage);
    }
    *ret_part = part;
    return found > 0 && stage > 0 && strcmp(text, name) == 0;
}

/* Reads the words of a job in stages. A job of tasks that a person wrote has no words of its own,
 * or other names of tasks. */
static bool read_words(const Bourse__V1__Manifest *manifest, uint32_t index, uint32_t *ret_part,
                       struct onnx_words *ret_words)
{
    struct problem ignored;
    const Bourse__V1__ManifestTask *task =
        index < manifest->n_subtasks ? manifest->subtasks[index]->task : NULL;
    return task != NULL && strcmp(manifest->executor, "onnx") == 0 &&
           is_stage_name(task->name, ret_part) && task->n_arguments > 0 &&
           onnx_words_read((const char *const *)manifest->arguments, manifest->n_arguments, true,
                           ret_words, &ignored);
}

bool model_staged_part(const Bourse__V1__Manifest *manifest, uint32_t index, uint32_t *ret_part,
                       uint32_t *ret_parts)
{
    struct onnx_words words;
    if (!read_words(manifest, index, ret_part, &words)) {
        return false;
    }
    *ret_parts = words.parts > 0 ? words.parts : 1;
    return *ret_part < *ret_parts;
}

bool model_staged_is_between(const Bourse__V1__Manifest *manifest, uint32_t index,
                             const char *output)
{
    struct onnx_words words;
    uint32_t part = 0;
    if (!read_words(manifest, index, &part, &words)) {
        return false;
    }
    for (size_t i = 0; i < words.output_count; i++) {
        if (onnx_span_is(words.outputs[i].file, output)) {
            return false;
        }
    }
    return true;
}
