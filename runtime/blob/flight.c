#include "runtime/blob/flight.h"

#include "base/checked.h"
#include "base/text.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "runtime/blob/blob_client_internal.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/link.h"

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <zmq.h>

enum { SLICE_MS = 100 }; /* longest time that an interruption may go unnoticed */

const char *flight_files(const struct blob_client *client)
{
    bool is_usable = client->files[0] != '\0' && clock_monotonic_ns() >= client->files_from_ns;
    return is_usable ? client->files : NULL;
}

void flight_no_files(struct blob_client *client)
{
    client->files_from_ns = clock_monotonic_ns() + FLIGHT_NO_FILES_S * NS_PER_S;
}

struct hasher *flight_hasher(struct blob_client *client)
{
    if (client->hasher == NULL) {
        client->hasher = hasher_create();
    }
    return client->hasher;
}

bool flight_interrupted(const struct blob_client *client, struct problem *ret_problem)
{
    if (!atomic_load(&client->interrupted)) {
        return false;
    }
    problem_set(ret_problem, "interrupted");
    return true;
}

/* Tells the meter, which may wait. That wait is no silence of the broker. */
static void measure(struct blob_client *client, uint64_t bytes)
{
    if (client->meter != NULL) {
        client->meter(client->meter_context, bytes);
        client->heard_ns = clock_monotonic_ns();
    }
}

uint8_t *flight_draft(struct blob_client *client, struct flight *flight, enum message_type type,
                      const ProtobufCMessage *body, const uint8_t *hole)
{
    size_t body_length = protobuf_c_message_get_packed_size(body);
    assert(body_length <= message_body_cap(type));
    flight->id = entropy_id();
    const struct envelope envelope = {.version = ENVELOPE_VERSION,
                                      .type = (uint16_t)type,
                                      .sequence = client->sequence + 1,
                                      .id = flight->id,
                                      .body_length = (uint32_t)body_length};
    client->draft_bytes = envelope_size(&envelope);
    uint8_t *message = link_draft(client->link, envelope_size(&envelope));
    if (message == NULL) {
        return NULL;
    }
    envelope_write_head(&envelope, message);
    uint8_t *place = codec_encode_around(body, hole, message + ENVELOPE_HEAD_BYTES);
    return place == NULL ? message : place;
}

bool flight_leave(struct blob_client *client, struct flights *flights, const struct flight *flight)
{
    assert(flights->count < FLIGHT_MAX);
    if (!link_send_draft(client->link)) {
        return false;
    }
    if (flights->count == 0) {
        client->heard_ns = clock_monotonic_ns(); /* silence counts from the first open request */
    }
    client->sequence++;
    flights->list[flights->count++] = *flight;
    measure(client, client->draft_bytes);
    return true;
}

bool flight_send(struct blob_client *client, struct flights *flights, const struct flight *what,
                 enum message_type type, const ProtobufCMessage *body)
{
    static const uint8_t nowhere; /* no field points here */
    struct flight flight = *what;
    return flight_draft(client, &flight, type, body, &nowhere) != NULL &&
           flight_leave(client, flights, &flight);
}

/* Removes the flight with the id from the list. Returns false when there is none. */
static bool land(struct flights *flights, const struct id128 *id, struct flight *ret_flight)
{
    for (size_t i = 0; i < flights->count; i++) {
        if (id128_equal(&flights->list[i].id, id)) {
            *ret_flight = flights->list[i];
            flights->count--;
            memmove(&flights->list[i], &flights->list[i + 1],
                    (flights->count - i) * sizeof flights->list[0]);
            return true;
        }
    }
    return false;
}

/* Returns true when the message answers a flight in the expected way. Other messages are dropped.
 * They answer an earlier, interrupted call, or come from a broker that breaks the rules and will be
 * found silent. */
static bool read_answer(struct flights *flights, const uint8_t *message, size_t length,
                        enum message_type expected, struct flight_answer *ret_answer)
{
    struct envelope envelope;
    if (envelope_read(message, length, LIMIT_BLOB_MESSAGE_BYTES, &envelope) != ENVELOPE_OK ||
        (envelope.type != expected && envelope.type != MESSAGE_REJECT)) {
        return false;
    }
    ProtobufCMessage *body;
    if (codec_decode((enum message_type)envelope.type, envelope.body, envelope.body_length, &body,
                     NULL) != CODEC_OK) {
        return false;
    }
    if (!land(flights, &envelope.id, &ret_answer->flight)) {
        codec_free(&body);
        return false;
    }
    ret_answer->type = (enum message_type)envelope.type;
    ret_answer->body = body;
    return true;
}

