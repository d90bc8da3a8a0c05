/* The commands of this file are acts of the operator on accounts and on the market. */
#include "base/sha256.h"
#include "exchange/account/members.h"
#include "exchange/account/standing.h"
#include "exchange/command/apply.h"
#include "exchange/lifecycle.h"
#include "exchange/market/asks.h"
#include "exchange/market/bids.h"
#include "exchange/market/providers.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/lookup.h"
#include "exchange/state/names.h"
#include "exchange/state/reasons.h"
#include "exchange/state/tracking.h"
#include "exchange/work/jobs.h"
#include "exchange/work/juries.h"

static void close_jobs_of(struct exchange *exchange, const struct member *owner)
{
    for (struct list_link *at = owner->jobs.next; at != &owner->jobs; at = at->next) {
        job_close(exchange, LIST_ELEMENT(at, struct job, of_owner), JOB_PHASE_CANCELLED,
                  XREASON_HALTED); /* ended jobs are left alone */
    }
}

void apply_freeze(struct exchange *exchange, const struct exchange_freeze *freeze)
{
    if ((lookup_sender(exchange)->roles & (XROLE_OPERATOR | XROLE_RISK)) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    struct member *member = table_find(&exchange->members_by_key, &freeze->account);
    if (member == NULL) {
        effect_reject(exchange, XREJECT_NOT_FOUND, "account", 0, 0);
        return;
    }
    if (freeze->frozen && (member->roles & XROLE_OPERATOR) != 0) {
        effect_reject(exchange, XREJECT_STATE, "account", 0, 0); /* nobody could undo it */
        return;
    }
    if (member->is_frozen == freeze->frozen) {
        return;
    }
    member->is_frozen = freeze->frozen;
    reason_set(exchange, &member->frozen_why, freeze->frozen ? freeze->reason : NULL);
    tracking_touch(exchange, &member->tracked);
    account_flag(exchange, member->number, &member->key, freeze->frozen ? "frozen" : "thawed");
    account_effect(exchange, member);
    if (freeze->frozen) {
        if (member->provider != NULL) {
            asks_cancel_all(exchange, member->provider, CANCEL_FROZEN);
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
            bids_want(exchange, job);
        }
    }
}

void apply_halt(struct exchange *exchange, const struct exchange_halt *halt)
{
    if ((lookup_sender(exchange)->roles & (XROLE_OPERATOR | XROLE_RISK)) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (exchange->is_halted != halt->halted) {
        exchange->is_halted = halt->halted;
        reason_set(exchange, &exchange->halted_why, halt->halted ? halt->reason : NULL);
        account_flag(exchange, exchange->command->account, &lookup_sender(exchange)->key,
                     halt->halted ? "halted" : "resumed");
        if (!halt->halted) {
            all_want(exchange);
        }
    }
}

static bool bands_in_range(struct exchange *exchange, const struct exchange_bands *bands)
{
    if (bands->most_micro < 1) {
        effect_reject(exchange, XREJECT_PRICE, "most_micro", bands->most_micro, 1);
    } else if (bands->least_micro < 0 || bands->least_micro > bands->most_micro) {
        effect_reject(exchange, XREJECT_PRICE, "least_micro", bands->least_micro,
                      bands->least_micro < 0 ? 0 : bands->most_micro);
    } else if (bands->notional_micro < 0) {
        effect_reject(exchange, XREJECT_NOTIONAL, "notional_micro", bands->notional_micro, 0);
    }
    return !exchange->is_rejected;
}

/* A higher band may let bids by value pay for asks that were out of reach, so they look again. */
static void follow_band(struct exchange *exchange)
{
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        if (job->phase == JOB_PHASE_OPEN) {
            spot_expose_job(exchange, job);
            bids_want(exchange, job);
        }
    }
}

void apply_bands(struct exchange *exchange, const struct exchange_bands *given)
{
    if ((lookup_sender(exchange)->roles & (XROLE_OPERATOR | XROLE_RISK)) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    struct exchange_bands bands = exchange_bands_now(exchange);
    bands.least_micro = given->has_least ? given->least_micro : bands.least_micro;
    bands.most_micro = given->has_most ? given->most_micro : bands.most_micro;
    bands.notional_micro = given->has_notional ? given->notional_micro : bands.notional_micro;
    if (!bands_in_range(exchange, &bands)) {
        return;
    }
    const bool is_other_most = bands.most_micro != exchange->price_band_micro;
    if (is_other_most || bands.least_micro != exchange->price_least_micro ||
        bands.notional_micro != exchange->notional_most_micro) {
        feed_bands(exchange);
    }
    exchange->price_least_micro = bands.least_micro;
    exchange->price_band_micro = bands.most_micro;
    exchange->notional_most_micro = bands.notional_micro;
    book_set_price_most(exchange->book, bands.most_micro);
    account_flag(exchange, exchange->command->account, &lookup_sender(exchange)->key, "bands");
    if (is_other_most) {
        follow_band(exchange);
    }
}

void apply_owner(struct exchange *exchange, const struct exchange_owner *given)
{
    if (!standing_may_group(exchange, given)) {
        return;
    }
    const bool is_undone = given->name[0] == '\0';
    const uint64_t group = is_undone ? 0 : standing_group_named(exchange, given->name);
    for (size_t i = 0; i < given->count; i++) {
        const struct member *member = table_find(&exchange->members_by_key, &given->accounts[i]);
        if (is_undone && member->standing == NULL) {
            continue;
        }
        struct standing *standing = standing_of(exchange, member->number);
        if (standing == NULL) {
            return;
        }
        standing->group = group;
        name_copy(standing->owner, given->name);
    }
    account_flag(exchange, exchange->command->account, &lookup_sender(exchange)->key, "owner");
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        if (job->checks != NULL) {
            juries_regroup(exchange, job);
            bids_want(exchange, job); /* owners decide who may judge and who may make */
        }
    }
}

void apply_epoch(struct exchange *exchange, const struct exchange_epoch *epoch)
{
    static const struct hash32 none;
    const struct hash32 shown = sha256_of(epoch->secret.bytes, sizeof epoch->secret.bytes);
    bool is_shown = !hash32_equal(&epoch->secret, &none);
    if (is_shown && (exchange->epochs == 0 || !hash32_equal(&shown, &exchange->commitment))) {
        return;
    }
    exchange->commitment = epoch->commitment;
    exchange->epochs++;
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_EPOCH);
    record->hash = epoch->commitment;
    record->check = epoch->secret;
}
