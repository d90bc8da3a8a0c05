/* Work that runs too long at the end of a job is started once more. Work that only waits in a slow
 * lane is moved, which test_stragglers_moved.c shows. */
#include "base/checked.h"
#include "exchange/state/records.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/straggler_market.h"
#include "tests/support/suite.h"

#include <check.h>

START_TEST(what_failed_at_once_says_nothing_of_how_long_others_take)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(600, 400);
    listen();
    ck_assert_uint_eq(held_count[0], 2);
    market.now_ns += NS_PER_S;
    answer(PROVIDER, job, 0, OUTCOME_PROGRAM_FAILED, 1);
    ck_assert_uint_eq(held_count[0], 2); /* not 20 ms full of such */
}
END_TEST

START_TEST(what_runs_too_long_is_started_once_more_and_the_first_result_wins)
{
    struct id128 job = all_but_what_the_other_holds();
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), market.now_ns);
    reload();
    tick_and_listen(); /* the other has run longer than two of the first's */
    ck_assert_uint_eq(held_count[0], 1);
    ck_assert_uint_eq(held[0][0].index, held[1][0].index);
    ck_assert_uint_eq(held[0][0].attempt, held[1][0].attempt + 1);
    ck_assert_uint_eq(job_row(job).running, 2);
    check_hash();
    market.now_ns += NS_PER_S;
    tick_and_listen();
    ck_assert_uint_eq(held_count[0], 1); /* once */

    answer(OTHER_PROVIDER, job, 1, OUTCOME_CANCELLED, 0);
    market.now_ns += NS_PER_S;
    answer(PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(nth(EFFECT_WITHDRAW, 0)->account, OTHER_PROVIDER);
    market.now_ns += NS_PER_S;
    answer(OTHER_PROVIDER, job, 0, OUTCOME_CANCELLED, NS_PER_S); /* paid for the time it took */
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_PAID);
    ck_assert_int_gt(record_of(LEDGER_RESULT)->charge_micro, 0);
    answer(PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

/* Two subtasks that are said to take a second each, one for each provider; the first has done its
 * own in `took_ns`. */
static struct id128 one_for_each(int64_t expect_ns, int64_t took_ns)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct exchange_command made = submit_of(2, 400);
    made.submit.expect_ns = expect_ns;
    apply(&made);
    listen();
    ck_assert_uint_eq(held_count[0], 1);
    ck_assert_uint_eq(held_count[1], 1);
    market.now_ns += took_ns;
    answer(PROVIDER, made.id, 0, OUTCOME_OK, took_ns);
    return made.id;
}

/* Two samples are too few for what they took on average. */
START_TEST(the_last_of_few_is_started_once_more_when_it_is_late)
{
    struct id128 job = one_for_each(NS_PER_S, NS_PER_S);
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), market.now_ns + NS_PER_S / 5);
    reload();
    market.now_ns += NS_PER_S / 5 - 1;
    tick_and_listen();
    ck_assert_uint_eq(held_count[0], 0);
    market.now_ns += 1;
    tick_and_listen();
    ck_assert_uint_eq(held_count[0], 1);
    ck_assert_uint_eq(held[0][0].index, held[1][0].index);
    ck_assert_uint_eq(held[0][0].attempt, 2);
    check_hash();
    market.now_ns += NS_PER_S;
    answer(PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_uint_eq(nth(EFFECT_WITHDRAW, 0)->account, OTHER_PROVIDER);
}
END_TEST

/* The slow one is first after all: then the copy is told to stop; with the job over nothing more is
 * paid. */
START_TEST(the_copy_is_withdrawn_when_the_late_one_ends_first)
{
    struct id128 job = one_for_each(NS_PER_S, NS_PER_S);
    market.now_ns += NS_PER_S / 5;
    tick_and_listen();
    market.now_ns += NS_PER_S / 10;
    answer(OTHER_PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_uint_eq(nth(EFFECT_WITHDRAW, 0)->account, PROVIDER);
    answer(PROVIDER, job, 0, OUTCOME_CANCELLED, NS_PER_S / 10);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_LATE);
    ck_assert_int_eq(record_of(LEDGER_RESULT)->charge_micro, 0);
}
END_TEST

