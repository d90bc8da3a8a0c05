/* ledger/accounts.h defines the rules of money for balances and transfers. docs/decisions.md D4,
 * D8; promises P1-P4.
 *
 * Every account has `available` and `held` micro-credits. A transfer moves an amount between the
 * available balances of two accounts, all or nothing. ledger/hold.h moves escrow.
 *
 * The sum over all accounts is always zero. The minting account goes negative, by transfers, down
 * to -INT64_MAX; it alone may (overdraft). No balance can ever wrap. Accounts are numbered 0, 1, 2
 * ... in order of opening; 0..2 are the system's. The capacity is given at creation and grows by
 * doubling up to ACCOUNTS_MAX. */
#ifndef BOURSE_LEDGER_ACCOUNTS_H
#define BOURSE_LEDGER_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

enum { ACCOUNTS_MAX = 1 << 20 };

enum {                      /* the system's accounts; accounts_create opens them */
       ACCOUNT_MINT = 0,    /* issues credits; may be negative */
       ACCOUNT_FEES = 1,    /* the operator's fees */
       ACCOUNT_RESIDUE = 2, /* rests of rounding */
       ACCOUNT_FIRST_USER = 3,
};

enum accounts_status {
    ACCOUNTS_OK,
    ACCOUNTS_FULL,
    ACCOUNTS_BAD_AMOUNT, /* not above zero */
    ACCOUNTS_FUNDS,      /* more than the available balance, or than the rest of the hold */
    ACCOUNTS_OVERFLOW,
    ACCOUNTS_OUT_OF_MEMORY,
};

struct account_balance {
    int64_t available_micro;
    int64_t held_micro;
};

struct accounts;

struct accounts *accounts_create(void); /* holds the system's three; NULL when memory is short */
void accounts_destroy(struct accounts **self);
/* Returns the number of accounts. Every account number passed to a function is less. */
uint32_t accounts_count(const struct accounts *accounts);
struct account_balance accounts_balance(const struct accounts *accounts, uint32_t account);
/* Sets a balance when a snapshot is loaded. accounts_balanced checks the sum afterwards. */
void accounts_restore(struct accounts *accounts, uint32_t account, struct account_balance balance);
/* Returns true when all balances sum to zero and no account but ACCOUNT_MINT is negative
 * anywhere. */
bool accounts_balanced(const struct accounts *accounts);

/* Opens an account. Here and below, any status but ACCOUNTS_OK leaves everything unchanged. */
enum accounts_status accounts_open(struct accounts *accounts, uint32_t *ret_account);
/* Transfers an amount. A transfer from an account to itself is checked like any other and changes
 * nothing. */
enum accounts_status accounts_transfer(struct accounts *accounts, uint32_t debit, uint32_t credit,
                                       int64_t amount_micro);

#endif
