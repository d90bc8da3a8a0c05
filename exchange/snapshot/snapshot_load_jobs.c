/* Loading continues here with jobs, the states and edges of their subtasks, and their leases. */
#include "exchange/snapshot/snapshot_load.h"

#include "exchange/agenda.h"
#include "exchange/lifecycle.h"
#include "exchange/market/bids.h"
#include "exchange/market/interning.h"
#include "exchange/snapshot/snapshot_put.h"
#include "exchange/state/handles.h"
#include "exchange/state/held.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/state/residency.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/choice/ready_order.h"
#include "exchange/work/graph.h"
#include "exchange/work/held_results.h"
#include "exchange/work/job_memory.h"
#include "exchange/work/juries.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/retention.h"
#include "exchange/work/runtime_stats.h"
#include "exchange/work/work_checkpoint.h"

#include <stdlib.h>

/* The wire admits no more. The state's cap is no bound here, since it may have been lowered. */
enum { JOB_SUBTASKS_LOADED_MAX = 10000000 };

/* The part's subtasks begin at `first`. */
static bool get_part(struct reader *in, struct job *job, uint32_t number, uint32_t first)
{
    struct part *part = &job->parts[number];
    uint32_t subtasks;
    part_init(part, job, number);
    uint32_t *const numbers[] = {
        &subtasks,         &part->width,      &part->at_most, &part->class_id, &part->fresh,
        &part->retry_head, &part->retry_tail, &part->waiting, &part->running,  &part->checking};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *numbers[i] = reader_u32(in);
    }
    part->cap_micro = reader_i64(in);
    part->bid_micro = reader_i64(in);
    part->rate = get_small(in, RATES - 1);
    part->limit_ns = get_ns(in);
    part->term_ns = get_ns(in);
    part->expect_ns = get_ns(in);
    part->sequence = reader_u64(in);
    part->straggler_ns = get_ns(in);
    if (in->failed || subtasks == 0 || subtasks > job->subtasks - first) {
        return false;
    }
    part->first = first;
    part->end = first + subtasks;
    bool queue_fits = (part->retry_head == NO_SUBTASK) == (part->retry_tail == NO_SUBTASK) &&
                      (part->retry_head == NO_SUBTASK ||
                       (part->retry_head < job->subtasks && part->retry_tail < job->subtasks));
    return part->width > 0 && part->fresh >= first && part->fresh <= part->end &&
           part->term_ns > 0 && part->limit_ns > 0 && part->bid_micro >= 0 && queue_fits;
}

static bool get_parts(struct exchange *exchange, struct reader *in, struct job *job)
{
    uint32_t count = reader_u32(in);
    uint32_t first = 0;
    if (in->failed || count == 0 || count > PARTS_MOST) {
        return false;
    }
    if (!job_has_parts(exchange, job, count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        part_init(&job->parts[i], job, i);
    }
    job->part_count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (!get_part(in, job, i, first)) {
            return false;
        }
        first = job->parts[i].end;
    }
    return first == job->subtasks;
}

/* The deadline ends a record, and a job without one has none of its bytes. A byte after the
 * deadline says that the expectations are no guess. */
static bool get_deadline(struct reader *in, struct job *job)
{
    if (reader_finished(in)) {
        return true;
    }
    job->deadline_ns = get_ns(in);
    job->is_expectation_stated = reader_left(in) > 0 && get_bool(in);
    return reader_finished(in) && job->deadline_ns > 0;
}

