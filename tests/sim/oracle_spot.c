/* Leases that another bid takes: only what may be taken is, after its minimum run, by somebody else
 * whose limit is higher by the increment, at just that price, and when nothing that is free would
 * do; its holder keeps it for the notice while it has work; and the slots go to whom they were
 * promised. */
#include "tests/sim/oracle_models.h"

#include "protocol/message.h"

#include <inttypes.h>

enum { ROWS = 4096, PROMISED = 4 }; /* state of a lease, as the exchange's rows say it */

/* A lease whose begin is not told follows another lease, which the next effect is about. */
struct seen_lease *oracle_taken_by(const struct ledger_record *record,
                                   const struct exchange_effect *next)
{
    if (next != NULL && next->type == EFFECT_LEASE_GRANT && next->grant.lease == record->lease) {
        return NULL;
    }
    struct seen_lease *lease =
        next != NULL && (next->type == EFFECT_LEASE_NOTICE || next->type == EFFECT_LEASE_END)
            ? oracle_lease_of(next->lease.lease)
            : NULL;
    if (lease == NULL) {
        sim_fail("command %" PRIu64 ": lease %" PRIu64 " neither begins nor takes another's place",
                 oracle.command, record->lease);
    }
    return lease;
}

static uint32_t owner_of(const struct seen_bid *bid)
{
    return oracle.jobs.items[bid->job].owner;
}

/* The holder's limit there; what it pays, when it bids no more. One whose bid never rested may
 * still count as a bidder. */
static bool is_due(const struct seen_lease *lease, int64_t price)
{
    const struct seen_bid *holder = &oracle.bids.items[lease->bid];
    const int64_t limit = oracle_limit_in(holder, &oracle.devices.items[lease->device]);
    return (price == limit + EXCHANGE_INCREMENT_MICRO &&
            (!holder->is_cancelled || holder->is_unrested)) ||
           (price == lease->price + EXCHANGE_INCREMENT_MICRO && holder->is_cancelled);
}

static void check_nothing_free(const struct seen_bid *bid, int64_t price)
{
    for (uint32_t i = 0; i < oracle.devices.count; i++) {
        const struct seen_device *device = &oracle.devices.items[i];
        const struct seen_ask *ask = device->ask == 0 ? NULL : &oracle.asks.items[device->ask - 1];
        if (ask != NULL && oracle_could_fill(bid, ask) && oracle_price_most(bid, ask) <= price &&
            !oracle_may_pass_over(bid, device->provider)) {
            sim_fail("command %" PRIu64 ": a lease is taken beside the free ask of account %u",
                     oracle.command, device->provider);
        }
    }
}

void oracle_check_taken(const struct seen_bid *bid, const struct seen_ask *ask,
                        const struct ledger_record *record, const struct seen_lease *lease)
{
    const struct seen_device *device = &oracle.devices.items[lease->device];
    const char *wrong =
        lease->has_ended || lease->is_promised || lease->is_taken ? "does not stand"
        : !lease->terms.is_interruptible                          ? "is firm"
        : oracle.log_time_ns < lease->granted_ns + lease->terms.minimum_run_ns
            ? "has not run for its minimum"
        : owner_of(&oracle.bids.items[lease->bid]) == owner_of(bid) ? "is the taker's own"
        : &oracle.devices.items[ask->device] != device || record->slots > lease->slots
            ? "is of other slots"
        : !oracle_match(bid, ask) || !oracle_is_open(ask)    ? "is of no use to it"
        : record->price_micro > oracle_limit_in(bid, device) ? "costs more than its limit"
        : !is_due(lease, record->price_micro)                ? "ranks at another price"
        : ask->price == 0                                    ? "is given away"
                                                             : NULL;
    if (wrong != NULL) {
        sim_fail("command %" PRIu64 ": lease %" PRIu64 " is taken at %" PRId64 ", and %s",
                 oracle.command, lease->id, record->price_micro, wrong);
    }
    trace("  takes: lease %" PRIu64, lease->id);
    oracle_take_of_type(lease);
    check_nothing_free(bid, record->price_micro);
    oracle.counts.taken++;
}