static bool open_anew(struct blob_client *client, struct problem *ret_problem)
{
    char endpoint[LIMIT_ENDPOINT_BYTES + 1] = "";
    if (client->where != NULL) {
        client->where(client->where_context, endpoint);
    }
    if (endpoint[0] == '\0' || strcmp(endpoint, client->endpoint) == 0) {
        return link_reopen(client->link, ret_problem);
    }
    blob_client_use(client, endpoint);
    return link_reopen_at(client->link, endpoint, ret_problem);
}

static enum flight_status reconnect(struct blob_client *client, struct flights *flights,
                                    struct problem *ret_problem)
{
    flights->count = 0;
    client->sequence = 0;
    if (++client->tries >= FLIGHT_TRIES) {
        client->tries = 0;
        problem_set(ret_problem, "the broker's blob port does not answer");
        return FLIGHT_ENDED;
    }
    const bool is_open = open_anew(client, ret_problem);
    client->heard_ns = clock_monotonic_ns(); /* the search for the broker is no silence */
    return is_open ? FLIGHT_LOST : FLIGHT_ENDED;
}

static bool is_silent(const struct blob_client *client)
{
    return clock_monotonic_ns() - client->heard_ns >= FLIGHT_SILENCE_MS * NS_PER_MS;
}

/* Waits for room to send, one slice long. */
static bool has_room(struct blob_client *client)
{
    zmq_pollitem_t item = {.socket = link_socket(client->link), .events = ZMQ_POLLOUT};
    return zmq_poll(&item, 1, SLICE_MS) == 1;
}

enum flight_status flight_await(struct blob_client *client, struct flights *flights,
                                enum message_type expected, struct flight_answer *ret_answer,
                                struct problem *ret_problem)
{
    bool is_open = flights->count > 0;
    if (client->is_astray) {
        client->is_astray = false;
        return reconnect(client, flights, ret_problem);
    }
    if (!is_open) {
        client->heard_ns = clock_monotonic_ns();
    }
    for (;;) {
        if (flight_interrupted(client, ret_problem)) {
            return FLIGHT_ENDED;
        }
        if (!is_open && has_room(client)) {
            return FLIGHT_ROOM;
        }
        const uint8_t *message;
        size_t length;
        int got = is_open ? link_receive(client->link, SLICE_MS, &message, &length) : 0;
        if (got == 1) {
            measure(client, length);
        }
        if (got == 1 && read_answer(flights, message, length, expected, ret_answer)) {
            client->heard_ns = clock_monotonic_ns();
            client->tries = 0;
            client->busy = ret_answer->type == MESSAGE_REJECT ? client->busy : 0;
            return FLIGHT_ANSWERED;
        }
        if (got < 0 || is_silent(client)) {
            return reconnect(client, flights, ret_problem);
        }
    }
}

bool flight_is_passing(struct blob_client *client, const Bourse__V1__Reject *reject)
{
    enum reject_code code = (enum reject_code)reject->code;
    client->is_astray = code == REJECT_NOT_LEADER && client->where != NULL;
    bool passes = code == REJECT_BUSY || code == REJECT_RATE || code == REJECT_UNAVAILABLE ||
                  client->is_astray;
    if (!passes || client->busy >= FLIGHT_BUSY_MAX) {
        client->busy = 0;
        return false;
    }
    client->busy++;
    (void)poll(NULL, 0, FLIGHT_BUSY_MS); /* the broker is busy, so the client only waits */
    return true;
}

bool flight_refused(const Bourse__V1__Reject *reject, enum reject_code *ret_reject,
                    struct problem *ret_problem)
{
    enum reject_code code = (enum reject_code)reject->code;
    char text[256];
    text_printable(reject->text, strlen(reject->text), text, sizeof text);
    problem_set(ret_problem, "%s: %s", reject_name(code), text);
    *ret_reject = code;
    return false;
}