START_TEST(nothing_is_late_where_nobody_knows_what_it_takes)
{
    (void)one_for_each(0, NS_PER_S);
    market.now_ns += 8 * NS_PER_S;
    tick_and_listen();
    ck_assert_uint_eq(held_count[0], 0);
}
END_TEST

/* The lane that is idle took a fifth of what was said: it was a guess. */
START_TEST(an_expectation_that_was_not_borne_out_makes_nothing_late)
{
    (void)one_for_each(5 * NS_PER_S, NS_PER_S);
    market.now_ns += 8 * NS_PER_S;
    tick_and_listen();
    ck_assert_uint_eq(held_count[0], 0);
}
END_TEST

/* It took three seconds for its first: its second is not late after one and a fifth. */
START_TEST(what_is_known_to_take_longer_there_is_late_later)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct exchange_command made = submit_of(4, 400);
    made.submit.expect_ns = NS_PER_S;
    apply(&made);
    listen();
    market.now_ns += 3 * NS_PER_S;
    answer(OTHER_PROVIDER, made.id, 0, OUTCOME_OK, 3 * NS_PER_S);
    const int64_t begun_ns = market.now_ns; /* the other's second */
    while (held_count[0] > 0) {
        market.now_ns += NS_PER_S / 2;
        answer(PROVIDER, made.id, 0, OUTCOME_OK, NS_PER_S / 2);
    }
    ck_assert_uint_eq(held_count[1], 1);
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), begun_ns + 18 * NS_PER_S / 5);
}
END_TEST

