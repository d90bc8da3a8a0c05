#include "broker/gateway/sessions.h"

#include "broker/gateway/sessions_internal.h"
#include "exchange/exchange.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct sessions *sessions_create(uint64_t first)
{
    struct sessions *sessions = calloc(1, sizeof *sessions);
    if (sessions != NULL) {
        /* The number is never 0, and far from wrapping. */
        sessions->next = first % (UINT64_MAX / SESSIONS_MAX / 2) + 1;
    }
    return sessions;
}

void sessions_destroy(struct sessions **self)
{
    if (*self != NULL) {
        for (size_t i = 0; i < SESSIONS_MAX; i++) {
            resend_buffer_fini(&(*self)->places[i].resend, &(*self)->resend_bytes);
        }
        free((*self)->held_bytes);
        free((*self)->providers);
        free(*self);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- kept messages by account */

static uint32_t holder_of(uint32_t account)
{
    return account == EXCHANGE_NO_ACCOUNT ? 0 : account + 1;
}

/* Makes the account's entry in `held_bytes`. It must exist before a message is kept for the
 * account. */
static bool make_holder(struct sessions *sessions, uint32_t account)
{
    uint32_t holder = holder_of(account);
    if (holder < sessions->held_count) {
        return true;
    }
    uint32_t count = sessions->held_count == 0 ? 64 : sessions->held_count;
    while (count <= holder) {
        count *= 2;
    }
    size_t *held_bytes = realloc(sessions->held_bytes, count * sizeof *held_bytes);
    if (held_bytes == NULL) {
        return false;
    }
    memset(held_bytes + sessions->held_count, 0,
           (count - sessions->held_count) * sizeof *held_bytes);
    sessions->held_bytes = held_bytes;
    sessions->held_count = count;
    return true;
}

static size_t *held_by(struct sessions *sessions, uint32_t account)
{
    assert(holder_of(account) < sessions->held_count);
    return &sessions->held_bytes[holder_of(account)];
}

static uint32_t largest_holder(const struct sessions *sessions)
{
    uint32_t largest = 0;
    for (uint32_t i = 1; i < sessions->held_count; i++) {
        largest = sessions->held_bytes[i] > sessions->held_bytes[largest] ? i : largest;
    }
    return largest;
}

/* Drops an eighth of the holder's largest session, so that the next message need not search
 * again. */
static void trim_holder(struct sessions *sessions, uint32_t holder)
{
    struct session *largest = NULL;
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        struct session *session = &sessions->places[i];
        bool is_of_it = session->number != 0 && holder_of(session->account) == holder;
        if (is_of_it && (largest == NULL || session->resend.bytes > largest->resend.bytes)) {
            largest = session;
        }
    }
    assert(largest != NULL && largest->resend.count > 0);
    size_t before = largest->resend.bytes;
    resend_buffer_trim(&largest->resend, &sessions->resend_bytes, before / 8 + 1);
    sessions->held_bytes[holder] -= before - largest->resend.bytes;
    if (!resend_buffer_reaches(&largest->resend, largest->wire_sequence)) {
        sessions_close(largest);
    }
}

/* An account above its cap loses its own messages. Above the cap of all, the largest account does,
 * not the one that sends next. */
static void make_room(struct sessions *sessions, uint32_t account, size_t bytes)
{
    size_t *held = held_by(sessions, account);
    while (*held > 0 && *held + bytes > RESEND_BUFFER_ACCOUNT_BYTES) {
        trim_holder(sessions, holder_of(account));
    }
    while (sessions->resend_bytes > 0 &&
           sessions->resend_bytes + bytes > RESEND_BUFFER_TOTAL_BYTES) {
        trim_holder(sessions, largest_holder(sessions));
    }
}

/* ---------------------------------------------------------------- sessions */

static bool is_live(const struct session *session)
{
    return session->number != 0 && !session->is_closing;
}

static bool is_on(const struct session *session, const struct route *route)
{
    return is_live(session) && !session->is_detached &&
           memcmp(&session->route, route, sizeof *route) == 0;
}

static void close_others_on(struct sessions *sessions, const struct route *route,
                            const struct session *but)
{
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        if (&sessions->places[i] != but && is_on(&sessions->places[i], route)) {
            sessions_close(&sessions->places[i]);
        }
    }
}

/* Counts the places for a new session. */
struct census {
    struct session *free_place;
    struct session *idlest; /* the longest silent one without a connection, of the same key */
    unsigned of_key, anonymous;
};

static struct census take_census(struct sessions *sessions, const struct key32 *transport)
{
    struct census census = {.free_place = NULL};
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        struct session *session = &sessions->places[i];
        if (session->number == 0) {
            census.free_place = census.free_place == NULL ? session : census.free_place;
        } else if (is_live(session)) {
            bool is_of_key = key32_equal(&session->transport, transport);
            census.of_key += is_of_key;
            census.anonymous += session->account == EXCHANGE_NO_ACCOUNT;
            bool is_idler = census.idlest == NULL || session->heard_ns < census.idlest->heard_ns;
            if (is_of_key && session->is_detached && is_idler) {
                census.idlest = session;
            }
        }
    }
    return census;
}

