/* This file opens accounts, by genesis and invitation, and holds the operator's acts on them. */
#include "exchange/state.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- opening accounts */

static struct member *member_add(struct exchange *exchange, const struct key32 *key, uint32_t roles,
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
    struct member *member = allocate(exchange, sizeof *member);
    if (member == NULL) {
        return NULL;
    }
    list_init(&member->jobs);
    list_init(&member->refusals);
    member->key = *key;
    member->number = exchange->member_count;
    member->roles = roles;
    copy_name(member->name, name);
    exchange->members[exchange->member_count++] = member;
    track(exchange, &member->tracked, RECORD_MEMBER);
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

static void account_effect(struct exchange *exchange, const struct member *member)
{
    struct exchange_effect *effect = emit(exchange, EFFECT_ACCOUNT, member->number);
    effect->opened = (struct exchange_account_effect){
        .key = member->key, .roles = member->roles, .frozen = member->is_frozen};
    copy_name(effect->opened.name, member->name);
}

static struct member *account_open(struct exchange *exchange, const struct key32 *key,
                                   uint32_t roles, const char *name)
{
    uint32_t number;
    struct member *member = member_add(exchange, key, roles, name);
    if (member == NULL || accounts_open(exchange->accounts, &number) != ACCOUNTS_OK ||
        !table_insert(&exchange->members_by_key, member) || !member_link_name(exchange, member)) {
        exchange->is_out_of_memory = true; /* the cap was checked before */
        return NULL;
    }
    assert(number == member->number);
    struct ledger_record *record = emit_ledger(exchange, LEDGER_ACCOUNT);
    record->owner = *key;
    record->debit = record->credit = number;
    record->roles = roles;
    copy_name(record->name, name);
    account_effect(exchange, member);
    return member;
}

/* Issues credits to an account; no other call creates credits. */
static bool mint(struct exchange *exchange, struct member *member, int64_t amount_micro)
{
    if (accounts_transfer(exchange->accounts, ACCOUNT_MINT, member->number, amount_micro) !=
        ACCOUNTS_OK) {
        return false;
    }
    touch(exchange, &exchange->members[ACCOUNT_MINT]->tracked);
    touch(exchange, &member->tracked);
    struct ledger_record *record = emit_ledger(exchange, LEDGER_TRANSFER);
    record->debit = ACCOUNT_MINT;
    record->credit = member->number;
    record->amount_micro = amount_micro;
    record->owner = member->key;
    return true;
}

/* An Ed25519 key and its twin of the other sign differ in the top bit of the last byte. Both become
 * the same X25519 key (RFC 7748 section 4.1 keeps only y). Two such accounts could not be told
 * apart by their connections. */
static bool is_taken(const struct exchange *exchange, const struct key32 *key)
{
    struct key32 twin = *key;
    twin.bytes[sizeof twin.bytes - 1] ^= 0x80;
    return table_find(&exchange->members_by_key, key) != NULL ||
           table_find(&exchange->members_by_key, &twin) != NULL;
}

void apply_genesis(struct exchange *exchange, const struct exchange_genesis *genesis)
{
    static const char *const system_names[] = {"mint", "fees", "residue"};
    exchange->has_genesis = true;
    exchange->cluster = genesis->cluster;
    exchange->fee_ppm = genesis->fee_ppm;
    exchange->price_band_micro = genesis->price_band_micro;
    book_set_price_most(exchange->book, genesis->price_band_micro);
    for (uint32_t i = 0; i < ACCOUNT_FIRST_USER; i++) {
        if (member_add(exchange, &(struct key32){0}, 0, system_names[i]) == NULL) {
            return;
        }
    }
    for (size_t i = 0; i < genesis->account_count; i++) {
        const struct exchange_genesis_account *account = &genesis->accounts[i];
        if (is_taken(exchange, &account->key)) {
            continue; /* named twice: the first stands */
        }
        struct member *member =
            account_open(exchange, &account->key, account->roles, account->name);
        if (member != NULL && account->credits_micro > 0) {
            /* The call fails only past 2^63 micro-credits in all. */
            (void)mint(exchange, member, account->credits_micro);
        }
    }
}

/* ---------------------------------------------------------------- invitations */

static void invitation_drop(struct exchange *exchange, struct invitation *invitation)
{
    table_remove(&exchange->invitations, &invitation->token_hash);
    list_remove(&invitation->all);
    exchange->invitation_count--;
    untrack(exchange, &invitation->tracked);
    free(invitation);
}

/* The list is sorted by expiry, so most steps look at one entry. */
void invitations_expire(struct exchange *exchange)
{
    while (!list_empty(&exchange->invitation_list)) {
        struct invitation *first =
            LIST_ELEMENT(exchange->invitation_list.next, struct invitation, all);
        if (first->expires_ns > exchange->now_ns) {
            return;
        }
        invitation_drop(exchange, first);
    }
}

void invitation_link(struct exchange *exchange, struct invitation *invitation)
{
    struct list_link *after = exchange->invitation_list.previous;
    while (after != &exchange->invitation_list &&
           LIST_ELEMENT(after, struct invitation, all)->expires_ns > invitation->expires_ns) {
        after = after->previous;
    }
    list_insert_before(after->next, &invitation->all);
    exchange->invitation_count++;
}

void apply_invite(struct exchange *exchange, const struct exchange_invite *invite)
{
    const uint32_t grantable =
        XROLE_CONSUMER | XROLE_PROVIDER | XROLE_REFEREE | 4u /* auditor */ | XROLE_RISK;
    if ((sender(exchange)->roles & XROLE_OPERATOR) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (invite->roles == 0 || (invite->roles & ~grantable) != 0) {
        reject(exchange, XREJECT_QUANTITY, "roles", invite->roles, grantable);
        return;
    }
    if (invite->credits_micro < 0) {
        reject(exchange, XREJECT_QUANTITY, "credits_micro", invite->credits_micro, 0);
        return;
    }
    if (invite->expires_ns <= exchange->now_ns) {
        reject(exchange, XREJECT_INVITATION, "expires_ms", invite->expires_ns / NS_PER_MS,
               exchange->now_ns / NS_PER_MS);
        return;
    }
    if (exchange->invitation_count >= exchange->limits.invitations) {
        reject(exchange, XREJECT_LIMIT, "invitations", exchange->invitation_count,
               exchange->limits.invitations);
        return;
    }
    if (table_find(&exchange->invitations, &invite->token_hash) != NULL) {
        reject(exchange, XREJECT_EXISTS, "token_hash", 0, 0);
        return;
    }
    struct invitation *invitation = allocate(exchange, sizeof *invitation);
    if (invitation == NULL) {
        return;
    }
    invitation->token_hash = invite->token_hash;
    invitation->roles = invite->roles;
    invitation->credits_micro = invite->credits_micro;
    invitation->expires_ns = invite->expires_ns;
    invitation->issuer = exchange->command->account;
    copy_name(invitation->name, invite->name);
    if (!table_insert(&exchange->invitations, invitation)) {
        exchange->is_out_of_memory = true;
        free(invitation);
        return;
    }
    invitation_link(exchange, invitation);
    track(exchange, &invitation->tracked, RECORD_INVITATION);
}

void apply_join(struct exchange *exchange, const struct exchange_join *join)
{
    struct invitation *invitation = table_find(&exchange->invitations, &join->token_hash);
    if (invitation == NULL) {
        reject(exchange, XREJECT_INVITATION, "token", 0, 0);
        return;
    }
    if (is_taken(exchange, &join->account)) {
        reject(exchange, XREJECT_EXISTS, "account", 0, 0);
        return;
    }
    if (exchange->member_count >= exchange->limits.accounts) {
        reject(exchange, XREJECT_LIMIT, "accounts", exchange->member_count,
               exchange->limits.accounts);
        return;
    }
    const char *name = join->name[0] != '\0' ? join->name : invitation->name;
    struct member *member = account_open(exchange, &join->account, invitation->roles, name);
    if (member == NULL) {
        return;
    }
    if (invitation->credits_micro > 0) {
        (void)mint(exchange, member, invitation->credits_micro);
    }
    invitation_drop(exchange, invitation);
    exchange->accept_as = member->number;
}

/* ---------------------------------------------------------------- the operator */

void apply_mint(struct exchange *exchange, const struct exchange_mint *command)
{
    if ((sender(exchange)->roles & XROLE_OPERATOR) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    struct member *member = table_find(&exchange->members_by_key, &command->account);
    if (member == NULL) {
        reject(exchange, XREJECT_NOT_FOUND, "account", 0, 0);
        return;
    }
    if (command->amount_micro <= 0 || !mint(exchange, member, command->amount_micro)) {
        reject(exchange, XREJECT_QUANTITY, "amount_micro", command->amount_micro, INT64_MAX);
    }
}

void flag(struct exchange *exchange, uint32_t account, const struct key32 *key, const char *what)
{
    struct ledger_record *record = emit_ledger(exchange, LEDGER_FLAG);
    record->debit = record->credit = account;
    record->owner = *key;
    copy_name(record->name, what);
}

static void close_jobs_of(struct exchange *exchange, const struct member *owner)
{
    for (struct list_link *at = owner->jobs.next; at != &owner->jobs; at = at->next) {
        job_close(exchange, LIST_ELEMENT(at, struct job, of_owner), JOB_PHASE_CANCELLED,
                  XREASON_HALTED); /* ended jobs are left alone */
    }
}

void apply_freeze(struct exchange *exchange, const struct exchange_freeze *freeze)
{
    if ((sender(exchange)->roles & (XROLE_OPERATOR | XROLE_RISK)) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    struct member *member = table_find(&exchange->members_by_key, &freeze->account);
    if (member == NULL) {
        reject(exchange, XREJECT_NOT_FOUND, "account", 0, 0);
        return;
    }
    if (freeze->frozen && (member->roles & XROLE_OPERATOR) != 0) {
        reject(exchange, XREJECT_STATE, "account", 0, 0); /* nobody could undo it */
        return;
    }
    if (member->is_frozen == freeze->frozen) {
        return;
    }
    member->is_frozen = freeze->frozen;
    touch(exchange, &member->tracked);
    flag(exchange, member->number, &member->key, freeze->frozen ? "frozen" : "thawed");
    account_effect(exchange, member);
    if (freeze->frozen) {
        if (member->provider != NULL) {
            provider_asks_cancel(exchange, member->provider, CANCEL_FROZEN);
            provider_leases_revoke(exchange, member->provider);
        }
        close_jobs_of(exchange, member);
    }
}

static void all_want(struct exchange *exchange)
{
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        if (job->phase == JOB_PHASE_OPEN) {
            job_wants(exchange, job);
        }
    }
}

void apply_halt(struct exchange *exchange, const struct exchange_halt *halt)
{
    if ((sender(exchange)->roles & (XROLE_OPERATOR | XROLE_RISK)) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (exchange->is_halted != halt->halted) {
        exchange->is_halted = halt->halted;
        flag(exchange, exchange->command->account, &sender(exchange)->key,
             halt->halted ? "halted" : "resumed");
        if (!halt->halted) {
            all_want(exchange);
        }
    }
}
