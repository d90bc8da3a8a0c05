/* Results that say `ok` and whose outputs are not stored: the exchange goes by what the broker
 * found. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static struct exchange_result result_of(uint32_t provider, struct id128 job,
                                        const struct exchange_work *work, bool is_missing)
{
    return (struct exchange_result){.job = job,
                                    .index = work->index,
                                    .attempt = work->attempt,
                                    .lease = work->lease,
                                    .device = {{(uint8_t)provider}},
                                    .manifest = {{9}},
                                    .outcome = OUTCOME_OK,
                                    .busy_ns = NS_PER_S,
                                    .is_missing = is_missing};
}

static void send(uint32_t provider, const struct exchange_result *results, size_t count)
{
    struct exchange_command made = command(EXCHANGE_RESULTS, provider);
    made.results = (struct exchange_results){.results = results, .count = count};
    market.now_ns += NS_PER_S;
    made.log_time_ns = market.now_ns;
    apply(&made);
    check_hash();
}

static void check_told(int64_t subtask, int64_t count)
{
    const struct exchange_effect *effect = nth(EFFECT_REJECT, 0);
    ck_assert_ptr_nonnull(effect);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 0);
    ck_assert_uint_eq(effect->reject.code, REJECT_OUTPUT_NOT_STORED);
    ck_assert_str_eq(effect->reject.field, "outputs");
    ck_assert_int_eq(effect->reject.value, subtask);
    ck_assert_int_eq(effect->reject.limit, count);
}

START_TEST(what_is_not_stored_is_not_paid_and_goes_elsewhere)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    offer(OTHER_PROVIDER, 1, price);
    struct exchange_result lie = result_of(PROVIDER, job, &work, true);
    send(PROVIDER, &lie, 1);
    check_told(0, 1);
    const struct ledger_record *record = record_of(LEDGER_RESULT);
    ck_assert_uint_eq(record->outcome, OUTCOME_OK);
    ck_assert_uint_eq(record->status, ATTEMPT_FAILED_UNPAID);
    ck_assert_int_eq(record->charge_micro, 0);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    const struct exchange_effect *again = nth(EFFECT_DISPATCH, 0);
    ck_assert_ptr_nonnull(again);
    ck_assert_uint_eq(again->account, OTHER_PROVIDER);
    struct exchange_work next = again->work;

    /* The same result once more, as it is or mended, is of an attempt that was decided. */
    struct exchange_result mended = result_of(PROVIDER, job, &work, false);
    send(PROVIDER, &mended, 1);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_ptr_null(record_of(LEDGER_RESULT));
    send(PROVIDER, &lie, 1);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);

    struct exchange_result true_one = result_of(OTHER_PROVIDER, job, &next, false);
    send(OTHER_PROVIDER, &true_one, 1);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_gt(balance(OTHER_PROVIDER).available_micro, 0);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
}
END_TEST

START_TEST(what_came_with_it_counts)
{
    offer(PROVIDER, 3, price);
    struct id128 job = submit(3, 100);
    struct exchange_work works[3];
    struct exchange_result results[3];
    for (size_t i = 0; i < 3; i++) {
        works[i] = nth(EFFECT_DISPATCH, i)->work;
        results[i] = result_of(PROVIDER, job, &works[i], i > 0);
    }
    send(PROVIDER, results, 3);
    check_told(works[1].index, 2);
    struct exchange_job_row row = job_row(job);
    ck_assert_uint_eq(row.accepted, 1);
    ck_assert_uint_eq(row.failed, 0);
    ck_assert_uint_eq(row.waiting + row.running, 2);
    ck_assert_int_eq(balance(PROVIDER).available_micro, row.charged_micro);
    reload();
}
END_TEST

START_TEST(who_is_alone_may_try_again_later_and_fails_the_subtask_at_last)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    unsigned tries = 0;
    for (unsigned second = 0; second < 120 && job_row(job).state == JOB_OPEN; second++) {
        const struct exchange_effect *effect = nth(EFFECT_DISPATCH, 0);
        if (effect != NULL) {
            struct exchange_work work = effect->work;
            struct exchange_result lie = result_of(PROVIDER, job, &work, true);
            send(PROVIDER, &lie, 1);
            check_told(0, 1);
            ck_assert_ptr_null(nth(EFFECT_DISPATCH, 0)); /* not at once */
            tries++;
        } else {
            market.now_ns += NS_PER_S;
            tick();
        }
    }
    ck_assert_uint_eq(tries, 1 + EXCHANGE_CRASH_LIMIT);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    ck_assert_int_eq(job_row(job).charged_micro, 0);
}
END_TEST

/* A failure pays for its time whatever it says to have left (D8), and what is late is late. */
START_TEST(what_failed_has_nothing_to_leave)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_result failed = result_of(PROVIDER, job, &work, true);
    failed.outcome = OUTCOME_OUTPUT_MISSING;
    send(PROVIDER, &failed, 1);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_PAID);
    ck_assert_int_gt(balance(PROVIDER).available_micro, 0);
}
END_TEST

SUITE("paid", set_up, tear_down, TEST(what_is_not_stored_is_not_paid_and_goes_elsewhere),
      TEST(what_came_with_it_counts),
      TEST(who_is_alone_may_try_again_later_and_fails_the_subtask_at_last),
      TEST(what_failed_has_nothing_to_leave))
