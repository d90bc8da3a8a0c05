/* Jobs come, give work to their parts, and end; this file counts their subtasks and money. */
#include "exchange/state.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- subtasks */

struct subtask *job_subtask(struct exchange *exchange, struct job *job, uint32_t index)
{
    assert(index < job->subtasks);
    struct page **page = &job->pages[index / PAGE_SUBTASKS];
    if (*page == NULL) {
        const uint32_t first = index - index % PAGE_SUBTASKS;
        const uint32_t left = job->subtasks - first;
        const uint32_t count = left < PAGE_SUBTASKS ? left : PAGE_SUBTASKS;
        *page = allocate(exchange, sizeof **page + count * sizeof(struct subtask));
        if (*page == NULL) {
            return NULL;
        }
        (*page)->job = job;
        (*page)->number = index / PAGE_SUBTASKS;
        (*page)->count = count;
        track(exchange, &(*page)->tracked, RECORD_PAGE);
    }
    return &(*page)->subtasks[index % PAGE_SUBTASKS];
}

static uint32_t *tally_of_job(struct job *job, uint8_t state)
{
    uint32_t *const tallies[] = {
        [SUBTASK_WAITING] = &job->waiting,   [SUBTASK_RUNNING] = &job->running,
        [SUBTASK_CHECKING] = &job->checking, [SUBTASK_ACCEPTED] = &job->accepted,
        [SUBTASK_FAILED] = &job->failed,     [SUBTASK_CANCELLED] = &job->cancelled,
    };
    return tallies[state];
}

void subtask_becomes(struct exchange *exchange, struct job *job, uint32_t index,
                     enum subtask_state to)
{
    struct part *part = part_of(job, index);
    struct subtask *subtask = job_subtask(exchange, job, index);
    const bool was_waiting = subtask->state == SUBTASK_WAITING;
    *tally_of_job(job, subtask->state) -= 1;
    part->waiting -= was_waiting;
    part->running -= subtask->state == SUBTASK_RUNNING;
    part->checking -= subtask->state == SUBTASK_CHECKING;
    subtask_move(&subtask->state, to);
    part->decided += to >= SUBTASK_ACCEPTED;
    *tally_of_job(job, subtask->state) += 1;
    part->waiting += to == SUBTASK_WAITING;
    part->running += to == SUBTASK_RUNNING;
    part->checking += to == SUBTASK_CHECKING;
    if (to == SUBTASK_WAITING) {
        jury_waits(exchange, job, index);
    } else if (was_waiting) {
        jury_waits_no_more(exchange, job, index);
    }
}

void subtask_changed(struct exchange *exchange, struct job *job, uint32_t index)
{
    touch(exchange, &job->pages[index / PAGE_SUBTASKS]->tracked);
    touch(exchange, &job->tracked);
}

bool part_is_over(const struct part *part)
{
    return part->decided + part->checking == part->end - part->first;
}

void part_look_if_over(struct exchange *exchange, struct part *part)
{
    if (part->job->part_count > 1 && part->lanes > 0 && part_is_over(part) &&
        list_empty(&part->spread)) {
        list_append(&exchange->spreads, &part->spread);
    }
}

void subtask_decide(struct exchange *exchange, struct job *job, uint32_t index,
                    enum subtask_state to)
{
    assert(to == SUBTASK_ACCEPTED || to == SUBTASK_FAILED);
    struct subtask *subtask = job_subtask(exchange, job, index);
    subtask_becomes(exchange, job, index, to);
    subtask_changed(exchange, job, index);
    if (subtask->attempts > 1) {
        withdraw_others(exchange, job, index); /* the first accepted wins */
    }
    saved_drop(exchange, job, index);
    jury_dismiss(exchange, job, index);
    if (job->graph != NULL) {
        graph_decided(exchange, job, index, to);
    }
    if (to == SUBTASK_FAILED) {
        check_failed(exchange, job, index);
    }
    part_look_if_over(exchange, part_of(job, index));
}

void job_requeue(struct exchange *exchange, struct job *job, uint32_t index)
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
            subtask_changed(exchange, job, part->retry_tail);
        }
        part->retry_tail = index;
    }
    subtask_changed(exchange, job, index);
}

