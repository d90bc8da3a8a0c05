/* Subtasks wait for one another. Jobs of several parts are in test_exchange_parts.c. */
#include "base/checked.h"
#include "exchange/state/records.h"
#include "planner/schedule/online.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static void set_up_for_parts(void)
{
    set_up_with(64, 4096, 16);
}

/* A result that leaves `left` to others. */
static void leave(uint32_t provider, struct id128 job, struct exchange_work work, uint8_t outcome,
                  const char *left)
{
    struct exchange_result one = {
        .job = job,
        .index = work.index,
        .attempt = work.attempt,
        .lease = work.lease,
        .device = {{(uint8_t)provider}},
        .manifest = {{9}},
        .outcome = outcome,
        .busy_ns = NS_PER_S,
        .given = (const uint8_t *)left,
        .given_length = (uint32_t)strlen(left),
    };
    struct exchange_command results = command(EXCHANGE_RESULTS, provider);
    results.results = (struct exchange_results){.results = &one, .count = 1};
    market.now_ns += NS_PER_MS;
    results.log_time_ns = market.now_ns;
    apply(&results);
}

static void finish(struct id128 job, struct exchange_work work)
{
    leave(PROVIDER, job, work, OUTCOME_OK, "");
}

static const uint32_t diamond_counts[] = {0, 1, 1, 2};
static const uint32_t diamond_after[] = {0, 0, 1, 2};
static const struct exchange_graph diamond = {
    .after_count = diamond_counts,
    .after_count_count = 4,
    .after = diamond_after,
    .after_length = 4,
};

static struct id128 submit_graph(uint32_t subtasks, const struct exchange_graph *graph)
{
    struct exchange_command made = submit_of(subtasks, 900);
    made.submit.graph = graph;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

/* All that was sent, in order. */
enum { LARGE = 10000 };

struct flight {
    struct exchange_work works[LARGE];
    size_t first, count;
};

static size_t take_dispatches(struct flight *flight)
{
    size_t taken = 0;
    for (size_t i = 0; i < market.effects.count; i++) {
        if (market.effects.items[i].type == EFFECT_DISPATCH) {
            ck_assert_uint_lt(flight->count, LARGE);
            flight->works[flight->count++] = market.effects.items[i].work;
            taken++;
        }
    }
    return taken;
}

START_TEST(nothing_starts_before_what_it_waits_for)
{
    offer(PROVIDER, 4, price);
    struct id128 job = submit_graph(4, &diamond);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
    ck_assert_uint_eq(job_row(job).waiting, 3);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(first.index, 0);
    ck_assert_uint_eq(first.given_count, 0);

    leave(PROVIDER, job, first, OUTCOME_OK, "zero");
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    struct exchange_work left = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work right = nth(EFFECT_DISPATCH, 1)->work;
    ck_assert_uint_eq(left.index, 1);
    ck_assert_uint_eq(right.index, 2);
    ck_assert_uint_eq(left.given_count, 1);
    ck_assert_uint_eq(left.given[0].length, 4);
    ck_assert_mem_eq(left.given[0].bytes, "zero", 4);
    check_hash();
    reload();

    leave(PROVIDER, job, right, OUTCOME_OK, "two");
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    leave(PROVIDER, job, left, OUTCOME_OK, "one");
    const struct exchange_work *last = &nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(last->index, 3);
    ck_assert_uint_eq(last->given_count, 2); /* in the order in which it names them */
    ck_assert_mem_eq(last->given[0].bytes, "one", 3);
    ck_assert_mem_eq(last->given[1].bytes, "two", 3);
    finish(job, *last);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    check_hash();
}
END_TEST

START_TEST(each_subtask_says_how_far_it_is)
{
    struct exchange_subtask_row row;
    offer(PROVIDER, 1, price);
    struct id128 job = submit_graph(4, &diamond);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert(exchange_subtask(market.exchange, &job, 0, &row));
    ck_assert_uint_eq(row.state, SUBTASK_NOW_RUNNING);
    ck_assert_uint_eq(row.provider, PROVIDER);
    ck_assert_str_eq(row.device, "a cpu");
    ck_assert_uint_eq(row.tries, 1);
    ck_assert_uint_eq(row.behind, 0);
    ck_assert(exchange_subtask(market.exchange, &job, 3, &row));
    ck_assert_uint_eq(row.state, SUBTASK_NOW_WAITING);
    ck_assert_uint_eq(row.waits_on, 2);
    ck_assert_uint_eq(row.provider, EXCHANGE_NO_ACCOUNT);
    leave(PROVIDER, job, first, OUTCOME_OK, "zero");
    reload();
    ck_assert(exchange_subtask(market.exchange, &job, 0, &row));
    ck_assert_uint_eq(row.state, SUBTASK_NOW_ACCEPTED);
    ck_assert(exchange_subtask(market.exchange, &job, 1, &row));
    ck_assert_uint_eq(row.waits_on, 0);
    ck_assert_uint_eq(row.behind, 0);
    ck_assert(exchange_subtask(market.exchange, &job, 2, &row)); /* one slot: both are there */
    ck_assert_uint_eq(row.behind, row.provider == PROVIDER ? 1 : 0);
    ck_assert(!exchange_subtask(market.exchange, &job, 4, &row));
    ck_assert(!exchange_subtask(market.exchange, &(struct id128){{99}}, 0, &row));
}
END_TEST

START_TEST(what_is_sent_again_is_given_again)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_graph(4, &diamond);
    leave(PROVIDER, job, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_OK, "zero");
    struct exchange_command statement = command(EXCHANGE_STATEMENT, PROVIDER);
    apply(&statement); /* the agent has nothing of it, and does not say since when */
    ck_assert_uint_ge(count_of(EFFECT_DISPATCH), 1);
    const struct exchange_work *again = &nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(again->given_count, 1);
    ck_assert_mem_eq(again->given[0].bytes, "zero", 4);
}
END_TEST