static bool get_job_fields(struct exchange *exchange, struct reader *in, struct job *job)
{
    GET_ID(in, job->id);
    job->order = reader_u64(in);
    job->owner = reader_u32(in);
    get_name(in, job->name, sizeof job->name);
    GET_ID(in, job->manifest);
    uint32_t *const numbers[] = {&job->subtasks,    &job->retries,  &job->error_limit,
                                 &job->crash_limit, &job->waiting,  &job->running,
                                 &job->checking,    &job->accepted, &job->failed,
                                 &job->cancelled,   &job->unjudged};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *numbers[i] = reader_u32(in);
    }
    job->phase = get_small(in, JOB_PHASE_CANCELLED);
    job->type = get_small(in, EXCHANGE_MARKET);
    job->reason = reader_u8(in);
    job->is_closing = get_bool(in);
    job->is_checked = get_bool(in);
    job->ends_as = get_small(in, JOB_PHASE_CANCELLED);
    job->closing_ns = get_ns(in);
    job->hold.account = job->owner;
    job->hold.amount_micro = reader_i64(in);
    job->hold.captured_micro = reader_i64(in);
    job->hold.is_open = get_bool(in);
    job->reserved_micro = reader_i64(in);
    job->submitted_ns = get_ns(in);
    job->ended_ns = get_ns(in);
    job->good_till_ns = get_ns(in);
    job->avoided_count = reader_u32(in);
    if (job->avoided_count > AVOIDED_PROVIDERS) {
        return false;
    }
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        job->avoided[i].provider = reader_u32(in);
        job->avoided[i].until_ns = get_ns(in);
    }
    job->interruptions_left = reader_u32(in);
    job->has_checkpoints = get_bool(in);
    return get_parts(exchange, in, job) && get_deadline(in, job) && job->subtasks > 0 &&
           (!job->is_checked ||
            (job->part_count > 1 && job->parts[job->part_count - 1].first == job->subtasks / 2));
}

static bool restore_bids(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        if (job->phase != JOB_PHASE_OPEN || job->is_closing) {
            if (part->class_id != NO_CLASS) {
                return false;
            }
            continue;
        }
        if (book_class_references(exchange->book, part->class_id) == 0) {
            return false;
        }
        book_class_hold(exchange->book, part->class_id);
        if (!interning_add_class_use(exchange, job->owner, part->class_id)) {
            return false;
        }
        if (job->type == EXCHANGE_IOC || job->type == EXCHANGE_FOK) {
            continue; /* an unfilled rest is no bid any more */
        }
        part->handle = handle_take(exchange, part);
        if (part->handle == BOOK_NONE) {
            return false;
        }
        bid_rest(exchange, part);
    }
    exchange->wholes += job_waits_for_all(job);
    return true;
}

bool snapshot_load_job(struct exchange *exchange, struct reader *in)
{
    struct job *job = memory_allocate(exchange, sizeof *job);
    if (job == NULL) {
        return false;
    }
    list_init(&job->leases);
    list_init(&job->report);
    list_init(&job->of_owner);
    bool good = get_job_fields(exchange, in, job) && job->owner < exchange->member_count &&
                job->subtasks <= JOB_SUBTASKS_LOADED_MAX &&
                table_find(&exchange->jobs, &job->id) == NULL;
    if (good && job->phase == JOB_PHASE_OPEN) {
        good =
            job_has_pages(exchange, job) && (!job->is_checked || check_queue_create(exchange, job));
        exchange->subtask_count += job->subtasks;
        lookup_member(exchange, job->owner)->open_subtasks += job->subtasks;
    }
    if (!good || !table_insert(&exchange->jobs, job)) {
        job_free(job);
        return false;
    }
    list_append(&exchange->job_list, &job->all);
    job_link_owner(exchange, job);
    exchange->job_count++;
    tracking_add(exchange, &job->tracked, RECORD_JOB);
    if (job->phase == JOB_PHASE_OPEN) {
        agenda_arm_job(exchange, job); /* the job's leases come later, and arm their own timers */
    } else {
        retention_add(exchange, job);
    }
    return restore_bids(exchange, job);
}

static struct job *open_job_of(struct exchange *exchange, struct reader *in)
{
    struct id128 id;
    GET_ID(in, id);
    struct job *job = in->failed ? NULL : table_find(&exchange->jobs, &id);
    return job == NULL || job->pages == NULL ? NULL : job;
}

/* `numbers` holds ranks (if any), expected times (if any), the number of subtasks that each one
 * waits for, and those subtasks. */
