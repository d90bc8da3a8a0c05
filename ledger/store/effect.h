/* An effect is what a money record changes on one account. */
#ifndef BOURSE_LEDGER_STORE_EFFECT_H
#define BOURSE_LEDGER_STORE_EFFECT_H

#include "ledger/record.h"

#include <stdbool.h>
#include <stdint.h>

struct ledger_effect {
    int64_t available_micro;
    int64_t held_micro;
};
/* Returns true when records of the kind move money; the other two functions are for those. */
bool effect_is_money(enum ledger_kind kind);
struct ledger_effect effect_on_debit(const struct ledger_record *record);
struct ledger_effect effect_on_credit(const struct ledger_record *record);

#endif