enum sessions_status sessions_open(struct sessions *sessions, const struct route *route,
                                   const struct key32 *transport, uint32_t account,
                                   enum session_role role, int64_t now_ns, struct session **ret)
{
    close_others_on(sessions, route, NULL);
    struct census census = take_census(sessions, transport);
    if (census.free_place == NULL || !make_holder(sessions, account)) {
        return SESSIONS_FULL;
    }
    if (census.of_key >= SESSIONS_PER_KEY && census.idlest == NULL) {
        return SESSIONS_FULL_FOR_KEY;
    }
    if (account == EXCHANGE_NO_ACCOUNT && census.anonymous >= SESSIONS_ANONYMOUS) {
        return SESSIONS_FULL_ANONYMOUS;
    }
    if (census.of_key >= SESSIONS_PER_KEY) {
        /* Its client has other sessions, and has not come back to this one. */
        sessions_close(census.idlest);
    }
    struct session *place = census.free_place;
    *place = (struct session){.number = sessions->next++ * SESSIONS_MAX +
                                        (uint64_t)(place - sessions->places),
                              .route = *route,
                              .transport = *transport,
                              .account = account,
                              .role = role,
                              .heard_ns = now_ns,
                              .sent_ns = now_ns};
    *ret = place;
    return SESSIONS_OK;
}

struct session *sessions_resume(struct sessions *sessions, uint64_t number, uint64_t seen,
                                const struct route *route, const struct key32 *transport,
                                uint32_t account, enum session_role role, int64_t now_ns)
{
    struct session *session = sessions_number(sessions, number);
    if (session == NULL || !key32_equal(&session->transport, transport) ||
        account == EXCHANGE_NO_ACCOUNT || session->account != account || session->role != role ||
        seen == 0 || !resend_buffer_reaches(&session->resend, seen)) {
        return NULL;
    }
    close_others_on(sessions, route, session);
    sessions_seen(sessions, session, seen);
    session->route = *route;
    session->is_detached = false;
    session->heard_ns = now_ns;
    session->sent_ns = now_ns;
    session->heard_sequence = 0;
    session->wire_sequence = seen;
    return session;
}

void sessions_detach(struct session *session)
{
    if (session->account == EXCHANGE_NO_ACCOUNT) {
        sessions_close(session);
    }
    session->is_detached = true;
}

void sessions_keep(struct sessions *sessions, struct session *session,
                   const struct resend_message *message)
{
    size_t bytes = resend_buffer_weight(message);
    make_room(sessions, session->account, bytes < RESEND_BUFFER_BYTES ? bytes : 0);
    size_t *held = held_by(sessions, session->account);
    *held -= session->resend.bytes;
    resend_buffer_add(&session->resend, &sessions->resend_bytes, message);
    *held += session->resend.bytes;
    if (!resend_buffer_reaches(&session->resend, session->wire_sequence)) {
        sessions_close(session);
    }
}

bool sessions_know(struct sessions *sessions, struct session *session, uint32_t account)
{
    if (!make_holder(sessions, account)) {
        return false;
    }
    *held_by(sessions, session->account) -= session->resend.bytes;
    session->account = account;
    *held_by(sessions, account) += session->resend.bytes;
    return true;
}

void sessions_seen(struct sessions *sessions, struct session *session, uint64_t sequence)
{
    uint64_t most = session->wire_sequence;
    size_t *held = held_by(sessions, session->account);
    *held -= session->resend.bytes;
    resend_buffer_seen(&session->resend, &sessions->resend_bytes,
                       sequence < most ? sequence : most);
    *held += session->resend.bytes;
}

uint32_t sessions_count(const struct sessions *sessions)
{
    uint32_t count = 0;
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        count += is_live(&sessions->places[i]);
    }
    return count;
}

struct session *sessions_number(struct sessions *sessions, uint64_t number)
{
    struct session *session = &sessions->places[number % SESSIONS_MAX];
    return is_live(session) && session->number == number ? session : NULL;
}

struct session *sessions_of(struct sessions *sessions, uint64_t number, const struct route *route,
                            const struct key32 *transport)
{
    struct session *session = sessions_number(sessions, number);
    bool same =
        session != NULL && is_on(session, route) && key32_equal(&session->transport, transport);
    return same ? session : NULL;
}

void sessions_close(struct session *session)
{
    session->is_closing = true;
}

void sessions_forget(struct sessions *sessions, struct session *session)
{
    *held_by(sessions, session->account) -= session->resend.bytes;
    resend_buffer_fini(&session->resend, &sessions->resend_bytes);
    *session = (struct session){0};
}

struct session *sessions_next(struct sessions *sessions, size_t *position)
{
    while (*position < SESSIONS_MAX) {
        struct session *session = &sessions->places[(*position)++];
        if (session->number != 0) {
            return session;
        }
    }
    return NULL;
}