static bool get_edges(struct exchange *exchange, struct job *job, const uint32_t *numbers,
                      size_t count, bool has_ranks, bool tells_apart)
{
    const size_t subtasks = job->subtasks;
    const size_t ranks = has_ranks ? subtasks : 0;
    const size_t lists = ranks + (tells_apart ? subtasks : 0) + subtasks;
    struct exchange_reject ignored;
    if (count < lists) {
        return false;
    }
    const struct exchange_graph given = {
        .rank = numbers,
        .rank_count = ranks,
        .expect_ms = numbers + ranks,
        .expect_count = tells_apart ? subtasks : 0,
        .after_count = numbers + (lists - subtasks),
        .after_count_count = subtasks,
        .after = numbers + lists,
        .after_length = count - lists,
    };
    if (!graph_well_formed(&given, job->subtasks, &ignored)) {
        return false;
    }
    job->graph = graph_create(exchange, job, &given);
    if (job->graph == NULL || !ready_order_create(exchange, job)) {
        return false;
    }
    tracking_add(exchange, &job->graph->tracked, RECORD_GRAPH);
    return true;
}

bool snapshot_load_graph(struct exchange *exchange, struct reader *in)
{
    enum { NUMBERS_MOST = 3 * GRAPH_SUBTASKS_MOST + GRAPH_EDGES_MOST };
    struct job *job = open_job_of(exchange, in);
    bool has_ranks = get_bool(in);
    bool tells_apart = get_bool(in);
    size_t count = reader_left(in) / sizeof(uint32_t);
    if (in->failed || job == NULL || job->graph != NULL || count > NUMBERS_MOST) {
        return false;
    }
    uint32_t *numbers = memory_allocate(exchange, (count + 1) * sizeof *numbers);
    if (numbers == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = reader_u32(in);
    }
    bool good =
        reader_finished(in) && get_edges(exchange, job, numbers, count, has_ranks, tells_apart);
    free(numbers);
    return good;
}

bool snapshot_load_given(struct exchange *exchange, struct reader *in)
{
    const struct job *job = open_job_of(exchange, in);
    const uint32_t marked = reader_u32(in);
    const uint32_t index = marked & ~SNAPSHOT_GIVEN_SIZE;
    const bool has_size = index != marked;
    const uint64_t file_bytes = has_size ? reader_u64(in) : 0;
    size_t length = reader_left(in);
    if (in->failed || job == NULL || job->graph == NULL || index >= job->subtasks ||
        length > GIVEN_BYTES_MOST || job->graph->given[index] != NULL ||
        (has_size && file_bytes < RESIDENT_LEAST_BYTES)) {
        return false;
    }
    graph_keep(exchange, job, index, reader_view(in, length), (uint32_t)length, file_bytes);
    return reader_finished(in);
}

bool snapshot_load_saved(struct exchange *exchange, struct reader *in)
{
    struct job *job = open_job_of(exchange, in);
    struct saved fields = {.index = reader_u32(in)};
    fields.attempt = reader_u32(in);
    fields.missing = reader_u8(in);
    const size_t length = reader_left(in);
    const uint8_t *bytes = reader_view(in, length);
    if (in->failed || job == NULL || !job->has_checkpoints || fields.index >= job->subtasks ||
        length == 0 || length > SAVED_BYTES_MOST || fields.attempt == 0 ||
        fields.missing >= SAVED_MISSING ||
        (job->saved != NULL && job->saved[fields.index] != NULL)) {
        return false;
    }
    fields.length = (uint32_t)length;
    return work_checkpoint_put(exchange, job, &fields, bytes) && reader_finished(in);
}

