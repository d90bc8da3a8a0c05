/* This part of the gateway sends messages and refusals, on sessions and outside of them. */
#include "broker/gateway/gateway_internal.h"

#include "base/checked.h"
#include "broker/fatal.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <assert.h>

/* Refusals a second outside of any session, where no session's rate applies. */
enum { STRAY_RATE = 2000 };

int64_t gateway_log_time_ms(const struct gateway *gateway)
{
    if (gateway->config.following != NULL) { /* the leader's clock went on since */
        const struct following now = following_now(gateway->config.following, clock_monotonic_ns());
        return now.log_ns / NS_PER_MS + (now.age_ms > 0 ? now.age_ms : 0);
    }
    return logtime_now(gateway->config.clock) / NS_PER_MS;
}

static enum router_sent send_bytes(struct gateway *gateway, const struct route *route,
                                   const struct key32 *client, uint64_t session, uint64_t sequence,
                                   const struct outgoing *outgoing)
{
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)outgoing->type,
                                .session = session,
                                .sequence = sequence,
                                .id = outgoing->id,
                                .created_ms = gateway_log_time_ms(gateway),
                                .body = outgoing->body,
                                .body_length = (uint32_t)outgoing->length};
    size_t size = envelope_size(&envelope);
    assert(size <= LIMIT_MESSAGE_BYTES);
    envelope_write(&envelope, gateway->buffer, LIMIT_MESSAGE_BYTES);
    return router_send(gateway->config.router, route, client, gateway->buffer, size);
}

bool gateway_put_on_wire(struct gateway *gateway, struct session *session, uint64_t sequence,
                         const struct outgoing *outgoing)
{
    switch (send_bytes(gateway, &session->route, &session->transport, session->number, sequence,
                       outgoing)) {
    case ROUTER_SENT:
        session->wire_sequence = sequence;
        session->sent_ns = clock_monotonic_ns();
        return true;
    /* The client does not read at present; the rest waits, within its caps. */
    case ROUTER_FULL:
        gateway->counts.lost_sends++;
        return false;
    case ROUTER_GONE:
        gateway->counts.lost_sends++;
        sessions_detach(session);
        return false;
    case ROUTER_BROKEN:
        fatal("the control socket is broken");
    }
    return false;
}

void gateway_catch_up(struct gateway *gateway, struct session *session)
{
    const struct resend_message *kept;
    if (session->is_detached || session->is_closing ||
        (session->is_welcome_due && !gateway_welcome_back(gateway, session))) {
        return;
    }
    while (!session->is_detached && !session->is_closing &&
           (kept = resend_buffer_find(&session->resend, session->wire_sequence + 1)) != NULL) {
        const struct outgoing again = {.kind = OUTGOING_REPLY,
                                       .type = kept->type,
                                       .id = kept->id,
                                       .body = kept->body,
                                       .length = kept->length};
        if (!gateway_put_on_wire(gateway, session, session->wire_sequence + 1, &again)) {
            return;
        }
    }
}

void gateway_send(struct gateway *gateway, struct session *session, struct outgoing *outgoing)
{
    uint64_t sequence = session->resend.last + 1;
    if (outgoing->length > LIMIT_LARGE_BODY_BYTES) {
        log_error("an answer of type %s is too large to send: %zu bytes",
                  message_name(outgoing->type), outgoing->length);
        return; /* the asker times out; there is no smaller answer */
    }
    if (!session->is_detached && !session->is_welcome_due &&
        session->wire_sequence + 1 == sequence) {
        (void)gateway_put_on_wire(gateway, session, sequence, outgoing);
    }
    const struct resend_message kept = {.type = outgoing->type,
                                        .id = outgoing->id,
                                        .body = outgoing->body,
                                        .length = outgoing->length};
    outgoing->body = NULL;
    outgoing->length = 0;
    sessions_keep(gateway->sessions, session, &kept);
}

void gateway_send_stray(struct gateway *gateway, const struct incoming *in,
                        const struct outgoing *outgoing)
{
    (void)send_bytes(gateway, &in->message.route, &in->message.client, in->envelope.session, 0,
                     outgoing);
}

void gateway_send_body(struct gateway *gateway, struct session *session, enum message_type type,
                       const struct id128 *id, const ProtobufCMessage *body)
{
    struct outgoing *outgoing = outgoing_message(OUTGOING_REPLY, type, body);
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    outgoing->id = *id;
    gateway_send(gateway, session, outgoing);
    outgoing_destroy(&outgoing);
}

void gateway_note_refused(struct gateway *gateway, const struct incoming *in, enum reject_code code)
{
    if (in->account != NULL) {
        refusals_note(gateway->config.refusals, in->account->number, code,
                      (enum message_type)in->envelope.type);
    }
}

void gateway_refuse(struct gateway *gateway, const struct incoming *in, struct session *session,
                    enum reject_code code, const char *field, int64_t value, int64_t limit)
{
    bool is_stray = session == NULL;
    if (is_stray && (in->account == NULL ||
                     !allowance_take(&gateway->strays, STRAY_RATE, clock_monotonic_ns()))) {
        gateway->counts.dropped++;
        gateway_note_refused(gateway, in, code);
        return;
    }
    gateway->counts.refused++;
    gateway_note_refused(gateway, in, code);
    struct outgoing *outgoing =
        outgoing_reject(in->envelope.session, &in->envelope.id, code, field, value, limit);
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    if (session != NULL) {
        gateway_send(gateway, session, outgoing);
    } else {
        gateway_send_stray(gateway, in, outgoing);
    }
    outgoing_destroy(&outgoing);
}

static void send_reject(struct gateway *gateway, struct session *session, struct outgoing *outgoing)
{
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    gateway_send(gateway, session, outgoing);
    outgoing_destroy(&outgoing);
}

void gateway_refuse_quorum(struct gateway *gateway, const struct incoming *in,
                           struct session *session)
{
    gateway->counts.refused++;
    const struct id128 *id = &in->envelope.id;
    send_reject(
        gateway, session,
        session->waits
            ? outgoing_unsettled(session->number, id, gateway->config.quorum, clock_monotonic_ns())
            : outgoing_reject(session->number, id, REJECT_UNAVAILABLE, "journal", 0, 0));
}

void gateway_say_unavailable(struct gateway *gateway, struct session *session,
                             const struct outgoing *refusal)
{
    if (refusal->refused_type != 0) {
        send_reject(
            gateway, session,
            outgoing_reject(session->number, &refusal->id, REJECT_UNAVAILABLE, "journal", 0, 0));
    }
}
