/* provider/jail/jail_internal.h declares the parts that jail.c, jail_freeze.c, jail_inputs.c,
 * jail_command.c and jail_wire.c share. No other file includes it, except image.c, isolation.c and
 * watcher.c. */
#ifndef BOURSE_PROVIDER_JAIL_JAIL_INTERNAL_H
#define BOURSE_PROVIDER_JAIL_JAIL_INTERNAL_H

#include "provider/jail/jail.h"
#include "provider/jail/watcher.h"
#include "provider/worker/wire.h"

#include <pthread.h>

struct jail {
    int socket, control;
    /* The worker writes stdout and stderr to these sealed memory files. */
    int capture[2];
    struct cgroup *group;
    struct jail_limits limits;
    bool keep;
    uint32_t landlock_abi;
    bool ended;
    bool capture_large; /* the last run left much in the capture files */
    uint32_t number;    /* number of the last run */
    pthread_mutex_t lock;
    bool running;                       /* guarded by the lock */
    enum result_outcome cancel_outcome; /* guarded by the lock; OUTCOME_OK: not cancelled */
    uint64_t kept_bytes;                /* guarded by the lock: capture_bytes of the last run */
    /* Guarded by the lock. Begin of the freeze, 0 without one; the run's freezes that are over. */
    int64_t frozen_since_ns, frozen_ns;
};

/* jail_freeze.c lets programs stand still. */

/* Counts the frozen time of a new run from now on. The lock is held. */
void jail_freeze_restart(struct jail *jail);
/* Ends the freeze without a word to the worker. The lock is held. */
void jail_freeze_end(struct jail *jail);
/* Returns how long the present run has been frozen. */
int64_t jail_freeze_total_ns(struct jail *jail);

/* jail_command.c builds bwrap's arguments, which are the policy of the jail. */
enum { COMMAND_TEXTS = 40, COMMAND_TEXT_BYTES = 4160 };
enum command_file {
    COMMAND_SOCKET,
    COMMAND_FILTER,
    COMMAND_PASSWD,
    COMMAND_GROUP,
    COMMAND_WORKER,
    COMMAND_HELPER, /* only in jails with a resident, or with bourse-wasm.cjs or bourse-wasm */
    /* The owner's program in jails with bourse-plugin, the settings of an execution provider in
     * those with bourse-onnx; else absent. */
    COMMAND_OWNER,
    COMMAND_FILES
};
struct jail_command {
    const char *argv[LAUNCHER_ARGUMENTS + 1];
    size_t count;
    char texts[COMMAND_TEXTS][128]; /* arguments that had to be formatted */
    size_t text_count;
    bool is_cut;              /* arguments are missing, so do not use the command */
    int files[COMMAND_FILES]; /* descriptors 3, 4, ... of bwrap; the last two are -1 if absent */
};
/* Builds the command. The caller sets files[COMMAND_SOCKET] before. This function makes the other
 * files, and the caller closes them. */
bool jail_command_build(const struct jail_spec *spec, struct jail_command *command,
                        struct problem *ret_problem);
/* Builds the command of a watcher (watcher.h), likewise. The watcher's program has the place of the
 * worker among the files, and no file comes after it. */
bool jail_command_build_watcher(const struct watcher_spec *spec, struct jail_command *command,
                                struct problem *ret_problem);
void jail_command_close(struct jail_command *command); /* closes all files except the socket */

/* jail_wire.c encodes and decodes the messages of the worker. */

/* Returns the pattern of an output, or NULL. */
const char *jail_pattern(const struct jail_request *request, size_t output);
struct wire_hello {
    uint32_t version, facts, landlock_abi;
    uint64_t namespaces[8];
};
bool jail_wire_read_hello(const uint8_t *bytes, size_t length, struct wire_hello *ret_hello);
/* Sends RUN, and GO when no input needs filling. Returns false with errno; E2BIG means that the
 * request is too large. */