/* Runs the graph on one lane: what runs first, second and so on, also after a snapshot. */
static void expect_order(const struct exchange_graph *graph, const uint32_t *order, size_t count)
{
    static struct flight flight;
    struct id128 job = submit_graph((uint32_t)count, graph);
    memset(&flight, 0, sizeof flight);
    check_hash();
    reload();
    offer(PROVIDER, 1, price);
    (void)take_dispatches(&flight);
    while (flight.first < flight.count) {
        ck_assert_uint_eq(flight.works[flight.first].index, order[flight.first]);
        finish(job, flight.works[flight.first++]);
        (void)take_dispatches(&flight);
    }
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}

START_TEST(the_higher_rank_goes_first_then_the_lower_index)
{
    static const uint32_t ranks[] = {5, 9, 5, 9, 7};
    static const uint32_t order[] = {1, 3, 4, 0, 2};
    const struct exchange_graph graph = {.rank = ranks, .rank_count = 5};
    expect_order(&graph, order, 5);
}
END_TEST

START_TEST(without_ranks_the_longest_expected_goes_first_then_the_lower_index)
{
    static const uint32_t expect_ms[] = {500, 0, 900, 500, 900, 1};
    static const uint32_t order[] = {2, 4, 0, 3, 5, 1};
    const struct exchange_graph graph = {.expect_ms = expect_ms, .expect_count = 6};
    expect_order(&graph, order, 6);
}
END_TEST

START_TEST(ranks_go_before_what_is_expected)
{
    static const uint32_t ranks[] = {1, 2, 2, 1};
    static const uint32_t expect_ms[] = {9, 3, 8, 7};
    static const uint32_t order[] = {1, 2, 0, 3};
    const struct exchange_graph graph = {
        .rank = ranks, .rank_count = 4, .expect_ms = expect_ms, .expect_count = 4};
    expect_order(&graph, order, 4);
}
END_TEST

