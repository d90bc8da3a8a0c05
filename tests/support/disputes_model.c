#include "tests/support/disputes_model.h"

#include "exchange/account/standing.h"
#include "exchange/state/held.h"
#include "exchange/state/records.h"
#include "exchange/view/disputes.h"
#include "exchange/work/juries.h"
#include "exchange/work/subtask_makers.h"

#include <check.h>

static bool may_judge(const struct exchange *exchange, const struct job *job,
                      const struct held *held, const struct provider *provider)
{
    const bool is_accused = held->accusation.tracked.type != 0;
    return provider->number != job->owner &&
           !standing_have_one_owner(exchange, held->lease->provider, provider->number) &&
           !(is_accused &&
             standing_have_one_owner(exchange, held->accusation.referee, provider->number)) &&
           !jury_overruled(exchange, job, provider->number) &&
           subtask_provider_fits(exchange, provider, &job->parts[job->part_count - 1]);
}

static bool has_referee(const struct exchange *exchange, const struct job *job,
                        const struct held *held)
{
    bool has = false;
    for (const struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        has = has || may_judge(exchange, job, held, LIST_ELEMENT(at, struct provider, all));
    }
    return has;
}

/* Returns false when the pages give no further dispute; else *ret gets the next one. */
static bool next_listed(const struct exchange *exchange, const struct job *job, uint32_t *from,
                        struct exchange_dispute *ret_row)
{
    uint32_t next = *from;
    size_t count = 0;
    do {
        *from = next;
        count = exchange_disputes(exchange, &job->id, *from, ret_row, 1, &next);
        ck_assert(next == 0 || (next > *from && next - *from <= EXCHANGE_DISPUTES_LOOKS));
    } while (count == 0 && next > 0);
    *from = next > 0 ? next : UINT32_MAX;
    return count > 0;
}

uint32_t disputes_model_check(const struct exchange *exchange, const struct id128 *id)
{
    const struct job *job = table_find(&exchange->jobs, id);
    struct exchange_dispute row;
    uint32_t from = 0;
    uint32_t accused = 0;
    uint32_t for_client = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; job != NULL && held_for_check(job, i); i++) {
        const struct held *held = job->checks->held[i];
        const bool is_accused = held != NULL && held->accusation.tracked.type != 0;
        if (held == NULL || (!is_accused && !jury_has_overruled(job))) {
            continue;
        }
        const bool has = has_referee(exchange, job, held);
        if (!is_accused && has) {
            continue;
        }
        ck_assert(next_listed(exchange, job, &from, &row));
        ck_assert_uint_eq(row.index, i);
        ck_assert_uint_eq(row.attempt, held->attempt);
        ck_assert(row.has_referee == has);
        ck_assert_uint_eq(row.maker, held->lease->provider);
        ck_assert_uint_eq(row.accuser, is_accused ? held->accusation.referee : EXCHANGE_NO_ACCOUNT);
        accused += is_accused;
        for_client += !has;
        count++;
    }
    ck_assert(job == NULL || from == UINT32_MAX || !next_listed(exchange, job, &from, &row));
    const struct exchange_dispute_counts counts = exchange_dispute_counts(exchange, id);
    ck_assert(!counts.is_partial);
    ck_assert_uint_eq(counts.accused, accused);
    ck_assert_uint_eq(counts.for_client, for_client);
    return count;
}
