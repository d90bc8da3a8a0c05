/* This part of the agent's session sends what running subtasks print. */
#include "provider/session/agent_session_internal.h"

#include "base/checked.h"

#include <stdlib.h>

#define AGAIN_NS (2 * NS_PER_S)

void output_forget(struct agent_session *session)
{
    if (!id128_is_zero(&session->output)) {
        dialogue_forget(session->dialogue, &session->output);
    }
    session->output = (struct id128){0};
    session->output_refused = false;
    session->output_again_ns = 0;
    free(session->followed);
    session->followed = NULL;
    session->followed_count = 0;
}

void output_answered(struct agent_session *session, const struct dialogue_event *event)
{
    if (!id128_equal(&session->output, &event->id)) {
        return; /* the answer to a message that was overtaken */
    }
    const Bourse__V1__OutputWanted *body = (const void *)event->body;
    session->output = (struct id128){0};
    free(session->followed);
    session->followed = calloc(body->n_leases + 1, sizeof *session->followed);
    session->followed_count = session->followed == NULL ? 0 : body->n_leases;
    for (size_t i = 0; i < session->followed_count; i++) {
        session->followed[i] = body->leases[i]->lease;
    }
}

void output_rejected(struct agent_session *session, int64_t now_ns, enum reject_code code)
{
    session->output = (struct id128){0};
    /* An older broker does not know the message. Any other refusal may pass. */
    session->output_refused = code == REJECT_TYPE || code == REJECT_MALFORMED;
    session->output_again_ns = now_ns + AGAIN_NS;
}

int64_t agent_session_output_from_ns(const struct agent_session *session)
{
    const bool may = session_ready(session) && !session->output_refused && !session->said_goodbye;
    return may ? session->output_again_ns : INT64_MAX;
}

bool agent_session_output_waits(const struct agent_session *session)
{
    return !id128_is_zero(&session->output);
}

enum agent_status agent_session_post_output(struct agent_session *session, int64_t now_ns,
                                            Bourse__V1__OutputPiece **pieces, size_t count)
{
    if (now_ns < agent_session_output_from_ns(session)) {
        return AGENT_UNKNOWN;
    }
    Bourse__V1__OutputPost body = BOURSE__V1__OUTPUT_POST__INIT;
    body.n_pieces = count;
    body.pieces = pieces;
    /* Pieces that cannot be sent now are read again later. */
    return session_ask(session, now_ns, MESSAGE_OUTPUT_POST, &body.base, &session->output);
}

const uint64_t *agent_session_followed(const struct agent_session *session, size_t *ret_count)
{
    *ret_count = session->followed_count;
    return session->followed;
}
