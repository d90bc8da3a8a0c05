#include "ledger/store/effect.h"

#include "ledger/store/tables.h"

bool effect_is_money(enum ledger_kind kind)
{
    return table_of_kind(kind) == TABLE_TRANSFERS;
}

struct ledger_effect effect_on_debit(const struct ledger_record *record)
{
    int64_t amount = record->amount_micro;
    switch (record->kind) {
    case LEDGER_TRANSFER:
        return (struct ledger_effect){.available_micro = -amount};
    case LEDGER_CAPTURE:
    case LEDGER_FEE:
        return (struct ledger_effect){.held_micro = -amount};
    case LEDGER_HOLD:
        return (struct ledger_effect){.available_micro = -amount, .held_micro = amount};
    case LEDGER_RELEASE:
    case LEDGER_EXPIRE:
        return (struct ledger_effect){.available_micro = amount, .held_micro = -amount};
    case LEDGER_ACCOUNT:
    case LEDGER_JOB:
    case LEDGER_ASK:
    case LEDGER_BID:
    case LEDGER_CANCEL:
    case LEDGER_FILL:
    case LEDGER_RESULT:
    case LEDGER_SETTLED:
    case LEDGER_FLAG:
    case LEDGER_HELD:
    case LEDGER_EPOCH:
        break;
    }
    return (struct ledger_effect){0};
}

struct ledger_effect effect_on_credit(const struct ledger_record *record)
{
    bool pays = record->kind == LEDGER_TRANSFER || record->kind == LEDGER_FEE ||
                record->kind == LEDGER_CAPTURE;
    return (struct ledger_effect){.available_micro = pays ? record->amount_micro : 0};
}
