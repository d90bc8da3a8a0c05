/* The standing of an account holds its owner, its refuted results and its overruled verdicts. Most
 * accounts have no record here.
 *
 * An owner is the operator's grouping of accounts. An account that nobody grouped is its own owner.
 *
 * Each refuted result counts, and an hour of slot-time that referees accepted takes one off the
 * count. From the second on, each refutation closes the account's asks for a time: one minute,
 * doubled with each further refutation, up to a day. A closed ask keeps its place and opens by
 * itself, as it does after hours. Standing leases run to the end of their terms. */
#include "exchange/state.h"

#include <string.h>

/* Returns NULL when memory is short. */
static struct standing *standing_of(struct exchange *exchange, uint32_t account)
{
    struct member *member = member_by_number(exchange, account);
    if (member->standing == NULL) {
        struct standing *standing = allocate(exchange, sizeof *standing);
        if (standing == NULL) {
            return NULL;
        }
        standing->member = member;
        member->standing = standing;
        track(exchange, &standing->tracked, RECORD_STANDING);
    }
    touch(exchange, &member->standing->tracked);
    return member->standing;
}

/* ---------------------------------------------------------------- owners */

static uint64_t group_of(const struct exchange *exchange, uint32_t account)
{
    const struct member *member = member_by_number(exchange, account);
    return member == NULL || member->standing == NULL ? 0 : member->standing->group;
}

bool have_one_owner(const struct exchange *exchange, uint32_t a, uint32_t b)
{
    const uint64_t group = group_of(exchange, a);
    return a == b || (group != 0 && group == group_of(exchange, b));
}

/* Returns the group of that name; a new group takes the number of the command that makes it. */
static uint64_t group_named(const struct exchange *exchange, const char *name)
{
    for (uint32_t i = ACCOUNT_FIRST_USER; i < exchange->member_count; i++) {
        const struct standing *standing = exchange->members[i]->standing;
        if (standing != NULL && standing->group != 0 && strcmp(standing->owner, name) == 0) {
            return standing->group;
        }
    }
    return exchange->index;
}

/* Returns false when the command may not group these accounts; it is refused then, and nothing has
 * changed. */
static bool may_group(struct exchange *exchange, const struct exchange_owner *given)
{
    if ((sender(exchange)->roles & XROLE_OPERATOR) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
    } else if (given->count == 0 || given->count > EXCHANGE_OWNER_MOST) {
        reject(exchange, XREJECT_QUANTITY, "accounts", (int64_t)given->count, EXCHANGE_OWNER_MOST);
    }
    for (size_t i = 0; !exchange->is_rejected && i < given->count; i++) {
        if (table_find(&exchange->members_by_key, &given->accounts[i]) == NULL) {
            reject(exchange, XREJECT_NOT_FOUND, "accounts", (int64_t)i, (int64_t)given->count);
        }
    }
    return !exchange->is_rejected;
}

void apply_owner(struct exchange *exchange, const struct exchange_owner *given)
{
    if (!may_group(exchange, given)) {
        return;
    }
    const bool is_undone = given->name[0] == '\0';
    const uint64_t group = is_undone ? 0 : group_named(exchange, given->name);
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
        copy_name(standing->owner, given->name);
    }
    flag(exchange, exchange->command->account, &sender(exchange)->key, "owner");
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        if (job->checks != NULL) {
            juries_regroup(exchange, job);
            job_wants(exchange, job); /* owners decide who may judge and who may make */
        }
    }
}

/* ---------------------------------------------------------------- refutations */

int64_t account_withdrawn_until_ns(const struct exchange *exchange, uint32_t account)
{
    const struct member *member = member_by_number(exchange, account);
    return member == NULL || member->standing == NULL ? 0 : member->standing->withdrawn_until_ns;
}

static void close_asks(struct exchange *exchange, const struct provider *provider)
{
    for (struct list_link *at = provider->devices.next; at != &provider->devices; at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        if (device->ask != NULL) {
            ask_turn(exchange, device->ask);
        }
    }
}

void account_refuted(struct exchange *exchange, uint32_t account)
{
    struct standing *standing = standing_of(exchange, account);
    if (standing == NULL) {
        return;
    }
    standing->refuted_ever++;
    standing->refuted++;
    if (standing->refuted <= REFUTED_BORNE) {
        return;
    }
    int64_t for_ns = WITHDRAWN_LEAST_NS;
    for (uint32_t i = REFUTED_BORNE + 1; i < standing->refuted && for_ns < WITHDRAWN_MOST_NS; i++) {
        for_ns *= 2;
    }
    for_ns = for_ns < WITHDRAWN_MOST_NS ? for_ns : WITHDRAWN_MOST_NS;
    standing->withdrawn_until_ns = exchange->now_ns + for_ns;
    if (standing->member->provider != NULL) {
        close_asks(exchange, standing->member->provider);
    }
}

void account_proved(struct exchange *exchange, uint32_t account, int64_t slot_ns)
{
    const struct member *member = member_by_number(exchange, account);
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
    struct exchange_standing said = {.refuted = 0};
    const struct member *member = member_by_number(exchange, account);
    if (member == NULL || member->standing == NULL) {
        return said;
    }
    const struct standing *standing = member->standing;
    said.refuted = standing->refuted;
    said.refuted_ever = standing->refuted_ever;
    said.overruled = standing->overruled;
    said.withdrawn_ns = standing->withdrawn_until_ns > exchange->now_ns
                            ? standing->withdrawn_until_ns - exchange->now_ns
                            : 0;
    copy_name(said.owner, standing->owner);
    return said;
}
