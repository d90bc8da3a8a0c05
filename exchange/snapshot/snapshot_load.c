/* Loading reads the bytes that snapshot.c writes: the market, its accounts and their offers.
 * snapshot_load_jobs.c reads jobs and leases. */
#include "exchange/snapshot/snapshot_load.h"

#include "exchange/account/invitations.h"
#include "exchange/account/members.h"
#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/asks.h"
#include "exchange/market/bids.h"
#include "exchange/market/daily.h"
#include "exchange/market/interning.h"
#include "exchange/market/promises.h"
#include "exchange/market/spot_index.h"
#include "exchange/snapshot/snapshot.h"
#include "exchange/state/ids.h"
#include "exchange/state/limits.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/state/reasons.h"
#include "exchange/state/tracking.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/graph.h"
#include "exchange/work/juries.h"
#include "exchange/work/lease_records.h"

#include <stdlib.h>
#include <string.h>

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

static bool get_marked(struct reader *in, bool *ret_has_reason)
{
    const uint8_t marks = get_small(in, 3);
    *ret_has_reason = (marks & 2) != 0;
    in->failed = in->failed || marks == 2; /* a reason for nothing */
    return (marks & 1) != 0;
}

static void get_reason(struct exchange *exchange, struct reader *in, char **reason)
{
    char text[EXCHANGE_REASON_SIZE] = "";
    const size_t length = get_small(in, sizeof text - 1);
    reader_bytes(in, text, length);
    in->failed = in->failed || length == 0 || memchr(text, '\0', length) != NULL;
    reason_set(exchange, reason, text);
}

static bool get_market(struct exchange *exchange, struct reader *in)
{
    exchange->has_genesis = get_bool(in);
    bool has_reason;
    exchange->is_halted = get_marked(in, &has_reason);
    GET_ID(in, exchange->cluster);
    exchange->fee_ppm = reader_u32(in);
    exchange->price_band_micro = reader_i64(in);
    exchange->price_least_micro = reader_i64(in);
    exchange->notional_most_micro = reader_i64(in);
    book_set_price_most(exchange->book, exchange->price_band_micro);
    exchange->index = reader_u64(in);
    exchange->sequence = reader_u64(in);
    exchange->next_lease = reader_u64(in);
    exchange->next_order = reader_u64(in);
    exchange->now_ns = get_ns(in);
    exchange->epochs = reader_u64(in);
    GET_ID(in, exchange->commitment);
    if (has_reason) {
        get_reason(exchange, in, &exchange->halted_why);
    }
    tracking_touch(exchange, &exchange->tracked);
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
    return reader_finished(in) && interning_restore_cell(exchange, cell, attributes, count);
}

static bool get_class(struct exchange *exchange, struct reader *in)
{
    uint32_t class_id = reader_u32(in);
    enum rate rate = (enum rate)get_small(in, RATES - 1);
    struct requirement *requirement = memory_allocate(exchange, sizeof *requirement);
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
    bool good =
        reader_finished(in) && interning_restore_class(exchange, class_id, requirement, rate);
    free(requirement);
    return good;
}

static bool get_member(struct exchange *exchange, struct reader *in)
{
    struct member *member = memory_allocate(exchange, sizeof *member);
    if (member == NULL) {
        return false;
    }
    list_init(&member->jobs);
    list_init(&member->refusals);
    GET_ID(in, member->key);
    member->number = reader_u32(in);
    member->roles = reader_u32(in);
    bool has_reason;
    member->is_frozen = get_marked(in, &has_reason);
    member->ids = reader_u32(in);
    member->open_jobs = reader_u32(in);
    get_name(in, member->name, sizeof member->name);
    struct account_balance balance = {.available_micro = reader_i64(in)};
    balance.held_micro = reader_i64(in);
    member->donated_ns = reader_i64(in);
    member->donated_day = get_ns(in);
    member->given_ns = reader_i64(in);
    if (has_reason) {
        get_reason(exchange, in, &member->frozen_why);
    }
    bool good = reader_finished(in) && member->number == exchange->member_count &&
                member->donated_ns >= 0 && member->given_ns >= 0 &&
                member->donated_day <= exchange->now_ns / (24 * NS_PER_HOUR);
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
    tracking_add(exchange, &member->tracked, RECORD_MEMBER);
    return member->number < ACCOUNT_FIRST_USER || member_link_name(exchange, member);
}

