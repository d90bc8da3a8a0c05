#include "exchange/state.h"

#include "base/cursor.h"

#include <stdlib.h>
#include <string.h>

/* Reads what snapshot.c writes. A snapshot comes from a file that may be damaged: whatever does not fit is
 * an answer, never an assert. Records come in the order written, so that what one refers to is there. */

/* No more can come over the wire. The cap of the state does not bound what stands: it may have been lowered since. */
enum { JOB_SUBTASKS_LOADED_MAX = 10000000 };

#define GET_ID(in, id) reader_bytes((in), (id).bytes, sizeof(id).bytes)

static bool get_bool(struct reader *in)
{
    uint8_t value = reader_u8(in);
    in->failed = in->failed || value > 1;
    return value == 1;
}

static void get_name(struct reader *in, char *ret_text, size_t size)
{
    reader_bytes(in, ret_text, size);
    in->failed = in->failed || memchr(ret_text, '\0', size) == NULL;
}

static uint8_t get_small(struct reader *in, uint8_t most)
{
    uint8_t value = reader_u8(in);
    in->failed = in->failed || value > most;
    return in->failed ? 0 : value;
}

/* A moment or a time of ours, to which days may be added; INT64_MAX stands for never. */
static int64_t get_ns(struct reader *in)
{
    int64_t value = reader_i64(in);
    in->failed = in->failed || value < 0 || (value > INT64_MAX / 2 && value != INT64_MAX);
    return in->failed ? 0 : value;
}

static void get_attribute(struct reader *in, struct attribute *attribute)
{
    memset(attribute, 0, sizeof *attribute);
    get_name(in, attribute->name, sizeof attribute->name);
    attribute->is_text = get_bool(in);
    if (attribute->is_text) {
        get_name(in, attribute->text, sizeof attribute->text);
    } else {
        attribute->number = reader_i64(in);
    }
}

static bool get_market(struct exchange *exchange, struct reader *in)
{
    exchange->has_genesis = get_bool(in);
    exchange->is_halted = get_bool(in);
    GET_ID(in, exchange->cluster);
    exchange->fee_ppm = reader_u32(in);
    exchange->price_band_micro = reader_i64(in);
    exchange->index = reader_u64(in);
    exchange->sequence = reader_u64(in);
    exchange->next_lease = reader_u64(in);
    exchange->next_order = reader_u64(in);
    exchange->now_ns = get_ns(in);
    exchange->epochs = reader_u64(in);
    GET_ID(in, exchange->commitment);
    touch(exchange, &exchange->tracked);
    return true;
}

static bool get_limits(struct exchange *exchange, struct reader *in)
{
    struct exchange_set_limits set = {.rules = reader_u32(in)};
    uint32_t *const numbers[] = {&set.limits.accounts,
                                 &set.limits.invitations,
                                 &set.limits.ids_per_account,
                                 &set.limits.devices_per_provider,
                                 &set.limits.asks,
                                 &set.limits.jobs,
                                 &set.limits.jobs_per_account,
                                 &set.limits.leases,
                                 &set.limits.attempts,
                                 &set.limits.cells_per_account,
                                 &set.limits.classes_per_account};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *numbers[i] = reader_u32(in);
    }
    set.limits.subtasks = reader_u64(in);
    set.limits.subtasks_per_account = reader_u64(in);
    if (!reader_finished(in) || set.rules == 0 || exchange->rules != 0) {
        return false;
    }
    limits_restore(exchange, &set);
    return true;
}

static bool get_cell(struct exchange *exchange, struct reader *in)
{
    uint32_t cell = reader_u32(in);
    struct attribute attributes[CELL_ATTRIBUTES_MAX];
    size_t count = 0;
    while (reader_left(in) > 0 && count < CELL_ATTRIBUTES_MAX) {
        get_attribute(in, &attributes[count++]);
    }
    return reader_finished(in) && cell_restore(exchange, cell, attributes, count);
}

