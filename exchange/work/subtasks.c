#include "exchange/work/subtasks.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/state/held.h"
#include "exchange/state/job_records.h"
#include "exchange/state/parts.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/graph.h"
#include "exchange/work/held_results.h"
#include "exchange/work/juries.h"
#include "exchange/work/subtask_makers.h"
#include "exchange/work/work_checkpoint.h"

#include <assert.h>

void subtask_becomes(struct exchange *exchange, struct job *job, uint32_t index,
                     enum subtask_state to)
{
    struct part *part = part_of(job, index);
    struct subtask *subtask = job_subtask(exchange, job, index);
    const bool was_waiting = subtask->state == SUBTASK_WAITING;
    *job_tally(job, subtask->state) -= 1;
    part->waiting -= was_waiting;
    part->running -= subtask->state == SUBTASK_RUNNING;
    part->checking -= subtask->state == SUBTASK_CHECKING;
    subtask_move(&subtask->state, to);
    part->decided += to >= SUBTASK_ACCEPTED;
    *job_tally(job, subtask->state) += 1;
    part->waiting += to == SUBTASK_WAITING;
    part->running += to == SUBTASK_RUNNING;
    part->checking += to == SUBTASK_CHECKING;
    if (to == SUBTASK_WAITING) {
        jury_waits(exchange, job, index);
    } else if (was_waiting) {
        jury_waits_no_more(exchange, job, index);
    }
}

/* Nobody proved the result wrong, and nobody will look at it again. */
static void check_failed(struct exchange *exchange, struct job *job, uint32_t index)
{
    const struct held *held = held_of_check(job, index);
    if (held != NULL) {
        const uint32_t checked = held->index;
        held_settle(exchange, job, checked, XATTEMPT_FAILED_PAID, NULL);
        job->unjudged++;
        subtask_decide(exchange, job, checked, SUBTASK_FAILED);
    }
}

void subtask_decide(struct exchange *exchange, struct job *job, uint32_t index,
                    enum subtask_state to)
{
    assert(to == SUBTASK_ACCEPTED || to == SUBTASK_FAILED);
    struct subtask *subtask = job_subtask(exchange, job, index);
    subtask_becomes(exchange, job, index, to);
    job_subtask_changed(exchange, job, index);
    if (subtask->attempts > 1) {
        attempts_withdraw_others(exchange, job, index); /* the first accepted wins */
    }
    work_checkpoint_drop(exchange, job, index);
    jury_dismiss(exchange, job, index);
    if (job->graph != NULL) {
        graph_decided(exchange, job, index, to);
    }
    if (to == SUBTASK_FAILED) {
        check_failed(exchange, job, index);
    }
    part_look_if_over(exchange, part_of(job, index));
}

void subtask_requeue(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct part *part = part_of(job, index);
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (subtask->state == SUBTASK_RUNNING && job->is_closing) {
        subtask_becomes(exchange, job, index, SUBTASK_CANCELLED);
        if (job->graph != NULL) {
            graph_decided(exchange, job, index, SUBTASK_CANCELLED);
        }
    } else if (subtask->state == SUBTASK_RUNNING || subtask->state == SUBTASK_CHECKING) {
        subtask_becomes(exchange, job, index, SUBTASK_WAITING);
        if (list_empty(&part->spread)) {
            list_append(&exchange->spreads, &part->spread);
        }
    }
    if (part_is_checks(part)) {
        if (subtask->state == SUBTASK_WAITING) {
            check_requeue(exchange, job, index);
        }
    } else if (subtask->state == SUBTASK_WAITING && subtask->queued == 0) {
        subtask->queued = 1;
        subtask->next = NO_SUBTASK;
        if (part->retry_tail == NO_SUBTASK) {
            part->retry_head = index;
        } else {
            job_subtask(exchange, job, part->retry_tail)->next = index;
            job_subtask_changed(exchange, job, part->retry_tail);
        }
        part->retry_tail = index;
    }
    job_subtask_changed(exchange, job, index);
}

/* The subtask has waited long. It fails when everybody who could make it has judged it. */
static void look(struct exchange *exchange, struct job *job, struct jury *jury)
{
    const uint32_t index = jury->index;
    if (!jury_subtask_waits(jury)) { /* before rules 19 a look outlived the waiting */
        jury_forget_look(exchange, jury);
        return;
    }
    if (subtask_has_maker(exchange, job, index)) {
        jury_look_later(exchange, jury);
        return;
    }
    struct jury *all = jury_put(exchange, job, NO_SUBTASK);
    if (all != NULL) {
        all->unmade++;
        tracking_touch(exchange, &all->tracked);
    }
    subtask_decide(exchange, job, index, SUBTASK_FAILED); /* this frees the jury */
}

void subtask_juries_due(struct exchange *exchange, struct job *job, int64_t at_ns)
{
    for (struct jury *jury = jury_first_look(job); jury != NULL && jury->look_ns <= at_ns;
         jury = jury_first_look(job)) {
        look(exchange, job, jury);
    }
}

void subtask_try_again(struct exchange *exchange, struct job *job, uint32_t index)
{
    const struct subtask *subtask = job_subtask(exchange, job, index);
    if (subtask->live > 0) {
        return; /* another attempt of it is under way */
    }
    if (subtask->attempts >= ATTEMPTS_MOST && subtask->state == SUBTASK_RUNNING) {
        subtask_decide(exchange, job, index, SUBTASK_FAILED);
    } else {
        subtask_requeue(exchange, job, index);
    }
}