/* 0 and 1 may start; 2 waits for 1, and then goes before 0; 3 waits for 0. */
START_TEST(what_becomes_ready_goes_by_what_is_expected_of_it_too)
{
    static const uint32_t expect_ms[] = {100, 200, 300, 50};
    static const uint32_t counts[] = {0, 0, 1, 1};
    static const uint32_t after[] = {1, 0};
    static const uint32_t order[] = {1, 2, 0, 3};
    const struct exchange_graph graph = {.expect_ms = expect_ms,
                                         .expect_count = 4,
                                         .after_count = counts,
                                         .after_count_count = 4,
                                         .after = after,
                                         .after_length = 2};
    expect_order(&graph, order, 4);
}
END_TEST

START_TEST(what_waits_for_a_failure_is_cancelled_and_the_rest_goes_on)
{
    /* 0 <- 1 <- 2, 0 <- 3; 4 stands alone; 5 waits for 2 and 4. */
    static const uint32_t counts[] = {0, 1, 1, 1, 0, 2};
    static const uint32_t after[] = {0, 1, 0, 2, 4};
    const struct exchange_graph graph = {
        .after_count = counts, .after_count_count = 6, .after = after, .after_length = 5};
    offer(PROVIDER, 2, price);
    struct id128 job = submit_graph(6, &graph);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    struct exchange_work zero = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work four = nth(EFFECT_DISPATCH, 1)->work;
    ck_assert_uint_eq(four.index, 4);
    leave(PROVIDER, job, zero, OUTCOME_PROGRAM_FAILED, "");
    ck_assert_uint_eq(job_row(job).failed, 1);
    ck_assert_uint_eq(job_row(job).cancelled, 4);
    ck_assert_uint_eq(job_row(job).running, 1);
    check_hash();
    reload();
    finish(job, four);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_SUBTASKS_FAILED);
    ck_assert_uint_eq(job_row(job).accepted, 1);
}
END_TEST

START_TEST(who_leaves_more_than_can_be_handed_on_has_failed)
{
    static char much[GIVEN_BYTES_MOST + 2];
    memset(much, 'x', sizeof much - 1);
    offer(PROVIDER, 1, price);
    struct id128 job = submit_graph(4, &diamond);
    leave(PROVIDER, job, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_OK, much);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(job_row(job).failed, 1);
    ck_assert_uint_eq(job_row(job).cancelled, 3);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
}
END_TEST

/* Each of 50 leaves as much as it may: together that is more than can be sent with the last one. */
START_TEST(who_is_given_more_than_a_message_holds_has_failed)
{
    enum { MANY = 50 };
    static char much[GIVEN_BYTES_MOST + 1];
    static uint32_t counts[MANY + 1];
    static uint32_t after[MANY];
    memset(much, 'x', sizeof much - 1);
    counts[MANY] = MANY;
    for (uint32_t i = 0; i < MANY; i++) {
        after[i] = i;
    }
    const struct exchange_graph graph = {
        .after_count = counts, .after_count_count = MANY + 1, .after = after, .after_length = MANY};
    offer(PROVIDER, 64, price / 100);
    struct id128 job = submit_graph(MANY + 1, &graph);
    struct exchange_work works[MANY];
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), MANY);
    for (size_t i = 0; i < MANY; i++) {
        works[i] = nth(EFFECT_DISPATCH, i)->work;
    }
    for (size_t i = 0; i < MANY; i++) {
        leave(PROVIDER, job, works[i], OUTCOME_OK, much);
    }
    ck_assert_uint_eq(job_row(job).accepted, MANY);
    ck_assert_uint_eq(job_row(job).failed, 1);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_SUBTASKS_FAILED);
}
END_TEST

