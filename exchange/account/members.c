#include "exchange/account/members.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/state/effects.h"
#include "exchange/state/memory.h"
#include "exchange/state/names.h"
#include "exchange/state/tracking.h"

#include <assert.h>
#include <stdlib.h>

struct member *member_add(struct exchange *exchange, const struct key32 *key, uint32_t roles,
                          const char *name)
{
    if (exchange->member_count == exchange->member_capacity) {
        uint32_t capacity = exchange->member_capacity == 0 ? 64 : 2 * exchange->member_capacity;
        struct member **members = realloc(exchange->members, capacity * sizeof *members);
        if (members == NULL) {
            exchange->is_out_of_memory = true;
            return NULL;
        }
        exchange->members = members;
        exchange->member_capacity = capacity;
    }
    struct member *member = memory_allocate(exchange, sizeof *member);
    if (member == NULL) {
        return NULL;
    }
    list_init(&member->jobs);
    list_init(&member->refusals);
    member->key = *key;
    member->number = exchange->member_count;
    member->roles = roles;
    name_copy(member->name, name);
    exchange->members[exchange->member_count++] = member;
    tracking_add(exchange, &member->tracked, RECORD_MEMBER);
    return member;
}

bool member_link_name(struct exchange *exchange, struct member *member)
{
    struct member *first = table_find(&exchange->members_by_name, member->name);
    if (first != NULL) {
        first->shares_name = true;
        return true;
    }
    return member->name[0] == '\0' || table_insert(&exchange->members_by_name, member);
}

void account_effect(struct exchange *exchange, const struct member *member)
{
    struct exchange_effect *effect = effect_emit(exchange, EFFECT_ACCOUNT, member->number);
    effect->opened = (struct exchange_account_effect){
        .key = member->key, .roles = member->roles, .frozen = member->is_frozen};
    name_copy(effect->opened.name, member->name);
    effect->reason = effect_copy_reason(exchange, member->frozen_why);
}

struct member *account_open(struct exchange *exchange, const struct key32 *key, uint32_t roles,
                            const char *name)
{
    uint32_t number;
    struct member *member = member_add(exchange, key, roles, name);
    if (member == NULL || accounts_open(exchange->accounts, &number) != ACCOUNTS_OK ||
        !table_insert(&exchange->members_by_key, member) || !member_link_name(exchange, member)) {
        exchange->is_out_of_memory = true; /* the cap was checked before */
        return NULL;
    }
    assert(number == member->number);
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_ACCOUNT);
    record->owner = *key;
    record->debit = record->credit = number;
    record->roles = roles;
    name_copy(record->name, name);
    account_effect(exchange, member);
    return member;
}

bool account_mint(struct exchange *exchange, struct member *member, int64_t amount_micro)
{
    if (accounts_transfer(exchange->accounts, ACCOUNT_MINT, member->number, amount_micro) !=
        ACCOUNTS_OK) {
        return false;
    }
    tracking_touch(exchange, &exchange->members[ACCOUNT_MINT]->tracked);
    tracking_touch(exchange, &member->tracked);
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_TRANSFER);
    record->debit = ACCOUNT_MINT;
    record->credit = member->number;
    record->amount_micro = amount_micro;
    record->owner = member->key;
    return true;
}

bool account_is_taken(const struct exchange *exchange, const struct key32 *key)
{
    struct key32 twin = *key;
    twin.bytes[sizeof twin.bytes - 1] ^= 0x80;
    return table_find(&exchange->members_by_key, key) != NULL ||
           table_find(&exchange->members_by_key, &twin) != NULL;
}

void account_flag(struct exchange *exchange, uint32_t account, const struct key32 *key,
                  const char *what)
{
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_FLAG);
    record->debit = record->credit = account;
    record->owner = *key;
    name_copy(record->name, what);
}