static void unlink_retry(struct exchange *exchange, struct part *part, uint32_t index,
                         uint32_t before)
{
    struct job *job = part->job;
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (before == NO_SUBTASK) {
        part->retry_head = subtask->next;
    } else {
        job_subtask(exchange, job, before)->next = subtask->next;
        subtask_changed(exchange, job, before);
    }
    part->retry_tail = subtask->next == NO_SUBTASK ? before : part->retry_tail;
    subtask->queued = 0;
    subtask_changed(exchange, job, index);
    retry_unlinked(part, index, before);
}

/* Entries whose subtask was accepted meanwhile (a doubted attempt came back) are dropped. */
uint32_t part_next_retry(struct exchange *exchange, struct part *part, uint32_t provider)
{
    struct job *job = part->job;
    uint32_t before = retries_passed(exchange, part, provider);
    uint32_t index =
        before == NO_SUBTASK ? part->retry_head : job_subtask(exchange, job, before)->next;
    bool is_found = false;
    while (index != NO_SUBTASK && !is_found) {
        const struct subtask *subtask = job_subtask(exchange, job, index);
        const uint32_t next = subtask->next;
        const bool is_waiting = subtask->state == SUBTASK_WAITING;
        exchange->totals.retries++;
        if (is_waiting && !provider_may_run(exchange, job, index, provider)) {
            before = index;
        } else {
            unlink_retry(exchange, part, index, before);
            is_found = is_waiting;
        }
        index = is_found ? index : next;
    }
    retries_pass(exchange, part, provider, before);
    return index;
}

uint32_t part_next_fresh(struct exchange *exchange, struct part *part)
{
    struct job *job = part->job;
    uint32_t index = NO_SUBTASK;
    if (job->graph != NULL) {
        index = part_pop_ready(part);
    } else if (part->fresh < part->end) {
        index = part->fresh++;
    }
    return index == NO_SUBTASK || job_subtask(exchange, job, index) == NULL ? NO_SUBTASK : index;
}

/* ---------------------------------------------------------------- money of a job */

int64_t job_free_micro(const struct job *job)
{
    int64_t left = hold_left(&job->hold) - job->reserved_micro;
    assert(left >= 0); /* leases draw no more than the budget */
    return left;
}

/* ---------------------------------------------------------------- submitting */

void job_link_owner(struct exchange *exchange, struct job *job)
{
    struct member *owner = member_by_number(exchange, job->owner);
    list_append(&owner->jobs, &job->of_owner);
    owner->job_count++;
}

/* This runs when nothing can be refused any more, since a refusal changes nothing. No account loses
 * ended jobs to another while there is room. */
static void make_room_for_job(struct exchange *exchange)
{
    const struct member *member = sender(exchange);
    struct job *own = member->ended.count >= ENDED_JOBS_KEPT ? ended_oldest_of(member) : NULL;
    if (own != NULL) {
        job_forget(exchange, own);
    }
    struct job *any = exchange->job_count >= exchange->limits.jobs ? ended_oldest(exchange) : NULL;
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
    ended_remove(exchange, job);
    table_remove(&exchange->jobs, &job->id);
    list_remove(&job->all);
    list_remove(&job->of_owner);
    list_remove(&job->report);
    for (uint32_t i = 0; i < job->part_count; i++) {
        list_remove(&job->parts[i].wanting);
        list_remove(&job->parts[i].spread);
        list_remove(&job->parts[i].back);
        list_remove(&job->parts[i].front);
        list_remove(&job->parts[i].challenge);
    }
    member_by_number(exchange, job->owner)->job_count--;
    exchange->job_count--;
    untrack(exchange, &job->tracked);
    job_free(job);
}

static void pages_free(struct job *job)
{
    if (job->pages != &job->only_page) {
        free(job->pages);
    }
    job->pages = NULL;
}

void job_free(struct job *job)
{
    checks_destroy(job);
    graph_destroy(job->graph);
    saved_free(job);
    for (uint32_t i = 0; job->parts != NULL && i < job->part_count; i++) {
        free(job->parts[i].ready);
    }
    for (uint32_t i = 0; job->pages != NULL && i <= (job->subtasks - 1) / PAGE_SUBTASKS; i++) {
        free(job->pages[i]);
    }
    pages_free(job);
    if (job->parts != &job->only_part) {
        free(job->parts);
    }
    free(job);
}

bool job_has_parts(struct exchange *exchange, struct job *job, uint32_t count)
{
    job->parts = count == 1 ? &job->only_part : allocate(exchange, count * sizeof *job->parts);
    return job->parts != NULL;
}

