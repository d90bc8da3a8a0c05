#include "exchange/state.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- subtasks */

struct subtask *job_subtask(struct exchange *exchange, struct job *job, uint32_t index)
{
    assert(index < job->subtasks);
    struct page **page = &job->pages[index / PAGE_SUBTASKS];
    if (*page == NULL) {
        *page = allocate(exchange, sizeof **page);
        if (*page == NULL) {
            return NULL;
        }
        (*page)->job = job;
        (*page)->number = index / PAGE_SUBTASKS;
        track(exchange, &(*page)->tracked, RECORD_PAGE);
    }
    return &(*page)->subtasks[index % PAGE_SUBTASKS];
}

void subtask_changed(struct exchange *exchange, struct job *job, uint32_t index)
{
    touch(exchange, &job->pages[index / PAGE_SUBTASKS]->tracked);
    touch(exchange, &job->tracked);
}

void subtask_decide(struct exchange *exchange, struct job *job, uint32_t index,
                    enum subtask_state to)
{
    assert(to == SUBTASK_ACCEPTED || to == SUBTASK_FAILED);
    struct subtask *subtask = job_subtask(exchange, job, index);
    *(subtask->state == SUBTASK_WAITING ? &job->waiting : &job->running) -= 1;
    *(to == SUBTASK_ACCEPTED ? &job->accepted : &job->failed) += 1;
    subtask_move(&subtask->state, to);
    subtask_changed(exchange, job, index);
    if (subtask->attempts > 1) {
        withdraw_others(exchange, job, index); /* the first accepted wins */
    }
}

void job_requeue(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (subtask->state == SUBTASK_RUNNING) {
        job->running--;
        if (job->is_closing) {
            subtask_move(&subtask->state, SUBTASK_CANCELLED);
            job->cancelled++;
        } else {
            subtask_move(&subtask->state, SUBTASK_WAITING);
            job->waiting++;
            if (list_empty(&job->spread)) {
                list_append(&exchange->spreads, &job->spread);
            }
        }
    }
    if (subtask->state == SUBTASK_WAITING && subtask->queued == 0) {
        subtask->queued = 1;
        subtask->next = NO_SUBTASK;
        if (job->retry_tail == NO_SUBTASK) {
            job->retry_head = index;
        } else {
            job_subtask(exchange, job, job->retry_tail)->next = index;
            subtask_changed(exchange, job, job->retry_tail);
        }
        job->retry_tail = index;
    }
    subtask_changed(exchange, job, index);
}

/* An entry of the retry queue whose subtask was accepted meanwhile (a doubted attempt came back) is passed
 * over. */
uint32_t job_next_retry(struct exchange *exchange, struct job *job)
{
    while (job->retry_head != NO_SUBTASK) {
        uint32_t index = job->retry_head;
        struct subtask *subtask = job_subtask(exchange, job, index);
        job->retry_head = subtask->next;
        if (job->retry_head == NO_SUBTASK) {
            job->retry_tail = NO_SUBTASK;
        }
        subtask->queued = 0;
        subtask_changed(exchange, job, index);
        if (subtask->state == SUBTASK_WAITING) {
            return index;
        }
    }
    return NO_SUBTASK;
}

uint32_t job_next_fresh(struct exchange *exchange, struct job *job)
{
    if (job->fresh < job->subtasks) {
        uint32_t index = job->fresh++;
        return job_subtask(exchange, job, index) == NULL ? NO_SUBTASK : index;
    }
    return NO_SUBTASK;
}

/* ---------------------------------------------------------------- money of a job */

int64_t job_free_micro(const struct job *job)
{
    int64_t left = hold_left(&job->hold) - job->reserved_micro;
    assert(left >= 0); /* leases draw no more than the budget */
    return left;
}

/* Limit of a job's bid: its cap, or what lets the budget buy the planned time, within the price band. */
static int64_t bid_limit(const struct exchange *exchange, const struct exchange_submit *submit)
{
    if (submit->cap_micro >= 0) {
        return submit->cap_micro;
    }
    int128 planned_ns = (int128)submit->expect_ns * submit->subtasks * submit->slots;
    int128 one_lease_ns = (int128)submit->term_ns * submit->slots;
    planned_ns = planned_ns > one_lease_ns ? planned_ns : one_lease_ns;
    int128 limit = (int128)submit->budget_micro * NS_PER_HOUR / planned_ns;
    return limit < exchange->price_band_micro ? (int64_t)limit : exchange->price_band_micro;
}

/* ---------------------------------------------------------------- submitting */