static bool get_class(struct exchange *exchange, struct reader *in)
{
    uint32_t class_id = reader_u32(in);
    struct requirement *requirement = allocate(exchange, sizeof *requirement);
    if (requirement == NULL) {
        return false;
    }
    while (reader_left(in) > 0 && requirement->count < REQUIREMENT_NODES_MAX) {
        struct requirement_node *node = &requirement->nodes[requirement->count++];
        node->op = (enum requirement_op)get_small(in, REQUIREMENT_GE);
        if (node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR) {
            node->arity = reader_u32(in);
        } else if (node->op != REQUIREMENT_NOT) {
            get_attribute(in, &node->attribute);
        }
    }
    bool good = reader_finished(in) && class_restore(exchange, class_id, requirement);
    free(requirement);
    return good;
}

static bool get_member(struct exchange *exchange, struct reader *in)
{
    struct member *member = allocate(exchange, sizeof *member);
    if (member == NULL) {
        return false;
    }
    list_init(&member->jobs);
    list_init(&member->refusals);
    GET_ID(in, member->key);
    member->number = reader_u32(in);
    member->roles = reader_u32(in);
    member->is_frozen = get_bool(in);
    member->ids = reader_u32(in);
    member->open_jobs = reader_u32(in);
    get_name(in, member->name, sizeof member->name);
    struct account_balance balance = {.available_micro = reader_i64(in)};
    balance.held_micro = reader_i64(in);
    bool good = reader_finished(in) && member->number == exchange->member_count;
    if (good && member->number >= ACCOUNT_FIRST_USER) {
        uint32_t number;
        good = accounts_open(exchange->accounts, &number) == ACCOUNTS_OK &&
               number == member->number &&
               table_find(&exchange->members_by_key, &member->key) == NULL &&
               table_insert(&exchange->members_by_key, member);
    }
    if (good && exchange->member_count == exchange->member_capacity) {
        uint32_t capacity = exchange->member_capacity == 0 ? 64 : 2 * exchange->member_capacity;
        struct member **members = realloc(exchange->members, capacity * sizeof *members);
        good = members != NULL;
        if (good) {
            exchange->members = members;
            exchange->member_capacity = capacity;
        }
        /* cppcheck-suppress memleak ; exchange->members holds it now */
    }
    if (!good) {
        if (table_find(&exchange->members_by_key, &member->key) == member) {
            table_remove(&exchange->members_by_key, &member->key);
        }
        free(member);
        return false;
    }
    exchange->members[exchange->member_count++] = member;
    accounts_restore(exchange->accounts, member->number, balance);
    track(exchange, &member->tracked, RECORD_MEMBER);
    return true;
}

static bool get_invitation(struct exchange *exchange, struct reader *in)
{
    struct invitation *invitation = allocate(exchange, sizeof *invitation);
    if (invitation == NULL) {
        return false;
    }
    GET_ID(in, invitation->token_hash);
    invitation->roles = reader_u32(in);
    invitation->credits_micro = reader_i64(in);
    invitation->expires_ns = reader_i64(in);
    invitation->issuer = reader_u32(in);
    get_name(in, invitation->name, sizeof invitation->name);
    if (!reader_finished(in) ||
        table_find(&exchange->invitations, &invitation->token_hash) != NULL ||
        !table_insert(&exchange->invitations, invitation)) {
        free(invitation);
        return false;
    }
    invitation_link(exchange, invitation);
    track(exchange, &invitation->tracked, RECORD_INVITATION);
    return true;
}

static void get_rejection(struct reader *in, struct exchange_reject *why)
{
    why->code = reader_u32(in);
    get_name(in, why->field, sizeof why->field);
    why->value = reader_i64(in);
    why->limit = reader_i64(in);
}

