/* Memory that runs out in the middle of a step and stays short: the step ends, and says so. That
 * one allocation fails and the next succeeds is tests/crash/crash_memory.c's. */
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static bool is_counting;
static uint32_t left; /* allocations until every one fails */

static bool is_short(void)
{
    if (!is_counting) {
        return false;
    }
    left -= left > 0 ? 1 : 0;
    return left == 0;
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

SUITE("shortage", NULL, NULL, TEST(a_step_without_memory_ends))
