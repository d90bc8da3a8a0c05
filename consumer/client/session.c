#include "consumer/client/session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 256, PENDING_BYTES_MAX = 8 << 20 };

struct watch {
    struct id128 id; /* id of its JobsRequest, the same after every reconnect */
    struct id128 job;
    uint64_t index; /* index of the newest row seen */
};

struct consumer_session {
    struct dialogue *dialogue;
    struct watch watches[CONSUMER_WATCH_MAX];
    size_t watch_count;
};

struct consumer_session *consumer_session_create(const struct identity *identity,
                                                 const char *program)
{
    return consumer_session_create_at(identity, program, NULL, 0);
}

struct consumer_session *consumer_session_create_at(const struct identity *identity,
                                                    const char *program,
                                                    const struct contact *addresses, size_t count)
{
    struct consumer_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->dialogue =
        dialogue_create(&(struct dialogue_config){.identity = identity,
                                                  .role = SESSION_CONSUMER,
                                                  .program = program,
                                                  .pending_max = PENDING_MAX,
                                                  .pending_bytes_max = PENDING_BYTES_MAX,
                                                  .addresses = addresses,
                                                  .address_count = count});
    if (session->dialogue == NULL) {
        consumer_session_destroy(&session);
    }
    return session;
}

void consumer_session_destroy(struct consumer_session **self)
{
    if (*self != NULL) {
        dialogue_destroy(&(*self)->dialogue);
        free(*self);
        *self = NULL;
    }
}

void consumer_event_clear(struct consumer_event *event)
{
    if (event->body != NULL) {
        codec_free(&event->body);
    }
    *event = (struct consumer_event){.type = CONSUMER_NOTHING};
}

void consumer_session_read_anywhere(struct consumer_session *session, uint64_t least_index)
{
    dialogue_read_anywhere(session->dialogue, least_index);
}

struct dialogue_state consumer_session_state(const struct consumer_session *session)
{
    return dialogue_state(session->dialogue);
}

void consumer_session_connected(struct consumer_session *session, int64_t now_ns, uint64_t dice)
{
    dialogue_connected(session->dialogue, now_ns, dice);
}

const struct contact *consumer_session_address(const struct consumer_session *session)
{
    return dialogue_address(session->dialogue);
}

const struct contacts *consumer_session_contacts(const struct consumer_session *session)
{
    return dialogue_contacts(session->dialogue);
}

bool consumer_session_ready(const struct consumer_session *session)
{
    return dialogue_ready(session->dialogue);
}

const Bourse__V1__Welcome *consumer_session_welcome(const struct consumer_session *session)
{
    return dialogue_welcome(session->dialogue);
}

int64_t consumer_session_log_time_ms(const struct consumer_session *session, int64_t now_ns)
{
    return dialogue_log_time_ms(session->dialogue, now_ns);
}

static enum consumer_status status_of(enum dialogue_status status)
{
    switch (status) {
    case DIALOGUE_OK:
        return CONSUMER_OK;
    case DIALOGUE_FULL:
    case DIALOGUE_NOT_READY: /* requests wait instead, so they never get this */
        return CONSUMER_FULL;
    case DIALOGUE_TOO_LARGE:
        return CONSUMER_TOO_LARGE;
    case DIALOGUE_OUT_OF_MEMORY:
        return CONSUMER_OUT_OF_MEMORY;
    }
    return CONSUMER_OUT_OF_MEMORY;
}

enum consumer_status consumer_session_request(struct consumer_session *session, int64_t now_ns,
                                              enum message_type type, const struct id128 *id,
                                              const ProtobufCMessage *body)
{
    return status_of(dialogue_request(session->dialogue, now_ns, type, id, body));
}

void consumer_session_forget(struct consumer_session *session, const struct id128 *id)
{
    dialogue_forget(session->dialogue, id);
}

/* ---------------------------------------------------------------- watches */

static struct watch *watch_of_job(struct consumer_session *session, const struct id128 *job)
{
    for (size_t i = 0; i < session->watch_count; i++) {
        if (id128_equal(&session->watches[i].job, job)) {
            return &session->watches[i];
        }
    }
    return NULL;
}

static struct watch *watch_of_request(struct consumer_session *session, const struct id128 *id)
{
    for (size_t i = 0; i < session->watch_count; i++) {
        if (id128_equal(&session->watches[i].id, id)) {
            return &session->watches[i];
        }
    }
    return NULL;
}