/* The lease and the subtask's page were read before. */
bool snapshot_load_held(struct exchange *exchange, struct reader *in)
{
    enum { HELD_BYTES_BEFORE = 16 + 8 + 4 + 4 + 8 + 4 + 8 + 32 + 32 + 1 + 1 + 4 };
    if (reader_left(in) < HELD_BYTES_BEFORE) {
        return false;
    }
    const size_t length = reader_left(in) - HELD_BYTES_BEFORE;
    struct held *held = memory_allocate(exchange, sizeof *held + length);
    if (held == NULL) {
        return false;
    }
    struct job *job = open_job_of(exchange, in);
    held->lease = lookup_lease(exchange, reader_u64(in));
    held->index = reader_u32(in);
    held->attempt = reader_u32(in);
    held->batch_index = reader_u64(in);
    held->position = reader_u32(in);
    held->paid_ns = get_ns(in);
    GET_ID(in, held->hash);
    GET_ID(in, held->dice);
    held->unsure = reader_u8(in);
    held->missing = reader_u8(in);
    held->shy_of = reader_u32(in);
    held->length = (uint32_t)length;
    reader_bytes(in, held->bytes, length);
    if (!reader_finished(in) || job == NULL || held->lease == NULL || held->lease->job != job ||
        job->is_closing || held->paid_ns > INT64_MAX / 4 - held->lease->held_ns ||
        !held_link(job, held)) {
        free(held);
        return false;
    }
    tracking_add(exchange, &held->tracked, RECORD_HELD);
    return job_subtask(exchange, job, held->index)->state == SUBTASK_CHECKING;
}

/* The record of the held result is the one before. */
bool snapshot_load_accusation(struct exchange *exchange, struct reader *in)
{
    const struct job *job = open_job_of(exchange, in);
    const uint32_t index = reader_u32(in);
    struct accusation accusation = {.referee = reader_u32(in)};
    accusation.attempt = reader_u32(in);
    GET_ID(in, accusation.check);
    struct held *held =
        job == NULL || !held_for_check(job, index) ? NULL : job->checks->held[index];
    if (!reader_finished(in) || held == NULL || held->accusation.tracked.type != 0 ||
        lookup_member(exchange, accusation.referee) == NULL) {
        return false;
    }
    held_accuse(exchange, held, &accusation);
    return true;
}

bool snapshot_load_jury(struct exchange *exchange, struct reader *in)
{
    struct job *job = open_job_of(exchange, in);
    const uint32_t index = reader_u32(in);
    const int64_t look_ns = get_ns(in);
    const uint32_t unmade = reader_u32(in);
    const size_t count = reader_left(in) / sizeof(uint32_t);
    if (in->failed || job == NULL || job->checks == NULL || count > JUDGES_MOST ||
        !(index == NO_SUBTASK ? look_ns == 0 : held_for_check(job, index))) {
        return false;
    }
    struct jury *jury = jury_put(exchange, job, index);
    if (jury == NULL || jury->count > 0) {
        return false;
    }
    jury->look_ns = look_ns;
    jury->unmade = unmade;
    for (size_t i = 0; i < count; i++) {
        jury->accounts[jury->count++] = reader_u32(in);
        in->failed = in->failed || lookup_member(exchange, jury->accounts[i]) == NULL;
    }
    return reader_finished(in);
}

bool snapshot_load_page(struct exchange *exchange, struct reader *in)
{
    struct job *job = open_job_of(exchange, in);
    uint32_t number = reader_u32(in);
    if (in->failed || job == NULL || number > (job->subtasks - 1) / PAGE_SUBTASKS ||
        job->pages[number] != NULL) {
        return false;
    }
    if (job_subtask(exchange, job, number * PAGE_SUBTASKS) == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < job->pages[number]->count; i++) {
        struct subtask *subtask = &job->pages[number]->subtasks[i];
        subtask->state = get_small(in, SUBTASK_CANCELLED);
        subtask->live = reader_u8(in);
        subtask->failures = reader_u8(in);
        subtask->crashes = reader_u8(in);
        subtask->attempts = reader_u16(in);
        subtask->queued = reader_u16(in);
        subtask->next = reader_u32(in);
        bool has_tries = subtask->attempts < ATTEMPTS_MOST ||
                         (subtask->attempts == ATTEMPTS_MOST && subtask->state != SUBTASK_WAITING);
        if (!has_tries || subtask->queued > 1 ||
            (subtask->queued == 1 && subtask->next != NO_SUBTASK &&
             subtask->next >= job->subtasks)) {
            return false;
        }
    }
    return reader_finished(in);
}