void job_link_owner(struct exchange *exchange, struct job *job)
{
    struct member *owner = member_by_number(exchange, job->owner);
    list_append(&owner->jobs, &job->of_owner);
    owner->job_count++;
}

static struct job *oldest_ended(const struct exchange *exchange)
{
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        if (job->phase != JOB_PHASE_OPEN) {
            return job;
        }
    }
    return NULL;
}

/* At most as many open ones are passed over as an account may have. */
static struct job *oldest_ended_of(const struct member *member)
{
    for (const struct list_link *at = member->jobs.next; at != &member->jobs; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, of_owner);
        if (job->phase != JOB_PHASE_OPEN) {
            return job;
        }
    }
    return NULL;
}

/* Only once nothing can be refused any more: a refusal changes nothing. Nobody's ended jobs go for those of
 * another while there is room for all. */
static void make_room_for_job(struct exchange *exchange)
{
    const struct member *member = sender(exchange);
    struct job *own =
        member->job_count - member->open_jobs >= ENDED_JOBS_KEPT ? oldest_ended_of(member) : NULL;
    if (own != NULL) {
        job_forget(exchange, own);
    }
    struct job *any = exchange->job_count >= exchange->limits.jobs ? oldest_ended(exchange) : NULL;
    if (any != NULL) {
        job_forget(exchange, any);
    }
}

void job_forget(struct exchange *exchange, struct job *job)
{
    assert(job->phase != JOB_PHASE_OPEN);
    while (!list_empty(&job->leases)) {
        lease_forget(exchange, LIST_ELEMENT(job->leases.next, struct lease, of_job));
    }
    table_remove(&exchange->jobs, &job->id);
    list_remove(&job->all);
    list_remove(&job->of_owner);
    list_remove(&job->spread);
    list_remove(&job->front);
    list_remove(&job->report);
    member_by_number(exchange, job->owner)->job_count--;
    exchange->job_count--;
    untrack(exchange, &job->tracked);
    free(job);
}

/* Everything about the command itself; the sender and the market were looked at before. */
static bool submit_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    const int64_t longest_ns = 7 * 24 * NS_PER_HOUR;
    const int64_t band = exchange->price_band_micro;
    const struct {
        const char *field;
        int64_t value, least, most;
        uint32_t code;
    } rules[] = {
        {"subtasks", submit->subtasks, 1, 10000000, XREJECT_QUANTITY},
        {"slots", submit->slots, 1, 4096, XREJECT_QUANTITY},
        {"at_most", submit->at_most, submit->at_most == 0 ? 0 : submit->slots, UINT32_MAX,
         XREJECT_QUANTITY},
        {"limit_ms", submit->limit_ns / NS_PER_MS, 1, longest_ns / NS_PER_MS, XREJECT_QUANTITY},
        {"term_ms", submit->term_ns / NS_PER_MS,
         submit->limit_ns / NS_PER_MS + (submit->limit_ns % NS_PER_MS != 0), longest_ns / NS_PER_MS,
         XREJECT_QUANTITY},
        {"expect_ms", submit->expect_ns / NS_PER_MS, 0, longest_ns / NS_PER_MS, XREJECT_QUANTITY},
        {"cap_micro", submit->cap_micro, -1, band, XREJECT_PRICE},
        {"budget_micro", submit->budget_micro, 1, INT64_MAX, XREJECT_BUDGET},
        {"retries", submit->retries, 0, 100, XREJECT_QUANTITY},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].value < rules[i].least || rules[i].value > rules[i].most) {
            bool is_low = rules[i].value < rules[i].least;
            reject(exchange, rules[i].code, rules[i].field, rules[i].value,
                   is_low ? rules[i].least : rules[i].most);
            return false;
        }
    }
    if (!submit->verify_none) {
        reject(exchange, XREJECT_VERIFY, "verify", 0, 0);
        return false;
    }
    if (!requirement_well_formed(submit->needs)) {
        reject(exchange, XREJECT_REQUIREMENT, "needs", 0, 0);
        return false;
    }
    return true;
}

