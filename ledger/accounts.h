/* ledger/accounts.h - the rules of money: balances, transfers, holds. docs/decisions.md D4, D8;
 * promises P1-P4.
 *
 * Every account has `available` and `held` micro-credits. A transfer moves an amount from the
 * available balance of one account to that of another, all or nothing. Escrow is a hold:
 * available -> held, then captured (held of the payer -> available of the payee, in parts or at
 * once) and, what is left, released or expired, exactly once. The sum over all accounts is zero,
 * always: the account that mints goes negative, and is the only kind that may (overdraft), by
 * transfers, down to -INT64_MAX: so no balance can ever wrap. Accounts are numbered 0, 1, 2 ...
 * in order of opening; 0..2 are the system's. Pure: capacity is given at creation and grows by
 * doubling up to ACCOUNTS_MAX. */
#ifndef BOURSE_LEDGER_ACCOUNTS_H
#define BOURSE_LEDGER_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

enum { ACCOUNTS_MAX = 1 << 20 };

enum {                      /* the system's accounts, opened by accounts_create */
       ACCOUNT_MINT = 0,    /* issues credits; may be negative */
       ACCOUNT_FEES = 1,    /* the operator's */
       ACCOUNT_RESIDUE = 2, /* what rounding leaves */
       ACCOUNT_FIRST_USER = 3,
};

enum accounts_status {
    ACCOUNTS_OK,
    ACCOUNTS_FULL,
    ACCOUNTS_BAD_AMOUNT, /* not above zero */
    ACCOUNTS_FUNDS,      /* more than is available, or than the hold has left */
    ACCOUNTS_OVERFLOW,
    ACCOUNTS_OUT_OF_MEMORY,
};

struct account_balance {
    int64_t available_micro;
    int64_t held_micro;
};

struct accounts;

struct accounts *accounts_create(void); /* with the system's three; NULL when out of memory */
void accounts_destroy(struct accounts **self);
/* Account numbers are the caller's own: everywhere below they must be less than this. */
uint32_t accounts_count(const struct accounts *accounts);
struct account_balance accounts_balance(const struct accounts *accounts, uint32_t account);
/* For loading a snapshot: sets a balance as it was. The sum is checked by accounts_balanced. */
void accounts_restore(struct accounts *accounts, uint32_t account, struct account_balance balance);
/* True when all balances sum to zero and no account but ACCOUNT_MINT is negative anywhere. */
bool accounts_balanced(const struct accounts *accounts);

/* Any status but OK leaves everything as it was. */
enum accounts_status accounts_open(struct accounts *accounts, uint32_t *ret_account);
/* Between an account and itself: checked like any other, changes nothing. */
enum accounts_status accounts_transfer(struct accounts *accounts, uint32_t debit, uint32_t credit,
                                       int64_t amount_micro);

/* A hold is the caller's to keep (it lives in the job or order that it covers). */
struct hold {
    uint32_t account;
    int64_t amount_micro;   /* as opened, and raised since */
    int64_t captured_micro; /* so far */
    bool is_open;
};

/* Of 0, too: who pays nothing has a hold all the same. */
enum accounts_status hold_open(struct accounts *accounts, uint32_t account, int64_t amount_micro,
                               struct hold *ret_hold);
/* Sets more apart (> 0). The hold must be open. */
enum accounts_status hold_raise(struct accounts *accounts, struct hold *hold, int64_t more_micro);
/* Pays `amount_micro` (> 0, at most what the hold has left: a hold that has ended has nothing)
 * out of the hold to `credit`. */
enum accounts_status hold_capture(struct accounts *accounts, struct hold *hold, uint32_t credit,
                                  int64_t amount_micro);
/* Ends the hold and gives back what is left, which it returns (may be 0). The hold must be open. */
int64_t hold_release(struct accounts *accounts, struct hold *hold);
int64_t hold_left(const struct hold *hold);

#endif
