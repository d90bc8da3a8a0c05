/* This file takes the inputs of a subtask out of the store. */
#include "provider/executors/program.h"

#include "formats/template.h"
#include "provider/executors/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void program_release_inputs(struct store *store, struct store_blob *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        store_release(store, &inputs[i]);
    }
    free(inputs);
}

static void report_missing(struct outcome *outcome, enum store_status status, const char *what,
                           const struct problem *problem)
{
    if (status == STORE_GIVEN_UP) {
        outcome_fail(outcome, OUTCOME_CANCELLED, "cancelled before it started");
    } else if (status == STORE_FULL) { /* crowded: another provider may have room */
        outcome_fail(outcome, OUTCOME_CANCELLED, "no room for %s: %s", what, problem->text);
    } else if (status == STORE_NO_FOLDER) { /* another provider has its folders */
        outcome_fail(outcome, OUTCOME_CANCELLED, "no folder for %s: %s", what, problem->text);
    } else if (status == STORE_FAILED) {
        outcome_fail(outcome, OUTCOME_JAIL_FAILED, "%s", problem->text);
    } else {
        outcome_fail(outcome, OUTCOME_INPUT_MISSING, "%s: %s", what, problem->text);
    }
}

/* `what` names the blob for the consumer. */
static bool take_blob(const struct program_source *source, const struct hash32 *hash, bool may_lend,
                      const char *what, struct outcome *outcome, struct store_blob *ret_blob)
{
    struct problem problem = {""};
    enum store_status status = (may_lend ? store_take_lent : store_take)(
        source->store, hash, source->job, UINT64_MAX, source->give_up, ret_blob, &problem);
    if (status != STORE_OK) {
        report_missing(outcome, status, what, &problem);
    }
    return status == STORE_OK;
}

bool program_take_input(const struct program_source *source, const Bourse__V1__ManifestInput *input,
                        bool may_lend, struct outcome *outcome, struct store_blob *ret_blob)
{
    struct hash32 hash = codec_hash(input->hash);
    char what[LIMIT_TEXT_BYTES];
    (void)snprintf(what, sizeof what, "input %s", input->name);
    return take_blob(source, &hash, may_lend, what, outcome, ret_blob);
}

/* Takes an output of another subtask. A missing output is the fault of the job that asks for it. */
static bool take_output(const struct program_source *source, const Bourse__V1__ManifestFrom *from,
                        struct outcome *outcome, struct store_blob *ret_blob)
{
    const struct dispatch_file *file =
        dispatch_inputs_find(source->dispatch, from->task, from->output);
    char name[PROGRAM_SUBTASK_NAME_SIZE];
    char what[LIMIT_TEXT_BYTES];
    program_subtask_name(source->manifest, from->task, name);
    if (file == NULL) {
        outcome_fail(outcome, OUTCOME_PROGRAM_FAILED, "%s left no output %s", name, from->output);
        return false;
    }
    (void)snprintf(what, sizeof what, "the output %s of %s", from->output, name);
    return take_blob(source, &file->hash, false, what, outcome, ret_blob);
}

/* Takes a file of the checkpoint to resume from. */
static bool take_state(const struct program_source *source, const struct dispatch_file *file,
                       struct outcome *outcome, struct store_blob *ret_blob)
{
    char what[LIMIT_TEXT_BYTES];
    (void)snprintf(what, sizeof what, "the checkpoint of attempt %u: %s", (unsigned)file->task,
                   file->name);
    return take_blob(source, &file->hash, false, what, outcome, ret_blob);
}

bool program_take_inputs(const struct program_source *source, struct outcome *outcome,
                         struct store_blob **ret_inputs, size_t *ret_count)
{
    const Bourse__V1__Manifest *manifest = source->manifest;
    const uint32_t index = source->index;
    const struct dispatch_inputs *dispatch = source->dispatch;
    size_t own = program_input_count(manifest, index);
    size_t first = own + program_taken_count(manifest, index); /* the checkpoint's first */
    size_t count = first + dispatch->checkpoint_count;
    struct store_blob *inputs = calloc(count + 1, sizeof *inputs);
    if (inputs == NULL) {
        outcome_fail(outcome, OUTCOME_JAIL_FAILED, "out of memory");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        bool good;
        if (i < own) {
            const Bourse__V1__ManifestInput *input = program_input(manifest, index, i);
            bool may_lend = !dispatch->has_seed && tensor_reads_once(manifest, input->size) &&
                            !template_is_folder(input->name) &&
                            strcmp(input->name, PROGRAM_LISTING) != 0;
            good = program_take_input(source, input, may_lend, outcome, &inputs[i]);
            outcome->lacks_factor = !good && dispatch->has_seed;
        } else if (i < first) {
            good =
                take_output(source, program_taken(manifest, index, i - own), outcome, &inputs[i]);
        } else {
            good = take_state(source, &dispatch->checkpoint[i - first], outcome, &inputs[i]);
        }
        if (!good) {
            program_release_inputs(source->store, inputs, i);
            return false;
        }
    }
    *ret_inputs = inputs;
    *ret_count = count;
    return true;
}
