/* This file takes the broker's answers to requests about asks and devices. */
#include "protocol/conditions.h"
#include "provider/session/agent_session_internal.h"
#include "provider/session/offers_internal.h"

#include <stdio.h>
#include <string.h>

static struct offered_ask *ask_for(struct agent_session *session, const struct id128 *device)
{
    for (size_t i = 0; i < session->ask_count; i++) {
        if (id128_equal(&session->asks[i].terms.device, device)) {
            return &session->asks[i];
        }
    }
    return NULL;
}

static struct offered_ask *leaving_by(struct agent_session *session, const struct id128 *cancel)
{
    for (size_t i = 0; i < session->ask_count; i++) {
        if (id128_equal(&session->asks[i].cancel, cancel)) {
            return &session->asks[i];
        }
    }
    return NULL;
}

static void cancel_answered(struct agent_session *session, const struct id128 *id)
{
    struct offered_ask *ask = leaving_by(session, id);
    if (ask != NULL) {
        memset(&ask->leaving, 0, sizeof ask->leaving);
        memset(&ask->cancel, 0, sizeof ask->cancel);
    }
}

/* A cancel that found nothing has succeeded. If the broker could not take it for now, it is sent
 * again. */
static void cancel_refused(struct agent_session *session, int64_t now_ns, const struct id128 *id,
                           enum reject_code code)
{
    struct offered_ask *ask = leaving_by(session, id);
    if (ask == NULL || !results_may_pass_later(code)) {
        cancel_answered(session, id);
        return;
    }
    memset(&ask->cancel, 0, sizeof ask->cancel);
    offers_later(session, now_ns);
}

static struct offered_ask *checked_by(struct agent_session *session, const struct id128 *check)
{
    for (size_t i = 0; i < session->ask_count; i++) {
        if (id128_equal(&session->asks[i].check, check)) {
            return &session->asks[i];
        }
    }
    return NULL;
}

/* If one of our asks stands, our devices are advertised. */
static void check_passed(struct agent_session *session, int64_t now_ns, const struct id128 *id)
{
    struct offered_ask *ask = checked_by(session, id);
    if (ask == NULL) {
        return;
    }
    memset(&ask->check, 0, sizeof ask->check);
    if (ask->state == ASK_DOUBTED) {
        ask->state = ASK_STANDING;
    }
    session->advertised = true;
    session->frozen = false;
    session->offer_refusals = 0;
    offers_place(session, now_ns);
}

static void check_refused(struct agent_session *session, int64_t now_ns, const struct id128 *id,
                          enum reject_code code)
{
    struct offered_ask *ask = checked_by(session, id);
    if (ask == NULL) {
        return;
    }
    memset(&ask->check, 0, sizeof ask->check);
    if (code == REJECT_HALTED || results_may_pass_later(code)) { /* HALTED: the ask is there */
        offers_later(session, now_ns);
        return;
    }
    if (ask->state == ASK_DOUBTED && code == REJECT_NOT_FOUND) {
        ask->state = ASK_ABSENT;
        memset(&ask->order, 0, sizeof ask->order);
    } else if (ask->state == ASK_DOUBTED) {
        offers_cancel_order(session, now_ns, ask);
    }
    offers_place(session, now_ns);
}

static struct offered_ask *ask_of(struct agent_session *session, const struct id128 *order)
{
    for (size_t i = 0; i < session->ask_count; i++) {
        if (id128_equal(&session->asks[i].order, order)) {
            return &session->asks[i];
        }
    }
    return NULL;
}

static bool is_as_offered(const struct offered_ask *ask, const Bourse__V1__AskEvent *event)
{
    return ask->state != ASK_BY_HAND && event->slots == ask->terms.slots &&
           event->price_micro == ask->terms.price_micro;
}

/* Notes what happened to a device's ask by hand: by another session of this account, or by the end
 * of such an ask's time. An ask of the agent that was cancelled by hand waits until the devices are
 * advertised again. An ask by hand that has ended is replaced at once. */
