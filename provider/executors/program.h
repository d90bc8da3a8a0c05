/* provider/executors/program.h runs one subtask of a command, tensor, kernel, plug-in, WASM or ONNX
 * job in a jail.
 *
 * The manifest has passed the codec; this module checks its requests against what the owner allows.
 * formats/template.h expands templates per subtask. Every failure has a typed outcome, such as
 * REFUSED for a wrong request and PROGRAM_MISSING for a program that is not offered. */
#ifndef BOURSE_PROVIDER_EXECUTORS_PROGRAM_H
#define BOURSE_PROVIDER_EXECUTORS_PROGRAM_H

#include "formats/template.h"
#include "planner/cost/catalogue.h"
#include "protocol/codec.h"
#include "provider/config.h"
#include "provider/jail/jail.h"
#include "provider/tensor/ahead.h"
#include "provider/work/outcome.h"
#include "provider/work/store.h"

#include <stdbool.h>
#include <stddef.h>

struct program {
    const Bourse__V1__Manifest *manifest;
    const struct config *config;
    uint32_t index;            /* index of the subtask */
    const struct hash32 *seed; /* seed from the dispatch; NULL: none */
    /* The inputs are those of program_input, then those of program_taken, then the checkpoint's. */
    struct store_blob *inputs;
    const struct dispatch_inputs *dispatch; /* data that came with the dispatch; NULL: nothing */
    bool has_checkpoints;                   /* the job says that its programs save their state */
    struct jail *jail;
    /* Large outputs may stay in the jail through `left`, unless it is NULL. Each has at
     * most `left_bytes`, and may_leave() must return true. */
    struct left_outputs *left;
    uint64_t left_bytes;
    bool (*may_leave)(void *context);
    void (*take_terminal)(void *context, int master); /* as in struct jail_terminal */
    /* Gets the figures of a run on a device for kernels. */
    void (*note_held)(void *context, const struct held_figures *figures);
    void *context;
    struct store *store;                      /* makes room for outputs */
    int64_t limit_ms;                         /* wall time that the lease allows */
    const struct catalogue_device *simulates; /* not NULL: time and energy are this device's */
    /* A value above 0 means that the arguments are for the jail's resident: an operation for
     * bourse-tensor or bourse-plugin, a launch or an operation for bourse-kernel, or a run of a
     * model for bourse-onnx. */
    uint32_t tensor_threads;
    /* A device means that the arguments are a launch on it, or an operation that it computes. */
    const struct kernel_device *kernel_device;
    uint64_t kernel_memory_bytes; /* of the device's own memory, for buffers */
    uint64_t kernel_held_bytes;   /* most bytes that the device holds for later runs */
    /* The run may get this end of a connection for inputs of the next one (copy_ahead.h). */
    bool has_ahead;
    int ahead;
    const struct jail_made *made; /* outputs of the jail's last run, as in struct jail_request */
    size_t made_count;
    bool is_plugin; /* the arguments are an operation of the plug-in */
    bool is_model;  /* the arguments are a run of a model */
    /* The hash names what the jail's resident has open (program_model.c); zero: nothing is known to
     * be open. A run that ends well leaves the hash of what it opened, and any other run leaves
     * zero. The pointer is not NULL for a model. */
    struct hash32 *open_model;
    /* An engine means that the arguments are a module, which the engine runs in a jail of that
     * memory. */
    const struct wasm_engine *wasm_engine;
    uint64_t wasm_memory_bytes;
};

/* Checks a decoded manifest once: the executor, the count, and the templates and paths of every
 * subtask. Returns false with the reason when the manifest is refused. */
bool program_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* The name in the manifest of an input that is the listing of a folder (program_tree.c). */
#define PROGRAM_LISTING "."

/* Inputs of a subtask are counted by `position`: its own come first, then the shared ones. */
size_t program_input_count(const Bourse__V1__Manifest *manifest, uint32_t index);
const Bourse__V1__ManifestInput *program_input(const Bourse__V1__Manifest *manifest, uint32_t index,
                                               size_t position);
/* Returns true when no later subtask of the job has this input. Then nobody is expected to read the
 * input again. */
bool program_reads_last(const Bourse__V1__Manifest *manifest, uint32_t index, size_t position);

/* Writes a name for people, such as "task split" or "subtask 3". */
enum { PROGRAM_SUBTASK_NAME_SIZE = LIMIT_NAME_BYTES + 16 };
void program_subtask_name(const Bourse__V1__Manifest *manifest, uint32_t index,
                          char ret_name[PROGRAM_SUBTASK_NAME_SIZE]);
/* A subtask waits for these files, which it takes from other subtasks. */
size_t program_taken_count(const Bourse__V1__Manifest *manifest, uint32_t index);
const Bourse__V1__ManifestFrom *program_taken(const Bourse__V1__Manifest *manifest, uint32_t index,
                                              size_t position);
/* Returns true when another subtask takes an output of this one. */
bool program_is_taken(const Bourse__V1__Manifest *manifest, uint32_t index);
/* A subtask takes its inputs from here. */
struct program_source {
    const Bourse__V1__Manifest *manifest;
    uint32_t index;
    const struct dispatch_inputs *dispatch; /* may be empty */
    struct store *store;
    const struct id128 *job;
    const atomic_bool *give_up; /* when it becomes true, nobody waits for an input any more */
};
/* Takes every input of the subtask, and waits for those that are on their way. They come as struct
 * program has them. On failure the outcome says why, and nothing is held. */
bool program_take_inputs(const struct program_source *source, struct outcome *outcome,
                         struct store_blob **ret_inputs, size_t *ret_count);
/* Takes one input of the manifest, which the broker may lend if `may_lend`. */
bool program_take_input(const struct program_source *source, const Bourse__V1__ManifestInput *input,
                        bool may_lend, struct outcome *outcome, struct store_blob *ret_blob);
/* Releases the inputs, and frees the list. */
void program_release_inputs(struct store *store, struct store_blob *inputs, size_t count);

/* An input that a device for kernels may hold, and that it can get before the subtask runs. */
struct program_ahead {
    int fd; /* the input's */
    struct ahead_input input;
    struct stamp stamp; /* known: the file belongs to the broker, and had its hash then */
};
/* Lists such inputs of the subtask on program->kernel_device, at most AHEAD_INPUTS. The program
 * needs its manifest, config, index, inputs, dispatch and device. Hashes the inputs that are lent.
 * Returns their number; 0 also when the subtask is refused. Any thread may call this. */
size_t program_list_ahead(const struct program *program,
                          struct program_ahead ret_items[AHEAD_INPUTS]);

/* Runs the subtask and fills the outcome, outputs included. If *ret_jail_ended is set, the caller
 * must close the jail. */
void program_run(const struct program *program, struct outcome *outcome, bool *ret_jail_ended);

#endif
