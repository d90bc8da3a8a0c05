/* Juries list the accounts that judged a subtask of a job with checks, and the referees that the
 * job asks no more. An owner that judged a subtask never makes it, and an overruled owner gets no
 * more checks of that job. A jury is kept until its subtask is decided. subtask_may_run_on decides,
 * and all code that places a subtask asks it.
 *
 * Two indexes follow from the juries of waiting subtasks, so that many of them cost a dispatch no
 * more than few. The bars of a part count the subtasks that each owner may not make. A bar also
 * marks how far the queue of retries holds nothing for its owner. The looks of a job are its juries
 * in the order in which they are due. */
#include "exchange/work/juries.h"

#include "exchange/account/standing.h"
#include "exchange/lifecycle.h"
#include "exchange/state/held.h"
#include "exchange/state/job_records.h"
#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/state/timers.h"
#include "exchange/state/tracking.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- records */

static struct jury **place_of(const struct job *job, uint32_t index)
{
    return index == NO_SUBTASK ? &job->checks->overruled : &job->checks->juries[index];
}

struct jury *jury_first_look(const struct job *job)
{
    const struct list_link *looks = &job->checks->looks;
    return list_empty(looks) ? NULL : LIST_ELEMENT(looks->next, struct jury, looks);
}

/* A job has a timer for the look that is due first. When that look goes, the next one gets its
 * timer here, unless both are due at once. A closing job has no more looks. */
static void look_take_off(struct exchange *exchange, struct jury *jury)
{
    const struct job *job = jury->job;
    const bool was_first =
        !job->is_closing && !list_empty(&jury->looks) && jury_first_look(job) == jury;
    list_remove(&jury->looks);
    const struct jury *first = was_first ? jury_first_look(job) : NULL;
    if (first != NULL && first->look_ns != jury->look_ns) {
        timer_arm(exchange, TIMER_JOB, &job->id, first->look_ns);
    }
}

static void jury_drop(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct jury **place = place_of(job, index);
    if (*place != NULL) {
        look_take_off(exchange, *place);
        list_remove(&(*place)->all);
        tracking_remove(exchange, &(*place)->tracked);
        free(*place);
        *place = NULL;
    }
}

void jury_dismiss(struct exchange *exchange, struct job *job, uint32_t index)
{
    if (held_for_check(job, index)) {
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
        struct jury *jury = memory_allocate(exchange, sizeof *jury);
        if (jury == NULL) {
            return NULL;
        }
        jury->job = job;
        jury->index = index;
        list_init(&jury->looks);
        list_append(&job->checks->all_juries, &jury->all);
        tracking_add(exchange, &jury->tracked, RECORD_JURY);
        *place = jury;
    }
    return *place;
}

bool jury_has_member(const struct exchange *exchange, const struct jury *jury, uint32_t account)
{
    bool has = false;
    for (uint32_t i = 0; jury != NULL && !has && i < jury->count; i++) {
        has = standing_have_one_owner(exchange, jury->accounts[i], account);
    }
    return has;
}

/* A full list drops its oldest entry. A subtask is given up before that; of the overruled referees,
 * the first has been left out for longest. */
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
    tracking_touch(exchange, &jury->tracked);
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

void jury_overrule(struct exchange *exchange, struct job *job, uint32_t referee)
{
    add(exchange, job, NO_SUBTASK, referee);
    account_overruled(exchange, referee);
}

bool jury_has_overruled(const struct job *job)
{
    return job->checks->overruled != NULL && job->checks->overruled->count > 0;
}

bool jury_overruled(const struct exchange *exchange, const struct job *job, uint32_t referee)
{
    return jury_has_member(exchange, job->checks->overruled, referee);
}

/* ---------------------------------------------------------------- whom what waits is not for */

/* Returns NULL when the owner may make everything that waits in the part. */
static struct bar *bar_of(const struct exchange *exchange, const struct part *part,
                          uint32_t account)
{
    const struct checks *checks = part->job->checks;
    const struct list_link *bars = checks == NULL ? NULL : &checks->bars[part->number];
    for (struct list_link *at = bars == NULL ? NULL : bars->next; at != bars; at = at->next) {
        struct bar *bar = LIST_ELEMENT(at, struct bar, of_part);
        if (standing_have_one_owner(exchange, bar->account, account)) {
            return bar;
        }
    }
    return NULL;
}