static bool get_id_entry(struct exchange *exchange, struct reader *in)
{
    struct id_entry fields = {0};
    struct exchange_reject why = {0};
    GET_ID(in, fields.key.id);
    fields.key.account = reader_u32(in);
    GET_ID(in, fields.body);
    fields.index = reader_u64(in);
    fields.log_time_ns = reader_i64(in);
    fields.is_refused = get_bool(in);
    if (fields.is_refused) {
        get_rejection(in, &why);
    }
    const struct member *member = member_by_number(exchange, fields.key.account);
    if (!reader_finished(in) || member == NULL ||
        (fields.is_refused && member->refusal_count >= REFUSALS_KEPT) ||
        table_find(&exchange->ids, &fields.key) != NULL) {
        return false;
    }
    struct refused_id *refused = /* or only its beginning */
        allocate(exchange, fields.is_refused ? sizeof *refused : sizeof fields);
    struct id_entry *entry = (struct id_entry *)refused;
    if (entry == NULL) {
        return false;
    }
    *entry = fields;
    if (!table_insert(&exchange->ids, entry)) {
        free(entry);
        return false;
    }
    list_append(&exchange->id_ages, &entry->age);
    track(exchange, &entry->tracked, RECORD_ID);
    if (entry->is_refused) {
        refused->why = why;
        refusal_link(exchange, refused);
    }
    return true;
}

static bool get_provider(struct exchange *exchange, struct reader *in)
{
    uint32_t number = reader_u32(in);
    struct member *member = member_by_number(exchange, number);
    struct provider *provider =
        member == NULL || member->provider != NULL ? NULL : allocate(exchange, sizeof *provider);
    if (provider == NULL) {
        return false;
    }
    provider->number = number;
    provider->state = get_small(in, PROVIDER_SUSPECT);
    provider->order = reader_u64(in);
    list_init(&provider->devices);
    list_init(&provider->leases);
    list_append(&exchange->provider_list, &provider->all);
    member->provider = provider;
    track(exchange, &provider->tracked, RECORD_PROVIDER);
    return reader_finished(in);
}

static bool get_device(struct exchange *exchange, struct reader *in)
{
    struct device *device = allocate(exchange, sizeof *device);
    if (device == NULL) {
        return false;
    }
    GET_ID(in, device->key.device);
    device->key.provider = reader_u32(in);
    device->order = reader_u64(in);
    device->slots = reader_u32(in);
    device->leased = reader_u32(in);
    device->cell = reader_u32(in);
    device->is_advertised = get_bool(in);
    get_name(in, device->label, sizeof device->label);
    const struct member *member = member_by_number(exchange, device->key.provider);
    if (!reader_finished(in) || member == NULL || member->provider == NULL ||
        book_cell_references(exchange->book, device->cell) == 0 ||
        table_find(&exchange->devices, &device->key) != NULL ||
        !table_insert(&exchange->devices, device)) {
        free(device);
        return false;
    }
    book_cell_hold(exchange->book, device->cell);
    list_append(&member->provider->devices, &device->of_provider);
    track(exchange, &device->tracked, RECORD_DEVICE);
    return true;
}

static bool get_ask(struct exchange *exchange, struct reader *in)
{
    struct ask fields = {0};
    struct device_key key;
    GET_ID(in, fields.order);
    GET_ID(in, key.device);
    key.provider = reader_u32(in);
    fields.slots = reader_u32(in);
    fields.price_micro = reader_i64(in);
    fields.good_till_ns = reader_i64(in);
    fields.max_term_ns = reader_i64(in);
    fields.sequence = reader_u64(in);
    fields.device = table_find(&exchange->devices, &key);
    if (!reader_finished(in) || fields.device == NULL || fields.device->ask != NULL ||
        fields.price_micro < 0 || table_find(&exchange->asks, &fields.order) != NULL) {
        return false;
    }
    const struct ask *ask = ask_restore(exchange, &fields);
    if (ask != NULL && ask->good_till_ns != 0) {
        timer_arm(exchange, TIMER_ASK, &ask->order, ask->good_till_ns);
    }
    return ask != NULL;
}

/* Its subtasks begin at `first`. */
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
    job->parts = allocate(exchange, count * sizeof *job->parts);
    if (job->parts == NULL) {
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
    return get_parts(exchange, in, job) && reader_finished(in) && job->subtasks > 0 &&
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
        if (!part_rest_bid(exchange, part)) {
            return false;
        }
    }
    return true;
}

