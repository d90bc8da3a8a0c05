/* This file says which files of the work folder a subtask leaves.
 *
 * An output is a file, a folder, or a pattern. To the jail a pattern is a folder of which some
 * files are meant. The output's name in the result stays as the job has written it. */
#include "base/pattern.h"
#include "formats/template.h"
#include "protocol/subtask.h"
#include "provider/executors/program_internal.h"

#include <stdlib.h>
#include <string.h>

/* Splits a pattern into the folder and the pattern below the folder. */
static bool split_pattern(struct run *run, size_t i, struct outcome *outcome)
{
    struct output_pattern *pattern = &run->patterns[i];
    pattern->text = template_pattern(run->terms.outputs[i], &run->values, LIMIT_PATH_BYTES);
    pattern->folder = pattern->text == NULL ? NULL : malloc(strlen(pattern->text) + 3);
    if (pattern->folder == NULL) {
        return program_refuse_one(outcome, "output", i,
                                  "is a pattern that cannot be expanded for this subtask");
    }
    pattern_split(pattern->text, pattern->folder, &pattern->rest);
    if (pattern_problem(pattern->text) != NULL ||
        (strcmp(pattern->folder, "./") != 0 && !template_output_safe(pattern->folder))) {
        return program_refuse_one(outcome, "output", i,
                                  "is no pattern of files in the work folder");
    }
    run->output_names[i] = pattern->folder;
    run->output_patterns[i] = pattern->rest;
    return true;
}

static bool lies_in_checkpoint(const struct run *run, size_t i)
{
    const char *checkpoint = run->request.checkpoint;
    return checkpoint != NULL && (run->patterns[i].text != NULL
                                      ? template_pattern_meets(run->patterns[i].text, checkpoint)
                                      : template_paths_meet(checkpoint, run->outputs.items[i]));
}

bool program_expand_outputs(struct run *run, struct outcome *outcome)
{
    const Bourse__V1__Manifest *manifest = run->program->manifest;
    const bool has_patterns = manifest->has_patterns && manifest->patterns;
    const size_t count = run->is_check ? 0 : run->terms.output_count;
    if (!program_texts_reserve(&run->outputs, count)) {
        return program_refuse(outcome, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        char *text = template_filled(run->terms.outputs[i], &run->values, LIMIT_PATH_BYTES, NULL);
        if (text == NULL) {
            return program_refuse_one(outcome, "output", i,
                                      "has a name that cannot be expanded for this subtask");
        }
        run->outputs.items[run->outputs.count++] = text;
        run->output_names[i] = text;
        if (!template_output_safe(text)) {
            return program_refuse_one(
                outcome, "output", i,
                "has a name that leads out of the work folder or is no plain text");
        }
        if (has_patterns && template_is_pattern(run->terms.outputs[i]) &&
            !split_pattern(run, i, outcome)) {
            return false;
        }
        if (lies_in_checkpoint(run, i)) {
            return program_refuse_one(outcome, "output", i, "lies where the job saves its state");
        }
    }
    run->request.outputs = run->output_names;
    run->request.patterns = run->output_patterns;
    run->request.output_count = count;
    return true;
}

bool program_is_archive(const struct run *run, size_t output)
{
    return template_is_folder(run->output_names[output]);
}

bool program_keeps_trees(const Bourse__V1__Manifest *manifest)
{
    return manifest->has_trees && manifest->trees;
}

const char *program_taken_pattern(const Bourse__V1__Manifest *manifest,
                                  const Bourse__V1__ManifestFrom *from)
{
    const char *output = from->output;
    if (!manifest->has_patterns || !manifest->patterns ||
        !pattern_is_special(output, strlen(output))) {
        return NULL;
    }
    return output;
}

bool program_brings_back(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->outputs.count; i++) {
        if (strcmp(run->outputs.items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void program_outputs_clear(struct run *run)
{
    program_texts_clear(&run->outputs);
    for (size_t i = 0; i < LIMIT_OUTPUTS; i++) {
        folder_archive_fini(&run->folders[i]);
        free(run->patterns[i].text);
        free(run->patterns[i].folder);
    }
}
