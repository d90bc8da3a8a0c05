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

/* A struct output_pattern is an output that is a pattern. Another output has only NULL there. */
struct output_pattern {
    char *text;       /* the whole pattern */
    char *folder;     /* the folder that its files lie in, or "./" */
    const char *rest; /* the pattern below the folder; part of the text */
};

struct run {
    const struct program *program;
    const struct dispatch_inputs *dispatch; /* data from the dispatch; may be empty */
    struct subtask_terms terms;
    struct template_values values;
    struct texts arguments, environment, outputs, saved, placed;
    struct jail_input *inputs;
    size_t input_count, input_capacity;
    /* Each list goes by the output's number. The first has the archives of folders and patterns,
     * and the last two are for the request. `outputs` has the names for the result. */
    struct folder_archive folders[LIMIT_OUTPUTS];
    struct output_pattern patterns[LIMIT_OUTPUTS];
    const char *output_names[LIMIT_OUTPUTS], *output_patterns[LIMIT_OUTPUTS];
    char *standard_input;
    /* A check uses the market's seed: its verdict counts, and it leaves no files. */
    bool is_check;
    struct jail_terminal terminal;
    struct hash32 opens; /* what a model's run leaves open; zero: nothing that is known */
    struct jail_request request;
};

/* Expands the templates of the subtask that `run->program` names and gathers its inputs, so that
 * the request can run. Returns false with the outcome when the subtask is refused. */
bool program_prepare(struct run *run, struct outcome *outcome);
/* Gives the outcome REFUSED with `what` as the reason, and returns false. */
bool program_refuse(struct outcome *outcome, const char *what);
/* Refuses one of several things of the manifest, by its place. A name would be a peer's bytes. */
bool program_refuse_one(struct outcome *outcome, const char *kind, size_t index, const char *what);
/* Makes room for `count` texts. Returns false when memory is short. */
bool program_texts_reserve(struct texts *texts, size_t count);
void program_texts_clear(struct texts *texts);
/* Adds one file to the inputs, which is the blob. Returns false with the outcome. */
bool program_gather(struct run *run, const char *name, struct store_blob *blob, bool is_executable,
                    struct outcome *outcome);
/* Adds the entries of a folder to the inputs. The blob is their archive. An entry that the whole
 * `pattern` of an output does not match is refused; NULL: every entry may be there. Returns false
 * with the outcome. */
bool program_gather_folder(struct run *run, const char *name, const char *pattern,
                           struct store_blob *blob, struct outcome *outcome);

/* program_tree.c. */

/* Reads the listing of a folder, and gives the inputs their permissions and times. All files of the
 * listing are among the inputs already. Adds the folders and links. Returns false with the
 * outcome. */
bool program_gather_tree(struct run *run, const struct store_blob *blob, struct outcome *outcome);
/* Adds a folder, or a link when the target is not "". A name that cannot be in the work folder is
 * refused, and so is a link that could lead out. Returns the input, or NULL with the problem. */
struct jail_input *program_gather_bare(struct run *run, const char *name, const char *target,
                                       struct problem *ret_problem);
/* Keeps a text as long as the run: the folder and the name behind it. Returns NULL when memory is
 * short. */
char *program_keep_text(struct run *run, const char *folder, const char *name);

/* program_outputs.c. */

/* Expands the names of the outputs for the request. Returns false with the outcome. */
bool program_expand_outputs(struct run *run, struct outcome *outcome);
void program_outputs_clear(struct run *run);
/* Returns true when the output is an archive, of a folder or of a pattern's files. */
bool program_is_archive(const struct run *run, size_t output);
/* Returns true when folders of the job's outputs keep their links and empty folders. */
bool program_keeps_trees(const Bourse__V1__Manifest *manifest);
/* Returns true when the job brings the file back as an output. */
bool program_brings_back(const struct run *run, const char *name);
/* program_wasm.c. Puts the engine before the words of a module; for other subtasks nothing changes.
 * The inputs are gathered. Returns false with the outcome. */
bool program_settle_wasm(struct run *run, struct outcome *outcome);
/* Gives the outcome of a module that could not run, or trapped, the reason in words. */
void program_explain_wasm(const struct run *run, const struct jail_reply *reply,
                          struct outcome *outcome);
/* program_model.c. Refuses words that bourse-onnx would refuse, before a jail has any work with
 * them. Returns false with the outcome. */
bool program_settle_model(const struct run *run, struct outcome *outcome);
/* Returns true for a file that an open model may keep: one that is no input of the run. */
bool program_keeps_model(const struct run *run, const char *name);
/* Lets the jail map the arrays of the run's inputs, the largest first, and leaves out the files of
 * a model that the resident has open. The contents are settled. */
void program_place_model(struct run *run);
/* Makes an empty list with room for `count` texts. Returns false without memory. */
bool program_texts_reserve(struct texts *texts, size_t count);
void program_texts_clear(struct texts *texts);
/* Returns the pattern of the output that is taken, or NULL when the output is none. */
const char *program_taken_pattern(const Bourse__V1__Manifest *manifest,
                                  const Bourse__V1__ManifestFrom *from);
/* Frees what program_prepare has made, whatever it returned. */
void program_run_clear(struct run *run);

#endif