bool job_has_pages(struct exchange *exchange, struct job *job)
{
    const uint32_t pages = (job->subtasks + PAGE_SUBTASKS - 1) / PAGE_SUBTASKS;
    job->pages = pages == 1 ? &job->only_page : allocate(exchange, pages * sizeof *job->pages);
    return job->pages != NULL;
}

struct range {
    const char *field;
    int64_t value, least, most;
    uint32_t code;
};

/* `prefix` begins the field names. */
static bool in_range(struct exchange *exchange, const char *prefix, const struct range *rules,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i].value < rules[i].least || rules[i].value > rules[i].most) {
            char field[EXCHANGE_FIELD_SIZE];
            bool is_low = rules[i].value < rules[i].least;
            (void)snprintf(field, sizeof field, "%s%s", prefix, rules[i].field); /* it fits */
            reject(exchange, rules[i].code, field, rules[i].value,
                   is_low ? rules[i].least : rules[i].most);
            return false;
        }
    }
    return true;
}

static bool part_in_range(struct exchange *exchange, const char *prefix,
                          const struct exchange_part *part, int64_t subtasks_most)
{
    const int64_t longest_ms = 7 * 24 * NS_PER_HOUR / NS_PER_MS;
    const struct range rules[] = {
        {"subtasks", part->subtasks, 1, subtasks_most, XREJECT_QUANTITY},
        {"slots", part->slots, 1, 4096, XREJECT_QUANTITY},
        {"at_most", part->at_most, part->at_most == 0 ? 0 : part->slots, UINT32_MAX,
         XREJECT_QUANTITY},
        {"limit_ms", part->limit_ns / NS_PER_MS, 1, longest_ms, XREJECT_QUANTITY},
        {"term_ms", part->term_ns / NS_PER_MS,
         part->limit_ns / NS_PER_MS + (part->limit_ns % NS_PER_MS != 0), longest_ms,
         XREJECT_QUANTITY},
        {"expect_ns", part->expect_ns, 0, longest_ms * NS_PER_MS, XREJECT_QUANTITY},
        {"value.rate", part->rate, RATE_NONE, RATES - 1, XREJECT_REQUIREMENT},
        {part->rate == RATE_NONE ? "cap_micro" : "value.micro", part->cap_micro,
         part->rate != RATE_NONE ? 0
         : part->cap_micro > 0   ? exchange->price_least_micro
                                 : -1,
         part->rate == RATE_NONE ? exchange->price_band_micro : INT64_MAX, XREJECT_PRICE},
    };
    return in_range(exchange, prefix, rules, sizeof rules / sizeof rules[0]);
}

static bool needs_well_formed(struct exchange *exchange, const char *field,
                              const struct requirement *needs)
{
    bool good = requirement_well_formed(needs);
    if (!good) {
        reject(exchange, XREJECT_REQUIREMENT, field, 0, 0);
    }
    return good;
}

/* Checks each further part, and that the first part has a subtask left. */
static bool parts_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    int64_t left = submit->subtasks;
    if (submit->part_count >= PARTS_MOST) {
        reject(exchange, XREJECT_QUANTITY, "parts", (int64_t)submit->part_count, PARTS_MOST - 1);
        return false;
    }
    for (size_t i = 0; i < submit->part_count; i++) {
        if (!part_in_range(exchange, "parts.", &submit->parts[i], left - 1) ||
            !needs_well_formed(exchange, "parts.needs", submit->parts[i].needs)) {
            return false;
        }
        left -= submit->parts[i].subtasks;
    }
    return true;
}

static bool graph_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    struct exchange_reject why;
    bool good = submit->graph == NULL || graph_well_formed(submit->graph, submit->subtasks, &why);
    if (!good) {
        reject(exchange, why.code, why.field, why.value, why.limit);
    }
    return good;
}

static uint64_t lanes_of(const struct exchange_submit *submit)
{
    uint64_t lanes = 0;
    uint32_t first = submit->subtasks;
    for (size_t i = 0; i < submit->part_count; i++) {
        const struct exchange_part *part = &submit->parts[i];
        first -= part->subtasks;
        lanes += lanes_most(part->subtasks, part->at_most, part->slots);
    }
    return lanes + lanes_most(first, submit->at_most, submit->slots);
}

