/* This part of the agent's session carries the messages of terminals. */
#include "provider/session/agent_session_internal.h"

enum agent_status agent_session_terminal(struct agent_session *session, int64_t now_ns,
                                         enum message_type type, const ProtobufCMessage *body,
                                         struct id128 *ret_id)
{
    if (!session_ready(session) || session->said_goodbye) {
        return AGENT_UNKNOWN;
    }
    const enum agent_status status = session_ask(session, now_ns, type, body, ret_id);
    return status == AGENT_BAD ? AGENT_UNKNOWN
                               : status; /* the bytes are still there, and go later */
}

bool terminal_is_of(enum message_type type)
{
    return type == MESSAGE_TERMINAL_SEND || type == MESSAGE_TERMINAL_RECEIVE ||
           type == MESSAGE_TERMINAL_TAKEN || type == MESSAGE_TERMINAL_BYTES;
}

void terminal_answered(struct agent_session *session, struct dialogue_event *event)
{
    struct agent_action action = {
        .type = AGENT_TERMINAL,
        .terminal = {.id = event->id, .type = event->message_type, .body = event->body}};
    event->body = NULL; /* the action has it */
    session_act(session, &action);
}

void terminal_rejected(struct agent_session *session, const struct dialogue_event *event)
{
    struct agent_action action = {.type = AGENT_TERMINAL,
                                  .terminal = {.id = event->id, .reject = event->reject}};
    session_act(session, &action);
}

void agent_session_drop_action(struct agent_action *action)
{
    if (action->type == AGENT_TERMINAL) {
        codec_free(&action->terminal.body);
    }
}
