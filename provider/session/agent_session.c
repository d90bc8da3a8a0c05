#include "provider/session/agent_session_internal.h"

#include "base/checked.h"
#include "base/sha256.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PENDING_MAX = 2 * AGENT_ASKS_MAX + AGENT_BATCHES_IN_FLIGHT + 2 * AGENT_TERMINALS_MAX + 16,
    PENDING_BYTES_MAX = 32 << 20,
    FIRST_ACTIONS = 64,
};

/* ---------------------------------------------------------------- small helpers */

struct id128 session_draw_id(struct agent_session *session)
{
    /* The id is a hash of secret dice and a counter. Others cannot tell it from a random id, and a
     * replay draws it again. */
    struct sha256 hash;
    uint64_t number = ++session->drawn;
    uint8_t counter[8];
    for (size_t i = 0; i < sizeof counter; i++) {
        counter[i] = (uint8_t)(number >> (8 * i));
    }
    sha256_start(&hash);
    sha256_add(&hash, session->config.dice.bytes, sizeof session->config.dice.bytes);
    sha256_add(&hash, counter, sizeof counter);
    struct hash32 digest = sha256_end(&hash);
    struct id128 id;
    memcpy(id.bytes, digest.bytes, sizeof id.bytes);
    return id;
}

static bool grow_actions(struct agent_session *session)
{
    size_t capacity = session->action_capacity == 0 ? FIRST_ACTIONS : 2 * session->action_capacity;
    struct agent_action *actions = calloc(capacity, sizeof *actions);
    if (actions == NULL) {
        return false;
    }
    for (size_t i = 0; i < session->action_count; i++) {
        actions[i] = session->actions[(session->action_first + i) % session->action_capacity];
    }
    free(session->actions);
    session->actions = actions;
    session->action_capacity = capacity;
    session->action_first = 0;
    return true;
}

enum agent_status session_ask(struct agent_session *session, int64_t now_ns, enum message_type type,
                              const ProtobufCMessage *body, struct id128 *ret_id)
{
    const struct id128 id = session_draw_id(session);
    switch (dialogue_request(session->dialogue, now_ns, type, &id, body)) {
    case DIALOGUE_OK:
        *ret_id = id;
        return AGENT_OK;
    case DIALOGUE_OUT_OF_MEMORY:
        session->counts.out_of_memory = true;
        return AGENT_OUT_OF_MEMORY;
    case DIALOGUE_TOO_LARGE:
        return AGENT_BAD;
    case DIALOGUE_FULL:
    case DIALOGUE_NOT_READY:
        break;
    }
    return AGENT_UNKNOWN;
}

void session_act(struct agent_session *session, const struct agent_action *action)
{
    if (session->action_count == session->action_capacity && !grow_actions(session)) {
        struct agent_action lost = *action;
        agent_session_drop_action(&lost);
        session->counts.out_of_memory = true;
        return;
    }
    size_t place = (session->action_first + session->action_count) % session->action_capacity;
    session->actions[place] = *action;
    session->action_count++;
}

void session_note(struct agent_session *session, const char *format, ...)
{
    struct agent_action action = {.type = AGENT_NOTE};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(action.text, sizeof action.text, format, arguments); /* cut, never overrun */
    va_end(arguments);
    session_act(session, &action);
}

bool agent_session_action(struct agent_session *session, struct agent_action *ret_action)
{
    if (session->action_count == 0) {
        return false;
    }
    *ret_action = session->actions[session->action_first];
    session->action_first = (session->action_first + 1) % session->action_capacity;
    session->action_count--;
    return true;
}

/* ---------------------------------------------------------------- life */

struct agent_session *agent_session_create(const struct agent_session_config *config)
{
    struct agent_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->config = *config;
    assert(config->results_per_signature <= AGENT_BATCH_MAX);
    if (config->results_per_signature == 0) {
        session->config.results_per_signature = AGENT_BATCH_MAX;
    }
    list_init(&session->leases);
    list_init(&session->ready);
    list_init(&session->sent);
    session->ready_since_ns = INT64_MAX;
    session->offer_again_ns = INT64_MAX;
    session->state_again_ns = INT64_MAX;
    session->challenge_again_ns = INT64_MAX;
    struct dialogue_config dialogue = {
        .identity = config->identity,
        .role = SESSION_PROVIDER,
        .program = config->program,
        .pending_max = PENDING_MAX,
        .pending_bytes_max = PENDING_BYTES_MAX,
        .addresses = config->addresses,
        .address_count = config->address_count,
    };
    session->dialogue = dialogue_create(&dialogue);
    if (session->dialogue == NULL) {
        agent_session_destroy(&session);
    }
    return session;
}

