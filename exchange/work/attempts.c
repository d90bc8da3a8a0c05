#include "exchange/work/attempts.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/state/effects.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/tracking.h"
#include "exchange/work/check_seeds.h"
#include "exchange/work/graph.h"
#include "exchange/work/work_checkpoint.h"

#include <assert.h>
#include <stdlib.h>

struct exchange_work attempt_work(const struct lease *lease, const struct attempt *attempt)
{
    return (struct exchange_work){.lease = lease->id,
                                  .index = attempt->key.index,
                                  .attempt = attempt->key.attempt,
                                  .lane = attempt->lane};
}

void attempt_effect(struct exchange *exchange, struct lease *lease, struct attempt *attempt,
                    enum exchange_effect_type type)
{
    struct exchange_work work = attempt_work(lease, attempt);
    if (type == EFFECT_DISPATCH) {
        work_checkpoint_give(exchange, attempt, &work);
        tracking_touch(exchange, &lease->tracked);
        graph_give(exchange, lease->job, attempt->key.index, &work);
        work.seed = check_seed(lease->job, attempt->key.index, attempt->key.attempt);
        work.checked = check_subject(lease->job, attempt->key.index);
    }
    effect_emit(exchange, type, lease->provider)->work = work;
}

struct attempt *attempt_of(const struct exchange *exchange, const struct job *job, uint32_t index,
                           uint32_t number)
{
    const struct attempt_key key = {.job = job->order, .index = index, .attempt = number};
    return table_find(&exchange->attempts, &key);
}

struct attempt *attempt_find(const struct exchange *exchange, const struct lease *lease,
                             uint32_t index, uint32_t number)
{
    struct attempt *attempt = attempt_of(exchange, lease->job, index, number);
    return attempt != NULL && attempt->lease == lease ? attempt : NULL;
}

bool attempt_put(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    attempt->key.job = lease->job->order;
    attempt->lease = lease;
    if (table_find(&exchange->attempts, &attempt->key) != NULL ||
        !table_insert(&exchange->attempts, attempt)) {
        return false;
    }
    list_append(&lease->attempts, &attempt->of_lease);
    exchange->attempt_count++;
    return true;
}

void attempt_drop(struct exchange *exchange, struct attempt *attempt)
{
    table_remove(&exchange->attempts, &attempt->key);
    list_remove(&attempt->of_lease);
    exchange->attempt_count--;
    free(attempt);
}

void attempt_fence(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    assert(!attempt->is_fenced);
    attempt->is_fenced = true;
    lease_lane_loses(lease, attempt->lane);
    lease->live--;
    tracking_touch(exchange, &lease->tracked);
    if (!attempt->is_doubted) {
        job_subtask(exchange, lease->job, attempt->key.index)->live--;
        job_subtask_changed(exchange, lease->job, attempt->key.index);
    }
}

void attempt_withdraw(struct exchange *exchange, struct attempt *attempt)
{
    assert(!attempt->is_withdrawn);
    attempt->is_withdrawn = true;
    tracking_touch(exchange, &attempt->lease->tracked);
    attempt_effect(exchange, attempt->lease, attempt, EFFECT_WITHDRAW);
}

void attempts_withdraw_all(struct exchange *exchange, struct lease *lease)
{
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        if (!attempt->is_fenced && !attempt->is_withdrawn) {
            attempt_withdraw(exchange, attempt);
        }
    }
}

void attempts_withdraw_others(struct exchange *exchange, struct job *job, uint32_t index)
{
    uint32_t attempts = job_subtask(exchange, job, index)->attempts;
    for (uint32_t number = 1; number <= attempts; number++) {
        struct attempt *attempt = attempt_of(exchange, job, index, number);
        if (attempt == NULL || attempt->is_fenced || attempt->is_withdrawn) {
            continue; /* the attempt ended, was given up, or is being withdrawn already */
        }
        attempt_withdraw(exchange, attempt);
    }
}