static bool get_attempts(struct exchange *exchange, struct reader *in, struct lease *lease)
{
    while (reader_left(in) > 0) {
        struct attempt *attempt = memory_allocate(exchange, sizeof *attempt);
        if (attempt == NULL) {
            return false;
        }
        attempt->key.index = reader_u32(in);
        attempt->key.attempt = reader_u32(in);
        attempt->lane = reader_u32(in);
        attempt->dispatched_ns = get_ns(in);
        attempt->is_doubted = get_bool(in);
        attempt->is_fenced = get_bool(in);
        attempt->is_withdrawn = get_bool(in);
        attempt->restored = reader_u32(in);
        if (in->failed || attempt->key.index >= lease->job->subtasks ||
            attempt->lane >= lease->lane_count || !attempt_put(exchange, lease, attempt)) {
            free(attempt);
            return false;
        }
    }
    return reader_finished(in);
}

static void get_outage(struct reader *in, struct lease *lease)
{
    lease->outage_ns = get_ns(in);
    lease->outage_at_ns = get_ns(in);
    in->failed = in->failed || lease->outage_at_ns == 0;
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        lease->lanes[i].outage_ns = get_ns(in);
    }
}

/* The residents of a lane are different subtasks of the job. */
static void get_lane_residents(struct exchange *exchange, struct reader *in,
                               const struct lease *lease, struct lane *lane)
{
    const uint32_t count = get_small(in, RESIDENTS_MOST);
    struct residents *residents = count == 0 ? NULL : memory_allocate(exchange, sizeof *residents);
    lane->residents = residents;
    in->failed = in->failed || (count > 0 && residents == NULL);
    while (!in->failed && residents != NULL && residents->count < count) {
        struct resident one = {.index = reader_u32(in)};
        one.bytes = reader_u64(in);
        in->failed = in->failed || one.index >= lease->job->subtasks ||
                     one.bytes < RESIDENT_LEAST_BYTES || residency_has(residents, one.index);
        residents->items[residents->count++] = one;
    }
}

static void get_residents(struct exchange *exchange, struct reader *in, struct lease *lease)
{
    bool has_some = false;
    for (uint32_t i = 0; !in->failed && i < lease->lane_count; i++) {
        get_lane_residents(exchange, in, lease, &lease->lanes[i]);
        has_some = has_some || lease->lanes[i].residents != NULL;
    }
    in->failed = in->failed || !has_some || lease->job->graph == NULL;
}