/* Returns true when the job may have bids of its type; parts and graph are well formed. */
static bool type_fits(struct exchange *exchange, const struct exchange_submit *submit)
{
    const bool is_at_once = submit->type != EXCHANGE_LIMIT && submit->type != EXCHANGE_POST_ONLY;
    const size_t after = submit->graph == NULL ? 0 : submit->graph->after_length;
    bool is_by_value = submit->rate != RATE_NONE;
    for (size_t i = 0; i < submit->part_count; i++) {
        is_by_value = is_by_value || submit->parts[i].rate != RATE_NONE;
    }
    if (submit->type > EXCHANGE_ALL_OR_NONE) {
        reject(exchange, XREJECT_QUANTITY, "order", submit->type, EXCHANGE_ALL_OR_NONE);
    } else if (submit->type != EXCHANGE_LIMIT && submit->verify == EXCHANGE_VERIFY_CHEAP) {
        reject(exchange, XREJECT_VERIFY, "order", submit->type, EXCHANGE_LIMIT);
    } else if (is_at_once && after > 0) {
        reject(exchange, XREJECT_QUANTITY, "graph.after", (int64_t)after, 0);
    } else if (submit->type == EXCHANGE_ALL_OR_NONE && is_by_value) {
        reject(exchange, XREJECT_PRICE, "value", submit->type, EXCHANGE_LIMIT);
    } else if (submit->type == EXCHANGE_ALL_OR_NONE &&
               lanes_of(submit) > EXCHANGE_WHOLE_LANES_MOST) {
        reject(exchange, XREJECT_QUANTITY, "at_most", (int64_t)lanes_of(submit),
               EXCHANGE_WHOLE_LANES_MOST);
    }
    return !exchange->is_rejected;
}

/* Checks the command itself; the sender and the market were checked before. */
static bool submit_in_range(struct exchange *exchange, const struct exchange_submit *submit)
{
    const struct exchange_part first = {
        .subtasks = submit->subtasks,
        .slots = submit->slots,
        .at_most = submit->at_most,
        .cap_micro = submit->cap_micro,
        .limit_ns = submit->limit_ns,
        .term_ns = submit->term_ns,
        .expect_ns = submit->expect_ns,
        .rate = submit->rate,
    };
    const struct range rules[] = {
        {"budget_micro", submit->budget_micro, 0, INT64_MAX, XREJECT_BUDGET},
        {"retries", submit->retries, 0, 100, XREJECT_QUANTITY},
        {"crash_limit", submit->crash_limit, 0, 100, XREJECT_QUANTITY},
        {"interruptions", submit->interruptions, 0, 1000000, XREJECT_QUANTITY},
    };
    if (!part_in_range(exchange, "", &first, 10000000) ||
        !in_range(exchange, "", rules, sizeof rules / sizeof rules[0])) {
        return false;
    }
    if (submit->verify == EXCHANGE_VERIFY_UNKNOWN) {
        reject(exchange, XREJECT_VERIFY, "verify", 0, 0);
        return false;
    }
    if (submit->good_till_ns != 0 && submit->good_till_ns <= exchange->now_ns) {
        reject(exchange, XREJECT_QUANTITY, "good_till_ms", submit->good_till_ns / NS_PER_MS,
               exchange->now_ns / NS_PER_MS);
        return false;
    }
    if (submit->good_till_ns > exchange->now_ns + GOOD_TILL_MOST_NS) {
        reject(exchange, XREJECT_QUANTITY, "good_till_ms", submit->good_till_ns / NS_PER_MS,
               (exchange->now_ns + GOOD_TILL_MOST_NS) / NS_PER_MS);
        return false;
    }
    if (submit->good_till_ns != 0 && submit->verify == EXCHANGE_VERIFY_CHEAP) {
        reject(exchange, XREJECT_VERIFY, "good_till_ms", submit->good_till_ns / NS_PER_MS, 0);
        return false;
    }
    if (submit->has_checkpoints && submit->verify == EXCHANGE_VERIFY_CHEAP) {
        reject(exchange, XREJECT_VERIFY, "checkpoint", 1, 0);
        return false;
    }
    if (submit->has_checkpoints && submit->subtasks > SAVED_SUBTASKS_MOST) {
        reject(exchange, XREJECT_QUANTITY, "subtasks", submit->subtasks, SAVED_SUBTASKS_MOST);
        return false;
    }
    return needs_well_formed(exchange, "needs", submit->needs) &&
           parts_in_range(exchange, submit) && caps_in_range(exchange, submit) &&
           graph_in_range(exchange, submit) && type_fits(exchange, submit) &&
           (submit->verify != EXCHANGE_VERIFY_CHEAP || checks_well_formed(exchange, submit));
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
    if (exchange->job_count >= exchange->limits.jobs && ended_oldest(exchange) == NULL) {
        reject(exchange, XREJECT_LIMIT, "jobs", exchange->job_count, exchange->limits.jobs);
        return false;
    }
    return true;
}

