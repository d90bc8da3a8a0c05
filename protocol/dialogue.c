#include "protocol/dialogue.h"

#include "base/checked.h"
#include "base/random.h"
#include "base/text.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "protocol/requests.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WELCOME_WAIT_NS (5 * NS_PER_S)
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_MOST_NS (5 * NS_PER_S)
#define RATE_PAUSE_NS NS_PER_S /* the broker reports RATE once a second */

enum { HEARTBEATS_MISSED = 3, BACKOFF_DOUBLINGS_MAX = 6 };

enum state {
    STATE_OFFLINE,  /* no connection, or a useless one */
    STATE_GREETING, /* Hello is going out; Welcome is awaited */
    STATE_READY,
    STATE_LEAVING, /* Goodbye is going out; nothing follows */
};

struct dialogue {
    struct dialogue_config config;
    enum state state;
    struct requests requests;

    struct random dice;
    uint64_t connections; /* since the start */
    unsigned failures;    /* since the last Welcome */
    struct id128 hello_id;
    uint64_t session;
    uint64_t sequence_out; /* last one used */
    uint64_t sequence_in;  /* last one received */
    uint64_t caught_up_at; /* until then missed messages arrive */
    /* The position on the former connection; 0: no session to resume. */
    uint64_t resume_session, resume_sequence;

    ProtobufCMessage *welcome; /* the latest, decoded */
    struct id128 cluster;      /* of the latest Welcome */
    int64_t log_time_ms;       /* the broker's latest log time ... */
    int64_t log_heard_ns;      /* ... received at this local moment */
    int64_t heartbeat_ns;
    /* The broker asks its clients to spread their return over this time. */
    int64_t spread_ns;
    int64_t connected_ns;
    int64_t heard_ns;
    int64_t beaten_ns;
    int64_t send_again_ns; /* when to resend after RATE; INT64_MAX: never */

    bool hello_due;
    bool heartbeat_due;
    bool goodbye_due;
    char goodbye[LIMIT_TEXT_BYTES + 1];

    uint8_t *outgoing; /* the last message given out */
    size_t outgoing_length;
    size_t outgoing_capacity;
    bool give_again;
};

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
    requests_unsend(&dialogue->requests);
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

/* ---- what comes in ---- */

/* Returns the wait before a reconnect, which doubles from 100 ms to 5 s. A random part of up to
 * half is left out, so that clients do not return in step. The broker's spread is added. */
static int64_t backoff_ns(struct dialogue *dialogue)
{
    unsigned doublings =
        dialogue->failures < BACKOFF_DOUBLINGS_MAX ? dialogue->failures : BACKOFF_DOUBLINGS_MAX;
    int64_t most = BACKOFF_FIRST_NS << doublings;
    if (most > BACKOFF_MOST_NS) {
        most = BACKOFF_MOST_NS;
    }
    dialogue->failures++;
    int64_t wait_ns = most / 2 + (int64_t)random_below(&dialogue->dice, (uint64_t)(most / 2) + 1);
    return wait_ns + (int64_t)random_below(&dialogue->dice, (uint64_t)dialogue->spread_ns + 1);
}

static void end_connection(struct dialogue *dialogue, enum dialogue_event_type type,
                           const char *text, struct dialogue_event *ret_event)
{
    dialogue->state = STATE_OFFLINE;
    dialogue->give_again = false;
    ret_event->type = type;
    ret_event->wait_ns = backoff_ns(dialogue);
    text_printable(text, strlen(text), ret_event->text, sizeof ret_event->text);
}

static void broken(struct dialogue *dialogue, const char *text, struct dialogue_event *ret_event)
{
    dialogue->session = 0; /* resuming would break again */
    dialogue->resume_session = 0;
    end_connection(dialogue, DIALOGUE_BROKEN, text, ret_event);
}

static void lost(struct dialogue *dialogue, const char *text, struct dialogue_event *ret_event)
{
    end_connection(dialogue, DIALOGUE_LOST, text, ret_event);
}