static void watch_end(struct consumer_session *session, struct watch *watch)
{
    dialogue_forget(session->dialogue, &watch->id);
    *watch = session->watches[--session->watch_count];
}

static enum dialogue_status watch_ask(struct consumer_session *session, int64_t now_ns,
                                      const struct watch *watch)
{
    struct id128 job = watch->job;
    Bourse__V1__JobsRequest body = BOURSE__V1__JOBS_REQUEST__INIT;
    body.has_job = 1;
    body.job = (ProtobufCBinaryData){.len = sizeof job.bytes, .data = job.bytes};
    body.has_watch = 1;
    body.watch = 1;
    /* The dialogue would repeat an unanswered request, so the old one is dropped first. */
    dialogue_forget(session->dialogue, &watch->id);
    return dialogue_request(session->dialogue, now_ns, MESSAGE_JOBS_REQUEST, &watch->id,
                            &body.base);
}

enum consumer_status consumer_session_watch(struct consumer_session *session, int64_t now_ns,
                                            const struct id128 *id, const struct id128 *job)
{
    if (watch_of_job(session, job) != NULL) {
        return CONSUMER_OK;
    }
    if (session->watch_count == CONSUMER_WATCH_MAX) {
        return CONSUMER_FULL;
    }
    struct watch watch = {.id = *id, .job = *job};
    enum consumer_status status = status_of(watch_ask(session, now_ns, &watch));
    if (status == CONSUMER_OK) {
        session->watches[session->watch_count++] = watch;
    }
    return status;
}

void consumer_session_unwatch(struct consumer_session *session, const struct id128 *job)
{
    struct watch *watch = watch_of_job(session, job);
    if (watch != NULL) {
        watch_end(session, watch);
    }
}

/* ---------------------------------------------------------------- what the broker says */

/* A row of a watched job becomes the event, unless a newer row came before. */
static void told_of_job(struct consumer_session *session, ProtobufCMessage **body,
                        const Bourse__V1__JobRow *row, struct consumer_event *event)
{
    struct id128 job = codec_id(row->job);
    struct watch *watch = watch_of_job(session, &job);
    if (watch == NULL || row->index < watch->index) {
        codec_free(body);
        return;
    }
    watch->index = row->index;
    if (row->state != JOB_OPEN) {
        watch_end(session, watch);
    }
    event->type = CONSUMER_JOB;
    event->job = job;
    event->row = row;
    event->body = *body;
    *body = NULL;
}

static void reply(struct consumer_session *session, struct dialogue_event *from,
                  struct consumer_event *event)
{
    struct watch *watch = watch_of_request(session, &from->id);
    if (watch == NULL) {
        event->type = CONSUMER_ANSWER;
        event->answer = CONSUMER_REPLY;
        event->id = from->id;
        event->message_type = from->message_type;
        event->body = from->body;
        return;
    }
    const Bourse__V1__JobsReply *jobs =
        from->message_type == MESSAGE_JOBS_REPLY ? (const void *)from->body : NULL;
    if (jobs != NULL && jobs->n_jobs == 1) {
        told_of_job(session, &from->body, jobs->jobs[0], event);
        return;
    }
    event->type = CONSUMER_GONE; /* an empty answer: no such job */
    event->job = watch->job;
    event->reject = REJECT_NOT_FOUND;
    (void)snprintf(event->text, sizeof event->text, "no such job");
    watch_end(session, watch);
    codec_free(&from->body);
}

static void rejected(struct consumer_session *session, const struct dialogue_event *from,
                     struct consumer_event *event)
{
    struct watch *watch = watch_of_request(session, &from->id);
    event->reject = from->reject;
    memcpy(event->field, from->field, sizeof event->field);
    event->value = from->value;
    event->limit = from->limit;
    memcpy(event->text, from->text, sizeof event->text);
    if (watch == NULL) {
        event->type = CONSUMER_ANSWER;
        event->answer = CONSUMER_REJECTED;
        event->id = from->id;
        return;
    }
    event->type = CONSUMER_GONE;
    event->job = watch->job;
    watch_end(session, watch);
}

