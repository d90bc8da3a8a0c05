/* provider/jail/jail_internal.h - what jail.c, jail_command.c and jail_wire.c share. Not for others.
 */
#ifndef BOURSE_PROVIDER_JAIL_JAIL_INTERNAL_H
#define BOURSE_PROVIDER_JAIL_JAIL_INTERNAL_H

#include "provider/jail/jail.h"

#include <pthread.h>

struct jail {
    int socket, control;
    int capture[2]; /* sealed memory files: the worker writes stdout and stderr there */
    struct cgroup *group;
    struct jail_limits limits;
    bool keep;
    uint32_t landlock_abi;
    bool ended;
    bool capture_large; /* the last run left much in them */
    uint32_t number;    /* of the last run */
    pthread_mutex_t lock;
    bool running;                       /* under the lock */
    enum result_outcome cancel_outcome; /* under the lock; OUTCOME_OK: not cancelled */
};

/* jail_command.c: bwrap's arguments are the policy of the jail. */
enum { COMMAND_TEXTS = 40, COMMAND_TEXT_BYTES = 4160 };
enum command_file {
    COMMAND_SOCKET,
    COMMAND_FILTER,
    COMMAND_PASSWD,
    COMMAND_GROUP,
    COMMAND_WORKER,
    COMMAND_TENSOR, /* last: only in jails that have it */
    COMMAND_FILES
};
struct command {
    const char *argv[LAUNCHER_ARGUMENTS + 1];
    size_t count;
    char texts[COMMAND_TEXTS][128]; /* those that had to be made */
    size_t text_count;
    bool is_cut;              /* it lacks words: not to be used */
    int files[COMMAND_FILES]; /* descriptors 3, 4, ... of bwrap; the last may be absent, -1 */
};
/* The caller sets files[COMMAND_SOCKET] before; the others are made here and the caller's to
 * close. */
bool command_build(const struct jail_spec *spec, struct command *command,
                   struct problem *ret_problem);
void command_close(struct command *command); /* all but the socket */

/* jail_wire.c */
struct wire_hello {
    uint32_t version, facts, landlock_abi;
    uint64_t namespaces[8];
};
bool wire_read_hello(const uint8_t *bytes, size_t length, struct wire_hello *ret_hello);
/* Sends RUN (and GO when there is nothing to fill). False with errno: E2BIG when it is too
 * large. */
bool wire_send_run(int socket, uint32_t number, const struct jail_request *request,
                   const struct jail_limits *limits, bool keep, bool stdin_given);
bool wire_send(int socket, unsigned kind, uint32_t number);
bool wire_send_go(int socket, uint32_t number, const struct jail_request *request);
/* False when it does not decode or does not answer `request` (NULL: a NOOP or CLEAN). Takes the
 * files over. */
bool wire_read_reply(const uint8_t *bytes, size_t length, const struct jail_request *request,
                     int *files, size_t file_count, struct jail_reply *reply,
                     uint64_t ret_captured[2]);

/* Takes the file over. False when it is not one that the request asked for. */
bool wire_read_saved(const uint8_t *bytes, size_t length, const struct jail_request *request,
                     int *files, size_t file_count, struct jail_reply *reply);
/* What was sent before the reply is the checkpoint, or `dropped`. False when two have one name. */
bool wire_settle_saved(struct jail_reply *reply);
void wire_drop_saved(struct jail_reply *reply);

/* Runs a program with /work kept and stdin given as it is; for image.c. */
void jail_run_given(struct jail *jail, const struct jail_request *request,
                    struct jail_reply *ret_reply);
/* Empties /work and the other folders now. */
bool jail_clean(struct jail *jail);
/* What the worker said of Landlock, for isolation.c. */
int jail_landlock_abi(const struct jail *jail);

#endif