static bool get_job(struct exchange *exchange, struct reader *in)
{
    struct job *job = allocate(exchange, sizeof *job);
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
        uint32_t pages = (job->subtasks + PAGE_SUBTASKS - 1) / PAGE_SUBTASKS;
        job->pages = allocate(exchange, pages * sizeof *job->pages);
        good = job->pages != NULL && (!job->is_checked || checks_create(exchange, job));
        exchange->subtask_count += job->subtasks;
        member_by_number(exchange, job->owner)->open_subtasks += job->subtasks;
    }
    if (!good || !table_insert(&exchange->jobs, job)) {
        job_free(job);
        return false;
    }
    list_append(&exchange->job_list, &job->all);
    job_link_owner(exchange, job);
    exchange->job_count++;
    track(exchange, &job->tracked, RECORD_JOB);
    if (job->phase == JOB_PHASE_OPEN) {
        timers_arm_job(exchange, job); /* its leases come later, and arm their own */
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

/* `numbers` holds the ranks, if any, then how many each subtask waits for, then all that they wait for. */
static bool get_edges(struct exchange *exchange, struct job *job, const uint32_t *numbers,
                      size_t count, bool has_ranks)
{
    const size_t subtasks = job->subtasks;
    const size_t lists = has_ranks ? 2 * subtasks : subtasks;
    struct exchange_reject ignored;
    if (count < lists) {
        return false;
    }
    const struct exchange_graph given = {
        .rank = numbers,
        .rank_count = has_ranks ? subtasks : 0,
        .after_count = numbers + (lists - subtasks),
        .after_count_count = subtasks,
        .after = numbers + lists,
        .after_length = count - lists,
    };
    if (!graph_well_formed(&given, job->subtasks, &ignored)) {
        return false;
    }
    job->graph = graph_create(exchange, job, &given);
    if (job->graph == NULL) {
        return false;
    }
    track(exchange, &job->graph->tracked, RECORD_GRAPH);
    return true;
}

static bool get_graph(struct exchange *exchange, struct reader *in)
{
    enum { NUMBERS_MOST = 2 * GRAPH_SUBTASKS_MOST + GRAPH_EDGES_MOST };
    struct job *job = open_job_of(exchange, in);
    bool has_ranks = get_bool(in);
    size_t count = reader_left(in) / sizeof(uint32_t);
    if (in->failed || job == NULL || job->graph != NULL || count > NUMBERS_MOST) {
        return false;
    }
    uint32_t *numbers = allocate(exchange, (count + 1) * sizeof *numbers);
    if (numbers == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = reader_u32(in);
    }
    bool good = reader_finished(in) && get_edges(exchange, job, numbers, count, has_ranks);
    free(numbers);
    return good;
}

static bool get_given(struct exchange *exchange, struct reader *in)
{
    const struct job *job = open_job_of(exchange, in);
    uint32_t index = reader_u32(in);
    size_t length = reader_left(in);
    if (in->failed || job == NULL || job->graph == NULL || index >= job->subtasks ||
        length > GIVEN_BYTES_MOST || job->graph->given[index] != NULL) {
        return false;
    }
    graph_keep(exchange, job, index, reader_view(in, length), (uint32_t)length);
    return reader_finished(in);
}

/* Its lease and the page of its subtask are there. */
static bool get_held(struct exchange *exchange, struct reader *in)
{
    enum { HELD_BYTES_BEFORE = 16 + 8 + 4 + 4 + 8 + 4 + 8 + 32 + 32 + 1 + 1 + 4 };
    if (reader_left(in) < HELD_BYTES_BEFORE) {
        return false;
    }
    const size_t length = reader_left(in) - HELD_BYTES_BEFORE;
    struct held *held = allocate(exchange, sizeof *held + length);
    if (held == NULL) {
        return false;
    }
    struct job *job = open_job_of(exchange, in);
    held->lease = lease_by_id(exchange, reader_u64(in));
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
    track(exchange, &held->tracked, RECORD_HELD);
    return job_subtask(exchange, job, held->index)->state == SUBTASK_CHECKING;
}

static bool get_page(struct exchange *exchange, struct reader *in)
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
    for (size_t i = 0; i < PAGE_SUBTASKS; i++) {
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
        struct attempt *attempt = allocate(exchange, sizeof *attempt);
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
        if (in->failed || attempt->key.index >= lease->job->subtasks ||
            attempt->lane >= lease->lane_count || !attempt_put(exchange, lease, attempt)) {
            free(attempt);
            return false;
        }
    }
    return reader_finished(in);
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
    lease->state = get_small(in, LEASE_ENDED);
    lease->end_reason = reader_u8(in);
    lease->is_simulated = get_bool(in);
    lease->accepted = reader_u32(in);
    lease->failures_in_row = reader_u32(in);
    lease->paid_ns = reader_i64(in); /* of all slots: more than any moment */
    lease->charged_micro = reader_i64(in);
    lease->reserved_micro = reader_i64(in);
    lease->idle_since_ns = get_ns(in);
    lease->live = reader_u32(in);
    /* What a provider claims, so any number; nothing is added to it. */
    lease->mean_ns = reader_i64(in);
    in->failed = in->failed || lease->mean_ns < 0 || lease->paid_ns < 0;
    lease->job = table_find(&exchange->jobs, &job);
    enum { LANE_BYTES = 28 };
    bool has_part = lease->job != NULL && part < lease->job->part_count;
    lease->part = has_part ? &lease->job->parts[part] : NULL;
    bool good = !in->failed && has_part && lease->lane_count > 0 && lease->price_micro >= 0 &&
                lease->provider < exchange->member_count &&
                lease->lane_count <= reader_left(in) / LANE_BYTES &&
                lease->slots == lease->lane_count * (uint64_t)lease->part->width;
    lease->lanes = good ? allocate(exchange, lease->lane_count * sizeof *lease->lanes) : NULL;
    for (uint32_t i = 0; lease->lanes != NULL && i < lease->lane_count; i++) {
        lease->lanes[i].in_flight = reader_u32(in);
        lease->lanes[i].seen_until_ns = get_ns(in);
        lease->lanes[i].seen_ns = get_ns(in);
        lease->lanes[i].paid_ns = get_ns(in);
    }
    return lease->lanes != NULL && !in->failed;
}