static struct bar *bar_put(struct exchange *exchange, const struct part *part, uint32_t account)
{
    struct bar *bar = bar_of(exchange, part, account);
    if (bar != NULL) {
        return bar;
    }
    bar = memory_allocate(exchange, sizeof *bar);
    if (bar != NULL) {
        *bar = (struct bar){.account = account, .passed = NO_SUBTASK};
        list_append(&part->job->checks->bars[part->number], &bar->of_part);
    }
    return bar;
}

/* Two accounts of one owner count once. */
static bool is_first_of_owner(const struct exchange *exchange, const struct jury *jury, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++) {
        if (standing_have_one_owner(exchange, jury->accounts[i], jury->accounts[at])) {
            return false;
        }
    }
    return true;
}

static void bars_add(struct exchange *exchange, const struct jury *jury)
{
    const struct part *part = part_of(jury->job, jury->index);
    for (uint32_t i = 0; i < jury->count; i++) {
        if (is_first_of_owner(exchange, jury, i)) {
            struct bar *bar = bar_put(exchange, part, jury->accounts[i]);
            if (bar != NULL) {
                bar->waiting++;
            }
        }
    }
}

static void bar_free(struct bar *bar)
{
    list_remove(&bar->of_part);
    free(bar);
}

static void bars_take_off(const struct exchange *exchange, const struct jury *jury)
{
    const struct part *part = part_of(jury->job, jury->index);
    for (uint32_t i = 0; i < jury->count; i++) {
        struct bar *bar =
            is_first_of_owner(exchange, jury, i) ? bar_of(exchange, part, jury->accounts[i]) : NULL;
        if (bar != NULL && --bar->waiting == 0) {
            bar_free(bar);
        }
    }
}

static void bars_free(struct job *job)
{
    for (uint32_t i = 0; job->checks->bars != NULL && i < job->part_count; i++) {
        while (!list_empty(&job->checks->bars[i])) {
            bar_free(LIST_ELEMENT(job->checks->bars[i].next, struct bar, of_part));
        }
    }
}

bool jury_subtask_waits(const struct jury *jury)
{
    const uint32_t index = jury->index;
    const struct page *page = index == NO_SUBTASK ? NULL : jury->job->pages[index / PAGE_SUBTASKS];
    return page != NULL && page->subtasks[index % PAGE_SUBTASKS].state == SUBTASK_WAITING;
}

static void bars_count(struct exchange *exchange, struct job *job)
{
    bars_free(job);
    for (const struct list_link *at = job->checks->all_juries.next; at != &job->checks->all_juries;
         at = at->next) {
        const struct jury *jury = LIST_ELEMENT(at, struct jury, all);
        if (jury_subtask_waits(jury)) {
            bars_add(exchange, jury);
        }
    }
}

void juries_regroup(struct exchange *exchange, struct job *job)
{
    if (job->checks != NULL) {
        bars_count(exchange, job);
    }
}

uint32_t jury_barred(const struct exchange *exchange, const struct part *part, uint32_t provider)
{
    const struct bar *bar = bar_of(exchange, part, provider);
    return bar == NULL ? 0 : bar->waiting;
}

uint32_t jury_passed_retries(const struct exchange *exchange, const struct part *part,
                             uint32_t provider)
{
    const struct bar *bar = bar_of(exchange, part, provider);
    return bar == NULL ? NO_SUBTASK : bar->passed;
}

void jury_pass_retries(const struct exchange *exchange, const struct part *part, uint32_t provider,
                       uint32_t last)
{
    struct bar *bar = bar_of(exchange, part, provider);
    if (bar != NULL) {
        bar->passed = last;
    }
}

void jury_retry_unlinked(const struct part *part, uint32_t index, uint32_t before)
{
    const struct checks *checks = part->job->checks;
    const struct list_link *bars = checks == NULL ? NULL : &checks->bars[part->number];
    for (struct list_link *at = bars == NULL ? NULL : bars->next; at != bars; at = at->next) {
        struct bar *bar = LIST_ELEMENT(at, struct bar, of_part);
        bar->passed = bar->passed == index ? before : bar->passed;
    }
}

