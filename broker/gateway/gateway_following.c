/* This part of the gateway is for a broker that follows another one. Clients that only read get a
 * session, and learn of which state each answer is. Everybody else is told who leads. */
#include "broker/gateway/gateway_internal.h"

#include "base/checked.h"
#include "broker/core/translate.h"
#include "broker/fatal.h"
#include "runtime/clock.h"

#include <string.h>

/* The rate bounds the answers a second that name the leader. Whoever completed the handshake of the
 * port gets one, so that a client with an invitation finds the leader too. */
enum { LEADER_RATE = 2000 };

/* The answer may get lost without harm: its sender tries again. */
static void name_leader(struct gateway *gateway, const struct incoming *in)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (!allowance_take(&gateway->strays, LEADER_RATE, now_ns)) {
        gateway->counts.dropped++;
        return;
    }
    struct following now = following_now(gateway->config.following, now_ns);
    struct outgoing *outgoing =
        outgoing_not_leader(in->envelope.session, &in->envelope.id, now.leader);
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    gateway_send_stray(gateway, in, outgoing);
    outgoing_destroy(&outgoing);
}

/* Returns true for the Hello of a client that may read here: one that asks for it, and knows of no
 * later command than this broker. A broker that has not reached the end of the journal yet is no
 * source for anybody. */
static bool may_read(const struct gateway *gateway, const struct incoming *in)
{
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    if (codec_decode(MESSAGE_HELLO, in->envelope.body, in->envelope.body_length, &body, &error) !=
        CODEC_OK) {
        return false;
    }
    const Bourse__V1__Hello *hello = (const void *)body;
    const struct following now = following_now(gateway->config.following, clock_monotonic_ns());
    const bool is_reader =
        hello->has_reads && hello->reads && (!hello->has_role || hello->role != SESSION_PROVIDER);
    const bool is_early = hello->has_least_index && hello->least_index > now.index;
    codec_free(&body);
    return is_reader && !is_early && now.age_ms >= 0;
}

bool gateway_redirects(struct gateway *gateway, const struct incoming *in)
{
    if (gateway->config.following == NULL) {
        return false;
    }
    struct session *session = sessions_of(gateway->sessions, in->envelope.session,
                                          &in->message.route, &in->message.client);
    const enum message_type type = (enum message_type)in->envelope.type;
    if (type == MESSAGE_HELLO ? may_read(gateway, in)
                              : session != NULL && !translate_is_command(type)) {
        return false;
    }
    if (type != MESSAGE_GOODBYE) {
        name_leader(gateway, in);
    }
    if (session != NULL) {
        sessions_close(session); /* its client goes to the leader */
    }
    return true;
}

void gateway_tell_state(struct gateway *gateway, struct session *session,
                        const struct outgoing *answer)
{
    static const struct id128 no_id;
    if (gateway->config.following == NULL || answer->log_time_ns == 0) {
        return;
    }
    const struct following now = following_now(gateway->config.following, clock_monotonic_ns());
    Bourse__V1__Heartbeat body = BOURSE__V1__HEARTBEAT__INIT;
    body.has_state_index = body.has_state_ns = true;
    body.state_index = answer->index;
    body.state_ns = answer->log_time_ns;
    body.has_stale_ms = now.stale_ms > 0;
    body.stale_ms = now.stale_ms;
    gateway_send_body(gateway, session, MESSAGE_HEARTBEAT, &no_id, &body.base);
}

void gateway_fill_following(const struct gateway *gateway, Bourse__V1__Welcome *body)
{
    if (gateway->config.following == NULL) {
        return;
    }
    const struct following now = following_now(gateway->config.following, clock_monotonic_ns());
    body->has_follows = body->follows = true;
    body->log_index = now.index;
    body->as_of_ns = now.log_ns;
    body->has_stale_ms = now.stale_ms > 0;
    body->stale_ms = now.stale_ms;
}