static bool lease_link_device(struct exchange *exchange, struct lease *lease)
{
    if (lease->state == LEASE_ENDED) {
        return true;
    }
    struct device_key key = {.device = lease->device_id, .provider = lease->provider};
    lease->device = table_find(&exchange->devices, &key); /* so its provider is there too */
    if (lease->device == NULL || lease->job->phase != JOB_PHASE_OPEN) {
        return false;
    }
    lease->part->lanes += lease->state == LEASE_ACTIVE ? lease->lane_count : 0;
    lease_arm(exchange, lease);
    return true;
}

static bool get_lease(struct exchange *exchange, struct reader *in)
{
    struct lease *lease = allocate(exchange, sizeof *lease);
    if (lease == NULL) {
        return false;
    }
    list_init(&lease->attempts);
    list_init(&lease->refill);
    list_init(&lease->of_provider);
    if (!get_lease_fields(exchange, in, lease) || lease_by_id(exchange, lease->id) != NULL ||
        !table_insert(&exchange->leases, lease)) {
        free(lease->lanes);
        free(lease);
        return false;
    }
    list_append(&lease->job->leases, &lease->of_job);
    exchange->lease_count++;
    track(exchange, &lease->tracked, RECORD_LEASE);
    return get_attempts(exchange, in, lease) && lease_link_device(exchange, lease);
}

