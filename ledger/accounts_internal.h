/* `struct accounts` is the table of balances; accounts.c and hold.c share it. */
#ifndef BOURSE_LEDGER_ACCOUNTS_INTERNAL_H
#define BOURSE_LEDGER_ACCOUNTS_INTERNAL_H

#include "ledger/accounts.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* The mint never goes below -ISSUED_MAX, and the sum of all accounts is zero. All other accounts
 * together therefore fit int64: no transfer can make a balance wrap. */
#define ISSUED_MAX INT64_MAX

struct accounts {
    uint32_t count;
    size_t capacity;
    struct account_balance *balances; /* by account number */
};

/* Returns the balance of an existing account. */
static inline struct account_balance *accounts_balance_of(const struct accounts *accounts,
                                                          uint32_t account)
{
    assert(account < accounts->count);
    return &accounts->balances[account];
}

#endif
