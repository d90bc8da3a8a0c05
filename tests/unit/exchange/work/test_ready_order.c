/* The order of ready subtasks by expected times gives what a look at all of them gives. */
#include "base/checked.h"
#include "exchange/policy.h"
#include "exchange/work/choice/ready.h"
#include "exchange/work/choice/ready_order.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { SUBTASKS = 300, FIRST = 7, ROUNDS = 20000 };

/* A job of one part, which does not begin at subtask 0. */
static struct {
    struct job job;
    struct part part;
    struct graph graph;
    uint32_t rank[FIRST + SUBTASKS], expect_ms[FIRST + SUBTASKS], ready[SUBTASKS];
    bool is_ready[FIRST + SUBTASKS];
} made;

static void make(bool has_ranks)
{
    made.graph = (struct graph){
        .job = &made.job, .rank = has_ranks ? made.rank : NULL, .expect_ms = made.expect_ms};
    made.part = (struct part){
        .job = &made.job, .first = FIRST, .end = FIRST + SUBTASKS, .ready = made.ready};
    made.job =
        (struct job){.graph = &made.graph, .parts = &made.part, .part_count = 1, .deadline_ns = 1};
    for (uint32_t i = FIRST; i < FIRST + SUBTASKS; i++) {
        made.rank[i] = (uint32_t)rand() % 50;
        made.expect_ms[i] =
            rand() % 9 == 0 ? UINT32_MAX - (uint32_t)rand() % 3 : (uint32_t)rand() % 40 * 1000;
        made.is_ready[i] = false;
    }
}

/* Looks at all. */
static uint32_t slow_first(const struct ready_bound *bound)
{
    uint32_t found = NO_SUBTASK;
    for (uint32_t i = FIRST; i < FIRST + SUBTASKS; i++) {
        const bool is_within =
            !bound->is_set || online_at_pace_ns((int64_t)made.expect_ms[i] * NS_PER_MS,
                                                bound->pace) <= bound->most_ns;
        if (made.is_ready[i] && is_within &&
            (found == NO_SUBTASK || ready_rank(&made.graph, i) > ready_rank(&made.graph, found))) {
            found = i;
        }
    }
    return found;
}

static uint32_t slow_shortest(void)
{
    uint32_t found = NO_SUBTASK;
    for (uint32_t i = FIRST; i < FIRST + SUBTASKS; i++) {
        if (made.is_ready[i] &&
            (found == NO_SUBTASK || made.expect_ms[i] < made.expect_ms[found])) {
            found = i;
        }
    }
    return found;
}

static void push_any(void)
{
    const uint32_t index = FIRST + (uint32_t)rand() % SUBTASKS;
    if (!made.is_ready[index]) {
        made.is_ready[index] = true;
        ready_push(&made.part, index);
    }
}

static void take_any(void)
{
    const struct ready_bound bound = {.exchange = market.exchange,
                                      .is_set = rand() % 4 != 0,
                                      .pace = {.said_ns = rand() % 3, .took_ns = rand() % 3},
                                      .most_ns = rand() % 2 == 0 ? rand() % 40 * NS_PER_S
                                                                 : INT64_MAX - rand() % 2};
    const uint32_t expected = slow_first(&bound);
    ck_assert_uint_eq(ready_take(&made.part, NULL, &bound), expected);
    if (expected != NO_SUBTASK) {
        made.is_ready[expected] = false;
    }
}

static void check_shortest(void)
{
    const uint32_t expected = slow_shortest();
    uint64_t steps = 0;
    const uint32_t found = ready_order_shortest(made.part.order, &steps);
    ck_assert_uint_eq(found == NO_SUBTASK, expected == NO_SUBTASK);
    ck_assert(found == NO_SUBTASK || made.expect_ms[found] == made.expect_ms[expected]);
    ck_assert_uint_le(steps, 9); /* 512 leaves */
}

static void run(bool has_ranks, uint32_t seed)
{
    srand(seed);
    make(has_ranks);
    for (uint32_t i = 0; i < SUBTASKS / 4; i++) {
        push_any(); /* before there is an order */
    }
    ck_assert(ready_order_create(market.exchange, &made.job));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (rand() % 2 == 0) {
            push_any();
        } else {
            take_any();
        }
        check_shortest();
    }
    ready_order_destroy(&made.part.order);
    ck_assert_ptr_null(made.part.order);
}

START_TEST(the_order_gives_what_a_look_at_all_gives)
{
    run(true, 1);
    run(false, 2);
}
END_TEST

START_TEST(only_a_job_with_a_deadline_and_expectations_has_an_order)
{
    make(true);
    made.job.deadline_ns = 0;
    ck_assert(ready_order_create(market.exchange, &made.job));
    ck_assert_ptr_null(made.part.order);
    made.job.deadline_ns = 1;
    made.job.is_checked = true;
    ck_assert(ready_order_create(market.exchange, &made.job));
    ck_assert_ptr_null(made.part.order);
    made.job.is_checked = false;
    made.graph.expect_ms = NULL;
    ck_assert(ready_order_create(market.exchange, &made.job));
    ck_assert_ptr_null(made.part.order);
}
END_TEST

SUITE("exchange: order of ready subtasks", set_up_now, tear_down,
      TEST(the_order_gives_what_a_look_at_all_gives),
      TEST(only_a_job_with_a_deadline_and_expectations_has_an_order))
