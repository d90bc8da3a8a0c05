#include "exchange/view/disputes.h"

#include "exchange/account/standing.h"
#include "exchange/state/held.h"
#include "exchange/state/steps.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/check_seeds.h"
#include "exchange/work/juries.h"
#include "exchange/work/subtask_makers.h"

enum {
    REFEREES_ENOUGH = 3, /* a result has two parties at most: its maker and its accuser */
    /* Parts of a walk cost these steps. A held result and its lease lie in memory of their own. */
    SLOT_STEPS = 1,
    HELD_STEPS = 4,
    PROVIDER_STEPS = 4,
    LEASE_STEPS = 2,
    ROW_STEPS = 64, /* the hash of its seed */
};

/* Referees of different owners that may judge results of the job, unless they are a party. */
struct referees {
    uint32_t accounts[REFEREES_ENOUGH];
    uint32_t count;
};

static bool is_of_another_owner(const struct exchange *exchange, const struct referees *referees,
                                uint32_t account)
{
    for (uint32_t i = 0; i < referees->count; i++) {
        if (standing_have_one_owner(exchange, referees->accounts[i], account)) {
            return false;
        }
    }
    return true;
}

/* Prices, busy slots and avoidance do not count, since all of them change. */
static struct referees referees_of(const struct exchange *exchange, const struct job *job)
{
    const struct part *checks = &job->parts[job->part_count - 1];
    const struct jury *overruled = job->checks->overruled;
    const uint64_t steps = PROVIDER_STEPS + (overruled == NULL ? 0 : overruled->count);
    struct referees referees = {.count = 0};
    for (const struct list_link *at = exchange->provider_list.next;
         at != &exchange->provider_list && referees.count < REFEREES_ENOUGH; at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        steps_add(exchange, steps);
        if (provider->number != job->owner &&
            is_of_another_owner(exchange, &referees, provider->number) &&
            !jury_overruled(exchange, job, provider->number) &&
            subtask_provider_fits(exchange, provider, checks)) {
            referees.accounts[referees.count++] = provider->number;
        }
    }
    return referees;
}

static bool has_referee(const struct exchange *exchange, const struct referees *referees,
                        uint32_t maker, uint32_t accuser)
{
    for (uint32_t i = 0; i < referees->count; i++) {
        if (!check_is_party(exchange, maker, accuser, referees->accounts[i])) {
            return true;
        }
    }
    return false;
}

static bool is_disputed(const struct exchange *exchange, const struct job *job,
                        const struct referees *referees, const struct held *held)
{
    return held_accuser(held) != EXCHANGE_NO_ACCOUNT ||
           (jury_has_overruled(job) &&
            !has_referee(exchange, referees, held->lease->provider, EXCHANGE_NO_ACCOUNT));
}

/* A result that nobody accuses waits for a referee like any job, unless one was overruled. */
static const struct job *job_with_disputes(const struct exchange *exchange, const struct id128 *id)
{
    const struct job *job = table_find(&exchange->jobs, id);
    const bool has =
        job != NULL && job->checks != NULL && (job->checks->accused > 0 || jury_has_overruled(job));
    return has ? job : NULL;
}

size_t exchange_disputes(const struct exchange *exchange, const struct id128 *id, uint32_t from,
                         struct exchange_dispute *ret_rows, size_t limit, uint32_t *ret_next)
{
    const struct job *job = job_with_disputes(exchange, id);
    const uint32_t end = job == NULL ? 0 : held_first_check(job);
    const struct referees referees =
        from < end ? referees_of(exchange, job) : (struct referees){.count = 0};
    size_t count = 0;
    uint32_t i = from;
    for (; i < end && i - from < EXCHANGE_DISPUTES_LOOKS && count < limit; i++) {
        const struct held *held = job->checks->held[i];
        steps_add(exchange, held == NULL ? SLOT_STEPS : HELD_STEPS);
        if (held == NULL || !is_disputed(exchange, job, &referees, held)) {
            continue;
        }
        const uint32_t maker = held->lease->provider;
        const uint32_t accuser = held_accuser(held);
        steps_add(exchange, ROW_STEPS);
        ret_rows[count++] = (struct exchange_dispute){
            .index = i,
            .attempt = held->attempt,
            .maker = maker,
            .accuser = accuser,
            .result = held->hash,
            .seed = check_seed_of_held(job, held),
            .bytes = held->bytes,
            .length = held->length,
            .has_referee = has_referee(exchange, &referees, maker, accuser)};
    }
    if (ret_next != NULL) {
        *ret_next = i < end ? i : 0;
    }
    return count;
}

/* Counts all held results of makers whom nobody may judge. A lease knows how many of its results
 * are held. */
static uint32_t count_of_makers(const struct exchange *exchange, const struct job *job,
                                const struct referees *referees)
{
    uint32_t count = 0;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        steps_add(exchange, LEASE_STEPS);
        count += lease->held_count > 0 &&
                         !has_referee(exchange, referees, lease->provider, EXCHANGE_NO_ACCOUNT)
                     ? lease->held_count
                     : 0;
    }
    return count;
}

struct exchange_dispute_counts exchange_dispute_counts(const struct exchange *exchange,
                                                       const struct id128 *id)
{
    const struct job *job = job_with_disputes(exchange, id);
    if (job == NULL) {
        return (struct exchange_dispute_counts){.accused = 0};
    }
    const struct checks *checks = job->checks;
    const struct referees referees = referees_of(exchange, job);
    const bool counts_makers = jury_has_overruled(job);
    struct exchange_dispute_counts counts = {
        .accused = checks->accused,
        .for_client = counts_makers ? count_of_makers(exchange, job, &referees) : 0};
    uint32_t looks = 0;
    const struct list_link *at = checks->accusations.next;
    for (; at != &checks->accusations && looks < EXCHANGE_DISPUTES_COUNTED; at = at->next) {
        const struct held *held = LIST_ELEMENT(at, struct held, of_accused);
        const uint32_t maker = held->lease->provider;
        const bool is_counted =
            counts_makers && !has_referee(exchange, &referees, maker, EXCHANGE_NO_ACCOUNT);
        looks++;
        steps_add(exchange, HELD_STEPS);
        counts.for_client +=
            !is_counted && !has_referee(exchange, &referees, maker, held_accuser(held));
    }
    counts.is_partial = at != &checks->accusations;
    return counts;
}
