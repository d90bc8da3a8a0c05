/* A dialogue takes the messages of the other side here, and notices a broken connection. */
#include "protocol/dialogue_internal.h"

#include "base/checked.h"
#include "base/random.h"
#include "base/text.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "protocol/requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RATE_PAUSE_NS NS_PER_S /* the broker reports RATE once a second */
/* A refused request is sent again after half of this time, or up to all of it. */
#define QUORUM_PAUSE_NS (2 * NS_PER_S)
/* Another broker may have taken the lead from one whose journal took no entry for so long. */
enum { QUORUM_MOVE_MS = 4000 };

/* A parting says how a connection ends. */
struct parting {
    enum dialogue_event_type type;
    enum contact_end end;
    const char *text;   /* for a person */
    const char *leader; /* the address that NOT_LEADER names; "" for none */
};

static void end_connection(struct dialogue *dialogue, const struct parting *parting,
                           struct dialogue_event *ret_event)
{
    const struct contact *tried = contacts_now(&dialogue->contacts);
    dialogue->state = STATE_OFFLINE;
    dialogue->give_again = false;
    ret_event->type = parting->type;
    ret_event->end = parting->end;
    if (tried != NULL) {
        memcpy(ret_event->address, tried->control, sizeof ret_event->address);
    }
    ret_event->wait_ns = contacts_next_ns(&dialogue->contacts, parting->end, parting->leader,
                                          dialogue->spread_ns, &dialogue->dice);
    text_printable(parting->text, strlen(parting->text), ret_event->text, sizeof ret_event->text);
}

static void broken(struct dialogue *dialogue, const char *text, struct dialogue_event *ret_event)
{
    dialogue->session = 0; /* resuming would break again */
    dialogue->resume_session = 0;
    end_connection(dialogue, &(struct parting){DIALOGUE_BROKEN, CONTACT_ENDED, text, ""},
                   ret_event);
}

void dialogue_lost(struct dialogue *dialogue, enum contact_end end, const char *text,
                   struct dialogue_event *ret_event)
{
    end_connection(dialogue, &(struct parting){DIALOGUE_LOST, end, text, ""}, ret_event);
}

/* Another broker leads. The session is not resumed: while its broker did not lead, it sent none of
 * the messages that the session waits for. Requests stay, and go to the next broker. */
static void on_not_leader(struct dialogue *dialogue, const Bourse__V1__Reject *reject,
                          struct dialogue_event *ret_event)
{
    const char *leader = reject->leader_address != NULL ? reject->leader_address : "";
    dialogue->session = 0;
    dialogue->resume_session = 0;
    end_connection(dialogue,
                   &(struct parting){DIALOGUE_LOST, CONTACT_FOLLOWS, reject->text, leader},
                   ret_event);
    ret_event->reject = REJECT_NOT_LEADER;
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
        dialogue_lost(dialogue, CONTACT_ENDED, "out of memory for signing", ret_event);
        return;
    }
    contacts_stands(&dialogue->contacts, dialogue_welcome(dialogue)->blob_endpoint);
    welcome = dialogue_welcome(dialogue);
    dialogue_note_state(dialogue, &(struct dialogue_state){
                                      .follows = welcome->has_follows && welcome->follows,
                                      .index = welcome->log_index,
                                      .log_ns = welcome->has_as_of_ns ? welcome->as_of_ns : 0,
                                      .stale_ms = welcome->has_stale_ms ? welcome->stale_ms : 0});
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
    end_connection(dialogue, &(struct parting){type, CONTACT_REFUSED, refusal.text, ""}, ret_event);
    ret_event->reject = refusal.reject;
}

static bool is_push(enum message_type type)
{
    return type == MESSAGE_LEASE_GRANT || type == MESSAGE_LEASE_RENEW || type == MESSAGE_DISPATCH ||
           type == MESSAGE_WITHDRAW || type == MESSAGE_LEASE_END || type == MESSAGE_JOB_EVENT ||
           type == MESSAGE_ASK_EVENT || type == MESSAGE_LEASE_NOTICE;
}