/* A new session begins with its Welcome as number 1; a resumed one goes on after the last number
 * received. */
static bool opens_session(const struct dialogue *dialogue, const Bourse__V1__Welcome *welcome,
                          const struct envelope *envelope)
{
    if (welcome->session != envelope->session) {
        return false;
    }
    if (!welcome->has_resumed || !welcome->resumed) {
        return envelope->sequence == 1 && !welcome->has_missed;
    }
    return dialogue->resume_session != 0 && envelope->session == dialogue->resume_session &&
           envelope->sequence == dialogue->resume_sequence;
}

static void on_welcome(struct dialogue *dialogue, int64_t now_ns, const struct envelope *envelope,
                       ProtobufCMessage **body, struct dialogue_event *ret_event)
{
    const Bourse__V1__Welcome *welcome = (const Bourse__V1__Welcome *)(const void *)*body;
    struct id128 cluster = codec_id(welcome->cluster);
    if (welcome->version != ENVELOPE_VERSION) {
        broken(dialogue,
               "the broker speaks another version of the protocol; upgrade the older of the two",
               ret_event);
        return;
    }
    if (dialogue->welcome != NULL && !id128_equal(&cluster, &dialogue->cluster)) {
        broken(dialogue, "another market answers at this address now; join it anew", ret_event);
        return;
    }
    if (!opens_session(dialogue, welcome, envelope)) {
        broken(dialogue, "the broker's welcome does not open its session", ret_event);
        return;
    }
    dialogue->caught_up_at = envelope->sequence + (welcome->has_missed ? welcome->missed : 0);
    dialogue->resume_session = 0;
    codec_free(&dialogue->welcome);
    dialogue->welcome = *body;
    *body = NULL;
    dialogue->cluster = cluster;
    dialogue->session = envelope->session;
    dialogue->sequence_in = envelope->sequence;
    dialogue->sequence_out = 0;
    dialogue->give_again = false;
    dialogue->log_time_ms = dialogue_welcome(dialogue)->log_time_ms;
    dialogue->log_heard_ns = now_ns;
    dialogue->heard_ns = now_ns;
    dialogue->beaten_ns = now_ns;
    dialogue->heartbeat_ns = (int64_t)dialogue_welcome(dialogue)->heartbeat_ms * NS_PER_MS;
    dialogue->spread_ns = (int64_t)dialogue_welcome(dialogue)->spread_ms * NS_PER_MS;
    if (!requests_stamp(&dialogue->requests, dialogue->config.identity, &dialogue->cluster,
                        dialogue_log_time_ms(dialogue, now_ns))) {
        lost(dialogue, "out of memory for signing", ret_event);
        return;
    }
    dialogue->failures = 0;
    dialogue->state = STATE_READY;
    ret_event->type = DIALOGUE_READY;
    ret_event->welcome = dialogue_welcome(dialogue);
}

static void fill_reject(const Bourse__V1__Reject *reject, struct dialogue_event *ret_event)
{
    ret_event->reject = (enum reject_code)reject->code;
    text_printable(reject->text, strlen(reject->text), ret_event->text, sizeof ret_event->text);
    const char *field = reject->field != NULL ? reject->field : "";
    text_printable(field, strlen(field), ret_event->field, sizeof ret_event->field);
    ret_event->value = reject->has_value ? reject->value : 0;
    ret_event->limit = reject->has_limit ? reject->limit : 0;
}

/* A refused Hello is hopeless for another version, else worth another try. */
static void on_greeting_refused(struct dialogue *dialogue, const Bourse__V1__Reject *reject,
                                struct dialogue_event *ret_event)
{
    struct dialogue_event refusal = {0};
    fill_reject(reject, &refusal);
    enum dialogue_event_type type =
        refusal.reject == REJECT_VERSION ? DIALOGUE_BROKEN : DIALOGUE_LOST;
    end_connection(dialogue, type, refusal.text, ret_event);
    ret_event->reject = refusal.reject;
}

