#include "ledger/accounts.h"

#include <assert.h>
#include <stdlib.h>

#include "base/checked.h"

enum { FIRST_CAPACITY = 16 };

/* The mint never goes below -ISSUED_MAX, and the sum of all accounts is zero. All other accounts
 * together therefore fit int64: no transfer can make a balance wrap. */
#define ISSUED_MAX INT64_MAX

struct accounts {
    uint32_t count;
    uint32_t capacity;
    struct account_balance *balances; /* by account number */
};

struct accounts *accounts_create(void)
{
    struct accounts *accounts = calloc(1, sizeof *accounts);
    if (accounts == NULL) {
        return NULL;
    }
    accounts->balances = calloc(FIRST_CAPACITY, sizeof *accounts->balances);
    if (accounts->balances == NULL) {
        accounts_destroy(&accounts);
        return NULL;
    }
    accounts->capacity = FIRST_CAPACITY;
    accounts->count = ACCOUNT_FIRST_USER;
    return accounts;
}

void accounts_destroy(struct accounts **self)
{
    struct accounts *accounts = *self;
    if (accounts != NULL) {
        free(accounts->balances);
        free(accounts);
        *self = NULL;
    }
}

uint32_t accounts_count(const struct accounts *accounts)
{
    return accounts->count;
}

static struct account_balance *balance_of(const struct accounts *accounts, uint32_t account)
{
    assert(account < accounts->count);
    return &accounts->balances[account];
}

struct account_balance accounts_balance(const struct accounts *accounts, uint32_t account)
{
    return *balance_of(accounts, account);
}

void accounts_restore(struct accounts *accounts, uint32_t account, struct account_balance balance)
{
    *balance_of(accounts, account) = balance;
}

bool accounts_balanced(const struct accounts *accounts)
{
    if (accounts->balances[ACCOUNT_MINT].available_micro < -ISSUED_MAX) {
        return false;
    }
    int128 sum = 0;
    for (uint32_t i = 0; i < accounts->count; i++) {
        const struct account_balance *balance = &accounts->balances[i];
        if (balance->held_micro < 0 || (balance->available_micro < 0 && i != ACCOUNT_MINT)) {
            return false;
        }
        sum += (int128)balance->available_micro + balance->held_micro;
    }
    return sum == 0;
}

static enum accounts_status grow(struct accounts *accounts)
{
    if (accounts->count < accounts->capacity) {
        return ACCOUNTS_OK;
    }
    if (accounts->capacity >= ACCOUNTS_MAX) {
        return ACCOUNTS_FULL;
    }
    uint32_t capacity = accounts->capacity * 2;
    struct account_balance *balances = realloc(accounts->balances, capacity * sizeof *balances);
    if (balances == NULL) {
        return ACCOUNTS_OUT_OF_MEMORY;
    }
    accounts->balances = balances;
    accounts->capacity = capacity;
    return ACCOUNTS_OK;
}

enum accounts_status accounts_open(struct accounts *accounts, uint32_t *ret_account)
{
    enum accounts_status status = grow(accounts);
    if (status != ACCOUNTS_OK) {
        return status;
    }
    accounts->balances[accounts->count] = (struct account_balance){0};
    *ret_account = accounts->count++;
    return ACCOUNTS_OK;
}

enum accounts_status accounts_transfer(struct accounts *accounts, uint32_t debit, uint32_t credit,
                                       int64_t amount_micro)
{
    struct account_balance *payer = balance_of(accounts, debit);
    struct account_balance *payee = balance_of(accounts, credit);
    if (amount_micro <= 0) {
        return ACCOUNTS_BAD_AMOUNT;
    }
    if (debit != ACCOUNT_MINT && payer->available_micro < amount_micro) {
        return ACCOUNTS_FUNDS;
    }
    int64_t paid;
    int64_t received;
    if (!checked_sub(payer->available_micro, amount_micro, &paid) || paid < -ISSUED_MAX) {
        return ACCOUNTS_OVERFLOW;
    }
    if (debit == credit) {
        return ACCOUNTS_OK;
    }
    if (!checked_add(payee->available_micro, amount_micro, &received)) {
        return ACCOUNTS_OVERFLOW;
    }
    payer->available_micro = paid;
    payee->available_micro = received;
    return ACCOUNTS_OK;
}

int64_t hold_left(const struct hold *hold)
{
    assert(hold->captured_micro >= 0);
    assert(hold->captured_micro <= hold->amount_micro);
    return hold->is_open ? hold->amount_micro - hold->captured_micro : 0;
}

static enum accounts_status set_apart(struct accounts *accounts, uint32_t account,
                                      int64_t amount_micro)
{
    struct account_balance *balance = balance_of(accounts, account);
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
    struct account_balance *payer = balance_of(accounts, hold->account);
    struct account_balance *payee = balance_of(accounts, credit);
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
    assert(payer->held_micro >=
           amount_micro); /* the payer's held money includes the rest of the hold */
    payer->held_micro -= amount_micro;
    payee->available_micro = received;
    hold->captured_micro += amount_micro;
    return ACCOUNTS_OK;
}

int64_t hold_release(struct accounts *accounts, struct hold *hold)
{
    assert(hold->is_open);
    struct account_balance *balance = balance_of(accounts, hold->account);
    int64_t left = hold_left(hold);
    assert(balance->held_micro >= left);
    /* The sum cannot wrap: all credits together are at most ISSUED_MAX. */
    assert(balance->available_micro <= ISSUED_MAX - left);
    balance->held_micro -= left;
    balance->available_micro += left;
    hold->is_open = false;
    return left;
}
