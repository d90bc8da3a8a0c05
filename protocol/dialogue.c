#include "protocol/dialogue.h"

#include "base/checked.h"
#include "base/random.h"
#include "protocol/dialogue_internal.h"
#include "protocol/envelope.h"
#include "protocol/requests.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEARTBEATS_MISSED = 3 };

/* ---- life ---- */

struct dialogue *dialogue_create(const struct dialogue_config *config)
{
    assert(config->pending_max > 0);
    struct dialogue *dialogue = calloc(1, sizeof *dialogue);
    if (dialogue == NULL) {
        return NULL;
    }
    dialogue->config = *config;
    requests_init(&dialogue->requests);
    contacts_init(&dialogue->contacts, config->addresses, config->address_count);
    return dialogue;
}

void dialogue_destroy(struct dialogue **self)
{
    struct dialogue *dialogue = *self;
    if (dialogue != NULL) {
        requests_fini(&dialogue->requests);
        codec_free(&dialogue->welcome);
        free(dialogue->outgoing);
        free(dialogue);
        *self = NULL;
    }
}

void dialogue_read_anywhere(struct dialogue *dialogue, uint64_t least_index)
{
    dialogue->reads_anywhere = true;
    dialogue->least_index = least_index;
}

/* The id is not secret: it tells this Hello's Welcome from one of an earlier connection. */
static struct id128 make_hello_id(struct dialogue *dialogue)
{
    struct id128 id;
    uint64_t halves[2] = {random_u64(&dialogue->dice), dialogue->connections};
    memcpy(id.bytes, halves, sizeof id.bytes);
    return id;
}

void dialogue_connected(struct dialogue *dialogue, int64_t now_ns, uint64_t dice)
{
    dialogue->connections++; /* counts first, so that the id is never zero */
    dialogue->dice = random_seeded(dice);
    dialogue->hello_id = make_hello_id(dialogue);
    if (dialogue->session != 0) {
        dialogue->resume_session = dialogue->session;
        dialogue->resume_sequence = dialogue->sequence_in;
    }
    dialogue->state = STATE_GREETING;
    dialogue->connected_ns = now_ns;
    dialogue->session = 0;
    dialogue->caught_up_at = 0;
    dialogue->sequence_out = 0;
    dialogue->sequence_in = 0;
    dialogue->hello_due = true;
    dialogue->heartbeat_due = false;
    dialogue->goodbye_due = false;
    dialogue->give_again = false;
    dialogue->send_again_ns = INT64_MAX;
    dialogue->waits_ns = INT64_MAX;
    requests_unsend(&dialogue->requests);
}

const struct contact *dialogue_address(const struct dialogue *dialogue)
{
    return contacts_now(&dialogue->contacts);
}

const struct contacts *dialogue_contacts(const struct dialogue *dialogue)
{
    return &dialogue->contacts;
}

void dialogue_unreachable(struct dialogue *dialogue, struct dialogue_event *ret_event)
{
    *ret_event = (struct dialogue_event){.type = DIALOGUE_NOTHING};
    if (dialogue->state != STATE_OFFLINE) {
        dialogue_lost(dialogue, CONTACT_CLOSED, "the connection has ended", ret_event);
    }
}

void dialogue_require_leader(struct dialogue *dialogue, struct dialogue_event *ret_event)
{
    *ret_event = (struct dialogue_event){.type = DIALOGUE_NOTHING};
    dialogue->reads_anywhere = false;
    if (dialogue->state == STATE_READY && dialogue->state_told.follows) {
        dialogue->session = 0; /* what it has not answered, the leader answers */
        dialogue_lost(dialogue, CONTACT_FOLLOWS, "the broker follows another one", ret_event);
    }
}

bool dialogue_ready(const struct dialogue *dialogue)
{
    return dialogue->state == STATE_READY;
}

bool dialogue_catching_up(const struct dialogue *dialogue)
{
    return dialogue->state == STATE_READY && dialogue->sequence_in < dialogue->caught_up_at;
}

const Bourse__V1__Welcome *dialogue_welcome(const struct dialogue *dialogue)
{
    return (const Bourse__V1__Welcome *)(const void *)dialogue->welcome;
}

struct dialogue_state dialogue_state(const struct dialogue *dialogue)
{
    struct dialogue_state state = dialogue->state_told;
    state.newest = dialogue->least_index;
    if (!state.follows) { /* a leader's answers have every command that it accepted */
        state.index = state.newest;
    }
    return state;
}

/* No broker that follows takes the client back behind what it was told of. */
void dialogue_note_state(struct dialogue *dialogue, const struct dialogue_state *state)
{
    dialogue->state_told = *state;
    if (state->index > dialogue->least_index) {
        dialogue->least_index = state->index;
    }
}