bool jail_wire_send_run(int socket, uint32_t number, const struct jail_request *request,
                        const struct jail_limits *limits, bool keep, bool stdin_given);
bool jail_wire_send(int socket, unsigned kind, uint32_t number);
bool jail_wire_send_go(int socket, uint32_t number, const struct jail_request *request);
/* Reads a reply and takes the files over. Returns false when the message does not decode or does
 * not answer `request` (NULL: a NOOP or CLEAN). */
bool jail_wire_read_reply(const uint8_t *bytes, size_t length, const struct jail_request *request,
                          int *files, size_t file_count, struct jail_reply *reply,
                          uint64_t ret_captured[2]);

/* Hands the terminal's master to the request. Returns false when the request wants none, or the
 * descriptor is something else. */
bool jail_wire_take_terminal(const uint8_t *bytes, size_t length,
                             const struct jail_request *request, int *files, size_t file_count);
/* Reads one file of a checkpoint and takes the file over. Returns false when the request did not
 * ask for it. */
bool jail_wire_read_saved(const uint8_t *bytes, size_t length, const struct jail_request *request,
                          int *files, size_t file_count, struct jail_reply *reply);
void jail_wire_drop_saved(struct jail_reply *reply);

/* Files of a folder that is an output, as one message carries them. */
struct jail_entries {
    struct jail_entry items[WIRE_ENTRIES_MAX];
    size_t count;
};
/* Reads such a message; the files stay the caller's. Returns false when the request did not ask for
 * these files. */
bool jail_wire_read_entries(const uint8_t *bytes, size_t length, const struct jail_request *request,
                            const int *files, size_t file_count, struct jail_entries *ret_entries);

/* jail_inputs.c places the inputs of a run, and checks those that the jail reads in place. */

struct staging {
    const struct jail_request *request;
    size_t next;                          /* input to be placed, if it has a place */
    size_t places;                        /* all places of the run */
    size_t done;                          /* places filled so far */
    uint64_t entries;                     /* files of folders copied so far */
    bool failed;                          /* the reply says why; the run is being cancelled */
    struct stamp mapped[JAIL_MAPPED_MAX]; /* stamp of each mapped input, from before its hashing */
    size_t checked;                       /* mapped inputs checked so far */
};

/* Returns true for an input that the agent fills a file for. */
bool jail_inputs_has_place(const struct jail_input *input);
/* Fills the files that came from the jail with the next inputs, and closes the files. On failure
 * the reply says why, and the staging has failed. */
void jail_inputs_place(struct staging *staging, int *files, size_t count, struct jail_reply *reply);
/* Checks the hashes of mapped inputs before anything is computed. Returns false when one is wrong;
 * the reply says which. */
bool jail_inputs_check(struct staging *staging, struct jail_reply *reply);
/* Blames a mapped input, and not the job, when the input was changed or unreadable during the
 * run. */
void jail_inputs_blame(const struct staging *staging, struct jail_reply *reply);
/* Returns true when a mapped input, of which the resident was told the hash, has other bytes now.
 * The resident may hold these bytes under the hash, so the jail is of no further use. */
bool jail_inputs_told_wrong(const struct staging *staging);
/* Frees the memory of mapped inputs that nobody is expected to read again. */
void jail_inputs_release(const struct jail_request *request);

/* Gives the reply an outcome with a detail, and returns false. */
__attribute__((format(printf, 3, 4))) bool
jail_conclude(struct jail_reply *reply, enum result_outcome outcome, const char *format, ...);
/* Returns a name for a detail, without characters that could upset a terminal. */
const char *jail_shown(const char *name, char ret_text[128]);

/* Runs a program with /work kept and stdin given as it is; image.c uses it. */
void jail_run_given(struct jail *jail, const struct jail_request *request,
                    struct jail_reply *ret_reply);
/* Empties /work and the other folders now. */
bool jail_clean(struct jail *jail);
/* Returns the Landlock version that the worker reported; isolation.c uses it. */
int jail_landlock_abi(const struct jail *jail);

#endif
