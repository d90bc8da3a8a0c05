#include "exchange/work/payment.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/market/promises.h"
#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/tracking.h"

#include <assert.h>

static void pay(struct exchange *exchange, struct lease *lease, uint32_t credit,
                int64_t amount_micro, enum ledger_kind kind, const struct settlement *settlement)
{
    struct job *job = lease->job;
    if (amount_micro == 0) {
        return;
    }
    enum accounts_status status =
        hold_capture(exchange->accounts, &job->hold, credit, amount_micro);
    assert(status == ACCOUNTS_OK); /* the lease's escrow covers it */
    (void)status;
    tracking_touch(exchange, &lookup_member(exchange, credit)->tracked);
    struct ledger_record *record = effect_emit_ledger(exchange, kind);
    record->job = job->id;
    record->lease = lease->id;
    record->index = settlement->index;
    record->attempt = settlement->attempt;
    record->debit = job->owner;
    record->credit = credit;
    record->amount_micro = amount_micro;
}

int64_t payment_time(const struct exchange *exchange, struct lease *lease,
                     const struct attempt *attempt, int64_t busy_ns)
{
    struct lane *lane = &lease->lanes[attempt->lane];
    int64_t until = exchange->now_ns < lease->term_end_ns ? exchange->now_ns : lease->term_end_ns;
    int64_t from =
        attempt->dispatched_ns > lane->seen_until_ns ? attempt->dispatched_ns : lane->seen_until_ns;
    if (until > from) {
        lane->seen_ns += until - from;
        lane->seen_until_ns = until;
    }
    if (attempt->dispatched_ns > lease->outage_at_ns) {
        lane->outage_ns = 0; /* a lane runs in order: whatever the outage met has ended */
    }
    const int64_t open_ns = lane->seen_ns - lane->paid_ns;
    const int64_t most_ns = open_ns + lane->outage_ns;
    const int64_t claimed_ns = busy_ns > 0 ? busy_ns : 0;
    const int64_t paid_ns = claimed_ns < most_ns ? claimed_ns : most_ns;
    const int64_t seen_ns = paid_ns < open_ns ? paid_ns : open_ns;
    lane->paid_ns += seen_ns;
    lane->outage_ns -= paid_ns - seen_ns;
    return paid_ns * lease->part->width;
}

/* Charges the lease's running total, rounded down, less earlier charges, so that tiny subtasks
 * neither vanish nor double (D8). */
static int64_t charge(struct exchange *exchange, struct lease *lease, int64_t paid_ns)
{
    int64_t total_micro = 0;
    lease->paid_ns += paid_ns;
    bool fits = checked_muldiv_floor(lease->price_micro, lease->paid_ns, NS_PER_HOUR, &total_micro);
    assert(fits); /* the escrow is for a longer time at this price, and fitted */
    (void)fits;
    int64_t charge_micro = total_micro - lease->charged_micro;
    assert(charge_micro >= 0);
    assert(charge_micro <= lease->reserved_micro);
    lease->charged_micro = total_micro;
    lease->reserved_micro -= charge_micro;
    lease->job->reserved_micro -= charge_micro;
    tracking_touch(exchange, &lease->tracked);
    return charge_micro;
}

void payment_settle(struct exchange *exchange, struct lease *lease,
                    const struct settlement *settlement)
{
    const bool is_paid =
        settlement->status == XATTEMPT_ACCEPTED || settlement->status == XATTEMPT_FAILED_PAID;
    const int64_t charge_micro = is_paid ? charge(exchange, lease, settlement->paid_ns) : 0;
    promise_settle(exchange, lease, is_paid ? settlement->paid_ns : 0);
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_RESULT);
    record->job = lease->job->id;
    record->index = settlement->index;
    record->attempt = settlement->attempt;
    record->lease = lease->id;
    record->provider = lookup_member(exchange, lease->provider)->key;
    record->owner = lookup_member(exchange, lease->job->owner)->key;
    record->device = lease->device_id;
    record->hash = settlement->hash;
    record->outcome = settlement->outcome;
    record->status = settlement->status;
    record->price_micro = lease->price_micro;
    record->paid_ns = settlement->paid_ns;
    record->charge_micro = charge_micro;
    record->debit = lease->job->owner;
    record->credit = lease->provider;
    record->result = settlement->bytes;
    record->result_length = settlement->length;
    record->batch_index = settlement->batch_index;
    record->position = settlement->position;
    record->level = settlement->level;
    record->check = settlement->check;

    int64_t fee_micro = 0;
    /* The product fits because fee_ppm <= 10^6. */
    (void)checked_muldiv_floor(charge_micro, exchange->fee_ppm, 1000000, &fee_micro);
    pay(exchange, lease, lease->provider, charge_micro - fee_micro, LEDGER_CAPTURE, settlement);
    pay(exchange, lease, ACCOUNT_FEES, fee_micro, LEDGER_FEE, settlement);
    tracking_touch(exchange, &lease->job->tracked);
    tracking_touch(exchange, &lookup_member(exchange, lease->job->owner)->tracked);
}