static bool get_standing(struct exchange *exchange, struct reader *in)
{
    struct member *member = lookup_member(exchange, reader_u32(in));
    struct standing *standing = member == NULL || member->standing != NULL
                                    ? NULL
                                    : memory_allocate(exchange, sizeof *standing);
    if (standing == NULL) {
        return false;
    }
    standing->member = member;
    member->standing = standing;
    tracking_add(exchange, &standing->tracked, RECORD_STANDING);
    standing->group = reader_u64(in);
    get_name(in, standing->owner, sizeof standing->owner);
    standing->refuted = reader_u32(in);
    standing->refuted_ever = reader_u32(in);
    standing->overruled = reader_u32(in);
    standing->proved_ns = get_ns(in);
    standing->withdrawn_until_ns = get_ns(in);
    return reader_finished(in) && standing->proved_ns >= 0 && standing->withdrawn_until_ns >= 0 &&
           (standing->group != 0) == (standing->owner[0] != '\0');
}

static bool get_invitation(struct exchange *exchange, struct reader *in)
{
    struct invitation *invitation = memory_allocate(exchange, sizeof *invitation);
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
    tracking_add(exchange, &invitation->tracked, RECORD_INVITATION);
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
    const struct member *member = lookup_member(exchange, fields.key.account);
    if (!reader_finished(in) || member == NULL ||
        (fields.is_refused && member->refusal_count >= REFUSALS_KEPT) ||
        table_find(&exchange->ids, &fields.key) != NULL) {
        return false;
    }
    struct refused_id *refused = /* a refused_id, or its first member alone */
        memory_allocate(exchange, fields.is_refused ? sizeof *refused : sizeof fields);
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
    tracking_add(exchange, &entry->tracked, RECORD_ID);
    if (entry->is_refused) {
        refused->why = why;
        ids_link_refusal(exchange, refused);
    }
    return true;
}

/* Reads a counted device of the provider. Returns false when memory is short. */
static bool get_day_use(struct exchange *exchange, struct reader *in, struct provider *provider)
{
    struct day_use *use = memory_allocate(exchange, sizeof *use);
    if (use == NULL) {
        return false;
    }
    GET_ID(in, use->device);
    const int64_t offset_min = reader_i64(in);
    const bool is_clock =
        offset_min >= -HOURS_OFFSET_MOST_MIN && offset_min <= HOURS_OFFSET_MOST_MIN;
    use->offset_min = is_clock ? (int32_t)offset_min : 0;
    use->day = reader_i64(in);
    use->used_ns = reader_i64(in);
    in->failed = in->failed || !is_clock || use->used_ns < 0;
    daily_put(provider, use);
    return true;
}

static bool get_provider(struct exchange *exchange, struct reader *in)
{
    uint32_t number = reader_u32(in);
    struct member *member = lookup_member(exchange, number);
    struct provider *provider = member == NULL || member->provider != NULL
                                    ? NULL
                                    : memory_allocate(exchange, sizeof *provider);
    if (provider == NULL) {
        return false;
    }
    provider->number = number;
    provider->state = get_small(in, PROVIDER_SUSPECT);
    provider->order = reader_u64(in);
    list_init(&provider->devices);
    list_init(&provider->day_uses);
    list_init(&provider->leases);
    list_append(&exchange->provider_list, &provider->all);
    member->provider = provider;
    tracking_add(exchange, &provider->tracked, RECORD_PROVIDER);
    for (uint32_t left = reader_u32(in); left > 0 && !in->failed; left--) {
        if (!get_day_use(exchange, in, provider)) {
            return false;
        }
    }
    return reader_finished(in);
}

static bool get_device(struct exchange *exchange, struct reader *in)
{
    struct device *device = memory_allocate(exchange, sizeof *device);
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
    const struct member *member = lookup_member(exchange, device->key.provider);
    if (!reader_finished(in) || member == NULL || member->provider == NULL ||
        book_cell_references(exchange->book, device->cell) == 0 ||
        table_find(&exchange->devices, &device->key) != NULL ||
        !table_insert(&exchange->devices, device)) {
        free(device);
        return false;
    }
    book_cell_hold(exchange->book, device->cell);
    list_append(&member->provider->devices, &device->of_provider);
    daily_recall(exchange, device);
    tracking_add(exchange, &device->tracked, RECORD_DEVICE);
    return true;
}