START_TEST(a_graph_that_is_none_is_refused_by_its_field)
{
    static const uint32_t to_itself[] = {1};
    static const uint32_t ahead[] = {0, 0, 1, 3};
    const struct exchange_graph ranks = {.rank = diamond_after, .rank_count = 3};
    const struct exchange_graph expects = {.expect_ms = diamond_after, .expect_count = 3};
    const struct exchange_graph counts = {.after_count = diamond_counts, .after_count_count = 3};
    const struct exchange_graph few = {.after_count = diamond_counts,
                                       .after_count_count = 4,
                                       .after = diamond_after,
                                       .after_length = 3};
    const struct exchange_graph loop = {
        .after_count = diamond_counts, .after_count_count = 4, .after = ahead, .after_length = 4};
    const struct exchange_graph orphan = {.after = to_itself, .after_length = 1};
    const struct {
        const struct exchange_graph *graph;
        const char *field;
    } cases[] = {{&ranks, "graph.rank"},         {&expects, "graph.expect_ms"},
                 {&counts, "graph.after_count"}, {&few, "graph.after_count"},
                 {&loop, "graph.after"},         {&orphan, "graph.after"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct exchange_command made = submit_of(4, 100);
        made.submit.graph = cases[i].graph;
        apply(&made);
        check_rejected(REJECT_QUANTITY);
        ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, cases[i].field);
    }
    struct exchange_command large = submit_of(GRAPH_SUBTASKS_MOST + 1, 100);
    large.submit.graph = &orphan;
    apply(&large);
    check_rejected(REJECT_QUANTITY);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "subtasks");
}
END_TEST

START_TEST(the_crash_limit_is_the_jobs)
{
    for (uint32_t limit = 0; limit < 3; limit++) {
        tear_down();
        set_up_for_parts();
        offer(PROVIDER, 1, price);
        struct exchange_command made = submit_of(1, 500);
        made.submit.crash_limit = limit;
        apply(&made);
        uint32_t crashes = 0;
        while (job_row(made.id).state == JOB_OPEN) {
            if (count_of(EFFECT_DISPATCH) == 0) {
                market.now_ns += AVOID_NS; /* the job avoids the provider for a while */
                tick();
                continue;
            }
            leave(PROVIDER, made.id, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_JAIL_FAILED, "");
            crashes++;
        }
        ck_assert_uint_eq(crashes, limit + 1);
        ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_PROVIDERS_FAILED);
    }
}
END_TEST

/* A provider that gives work back has lost nothing: docs/jobfile.md, `crash_limit`. */
START_TEST(work_that_is_given_back_does_not_count)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_of(1, 500);
    made.submit.crash_limit = 0;
    apply(&made);
    for (int tries = 0; tries < 5;) {
        if (count_of(EFFECT_DISPATCH) == 0) {
            market.now_ns += AVOID_NS;
            tick();
            continue;
        }
        leave(PROVIDER, made.id, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_CANCELLED, "");
        ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
        tries++;
    }
    while (count_of(EFFECT_DISPATCH) == 0) {
        market.now_ns += AVOID_NS;
        tick();
    }
    leave(PROVIDER, made.id, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_OK, "");
    ck_assert_uint_eq(job_row(made.id).state, JOB_DONE);
}
END_TEST

/* ---------------------------------------------------------------- a large one */

/* Ten layers of a thousand, each waiting for up to eight of the layer before. What one step starts
 * is bounded by the lanes, however much becomes ready; in any time as much is started as ended, and
 * what the lanes hold; and each edge is looked at four times, so that what a second decides is
 * bounded by the results that it brings. */