/* ---------------------------------------------------------------- where nobody is left to make it
 */

static bool is_due_before(const struct jury *a, const struct jury *b)
{
    return a->look_ns != b->look_ns ? a->look_ns < b->look_ns : a->index < b->index;
}

/* Each look is set the same time ahead, so its place is at or near the end. */
static void look_put(struct exchange *exchange, struct jury *jury)
{
    struct list_link *looks = &jury->job->checks->looks;
    struct list_link *behind = looks->previous;
    while (behind != looks && is_due_before(jury, LIST_ELEMENT(behind, struct jury, looks))) {
        behind = behind->previous;
    }
    list_insert_before(behind->next, &jury->looks);
    if (jury_first_look(jury->job) == jury) {
        timer_arm(exchange, TIMER_JOB, &jury->job->id, jury->look_ns);
    }
}

void jury_forget_look(struct exchange *exchange, struct jury *jury)
{
    look_take_off(exchange, jury);
    jury->look_ns = 0;
    tracking_touch(exchange, &jury->tracked);
}

void jury_look_later(struct exchange *exchange, struct jury *jury)
{
    jury_forget_look(exchange, jury);
    jury->look_ns = exchange->now_ns + NOBODY_LEFT_NS;
    look_put(exchange, jury);
}

void jury_waits(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct jury *jury = held_for_check(job, index) ? job->checks->juries[index] : NULL;
    if (jury != NULL) {
        bars_add(exchange, jury);
        jury_look_later(exchange, jury);
    }
}

void jury_waits_no_more(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct jury *jury = held_for_check(job, index) ? job->checks->juries[index] : NULL;
    if (jury != NULL) {
        bars_take_off(exchange, jury);
        jury_forget_look(exchange, jury);
    }
}

bool jury_lacks_maker(const struct job *job)
{
    return job->checks != NULL && job->checks->overruled != NULL &&
           job->checks->overruled->unmade > 0;
}

bool juries_await(const struct job *job, int64_t at_ns)
{
    const struct jury *first = job->checks == NULL ? NULL : jury_first_look(job);
    return first != NULL && first->look_ns == at_ns;
}

void juries_resume(struct exchange *exchange, struct job *job)
{
    for (const struct list_link *at = job_has_juries(job) ? job->checks->all_juries.next : NULL;
         at != NULL && at != &job->checks->all_juries; at = at->next) {
        struct jury *jury = LIST_ELEMENT(at, struct jury, all);
        if (jury_subtask_waits(jury) && jury->look_ns == 0) {
            jury_look_later(exchange, jury);
        }
    }
}

/* ---------------------------------------------------------------- from a snapshot */

static int compare_looks(const void *left, const void *right)
{
    const struct jury *const *a = left;
    const struct jury *const *b = right;
    return is_due_before(*b, *a) - is_due_before(*a, *b);
}

void juries_restore(struct exchange *exchange, struct job *job)
{
    struct jury **due = memory_allocate(exchange, job->subtasks * sizeof *due);
    size_t count = 0;
    for (struct list_link *at = job->checks->all_juries.next;
         due != NULL && at != &job->checks->all_juries; at = at->next) {
        struct jury *jury = LIST_ELEMENT(at, struct jury, all);
        if (jury->look_ns != 0) {
            due[count++] = jury;
        }
    }
    if (count > 0) {
        qsort(due, count, sizeof *due, compare_looks);
    }
    for (size_t i = 0; i < count; i++) {
        look_put(exchange, due[i]);
    }
    free(due);
    bars_count(exchange, job);
}

void juries_free(struct job *job)
{
    struct checks *checks = job->checks;
    bars_free(job);
    free(checks->bars);
    while (!list_empty(&checks->all_juries)) {
        struct jury *jury = LIST_ELEMENT(checks->all_juries.next, struct jury, all);
        list_remove(&jury->all);
        list_remove(&jury->looks);
        free(jury);
    }
    free(checks->juries);
}
