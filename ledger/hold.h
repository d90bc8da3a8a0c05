/* A hold moves money of an account from `available` to `held`; the money is then in escrow.
 *
 * A capture moves held money of the payer to the payee's available balance, in parts or at once.
 * The rest is released or expired, exactly once. Any status but ACCOUNTS_OK leaves everything
 * unchanged. */
#ifndef BOURSE_LEDGER_HOLD_H
#define BOURSE_LEDGER_HOLD_H

#include "ledger/accounts.h"

#include <stdbool.h>
#include <stdint.h>

/* The caller keeps the hold, in the job or order that it covers. */
struct hold {
    uint32_t account;
    int64_t amount_micro;   /* as opened, plus all raises */
    int64_t captured_micro; /* so far */
    bool is_open;
};

/* Opens a hold. The amount may be 0: a job that pays nothing has a hold too. */
enum accounts_status hold_open(struct accounts *accounts, uint32_t account, int64_t amount_micro,
                               struct hold *ret_hold);
/* Moves more (> 0) into the hold, which must be open. */
enum accounts_status hold_raise(struct accounts *accounts, struct hold *hold, int64_t more_micro);
/* Pays `amount_micro` out of the hold to `credit`. The amount is > 0 and at most the rest of the
 * hold; a hold that has ended has none. */
enum accounts_status hold_capture(struct accounts *accounts, struct hold *hold, uint32_t credit,
                                  int64_t amount_micro);
/* Ends the hold and gives back the rest, which it returns (may be 0). The hold must be open. */
int64_t hold_release(struct accounts *accounts, struct hold *hold);
int64_t hold_left(const struct hold *hold);

#endif
