/* tests/support/spot_market.h is a market by hand with interruptible leases: three consumers and
 * one provider. open_market and tear_down are the fixture. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_SPOT_MARKET_H
#define BOURSE_TESTS_SUPPORT_SPOT_MARKET_H

#include "protocol/message.h"
#include "tests/support/hand_market.h"

#include <check.h>
#include <string.h>

enum { LOW = CONSUMER, MIDDLE = OTHER_PROVIDER, HIGH = OPERATOR, NOTICE_S = 5 };
static const int64_t increment = EXCHANGE_INCREMENT_MICRO;
static const struct exchange_terms firm = {.is_interruptible = false};
static const struct exchange_terms spot = {.is_interruptible = true,
                                           .notice_ns = NOTICE_S * NS_PER_S};

/* Three consumers, and one provider whose leases may be taken. */
static inline void open_market(void)
{
    struct exchange_limits limits = exchange_limits_default();
    limits.asks = limits.jobs = 64;
    limits.leases = 64;
    struct exchange_genesis_account accounts[4];
    memset(accounts, 0, sizeof accounts);
    for (uint32_t i = 0; i < 4; i++) {
        bool is_provider = LOW + i == PROVIDER;
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = is_provider ? ROLE_PROVIDER | ROLE_CONSUMER : ROLE_CONSUMER;
        accounts[i].roles |= LOW + i == HIGH ? ROLE_OPERATOR : 0U;
        accounts[i].credits_micro = 1000 * MICRO_PER_CREDIT;
    }
    open_market_of(&limits, 10 * price, accounts, 4);
}

/* Devices 1, 2 ... of `slots` each. */
static inline void advertise(uint32_t devices, uint32_t slots)
{
    static struct attribute kind = {.name = "kind", .is_text = true, .text = "cpu"};
    struct exchange_device list[4];
    for (uint32_t i = 0; i < devices; i++) {
        list[i] = (struct exchange_device){.device = {{(uint8_t)(i + 1)}},
                                           .slots = slots,
                                           .attributes = &kind,
                                           .attribute_count = 1,
                                           .label = "a cpu"};
    }
    struct exchange_command made = command(EXCHANGE_ADVERTISE, PROVIDER);
    made.advertise = (struct exchange_advertise){list, devices};
    apply(&made);
}

static inline struct id128 ask(uint8_t device, uint32_t slots, struct exchange_terms terms)
{
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask = (struct exchange_ask){
        .device = {{device}}, .slots = slots, .price_micro = price, .terms = terms};
    apply(&made);
    return made.id;
}

static inline struct exchange_command bid_of(uint32_t account, uint32_t subtasks, int64_t cap)
{
    struct exchange_command made = submit_of(subtasks, 150);
    made.account = account;
    made.submit.cap_micro = cap;
    return made;
}

static inline struct id128 bid(uint32_t account, uint32_t subtasks, int64_t cap)
{
    struct exchange_command made = bid_of(account, subtasks, cap);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

static inline void wait_s(int64_t seconds)
{
    market.now_ns += seconds * NS_PER_S;
    tick();
}

static inline void cancel(uint32_t account, struct id128 job)
{
    struct exchange_command made = command(EXCHANGE_CANCEL_JOB, account);
    made.cancel_job.job = job;
    apply(&made);
}

static inline struct exchange_lease_row lease_row(struct id128 job, size_t n)
{
    struct exchange_lease_row rows[16];
    ck_assert_uint_lt(n, exchange_leases(market.exchange, &job, rows, 16));
    return rows[n];
}

static inline bool was_noticed(struct id128 job)
{
    const struct exchange_effect *notice = nth(EFFECT_LEASE_NOTICE, 0);
    return notice != NULL && id128_equal(&notice->lease.job, &job);
}

#endif
