/* This file asks for the live output of a job, for bourse_wait (docs/protocol.md, section 7). */
#include "consumer/client/client.h"

#include "base/checked.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#define BUSY_NS (5 * NS_PER_S) /* after a refusal that may pass */

static void drop_reply(struct client_listening *listening)
{
    ProtobufCMessage *reply = (ProtobufCMessage *)listening->reply;
    codec_free(&reply);
    listening->reply = NULL;
}

bool bourse_listen(struct bourse *bourse, const char *id, bourse_listener *listener, void *context,
                   struct bourse_error *ret_error)
{
    struct id128 job;
    if (!client_id_read(id, &job, ret_error)) {
        return false;
    }
    bourse_unlisten(bourse);
    bourse->listening =
        (struct client_listening){.listener = listener, .context = context, .job = job};
    return true;
}

void bourse_unlisten(struct bourse *bourse)
{
    struct client_listening *listening = &bourse->listening;
    if (!id128_is_zero(&listening->request)) {
        consumer_session_forget(bourse->session, &listening->request);
    }
    drop_reply(listening);
    *listening = (struct client_listening){.listener = NULL};
}

bool client_listening_is(const struct consumer_event *event)
{
    return event->type == CONSUMER_ANSWER && event->message_type == MESSAGE_OUTPUT_REPLY;
}

void client_listening_take(struct bourse *client, struct consumer_event *event)
{
    struct client_listening *listening = &client->listening;
    if (event->type != CONSUMER_ANSWER || id128_is_zero(&listening->request) ||
        !id128_equal(&event->id, &listening->request)) {
        return;
    }
    listening->request = (struct id128){0};
    if (event->answer == CONSUMER_REPLY && event->message_type == MESSAGE_OUTPUT_REPLY) {
        drop_reply(listening);
        listening->reply = (Bourse__V1__OutputReply *)(void *)event->body;
        event->body = NULL;
    } else {
        /* An older broker does not know the request. */
        const bool passes = event->reject == REJECT_BUSY || event->reject == REJECT_RATE ||
                            event->reject == REJECT_UNAVAILABLE;
        listening->again_ns = passes ? clock_monotonic_ns() + BUSY_NS : INT64_MAX;
    }
    event->message_type = MESSAGE_OUTPUT_REPLY;
}

static void hand_over(struct client_listening *listening)
{
    const Bourse__V1__OutputReply *reply = listening->reply;
    for (size_t i = 0; i < reply->n_pieces; i++) {
        const Bourse__V1__OutputPiece *wire = reply->pieces[i];
        const struct bourse_piece piece = {.index = wire->index,
                                           .attempt = wire->attempt,
                                           .is_standard_error = wire->stream == OUTPUT_STREAM_ERROR,
                                           .offset = wire->offset,
                                           .bytes = wire->bytes.data,
                                           .size = wire->bytes.len};
        listening->listener(listening->context, &piece);
    }
    listening->has_feed = true;
    listening->feed = reply->feed;
    listening->after = reply->through;
}

static void fill(struct client_listening *listening, Bourse__V1__OutputRequest *body)
{
    bourse__v1__output_request__init(body);
    body->job = client_bytes(listening->job.bytes, sizeof listening->job.bytes);
    body->has_feed = body->has_after = listening->has_feed;
    body->feed = listening->feed;
    body->after = listening->after;
}

static void ask(struct bourse *client)
{
    struct client_listening *listening = &client->listening;
    Bourse__V1__OutputRequest body;
    fill(listening, &body);
    body.has_wait_ms = true;
    body.wait_ms = LIMIT_WAIT_MS;
    const struct id128 id = entropy_id();
    const int64_t now_ns = clock_monotonic_ns();
    if (consumer_session_request(client->session, now_ns, MESSAGE_OUTPUT_REQUEST, &id,
                                 &body.base) == CONSUMER_OK) {
        listening->request = id;
    } else {
        listening->again_ns = now_ns + BUSY_NS;
    }
}

int64_t client_listening_turn(struct bourse *client, const struct id128 *job)
{
    struct client_listening *listening = &client->listening;
    if (listening->listener == NULL || !id128_equal(&listening->job, job)) {
        return INT64_MAX;
    }
    if (listening->reply != NULL) {
        hand_over(listening);
        drop_reply(listening);
    }
    if (id128_is_zero(&listening->request) && clock_monotonic_ns() >= listening->again_ns) {
        ask(client);
    }
    return id128_is_zero(&listening->request) ? listening->again_ns : INT64_MAX;
}

void client_listening_drain(struct bourse *client, const struct id128 *job)
{
    struct client_listening *listening = &client->listening;
    if (client_listening_turn(client, job) != INT64_MAX || id128_is_zero(&listening->request)) {
        return; /* nobody listens, or the broker passes nothing on now */
    }
    consumer_session_forget(client->session, &listening->request);
    listening->request = (struct id128){0};
    for (bool more = true; more;) {
        struct bourse_error ignored;
        ProtobufCMessage *answer = NULL;
        Bourse__V1__OutputRequest body;
        fill(listening, &body);
        if (!client_call(client, MESSAGE_OUTPUT_REQUEST, &body.base, MESSAGE_OUTPUT_REPLY, &answer,
                         &ignored)) {
            return;
        }
        listening->reply = (Bourse__V1__OutputReply *)(void *)answer;
        more = listening->reply->has_more && listening->reply->more;
        hand_over(listening);
        drop_reply(listening);
    }
}
