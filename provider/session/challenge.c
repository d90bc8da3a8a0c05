/* This part of the agent's session lets the broker challenge the speed of devices.
 *
 * One message is under way: the agent is ready, or answers and is ready again. The broker answers
 * with the next challenge, whenever it wants one. */
#include "provider/session/agent_session_internal.h"

#include "base/checked.h"

#include <string.h>

#define AGAIN_NS (2 * NS_PER_S)

void challenge_forget(struct agent_session *session)
{
    if (!id128_is_zero(&session->challenge)) {
        dialogue_forget(session->dialogue, &session->challenge);
    }
    session->challenge = (struct id128){0};
    session->challenge_refused = false;
    session->challenge_again_ns = INT64_MAX;
}

static ProtobufCBinaryData view(const void *bytes, size_t length)
{
    /* The encoder only reads; the generated struct just has no const. */
    return (ProtobufCBinaryData){.len = length, .data = (uint8_t *)(uintptr_t)bytes};
}

static void send(struct agent_session *session, int64_t now_ns,
                 const Bourse__V1__ChallengeReady *body)
{
    const enum agent_status status =
        session_ask(session, now_ns, MESSAGE_CHALLENGE_READY, &body->base, &session->challenge);
    const bool is_later = status == AGENT_BAD || status == AGENT_UNKNOWN;
    session->challenge_again_ns = is_later ? now_ns + AGAIN_NS : INT64_MAX;
}

static bool may_send(const struct agent_session *session)
{
    return session->config.answers_challenges && session_ready(session) &&
           !session->challenge_refused && !session->said_goodbye &&
           id128_is_zero(&session->challenge);
}

void challenge_be_ready(struct agent_session *session, int64_t now_ns)
{
    const Bourse__V1__ChallengeReady body = BOURSE__V1__CHALLENGE_READY__INIT;
    if (may_send(session) && !session->is_challenged) {
        send(session, now_ns, &body);
    }
}

void challenge_answered(struct agent_session *session, int64_t now_ns,
                        const struct dialogue_event *event)
{
    const Bourse__V1__Challenge *body = (const void *)event->body;
    struct agent_action action = {.type = AGENT_CHALLENGE};
    if (!id128_equal(&session->challenge, &event->id)) {
        return;
    }
    session->challenge = (struct id128){0};
    action.challenge.device = codec_id(body->device);
    memcpy(action.challenge.seed.bytes, body->seed.data, sizeof action.challenge.seed.bytes);
    action.challenge.side = body->side;
    action.challenge.rounds = body->rounds;
    action.challenge.rows = body->has_rows ? body->rows : 0;
    action.challenge.steps = body->has_steps ? body->steps : 0;
    if (session->is_challenged) { /* the former challenge is still computed */
        (void)agent_session_challenged(session, now_ns, &action.challenge, NULL, 0);
        return;
    }
    session->is_challenged = true;
    session_act(session, &action);
}

void challenge_rejected(struct agent_session *session, int64_t now_ns, const struct id128 *id,
                        enum reject_code code)
{
    if (id128_equal(&session->challenge, id)) {
        session->challenge = (struct id128){0};
        /* An older broker does not know the message. Any other refusal may pass. */
        session->challenge_refused = code == REJECT_TYPE || code == REJECT_MALFORMED;
        session->challenge_again_ns = now_ns + AGAIN_NS;
    }
}

enum agent_status agent_session_challenged(struct agent_session *session, int64_t now_ns,
                                           const struct agent_challenge *challenge,
                                           const void *digests, size_t length)
{
    Bourse__V1__ChallengeReady body = BOURSE__V1__CHALLENGE_READY__INIT;
    session->is_challenged = false;
    if (!may_send(session)) {
        session->challenge_again_ns = now_ns; /* ready again, once the broker is there */
        return AGENT_UNKNOWN;
    }
    body.has_device = body.has_seed = true;
    body.device = view(challenge->device.bytes, sizeof challenge->device.bytes);
    body.seed = view(challenge->seed.bytes, sizeof challenge->seed.bytes);
    body.has_digests = length > 0;
    body.digests = view(digests, length);
    send(session, now_ns, &body);
    return AGENT_OK;
}

/* The figures of one slot that a challenge can find false. */
static bool is_lowered(struct offered_device *device, int64_t mflops)
{
    bool is_changed = false;
    for (size_t i = 0; i < device->facts.attribute_count; i++) {
        struct attribute *attribute = &device->attributes[i];
        const bool is_gemm = strcmp(attribute->name, "gemm_fp32") == 0 ||
                             strcmp(attribute->name, "gemm_fp32_held") == 0;
        const bool is_fp32 = strcmp(attribute->name, "fp32") == 0;
        int64_t most = mflops;
        if (attribute->is_text || (!is_gemm && !is_fp32) ||
            (is_fp32 && !checked_mul(mflops, 1000000, &most)) || attribute->number <= most) {
            continue;
        }
        attribute->number = most;
        is_changed = true;
    }
    return is_changed;
}

bool challenge_lowers(struct agent_session *session, int64_t now_ns, const struct id128 *id,
                      int64_t mflops)
{
    for (size_t i = 0; i < session->device_count; i++) {
        struct offered_device *device = &session->devices[i];
        if (!id128_equal(&device->facts.device, id) || mflops <= 0 || !is_lowered(device, mflops)) {
            continue;
        }
        session_note(session,
                     "the device \"%s\" showed %lld Mflop/s when the broker challenged its speed, "
                     "and is offered with that from now on (gemm_fp32)",
                     device->facts.label, (long long)mflops);
        offers_renew(session, now_ns);
        return true;
    }
    return false;
}
