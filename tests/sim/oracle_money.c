/* The oracle keeps balances of its own from the ledger records, and checks charges to the last
 * micro-credit (P1, P2). */
#include "tests/sim/oracle_models.h"

#include <assert.h>
#include <inttypes.h>

void oracle_move_money(const struct ledger_record *record)
{
    uint32_t debit = record->debit;
    uint32_t credit = record->credit;
    int64_t amount = record->amount_micro;
    assert(debit < ACCOUNTS_HERE && credit < ACCOUNTS_HERE);
    switch (record->kind) {
    case LEDGER_TRANSFER:
        oracle.available[debit] -= amount;
        oracle.available[credit] += amount;
        break;
    case LEDGER_HOLD:
        oracle.available[debit] -= amount;
        oracle.held[debit] += amount;
        break;
    case LEDGER_CAPTURE:
    case LEDGER_FEE:
        oracle.held[debit] -= amount;
        oracle.available[credit] += amount;
        break;
    case LEDGER_RELEASE:
    case LEDGER_EXPIRE:
        oracle.held[debit] -= amount;
        oracle.available[debit] += amount;
        break;
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
}

void oracle_check_money(void)
{
    int64_t sum = 0;
    int64_t held_by_jobs[ACCOUNTS_HERE] = {0};
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        const struct seen_job *job = &oracle.jobs.items[i];
        held_by_jobs[job->owner] += job->is_settled ? 0 : job->budget - job->charged;
    }
    for (uint32_t i = 0; i < exchange_account_count(oracle.exchange); i++) {
        struct exchange_account_row row;
        if (!exchange_account(oracle.exchange, i, &row)) {
            continue;
        }
        if (row.available_micro != oracle.available[i] || row.held_micro != oracle.held[i]) {
            sim_fail("account %u: the books say %" PRId64 " and %" PRId64
                     " held, the exchange %" PRId64 " and %" PRId64,
                     i, oracle.available[i], oracle.held[i], row.available_micro, row.held_micro);
        }
        if ((i != ACCOUNT_MINT && row.available_micro < 0) || row.held_micro < 0) {
            sim_fail("account %u is in debt", i);
        }
        if (row.held_micro != held_by_jobs[i]) {
            sim_fail("account %u holds %" PRId64 ", its open jobs %" PRId64, i, row.held_micro,
                     held_by_jobs[i]);
        }
        sum += row.available_micro + row.held_micro;
    }
    if (sum != 0) {
        sim_fail("the balances add up to %" PRId64, sum);
    }
}

void oracle_check_charge(struct seen_lease *lease, const struct ledger_record *record)
{
    struct seen_job *job = &oracle.jobs.items[oracle.bids.items[lease->bid].job];
    lease->paid_ns += record->paid_ns;
    __extension__ typedef __int128 wide;
    int64_t total = (int64_t)((wide)lease->price * lease->paid_ns / HOUR_NS);
    if (record->charge_micro != total - lease->charged) {
        sim_fail("command %" PRIu64 ": charged %" PRId64 ", %" PRId64 " is right", oracle.command,
                 record->charge_micro, total - lease->charged);
    }
    lease->charged = total;
    job->charged += record->charge_micro;
    if (job->charged > job->budget) {
        sim_fail("command %" PRIu64 ": a job is over its budget", oracle.command);
    }
    int64_t until_ns =
        oracle.log_time_ns < lease->term_end_ns ? oracle.log_time_ns : lease->term_end_ns;
    if (lease->paid_ns > (until_ns - lease->granted_ns + lease->outages_ns) * lease->slots) {
        sim_fail("command %" PRIu64 ": more time is paid than lease %" PRIu64 " has stood",
                 oracle.command, lease->id);
    }
}
