/* The tests ask what the rows of plans wait for, by plans made by hand. */
#include "planner/layout/queues.h"

#include "base/cleanup.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static void queues_free(struct queue **self)
{
    free(*self);
}

static struct queue *queues_in(const struct plan *plan, const struct steps *steps, size_t wanted)
{
    struct queue *queues = NULL;
    size_t count = 0;
    ck_assert(queues_of(plan, steps, &queues, &count));
    ck_assert_uint_eq(count, wanted);
    return queues;
}

static void assert_queue(const struct queue *queue, enum queue_for what, uint32_t row,
                         double from_s, double until_s)
{
    ck_assert_str_eq(queue_name(queue->what), queue_name(what));
    ck_assert_uint_eq(queue->row, row);
    ck_assert_double_eq(queue->from_s, from_s);
    ck_assert_double_eq(queue->until_s, until_s);
}

/* a, then b and c from it. b is with a on device 0, c on device 1, and d, which waits for nobody,
 * is before c there. The way of a's result to c is taken until 3. */
START_TEST(rows_wait_for_their_device_and_results_for_links)
{
    CLEANUP(steps_destroy) struct steps *steps = sample_steps(4);
    sample_edge(steps, 0, 1, 10);
    sample_edge(steps, 0, 2, 10);
    struct plan_row rows[] = {
        {.device = 0, .first_step = 0, .step_count = 1, .start_s = 0, .finish_s = 2},
        {.device = 1, .first_step = 3, .step_count = 1, .start_s = 0, .finish_s = 6},
        {.device = 0, .first_step = 1, .step_count = 1, .start_s = 2, .finish_s = 5},
        {.device = 1, .first_step = 2, .step_count = 1, .start_s = 6, .finish_s = 7},
    };
    struct plan_transfer transfers[] = {{.from = 0, .to = 3, .start_s = 3, .finish_s = 4}};
    const struct plan plan = {.form = PLAN_GRAPH,
                              .total = {.makespan_s = {.value = 7}},
                              .rows = rows,
                              .row_count = 4,
                              .transfers = transfers,
                              .transfer_count = 1};
    CLEANUP(queues_free) struct queue *queues = queues_in(&plan, steps, 2);
    assert_queue(&queues[0], QUEUE_LINK, 0, 2, 3);
    ck_assert_uint_eq(queues[0].to, 3);
    assert_queue(&queues[1], QUEUE_DEVICE, 3, 4, 6);
    ck_assert_uint_eq(queues[1].to, PLAN_ANYWHERE);
}
END_TEST

START_TEST(what_begins_as_soon_as_it_can_waits_for_nothing)
{
    CLEANUP(steps_destroy) struct steps *steps = sample_steps(2);
    sample_edge(steps, 0, 1, 10);
    struct plan_row rows[] = {
        {.device = 0, .first_step = 0, .step_count = 1, .start_s = 0, .finish_s = 2},
        {.device = 1, .first_step = 1, .step_count = 1, .start_s = 2.5, .finish_s = 3},
    };
    struct plan_transfer transfers[] = {{.from = 0, .to = 1, .start_s = 2, .finish_s = 2.5}};
    const struct plan plan = {.form = PLAN_GRAPH,
                              .total = {.makespan_s = {.value = 3}},
                              .rows = rows,
                              .row_count = 2,
                              .transfers = transfers,
                              .transfer_count = 1};
    struct queue *queues = queues_in(&plan, steps, 0);
    queues_free(&queues);
}
END_TEST

START_TEST(shares_wait_for_others)
{
    CLEANUP(steps_destroy) struct steps *steps = sample_steps(1);
    struct plan_row rows[] = {
        {.device = 0, .first_step = 0, .step_count = 1, .start_s = 0, .finish_s = 4},
        {.device = 1, .first_step = 0, .step_count = 1, .start_s = 1, .finish_s = 4},
    };
    struct plan_wait waits[] = {{.row = 1, .from_s = 2, .until_s = 3}};
    const struct plan plan = {.form = PLAN_SPLIT,
                              .total = {.makespan_s = {.value = 4}},
                              .rows = rows,
                              .row_count = 2,
                              .waits = waits,
                              .wait_count = 1};
    CLEANUP(queues_free) struct queue *queues = queues_in(&plan, steps, 1);
    assert_queue(&queues[0], QUEUE_OTHERS, 1, 2, 3);
}
END_TEST

SUITE("queues", NULL, NULL, TEST(rows_wait_for_their_device_and_results_for_links),
      TEST(what_begins_as_soon_as_it_can_waits_for_nothing), TEST(shares_wait_for_others))