static bool get_record(struct exchange *exchange, uint8_t type, struct reader *in)
{
    switch ((enum record_type)type) {
    case RECORD_MARKET:
        return get_market(exchange, in) && reader_finished(in);
    case RECORD_LIMITS:
        return get_limits(exchange, in);
    case RECORD_MEMBER:
        return get_member(exchange, in);
    case RECORD_INVITATION:
        return get_invitation(exchange, in);
    case RECORD_ID:
        return get_id_entry(exchange, in);
    case RECORD_PROVIDER:
        return get_provider(exchange, in);
    case RECORD_DEVICE:
        return get_device(exchange, in);
    case RECORD_ASK:
        return get_ask(exchange, in);
    case RECORD_JOB:
        return get_job(exchange, in);
    case RECORD_GRAPH:
        return get_graph(exchange, in);
    case RECORD_GIVEN:
        return get_given(exchange, in);
    case RECORD_HELD:
        return get_held(exchange, in);
    case RECORD_PAGE:
        return get_page(exchange, in);
    case RECORD_LEASE:
        return get_lease(exchange, in);
    case RECORD_CELL:
        return get_cell(exchange, in);
    case RECORD_CLASS:
        return get_class(exchange, in);
    }
    return false;
}

static bool load_records(struct exchange *exchange, struct reader *in)
{
    const uint8_t *magic = reader_view(in, 4);
    if (magic == NULL || memcmp(magic, "BSS8", 4) != 0) {
        return false;
    }
    uint32_t count = reader_u32(in);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t type = reader_u8(in);
        uint32_t length = reader_u32(in);
        const uint8_t *bytes = reader_view(in, length);
        if (bytes == NULL) {
            return false;
        }
        struct reader fields = reader_over(bytes, length);
        if (!get_record(exchange, type, &fields)) {
            return false;
        }
    }
    return reader_finished(in) && accounts_balanced(exchange->accounts) && kinds_settle(exchange);
}

static int compare_leases(const void *left, const void *right)
{
    const struct lease *const *a = left;
    const struct lease *const *b = right;
    return ((*a)->id > (*b)->id) - ((*a)->id < (*b)->id);
}

/* Leases come job by job; their providers keep them by number. False: out of memory. */
static bool link_providers(struct exchange *exchange)
{
    struct lease **standing =
        allocate(exchange, (exchange->lease_count + 1) * sizeof(struct lease *));
    if (standing == NULL) {
        return false;
    }
    size_t count = 0;
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        for (struct list_link *link = job->leases.next; link != &job->leases; link = link->next) {
            struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            if (lease->state != LEASE_ENDED) {
                standing[count++] = lease;
            }
        }
    }
    qsort(standing, count, sizeof(struct lease *), compare_leases);
    for (size_t i = 0; i < count; i++) {
        lease_link_provider(exchange, standing[i]);
    }
    free(standing);
    return true;
}

static void count_decided(struct job *job)
{
    for (uint32_t i = 0; job->pages != NULL && i < job->subtasks; i++) {
        const struct page *page = job->pages[i / PAGE_SUBTASKS];
        if (page != NULL && page->subtasks[i % PAGE_SUBTASKS].state >= SUBTASK_ACCEPTED) {
            part_of(job, i)->decided++;
        }
    }
}

struct exchange *exchange_load(const struct exchange_limits *limits, const uint8_t *bytes,
                               size_t length)
{
    struct exchange *exchange = exchange_create(limits);
    if (exchange == NULL) {
        return NULL;
    }
    struct reader in = reader_over(bytes, length);
    /* What is read is written the same way again, or it was not written by us: order, too, is part of a state. */
    if (!load_records(exchange, &in) || !link_providers(exchange) || exchange->is_out_of_memory ||
        !exchange_saves_as(exchange, bytes, length)) {
        exchange_destroy(&exchange);
        return NULL;
    }
    /* What each open job wants follows from its lanes, which are known only now. Nothing can match: the
     * market was at rest when it was saved. */
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        count_decided(job);
        if (job->graph != NULL) {
            graph_restore(job);
        }
        if (job->checks != NULL) {
            checks_restore(exchange, job);
        }
        job_wants(exchange, job);
        for (uint32_t i = 0; i < job->part_count; i++) {
            list_remove(&job->parts[i].wanting);
        }
    }
    return exchange;
}