static bool submit_allowed(struct exchange *exchange, const struct exchange_submit *submit)
{
    const struct member *member = sender(exchange);
    if ((member->roles & XROLE_CONSUMER) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return false;
    }
    if (exchange->is_halted) {
        reject(exchange, XREJECT_HALTED, "market", 0, 0);
        return false;
    }
    if (!submit_in_range(exchange, submit)) {
        return false;
    }
    if (member->open_jobs >= exchange->limits.jobs_per_account) {
        reject(exchange, XREJECT_LIMIT, "jobs_per_account", member->open_jobs,
               exchange->limits.jobs_per_account);
        return false;
    }
    const uint64_t most = exchange->limits.subtasks_per_account;
    if (most != 0 && member->open_subtasks + submit->subtasks > most) {
        reject(exchange, XREJECT_LIMIT, "subtasks_per_account",
               (int64_t)(member->open_subtasks + submit->subtasks), (int64_t)most);
        return false;
    }
    if (exchange->subtask_count + submit->subtasks > exchange->limits.subtasks) {
        reject(exchange, XREJECT_LIMIT, "subtasks", (int64_t)exchange->subtask_count,
               (int64_t)exchange->limits.subtasks);
        return false;
    }
    if (table_find(&exchange->jobs, &exchange->command->id) != NULL) {
        reject(exchange, XREJECT_EXISTS, "id", 0, 0);
        return false;
    }
    int64_t available = accounts_balance(exchange->accounts, member->number).available_micro;
    if (available < submit->budget_micro) {
        reject(exchange, XREJECT_FUNDS, "budget_micro", submit->budget_micro, available);
        return false;
    }
    if (exchange->job_count >= exchange->limits.jobs && oldest_ended(exchange) == NULL) {
        reject(exchange, XREJECT_LIMIT, "jobs", exchange->job_count, exchange->limits.jobs);
        return false;
    }
    return true;
}

static struct job *job_create(struct exchange *exchange, const struct exchange_submit *submit)
{
    struct job *job = allocate(exchange, sizeof *job);
    uint32_t pages = (submit->subtasks + PAGE_SUBTASKS - 1) / PAGE_SUBTASKS;
    struct page **table = job == NULL ? NULL : allocate(exchange, pages * sizeof *table);
    if (table == NULL) {
        free(job);
        return NULL;
    }
    job->id = exchange->command->id;
    job->owner = exchange->command->account;
    copy_name(job->name, submit->name);
    job->manifest = submit->manifest;
    job->subtasks = submit->subtasks;
    job->width = submit->slots;
    job->at_most = submit->at_most;
    job->retries = submit->retries;
    job->error_limit = submit->error_limit;
    job->cap_micro = submit->cap_micro;
    job->bid_micro = bid_limit(exchange, submit);
    job->limit_ns = submit->limit_ns;
    job->term_ns = submit->term_ns;
    job->retry_head = job->retry_tail = NO_SUBTASK;
    job->class_id = NO_CLASS;
    job->waiting = submit->subtasks;
    job->submitted_ns = exchange->now_ns;
    job->pages = table;
    list_init(&job->leases);
    list_init(&job->wanting);
    list_init(&job->spread);
    list_init(&job->front);
    list_init(&job->report);
    list_init(&job->of_owner);
    return job;
}

/* Rests the job's bid. False with the refusal when there is no class or no handle for it. */
static bool job_bid(struct exchange *exchange, struct job *job, const struct requirement *needs)
{
    if (!class_take(exchange, needs, &job->class_id)) {
        return false;
    }
    job->handle = handle_take(exchange, job);
    if (job->handle == BOOK_NONE) {
        class_give(exchange, job->class_id);
        reject(exchange, XREJECT_LIMIT, "orders", 0, exchange->limits.asks + exchange->limits.jobs);
        return false;
    }
    job->sequence = exchange->sequence;
    const struct book_bid bid = {
        .owner = job->owner,
        .class_id = job->class_id,
        .slots = job->width,
        .width = job->width,
        .limit_micro = job->bid_micro,
        .term_ns = job->term_ns,
        .sequence = job->sequence,
    };
    (void)book_rest_bid(exchange->book, job->handle,
                        &bid); /* the handle is within the book's limit */
    if (book_would_self_match(exchange->book, job->handle)) {
        book_remove(exchange->book, job->handle);
        handle_give(exchange, job->handle);
        class_give(exchange, job->class_id);
        reject(exchange, XREJECT_SELF_MATCH, "needs", 0, 0);
        return false;
    }
    exchange->sequence++;
    return true;
}

static void job_records(struct exchange *exchange, const struct job *job)
{
    const struct key32 owner = member_by_number(exchange, job->owner)->key;
    struct ledger_record *record = emit_ledger(exchange, LEDGER_JOB);
    record->job = job->id;
    record->owner = owner;
    record->hash = job->manifest;
    record->subtasks = job->subtasks;
    record->amount_micro = job->hold.amount_micro;
    record->price_micro = job->cap_micro;
    record->width = job->width;
    record->debit = record->credit = job->owner;
    copy_name(record->name, job->name);

    record = emit_ledger(exchange, LEDGER_HOLD);
    record->job = job->id;
    record->debit = record->credit = job->owner;
    record->amount_micro = job->hold.amount_micro;

    record = emit_ledger(exchange, LEDGER_BID);
    record->order = job->id; /* a job's bid bears the job's id */
    record->owner = owner;
    record->job = job->id;
    record->slots = job->at_most != 0 ? job->at_most : UINT32_MAX;
    record->width = job->width;
    record->price_micro = job->bid_micro;
}