/* The journal of the broker takes no entry. The request is kept and sent again. Of several brokers,
 * another one may lead by now: a leader that is cut off from its journal cannot know. */
static void on_no_quorum(struct dialogue *dialogue, struct request *request,
                         const Bourse__V1__Reject *reject, struct dialogue_event *ret_event)
{
    ret_event->id = request->id;
    ret_event->request_type = request->type;
    if (contacts_has_choice(&dialogue->contacts) && reject->has_value &&
        reject->value >= QUORUM_MOVE_MS) {
        end_connection(dialogue,
                       &(struct parting){DIALOGUE_LOST, CONTACT_NO_QUORUM, reject->text, ""},
                       ret_event);
        ret_event->reject = REJECT_NO_QUORUM;
        return;
    }
    fill_reject(reject, ret_event);
    request->is_waiting = true;
    if (dialogue->waits_ns == INT64_MAX) {
        const uint64_t share = random_below(&dialogue->dice, QUORUM_PAUSE_NS / 2 + 1);
        dialogue->waits_ns = dialogue->heard_ns + QUORUM_PAUSE_NS / 2 + (int64_t)share;
    }
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
    if (type == MESSAGE_REJECT &&
        ((const Bourse__V1__Reject *)(const void *)*body)->code == REJECT_NO_QUORUM) {
        on_no_quorum(dialogue, request, (const Bourse__V1__Reject *)(const void *)*body, ret_event);
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
        contacts_leads(&dialogue->contacts);
        ret_event->index = ((const Bourse__V1__Accepted *)(const void *)*body)->index;
        if (ret_event->index > dialogue->least_index) {
            dialogue->least_index = ret_event->index;
        }
    } else {
        ret_event->type = DIALOGUE_REPLY;
        ret_event->body = *body;
        *body = NULL;
    }
    requests_drop(&dialogue->requests, request);
}

static void on_heartbeat(struct dialogue *dialogue, const Bourse__V1__Heartbeat *heartbeat)
{
    if (heartbeat->has_spread_ms) {
        dialogue->spread_ns = (int64_t)heartbeat->spread_ms * NS_PER_MS;
    }
    if (heartbeat->has_state_index) {
        dialogue_note_state(dialogue,
                            &(struct dialogue_state){
                                .follows = dialogue->state_told.follows,
                                .index = heartbeat->state_index,
                                .log_ns = heartbeat->has_state_ns ? heartbeat->state_ns : 0,
                                .stale_ms = heartbeat->has_stale_ms ? heartbeat->stale_ms : 0});
    }
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
        dialogue_lost(dialogue, CONTACT_ENDED, "the broker said goodbye", ret_event);
    } else if (type == MESSAGE_HEARTBEAT) {
        on_heartbeat(dialogue, (const void *)*body);
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
        dialogue_lost(dialogue, CONTACT_ENDED, "messages of the broker were lost on the way",
                      ret_event);
        return false;
    }
    dialogue->sequence_in++;
    return true;
}

static bool is_not_leader(const ProtobufCMessage *reject)
{
    return ((const Bourse__V1__Reject *)(const void *)reject)->code == REJECT_NOT_LEADER;
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
        } else if (type == MESSAGE_REJECT && is_not_leader(*body)) {
            on_not_leader(dialogue, (const void *)*body, ret_event);
        } else if (type == MESSAGE_REJECT) {
            on_greeting_refused(dialogue, (const Bourse__V1__Reject *)(const void *)*body,
                                ret_event);
        }
        return;
    }
    if (type == MESSAGE_REJECT &&
        ((const Bourse__V1__Reject *)(const void *)*body)->code == REJECT_SESSION) {
        /* The broker restarted. */
        dialogue_lost(dialogue, CONTACT_ENDED, "the broker does not know this session any more",
                      ret_event);
        return;
    }
    if (type == MESSAGE_REJECT && is_not_leader(*body)) {
        on_not_leader(dialogue, (const void *)*body, ret_event);
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
        dialogue_lost(dialogue, CONTACT_ENDED, "out of memory for a message of the broker",
                      ret_event);
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
