/* Random transfers, holds, captures and releases against a model that keeps every balance as a
 * 128-bit number and sums everything after each step. */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "ledger/accounts.h"
#include "ledger/hold.h"
#include "tests/support/suite.h"

enum { SEEDS = 40, STEPS = 2000, USERS = 12, HOLDS = 24 };

struct model_hold {
    bool is_open;
    uint32_t account;
    int64_t left;
};

struct model {
    int128 available[ACCOUNT_FIRST_USER + USERS];
    int128 held[ACCOUNT_FIRST_USER + USERS];
    struct model_hold holds[HOLDS];
};

/* Mostly small, sometimes at the edges of int64. */
static int64_t random_amount(struct random *dice)
{
    switch (random_below(dice, 12)) {
    case 0:
        return 0;
    case 1:
        return -(int64_t)random_below(dice, 1000);
    case 2:
        return INT64_MAX - (int64_t)random_below(dice, 3);
    case 3:
        return INT64_MAX / (int64_t)(1 + random_below(dice, 5));
    default:
        return (int64_t)random_below(dice, 1000);
    }
}

static enum accounts_status model_transfer(struct model *model, uint32_t debit, uint32_t credit,
                                           int64_t amount)
{
    if (amount <= 0) {
        return ACCOUNTS_BAD_AMOUNT;
    }
    if (debit != ACCOUNT_MINT && model->available[debit] < amount) {
        return ACCOUNTS_FUNDS;
    }
    if (model->available[debit] - amount < -(int128)INT64_MAX) {
        return ACCOUNTS_OVERFLOW;
    }
    model->available[debit] -= amount;
    model->available[credit] += amount;
    return ACCOUNTS_OK;
}

static enum accounts_status model_open(struct model *model, struct model_hold *hold,
                                       uint32_t account, int64_t amount)
{
    if (amount < 0) {
        return ACCOUNTS_BAD_AMOUNT;
    }
    if (model->available[account] < amount) {
        return ACCOUNTS_FUNDS;
    }
    model->available[account] -= amount;
    model->held[account] += amount;
    *hold = (struct model_hold){.is_open = true, .account = account, .left = amount};
    return ACCOUNTS_OK;
}

static enum accounts_status model_capture(struct model *model, struct model_hold *hold,
                                          uint32_t credit, int64_t amount)
{
    if (amount <= 0) {
        return ACCOUNTS_BAD_AMOUNT;
    }
    if (!hold->is_open || hold->left < amount) {
        return ACCOUNTS_FUNDS;
    }
    hold->left -= amount;
    model->held[hold->account] -= amount;
    model->available[credit] += amount;
    return ACCOUNTS_OK;
}

static void compare(const struct accounts *accounts, const struct model *model)
{
    int128 sum = 0;
    int128 held_by_holds[ACCOUNT_FIRST_USER + USERS] = {0};
    for (size_t i = 0; i < HOLDS; i++) {
        if (model->holds[i].is_open) {
            held_by_holds[model->holds[i].account] += model->holds[i].left;
        }
    }
    for (uint32_t i = 0; i < ACCOUNT_FIRST_USER + USERS; i++) {
        struct account_balance balance = accounts_balance(accounts, i);
        ck_assert(balance.available_micro == model->available[i]);
        ck_assert(balance.held_micro == model->held[i]);
        ck_assert(balance.held_micro == held_by_holds[i]);
        ck_assert(i == ACCOUNT_MINT || balance.available_micro >= 0);
        sum += balance.available_micro;
        sum += balance.held_micro;
    }
    ck_assert(sum == 0);
    ck_assert(accounts_balanced(accounts));
}

static void step(struct random *dice, struct accounts *accounts, struct hold holds[HOLDS],
                 struct model *model)
{
    uint32_t from = (uint32_t)random_below(dice, ACCOUNT_FIRST_USER + USERS);
    uint32_t to = (uint32_t)random_below(dice, ACCOUNT_FIRST_USER + USERS);
    size_t which = (size_t)random_below(dice, HOLDS);
    int64_t amount = random_amount(dice);
    struct model_hold *expected = &model->holds[which];
    switch (random_below(dice, 5)) {
    case 0:
        ck_assert_int_eq(accounts_transfer(accounts, ACCOUNT_MINT, to, amount),
                         model_transfer(model, ACCOUNT_MINT, to, amount));
        break;
    case 1:
        ck_assert_int_eq(accounts_transfer(accounts, from, to, amount),
                         model_transfer(model, from, to, amount));
        break;
    case 2:
        if (!expected->is_open) {
            ck_assert_int_eq(hold_open(accounts, from, amount, &holds[which]),
                             model_open(model, expected, from, amount));
        }
        break;
    case 3:
        ck_assert_int_eq(hold_capture(accounts, &holds[which], to, amount),
                         model_capture(model, expected, to, amount));
        break;
    default:
        if (expected->is_open) {
            ck_assert_int_eq(hold_release(accounts, &holds[which]), expected->left);
            model->available[expected->account] += expected->left;
            model->held[expected->account] -= expected->left;
            *expected = (struct model_hold){.is_open = false};
        }
        break;
    }
}

START_TEST(accounts_agree_with_the_model)
{
    uint64_t seed = UINT64_C(0xacc0) + (uint64_t)_i;
    struct random dice = random_seeded(seed);
    printf("seed %llu\n", (unsigned long long)seed);
    CLEANUP(accounts_destroy) struct accounts *accounts = accounts_create();
    struct hold holds[HOLDS] = {0};
    struct model model = {0};
    for (int i = 0; i < USERS; i++) {
        uint32_t account;
        ck_assert_int_eq(accounts_open(accounts, &account), ACCOUNTS_OK);
    }
    for (int i = 0; i < STEPS; i++) {
        step(&dice, accounts, holds, &model);
        compare(accounts, &model);
    }
}
END_TEST

SUITE("accounts", NULL, NULL, LOOP(accounts_agree_with_the_model, 0, SEEDS))
