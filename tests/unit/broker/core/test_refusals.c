#include "broker/core/refusals.h"

#include "base/checked.h"
#include "exchange/exchange.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static struct refusals *refusals;
static struct refusal_count taken[REFUSALS_TAKE_MAX];

static void begin(void)
{
    refusals = refusals_create();
    ck_assert_ptr_nonnull(refusals);
}

static void end(void)
{
    refusals_destroy(&refusals);
}

START_TEST(the_first_is_due_at_once_and_a_flood_is_one_count_a_minute)
{
    refusals_note(refusals, 7, REJECT_ROLE, MESSAGE_MINT);
    ck_assert_uint_eq(refusals_take(refusals, 100 * NS_PER_S, false, taken), 1);
    ck_assert_uint_eq(taken[0].account, 7);
    ck_assert_int_eq(taken[0].code, REJECT_ROLE);
    ck_assert_int_eq(taken[0].type, MESSAGE_MINT);
    ck_assert_uint_eq(taken[0].count, 1);

    for (int i = 0; i < 5000; i++) {
        refusals_note(refusals, 7, REJECT_ROLE, MESSAGE_HALT);
    }
    ck_assert_uint_eq(refusals_take(refusals, 159 * NS_PER_S, false, taken), 0);
    ck_assert_uint_eq(refusals_take(refusals, 160 * NS_PER_S, false, taken), 1);
    ck_assert_uint_eq(taken[0].count, 5000);
    ck_assert_int_eq(taken[0].type, MESSAGE_HALT);
}
END_TEST

START_TEST(accounts_and_codes_are_counted_apart)
{
    refusals_note(refusals, 7, REJECT_ROLE, MESSAGE_MINT);
    refusals_note(refusals, 8, REJECT_ROLE, MESSAGE_MINT);
    refusals_note(refusals, 7, REJECT_NOT_FOUND, MESSAGE_JOB_CANCEL);
    refusals_note(refusals, 7, REJECT_ROLE, MESSAGE_MINT);
    ck_assert_uint_eq(refusals_take(refusals, 0, false, taken), 3);
    ck_assert_uint_eq(taken[0].count, 2);
    ck_assert_uint_eq(taken[1].account, 8);
    ck_assert_int_eq(taken[2].code, REJECT_NOT_FOUND);
}
END_TEST

START_TEST(at_the_end_all_is_taken_whether_due_or_not)
{
    refusals_note(refusals, 7, REJECT_ROLE, MESSAGE_MINT);
    ck_assert_uint_eq(refusals_take(refusals, 0, false, taken), 1);
    refusals_note(refusals, 7, REJECT_ROLE, MESSAGE_MINT);
    ck_assert_uint_eq(refusals_take(refusals, 1, false, taken), 0);
    ck_assert_uint_eq(refusals_take(refusals, 1, true, taken), 1);
    ck_assert_uint_eq(refusals_take(refusals, 1, true, taken), 0);
}
END_TEST

START_TEST(what_is_about_the_broker_is_no_refused_act)
{
    refusals_note(refusals, 7, REJECT_BUSY, MESSAGE_MINT);
    refusals_note(refusals, 7, REJECT_SESSION, MESSAGE_MINT);
    refusals_note(refusals, 7, REJECT_STORAGE_FULL, MESSAGE_MINT);
    refusals_note(refusals, 7, REJECT_BLOB_OFFSET, MESSAGE_BLOB_PUT);
    ck_assert_uint_eq(refusals_take(refusals, 0, true, taken), 0);
}
END_TEST

START_TEST(beyond_its_cap_it_counts_by_code_alone_and_forgets_nothing)
{
    for (uint32_t account = 0; account < REFUSALS_MAX + 500; account++) {
        refusals_note(refusals, account, REJECT_RATE, MESSAGE_HEARTBEAT);
        refusals_note(refusals, account, REJECT_ROLE, MESSAGE_MINT);
    }
    size_t count = refusals_take(refusals, 0, false, taken);
    ck_assert_uint_eq(count, REFUSALS_MAX + 2);
    uint64_t sum = 0;
    size_t nobody = 0;
    for (size_t i = 0; i < count; i++) {
        sum += taken[i].count;
        nobody += taken[i].account == EXCHANGE_NO_ACCOUNT;
    }
    ck_assert_uint_eq(sum, 2 * (REFUSALS_MAX + 500));
    ck_assert_uint_eq(nobody, 2);

    /* A quiet minute later there is room again. */
    ck_assert_uint_eq(refusals_take(refusals, 60 * NS_PER_S, false, taken), 0);
    refusals_note(refusals, 5000, REJECT_RATE, MESSAGE_HEARTBEAT);
    ck_assert_uint_eq(refusals_take(refusals, 60 * NS_PER_S, false, taken), 1);
    ck_assert_uint_eq(taken[0].account, 5000);
}
END_TEST

SUITE("refusals", begin, end, TEST(the_first_is_due_at_once_and_a_flood_is_one_count_a_minute),
      TEST(accounts_and_codes_are_counted_apart), TEST(at_the_end_all_is_taken_whether_due_or_not),
      TEST(what_is_about_the_broker_is_no_refused_act),
      TEST(beyond_its_cap_it_counts_by_code_alone_and_forgets_nothing))
