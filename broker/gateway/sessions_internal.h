/* `struct sessions` is the table of sessions; sessions.c and presence.c share it. */
#ifndef BOURSE_BROKER_GATEWAY_SESSIONS_INTERNAL_H
#define BOURSE_BROKER_GATEWAY_SESSIONS_INTERNAL_H

#include "broker/gateway/sessions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of a provider of work; enum presence is private to presence.c. */
struct provider_presence {
    int64_t heard_ns;
    uint64_t session;
    uint8_t told;      /* enum presence, as the exchange was told */
    bool said_goodbye; /* the exchange does not know yet */
};

struct sessions {
    struct session places[SESSIONS_MAX];
    size_t resend_bytes; /* bytes kept for all sessions */
    size_t *held_bytes;  /* a part of resend_bytes: strangers first, then by account number */
    uint32_t held_count;
    uint64_t next; /* number = next * SESSIONS_MAX + place: found without a search */
    struct provider_presence *providers; /* by account number */
    uint32_t provider_count;
};

#endif
