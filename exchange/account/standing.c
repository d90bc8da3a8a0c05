/* The standing of an account holds its owner, its refuted results and its overruled verdicts. Most
 * accounts have no standing.
 *
 * An owner is the operator's grouping of accounts. An account that nobody grouped is its own owner.
 *
 * Each refuted result counts one. An hour of slot-time that referees accepted takes one off the
 * count. While the count is 2 or more, each refutation closes the account's asks for a time. The
 * time is one minute at the count 2, and doubles with each further refutation, up to a day. A
 * closed ask keeps its place and opens by itself, as an ask outside its hours does. Standing leases
 * run to the end of their terms. */
#include "exchange/account/standing.h"

#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/names.h"
#include "exchange/state/tracking.h"

#include <string.h>

struct standing *standing_of(struct exchange *exchange, uint32_t account)
{
    struct member *member = lookup_member(exchange, account);
    if (member->standing == NULL) {
        struct standing *standing = memory_allocate(exchange, sizeof *standing);
        if (standing == NULL) {
            return NULL;
        }
        standing->member = member;
        member->standing = standing;
        tracking_add(exchange, &standing->tracked, RECORD_STANDING);
    }
    tracking_touch(exchange, &member->standing->tracked);
    return member->standing;
}

/* ---------------------------------------------------------------- owners */

static uint64_t group_of(const struct exchange *exchange, uint32_t account)
{
    const struct member *member = lookup_member(exchange, account);
    return member == NULL || member->standing == NULL ? 0 : member->standing->group;
}

bool standing_have_one_owner(const struct exchange *exchange, uint32_t a, uint32_t b)
{
    const uint64_t group = group_of(exchange, a);
    return a == b || (group != 0 && group == group_of(exchange, b));
}

uint64_t standing_group_named(const struct exchange *exchange, const char *name)
{
    for (uint32_t i = ACCOUNT_FIRST_USER; i < exchange->member_count; i++) {
        const struct standing *standing = exchange->members[i]->standing;
        if (standing != NULL && standing->group != 0 && strcmp(standing->owner, name) == 0) {
            return standing->group;
        }
    }
    return exchange->index;
}

bool standing_may_group(struct exchange *exchange, const struct exchange_owner *given)
{
    if ((lookup_sender(exchange)->roles & XROLE_OPERATOR) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
    } else if (given->count == 0 || given->count > EXCHANGE_OWNER_MOST) {
        effect_reject(exchange, XREJECT_QUANTITY, "accounts", (int64_t)given->count,
                      EXCHANGE_OWNER_MOST);
    }
    for (size_t i = 0; !exchange->is_rejected && i < given->count; i++) {
        if (table_find(&exchange->members_by_key, &given->accounts[i]) == NULL) {
            effect_reject(exchange, XREJECT_NOT_FOUND, "accounts", (int64_t)i,
                          (int64_t)given->count);
        }
    }
    return !exchange->is_rejected;
}

/* ---------------------------------------------------------------- refutations */

int64_t account_withdrawn_until_ns(const struct exchange *exchange, uint32_t account)
{
    const struct member *member = lookup_member(exchange, account);
    return member == NULL || member->standing == NULL ? 0 : member->standing->withdrawn_until_ns;
}

void account_proved(struct exchange *exchange, uint32_t account, int64_t slot_ns)
{
    const struct member *member = lookup_member(exchange, account);
    if (member->standing == NULL || member->standing->refuted == 0) {
        return;
    }
    struct standing *standing = standing_of(exchange, account);
    standing->proved_ns += slot_ns < LEASE_AGE_MOST_NS ? slot_ns : LEASE_AGE_MOST_NS;
    while (standing->proved_ns >= REFUTED_FADES_NS && standing->refuted > 0) {
        standing->proved_ns -= REFUTED_FADES_NS;
        standing->refuted--;
    }
    standing->proved_ns = standing->refuted == 0 ? 0 : standing->proved_ns;
}

void account_overruled(struct exchange *exchange, uint32_t account)
{
    struct standing *standing = standing_of(exchange, account);
    if (standing != NULL) {
        standing->overruled++;
    }
}

/* ---------------------------------------------------------------- reads */

struct exchange_standing exchange_standing(const struct exchange *exchange, uint32_t account)
{
    struct exchange_standing shown = {.refuted = 0};
    const struct member *member = lookup_member(exchange, account);
    if (member == NULL || member->standing == NULL) {
        return shown;
    }
    const struct standing *standing = member->standing;
    shown.refuted = standing->refuted;
    shown.refuted_ever = standing->refuted_ever;
    shown.overruled = standing->overruled;
    shown.withdrawn_ns = standing->withdrawn_until_ns > exchange->now_ns
                             ? standing->withdrawn_until_ns - exchange->now_ns
                             : 0;
    name_copy(shown.owner, standing->owner);
    return shown;
}