int64_t dialogue_log_time_ms(const struct dialogue *dialogue, int64_t now_ns)
{
    if (dialogue->welcome == NULL) {
        return 0;
    }
    return dialogue->log_time_ms + (now_ns - dialogue->log_heard_ns) / NS_PER_MS;
}

size_t dialogue_pending(const struct dialogue *dialogue)
{
    return dialogue->requests.count;
}

/* ---- asking ---- */

/* Stamps a request if possible: after the first Welcome the cluster and the log time are known. */
static bool stamp_early(const struct dialogue *dialogue, struct request *request, int64_t now_ns)
{
    return dialogue->welcome == NULL ||
           request_stamp(request, dialogue->config.identity, &dialogue->cluster,
                         dialogue_log_time_ms(dialogue, now_ns));
}

enum dialogue_status dialogue_request(struct dialogue *dialogue, int64_t now_ns,
                                      enum message_type type, const struct id128 *id,
                                      const ProtobufCMessage *body)
{
    assert(message_answer(type) != 0 && type != MESSAGE_HELLO);
    assert(requests_find(&dialogue->requests, id) == NULL);
    if (dialogue->requests.count == dialogue->config.pending_max) {
        return DIALOGUE_FULL;
    }
    struct request *request;
    switch (requests_make(type, id, body, &request)) {
    case REQUEST_OK:
        break;
    case REQUEST_TOO_LARGE:
        return DIALOGUE_TOO_LARGE;
    case REQUEST_OUT_OF_MEMORY:
        return DIALOGUE_OUT_OF_MEMORY;
    }
    size_t bytes_left = dialogue->config.pending_bytes_max - dialogue->requests.bytes;
    if (request->body_length > bytes_left) {
        requests_free(&request);
        return DIALOGUE_FULL;
    }
    if (!stamp_early(dialogue, request, now_ns)) {
        requests_free(&request);
        return DIALOGUE_OUT_OF_MEMORY;
    }
    requests_add(&dialogue->requests, request);
    return DIALOGUE_OK;
}

void dialogue_forget(struct dialogue *dialogue, const struct id128 *id)
{
    struct request *request = requests_find(&dialogue->requests, id);
    if (request != NULL) {
        requests_drop(&dialogue->requests, request);
    }
}

enum dialogue_status dialogue_goodbye(struct dialogue *dialogue, int64_t now_ns, const char *reason)
{
    (void)now_ns; /* a goodbye has no deadline: it gets no answer */
    if (dialogue->state != STATE_READY) {
        return DIALOGUE_NOT_READY;
    }
    (void)snprintf(dialogue->goodbye, sizeof dialogue->goodbye, "%s", reason);
    dialogue->goodbye_due = true;
    dialogue->state = STATE_LEAVING;
    return DIALOGUE_OK;
}

/* ---- what goes out ---- */

/* Writes the envelope into `outgoing` with the next sequence number. */
static bool give(struct dialogue *dialogue, struct envelope *envelope)
{
    size_t size = envelope_size(envelope);
    if (size > dialogue->outgoing_capacity) {
        uint8_t *grown = realloc(dialogue->outgoing, size);
        if (grown == NULL) {
            return false;
        }
        dialogue->outgoing = grown;
        dialogue->outgoing_capacity = size;
    }
    envelope->session = dialogue->session;
    envelope->sequence = ++dialogue->sequence_out;
    envelope_write(envelope, dialogue->outgoing, dialogue->outgoing_capacity);
    dialogue->outgoing_length = size;
    return true;
}

static bool give_request(struct dialogue *dialogue, struct request *request)
{
    struct envelope envelope = request_envelope(request);
    request->is_sent = give(dialogue, &envelope);
    return request->is_sent;
}

/* Gives out an own message of the dialogue: unsigned, never resent, unanswered except for Hello. */
static bool give_own(struct dialogue *dialogue, enum message_type type, const struct id128 *id,
                     const ProtobufCMessage *body)
{
    size_t length;
    uint8_t *bytes = codec_encode(body, &length);
    if (bytes == NULL) {
        return false;
    }
    struct envelope envelope = {
        .version = ENVELOPE_VERSION,
        .type = (uint16_t)type,
        .id = *id,
        .created_ms = type == MESSAGE_HELLO ? 0 : dialogue_welcome(dialogue)->log_time_ms,
        .body = bytes,
        .body_length = (uint32_t)length};
    bool given = give(dialogue, &envelope);
    free(bytes);
    return given;
}

static bool give_hello(struct dialogue *dialogue)
{
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = ENVELOPE_VERSION;
    /* The cast drops const, which protobuf-c does not know. The callee only reads. */
    hello.program = (char *)(uintptr_t)dialogue->config.program;
    hello.has_role = 1;
    hello.role = (uint32_t)dialogue->config.role;
    hello.has_resume_session = hello.has_resume_sequence = dialogue->resume_session != 0;
    hello.resume_session = dialogue->resume_session;
    hello.resume_sequence = dialogue->resume_sequence;
    hello.has_waits = hello.waits = 1;
    hello.has_reads = hello.reads = dialogue->reads_anywhere;
    hello.has_least_index = dialogue->reads_anywhere && dialogue->least_index > 0;
    hello.least_index = dialogue->least_index;
    return give_own(dialogue, MESSAGE_HELLO, &dialogue->hello_id, &hello.base);
}

