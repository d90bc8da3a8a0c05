/* The sums of what devices hold, and whose a device is. */
#include "provider/work/device_memory.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

static struct device_memory *memory;

static void begin(void)
{
    memory = device_memory_create(2);
    ck_assert_ptr_nonnull(memory);
}

static void end(void)
{
    device_memory_destroy(&memory);
    ck_assert_ptr_null(memory);
}

START_TEST(runs_add_up_by_device)
{
    const struct held_figures first = {.hits = 1,
                                       .saved_bytes = 10,
                                       .copies = 2,
                                       .copied_bytes = 30,
                                       .held_bytes = 40,
                                       .aheads = 1,
                                       .ahead_bytes = 8};
    const struct held_figures second = {.hits = 3, .saved_bytes = 5, .held_bytes = 25};
    uint64_t lanes[2] = {0, 0};
    device_memory_note(memory, 1, &first, &lanes[0]);
    device_memory_note(memory, 1, &second, &lanes[1]);
    struct held_figures sum = device_memory_read(memory, 1);
    ck_assert_uint_eq(sum.hits, 4);
    ck_assert_uint_eq(sum.saved_bytes, 15);
    ck_assert_uint_eq(sum.copies, 2);
    ck_assert_uint_eq(sum.copied_bytes, 30);
    ck_assert_uint_eq(sum.aheads, 1);
    ck_assert_uint_eq(sum.ahead_bytes, 8);
    ck_assert_uint_eq(sum.held_bytes, 65); /* of two lanes */
    device_memory_note(memory, 1, &second, &lanes[0]);
    ck_assert_uint_eq(device_memory_read(memory, 1).held_bytes, 50);
    device_memory_forget(memory, 1, &lanes[1]);
    sum = device_memory_read(memory, 1);
    ck_assert_uint_eq(sum.held_bytes, 25);
    ck_assert_uint_eq(sum.hits, 7); /* the past stays */
    ck_assert_uint_eq(device_memory_read(memory, 0).hits, 0);
}
END_TEST

/* A worker is another process, whose figures may be anything. */
START_TEST(no_figure_overflows_a_sum)
{
    const struct held_figures most = {.hits = UINT64_MAX,
                                      .saved_bytes = UINT64_MAX,
                                      .copies = UINT64_MAX,
                                      .copied_bytes = UINT64_MAX,
                                      .held_bytes = UINT64_MAX};
    uint64_t lane = 0;
    device_memory_note(memory, 0, &most, &lane);
    device_memory_note(memory, 0, &most, &lane);
    const struct held_figures sum = device_memory_read(memory, 0);
    ck_assert_uint_eq(sum.hits, INT64_MAX);
    ck_assert_uint_eq(sum.saved_bytes, INT64_MAX);
    ck_assert_uint_le(sum.held_bytes, INT64_MAX);
    device_memory_forget(memory, 0, &lane);
    ck_assert_uint_eq(device_memory_read(memory, 0).held_bytes, 0);
}
END_TEST

static atomic_bool has_it;

static void *take_second(void *argument)
{
    (void)argument;
    device_memory_take(memory, 0);
    atomic_store(&has_it, true);
    device_memory_give(memory, 0);
    return NULL;
}

START_TEST(one_lane_has_a_device_at_a_time)
{
    pthread_t other;
    device_memory_take(memory, 0);
    device_memory_take(memory, 1); /* another device */
    ck_assert_int_eq(pthread_create(&other, NULL, take_second, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        ck_assert(!atomic_load(&has_it));
        (void)sched_yield();
    }
    device_memory_give(memory, 0);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    ck_assert(atomic_load(&has_it));
    device_memory_give(memory, 1);
}
END_TEST

SUITE("device_memory", begin, end, TEST(runs_add_up_by_device), TEST(no_figure_overflows_a_sum),
      TEST(one_lane_has_a_device_at_a_time))
