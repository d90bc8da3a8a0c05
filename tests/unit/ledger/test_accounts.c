#include "ledger/accounts.h"
#include "ledger/hold.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/support/suite.h"

static uint32_t account_with(struct accounts *accounts, int64_t credits_micro)
{
    uint32_t account;
    ck_assert_int_eq(accounts_open(accounts, &account), ACCOUNTS_OK);
    if (credits_micro > 0) {
        ck_assert_int_eq(accounts_transfer(accounts, ACCOUNT_MINT, account, credits_micro),
                         ACCOUNTS_OK);
    }
    return account;
}

static void assert_balance(struct accounts *accounts, uint32_t account, int64_t available,
                           int64_t held)
{
    struct account_balance balance = accounts_balance(accounts, account);
    ck_assert_int_eq(balance.available_micro, available);
    ck_assert_int_eq(balance.held_micro, held);
    ck_assert(accounts_balanced(accounts));
}

START_TEST(accounts_are_numbered_in_order_after_the_systems_three)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    ck_assert_uint_eq(accounts_count(accounts), 3);
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert_uint_eq(account_with(accounts, 0), ACCOUNT_FIRST_USER + i);
    }
    ck_assert(accounts_balanced(accounts));
}
END_TEST

START_TEST(minting_debits_the_mint)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, 1000);
    assert_balance(accounts, alice, 1000, 0);
    assert_balance(accounts, ACCOUNT_MINT, -1000, 0);
}
END_TEST

START_TEST(only_the_mint_may_overdraw)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, 1000);
    uint32_t bob = account_with(accounts, 0);
    ck_assert_int_eq(accounts_transfer(accounts, alice, bob, 1001), ACCOUNTS_FUNDS);
    ck_assert_int_eq(accounts_transfer(accounts, ACCOUNT_FEES, bob, 1), ACCOUNTS_FUNDS);
    ck_assert_int_eq(accounts_transfer(accounts, alice, alice, 1001), ACCOUNTS_FUNDS);
    assert_balance(accounts, alice, 1000, 0);
    assert_balance(accounts, bob, 0, 0);
}
END_TEST

START_TEST(amounts_are_above_zero)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, 1000);
    struct hold hold;
    ck_assert_int_eq(accounts_transfer(accounts, alice, ACCOUNT_FEES, 0), ACCOUNTS_BAD_AMOUNT);
    ck_assert_int_eq(accounts_transfer(accounts, alice, ACCOUNT_FEES, -5), ACCOUNTS_BAD_AMOUNT);
    ck_assert_int_eq(hold_open(accounts, alice, -1, &hold), ACCOUNTS_BAD_AMOUNT);
    ck_assert_int_eq(hold_open(accounts, alice, INT64_MIN, &hold), ACCOUNTS_BAD_AMOUNT);
    ck_assert_int_eq(hold_open(accounts, alice, 10, &hold), ACCOUNTS_OK);
    ck_assert_int_eq(hold_raise(accounts, &hold, 0), ACCOUNTS_BAD_AMOUNT);
    ck_assert_int_eq(hold_capture(accounts, &hold, ACCOUNT_FEES, 0), ACCOUNTS_BAD_AMOUNT);
    assert_balance(accounts, alice, 990, 10);
}
END_TEST

START_TEST(no_balance_can_wrap)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, INT64_MAX);
    uint32_t bob = account_with(accounts, 0);
    ck_assert_int_eq(accounts_transfer(accounts, ACCOUNT_MINT, alice, 1), ACCOUNTS_OVERFLOW);
    ck_assert_int_eq(accounts_transfer(accounts, ACCOUNT_MINT, bob, 1), ACCOUNTS_OVERFLOW);
    ck_assert_int_eq(accounts_transfer(accounts, ACCOUNT_MINT, ACCOUNT_MINT, 1), ACCOUNTS_OVERFLOW);
    struct hold hold;
    ck_assert_int_eq(hold_open(accounts, alice, INT64_MAX, &hold), ACCOUNTS_OK);
    ck_assert_int_eq(accounts_transfer(accounts, ACCOUNT_MINT, alice, 1), ACCOUNTS_OVERFLOW);
    assert_balance(accounts, alice, 0, INT64_MAX);
    ck_assert_int_eq(hold_release(accounts, &hold), INT64_MAX);
    assert_balance(accounts, alice, INT64_MAX, 0);
}
END_TEST

