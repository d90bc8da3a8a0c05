/* provider/executors/program_internal.h declares how program_prepare.c hands a prepared subtask to
 * program.c, which runs it. No other file includes it. */
#ifndef BOURSE_PROVIDER_EXECUTORS_PROGRAM_INTERNAL_H
#define BOURSE_PROVIDER_EXECUTORS_PROGRAM_INTERNAL_H

#include "formats/template.h"
#include "protocol/subtask.h"
#include "provider/executors/program.h"
#include "provider/work/folder_archive.h"

/* Texts that a request points to, freed together. */
struct texts {
    char **items;           /* NULL-terminated */
    size_t count, capacity; /* the capacity of a list that grows */
};

struct run {
    const struct program *program;
    const struct dispatch_inputs *dispatch; /* data from the dispatch; may be empty */
    struct subtask_terms terms;
    struct template_values values;
    struct texts arguments, environment, outputs, saved, placed;
    struct jail_input *inputs;
    size_t input_count, input_capacity;
    /* The archives of the outputs that are folders, by the output's number. */
    struct folder_archive folders[LIMIT_OUTPUTS];
    char *standard_input;
    /* A check uses the market's seed: its verdict counts, and it leaves no files. */
    bool is_check;
    struct jail_terminal terminal;
    struct jail_request request;
};

/* Expands the templates of the subtask that `run->program` names and gathers its inputs, so that
 * the request can run. Returns false with the outcome when the subtask is refused. */
bool program_prepare(struct run *run, struct outcome *outcome);
/* Gives the outcome REFUSED with `what` as the reason, and returns false. */
bool program_refuse(struct outcome *outcome, const char *what);
/* Adds one file to the inputs, which is the blob. Returns false with the outcome. */
bool program_gather(struct run *run, const char *name, struct store_blob *blob, bool is_executable,
                    struct outcome *outcome);
/* Adds the files of a folder to the inputs. The blob is their archive. Returns false with the
 * outcome. */
bool program_gather_folder(struct run *run, const char *name, struct store_blob *blob,
                           struct outcome *outcome);
/* Returns true when the job brings the file back as an output. */
bool program_brings_back(const struct run *run, const char *name);
/* program_wasm.c. Puts the engine before the words of a module; for other subtasks nothing changes.
 * The inputs are gathered. Returns false with the outcome. */
bool program_settle_wasm(struct run *run, struct outcome *outcome);
/* Gives the outcome of a module that could not run, or trapped, the reason in words. */
void program_explain_wasm(const struct run *run, const struct jail_reply *reply,
                          struct outcome *outcome);
/* Makes an empty list with room for `count` texts. Returns false without memory. */
bool program_texts_reserve(struct texts *texts, size_t count);
void program_texts_clear(struct texts *texts);
/* Frees what program_prepare has made, whatever it returned. */
void program_run_clear(struct run *run);

#endif
