#include "broker/gateway/presence.h"

#include "broker/gateway/sessions_internal.h"
#include "exchange/exchange.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum presence { PRESENCE_UNKNOWN, PRESENCE_PRESENT, PRESENCE_SUSPECT, PRESENCE_AWAY };

static struct provider_presence *provider_of(struct sessions *sessions, uint32_t account)
{
    if (account >= sessions->provider_count) {
        uint32_t count = sessions->provider_count == 0 ? 64 : sessions->provider_count;
        while (count <= account) {
            count *= 2;
        }
        struct provider_presence *providers =
            realloc(sessions->providers, count * sizeof *providers);
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
    struct provider_presence *provider = provider_of(sessions, account);
    if (provider == NULL) {
        return false;
    }
    provider->heard_ns = now_ns;
    /* Presence is assumed; SUSPECT for a provider that is away changes nothing. */
    provider->told = PRESENCE_PRESENT;
    return true;
}

bool presence_hello(struct sessions *sessions, uint32_t account, uint64_t session, int64_t now_ns)
{
    struct provider_presence *provider = provider_of(sessions, account);
    if (provider == NULL) {
        return false;
    }
    provider->session = session;
    provider->heard_ns = now_ns;
    if (provider->told == PRESENCE_UNKNOWN ||
        (provider->told == PRESENCE_AWAY && !provider->said_goodbye)) {
        /* The provider will advertise, which makes it present. */
        provider->told = PRESENCE_PRESENT;
    }
    return true;
}

void presence_heard(struct sessions *sessions, uint32_t account, int64_t now_ns)
{
    if (account < sessions->provider_count) {
        sessions->providers[account].heard_ns = now_ns;
    }
}

/* Agents with one key share one provider's asks and pushes. When the one that got the pushes is
 * gone, the others know nothing of it: a new Hello makes one of them the provider's agent. */
static void send_others_back(struct sessions *sessions, uint32_t account, uint64_t but)
{
    size_t position = 0;
    struct session *session;
    while ((session = sessions_next(sessions, &position)) != NULL) {
        if (session->account == account && session->role == SESSION_PROVIDER &&
            session->number != but && !session->is_closing && !session->is_detached) {
            sessions_detach(session);
        }
    }
}

void presence_goodbye(struct sessions *sessions, uint32_t account)
{
    if (account < sessions->provider_count) {
        struct provider_presence *provider = &sessions->providers[account];
        send_others_back(sessions, account, provider->session);
        provider->said_goodbye = true;
        provider->session = 0;
    }
}

void presence_lost(struct sessions *sessions, const struct session *session)
{
    if (session->role == SESSION_PROVIDER && session->account != EXCHANGE_NO_ACCOUNT &&
        presence_session(sessions, session->account) == session->number) {
        send_others_back(sessions, session->account, session->number);
    }
}

bool presence_owes_goodbye(const struct sessions *sessions, uint32_t account)
{
    return account < sessions->provider_count && sessions->providers[account].said_goodbye;
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
        const struct provider_presence *provider = &sessions->providers[*position];
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
    struct provider_presence *provider = &sessions->providers[account];
    struct session *session = sessions_number(sessions, provider->session);
    switch (kind) {
    case ENTRY_SUSPECT:
        provider->told = PRESENCE_SUSPECT;
        if (session != NULL) {
            /* Its asks are cancelled: a new Hello brings them back. */
            sessions_detach(session);
        }
        return;
    case ENTRY_RETURNED:
        provider->told = PRESENCE_PRESENT;
        return;
    case ENTRY_GOODBYE:
        /* The agent may be back already. */
        provider->told = provider->session != 0 ? PRESENCE_PRESENT : PRESENCE_AWAY;
        provider->said_goodbye = false;
        return;
    case ENTRY_MESSAGE:
    case ENTRY_GENESIS:
    case ENTRY_RESULTS:
    case ENTRY_LIMITS:
    case ENTRY_EPOCH:
    case ENTRY_OUTAGE:
    case ENTRY_TICK:
        break;
    }
    assert(false && "not a notice of presence");
}