START_TEST(a_hold_is_captured_in_parts_and_the_rest_released)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, 1000);
    uint32_t bob = account_with(accounts, 0);
    struct hold hold;
    ck_assert_int_eq(hold_open(accounts, alice, 600, &hold), ACCOUNTS_OK);
    ck_assert_int_eq(hold_capture(accounts, &hold, bob, 100), ACCOUNTS_OK);
    ck_assert_int_eq(hold_capture(accounts, &hold, bob, 250), ACCOUNTS_OK);
    ck_assert_int_eq(hold_left(&hold), 250);
    ck_assert_int_eq(hold_capture(accounts, &hold, bob, 251), ACCOUNTS_FUNDS);
    assert_balance(accounts, alice, 400, 250);
    assert_balance(accounts, bob, 350, 0);
    ck_assert_int_eq(hold_release(accounts, &hold), 250);
    assert_balance(accounts, alice, 650, 0);
}
END_TEST

START_TEST(an_ended_hold_pays_nothing)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, 1000);
    struct hold hold;
    ck_assert_int_eq(hold_open(accounts, alice, 600, &hold), ACCOUNTS_OK);
    ck_assert_int_eq(hold_release(accounts, &hold), 600);
    ck_assert_int_eq(hold_left(&hold), 0);
    ck_assert_int_eq(hold_capture(accounts, &hold, ACCOUNT_FEES, 1), ACCOUNTS_FUNDS);
    assert_balance(accounts, alice, 1000, 0);
}
END_TEST

START_TEST(a_hold_that_cannot_be_funded_leaves_no_trace)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, 1000);
    struct hold hold = {.account = 77};
    ck_assert_int_eq(hold_open(accounts, alice, 1001, &hold), ACCOUNTS_FUNDS);
    ck_assert_int_eq(hold_open(accounts, ACCOUNT_MINT, 1, &hold), ACCOUNTS_FUNDS);
    ck_assert_uint_eq(hold.account, 77);
    assert_balance(accounts, alice, 1000, 0);
}
END_TEST

START_TEST(a_restored_balance_that_does_not_sum_is_noticed)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, 1000);
    accounts_restore(accounts, alice, (struct account_balance){.available_micro = 1001});
    ck_assert(!accounts_balanced(accounts));
    accounts_restore(accounts, alice,
                     (struct account_balance){.available_micro = 900, .held_micro = 100});
    ck_assert(accounts_balanced(accounts));
    accounts_restore(accounts, alice,
                     (struct account_balance){.available_micro = 1100, .held_micro = -100});
    ck_assert(!accounts_balanced(accounts));
    accounts_restore(accounts, alice,
                     (struct account_balance){.available_micro = -100, .held_micro = 1100});
    ck_assert(!accounts_balanced(accounts));
}
END_TEST

/* A consumer who takes only gifts holds nothing. */
START_TEST(a_hold_may_be_of_nothing)
{
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    uint32_t alice = account_with(accounts, 0);
    struct hold hold;
    ck_assert_int_eq(hold_open(accounts, alice, 0, &hold), ACCOUNTS_OK);
    ck_assert_int_eq(hold_left(&hold), 0);
    ck_assert_int_eq(hold_capture(accounts, &hold, ACCOUNT_FEES, 1), ACCOUNTS_FUNDS);
    ck_assert_int_eq(hold_release(accounts, &hold), 0);
    assert_balance(accounts, alice, 0, 0);
}
END_TEST

SUITE("accounts", NULL, NULL, TEST(accounts_are_numbered_in_order_after_the_systems_three),
      TEST(minting_debits_the_mint), TEST(only_the_mint_may_overdraw), TEST(amounts_are_above_zero),
      TEST(a_hold_may_be_of_nothing), TEST(no_balance_can_wrap),
      TEST(a_hold_is_captured_in_parts_and_the_rest_released), TEST(an_ended_hold_pays_nothing),
      TEST(a_hold_that_cannot_be_funded_leaves_no_trace),
      TEST(a_restored_balance_that_does_not_sum_is_noticed))
