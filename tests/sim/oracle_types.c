/* Orders that are to be filled at once, wholly or not at once: what is immediate or cancel never
 * rests, what is fill or kill has all of its lanes in its own command or no lease ever, what is all
 * or none has none before it has all, and what is post-only meets nothing when it arrives, and
 * takes no lease. */
#include "tests/sim/oracle_models.h"

#include <inttypes.h>

static bool is_new(const struct seen_job *job)
{
    return job->submitted_at == oracle.command;
}

void oracle_check_fill_of_type(struct seen_job *job, struct seen_bid *bid,
                               const struct seen_ask *ask, uint32_t lanes)
{
    const bool is_at_once = job->type == EXCHANGE_IOC || job->type == EXCHANGE_FOK;
    const bool met_at_once = /* not what came free in the same command */
        ask != NULL && oracle.devices.items[ask->device].freed_at != oracle.command;
    job->is_filled = true;
    if (is_at_once && (!is_new(job) || ask == NULL)) {
        sim_fail("command %" PRIu64 " fills job %02x%02x later than at once", oracle.command,
                 job->id.bytes[0], job->id.bytes[1]);
    }
    if (job->type == EXCHANGE_ALL_OR_NONE && job->whole_at == 0) {
        job->whole_at = oracle.command;
    }
    if (job->type == EXCHANGE_POST_ONLY && ask == NULL) {
        sim_fail("command %" PRIu64 ": a post-only job takes a lease", oracle.command);
    }
    if (job->type == EXCHANGE_POST_ONLY && is_new(job) && met_at_once) {
        sim_fail("command %" PRIu64 " fills a post-only job when it arrives", oracle.command);
    }
    const bool is_at_whole = job->type == EXCHANGE_FOK ||
                             (job->type == EXCHANGE_ALL_OR_NONE && job->whole_at == oracle.command);
    if (met_at_once && ask->type == EXCHANGE_POST_ONLY && ask->placed_at == oracle.command &&
        !is_at_whole) {
        sim_fail("command %" PRIu64 " fills a post-only ask when it arrives", oracle.command);
    }
    bid->lanes_at_once += is_at_whole && ask != NULL ? lanes : 0;
}

void oracle_take_of_type(const struct seen_lease *lease)
{
    struct seen_bid *bid = &oracle.bids.items[lease->bid];
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    const bool is_at_whole = (job->type == EXCHANGE_FOK && is_new(job)) ||
                             (job->type == EXCHANGE_ALL_OR_NONE && job->whole_at == oracle.command);
    bid->lanes_taken_at_once += is_at_whole && lease->former == 0 ? lease->slots / lease->width : 0;
}

/* Each part got all the lanes that it can use. */
static bool is_whole(const struct seen_job *job)
{
    for (uint32_t i = 0; i < job->bid_count; i++) {
        const struct seen_bid *bid = &oracle.bids.items[job->bids[i]];
        const uint32_t most = bid->at_most == 0 ? UINT32_MAX : bid->at_most / bid->width;
        const uint32_t subtasks = bid->end - bid->first;
        const uint32_t wanted = subtasks < most ? subtasks : most;
        if (bid->lanes_at_once < wanted || bid->lanes_at_once - bid->lanes_taken_at_once > wanted) {
            return false;
        }
    }
    return true;
}

static void check_job(const struct seen_job *job)
{
    const bool is_at_once = job->type == EXCHANGE_IOC || job->type == EXCHANGE_FOK;
    for (uint32_t i = 0; i < job->bid_count; i++) {
        const struct seen_bid *bid = &oracle.bids.items[job->bids[i]];
        if (is_at_once && is_new(job) && !bid->is_cancelled) {
            sim_fail("command %" PRIu64 ": the bid of job %02x%02x rests", oracle.command,
                     job->id.bytes[0], job->id.bytes[1]);
        }
        if (!is_at_once && bid->is_unrested) {
            sim_fail("command %" PRIu64 ": a bid that may rest does not", oracle.command);
        }
    }
    if ((job->type == EXCHANGE_FOK && is_new(job) && job->is_filled) ||
        (job->type == EXCHANGE_ALL_OR_NONE && job->whole_at == oracle.command)) {
        if (!is_whole(job)) {
            sim_fail("command %" PRIu64 ": job %02x%02x is filled in part", oracle.command,
                     job->id.bytes[0], job->id.bytes[1]);
        }
        oracle.counts.wholes++;
    }
    if (is_at_once && is_new(job) && !job->is_settled) {
        oracle.counts.unrested++;
    }
    if (job->type == EXCHANGE_FOK && is_new(job) && !job->is_filled) {
        oracle.counts.killed++;
        if (!job->is_settled) {
            sim_fail("command %" PRIu64 ": job %02x%02x is open, and nothing of it was filled",
                     oracle.command, job->id.bytes[0], job->id.bytes[1]);
        }
    }
}

void oracle_check_types(void)
{
    for (uint32_t i = 0; i < oracle.jobs.count; i++) {
        const struct seen_job *job = &oracle.jobs.items[i];
        if (job->type != EXCHANGE_LIMIT && job->type != EXCHANGE_MARKET &&
            (is_new(job) || !job->is_settled)) {
            check_job(job);
        }
    }
    for (; oracle.first_new_ask < oracle.asks.count; oracle.first_new_ask++) {
        const struct seen_ask *ask = &oracle.asks.items[oracle.first_new_ask];
        oracle.counts.placed += ask->type != EXCHANGE_LIMIT;
        if (ask->type == EXCHANGE_IOC && ask->stands) {
            sim_fail("command %" PRIu64 ": an ask that is immediate or cancel rests",
                     oracle.command);
        }
    }
}
