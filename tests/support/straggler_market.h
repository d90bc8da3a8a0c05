/* tests/support/straggler_market.h follows what each provider of the market by hand was sent and
 * has not answered. begin and tear_down are the fixture. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_STRAGGLER_MARKET_H
#define BOURSE_TESTS_SUPPORT_STRAGGLER_MARKET_H

#include "base/checked.h"
#include "exchange/state/records.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"

#include <check.h>
#include <string.h>

enum { WORKS_MAX = 64 };

/* Works that each provider was sent and has not answered, oldest first. */
static struct exchange_work held[2][WORKS_MAX];
static size_t held_count[2];
/* Counts works that were taken back, and keeps the last of them. */
static struct exchange_work withdrawn;
static size_t withdrawn_count;

static inline void begin(void)
{
    set_up();
    held_count[0] = held_count[1] = 0;
    withdrawn_count = 0;
}

static inline void listen(void)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_DISPATCH) {
            size_t who = effect->account == PROVIDER ? 0 : 1;
            ck_assert_uint_lt(held_count[who], WORKS_MAX);
            held[who][held_count[who]++] = effect->work;
        } else if (effect->type == EFFECT_WITHDRAW) {
            withdrawn = effect->work;
            withdrawn_count++;
        }
    }
}

static inline struct exchange_work take(uint32_t provider, size_t at)
{
    size_t who = provider == PROVIDER ? 0 : 1;
    ck_assert_uint_lt(at, held_count[who]);
    struct exchange_work work = held[who][at];
    held_count[who]--;
    memmove(&held[who][at], &held[who][at + 1], (held_count[who] - at) * sizeof work);
    return work;
}

static inline void answer(uint32_t provider, struct id128 job, size_t at, uint8_t outcome,
                          int64_t busy_ns)
{
    struct exchange_work work = take(provider, at);
    result(provider, job, work, outcome, busy_ns);
    listen();
}

static inline void tick_and_listen(void)
{
    tick();
    listen();
}

/* One provider does a subtask a second, the other none, until nothing waits and nothing is left to
 * the first. */
static inline struct id128 all_but_what_the_other_holds(void)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct id128 job = submit(8, 400);
    listen();
    while (held_count[0] > 0) {
        market.now_ns += NS_PER_S;
        answer(PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
    }
    return job;
}

#endif
