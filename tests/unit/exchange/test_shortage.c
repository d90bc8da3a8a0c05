/* Memory that runs out in the middle of a step: the step ends, and says so, whether memory stays
 * short or not. A step that went on without one allocation would make another state than a replay
 * of the journal. A whole day with failing allocations is tests/crash/crash_memory.c's. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static bool is_counting;
static uint32_t left;      /* allocations until one fails, and from then on every one */
static bool is_once;       /* only one fails */
static uint32_t had_short; /* allocations that failed */

static bool is_short(void)
{
    if (!is_counting) {
        return false;
    }
    left -= left > 0 ? 1 : 0;
    const bool fails = left == 0 && (!is_once || had_short == 0);
    had_short += fails;
    return fails;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return is_short() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_short() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return is_short() ? NULL : __real_realloc(old, size);
}

/* One job runs and another waits; a minute later the first one's lease has ended and both want its
 * slot. */
static enum exchange_status step_with(uint32_t allocations)
{
    set_up();
    offer(PROVIDER, 1, price);
    (void)submit(3, 100);
    (void)submit(3, 100);
    market.now_ns += 60 * NS_PER_S;
    struct exchange_command tick = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    exchange_effects_clear(&market.effects);
    left = allocations + 1;
    is_counting = true;
    enum exchange_status status = exchange_step(market.exchange, &tick, &market.effects);
    is_counting = false;
    tear_down();
    return status;
}

START_TEST(a_step_without_memory_ends)
{
    uint32_t allocations = 0;
    while (step_with(allocations) == EXCHANGE_OUT_OF_MEMORY) {
        allocations++;
    }
    ck_assert_uint_ge(allocations, 3); /* a lease, its lanes, an attempt */
    ck_assert_int_eq(step_with(allocations), EXCHANGE_OK);
}
END_TEST

enum { LOW = CONSUMER, HIGH = OPERATOR, NOTICE_S = 5 };

/* One provider, whose leases may be taken, and consumers. */
static void open_spot_market(void)
{
    struct exchange_limits limits = exchange_limits_default();
    struct exchange_genesis_account accounts[4];
    limits.asks = limits.jobs = limits.leases = 64;
    memset(accounts, 0, sizeof accounts);
    for (uint32_t i = 0; i < 4; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = ROLE_CONSUMER | (LOW + i == PROVIDER ? ROLE_PROVIDER : 0U) |
                            (LOW + i == HIGH ? ROLE_OPERATOR : 0U);
        accounts[i].credits_micro = 1000 * MICRO_PER_CREDIT;
    }
    open_market_of(&limits, 10 * price, accounts, 4);
    static struct attribute kind = {.name = "kind", .is_text = true, .text = "cpu"};
    struct exchange_device device = {
        .device = {{1}}, .slots = 1, .attributes = &kind, .attribute_count = 1, .label = "a cpu"};
    struct exchange_command made = command(EXCHANGE_ADVERTISE, PROVIDER);
    made.advertise = (struct exchange_advertise){&device, 1};
    apply(&made);
    made = command(EXCHANGE_ASK, PROVIDER);
    made.ask = (struct exchange_ask){
        .device = {{1}},
        .slots = 1,
        .price_micro = price,
        .terms = {.is_interruptible = true, .notice_ns = NOTICE_S * NS_PER_S}};
    apply(&made);
}

static struct exchange_command bid_of(uint32_t account, int64_t cap)
{
    struct exchange_command made = submit_of(1, 150);
    made.account = account;
    made.submit.cap_micro = cap;
    return made;
}

/* A bid takes a lease from a lower one, and one allocation of its step fails. Returns false when
 * the step needed fewer. */
static bool take_lease_with(uint32_t allocations)
{
    open_spot_market();
    struct exchange_command made = bid_of(LOW, 2 * price);
    apply(&made);
    made = bid_of(HIGH, 3 * price);
    exchange_effects_clear(&market.effects);
    left = allocations + 1;
    is_once = is_counting = true;
    had_short = 0;
    const enum exchange_status status = exchange_step(market.exchange, &made, &market.effects);
    is_once = is_counting = false;
    ck_assert_msg(status == (had_short > 0 ? EXCHANGE_OUT_OF_MEMORY : EXCHANGE_OK),
                  "allocation %u of the step failed, and the step says %d", allocations,
                  (int)status);
    tear_down();
    return had_short > 0;
}

START_TEST(a_step_that_lacks_one_allocation_says_so)
{
    uint32_t allocations = 0;
    while (take_lease_with(allocations)) {
        allocations++;
    }
    ck_assert_uint_ge(allocations, 3);
}
END_TEST

SUITE("shortage", NULL, NULL, TEST(a_step_without_memory_ends),
      TEST(a_step_that_lacks_one_allocation_says_so))