void apply_submit(struct exchange *exchange, const struct exchange_submit *submit)
{
    if (!submit_allowed(exchange, submit)) {
        return;
    }
    struct job *job = job_create(exchange, submit);
    if (job == NULL) {
        return;
    }
    if (!job_bid(exchange, job, submit->needs)) {
        free(job->pages);
        free(job);
        return;
    }
    make_room_for_job(exchange);
    struct member *member = sender(exchange);
    enum accounts_status held =
        hold_open(exchange->accounts, job->owner, submit->budget_micro, &job->hold);
    assert(held == ACCOUNTS_OK); /* funds were looked at before */
    if (held != ACCOUNTS_OK || !table_insert(&exchange->jobs, job)) {
        exchange->is_out_of_memory = true;
    }
    job->order = exchange->next_order++;
    list_append(&exchange->job_list, &job->all);
    job_link_owner(exchange, job);
    exchange->job_count++;
    exchange->subtask_count += job->subtasks;
    member->open_subtasks += job->subtasks;
    member->open_jobs++;
    touch(exchange, &member->tracked);
    track(exchange, &job->tracked, RECORD_JOB);
    job_records(exchange, job);
    job_wants(exchange, job);
    report_job(exchange, job);
}

/* ---------------------------------------------------------------- wanting, closing, settling */

void job_wants(struct exchange *exchange, struct job *job)
{
    if (job->phase != JOB_PHASE_OPEN || job->is_closing) {
        return;
    }
    uint32_t most = job->at_most == 0 ? UINT32_MAX : job->at_most / job->width;
    uint32_t useful = job->waiting + job->running;
    uint32_t lanes = useful < most ? useful : most;
    uint32_t wanted = job->waiting > 0 && lanes > job->lanes ? lanes - job->lanes : 0;
    uint32_t slots = wanted > UINT32_MAX / job->width ? UINT32_MAX - UINT32_MAX % job->width
                                                      : wanted * job->width;
    book_set_slots(exchange->book, job->handle, slots);
    if (slots > 0 && list_empty(&job->wanting)) {
        list_append(&exchange->wanting_jobs, &job->wanting);
    }
}

static void take_bid_away(struct exchange *exchange, struct job *job)
{
    if (job->handle == BOOK_NONE) {
        return;
    }
    book_remove(exchange->book, job->handle);
    handle_give(exchange, job->handle);
    class_give(exchange, job->class_id);
    job->handle = BOOK_NONE;
    job->class_id = NO_CLASS;
    list_remove(&job->wanting);
    struct ledger_record *record = emit_ledger(exchange, LEDGER_CANCEL);
    record->order = job->id;
    record->status = CANCEL_JOB_ENDED;
}

void job_close(struct exchange *exchange, struct job *job, enum job_phase ends_as, uint8_t reason)
{
    if (job->is_closing || job->phase != JOB_PHASE_OPEN) {
        return;
    }
    job->is_closing = true;
    job->ends_as = (uint8_t)ends_as;
    job->reason = reason;
    job->closing_ns = exchange->now_ns + CLOSING_NS;
    take_bid_away(exchange, job);
    job->cancelled += job->waiting;
    job->waiting = 0;
    touch(exchange, &job->tracked);
    report_job(exchange, job);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        lease_withdraw_all(exchange, LIST_ELEMENT(at, struct lease, of_job));
    }
    if (job->running == 0) {
        job_settle(exchange, job);
    } else {
        timer_arm(exchange, TIMER_JOB, &job->id, job->closing_ns);
    }
}

static void drop_pages(struct exchange *exchange, struct job *job)
{
    uint32_t pages = (job->subtasks + PAGE_SUBTASKS - 1) / PAGE_SUBTASKS;
    for (uint32_t i = 0; i < pages; i++) {
        if (job->pages[i] != NULL) {
            untrack(exchange, &job->pages[i]->tracked);
            free(job->pages[i]);
        }
    }
    free(job->pages);
    job->pages = NULL;
}

