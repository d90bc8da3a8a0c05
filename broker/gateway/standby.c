#include "broker/gateway/standby.h"

#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "broker/gateway/allowance.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/clock.h"
#include "runtime/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ANSWER_RATE = 2000, /* a second, to all together */
    TURN_MS = 20,       /* so long a stop may take */
    ADDRESS_SIZE = 128
};

struct standby {
    struct router *router;
    pthread_t thread;
    atomic_bool ends;
    struct allowance answers;
    uint8_t *buffer; /* LIMIT_MESSAGE_BYTES, for outgoing messages */
    pthread_mutex_t mutex;
    char leader[ADDRESS_SIZE]; /* guarded by `mutex`, and so is the log time */
    int64_t log_time_ms;
};

/* An answer may get lost without harm: its sender tries again. */
static void send(struct standby *standby, const struct router_message *message,
                 const struct envelope *asked, int64_t log_time_ms, const struct outgoing *answer)
{
    const struct envelope envelope = {.version = ENVELOPE_VERSION,
                                      .type = (uint16_t)answer->type,
                                      .session = asked->session,
                                      .id = asked->id,
                                      .created_ms = log_time_ms,
                                      .body = answer->body,
                                      .body_length = (uint32_t)answer->length};
    const size_t size = envelope_size(&envelope);
    envelope_write(&envelope, standby->buffer, LIMIT_MESSAGE_BYTES);
    (void)router_send(standby->router, &message->route, &message->client, standby->buffer, size);
}

static void answer(struct standby *standby, const struct router_message *message)
{
    struct envelope asked;
    char leader[ADDRESS_SIZE];
    if (envelope_read(message->bytes, message->length, LIMIT_MESSAGE_BYTES, &asked) !=
            ENVELOPE_OK ||
        asked.type == MESSAGE_GOODBYE ||
        !allowance_take(&standby->answers, ANSWER_RATE, clock_monotonic_ns())) {
        return;
    }
    pthread_mutex_lock(&standby->mutex);
    (void)snprintf(leader, sizeof leader, "%s", standby->leader);
    const int64_t log_time_ms = standby->log_time_ms;
    pthread_mutex_unlock(&standby->mutex);
    struct outgoing *outgoing = outgoing_not_leader(asked.session, &asked.id, leader);
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    send(standby, message, &asked, log_time_ms, outgoing);
    outgoing_destroy(&outgoing);
}

static void *run(void *argument)
{
    struct standby *standby = argument;
    struct router_message message;
    process_name_thread("standby");
    while (!atomic_load(&standby->ends)) {
        const int received = router_receive(standby->router, TURN_MS, &message);
        if (received < 0) {
            fatal("the control socket is broken");
        }
        if (received > 0) {
            answer(standby, &message);
        }
    }
    return NULL;
}

struct standby *standby_start(struct router *router)
{
    struct standby *standby = calloc(1, sizeof *standby);
    if (standby == NULL) {
        fatal("the broker cannot follow: out of memory");
    }
    standby->router = router;
    standby->buffer = malloc(LIMIT_MESSAGE_BYTES);
    pthread_mutex_init(&standby->mutex, NULL);
    if (standby->buffer == NULL || pthread_create(&standby->thread, NULL, run, standby) != 0) {
        fatal("the broker cannot follow: out of memory or threads");
    }
    return standby;
}

void standby_say(struct standby *standby, const char *leader, int64_t log_time_ms)
{
    pthread_mutex_lock(&standby->mutex);
    (void)snprintf(standby->leader, sizeof standby->leader, "%s", leader);
    standby->log_time_ms = log_time_ms;
    pthread_mutex_unlock(&standby->mutex);
}

void standby_stop(struct standby **self)
{
    struct standby *standby = *self;
    if (standby != NULL) {
        atomic_store(&standby->ends, true);
        pthread_join(standby->thread, NULL);
        pthread_mutex_destroy(&standby->mutex);
        free(standby->buffer);
        free(standby);
        *self = NULL;
    }
}