/* Two are at it: that one of them is not heard of sets nothing back to the queue. */
START_TEST(a_suspect_copy_is_not_queued_while_the_other_runs)
{
    struct id128 job = all_but_what_the_other_holds();
    tick_and_listen();
    answer(OTHER_PROVIDER, job, 1, OUTCOME_CANCELLED, 0);
    market.now_ns += NS_PER_S;
    answer(PROVIDER, job, 1, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(held_count[0], 1);
    ck_assert_uint_eq(job_row(job).running, 1);
    presence(EXCHANGE_SUSPECT, OTHER_PROVIDER);
    ck_assert_uint_eq(job_row(job).waiting, 0);
    ck_assert_uint_eq(job_row(job).running, 1);
    check_hash();
    reload();
    presence(EXCHANGE_SUSPECT, PROVIDER);
    ck_assert_uint_eq(job_row(job).waiting, 1); /* now nobody is */
    presence(EXCHANGE_RETURNED, OTHER_PROVIDER);
    market.now_ns += NS_PER_S;
    answer(OTHER_PROVIDER, job, 0, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

/* Subtasks with expectations of their own, no one waits for another; the first goes first, to
 * PROVIDER. */
static struct id128 unlike(const uint32_t *expect_ms, uint32_t count)
{
    static const uint32_t ranks[WORKS_MAX] = {1};
    const struct exchange_graph graph = {
        .rank = ranks, .rank_count = count, .expect_ms = expect_ms, .expect_count = count};
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct exchange_command made = submit_of(count, 400);
    made.submit.expect_ns = NS_PER_S;
    made.submit.graph = &graph;
    apply(&made);
    listen();
    ck_assert_uint_ge(held_count[0], 1);
    ck_assert_uint_eq(held[0][0].index, 0);
    return made.id;
}

/* The first provider runs the first and nothing else; the other does all the rest, each in
 * `took_ns`. */
static void finish_all_but_the_first(struct id128 job, uint32_t count, int64_t took_ns)
{
    while (job_row(job).accepted < count - 1) {
        while (held_count[0] > 1) {
            answer(PROVIDER, job, 1, OUTCOME_CANCELLED, 0); /* taken back: the other is idle */
        }
        ck_assert_uint_gt(held_count[1], 0);
        market.now_ns += took_ns;
        answer(OTHER_PROVIDER, job, 0, OUTCOME_OK, took_ns);
    }
    ck_assert_uint_eq(held_count[0], 1);
}

/* Nothing is started once more before `due_ns`; then the first is, once. */
static void expect_second_start_at(struct id128 job, int64_t due_ns)
{
    ck_assert_int_lt(market.now_ns, due_ns);
    ck_assert_uint_eq(held_count[1], 0);
    market.now_ns = due_ns - 1;
    tick_and_listen();
    ck_assert_uint_eq(held_count[1], 0);
    ck_assert_uint_eq(job_row(job).running, 1);
    reload();
    market.now_ns = due_ns;
    tick_and_listen();
    ck_assert_uint_eq(held_count[1], 1);
    ck_assert_uint_eq(held[1][0].index, 0);
    ck_assert_uint_eq(held[1][0].attempt, 2);
    check_hash();
    market.now_ns += NS_PER_S;
    tick_and_listen();
    ck_assert_uint_eq(held_count[1], 1);
}

START_TEST(a_long_one_among_short_ones_is_late_by_what_was_said_of_it)
{
    static const uint32_t expect_ms[] = {3000, 200, 200, 200, 200, 200};
    const int64_t begun_ns = market.now_ns;
    struct id128 job = unlike(expect_ms, 6);
    finish_all_but_the_first(job, 6, NS_PER_S / 5);
    expect_second_start_at(job, begun_ns + 6 * NS_PER_S); /* twice */
}
END_TEST

START_TEST(a_long_one_with_few_others_is_late_a_fifth_after_what_was_said_of_it)
{
    static const uint32_t expect_ms[] = {3000, 200, 400};
    const int64_t begun_ns = market.now_ns;
    struct id128 job = unlike(expect_ms, 3);
    finish_all_but_the_first(job, 3, NS_PER_S / 5);
    expect_second_start_at(job, begun_ns + 18 * NS_PER_S / 5);
}
END_TEST

/* All take half as long again as was said: so may the long one. */
START_TEST(how_fast_others_are_done_tells_how_long_the_long_one_may_take)
{
    static const uint32_t expect_ms[] = {2000, 200, 200, 200, 200, 200};
    const int64_t begun_ns = market.now_ns;
    struct id128 job = unlike(expect_ms, 6);
    finish_all_but_the_first(job, 6, 3 * NS_PER_S / 10);
    expect_second_start_at(job, begun_ns + 6 * NS_PER_S); /* twice 2 s and a half */
}
END_TEST

/* Short ones that end first are held against what was said of them, not against the mean of all. */
START_TEST(what_was_foreseen_of_unlike_ones_is_what_was_said_of_those_done)
{
    static const uint32_t expect_ms[] = {3000, 200, 200, 200, 200, 200};
    struct id128 job = unlike(expect_ms, 6);
    finish_all_but_the_first(job, 6, NS_PER_S / 10);
    const struct exchange_job_row row = job_row(job);
    ck_assert_uint_eq(row.timed, 5);
    ck_assert_int_eq(row.foreseen_ns, NS_PER_S);
    ck_assert_int_eq(row.took_ns, NS_PER_S / 2);
    /* One is open, of 3 s, and has run for half a second: a second of short ones at twice the pace
     * says nothing of it. */
    ck_assert_int_eq(left_of(job), 5 * NS_PER_S / 2);
    market.now_ns += 2 * NS_PER_S; /* nothing is heard, and it counts down */
    ck_assert_int_eq(left_of(job), NS_PER_S / 2);
    market.now_ns += NS_PER_S; /* overdue */
    ck_assert_int_eq(left_of(job), NS_PER_S / 2);
    reload();
    ck_assert_int_eq(left_of(job), NS_PER_S / 2);
}
END_TEST

/* The rest goes at the pace of what was done: as much as four mean ones in half of the time. */
START_TEST(what_is_left_of_unlike_ones_goes_at_the_pace_of_those_done)
{
    static const uint32_t expect_ms[] = {3000, 600, 600, 600, 600, 600};
    struct id128 job = unlike(expect_ms, 6);
    ck_assert_int_eq(left_of(job), 3 * NS_PER_S); /* the longest, and the others beside it */
    finish_all_but_the_first(job, 6, 3 * NS_PER_S / 10);
    /* 1.5 s of 3 s, as measured, which it has run. */
    ck_assert_int_eq(left_of(job), 0);
}
END_TEST

/* A chain ends no sooner than its links one after the other, however many lanes there are. */
START_TEST(what_is_left_of_a_chain_is_the_way_to_its_end)
{
    static const uint32_t expect_ms[] = {100, 200, 4000, 100};
    static const uint32_t ranks[] = {4300, 4200, 4000, 100};
    static const uint32_t after_count[] = {0, 1, 1, 0};
    static const uint32_t after[] = {0, 1};
    const struct exchange_graph graph = {.rank = ranks,
                                         .rank_count = 4,
                                         .expect_ms = expect_ms,
                                         .expect_count = 4,
                                         .after_count = after_count,
                                         .after_count_count = 4,
                                         .after = after,
                                         .after_length = 2};
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct exchange_command made = submit_of(4, 400);
    made.submit.expect_ns = 11 * NS_PER_S / 10;
    made.submit.graph = &graph;
    apply(&made);
    listen();
    ck_assert_int_eq(left_of(made.id), 43 * NS_PER_S / 10);
    market.now_ns += 50 * NS_PER_MS;
    ck_assert_int_eq(left_of(made.id), 425 * NS_PER_S / 100);
    reload();
    ck_assert_int_eq(left_of(made.id), 425 * NS_PER_S / 100);
}
END_TEST

/* The first subtask runs on in one of two lanes of PROVIDER's, all others are done there and by the
 * other provider, where it offers anything, in a fifth of a second each. */
static struct id128 all_but_the_first(const uint32_t *expect_ms, uint32_t count, bool has_other)
{
    static const uint32_t ranks[WORKS_MAX] = {1};
    const struct exchange_graph graph = {.rank = ranks,
                                         .rank_count = count,
                                         .expect_ms = expect_ms,
                                         .expect_count = expect_ms == NULL ? 0 : count};
    offer(PROVIDER, 2, price);
    if (has_other) {
        offer(OTHER_PROVIDER, 1, price);
    }
    struct exchange_command made = submit_of(count, 400);
    made.submit.expect_ns = NS_PER_S;
    made.submit.graph = &graph;
    apply(&made);
    listen();
    const uint32_t long_lane = held[0][0].lane;
    ck_assert_uint_eq(held[0][0].index, 0);
    while (job_row(made.id).accepted < count - 1) {
        size_t at = 1;
        while (at < held_count[0] && held[0][at].lane == long_lane) {
            at++;
        }
        market.now_ns += NS_PER_S / 5;
        if (held_count[1] > 0) {
            answer(OTHER_PROVIDER, made.id, 0, OUTCOME_OK, NS_PER_S / 5);
        }
        if (at < held_count[0]) {
            answer(PROVIDER, made.id, at, OUTCOME_OK, NS_PER_S / 5);
        } else if (held_count[0] > 1) { /* taken back: the other lane is idle */
            answer(PROVIDER, made.id, 1, OUTCOME_CANCELLED, 0);
        }
    }
    ck_assert_uint_eq(held_count[0], 1);
    ck_assert_uint_eq(held_count[1], 0);
    return made.id;
}

/* The market does nothing before its next deadline. */
static void wait_for_second_start(void)
{
    while (held_count[0] + held_count[1] == 1) {
        const int64_t next_ns = exchange_next_deadline_ns(market.exchange);
        ck_assert_int_ne(next_ns, INT64_MAX);
        reload();
        ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), next_ns);
        market.now_ns = next_ns;
        tick_and_listen();
    }
}

/* Nobody else has an idle lane: its process may be stuck. */
START_TEST(what_is_late_by_its_own_is_started_once_more_on_its_own_device)
{
    static const uint32_t expect_ms[] = {3000, 200, 200, 200, 200};
    const int64_t begun_ns = market.now_ns;
    struct id128 job = all_but_the_first(expect_ms, 5, false);
    wait_for_second_start();
    ck_assert_int_ge(market.now_ns, begun_ns + 6 * NS_PER_S); /* twice, at the pace of the others */
    ck_assert_int_lt(market.now_ns, begun_ns + 8 * NS_PER_S);
    ck_assert_uint_eq(held_count[0], 2);
    ck_assert_uint_eq(held[0][1].index, 0);
    ck_assert_uint_eq(held[0][1].attempt, 2);
    ck_assert_uint_ne(held[0][1].lane, held[0][0].lane);
    check_hash();
    market.now_ns += 9 * NS_PER_S;
    tick_and_listen();
    ck_assert_uint_eq(held_count[0], 2); /* once */
    answer(PROVIDER, job, 1, OUTCOME_OK, 3 * NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_uint_eq(nth(EFFECT_WITHDRAW, 0)->work.attempt, 1);
}
END_TEST

/* They need not be alike: a long one is not stuck, and would only be made slower. */
START_TEST(what_is_late_by_others_alone_is_not_started_once_more_on_its_own_device)
{
    (void)all_but_the_first(NULL, 6, false);
    market.now_ns += 8 * NS_PER_S;
    tick_and_listen();
    ck_assert_uint_eq(held_count[0], 1);
}
END_TEST

START_TEST(what_is_late_by_few_is_not_started_once_more_on_its_own_device)
{
    static const uint32_t expect_ms[] = {3000, 200, 200, 200};
    (void)all_but_the_first(expect_ms, 4, false);
    market.now_ns += 8 * NS_PER_S;
    tick_and_listen();
    ck_assert_uint_eq(held_count[0], 1);
}
END_TEST

/* The device perhaps holds up the work, so each of both may take it. */
START_TEST(what_is_late_goes_to_another_device_where_one_is_idle)
{
    static const uint32_t expect_ms[] = {3000, 200, 200, 200, 200, 200, 200};
    struct id128 job = all_but_the_first(expect_ms, 7, true);
    wait_for_second_start();
    ck_assert_uint_eq(job_row(job).running, 1);
    ck_assert_uint_eq(held_count[0], 1);
    ck_assert_uint_eq(held_count[1], 1);
    ck_assert_uint_eq(held[1][0].index, 0);
    check_hash();
}
END_TEST

START_TEST(one_of_which_nothing_is_known_is_not_started_once_more)
{
    static const uint32_t expect_ms[] = {0, 200, 200, 200, 200, 200};
    struct id128 job = unlike(expect_ms, 6);
    finish_all_but_the_first(job, 6, NS_PER_S / 5);
    market.now_ns += 8 * NS_PER_S;
    tick_and_listen();
    ck_assert_uint_eq(held_count[1], 0);
}
END_TEST

SUITE("stragglers", begin, tear_down,
      TEST(what_failed_at_once_says_nothing_of_how_long_others_take),
      TEST(what_runs_too_long_is_started_once_more_and_the_first_result_wins),
      TEST(the_last_of_few_is_started_once_more_when_it_is_late),
      TEST(the_copy_is_withdrawn_when_the_late_one_ends_first),
      TEST(nothing_is_late_where_nobody_knows_what_it_takes),
      TEST(an_expectation_that_was_not_borne_out_makes_nothing_late),
      TEST(what_is_known_to_take_longer_there_is_late_later),
      TEST(a_suspect_copy_is_not_queued_while_the_other_runs),
      TEST(a_long_one_among_short_ones_is_late_by_what_was_said_of_it),
      TEST(a_long_one_with_few_others_is_late_a_fifth_after_what_was_said_of_it),
      TEST(how_fast_others_are_done_tells_how_long_the_long_one_may_take),
      TEST(what_was_foreseen_of_unlike_ones_is_what_was_said_of_those_done),
      TEST(what_is_left_of_unlike_ones_goes_at_the_pace_of_those_done),
      TEST(what_is_left_of_a_chain_is_the_way_to_its_end),
      TEST(what_is_late_by_its_own_is_started_once_more_on_its_own_device),
      TEST(what_is_late_by_others_alone_is_not_started_once_more_on_its_own_device),
      TEST(what_is_late_by_few_is_not_started_once_more_on_its_own_device),
      TEST(what_is_late_goes_to_another_device_where_one_is_idle),
      TEST(one_of_which_nothing_is_known_is_not_started_once_more))