/* True when no subtask failed by its program: each that failed ran out of tries that its providers spoilt. */
static bool providers_failed(const struct job *job)
{
    for (uint32_t index = 0; index < job->subtasks; index++) {
        const struct page *page = job->pages[index / PAGE_SUBTASKS];
        const struct subtask *subtask =
            page == NULL ? NULL : &page->subtasks[index % PAGE_SUBTASKS];
        if (subtask != NULL && subtask->state == SUBTASK_FAILED &&
            subtask->failures > job->retries) {
            return false;
        }
    }
    return job->failed > 0;
}

void job_settle(struct exchange *exchange, struct job *job)
{
    take_bid_away(exchange, job);
    if (!job->is_closing) {
        bool all = job->accepted == job->subtasks;
        job->ends_as = all ? JOB_PHASE_DONE : JOB_PHASE_FAILED;
        job->reason = all                     ? XREASON_NONE
                      : providers_failed(job) ? XREASON_PROVIDERS_FAILED
                                              : XREASON_SUBTASKS_FAILED;
    }
    job->is_closing = true; /* whatever its leases still give back is not queued again */
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->state != LEASE_ENDED) {
            lease_end(exchange, lease,
                      job->ends_as == JOB_PHASE_CANCELLED ? XEND_CANCELLED : XEND_RETURNED, true);
        }
    }
    assert(job->reserved_micro == 0);
    assert(job->running == 0 && job->waiting == 0);
    job->phase = job->ends_as;
    job->ended_ns = exchange->now_ns;

    struct member *owner = member_by_number(exchange, job->owner);
    int64_t charged = job->hold.captured_micro;
    int64_t released = hold_release(exchange->accounts, &job->hold);
    if (released > 0) {
        struct ledger_record *record = emit_ledger(exchange, LEDGER_RELEASE);
        record->job = job->id;
        record->debit = record->credit = job->owner;
        record->amount_micro = released;
    }
    struct ledger_record *record = emit_ledger(exchange, LEDGER_SETTLED);
    record->job = job->id;
    record->debit = record->credit = job->owner;
    record->status = job->phase;
    record->accepted = job->accepted;
    record->failed = job->failed;
    record->cancelled = job->cancelled;
    record->charge_micro = charged;
    record->amount_micro = released;

    drop_pages(exchange, job);
    exchange->subtask_count -= job->subtasks;
    owner->open_subtasks -= job->subtasks;
    owner->open_jobs--;
    touch(exchange, &owner->tracked);
    touch(exchange, &job->tracked);
    report_job(exchange, job);
}

void job_check(struct exchange *exchange, struct job *job)
{
    if (job->phase != JOB_PHASE_OPEN) {
        return;
    }
    if (job->waiting == 0 && job->running == 0) {
        job_settle(exchange, job);
        return;
    }
    if (!job->is_closing && job->failed > job->error_limit) {
        job_close(exchange, job, JOB_PHASE_FAILED,
                  providers_failed(job) ? XREASON_PROVIDERS_FAILED : XREASON_ERROR_LIMIT);
        return;
    }
    job_wants(exchange, job);
}

void apply_cancel_job(struct exchange *exchange, const struct exchange_cancel_job *cancel)
{
    struct job *job = table_find(&exchange->jobs, &cancel->job);
    if (job == NULL || job->owner != exchange->command->account) {
        reject(exchange, XREJECT_NOT_FOUND, "job", 0, 0);
        return;
    }
    if (job->phase != JOB_PHASE_OPEN) {
        reject(exchange, XREJECT_STATE, "job", job->phase, JOB_PHASE_OPEN);
        return;
    }
    job_close(exchange, job, JOB_PHASE_CANCELLED, XREASON_CANCELLED);
}

/* ---------------------------------------------------------------- providers that failed this job */

bool job_avoids(const struct exchange *exchange, const struct job *job, uint32_t provider)
{
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        if (job->avoided[i].provider == provider && job->avoided[i].until_ns > exchange->now_ns) {
            return true;
        }
    }
    return false;
}

void job_avoid(struct exchange *exchange, struct job *job, uint32_t provider)
{
    uint32_t at = job->avoided_count;
    if (at == AVOIDED_PROVIDERS) { /* the one that ends first makes room */
        at = 0;
        for (uint32_t i = 1; i < AVOIDED_PROVIDERS; i++) {
            at = job->avoided[i].until_ns < job->avoided[at].until_ns ? i : at;
        }
    } else {
        job->avoided_count++;
    }
    job->avoided[at].provider = provider;
    job->avoided[at].until_ns = exchange->now_ns + AVOID_NS;
    timer_arm(exchange, TIMER_JOB, &job->id, job->avoided[at].until_ns);
    touch(exchange, &job->tracked);
}
