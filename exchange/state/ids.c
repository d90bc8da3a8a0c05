#include "exchange/state/ids.h"

#include "base/checked.h"
#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/tracking.h"

#include <stdlib.h>

static void id_forget(struct exchange *exchange, struct id_entry *entry)
{
    struct member *member = lookup_member(exchange, entry->key.account);
    if (entry->is_refused) {
        struct refused_id *refused = (struct refused_id *)entry;
        list_remove(&refused->of_member);
        member->refusal_count--;
    } else {
        member->ids--;
        tracking_touch(exchange, &member->tracked);
    }
    table_remove(&exchange->ids, &entry->key);
    list_remove(&entry->age);
    tracking_remove(exchange, &entry->tracked);
    free(entry);
}

void ids_expire(struct exchange *exchange)
{
    while (!list_empty(&exchange->id_ages)) {
        struct id_entry *entry = LIST_ELEMENT(exchange->id_ages.next, struct id_entry, age);
        if (entry->log_time_ns > exchange->now_ns - ID_AGE_NS - ID_AHEAD_NS) {
            return;
        }
        id_forget(exchange, entry);
    }
}

/* Puts the command's id under `account` in the table. Returns false and frees the entry when memory
 * is short. */
static bool id_enter(struct exchange *exchange, uint32_t account, struct id_entry *entry)
{
    const struct exchange_command *command = exchange->command;
    entry->key = (struct id_key){.id = command->id, .account = account};
    const uint64_t hash = account == exchange->id_account
                              ? exchange->id_hash
                              : table_hash_of(&exchange->ids, &entry->key);
    entry->body = command->body;
    entry->index = exchange->index;
    entry->log_time_ns = exchange->now_ns;
    if (!table_insert_as(&exchange->ids, entry, hash)) {
        exchange->is_out_of_memory = true;
        free(entry);
        return false;
    }
    list_append(&exchange->id_ages, &entry->age);
    tracking_add(exchange, &entry->tracked, RECORD_ID);
    return true;
}

void ids_remember(struct exchange *exchange, uint32_t account)
{
    struct member *member = lookup_member(exchange, account);
    struct id_entry *entry = memory_allocate(exchange, sizeof *entry);
    if (entry != NULL && id_enter(exchange, account, entry)) {
        member->ids++;
        tracking_touch(exchange, &member->tracked);
    }
}

void ids_link_refusal(struct exchange *exchange, struct refused_id *refused)
{
    struct member *member = lookup_member(exchange, refused->entry.key.account);
    list_append(&member->refusals, &refused->of_member);
    member->refusal_count++;
}

void ids_remember_refusal(struct exchange *exchange)
{
    const struct member *member = lookup_sender(exchange);
    if (exchange->rejection.code == XREJECT_ID_EXPIRED) {
        return;
    }
    if (member->refusal_count >= REFUSALS_KEPT) {
        struct refused_id *oldest =
            LIST_ELEMENT(member->refusals.next, struct refused_id, of_member);
        id_forget(exchange, &oldest->entry);
    }
    struct refused_id *refused = memory_allocate(exchange, sizeof *refused);
    if (refused == NULL) {
        return;
    }
    refused->entry.is_refused = true;
    refused->why = exchange->rejection;
    if (id_enter(exchange, member->number, &refused->entry)) {
        ids_link_refusal(exchange, refused);
    }
}

bool ids_keep(enum exchange_command_type type)
{
    return type != EXCHANGE_RESULTS && type != EXCHANGE_STATEMENT;
}

/* The id of a JOIN is kept under the account that it opened. Its session began without an account
 * and may send the JOIN again. */
static uint32_t id_owner(const struct exchange *exchange)
{
    const struct exchange_command *command = exchange->command;
    const struct member *joined =
        command->type == EXCHANGE_JOIN
            ? table_find(&exchange->members_by_key, &command->join.account)
            : NULL;
    return joined == NULL ? command->account : joined->number;
}

const struct id_entry *ids_find(struct exchange *exchange)
{
    const struct id_key key = {.id = exchange->command->id, .account = id_owner(exchange)};
    exchange->id_account = key.account;
    exchange->id_hash = table_hash_of(&exchange->ids, &key);
    return table_find_as(&exchange->ids, &key, exchange->id_hash);
}

bool ids_let_in(struct exchange *exchange)
{
    const struct exchange_command *command = exchange->command;
    int64_t created_ns;
    if (!checked_mul(command->created_ms, NS_PER_MS, &created_ns) ||
        created_ns < exchange->now_ns - ID_AGE_NS || created_ns > exchange->now_ns + ID_AHEAD_NS) {
        effect_reject(exchange, XREJECT_ID_EXPIRED, "created_ms", command->created_ms,
                      exchange->now_ns / NS_PER_MS);
        return false;
    }
    const struct member *member = lookup_sender(exchange);
    if (member != NULL && member->ids >= exchange->limits.ids_per_account) {
        effect_reject(exchange, XREJECT_ID_TABLE_FULL, "id", member->ids,
                      exchange->limits.ids_per_account);
        return false;
    }
    return true;
}