void offers_noted(struct agent_session *session, int64_t now_ns, const Bourse__V1__AskEvent *event)
{
    struct id128 device = codec_id(event->device);
    struct id128 order = codec_id(event->order);
    struct offered_ask *ask = ask_for(session, &device);
    if (ask == NULL) {
        return;
    }
    bool is_known = id128_equal(&order, &ask->order);
    if (event->stands) {
        /* The agent's own new ask comes after this one, and replaces it. */
        if (ask->state == ASK_SENT || (is_known && is_as_offered(ask, event))) {
            return;
        }
        ask->state = ASK_BY_HAND;
        ask->refusal[0] = '\0';
        ask->order = order;
        ask->hand_slots = event->slots;
        ask->hand_price_micro = event->price_micro;
        ask->hand_max_term_ms = event->has_max_term_ms ? event->max_term_ms : 0;
        ask->hand_is_interruptible = event->has_interruptible && event->interruptible;
        ask->hand_notice_ms = event->has_notice_ms ? event->notice_ms : 0;
        ask->hand_minimum_run_ms = event->has_minimum_run_ms ? event->minimum_run_ms : 0;
        if (withheld_device(session, &device)) {
            offers_cancel_order(session, now_ns, ask);
            session_note(session, "an ask placed by hand is cancelled: its device is paused");
            return;
        }
        session_note(session, "an ask placed by hand stands in the place of this agent's own");
    } else if (is_known) {
        ask->state = ask->state == ASK_BY_HAND ? ASK_ABSENT : ASK_TAKEN_BACK;
        memset(&ask->order, 0, sizeof ask->order);
        session_note(session, "an ask was cancelled by hand, or its time is up");
        offers_place_absent(session, now_ns);
    }
}

void offers_accepted(struct agent_session *session, int64_t now_ns, enum message_type type,
                     const struct id128 *id)
{
    struct offered_ask *ask = type == MESSAGE_ASK_PLACE ? ask_of(session, id) : NULL;
    if (type == MESSAGE_ADVERTISE && id128_equal(id, &session->advertise)) {
        memset(&session->advertise, 0, sizeof session->advertise);
        session->advertised = true;
        session->frozen = false;
        offers_place_absent(session, now_ns);
    } else if (ask != NULL) {
        ask->state = ASK_STANDING;
        ask->refusal[0] = '\0';
        session->offer_refusals = 0;
    } else if (type == MESSAGE_ORDER_REPLACE) {
        check_passed(session, now_ns, id);
    } else if (type == MESSAGE_ORDER_CANCEL) {
        cancel_answered(session, id);
    }
}

static void note_refused_ask(struct agent_session *session, struct offered_ask *ask,
                             const struct dialogue_event *event)
{
    const char *to[AGENT_TO_MOST];
    const char *name = reject_name(event->reject);
    const char *unknown = conditions_unknown(event->reject, event->value, to,
                                             offers_name_accounts(&ask->terms.conditions, to));
    if (unknown != NULL) {
        (void)snprintf(ask->refusal, sizeof ask->refusal, "%s: to: '%s': %s", name, unknown,
                       reject_advice(event->reject));
    } else {
        (void)snprintf(ask->refusal, sizeof ask->refusal, "%s: %s", name, event->text);
    }
    session_note(session, REJECT_SAID "ask: %s", ask->refusal);
}

void offers_rejected(struct agent_session *session, int64_t now_ns,
                     const struct dialogue_event *event)
{
    const enum message_type type = event->request_type;
    struct offered_ask *ask = type == MESSAGE_ASK_PLACE ? ask_of(session, &event->id) : NULL;
    if (type == MESSAGE_ADVERTISE && id128_equal(&event->id, &session->advertise)) {
        memset(&session->advertise, 0, sizeof session->advertise);
        session->frozen = event->reject == REJECT_FROZEN;
        (void)snprintf(session->frozen_text, sizeof session->frozen_text, "%s", event->text);
        session_note(session, REJECT_SAID "devices: %s: %s", reject_name(event->reject),
                     event->text);
        offers_later(session, now_ns);
    } else if (ask != NULL) {
        ask->state = ASK_ABSENT;
        memset(&ask->order, 0, sizeof ask->order);
        note_refused_ask(session, ask, event);
        const bool is_too_high =
            event->reject == REJECT_CHALLENGE &&
            (strcmp(event->field, "gemm_fp32") == 0 || strcmp(event->field, "gemm_fp32_held") == 0);
        if (!is_too_high || !challenge_lowers(session, now_ns, &ask->terms.device, event->limit)) {
            offers_later(session, now_ns);
        }
    } else if (type == MESSAGE_STATEMENT_HELD) {
        session_note(session, REJECT_SAID "statement of held work: %s", event->text);
        offers_state_later(session, now_ns);
    } else if (type == MESSAGE_ORDER_REPLACE) {
        check_refused(session, now_ns, &event->id, event->reject);
    } else if (type == MESSAGE_ORDER_CANCEL) {
        cancel_refused(session, now_ns, &event->id, event->reject);
    }
}