void agent_session_destroy(struct agent_session **self)
{
    struct agent_session *session = *self;
    if (session == NULL) {
        return;
    }
    while (!list_empty(&session->leases)) {
        work_lease_destroy(session, LIST_ELEMENT(session->leases.next, struct lease, link));
    }
    struct agent_action action;
    while (agent_session_action(session, &action)) {
        agent_session_drop_action(&action);
    }
    offers_drop(session);
    output_forget(session);
    figures_forget(session);
    challenge_forget(session);
    dialogue_destroy(&session->dialogue);
    free(session->actions);
    free(session);
    *self = NULL;
}

bool session_ready(const struct agent_session *session)
{
    return session->welcomed && dialogue_ready(session->dialogue);
}

/* ---------------------------------------------------------------- connection */

void agent_session_connected(struct agent_session *session, int64_t now_ns, uint64_t dice)
{
    /* Offers and Statements of the former connection must not be sent again. They are made anew
     * from the state at the Welcome. The dialogue sends results again as they were. */
    offers_forget(session);
    output_forget(session);
    figures_forget(session);
    challenge_forget(session);
    session->welcomed = false;
    session->begin_due = false;
    dialogue_connected(session->dialogue, now_ns, dice);
}

const struct contact *agent_session_address(const struct agent_session *session)
{
    return dialogue_address(session->dialogue);
}

static bool right_market(struct agent_session *session, const Bourse__V1__Welcome *welcome)
{
    struct id128 cluster = codec_id(welcome->cluster);
    if (id128_is_zero(&session->config.cluster)) {
        session->config.cluster = cluster;
    }
    return id128_equal(&session->config.cluster, &cluster);
}

static void welcomed(struct agent_session *session, const Bourse__V1__Welcome *welcome)
{
    if (!right_market(session, welcome)) {
        session_note(session,
                     "this broker runs another market than the one joined; nothing is offered");
        return;
    }
    session->welcomed = true;
    session->counts.welcomes++;
    session->offer_refusals = 0;
    session->begin_due = true;
    session_act(session, &(struct agent_action){.type = AGENT_READY});
}

/* Begins once the missed messages are here, because only then is the Statement true. */
static void begin(struct agent_session *session, int64_t now_ns)
{
    session->begin_due = false;
    offers_resume(session, now_ns); /* devices before the Statement: the broker must know us */
    offers_state(session, now_ns);
    results_flush(session, now_ns);
    challenge_be_ready(session, now_ns);
}

static void request_accepted(struct agent_session *session, int64_t now_ns,
                             const struct dialogue_event *event)
{
    if (event->request_type == MESSAGE_RESULTS) {
        results_accepted(session, &event->id);
        results_flush(session, now_ns);
    } else {
        offers_accepted(session, now_ns, event->request_type, &event->id);
    }
}

static void request_rejected(struct agent_session *session, int64_t now_ns,
                             const struct dialogue_event *event)
{
    if (event->request_type == MESSAGE_RESULTS) {
        results_rejected(session, now_ns, event);
    } else if (terminal_is_of(event->request_type)) {
        terminal_rejected(session, event);
    } else if (event->request_type == MESSAGE_CHALLENGE_READY) {
        challenge_rejected(session, now_ns, &event->id, event->reject);
    } else if (event->request_type == MESSAGE_OUTPUT_POST) {
        output_rejected(session, now_ns, event->reject);
    } else if (event->request_type == MESSAGE_FIGURES_POST) {
        figures_rejected(session, event->reject);
    } else {
        offers_rejected(session, now_ns, event);
    }
}

static void pushed(struct agent_session *session, int64_t now_ns,
                   const struct dialogue_event *event)
{
    const void *body = event->body;
    switch ((int)event->message_type) {
    case MESSAGE_LEASE_GRANT:
        work_granted(session, now_ns, body);
        break;
    case MESSAGE_LEASE_RENEW:
        work_renewed(session, now_ns, body);
        break;
    case MESSAGE_LEASE_NOTICE:
        work_noticed(session, now_ns, body);
        break;
    case MESSAGE_DISPATCH:
        work_dispatched(session, now_ns, body);
        break;
    case MESSAGE_WITHDRAW:
        work_withdrawn(session, now_ns, body);
        break;
    case MESSAGE_LEASE_END:
        work_lease_ended(session, now_ns, body);
        break;
    case MESSAGE_ASK_EVENT:
        offers_noted(session, now_ns, body);
        break;
    default: /* a later version's message, or not for agents */
        session->counts.ignored++;
        break;
    }
}