static bool is_push(enum message_type type)
{
    return type == MESSAGE_LEASE_GRANT || type == MESSAGE_LEASE_RENEW || type == MESSAGE_DISPATCH ||
           type == MESSAGE_WITHDRAW || type == MESSAGE_LEASE_END || type == MESSAGE_JOB_EVENT ||
           type == MESSAGE_ASK_EVENT || type == MESSAGE_LEASE_NOTICE;
}

/* Handles an answer; NULL is a forgotten request. Takes the body when the caller gets it. */
static void on_answer(struct dialogue *dialogue, struct request *request,
                      const struct envelope *envelope, ProtobufCMessage **body,
                      struct dialogue_event *ret_event)
{
    enum message_type type = (enum message_type)envelope->type;
    if (request == NULL) {
        return;
    }
    if (type != MESSAGE_REJECT && type != message_answer(request->type)) {
        broken(dialogue, "the broker answered with a message of the wrong type", ret_event);
        return;
    }
    ret_event->id = request->id;
    ret_event->request_type = request->type;
    if (type == MESSAGE_REJECT) {
        ret_event->type = DIALOGUE_REJECTED;
        fill_reject((const Bourse__V1__Reject *)(const void *)*body, ret_event);
        if (ret_event->reject == REJECT_RATE && dialogue->send_again_ns == INT64_MAX) {
            dialogue->send_again_ns = dialogue->heard_ns + RATE_PAUSE_NS;
        }
    } else if (type == MESSAGE_ACCEPTED) {
        ret_event->type = DIALOGUE_ACCEPTED;
        ret_event->index = ((const Bourse__V1__Accepted *)(const void *)*body)->index;
    } else {
        ret_event->type = DIALOGUE_REPLY;
        ret_event->body = *body;
        *body = NULL;
    }
    requests_drop(&dialogue->requests, request);
}

static void on_message(struct dialogue *dialogue, const struct envelope *envelope,
                       ProtobufCMessage **body, struct dialogue_event *ret_event)
{
    enum message_type type = (enum message_type)envelope->type;
    if (is_push(type)) {
        ret_event->type = DIALOGUE_PUSH;
        ret_event->id = envelope->id;
        ret_event->body = *body;
        *body = NULL;
    } else if (type == MESSAGE_GOODBYE) {
        lost(dialogue, "the broker said goodbye", ret_event);
    } else if (type == MESSAGE_HEARTBEAT) {
        const Bourse__V1__Heartbeat *heartbeat = (const void *)*body;
        if (heartbeat->has_spread_ms) {
            dialogue->spread_ns = (int64_t)heartbeat->spread_ms * NS_PER_MS;
        }
    } else {
        on_answer(dialogue, requests_find(&dialogue->requests, &envelope->id), envelope, body,
                  ret_event);
    }
}

/* Returns true when the message is the next one of the present session. */
static bool in_sequence(struct dialogue *dialogue, const struct envelope *envelope,
                        struct dialogue_event *ret_event)
{
    if (envelope->session != dialogue->session) {
        return false; /* from an earlier connection */
    }
    if (envelope->sequence <= dialogue->sequence_in) {
        return false; /* a repeat */
    }
    if (envelope->sequence != dialogue->sequence_in + 1) {
        lost(dialogue, "messages of the broker were lost on the way", ret_event);
        return false;
    }
    dialogue->sequence_in++;
    return true;
}

