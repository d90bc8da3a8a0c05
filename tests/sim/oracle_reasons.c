/* The oracle checks by its own books whether the exchange gives a true reason for an open job. */
#include "tests/sim/oracle_models.h"

#include "matching/book.h"
#include "protocol/limits.h"
#include "protocol/message.h"

/* Returns true when the exchange's reason for an open job is true of this part, by the oracle's own
 * books. */
static bool is_true_of(const struct seen_bid *bid, uint32_t reason)
{
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    bool fits = false;
    bool asks = false;
    bool affordable = false;
    bool bearable = false; /* and of that, whatever is taken from it */
    bool is_own = false;   /* one fits that may judge nothing of what waits */
    for (uint32_t i = 0; i < oracle.devices.count; i++) {
        const struct seen_device *device = &oracle.devices.items[i];
        if (!device->is_advertised || device->slots < bid->width ||
            device->provider == job->owner ||
            (bid->rate != RATE_NONE &&
             rate_of(bid->rate, device->attributes, device->attribute_count) == 0) ||
            (bid->is_checks && !oracle_is_referee(device->provider)) ||
            !requirement_satisfied(&bid->needs, device->attributes, device->attribute_count)) {
            continue;
        }
        if (oracle_made_all(bid, device->provider)) {
            is_own = true;
            continue;
        }
        if (!bid->is_checks && checks_model_judged(&oracle.checks, &job->id, device->provider)) {
            return true; /* whether it judged all that waits, these books do not say */
        }
        fits = true;
        const struct seen_ask *ask = device->ask == 0 ? NULL : &oracle.asks.items[device->ask - 1];
        if (ask == NULL || ask->slots < bid->width || !oracle_is_open(ask) ||
            !oracle_is_for(ask, job->owner) ||
            (ask->max_term_ns != 0 && ask->max_term_ns < bid->term_ns)) {
            continue;
        }
        asks = true;
        const bool is_affordable = ask->price <= oracle_limit_in(bid, device);
        affordable = affordable || is_affordable;
        bearable = bearable || (is_affordable && (!ask->terms.is_interruptible ||
                                                  job->interrupted < job->interruptions));
    }
    switch ((enum job_reason)reason) {
    case JOB_REASON_NO_DEVICE:
        return !fits && !is_own;
    case JOB_REASON_REFEREE:
        return !fits && is_own;
    case JOB_REASON_NO_ASK:
        return fits && !asks;
    case JOB_REASON_PRICE:
        return asks && !affordable;
    case JOB_REASON_WHOLE_BUDGET:
        return asks && !affordable && job->type == EXCHANGE_ALL_OR_NONE;
    case JOB_REASON_FIRM:
        return affordable && !bearable;
    case JOB_REASON_BUDGET:
    case JOB_REASON_NOT_WHOLE:
        return bearable;
    case JOB_REASON_NONE:
    case JOB_REASON_BUSY:
    case JOB_REASON_HALTED:
    case JOB_REASON_SUBTASKS_FAILED:
    case JOB_REASON_ERROR_LIMIT:
    case JOB_REASON_CANCELLED:
    case JOB_REASON_RUNNING:
    case JOB_REASON_PROVIDERS_FAILED:
    case JOB_REASON_AVOIDED:
    case JOB_REASON_NO_VERDICT:
    case JOB_REASON_EXPIRED:
    case JOB_REASON_DEADLINE:
    case JOB_REASON_LATE:
    case JOB_REASON_PROMISED:
    case JOB_REASON_NOT_FILLED:
    case JOB_REASON_LEASES_OVER:
    case JOB_REASON_NO_MAKER:
        break;
    }
    return false; /* in a calm market none of these lasts */
}

static bool is_true(const struct seen_job *job, uint32_t reason)
{
    for (uint32_t i = 0; i < job->bid_count; i++) {
        const struct seen_bid *bid = &oracle.bids.items[job->bids[i]];
        if (bid->row.waiting > 0 && is_true_of(bid, reason)) {
            return true;
        }
    }
    return false;
}

static bool may_make(const struct seen_bid *bid, uint32_t index, const struct seen_device *device)
{
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    return device->is_advertised && device->slots >= bid->width && device->provider != job->owner &&
           (bid->rate == RATE_NONE ||
            rate_of(bid->rate, device->attributes, device->attribute_count) != 0) &&
           requirement_satisfied(&bid->needs, device->attributes, device->attribute_count) &&
           !checks_model_bars(&oracle.checks, &job->id, index, device->provider);
}

static bool has_maker(const struct seen_bid *bid, uint32_t index)
{
    bool has = false;
    for (uint32_t i = 0; i < oracle.devices.count && !has; i++) {
        has = may_make(bid, index, &oracle.devices.items[i]);
    }
    return has;
}

/* Returns true when a judged subtask waits and all who could make it are among its judges. The job
 * has a minute to notice. One that lasts does not end, and has to. */
static bool lacks_maker(const struct seen_job *job)
{
    static uint8_t states[LIMIT_GRAPH_SUBTASKS];
    static uint32_t tries[LIMIT_GRAPH_SUBTASKS];
    const size_t count =
        exchange_subtasks(oracle.exchange, &job->id, states, tries, LIMIT_GRAPH_SUBTASKS);
    for (uint32_t i = 0; i < job->bid_count; i++) {
        const struct seen_bid *bid = &oracle.bids.items[job->bids[i]];
        for (uint32_t index = bid->first; !bid->is_checks && index < bid->end; index++) {
            const bool waits = index < count && states[index] == SUBTASK_NOW_WAITING;
            if (waits && tries[index] > 0 &&
                checks_model_was_judged(&oracle.checks, &job->id, index) &&
                !has_maker(bid, index)) {
                return true;
            }
        }
    }
    return false;
}

size_t oracle_stuck_jobs(void)
{
    size_t stuck = 0;
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        const struct seen_job *job = &oracle.jobs.items[i];
        struct exchange_job_row row;
        if (job->is_settled || !exchange_job(oracle.exchange, &job->id, &row)) {
            continue;
        }
        if (lacks_maker(job) || !is_true(job, row.reason)) {
            stuck++;
            trace("job %02x%02x is open: reason %u, %u wait, %u run", job->id.bytes[0],
                  job->id.bytes[1], row.reason, row.waiting, row.running);
        }
    }
    return stuck;
}