static void parted(struct agent_session *session, const struct dialogue_event *event)
{
    const struct contact *next = dialogue_address(session->dialogue);
    struct agent_action action = {.type = AGENT_RECONNECT};
    struct agent_parting *parting = &action.parting;
    parting->wait_ns = event->wait_ns;
    parting->is_of_several =
        next != NULL && (contacts_has_choice(dialogue_contacts(session->dialogue)) ||
                         strcmp(next->control, event->address) != 0);
    if (parting->is_of_several) {
        (void)snprintf(parting->text, sizeof parting->text, "%.80s: %s; next is %.80s",
                       event->address, contacts_end_text(event->end), next->control);
    }
    session_act(session, &action);
}

/* The broker's journal has no quorum. Work goes on, and the dialogue sends again what was refused.
 * The log says so once, until the broker takes something. */
static void say_stalled(struct agent_session *session, const struct dialogue_event *event)
{
    if (event->reject == REJECT_NO_QUORUM && !session->is_stalled) {
        session->is_stalled = true;
        session_note(session, "%s Work goes on, and what the broker did not take is sent again",
                     event->text);
    }
}

static void handle(struct agent_session *session, int64_t now_ns, struct dialogue_event *event)
{
    switch (event->type) {
    case DIALOGUE_NOTHING:
        say_stalled(session, event);
        break;
    case DIALOGUE_READY:
        welcomed(session, event->welcome);
        break;
    case DIALOGUE_ACCEPTED:
        session->is_stalled = false;
        request_accepted(session, now_ns, event);
        break;
    case DIALOGUE_REJECTED:
        request_rejected(session, now_ns, event);
        break;
    case DIALOGUE_REPLY:
        if (event->message_type == MESSAGE_OUTPUT_WANTED) {
            output_answered(session, event);
        } else if (event->message_type == MESSAGE_FIGURES_TAKEN) {
            figures_answered(session);
        } else if (event->message_type == MESSAGE_CHALLENGE) {
            challenge_answered(session, now_ns, event);
        } else if (terminal_is_of(event->message_type)) {
            terminal_answered(session, event);
        }
        break;
    case DIALOGUE_PUSH:
        if (session->welcomed) {
            pushed(session, now_ns, event);
        }
        break;
    case DIALOGUE_LOST:
        parted(session, event);
        break;
    case DIALOGUE_BROKEN:
        session_note(session, "the broker sent something wrong: %s", event->text);
        parted(session, event);
        break;
    }
    codec_free(&event->body);
    if (session->begin_due && session_ready(session) && !dialogue_catching_up(session->dialogue)) {
        begin(session, now_ns);
    }
}

void agent_session_incoming(struct agent_session *session, int64_t now_ns, const uint8_t *message,
                            size_t length)
{
    struct dialogue_event event = {.type = DIALOGUE_NOTHING};
    dialogue_incoming(session->dialogue, now_ns, message, length, &event);
    handle(session, now_ns, &event);
}

void agent_session_unreachable(struct agent_session *session, int64_t now_ns)
{
    struct dialogue_event event;
    dialogue_unreachable(session->dialogue, &event);
    handle(session, now_ns, &event);
}

bool agent_session_outgoing(struct agent_session *session, const uint8_t **ret_message,
                            size_t *ret_length)
{
    return dialogue_outgoing(session->dialogue, ret_message, ret_length);
}

void agent_session_unsent(struct agent_session *session)
{
    dialogue_unsent(session->dialogue);
}

