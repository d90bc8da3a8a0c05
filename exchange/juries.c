/* Who judged a subtask of a job with checks, and whom its job asks no more. Whoever judged what a
 * subtask left never makes that subtask, and a referee that was overruled gets no more checks of
 * that job: both by owner. A jury is kept until its subtask is decided. */
#include "exchange/state.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- records */

static struct jury **place_of(const struct job *job, uint32_t index)
{
    return index == NO_SUBTASK ? &job->checks->overruled : &job->checks->juries[index];
}

static void jury_drop(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct jury **place = place_of(job, index);
    if (*place != NULL) {
        list_remove(&(*place)->all);
        untrack(exchange, &(*place)->tracked);
        free(*place);
        *place = NULL;
    }
}

void jury_dismiss(struct exchange *exchange, struct job *job, uint32_t index)
{
    if (job_checks(job, index)) {
        jury_drop(exchange, job, index);
    }
}

void juries_drop(struct exchange *exchange, struct job *job)
{
    while (job->checks != NULL && !list_empty(&job->checks->all_juries)) {
        jury_drop(exchange, job,
                  LIST_ELEMENT(job->checks->all_juries.next, struct jury, all)->index);
    }
}

struct jury *jury_put(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct jury **place = place_of(job, index);
    if (*place == NULL) {
        struct jury *jury = allocate(exchange, sizeof *jury);
        if (jury == NULL) {
            return NULL;
        }
        jury->job = job;
        jury->index = index;
        list_append(&job->checks->all_juries, &jury->all);
        track(exchange, &jury->tracked, RECORD_JURY);
        *place = jury;
    }
    return *place;
}

static bool has_member(const struct exchange *exchange, const struct jury *jury, uint32_t account)
{
    bool has = false;
    for (uint32_t i = 0; jury != NULL && !has && i < jury->count; i++) {
        has = have_one_owner(exchange, jury->accounts[i], account);
    }
    return has;
}

/* With the list full, the oldest makes room: a subtask is given up before that, and of the
 * overruled the first has been left out for longest. */
static void add(struct exchange *exchange, struct job *job, uint32_t index, uint32_t account)
{
    struct jury *jury = jury_put(exchange, job, index);
    for (uint32_t i = 0; jury != NULL && i < jury->count; i++) {
        if (jury->accounts[i] == account) {
            return;
        }
    }
    if (jury == NULL) {
        return;
    }
    if (jury->count == JUDGES_MOST) {
        memmove(&jury->accounts[0], &jury->accounts[1],
                (JUDGES_MOST - 1) * sizeof jury->accounts[0]);
        jury->count--;
    }
    jury->accounts[jury->count++] = account;
    touch(exchange, &jury->tracked);
}

/* ---------------------------------------------------------------- judges do not make */

void jury_add(struct exchange *exchange, struct job *job, uint32_t index, uint32_t referee)
{
    add(exchange, job, index, referee);
}

bool jury_is_full(const struct job *job, uint32_t index)
{
    const struct jury *jury = job->checks->juries[index];
    return jury != NULL && jury->count == JUDGES_MOST;
}

bool job_has_juries(const struct job *job)
{
    return job->checks != NULL && !list_empty(&job->checks->all_juries);
}

bool jury_bars(const struct exchange *exchange, const struct job *job, uint32_t index,
               uint32_t provider)
{
    return job_has_juries(job) && job_checks(job, index) &&
           has_member(exchange, job->checks->juries[index], provider);
}

void job_overrules(struct exchange *exchange, struct job *job, uint32_t referee)
{
    add(exchange, job, NO_SUBTASK, referee);
    account_overruled(exchange, referee);
}

bool job_has_overruled(const struct job *job)
{
    return job->checks->overruled != NULL && job->checks->overruled->count > 0;
}

bool job_overruled(const struct exchange *exchange, const struct job *job, uint32_t referee)
{
    return has_member(exchange, job->checks->overruled, referee);
}

/* ---------------------------------------------------------------- where nobody is left to make it */

bool provider_fits(const struct exchange *exchange, const struct provider *provider,
                   const struct part *part)
{
    for (const struct list_link *at = provider->devices.next; at != &provider->devices;
         at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        if (device->is_advertised && device->slots >= part->width &&
            book_class_accepts(exchange->book, part->class_id, device->cell)) {
            return true;
        }
    }
    return false;
}

/* Whatever it asks, and whether it is free or not: prices change, and who is avoided comes back. */
static bool has_maker(const struct exchange *exchange, const struct job *job, uint32_t index)
{
    for (const struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        if (provider->number != job->owner && !jury_bars(exchange, job, index, provider->number) &&
            !member_by_number(exchange, provider->number)->is_frozen &&
            provider_fits(exchange, provider, part_of(job, index))) {
            return true;
        }
    }
    return false;
}

void jury_watch(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct jury *jury = job->checks->juries[index];
    if (jury != NULL) {
        jury->look_ns = exchange->now_ns + NOBODY_LEFT_NS;
        timer_arm(exchange, TIMER_JOB, &job->id, jury->look_ns);
        touch(exchange, &jury->tracked);
    }
}

bool job_lacks_maker(const struct job *job)
{
    return job->checks != NULL && job->checks->overruled != NULL &&
           job->checks->overruled->unmade > 0;
}

bool juries_await(const struct job *job, int64_t at_ns)
{
    bool await = false;
    for (const struct list_link *at = job_has_juries(job) ? job->checks->all_juries.next : NULL;
         at != NULL && !await && at != &job->checks->all_juries; at = at->next) {
        await = LIST_ELEMENT(at, struct jury, all)->look_ns == at_ns;
    }
    return await;
}

void juries_arm(struct exchange *exchange, const struct job *job)
{
    for (const struct list_link *at = job_has_juries(job) ? job->checks->all_juries.next : NULL;
         at != NULL && at != &job->checks->all_juries; at = at->next) {
        const struct jury *jury = LIST_ELEMENT(at, struct jury, all);
        if (jury->look_ns != 0) {
            timer_arm(exchange, TIMER_JOB, &job->id, jury->look_ns);
        }
    }
}

/* The subtask waits, and all who could make it have judged it: it has failed. */
static void look(struct exchange *exchange, struct job *job, struct jury *jury)
{
    const uint32_t index = jury->index;
    jury->look_ns = 0;
    touch(exchange, &jury->tracked);
    if (job_subtask(exchange, job, index)->state != SUBTASK_WAITING) {
        return;
    }
    if (has_maker(exchange, job, index)) {
        jury_watch(exchange, job, index);
        return;
    }
    struct jury *all = jury_put(exchange, job, NO_SUBTASK);
    if (all != NULL) {
        all->unmade++;
        touch(exchange, &all->tracked);
    }
    subtask_decide(exchange, job, index, SUBTASK_FAILED); /* the jury is gone */
}

void juries_due(struct exchange *exchange, struct job *job, int64_t at_ns)
{
    for (struct list_link *at = job_has_juries(job) ? job->checks->all_juries.next : NULL;
         at != NULL && at != &job->checks->all_juries;) {
        struct jury *jury = LIST_ELEMENT(at, struct jury, all);
        at = at->next;
        if (jury->look_ns == at_ns && at_ns != 0) {
            look(exchange, job, jury);
        }
    }
}
