/* The commands of this file open accounts, by genesis and invitation, and give them credits. */
#include "base/checked.h"
#include "exchange/account/invitations.h"
#include "exchange/account/members.h"
#include "exchange/command/apply.h"
#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/names.h"
#include "exchange/state/tracking.h"

#include <stdlib.h>

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
        if (account_is_taken(exchange, &account->key)) {
            continue; /* named twice: the first stands */
        }
        struct member *member =
            account_open(exchange, &account->key, account->roles, account->name);
        if (member != NULL && account->credits_micro > 0) {
            /* The call fails only past 2^63 micro-credits in all. */
            (void)account_mint(exchange, member, account->credits_micro);
        }
    }
}

void apply_invite(struct exchange *exchange, const struct exchange_invite *invite)
{
    const uint32_t grantable =
        XROLE_CONSUMER | XROLE_PROVIDER | XROLE_REFEREE | 4u /* auditor */ | XROLE_RISK;
    if ((lookup_sender(exchange)->roles & XROLE_OPERATOR) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (invite->roles == 0 || (invite->roles & ~grantable) != 0) {
        effect_reject(exchange, XREJECT_QUANTITY, "roles", invite->roles, grantable);
        return;
    }
    if (invite->credits_micro < 0) {
        effect_reject(exchange, XREJECT_QUANTITY, "credits_micro", invite->credits_micro, 0);
        return;
    }
    if (invite->expires_ns <= exchange->now_ns) {
        effect_reject(exchange, XREJECT_INVITATION, "expires_ms", invite->expires_ns / NS_PER_MS,
                      exchange->now_ns / NS_PER_MS);
        return;
    }
    if (exchange->invitation_count >= exchange->limits.invitations) {
        effect_reject(exchange, XREJECT_LIMIT, "invitations", exchange->invitation_count,
                      exchange->limits.invitations);
        return;
    }
    if (table_find(&exchange->invitations, &invite->token_hash) != NULL) {
        effect_reject(exchange, XREJECT_EXISTS, "token_hash", 0, 0);
        return;
    }
    struct invitation *invitation = memory_allocate(exchange, sizeof *invitation);
    if (invitation == NULL) {
        return;
    }
    invitation->token_hash = invite->token_hash;
    invitation->roles = invite->roles;
    invitation->credits_micro = invite->credits_micro;
    invitation->expires_ns = invite->expires_ns;
    invitation->issuer = exchange->command->account;
    name_copy(invitation->name, invite->name);
    if (!table_insert(&exchange->invitations, invitation)) {
        exchange->is_out_of_memory = true;
        free(invitation);
        return;
    }
    invitation_link(exchange, invitation);
    tracking_add(exchange, &invitation->tracked, RECORD_INVITATION);
}

void apply_join(struct exchange *exchange, const struct exchange_join *join)
{
    struct invitation *invitation = table_find(&exchange->invitations, &join->token_hash);
    if (invitation == NULL) {
        effect_reject(exchange, XREJECT_INVITATION, "token", 0, 0);
        return;
    }
    if (account_is_taken(exchange, &join->account)) {
        effect_reject(exchange, XREJECT_EXISTS, "account", 0, 0);
        return;
    }
    if (exchange->member_count >= exchange->limits.accounts) {
        effect_reject(exchange, XREJECT_LIMIT, "accounts", exchange->member_count,
                      exchange->limits.accounts);
        return;
    }
    const char *name = join->name[0] != '\0' ? join->name : invitation->name;
    struct member *member = account_open(exchange, &join->account, invitation->roles, name);
    if (member == NULL) {
        return;
    }
    if (invitation->credits_micro > 0) {
        (void)account_mint(exchange, member, invitation->credits_micro);
    }
    invitation_drop(exchange, invitation);
    exchange->accept_as = member->number;
}

void apply_mint(struct exchange *exchange, const struct exchange_mint *command)
{
    if ((lookup_sender(exchange)->roles & XROLE_OPERATOR) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    struct member *member = table_find(&exchange->members_by_key, &command->account);
    if (member == NULL) {
        effect_reject(exchange, XREJECT_NOT_FOUND, "account", 0, 0);
        return;
    }
    if (command->amount_micro <= 0 || !account_mint(exchange, member, command->amount_micro)) {
        effect_reject(exchange, XREJECT_QUANTITY, "amount_micro", command->amount_micro, INT64_MAX);
    }
}