void oracle_on_grant(const struct exchange_effect *effect)
{
    struct seen_lease *lease = oracle_lease_of(effect->grant.lease);
    if (lease == NULL || lease->provider != effect->account || lease->has_ended) {
        sim_fail("command %" PRIu64 ": lease %" PRIu64 " begins, and was never granted there",
                 oracle.command, effect->grant.lease);
    }
    if (!lease->is_promised) {
        return; /* told when it was granted, or again to who forgot */
    }
    struct seen_device *device = &oracle.devices.items[lease->device];
    const struct seen_lease *former = &oracle.leases.items[lease->former - 1];
    if (!former->has_ended || device->leased + lease->slots > device->slots) {
        sim_fail("command %" PRIu64 ": lease %" PRIu64 " begins, its slots are not free",
                 oracle.command, lease->id);
    }
    lease->is_promised = false;
    lease->granted_ns = oracle.log_time_ns;
    lease->term_end_ns = oracle.log_time_ns + effect->grant.term_ns;
    device->leased += lease->slots;
    oracle.counts.begun++;
}

void oracle_on_notice(const struct exchange_effect *effect)
{
    struct seen_lease *lease = oracle_lease_of(effect->lease.lease);
    if (lease == NULL || lease->provider != effect->account || !lease->is_taken) {
        sim_fail("command %" PRIu64 ": notice of lease %" PRIu64 ", which nobody takes",
                 oracle.command, effect->lease.lease);
    }
    if (lease->is_noticed) {
        return; /* again, to who forgot */
    }
    const int64_t end_ns = oracle.log_time_ns + lease->terms.notice_ns;
    lease->is_noticed = true;
    lease->term_end_ns = end_ns < lease->term_end_ns ? end_ns : lease->term_end_ns;
    const int64_t left_ns = lease->term_end_ns - oracle.log_time_ns; /* past its term it has none */
    trace("  notice: lease %" PRIu64 ", %" PRId64 " ms", lease->id, effect->lease.term_ns / SIM_MS);
    if (effect->lease.term_ns != (left_ns > 0 ? left_ns : 0)) {
        sim_fail("command %" PRIu64 ": lease %" PRIu64 " is told %" PRId64 " ns of its notice",
                 oracle.command, lease->id, effect->lease.term_ns);
    }
    oracle.jobs.items[oracle.bids.items[lease->bid].job].interrupted++;
    oracle.counts.noticed++;
}

void oracle_on_withdraw(const struct exchange_effect *effect)
{
    const struct exchange_work *work = &effect->work;
    struct seen_attempt *attempt = oracle_find_attempt(work->lease, work->index, work->attempt);
    if (attempt != NULL) {
        attempt->is_withdrawn = true;
    }
}

/* Checks a lease that was taken, before its notice is over. It ends only when its agent has no work
 * of it left, as far as anybody knows. */
void oracle_check_notice(const struct seen_lease *lease, uint32_t reason)
{
    if (reason != LEASE_END_PREEMPTED || lease->has_ended) {
        return;
    }
    if (!lease->is_taken) {
        sim_fail("command %" PRIu64 ": lease %" PRIu64 " ends for another that there is not",
                 oracle.command, lease->id);
    }
    if (oracle.log_time_ns >= lease->term_end_ns) {
        return;
    }
    for (uint32_t i = 0; i < oracle.attempts.count; i++) {
        const struct seen_attempt *attempt = &oracle.attempts.items[i];
        if (&oracle.leases.items[attempt->lease] == lease && !attempt->is_decided &&
            !attempt->is_held && !attempt->is_withdrawn &&
            attempt->dispatched_ns > oracle.stated_ns[lease->provider]) {
            sim_fail("command %" PRIu64 ": lease %" PRIu64
                     " ends within its notice, and subtask %u runs",
                     oracle.command, lease->id, attempt->index);
        }
    }
}

/* Returns true when the lease still stands by the exchange's own word. Nobody is told when a holder
 * that was promised slots bids no more, or when a provider went. */
static bool still_stands(const struct seen_lease *lease)
{
    const struct id128 *job = &oracle.jobs.items[oracle.bids.items[lease->bid].job].id;
    static struct exchange_lease_row rows[ROWS];
    const size_t count = exchange_leases(oracle.exchange, job, rows, ROWS);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].lease == lease->id) {
            return rows[i].state == PROMISED;
        }
    }
    return false;
}

void oracle_check_promises(void)
{
    for (uint32_t i = 0; oracle.counts.taken > 0 && i < oracle.leases.count; i++) {
        struct seen_lease *lease = &oracle.leases.items[i];
        if (!lease->is_promised || lease->has_ended) {
            continue;
        }
        if (!still_stands(lease)) {
            oracle_end_lease(lease);
        } else if (oracle.leases.items[lease->former - 1].has_ended) {
            sim_fail("command %" PRIu64 ": lease %" PRIu64 " waits for slots that are free",
                     oracle.command, lease->id);
        }
    }
}