static struct job *job_create(struct exchange *exchange, const struct exchange_submit *submit)
{
    struct job *job = allocate(exchange, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    list_init(&job->leases);
    list_init(&job->report);
    list_init(&job->of_owner);
    job->id = exchange->command->id;
    job->owner = exchange->command->account;
    copy_name(job->name, submit->name);
    job->manifest = submit->manifest;
    job->subtasks = submit->subtasks;
    job->retries = submit->retries;
    job->error_limit = submit->error_limit;
    job->crash_limit = submit->crash_limit;
    job->waiting = submit->subtasks;
    job->submitted_ns = exchange->now_ns;
    job->good_till_ns = submit->good_till_ns;
    job->interruptions_left = submit->has_interruptions ? submit->interruptions : UINT32_MAX;
    job->has_checkpoints = submit->has_checkpoints;
    job->type = (uint8_t)submit->type;
    if (!job_has_pages(exchange, job) || !parts_create(exchange, job, submit)) {
        job_free(job);
        return NULL;
    }
    job->graph = submit->graph == NULL ? NULL : graph_create(exchange, job, submit->graph);
    job->is_checked = submit->verify == EXCHANGE_VERIFY_CHEAP;
    if (exchange->is_out_of_memory || (job->is_checked && !checks_create(exchange, job))) {
        job_free(job);
        return NULL;
    }
    return job;
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
    record->price_micro = job->parts[0].cap_micro;
    record->width = job->parts[0].width;
    record->debit = record->credit = job->owner;
    copy_name(record->name, job->name);

    record = emit_ledger(exchange, LEDGER_HOLD);
    record->job = job->id;
    record->debit = record->credit = job->owner;
    record->amount_micro = job->hold.amount_micro;

    for (uint32_t i = 0; i < job->part_count; i++) {
        part_bid_record(exchange, &job->parts[i]);
    }
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
    if (!parts_bid(exchange, job, submit)) {
        job_free(job);
        return;
    }
    make_room_for_job(exchange);
    struct member *member = sender(exchange);
    enum accounts_status held =
        hold_open(exchange->accounts, job->owner, submit->budget_micro, &job->hold);
    assert(held == ACCOUNTS_OK); /* funds were checked before */
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
    if (job->graph != NULL) {
        track(exchange, &job->graph->tracked, RECORD_GRAPH);
        graph_start(job);
    }
    if (job->good_till_ns != 0) {
        timer_arm(exchange, TIMER_JOB, &job->id, job->good_till_ns);
    }
    exchange->wholes += job_waits_for_all(job);
    job_records(exchange, job);
    job_bids_arrive(exchange, job);
    report_job(exchange, job);
}

/* ---------------------------------------------------------------- wanting, closing, settling */

/* Stops buying and cancels waiting subtasks. */
static void stop_buying(struct exchange *exchange, struct job *job, enum job_phase ends_as,
                        uint8_t reason)
{
    job->is_closing = true;
    job->ends_as = (uint8_t)ends_as;
    job->reason = reason;
    job_take_bids_away(exchange, job);
    checks_give_up(exchange, job);
    job->cancelled += job->waiting;
    job->waiting = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        job->parts[i].waiting = 0;
    }
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->state == LEASE_PROMISED) {
            lease_end(exchange, lease, XEND_RETURNED, false);
        }
    }
    touch(exchange, &job->tracked);
    report_job(exchange, job);
}

/* An expired job only waits for running work, so it can still be closed for good. */
void job_close(struct exchange *exchange, struct job *job, enum job_phase ends_as, uint8_t reason)
{
    if (job->phase != JOB_PHASE_OPEN || (job->is_closing && job->reason != XREASON_EXPIRED)) {
        return;
    }
    job->closing_ns = exchange->now_ns + CLOSING_NS;
    stop_buying(exchange, job, ends_as, reason);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        lease_withdraw_all(exchange, LIST_ELEMENT(at, struct lease, of_job));
    }
    if (job->running == 0) {
        job_settle(exchange, job);
    } else {
        timer_arm(exchange, TIMER_JOB, &job->id, job->closing_ns);
    }
}