START_TEST(ten_thousand_run_in_order_and_few_start_in_a_step)
{
    static uint32_t counts[LARGE];
    static uint32_t after[8 * LARGE];
    static uint8_t accepted[LARGE];
    static struct flight flight;
    static uint32_t first_after[LARGE];
    uint32_t edges = 0;
    struct exchange_totals before = {0}; /* of the copy before it was loaded anew */
    memset(&flight, 0, sizeof flight);
    memset(accepted, 0, sizeof accepted);
    for (uint32_t i = 0; i < LARGE; i++) {
        first_after[i] = edges;
        counts[i] = i < 1000 ? 0 : 1 + i % 8;
        for (uint32_t k = 0; k < counts[i]; k++) {
            after[edges++] = i / 1000 * 1000 - 1000 + (i * 7 + k * 131) % 1000;
        }
    }
    const struct exchange_graph graph = {
        .after_count = counts, .after_count_count = LARGE, .after = after, .after_length = edges};
    offer(PROVIDER, 16, 0);
    struct id128 job = submit_graph(LARGE, &graph);
    (void)take_dispatches(&flight);
    while (flight.first < flight.count) {
        struct exchange_work work = flight.works[flight.first++];
        for (uint32_t k = 0; k < counts[work.index]; k++) {
            ck_assert(accepted[after[first_after[work.index] + k]]);
        }
        accepted[work.index] = 1;
        struct exchange_result one = {.job = job,
                                      .index = work.index,
                                      .attempt = work.attempt,
                                      .lease = work.lease,
                                      .device = {{PROVIDER}},
                                      .manifest = {{9}},
                                      .busy_ns = NS_PER_MS,
                                      .given = (const uint8_t *)"left",
                                      .given_length = 4};
        struct exchange_command results = command(EXCHANGE_RESULTS, PROVIDER);
        results.results = (struct exchange_results){.results = &one, .count = 1};
        market.now_ns += NS_PER_MS;
        results.log_time_ns = market.now_ns;
        apply(&results);
        ck_assert_uint_le(take_dispatches(&flight), 16 * ONLINE_WINDOW_ALWAYS);
        const struct exchange_totals now = exchange_totals(market.exchange);
        ck_assert_uint_le(before.dispatches + now.dispatches,
                          flight.first + 16 * ONLINE_WINDOW_ALWAYS);
        if (flight.first == LARGE / 2) {
            check_hash();
            before = now;
            reload();
        }
    }
    const struct exchange_totals after_it = exchange_totals(market.exchange);
    ck_assert_uint_eq(before.dispatches + after_it.dispatches, LARGE);
    ck_assert_uint_le(before.edges + after_it.edges, 4 * (uint64_t)edges);
    ck_assert_uint_ge(before.edges + after_it.edges, 3 * (uint64_t)edges);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_uint_eq(job_row(job).accepted, LARGE);
}
END_TEST

/* A chain as long as a graph may be, whose first link breaks: no recursion, and each is cancelled
 * once. */
START_TEST(the_longest_chain_breaks_at_once)
{
    static uint32_t counts[GRAPH_SUBTASKS_MOST];
    static uint32_t after[GRAPH_SUBTASKS_MOST];
    for (uint32_t i = 1; i < GRAPH_SUBTASKS_MOST; i++) {
        counts[i] = 1;
        after[i - 1] = i - 1;
    }
    const struct exchange_graph graph = {.after_count = counts,
                                         .after_count_count = GRAPH_SUBTASKS_MOST,
                                         .after = after,
                                         .after_length = GRAPH_SUBTASKS_MOST - 1};
    offer(PROVIDER, 4, 0);
    struct id128 job = submit_graph(GRAPH_SUBTASKS_MOST, &graph);
    leave(PROVIDER, job, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_PROGRAM_FAILED, "");
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(job).cancelled, GRAPH_SUBTASKS_MOST - 1);
    check_hash();
}
END_TEST

SUITE("exchange_graph", set_up_for_parts, tear_down, TEST(nothing_starts_before_what_it_waits_for),
      TEST(each_subtask_says_how_far_it_is), TEST(what_is_sent_again_is_given_again),
      TEST(the_higher_rank_goes_first_then_the_lower_index),
      TEST(without_ranks_the_longest_expected_goes_first_then_the_lower_index),
      TEST(ranks_go_before_what_is_expected),
      TEST(what_becomes_ready_goes_by_what_is_expected_of_it_too),
      TEST(what_waits_for_a_failure_is_cancelled_and_the_rest_goes_on),
      TEST(who_leaves_more_than_can_be_handed_on_has_failed),
      TEST(who_is_given_more_than_a_message_holds_has_failed),
      TEST(a_graph_that_is_none_is_refused_by_its_field), TEST(the_crash_limit_is_the_jobs),
      TEST(work_that_is_given_back_does_not_count),
      TEST(ten_thousand_run_in_order_and_few_start_in_a_step),
      TEST(the_longest_chain_breaks_at_once))
