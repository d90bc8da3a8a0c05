/* tests/support/open_sessions.h is the fixture of tests about sessions of the gateway: a table of
 * sessions, and a way to open one. One program includes it once. */
#ifndef BOURSE_TESTS_OPEN_SESSIONS_H
#define BOURSE_TESTS_OPEN_SESSIONS_H

#include "broker/gateway/sessions.h"

#include <check.h>

static struct sessions *sessions;

static inline void setup(void)
{
    sessions = sessions_create(12345);
    ck_assert_ptr_nonnull(sessions);
}

static inline void teardown(void)
{
    sessions_destroy(&sessions);
}

static inline struct session *open_session(uint32_t route_number, uint8_t key_number,
                                           uint32_t account)
{
    struct route route = {{(uint8_t)route_number, (uint8_t)(route_number >> 8), 1, 1, 1}};
    struct key32 key = {{key_number}};
    struct session *session = NULL;
    enum sessions_status status =
        sessions_open(sessions, &route, &key, account, SESSION_CONSUMER, 0, &session);
    return status == SESSIONS_OK ? session : NULL;
}

#endif
