/* This file is the owner's end of a terminal (docs/protocol.md, section 7). */
#include "consumer/client/client.h"
#include "consumer/client/rows.h"

#include "base/checked.h"
#include "protocol/terminal_buffer.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define AGAIN_NS (500 * NS_PER_MS) /* after a refusal that may pass */
#define WATCH_AGAIN_NS (10 * NS_PER_S)
enum { WAIT_MS = 5000, SLICE_MS = 100, DESCRIPTORS_MAX = 4 };

struct bourse_terminal {
    struct bourse *client;
    struct id128 job;
    uint32_t attempt; /* that the broker names; 0: none yet */
    struct terminal_sender in;
    uint64_t taken; /* bytes of output that were handed over */
    bool wants_end, sent_end, is_end_told;
    uint32_t columns, rows; /* 0: never said */
    bool is_size_new;
    struct id128 send, receive; /* messages without an answer; zero: none */
    int64_t again_ns;
    int64_t watch_ns; /* the job is asked for again */
    bool is_lost;
    bool has_ended;
    Bourse__V1__TerminalBytes *body; /* holds the bytes of the last event */
};

bool bourse_terminal_open(struct bourse *bourse, const char *id,
                          struct bourse_terminal **ret_terminal, struct bourse_error *ret_error)
{
    struct id128 job;
    if (!client_id_read(id, &job, ret_error) || !client_ready(bourse, ret_error)) {
        return false;
    }
    struct bourse_terminal *terminal = calloc(1, sizeof *terminal);
    if (terminal == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    terminal->client = bourse;
    terminal->job = job;
    *ret_terminal = terminal;
    return true;
}

static void drop_body(struct bourse_terminal *terminal)
{
    ProtobufCMessage *body = (ProtobufCMessage *)terminal->body;
    codec_free(&body);
    terminal->body = NULL;
}

void bourse_terminal_close(struct bourse_terminal **self)
{
    struct bourse_terminal *terminal = *self;
    if (terminal == NULL) {
        return;
    }
    struct consumer_session *session = terminal->client->session;
    if (!id128_is_zero(&terminal->send)) {
        consumer_session_forget(session, &terminal->send);
    }
    if (!id128_is_zero(&terminal->receive)) {
        consumer_session_forget(session, &terminal->receive);
    }
    consumer_session_unwatch(session, &terminal->job);
    drop_body(terminal);
    free(terminal);
    *self = NULL;
}

size_t bourse_terminal_room(const struct bourse_terminal *terminal)
{
    return terminal->wants_end ? 0 : terminal_buffer_room(&terminal->in.buffer);
}

size_t bourse_terminal_type(struct bourse_terminal *terminal, const void *bytes, size_t size)
{
    return terminal->wants_end ? 0 : terminal_buffer_add(&terminal->in.buffer, bytes, size);
}

void bourse_terminal_type_end(struct bourse_terminal *terminal)
{
    terminal->wants_end = true;
}

void bourse_terminal_resize(struct bourse_terminal *terminal, uint32_t columns, uint32_t rows)
{
    if (columns >= 1 && rows >= 1 && columns <= LIMIT_TERMINAL_SIZE &&
        rows <= LIMIT_TERMINAL_SIZE) {
        terminal->columns = columns;
        terminal->rows = rows;
        terminal->is_size_new = true;
    }
}

/* ---------------------------------------------------------------- messages */

static void request(struct bourse_terminal *terminal, enum message_type type,
                    const ProtobufCMessage *body, struct id128 *ret_id)
{
    const struct id128 id = entropy_id();
    const int64_t now_ns = clock_monotonic_ns();
    if (consumer_session_request(terminal->client->session, now_ns, type, &id, body) ==
        CONSUMER_OK) {
        *ret_id = id;
    } else {
        terminal->again_ns = now_ns + AGAIN_NS;
    }
}

static void send_typed(struct bourse_terminal *terminal)
{
    Bourse__V1__TerminalSend body = BOURSE__V1__TERMINAL_SEND__INIT;
    if (!id128_is_zero(&terminal->send) ||
        !(terminal_sender_wants(&terminal->in) || terminal->is_size_new ||
          (terminal->wants_end && !terminal->is_end_told))) {
        return;
    }
    size_t size = 0;
    const uint8_t *bytes = terminal_buffer_piece(&terminal->in.buffer, terminal->in.sent, &size);
    body.has_job = true;
    body.job = client_bytes(terminal->job.bytes, sizeof terminal->job.bytes);
    body.has_attempt = terminal->attempt != 0;
    body.attempt = terminal->attempt;
    body.offset = terminal->in.sent;
    body.has_bytes = size > 0;
    body.bytes = client_bytes((void *)(uintptr_t)bytes, size);
    body.has_columns = body.has_rows = terminal->is_size_new;
    body.columns = terminal->columns;
    body.rows = terminal->rows;
    terminal->sent_end = terminal->wants_end &&
                         terminal->in.sent + size == terminal_buffer_end(&terminal->in.buffer);
    body.has_end = body.end = terminal->sent_end;
    request(terminal, MESSAGE_TERMINAL_SEND, &body.base, &terminal->send);
    terminal->is_size_new = terminal->is_size_new && id128_is_zero(&terminal->send);
}

static void ask_for_output(struct bourse_terminal *terminal)
{
    Bourse__V1__TerminalReceive body = BOURSE__V1__TERMINAL_RECEIVE__INIT;
    if (!id128_is_zero(&terminal->receive) || terminal->has_ended) {
        return;
    }
    body.has_job = true;
    body.job = client_bytes(terminal->job.bytes, sizeof terminal->job.bytes);
    body.has_attempt = terminal->attempt != 0;
    body.attempt = terminal->attempt;
    body.taken = terminal->taken;
    body.wait_ms = WAIT_MS;
    request(terminal, MESSAGE_TERMINAL_RECEIVE, &body.base, &terminal->receive);
}

static void watch_job(struct bourse_terminal *terminal)
{
    const struct id128 id = entropy_id();
    const int64_t now_ns = clock_monotonic_ns();
    if (now_ns >= terminal->watch_ns) {
        consumer_session_unwatch(terminal->client->session, &terminal->job);
        (void)consumer_session_watch(terminal->client->session, now_ns, &id, &terminal->job);
        terminal->watch_ns = now_ns + WATCH_AGAIN_NS; /* a full session tries again then */
    }
}

/* ---------------------------------------------------------------- answers */

/* Notes the attempt that an answer names. Returns false after filling the event when it is new. */
static bool is_known(struct bourse_terminal *terminal, bool has_attempt, uint32_t attempt,
                     struct bourse_terminal_event *event)
{
    if (!has_attempt || attempt == terminal->attempt) {
        return true;
    }
    event->type = terminal->attempt == 0 ? BOURSE_TERMINAL_BEGUN : BOURSE_TERMINAL_REPLACED;
    const bool has_begun = terminal->attempt == 0;
    terminal->attempt = attempt;
    return has_begun;
}

static void take_taken(struct bourse_terminal *terminal, const Bourse__V1__TerminalTaken *body,
                       struct bourse_terminal_event *event)
{
    if (is_known(terminal, body->has_attempt, body->attempt, event)) {
        terminal_sender_answered(&terminal->in, body->through, body->taken);
        terminal->is_end_told = terminal->sent_end &&
                                body->through == terminal_buffer_end(&terminal->in.buffer) &&
                                body->has_attempt;
    }
}

/* The event borrows the body until the next call. */
static void take_bytes(struct bourse_terminal *terminal, ProtobufCMessage **body,
                       struct bourse_terminal_event *event)
{
    Bourse__V1__TerminalBytes *bytes = (void *)*body;
    if (!is_known(terminal, bytes->has_attempt, bytes->attempt, event) ||
        bytes->offset != terminal->taken || event->type != BOURSE_TERMINAL_NOTHING) {
        return; /* bytes beside the beginning come again with the next answer */
    }
    terminal->has_ended = bytes->has_end && bytes->end;
    if (bytes->has_bytes && bytes->bytes.len > 0) {
        terminal->body = bytes;
        *body = NULL;
        terminal->taken += bytes->bytes.len;
        event->type = BOURSE_TERMINAL_OUTPUT;
        event->bytes = bytes->bytes.data;
        event->size = bytes->bytes.len;
    } else if (terminal->has_ended) {
        event->type = BOURSE_TERMINAL_ENDED;
    }
}

/* Returns false after filling the error when the refusal stays. */
static bool take_refusal(struct bourse_terminal *terminal, const struct consumer_event *from,
                         struct bourse_terminal_event *event, struct bourse_error *error)
{
    const bool passes = from->reject == REJECT_BUSY || from->reject == REJECT_RATE ||
                        from->reject == REJECT_UNAVAILABLE;
    if (passes && (from->reject != REJECT_BUSY || terminal->attempt != 0)) {
        terminal->again_ns = clock_monotonic_ns() + AGAIN_NS;
        return true;
    }
    if (from->reject == REJECT_NOT_FOUND) { /* the broker has forgotten an ended job */
        terminal->has_ended = true;
        event->type = BOURSE_TERMINAL_ENDED;
        return true;
    }
    if (from->reject == REJECT_TYPE || from->reject == REJECT_MALFORMED) {
        return client_fail(error, BOURSE_REFUSED,
                           "the broker is of a version that passes no terminals on; ask the "
                           "operator of the market to update it");
    }
    return client_rejected(error, from);
}

static bool take_answer(struct bourse_terminal *terminal, struct consumer_event *from,
                        struct bourse_terminal_event *event, struct bourse_error *error)
{
    const bool is_send = id128_equal(&from->id, &terminal->send);
    if (!is_send && !id128_equal(&from->id, &terminal->receive)) {
        return true;
    }
    *(is_send ? &terminal->send : &terminal->receive) = (struct id128){0};
    if (from->answer == CONSUMER_REJECTED) {
        return take_refusal(terminal, from, event, error);
    }
    if (is_send && from->message_type == MESSAGE_TERMINAL_TAKEN) {
        take_taken(terminal, (const void *)from->body, event);
    } else if (!is_send && from->message_type == MESSAGE_TERMINAL_BYTES) {
        take_bytes(terminal, &from->body, event);
    }
    return true;
}

static bool take_event(struct bourse_terminal *terminal, struct consumer_event *from,
                       struct bourse_terminal_event *event, struct bourse_error *error)
{
    if (from->type == CONSUMER_ANSWER) {
        return take_answer(terminal, from, event, error);
    }
    if (from->type == CONSUMER_LOST && !terminal->is_lost) {
        terminal->is_lost = true;
        terminal->is_end_told = false; /* a broker that starts anew knows of no end */
        event->type = BOURSE_TERMINAL_LOST;
    } else if (from->type == CONSUMER_READY && terminal->is_lost) {
        terminal->is_lost = false;
        event->type = BOURSE_TERMINAL_BACK;
    } else if (from->type == CONSUMER_JOB && id128_equal(&from->job, &terminal->job)) {
        rows_job(from->row, &event->row);
        event->row.leases = NULL;
        event->row.lease_count = 0;
        event->type = BOURSE_TERMINAL_JOB;
        terminal->watch_ns = clock_monotonic_ns() + WATCH_AGAIN_NS;
    }
    return true;
}

/* ---------------------------------------------------------------- the wait */

/* Waits for a message or a descriptor. Returns true with the event when a descriptor is ready. */
static bool wait_for_any(const struct bourse_terminal *terminal, const int *descriptors,
                         size_t count, int64_t until_ns, struct bourse_terminal_event *event)
{
    zmq_pollitem_t items[1 + DESCRIPTORS_MAX] = {
        {.socket = link_socket(terminal->client->link), .events = ZMQ_POLLIN}};
    size_t which[1 + DESCRIPTORS_MAX] = {0};
    int polled = 1;
    for (size_t i = 0; i < count && i < DESCRIPTORS_MAX; i++) {
        if (descriptors[i] >= 0) {
            which[polled] = i;
            items[polled++] = (zmq_pollitem_t){.fd = descriptors[i], .events = ZMQ_POLLIN};
        }
    }
    const int64_t left_ms = (until_ns - clock_monotonic_ns() + NS_PER_MS - 1) / NS_PER_MS;
    const long wait_ms = left_ms <= 0 ? 0 : left_ms < SLICE_MS ? (long)left_ms : SLICE_MS;
    (void)zmq_poll(items, polled, wait_ms); /* a signal ends the wait as well */
    for (int i = 1; i < polled; i++) {
        if (items[i].revents != 0) {
            event->type = BOURSE_TERMINAL_READABLE;
            event->which = which[i];
            return true;
        }
    }
    return false;
}

bool bourse_terminal_next(struct bourse_terminal *terminal, const int *descriptors, size_t count,
                          int64_t wait_ms, struct bourse_terminal_event *ret_event,
                          struct bourse_error *ret_error)
{
    const int64_t until_ns = clock_monotonic_ns() + wait_ms * NS_PER_MS;
    assert(count <= DESCRIPTORS_MAX);
    *ret_event = (struct bourse_terminal_event){.type = BOURSE_TERMINAL_NOTHING};
    if (terminal->body != NULL) {
        drop_body(terminal);
        if (terminal->has_ended) {
            ret_event->type = BOURSE_TERMINAL_ENDED;
            return true;
        }
    }
    for (;;) {
        watch_job(terminal);
        if (clock_monotonic_ns() >= terminal->again_ns) {
            send_typed(terminal);
            ask_for_output(terminal);
        }
        struct consumer_event event;
        const enum client_wait got =
            client_next(terminal->client, clock_monotonic_ns(), &event, ret_error);
        if (got == CLIENT_EVENT) {
            const bool good = take_event(terminal, &event, ret_event, ret_error);
            consumer_event_clear(&event);
            if (!good || ret_event->type != BOURSE_TERMINAL_NOTHING) {
                return good;
            }
            continue;
        }
        if (got != CLIENT_TIMEOUT) {
            return false;
        }
        if (wait_for_any(terminal, descriptors, count, until_ns, ret_event) ||
            clock_monotonic_ns() >= until_ns) {
            return true;
        }
    }
}