void job_expire(struct exchange *exchange, struct job *job)
{
    assert(job->phase == JOB_PHASE_OPEN && !job->is_closing);
    job->closing_ns = INT64_MAX;
    stop_buying(exchange, job, JOB_PHASE_CANCELLED, XREASON_EXPIRED);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        lease_refill_later(exchange, LIST_ELEMENT(at, struct lease, of_job)); /* idle, or not */
    }
    if (job->running == 0) {
        job_settle(exchange, job);
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
    pages_free(job);
}

/* Checks do not count: the market made them. */
static bool a_program_failed(const struct job *job)
{
    const uint32_t end = job->is_checked ? job->parts[job->part_count - 1].first : job->subtasks;
    for (uint32_t index = 0; index < end; index++) {
        const struct page *page = job->pages[index / PAGE_SUBTASKS];
        const struct subtask *subtask =
            page == NULL ? NULL : &page->subtasks[index % PAGE_SUBTASKS];
        if (subtask != NULL && subtask->state == SUBTASK_FAILED &&
            subtask->failures > job->retries) {
            return true;
        }
    }
    return false;
}

/* Returns `otherwise` when a program failed. Else all tries were used up, by providers or because
 * nobody could judge the results. */
static uint8_t reason_of_failure(const struct job *job, uint8_t otherwise)
{
    if (job->failed == 0 || a_program_failed(job)) {
        return otherwise;
    }
    return job_lacks_maker(job) ? XREASON_NO_MAKER
           : job->unjudged > 0  ? XREASON_NO_VERDICT
                                : XREASON_PROVIDERS_FAILED;
}

void job_settle(struct exchange *exchange, struct job *job)
{
    job_take_bids_away(exchange, job);
    const bool all_had_started = job->reason == XREASON_EXPIRED && job->cancelled == 0;
    if (!job->is_closing || all_had_started) {
        bool all = job->accepted == job->subtasks;
        job->ends_as = all ? JOB_PHASE_DONE : JOB_PHASE_FAILED;
        job->reason = all ? XREASON_NONE : reason_of_failure(job, XREASON_SUBTASKS_FAILED);
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
    assert(job->running == 0 && job->waiting == 0 && job->checking == 0);
    job->phase = job->ends_as;
    job->ended_ns = exchange->now_ns;
    ended_add(exchange, job);

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

    juries_drop(exchange, job);
    checks_destroy(job);
    graph_drop(exchange, job);
    saved_drop_all(exchange, job);
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
    if (job->waiting == 0 && job->running == 0 && job->checking == 0) {
        job_settle(exchange, job);
        return;
    }
    if (!job->is_closing && job->failed > job->error_limit) {
        job_close(exchange, job, JOB_PHASE_FAILED, reason_of_failure(job, XREASON_ERROR_LIMIT));
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

/* ---------------------------------------------------------------- providers that failed this job
 */

int64_t job_avoids_for_ns(const struct exchange *exchange, const struct job *job, uint32_t provider)
{
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        if (job->avoided[i].provider == provider && job->avoided[i].until_ns > exchange->now_ns) {
            return job->avoided[i].until_ns - exchange->now_ns;
        }
    }
    return 0;
}

bool job_avoids(const struct exchange *exchange, const struct job *job, uint32_t provider)
{
    return job_avoids_for_ns(exchange, job, provider) > 0;
}

void job_avoid(struct exchange *exchange, struct job *job, uint32_t provider, int64_t for_ns)
{
    const int64_t until_ns = exchange->now_ns + for_ns;
    uint32_t at = 0;
    while (at < job->avoided_count && job->avoided[at].provider != provider) {
        at++;
    }
    if (at < job->avoided_count && job->avoided[at].until_ns >= until_ns) {
        return;
    }
    if (at == AVOIDED_PROVIDERS) { /* the one that ends first makes room */
        at = 0;
        for (uint32_t i = 1; i < AVOIDED_PROVIDERS; i++) {
            at = job->avoided[i].until_ns < job->avoided[at].until_ns ? i : at;
        }
    } else if (at == job->avoided_count) {
        job->avoided_count++;
    }
    job->avoided[at].provider = provider;
    job->avoided[at].until_ns = until_ns;
    timer_arm(exchange, TIMER_JOB, &job->id, job->avoided[at].until_ns);
    touch(exchange, &job->tracked);
}
