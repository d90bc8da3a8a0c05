/* tests/support/broker_process.h runs a real bourse-broker in a folder of its own, with clients of
 * it. */
#ifndef BOURSE_TESTS_BROKER_PROCESS_H
#define BOURSE_TESTS_BROKER_PROCESS_H

#include "base/id.h"
#include "protocol/codec.h"
#include "protocol/dialogue.h"
#include "protocol/identity.h"
#include "runtime/link.h"
#include "runtime/market.h"

#include <stdbool.h>
#include <sys/types.h>

struct broker_process {
    char folder[128];
    pid_t pid; /* 0: the broker does not run */
    struct market market;
    struct identity *owner; /* the key of a consumer and operator, with 100 credits */
};

/* Makes a fresh folder under /tmp with broker.yaml (plus `extra` lines). Nothing runs yet. */
void broker_process_init(struct broker_process *self, const char *extra);
/* Starts the broker and waits until market.yaml is there. */
void broker_process_start(struct broker_process *self);
/* Sends `signal`, waits for the end, and returns the wait status. */
int broker_process_stop(struct broker_process *self, int signal);
/* Stops what runs, and removes the folder. */
void broker_process_fini(struct broker_process *self);
/* Runs bourse-broker with these words and returns its exit status; its output goes to `output`. */
int broker_process_run(const char *const words[], char *output, size_t capacity);

struct broker_client {
    void *context;
    struct link *link;
    struct dialogue *dialogue;
};

/* Connects and waits for the Welcome. */
void broker_client_open(struct broker_client *self, const struct broker_process *broker,
                        const struct identity *identity, enum session_role role);
/* Drops the client's connection, makes a new one, and waits for the Welcome. */
void broker_client_reopen(struct broker_client *self);
void broker_client_close(struct broker_client *self);
/* Sends a request under `id` (NULL: a new one) and waits for its answer (two minutes at most). The
 * caller frees event.body. */
struct dialogue_event broker_client_ask(struct broker_client *self, enum message_type type,
                                        const struct id128 *id, const ProtobufCMessage *body);
/* Sends what was requested, and returns the next event of any type (two minutes at most). The
 * caller frees event.body. */
struct dialogue_event broker_client_hear(struct broker_client *self);
/* Waits for a push of this type. */
struct dialogue_event broker_client_push(struct broker_client *self, enum message_type type);

#endif
