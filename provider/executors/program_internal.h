/* provider/executors/program_internal.h declares how program_prepare.c hands a prepared subtask to
 * program.c, which runs it. No other file includes it. */
#ifndef BOURSE_PROVIDER_EXECUTORS_PROGRAM_INTERNAL_H
#define BOURSE_PROVIDER_EXECUTORS_PROGRAM_INTERNAL_H

#include "formats/template.h"
#include "protocol/subtask.h"
#include "provider/executors/program.h"

/* Texts that a request points to, freed together. */
struct texts {
    char **items; /* NULL-terminated */
    size_t count;
};

struct run {
    const struct program *program;
    const struct dispatch_inputs *dispatch; /* data from the dispatch; may be empty */
    struct subtask_terms terms;
    struct template_values values;
    struct texts arguments, environment, outputs, saved;
    struct jail_input *inputs;
    size_t input_count;
    char *standard_input;
    /* A check uses the market's seed: its verdict counts, and it leaves no files. */
    bool is_check;
    struct jail_request request;
};

/* Expands the templates of the subtask that `run->program` names and gathers its inputs, so that
 * the request can run. Returns false with the outcome when the subtask is refused. */
bool program_prepare(struct run *run, struct outcome *outcome);
/* Gives the outcome REFUSED with `what` as the reason, and returns false. */
bool program_refuse(struct outcome *outcome, const char *what);
/* Returns true when the job brings the file back as an output. */
bool program_brings_back(const struct run *run, const char *name);
/* Frees what program_prepare has made, whatever it returned. */
void program_run_clear(struct run *run);

#endif