static bool give_heartbeat(struct dialogue *dialogue)
{
    static const struct id128 no_id;
    Bourse__V1__Heartbeat heartbeat = BOURSE__V1__HEARTBEAT__INIT;
    heartbeat.has_sequence = 1;
    heartbeat.sequence = dialogue->sequence_in;
    return give_own(dialogue, MESSAGE_HEARTBEAT, &no_id, &heartbeat.base);
}

static bool give_goodbye(struct dialogue *dialogue)
{
    static const struct id128 no_id;
    Bourse__V1__Goodbye goodbye = BOURSE__V1__GOODBYE__INIT;
    goodbye.reason = dialogue->goodbye;
    return give_own(dialogue, MESSAGE_GOODBYE, &no_id, &goodbye.base);
}

/* Makes the most urgent message that is due. A message whose allocation fails stays due. */
static bool give_next(struct dialogue *dialogue)
{
    switch (dialogue->state) {
    case STATE_OFFLINE:
        return false;
    case STATE_GREETING:
        if (!dialogue->hello_due || !give_hello(dialogue)) {
            return false;
        }
        dialogue->hello_due = false;
        return true;
    case STATE_LEAVING:
        if (!dialogue->goodbye_due || !give_goodbye(dialogue)) {
            return false;
        }
        dialogue->goodbye_due = false;
        return true;
    case STATE_READY:
        break;
    }
    if (dialogue->heartbeat_due) {
        dialogue->heartbeat_due = !give_heartbeat(dialogue);
        return !dialogue->heartbeat_due;
    }
    if (dialogue_catching_up(dialogue)) {
        return false; /* some requests may be answered already */
    }
    struct request *request = requests_next_unsent(&dialogue->requests);
    return request != NULL && give_request(dialogue, request);
}

bool dialogue_outgoing(struct dialogue *dialogue, const uint8_t **ret_message, size_t *ret_length)
{
    if (!dialogue->give_again && !give_next(dialogue)) {
        return false;
    }
    dialogue->give_again = false;
    *ret_message = dialogue->outgoing;
    *ret_length = dialogue->outgoing_length;
    return true;
}

void dialogue_unsent(struct dialogue *dialogue)
{
    dialogue->give_again = dialogue->state != STATE_OFFLINE && dialogue->sequence_out > 0;
}

/* ---- time ---- */

static int64_t silence_deadline_ns(const struct dialogue *dialogue)
{
    if (dialogue->state == STATE_GREETING) {
        return dialogue->connected_ns + contacts_greeting_ns(&dialogue->contacts);
    }
    return dialogue->heard_ns + HEARTBEATS_MISSED * dialogue->heartbeat_ns;
}

void dialogue_tick(struct dialogue *dialogue, int64_t now_ns, struct dialogue_event *ret_event)
{
    *ret_event = (struct dialogue_event){.type = DIALOGUE_NOTHING};
    if (dialogue->state == STATE_OFFLINE) {
        return;
    }
    if (now_ns >= silence_deadline_ns(dialogue)) {
        dialogue_lost(dialogue, CONTACT_SILENT, "the broker does not answer", ret_event);
        return;
    }
    if (dialogue->state == STATE_READY && now_ns >= dialogue->beaten_ns + dialogue->heartbeat_ns) {
        dialogue->beaten_ns = now_ns;
        dialogue->heartbeat_due = true;
    }
    if (dialogue->state == STATE_READY && now_ns >= dialogue->send_again_ns) {
        dialogue->send_again_ns = INT64_MAX;
        requests_unsend(&dialogue->requests);
    }
    if (dialogue->state == STATE_READY && now_ns >= dialogue->waits_ns) {
        dialogue->waits_ns = INT64_MAX;
        requests_unsend_waiting(&dialogue->requests);
    }
}

int64_t dialogue_next_deadline_ns(const struct dialogue *dialogue)
{
    if (dialogue->state == STATE_OFFLINE) {
        return INT64_MAX;
    }
    int64_t silence = silence_deadline_ns(dialogue);
    int64_t beat =
        dialogue->state == STATE_READY ? dialogue->beaten_ns + dialogue->heartbeat_ns : INT64_MAX;
    int64_t deadline = beat < silence ? beat : silence;
    if (dialogue->state != STATE_READY) {
        return deadline;
    }
    const int64_t again =
        dialogue->send_again_ns < dialogue->waits_ns ? dialogue->send_again_ns : dialogue->waits_ns;
    return again < deadline ? again : deadline;
}
