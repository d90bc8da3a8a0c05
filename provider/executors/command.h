/* provider/executors/command.h - runs one subtask of a command or tensor job in a jail.
 *
 * The manifest has passed the codec; what it asks for is checked here against what the owner
 * allows. Templates are expanded per subtask by formats/template.h. Everything that can go wrong
 * has a typed outcome: what the job asks wrongly is REFUSED, a program that is not offered
 * PROGRAM_MISSING, and so on. */
#ifndef BOURSE_PROVIDER_EXECUTORS_COMMAND_H
#define BOURSE_PROVIDER_EXECUTORS_COMMAND_H

#include "formats/template.h"
#include "planner/cost/catalogue.h"
#include "protocol/codec.h"
#include "provider/config.h"
#include "provider/jail/jail.h"
#include "provider/work/outcome.h"
#include "provider/work/store.h"

#include <stdbool.h>
#include <stddef.h>

struct command {
    const Bourse__V1__Manifest *manifest;
    const struct config *config;
    uint32_t index;            /* of the subtask */
    const struct hash32 *seed; /* that came with its dispatch; NULL: none */
    struct store_blob
        *inputs; /* all that command_input names, then all of command_taken, then the checkpoint */
    const struct given_files *given; /* that came with its dispatch; NULL: nothing */
    bool has_checkpoints;            /* its job says that its programs save their state */
    struct jail *jail;
    struct jail_rest *rest;           /* not NULL: large outputs may stay in the jail, */
    uint64_t rest_bytes;              /* of no more than this each, */
    bool (*may_leave)(void *context); /* while this says so */
    void *context;
    struct store *store;                      /* makes room for outputs */
    int64_t limit_ms;                         /* wall time that the lease allows */
    const struct catalogue_device *simulates; /* not NULL: time and energy are this device's */
    uint32_t tensor_threads; /* not 0: the arguments are an operation for bourse-tensor */
};

/* Checks a decoded manifest once: the executor, the count, templates and paths that hold for every
 * subtask. False: it is refused, with the reason. */
bool command_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* The inputs of a subtask: its own first, then the shared ones. `position` counts both. */
size_t command_input_count(const Bourse__V1__Manifest *manifest, uint32_t index);
const Bourse__V1__ManifestInput *command_input(const Bourse__V1__Manifest *manifest, uint32_t index,
                                               size_t position);
/* Whether no later subtask of the job has this input, too: so nobody is expected to read it
 * again. */
bool command_reads_last(const Bourse__V1__Manifest *manifest, uint32_t index, size_t position);

/* "task split", "subtask 3", for people. */
enum { COMMAND_NAME_SIZE = LIMIT_NAME_BYTES + 16 };
void command_name(const Bourse__V1__Manifest *manifest, uint32_t index,
                  char ret_name[COMMAND_NAME_SIZE]);
/* The files that a subtask takes from others, which it waits for. */
size_t command_taken_count(const Bourse__V1__Manifest *manifest, uint32_t index);
const Bourse__V1__ManifestFrom *command_taken(const Bourse__V1__Manifest *manifest, uint32_t index,
                                              size_t position);
/* Runs it and fills the outcome, outputs included. `ret_jail_ended`: close the jail. */
void command_run(const struct command *command, struct outcome *outcome, bool *ret_jail_ended);

#endif
