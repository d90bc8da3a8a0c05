#include "ledger/accounts.h"

#include "base/array.h"
#include "base/checked.h"
#include "ledger/accounts_internal.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

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

struct account_balance accounts_balance(const struct accounts *accounts, uint32_t account)
{
    return *accounts_balance_of(accounts, account);
}

void accounts_restore(struct accounts *accounts, uint32_t account, struct account_balance balance)
{
    *accounts_balance_of(accounts, account) = balance;
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
    if (accounts->count >= ACCOUNTS_MAX) {
        return ACCOUNTS_FULL;
    }
    struct account_balance *balances =
        array_with_room(accounts->balances, accounts->count, &accounts->capacity, sizeof *balances);
    if (balances == NULL) {
        return ACCOUNTS_OUT_OF_MEMORY;
    }
    accounts->balances = balances;
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
    struct account_balance *payer = accounts_balance_of(accounts, debit);
    struct account_balance *payee = accounts_balance_of(accounts, credit);
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