static bool get_lease_fields(struct exchange *exchange, struct reader *in, struct lease *lease)
{
    struct id128 job;
    lease->id = reader_u64(in);
    GET_ID(in, job);
    uint32_t part = reader_u32(in);
    GET_ID(in, lease->device_id);
    GET_ID(in, lease->ask);
    get_name(in, lease->label, sizeof lease->label);
    lease->provider = reader_u32(in);
    lease->slots = reader_u32(in);
    lease->lane_count = reader_u32(in);
    lease->price_micro = reader_i64(in);
    lease->granted_ns = get_ns(in);
    lease->term_end_ns = get_ns(in);
    lease->ended_ns = get_ns(in);
    lease->state = get_small(in, LEASE_PROMISED);
    lease->end_reason = reader_u8(in);
    lease->is_simulated = get_bool(in);
    lease->terms.is_interruptible = get_bool(in);
    lease->terms.notice_ns = get_ns(in);
    lease->terms.minimum_run_ns = get_ns(in);
    const uint8_t marks = get_small(in, 15);
    const bool met_outage = (marks & 2) != 0;
    const bool has_quickest = (marks & 8) != 0;
    lease->is_noticed = (marks & 1) != 0;
    lease->former = reader_u64(in);
    lease->accepted = reader_u32(in);
    lease->failures_in_row = reader_u32(in);
    lease->paid_ns = reader_i64(in); /* sum over all slots: more than any moment */
    lease->charged_micro = reader_i64(in);
    lease->reserved_micro = reader_i64(in);
    lease->promised_ns = reader_i64(in);
    lease->idle_since_ns = get_ns(in);
    lease->live = reader_u32(in);
    /* The provider claims this mean, so any number is possible; nothing is added to it. */
    lease->mean_ns = reader_i64(in);
    lease->said_ns = get_ns(in);
    lease->took_ns = get_ns(in);
    in->failed = in->failed || lease->mean_ns < 0 || lease->paid_ns < 0 || lease->promised_ns < 0;
    lease->job = table_find(&exchange->jobs, &job);
    enum { LANE_BYTES = 28 };
    bool has_part = lease->job != NULL && part < lease->job->part_count;
    lease->part = has_part ? &lease->job->parts[part] : NULL;
    bool good = !in->failed && has_part && lease->lane_count > 0 && lease->price_micro >= 0 &&
                lease->provider < exchange->member_count &&
                lease->lane_count <= reader_left(in) / LANE_BYTES &&
                lease->slots == lease->lane_count * (uint64_t)lease->part->width;
    lease->lanes =
        good ? memory_allocate(exchange, lease->lane_count * sizeof *lease->lanes) : NULL;
    for (uint32_t i = 0; lease->lanes != NULL && i < lease->lane_count; i++) {
        lease->lanes[i].in_flight = reader_u32(in);
        lease->lanes[i].seen_until_ns = get_ns(in);
        lease->lanes[i].seen_ns = get_ns(in);
        lease->lanes[i].paid_ns = get_ns(in);
    }
    if (lease->lanes != NULL && met_outage) {
        get_outage(in, lease);
    }
    if (lease->lanes != NULL && (marks & 4) != 0) {
        get_residents(exchange, in, lease);
    }
    if (lease->lanes != NULL && has_quickest) {
        lease->quickest_ns = get_ns(in);
        in->failed = in->failed || lease->quickest_ns == 0;
    }
    return lease->lanes != NULL && !in->failed;
}

static bool lease_link_device(struct exchange *exchange, struct lease *lease)
{
    if (lease->state == LEASE_ENDED) {
        return true;
    }
    struct device_key key = {.device = lease->device_id, .provider = lease->provider};
    lease->device = table_find(&exchange->devices, &key); /* a device has a provider */
    if (lease->device == NULL || lease->job->phase != JOB_PHASE_OPEN) {
        return false;
    }
    lease->part->lanes +=
        lease->state == LEASE_ACTIVE || lease->state == LEASE_PROMISED ? lease->lane_count : 0;
    lease_arm(exchange, lease);
    return true;
}

bool snapshot_load_lease(struct exchange *exchange, struct reader *in)
{
    struct lease *lease = memory_allocate(exchange, sizeof *lease);
    if (lease == NULL) {
        return false;
    }
    list_init(&lease->attempts);
    list_init(&lease->refill);
    list_init(&lease->of_provider);
    list_init(&lease->exposing);
    lease->exposed = BOOK_NONE;
    if (!get_lease_fields(exchange, in, lease) || lookup_lease(exchange, lease->id) != NULL ||
        !table_insert(&exchange->leases, lease)) {
        residency_forget(lease);
        free(lease->lanes);
        free(lease);
        return false;
    }
    list_append(&lease->job->leases, &lease->of_job);
    lease_link_deep(lease);
    runtime_stats_put(lease);
    exchange->lease_count++;
    if (lease->price_micro == 0) {
        lookup_member(exchange, lease->job->owner)->promised_ns += lease->promised_ns;
    }
    tracking_add(exchange, &lease->tracked, RECORD_LEASE);
    return get_attempts(exchange, in, lease) && lease_link_device(exchange, lease);
}