static void get_conditions(const struct exchange *exchange, struct reader *in, struct ask *ask)
{
    ask->to_count = get_small(in, EXCHANGE_ASK_TO_MOST);
    for (uint32_t i = 0; i < ask->to_count; i++) {
        ask->to[i] = reader_u32(in);
        in->failed = in->failed || lookup_member(exchange, ask->to[i]) == NULL;
    }
    ask->hours.count = get_small(in, HOURS_WINDOWS_MOST);
    const int64_t offset_min = reader_i64(in);
    const bool is_small = offset_min >= INT32_MIN && offset_min <= INT32_MAX;
    ask->hours.offset_min = is_small ? (int32_t)offset_min : INT32_MAX;
    for (uint32_t i = 0; i < ask->hours.count; i++) {
        ask->hours.windows[i].days = reader_u8(in);
        ask->hours.windows[i].from_min = reader_u16(in);
        ask->hours.windows[i].till_min = reader_u16(in);
    }
    ask->daily_ns = reader_i64(in);
    in->failed = in->failed || !hours_well_formed(&ask->hours) || ask->daily_ns < 0 ||
                 (ask->daily_ns > 0 && ask->max_term_ns <= 0);
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
    fields.type = get_small(in, EXCHANGE_POST_ONLY);
    fields.sequence = reader_u64(in);
    get_conditions(exchange, in, &fields);
    fields.device = table_find(&exchange->devices, &key);
    if (!reader_finished(in) || fields.device == NULL || fields.device->ask != NULL ||
        fields.price_micro < 0 || table_find(&exchange->asks, &fields.order) != NULL) {
        return false;
    }
    ask_look_at_hours(exchange, &fields);
    const struct ask *ask = ask_create(exchange, &fields);
    if (ask == NULL) {
        return false;
    }
    ask_rest(exchange, ask);
    ask_arm(exchange, ask);
    return true;
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
        return snapshot_load_job(exchange, in);
    case RECORD_GRAPH:
        return snapshot_load_graph(exchange, in);
    case RECORD_GIVEN:
        return snapshot_load_given(exchange, in);
    case RECORD_SAVED:
        return snapshot_load_saved(exchange, in);
    case RECORD_HELD:
        return snapshot_load_held(exchange, in);
    case RECORD_STANDING:
        return get_standing(exchange, in);
    case RECORD_ACCUSATION:
        return snapshot_load_accusation(exchange, in);
    case RECORD_JURY:
        return snapshot_load_jury(exchange, in);
    case RECORD_PAGE:
        return snapshot_load_page(exchange, in);
    case RECORD_LEASE:
        return snapshot_load_lease(exchange, in);
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
    if (magic == NULL || memcmp(magic, SNAPSHOT_MAGIC, 4) != 0) {
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
    return reader_finished(in) && accounts_balanced(exchange->accounts) &&
           interning_settle(exchange);
}

static int compare_leases(const void *left, const void *right)
{
    const struct lease *const *a = left;
    const struct lease *const *b = right;
    return ((*a)->id > (*b)->id) - ((*a)->id < (*b)->id);
}

/* Returns false when the lease that it is promised cannot be promised. */
static bool link_former(struct exchange *exchange, struct lease *lease)
{
    struct lease *former = lease->former == 0 ? NULL : lookup_lease(exchange, lease->former);
    if (lease->state != LEASE_PROMISED) {
        return lease->former == 0;
    }
    if (former == NULL || !former->is_noticed || former->device != lease->device ||
        former->state != LEASE_ENDING || former->successor != NULL) {
        return false;
    }
    former->successor = lease;
    return true;
}

/* Leases come job by job; providers keep them by number. Returns false when one does not fit or
 * memory is short. */
static bool link_providers(struct exchange *exchange)
{
    struct lease **standing =
        memory_allocate(exchange, (exchange->lease_count + 1) * sizeof(struct lease *));
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
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        lease_link_provider(exchange, standing[i]);
        promise_add_to_day(exchange, standing[i]->device, standing[i]->promised_ns);
        fits = fits && link_former(exchange, standing[i]);
    }
    free(standing);
    return fits;
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
    /* The state must be written again as the same bytes; otherwise another program wrote it. Order
     * is part of a state, too. */
    if (!load_records(exchange, &in) || !link_providers(exchange) || exchange->is_out_of_memory ||
        !exchange_saves_as(exchange, bytes, length)) {
        exchange_destroy(&exchange);
        return NULL;
    }
    /* The wishes of each open job follow from its lanes, known only now. No order can match,
     * because the market was at rest when it was saved. */
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        count_decided(job);
        if (job->graph != NULL) {
            graph_restore(job);
        }
        if (job->checks != NULL) {
            check_queue_restore(exchange, job);
            juries_restore(exchange, job);
        }
        bids_want(exchange, job);
        for (uint32_t i = 0; i < job->part_count; i++) {
            list_remove(&job->parts[i].wanting);
        }
        for (struct list_link *link = job->leases.next; link != &job->leases; link = link->next) {
            struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            spot_expose(exchange, lease);
            list_remove(&lease->exposing);
        }
    }
    return exchange;
}
