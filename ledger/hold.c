#include "ledger/hold.h"

#include "base/checked.h"
#include "ledger/accounts_internal.h"

#include <assert.h>

int64_t hold_left(const struct hold *hold)
{
    assert(hold->captured_micro >= 0);
    assert(hold->captured_micro <= hold->amount_micro);
    return hold->is_open ? hold->amount_micro - hold->captured_micro : 0;
}

static enum accounts_status set_apart(struct accounts *accounts, uint32_t account,
                                      int64_t amount_micro)
{
    struct account_balance *balance = accounts_balance_of(accounts, account);
    if (amount_micro < 0) {
        return ACCOUNTS_BAD_AMOUNT;
    }
    if (balance->available_micro < amount_micro) {
        return ACCOUNTS_FUNDS;
    }
    int64_t held;
    if (!checked_add(balance->held_micro, amount_micro, &held)) {
        return ACCOUNTS_OVERFLOW;
    }
    balance->available_micro -= amount_micro;
    balance->held_micro = held;
    return ACCOUNTS_OK;
}

enum accounts_status hold_open(struct accounts *accounts, uint32_t account, int64_t amount_micro,
                               struct hold *ret_hold)
{
    enum accounts_status status = set_apart(accounts, account, amount_micro);
    if (status == ACCOUNTS_OK) {
        *ret_hold =
            (struct hold){.account = account, .amount_micro = amount_micro, .is_open = true};
    }
    return status;
}

enum accounts_status hold_raise(struct accounts *accounts, struct hold *hold, int64_t more_micro)
{
    assert(hold->is_open);
    int64_t amount;
    if (more_micro <= 0) {
        return ACCOUNTS_BAD_AMOUNT;
    }
    if (!checked_add(hold->amount_micro, more_micro, &amount)) {
        return ACCOUNTS_OVERFLOW;
    }
    enum accounts_status status = set_apart(accounts, hold->account, more_micro);
    if (status == ACCOUNTS_OK) {
        hold->amount_micro = amount;
    }
    return status;
}

enum accounts_status hold_capture(struct accounts *accounts, struct hold *hold, uint32_t credit,
                                  int64_t amount_micro)
{
    struct account_balance *payer = accounts_balance_of(accounts, hold->account);
    struct account_balance *payee = accounts_balance_of(accounts, credit);
    if (amount_micro <= 0) {
        return ACCOUNTS_BAD_AMOUNT;
    }
    if (hold_left(hold) < amount_micro) {
        return ACCOUNTS_FUNDS;
    }
    int64_t received;
    if (!checked_add(payee->available_micro, amount_micro, &received)) {
        return ACCOUNTS_OVERFLOW;
    }
    assert(payer->held_micro >= amount_micro); /* the held money includes the rest of the hold */
    payer->held_micro -= amount_micro;
    payee->available_micro = received;
    hold->captured_micro += amount_micro;
    return ACCOUNTS_OK;
}

int64_t hold_release(struct accounts *accounts, struct hold *hold)
{
    assert(hold->is_open);
    struct account_balance *balance = accounts_balance_of(accounts, hold->account);
    int64_t left = hold_left(hold);
    assert(balance->held_micro >= left);
    /* The sum cannot wrap: all credits together are at most ISSUED_MAX. */
    assert(balance->available_micro <= ISSUED_MAX - left);
    balance->held_micro -= left;
    balance->available_micro += left;
    hold->is_open = false;
    return left;
}
