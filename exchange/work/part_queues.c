#include "exchange/work/part_queues.h"

#include "exchange/lifecycle.h"
#include "exchange/state/job_records.h"
#include "exchange/state/parts.h"
#include "exchange/state/steps.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/choice/ready.h"
#include "exchange/work/graph.h"
#include "exchange/work/juries.h"
#include "exchange/work/subtask_makers.h"

static void unlink_retry(struct exchange *exchange, struct part *part, uint32_t index,
                         uint32_t before)
{
    struct job *job = part->job;
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (before == NO_SUBTASK) {
        part->retry_head = subtask->next;
    } else {
        job_subtask(exchange, job, before)->next = subtask->next;
        job_subtask_changed(exchange, job, before);
    }
    part->retry_tail = subtask->next == NO_SUBTASK ? before : part->retry_tail;
    subtask->queued = 0;
    job_subtask_changed(exchange, job, index);
    jury_retry_unlinked(part, index, before);
}

/* Entries whose subtask was accepted meanwhile (a doubted attempt came back) are dropped. */
uint32_t part_next_retry(struct exchange *exchange, struct part *part, uint32_t provider,
                         const struct lateness *late)
{
    struct job *job = part->job;
    uint32_t before = jury_passed_retries(exchange, part, provider);
    uint32_t index =
        before == NO_SUBTASK ? part->retry_head : job_subtask(exchange, job, before)->next;
    bool is_found = false;
    while (index != NO_SUBTASK && !is_found) {
        const struct subtask *subtask = job_subtask(exchange, job, index);
        const uint32_t next = subtask->next;
        const bool is_waiting = subtask->state == SUBTASK_WAITING;
        exchange->totals.retries++;
        if (is_waiting && (!subtask_may_run_on(exchange, job, index, provider) ||
                           lateness_is_late(late, job, index))) {
            before = index;
        } else {
            unlink_retry(exchange, part, index, before);
            is_found = is_waiting;
        }
        index = is_found ? index : next;
    }
    jury_pass_retries(exchange, part, provider, before);
    return index;
}

static struct ready_bound bound_of(const struct lateness *late)
{
    return (struct ready_bound){.exchange = late->exchange,
                                .is_set = late->is_bound && late->is_apart,
                                .pace = late->pace,
                                .most_ns = late->left_ns};
}

bool part_has_resident(const struct part *part, const struct residents *residents,
                       const struct lateness *late)
{
    const struct ready_bound bound = bound_of(late);
    return part->job->graph != NULL && ready_has_resident(part, residents, &bound);
}

uint32_t part_next_fresh(struct exchange *exchange, struct part *part,
                         const struct residents *residents, const struct lateness *late)
{
    struct job *job = part->job;
    const struct ready_bound bound = bound_of(late);
    uint32_t index = NO_SUBTASK;
    if (job->graph != NULL) {
        index = ready_take(part, residents, &bound);
    } else if (part->fresh < part->end) {
        index = part->fresh++;
    }
    return index == NO_SUBTASK || job_subtask(exchange, job, index) == NULL ? NO_SUBTASK : index;
}

uint32_t part_choice(const struct exchange *exchange, const struct part *part, uint32_t provider)
{
    const struct checks *checks = part_is_checks(part) ? part->job->checks : NULL;
    if (checks == NULL) {
        /* Work that a closing job gave up waits no more, but is still counted as barred. */
        const uint32_t barred = jury_barred(exchange, part, provider);
        return part->waiting > barred ? part->waiting - barred : 0;
    }
    uint32_t count = 0;
    for (const struct list_link *at = checks->queues.next; at != &checks->queues; at = at->next) {
        const struct check_queue *queue = LIST_ELEMENT(at, struct check_queue, all);
        steps_add(exchange, 2);
        count += check_may_take(exchange, part, queue, provider) ? queue->count : 0;
    }
    return count;
}
