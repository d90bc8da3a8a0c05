#include "broker/sessions.h"

#include "exchange/exchange.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum presence { PRESENCE_UNKNOWN, PRESENCE_PRESENT, PRESENCE_SUSPECT, PRESENCE_AWAY };

struct provider {
    int64_t heard_ns;
    uint64_t session;
    uint8_t told;      /* enum presence, as the exchange was told */
    bool said_goodbye; /* and the exchange does not know yet */
};

struct sessions {
    struct session places[SESSIONS_MAX];
    uint64_t next;              /* number = next * SESSIONS_MAX + place: found without a search */
    struct provider *providers; /* by account number */
    uint32_t provider_count;
};

struct sessions *sessions_create(uint64_t first)
{
    struct sessions *sessions = calloc(1, sizeof *sessions);
    if (sessions != NULL) {
        sessions->next =
            first % (UINT64_MAX / SESSIONS_MAX / 2) + 1; /* never 0, far from wrapping */
    }
    return sessions;
}

void sessions_destroy(struct sessions **self)
{
    if (*self != NULL) {
        free((*self)->providers);
        free(*self);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- sessions */

static bool is_live(const struct session *session)
{
    return session->number != 0 && !session->is_closing;
}

enum sessions_status sessions_open(struct sessions *sessions, const struct route *route,
                                   const struct key32 *transport, uint32_t account,
                                   enum session_role role, int64_t now_ns, struct session **ret)
{
    struct session *place = NULL;
    unsigned of_key = 0;
    unsigned anonymous = 0;
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        struct session *session = &sessions->places[i];
        if (is_live(session) && memcmp(&session->route, route, sizeof *route) == 0) {
            sessions_close(session);
        } else if (is_live(session)) {
            of_key += key32_equal(&session->transport, transport) ? 1 : 0;
            anonymous += session->account == EXCHANGE_NO_ACCOUNT ? 1 : 0;
        } else if (session->number == 0 && place == NULL) {
            place = session;
        }
    }
    if (place == NULL) {
        return SESSIONS_FULL;
    }
    if (of_key >= SESSIONS_PER_KEY) {
        return SESSIONS_FULL_FOR_KEY;
    }
    if (account == EXCHANGE_NO_ACCOUNT && anonymous >= SESSIONS_ANONYMOUS) {
        return SESSIONS_FULL_ANONYMOUS;
    }
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

struct session *sessions_number(struct sessions *sessions, uint64_t number)
{
    struct session *session = &sessions->places[number % SESSIONS_MAX];
    return is_live(session) && session->number == number ? session : NULL;
}

struct session *sessions_of(struct sessions *sessions, uint64_t number, const struct route *route,
                            const struct key32 *transport)
{
    struct session *session = sessions_number(sessions, number);
    bool same = session != NULL && memcmp(&session->route, route, sizeof *route) == 0 &&
                key32_equal(&session->transport, transport);
    return same ? session : NULL;
}

void sessions_close(struct session *session)
{
    session->is_closing = true;
}

void sessions_forget(struct session *session)
{
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

/* ---------------------------------------------------------------- presence */

static struct provider *provider_of(struct sessions *sessions, uint32_t account)
{
    if (account >= sessions->provider_count) {
        uint32_t count = sessions->provider_count == 0 ? 64 : sessions->provider_count;
        while (count <= account) {
            count *= 2;
        }
        struct provider *providers = realloc(sessions->providers, count * sizeof *providers);
        if (providers == NULL) {
            return NULL;
        }
        memset(providers + sessions->provider_count, 0,
               (count - sessions->provider_count) * sizeof *providers);
        sessions->providers = providers;
        sessions->provider_count = count;
    }
    return &sessions->providers[account];
}

bool presence_expect(struct sessions *sessions, uint32_t account, int64_t now_ns)
{
    struct provider *provider = provider_of(sessions, account);
    if (provider == NULL) {
        return false;
    }
    provider->heard_ns = now_ns;
    provider->told =
        PRESENCE_PRESENT; /* as far as we know; SUSPECT of one that is away changes nothing */
    return true;
}

bool presence_hello(struct sessions *sessions, uint32_t account, uint64_t session, int64_t now_ns)
{
    struct provider *provider = provider_of(sessions, account);
    if (provider == NULL) {
        return false;
    }
    provider->session = session;
    provider->heard_ns = now_ns;
    if (provider->told == PRESENCE_UNKNOWN ||
        (provider->told == PRESENCE_AWAY && !provider->said_goodbye)) {
        provider->told = PRESENCE_PRESENT; /* it will advertise; that is what makes it present */
    }
    return true;
}

void presence_heard(struct sessions *sessions, uint32_t account, int64_t now_ns)
{
    if (account < sessions->provider_count) {
        sessions->providers[account].heard_ns = now_ns;
    }
}

void presence_goodbye(struct sessions *sessions, uint32_t account)
{
    if (account < sessions->provider_count) {
        sessions->providers[account].said_goodbye = true;
        sessions->providers[account].session = 0;
    }
}

uint64_t presence_session(const struct sessions *sessions, uint32_t account)
{
    return account < sessions->provider_count ? sessions->providers[account].session : 0;
}

bool presence_next_notice(struct sessions *sessions, int64_t now_ns, int64_t heartbeat_ns,
                          uint32_t *position, uint32_t *ret_account,
                          enum entry_command_kind *ret_kind)
{
    for (; *position < sessions->provider_count; (*position)++) {
        const struct provider *provider = &sessions->providers[*position];
        bool is_silent = now_ns - provider->heard_ns > SESSIONS_MISSED_HEARTBEATS * heartbeat_ns;
        enum entry_command_kind kind = ENTRY_TICK;
        if (provider->said_goodbye) {
            kind = ENTRY_GOODBYE;
        } else if (provider->told == PRESENCE_PRESENT && is_silent) {
            kind = ENTRY_SUSPECT;
        } else if (provider->told == PRESENCE_SUSPECT && !is_silent) {
            kind = ENTRY_RETURNED;
        }
        if (kind != ENTRY_TICK) {
            *ret_account = (*position)++;
            *ret_kind = kind;
            return true;
        }
    }
    return false;
}

void presence_told(struct sessions *sessions, uint32_t account, enum entry_command_kind kind)
{
    assert(account < sessions->provider_count);
    struct provider *provider = &sessions->providers[account];
    struct session *session = sessions_number(sessions, provider->session);
    switch (kind) {
    case ENTRY_SUSPECT:
        provider->told = PRESENCE_SUSPECT;
        if (session != NULL) {
            sessions_close(session); /* its asks are cancelled: greeting anew brings them back */
        }
        return;
    case ENTRY_RETURNED:
        provider->told = PRESENCE_PRESENT;
        return;
    case ENTRY_GOODBYE:
        provider->told =
            provider->session != 0 ? PRESENCE_PRESENT : PRESENCE_AWAY; /* it may be back already */
        provider->said_goodbye = false;
        return;
    case ENTRY_MESSAGE:
    case ENTRY_GENESIS:
    case ENTRY_TICK:
        break;
    }
    assert(false && "not a notice of presence");
}