static void pushed(struct consumer_session *session, struct dialogue_event *from,
                   struct consumer_event *event)
{
    if (from->message_type == MESSAGE_JOB_EVENT) {
        const Bourse__V1__JobEvent *job = (const void *)from->body;
        told_of_job(session, &from->body, job->job, event);
        return;
    }
    codec_free(&from->body); /* the broker pushes nothing else to a consumer */
}

static bool event_resumed(const struct dialogue_event *ready)
{
    return ready->welcome->has_resumed && ready->welcome->resumed;
}

/* Says how the connection ended, and to whom it was. */
static void parted(const struct dialogue_event *from, struct consumer_event *event)
{
    event->wait_ns = from->wait_ns;
    event->end = from->end;
    memcpy(event->text, from->text, sizeof event->text);
    memcpy(event->address, from->address, sizeof event->address);
}

static void translate(struct consumer_session *session, int64_t now_ns, struct dialogue_event *from,
                      struct consumer_event *event)
{
    static_assert(sizeof event->text == sizeof from->text &&
                      sizeof event->field == sizeof from->field,
                  "texts are copied whole");
    *event = (struct consumer_event){.type = CONSUMER_NOTHING};
    switch (from->type) {
    case DIALOGUE_NOTHING:
        event->reject = from->reject; /* NO_QUORUM: the request waits */
        memcpy(event->text, from->text, sizeof event->text);
        return;
    case DIALOGUE_READY:
        /* A resumed session still gets the rows of its watches. */
        for (size_t i = 0; i < session->watch_count && !event_resumed(from); i++) {
            /* A full dialogue skips this watch until the next reconnect; its pushes ended with the
             * old session. */
            (void)watch_ask(session, now_ns, &session->watches[i]);
        }
        event->type = CONSUMER_READY;
        return;
    case DIALOGUE_ACCEPTED:
        event->type = CONSUMER_ANSWER;
        event->answer = CONSUMER_ACCEPTED;
        event->id = from->id;
        event->index = from->index;
        return;
    case DIALOGUE_REJECTED:
        rejected(session, from, event);
        return;
    case DIALOGUE_REPLY:
        reply(session, from, event);
        return;
    case DIALOGUE_PUSH:
        pushed(session, from, event);
        return;
    case DIALOGUE_LOST:
        parted(from, event);
        event->type = CONSUMER_LOST;
        return;
    case DIALOGUE_BROKEN:
        parted(from, event);
        event->type = CONSUMER_BROKEN;
        return;
    }
}

void consumer_session_unreachable(struct consumer_session *session,
                                  struct consumer_event *ret_event)
{
    struct dialogue_event from;
    dialogue_unreachable(session->dialogue, &from);
    translate(session, 0, &from, ret_event); /* a LOST asks for nothing */
}

void consumer_session_require_leader(struct consumer_session *session,
                                     struct consumer_event *ret_event)
{
    struct dialogue_event from;
    dialogue_require_leader(session->dialogue, &from);
    translate(session, 0, &from, ret_event); /* a LOST asks for nothing */
}

void consumer_session_incoming(struct consumer_session *session, int64_t now_ns,
                               const uint8_t *message, size_t length,
                               struct consumer_event *ret_event)
{
    struct dialogue_event from = {.type = DIALOGUE_NOTHING};
    dialogue_incoming(session->dialogue, now_ns, message, length, &from);
    translate(session, now_ns, &from, ret_event);
}

void consumer_session_tick(struct consumer_session *session, int64_t now_ns,
                           struct consumer_event *ret_event)
{
    struct dialogue_event from = {.type = DIALOGUE_NOTHING};
    dialogue_tick(session->dialogue, now_ns, &from);
    translate(session, now_ns, &from, ret_event);
}

bool consumer_session_outgoing(struct consumer_session *session, const uint8_t **ret_message,
                               size_t *ret_length)
{
    return dialogue_outgoing(session->dialogue, ret_message, ret_length);
}

void consumer_session_unsent(struct consumer_session *session)
{
    dialogue_unsent(session->dialogue);
}

int64_t consumer_session_deadline_ns(const struct consumer_session *session)
{
    return dialogue_next_deadline_ns(session->dialogue);
}

void consumer_session_goodbye(struct consumer_session *session, int64_t now_ns)
{
    if (dialogue_ready(session->dialogue)) {
        /* A failure is harmless: silence says the same, later. */
        (void)dialogue_goodbye(session->dialogue, now_ns, "done");
    }
}
