/* A provider says that an input or the image is missing. The broker has looked before the command
 * was sequenced, and the command says whether the broker lacks something. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "exchange/policy.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { CRASHES = 2, BUSY_NS = NS_PER_S };

static struct id128 job;

/* `is_lost`: the broker lacks something that the subtask needs. */
static void answer(uint32_t provider, struct exchange_work work, uint8_t outcome, bool is_lost)
{
    struct exchange_result one = {.job = job,
                                  .index = work.index,
                                  .attempt = work.attempt,
                                  .lease = work.lease,
                                  .device = {{(uint8_t)provider}},
                                  .manifest = {{9}},
                                  .outcome = outcome,
                                  .busy_ns = BUSY_NS,
                                  .is_missing = is_lost};
    struct exchange_command made = command(EXCHANGE_RESULTS, provider);
    made.results = (struct exchange_results){.results = &one, .count = 1};
    apply(&made);
    check_hash();
    if (outcome != OUTCOME_OK) {
        ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_UNPAID);
    }
}

/* The cheaper provider alone has a slot free at first. */
static struct exchange_work begin(uint32_t subtasks)
{
    offer(PROVIDER, 1, price / 2);
    struct exchange_command made = submit_of(subtasks, 150);
    made.submit.crash_limit = CRASHES;
    apply(&made);
    job = made.id;
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, PROVIDER);
    return nth(EFFECT_DISPATCH, 0)->work;
}

static void pass(int64_t time_ns)
{
    market.now_ns += time_ns;
    tick();
}

static const uint8_t claims[] = {OUTCOME_INPUT_MISSING, OUTCOME_IMAGE_MISSING};

START_TEST(where_the_broker_has_all_the_next_try_goes_elsewhere)
{
    const struct exchange_work work = begin(1);
    offer(OTHER_PROVIDER, 1, price);
    answer(PROVIDER, work, claims[_i], false);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, OTHER_PROVIDER);
    const struct exchange_work again = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(again.index, work.index);
    reload();
    market.now_ns += BUSY_NS;
    answer(OTHER_PROVIDER, again, OUTCOME_OK, false);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    reload();
}
END_TEST

START_TEST(who_alone_says_so_again_and_again_is_why_the_job_ends)
{
    struct exchange_work work = begin(1);
    for (int i = 0; i < CRASHES; i++) {
        answer(PROVIDER, work, claims[_i], false);
        ck_assert_uint_eq(job_row(job).state, JOB_OPEN);
        ck_assert_uint_eq(job_row(job).reason, JOB_REASON_AVOIDED);
        pass(AVOID_NS - 1);
        ck_assert_ptr_null(nth(EFFECT_DISPATCH, 0));
        pass(1);
        ck_assert_ptr_nonnull(nth(EFFECT_DISPATCH, 0));
        work = nth(EFFECT_DISPATCH, 0)->work;
        reload();
    }
    answer(PROVIDER, work, claims[_i], false);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_PROVIDERS_FAILED);
}
END_TEST

START_TEST(what_the_broker_lacks_is_no_providers_fault)
{
    struct exchange_work work = begin(1);
    offer(OTHER_PROVIDER, 1, price);
    for (int i = 0; i < CRASHES; i++) {
        answer(PROVIDER, work, claims[_i], true);
        ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, PROVIDER); /* it is not avoided */
        work = nth(EFFECT_DISPATCH, 0)->work;
    }
    answer(PROVIDER, work, claims[_i], true);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_SUBTASKS_FAILED);
}
END_TEST

/* An honest agent whose own disk or network failed loses that try alone. What else it runs of the
 * job counts and is paid, and the job gives it work again as after any other failed try. */
START_TEST(one_try_that_fails_so_costs_its_provider_that_try_alone)
{
    offer(PROVIDER, 2, price / 2);
    job = submit(2, 150);
    const struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    const struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    ck_assert_uint_eq(first.lease, second.lease);
    answer(PROVIDER, first, OUTCOME_INPUT_MISSING, false);
    market.now_ns += BUSY_NS;
    answer(PROVIDER, second, OUTCOME_OK, false);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    ck_assert_int_gt(balance(PROVIDER).available_micro, 0);
    pass(AVOID_NS - BUSY_NS);
    const struct exchange_effect *again = nth(EFFECT_DISPATCH, 0);
    ck_assert_ptr_nonnull(again);
    ck_assert_uint_eq(again->account, PROVIDER);
    market.now_ns += BUSY_NS;
    answer(PROVIDER, again->work, OUTCOME_OK, false);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

SUITE("missing_inputs", set_up, tear_down,
      LOOP(where_the_broker_has_all_the_next_try_goes_elsewhere, 0, 2),
      LOOP(who_alone_says_so_again_and_again_is_why_the_job_ends, 0, 2),
      LOOP(what_the_broker_lacks_is_no_providers_fault, 0, 2),
      TEST(one_try_that_fails_so_costs_its_provider_that_try_alone))