void agent_session_tick(struct agent_session *session, int64_t now_ns)
{
    struct dialogue_event event = {.type = DIALOGUE_NOTHING};
    dialogue_tick(session->dialogue, now_ns, &event);
    handle(session, now_ns, &event);
    work_tick(session, now_ns);
    if (now_ns >= session->offer_again_ns && session_ready(session)) {
        offers_place(session, now_ns);
    }
    if (now_ns >= session->state_again_ns && session_ready(session)) {
        offers_state(session, now_ns);
    }
    if (now_ns >= session->challenge_again_ns && session_ready(session)) {
        session->challenge_again_ns = INT64_MAX;
        challenge_be_ready(session, now_ns);
    }
    results_flush(session, now_ns);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t agent_session_next_deadline_ns(const struct agent_session *session)
{
    int64_t deadline_ns = dialogue_next_deadline_ns(session->dialogue);
    if (session_ready(session)) {
        deadline_ns = sooner(deadline_ns, session->offer_again_ns);
        deadline_ns = sooner(deadline_ns, session->state_again_ns);
        deadline_ns = sooner(deadline_ns, session->challenge_again_ns);
    }
    deadline_ns = sooner(deadline_ns, results_next_deadline_ns(session));
    return sooner(deadline_ns, work_next_deadline_ns(session));
}

/* ---------------------------------------------------------------- the end, and the state */

void agent_session_drain(struct agent_session *session, int64_t now_ns, bool cancel_running)
{
    session->draining = true;
    offers_renew(session, now_ns);
    for (struct list_link *link = session->leases.next; link != &session->leases;) {
        struct lease *lease = LIST_ELEMENT(link, struct lease, link);
        link = link->next; /* work_lease_over may free the lease */
        if (!cancel_running) {
            work_leave(session, lease);
        }
        work_lease_over(session, now_ns, lease, OUTCOME_CANCELLED, cancel_running);
    }
    results_flush(session, now_ns);
}

void agent_session_rest(struct agent_session *session, int64_t now_ns, bool resting,
                        bool cancel_running)
{
    session->resting = resting;
    offers_renew(session, now_ns);
    if (!resting) {
        return;
    }
    for (struct list_link *link = session->leases.next; link != &session->leases;
         link = link->next) {
        work_give_back(session, now_ns, LIST_ELEMENT(link, struct lease, link), cancel_running);
    }
    results_flush(session, now_ns);
}

void agent_session_hand_back(struct agent_session *session, int64_t now_ns)
{
    for (struct list_link *link = session->leases.next; link != &session->leases;
         link = link->next) {
        withheld_give_back(session, now_ns, LIST_ELEMENT(link, struct lease, link),
                           AGENT_WITHHOLD_SAVE);
    }
    results_flush(session, now_ns);
}

bool agent_session_gives_back(const struct agent_session *session)
{
    return session->draining || session->resting;
}

bool agent_session_drained(const struct agent_session *session)
{
    return session->draining && session->work_total == 0;
}

void agent_session_goodbye(struct agent_session *session, int64_t now_ns, const char *reason)
{
    if (!session->said_goodbye) {
        session->said_goodbye = true;
        /* The call fails if the dialogue is not ready, and then nobody needs a goodbye. */
        (void)dialogue_goodbye(session->dialogue, now_ns, reason);
    }
}

bool agent_session_out_of_memory(const struct agent_session *session)
{
    return session->counts.out_of_memory;
}

struct agent_counts agent_session_counts(const struct agent_session *session)
{
    struct agent_counts counts = session->counts;
    counts.ready = session_ready(session);
    for (size_t i = 0; i < session->ask_count; i++) {
        counts.asks_standing += offers_ask_stands(&session->asks[i]);
    }
    counts.queued = session->work_in[WORK_QUEUED];
    counts.running = session->work_in[WORK_RUNNING];
    counts.left = session->work_in[WORK_LEFT];
    counts.owed = session->work_in[WORK_READY] + session->work_in[WORK_SENT];
    return counts;
}

size_t agent_session_leases(const struct agent_session *session, struct agent_lease_row *ret_rows,
                            size_t limit)
{
    size_t count = 0;
    for (const struct list_link *link = session->leases.next;
         link != &session->leases && count < limit; link = link->next) {
        const struct lease *lease = LIST_ELEMENT(link, struct lease, link);
        struct agent_lease_row row = {
            .grant = lease->grant, .term_end_ns = lease->term_end_ns, .is_over = lease->over};
        for (const struct list_link *inner = lease->works.next; inner != &lease->works;
             inner = inner->next) {
            enum work_state state = LIST_ELEMENT(inner, struct work, link)->state;
            row.queued += state == WORK_QUEUED;
            row.running += state == WORK_RUNNING;
            row.left += state == WORK_LEFT;
            row.owed += state == WORK_READY || state == WORK_SENT;
        }
        ret_rows[count++] = row;
    }
    return count;
}

const Bourse__V1__Welcome *agent_session_welcome(const struct agent_session *session)
{
    return dialogue_welcome(session->dialogue);
}
