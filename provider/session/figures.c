/* This part of the agent's session tells the broker what the devices do at this moment. */
#include "provider/session/agent_session_internal.h"

void figures_forget(struct agent_session *session)
{
    if (!id128_is_zero(&session->figures)) {
        dialogue_forget(session->dialogue, &session->figures);
    }
    session->figures = (struct id128){0};
    session->figures_refused = false;
}

void figures_answered(struct agent_session *session)
{
    session->figures = (struct id128){0};
}

void figures_rejected(struct agent_session *session, enum reject_code code)
{
    session->figures = (struct id128){0};
    /* An older broker does not know the message. After any other refusal the next figures go. */
    session->figures_refused = code == REJECT_TYPE || code == REJECT_MALFORMED;
}

bool agent_session_may_post_figures(const struct agent_session *session)
{
    return session_ready(session) && !session->figures_refused && !session->said_goodbye &&
           id128_is_zero(&session->figures);
}

enum agent_status agent_session_post_figures(struct agent_session *session, int64_t now_ns,
                                             Bourse__V1__DeviceFigures **figures, size_t count)
{
    if (!agent_session_may_post_figures(session)) {
        return AGENT_UNKNOWN;
    }
    Bourse__V1__FiguresPost body = BOURSE__V1__FIGURES_POST__INIT;
    body.n_devices = count;
    body.devices = figures;
    /* Newer figures come soon, so figures that cannot be sent now are lost. */
    return session_ask(session, now_ns, MESSAGE_FIGURES_POST, &body.base, &session->figures);
}