static void on_body(struct dialogue *dialogue, int64_t now_ns, const struct envelope *envelope,
                    ProtobufCMessage **body, struct dialogue_event *ret_event)
{
    enum message_type type = (enum message_type)envelope->type;
    if (dialogue->state == STATE_GREETING) {
        if (!id128_equal(&envelope->id, &dialogue->hello_id)) {
            return; /* from an earlier connection */
        }
        if (type == MESSAGE_WELCOME) {
            on_welcome(dialogue, now_ns, envelope, body, ret_event);
        } else if (type == MESSAGE_REJECT) {
            on_greeting_refused(dialogue, (const Bourse__V1__Reject *)(const void *)*body,
                                ret_event);
        }
        return;
    }
    if (type == MESSAGE_REJECT &&
        ((const Bourse__V1__Reject *)(const void *)*body)->code == REJECT_SESSION) {
        /* The broker restarted. */
        lost(dialogue, "the broker does not know this session any more", ret_event);
        return;
    }
    if (in_sequence(dialogue, envelope, ret_event)) {
        dialogue->heard_ns = now_ns;
        /* The broker's clock drifts by up to 1 %, so each message corrects ours: over a day the
         * error would be too large. */
        if (envelope->created_ms > 0) {
            dialogue->log_time_ms = envelope->created_ms;
            dialogue->log_heard_ns = now_ns;
        }
        on_message(dialogue, envelope, body, ret_event);
    }
}

static const char *envelope_complaint(enum envelope_status status)
{
    switch (status) {
    case ENVELOPE_BAD_VERSION:
        return "the broker speaks another version of the protocol; upgrade the older of the two";
    case ENVELOPE_TOO_LARGE:
        return "the broker sent a message above the limit";
    case ENVELOPE_OK:
    case ENVELOPE_SHORT:
    case ENVELOPE_LONG:
    case ENVELOPE_BAD_MAGIC:
    case ENVELOPE_BAD_FLAGS:
        break;
    }
    return "what came is not a message of this protocol";
}

static void write_complaint(enum message_type type, enum codec_status status,
                            const struct codec_error *error, char *ret_text, size_t capacity)
{
    if (status == CODEC_TOO_LARGE) {
        (void)snprintf(ret_text, capacity,
                       "the broker sent a message that is larger, or takes more memory, than it "
                       "may (%s, at most %" PRId64 " bytes)",
                       message_name(type), error->limit);
    } else {
        (void)snprintf(ret_text, capacity, "the broker sent a malformed message (%s, field \"%s\")",
                       message_name(type), error->field);
    }
}

void dialogue_incoming(struct dialogue *dialogue, int64_t now_ns, const uint8_t *message,
                       size_t length, struct dialogue_event *ret_event)
{
    *ret_event = (struct dialogue_event){.type = DIALOGUE_NOTHING};
    if (dialogue->state == STATE_OFFLINE) {
        return;
    }
    struct envelope envelope;
    enum envelope_status status = envelope_read(message, length, LIMIT_LARGE_BODY_BYTES, &envelope);
    if (status != ENVELOPE_OK) {
        broken(dialogue, envelope_complaint(status), ret_event);
        return;
    }
    ret_event->message_type = (enum message_type)envelope.type;
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    enum codec_status decoded =
        codec_decode(ret_event->message_type, envelope.body, envelope.body_length, &body, &error);
    if (decoded == CODEC_OUT_OF_MEMORY) {
        lost(dialogue, "out of memory for a message of the broker", ret_event);
        return;
    }
    if (decoded != CODEC_OK) {
        char text[256];
        write_complaint(ret_event->message_type, decoded, &error, text, sizeof text);
        broken(dialogue, text, ret_event);
        return;
    }
    on_body(dialogue, now_ns, &envelope, &body, ret_event);
    codec_free(&body); /* does nothing when the event took it */
}

/* ---- time ---- */

static int64_t silence_deadline_ns(const struct dialogue *dialogue)
{
    if (dialogue->state == STATE_GREETING) {
        return dialogue->connected_ns + WELCOME_WAIT_NS;
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
        lost(dialogue, "the broker does not answer", ret_event);
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
    return dialogue->state == STATE_READY && dialogue->send_again_ns < deadline
               ? dialogue->send_again_ns
               : deadline;
}
