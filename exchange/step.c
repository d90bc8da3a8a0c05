/* One step of the exchange checks a command's id and sender and applies the command. */
#include "exchange/state.h"

#include "base/ahead.h"
#include "base/checked.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

struct exchange_limits exchange_limits_default(void)
{
    return (struct exchange_limits){
        .accounts = 100000,
        .invitations = 10000,
        .ids_per_account = 65536,
        .devices_per_provider = 1024,
        .asks = 65536,
        .jobs = 65536,
        .jobs_per_account = 1024,
        .leases = 262144,
        .attempts = 1 << 20,
        .subtasks = 20000000,
        .subtasks_per_account = 10000000, /* the largest job; half of all subtasks */
        .cells = 4096,
        .classes = 4096,
        .cells_per_account = 512,
        .classes_per_account = 256,
    };
}

struct exchange_totals exchange_totals(const struct exchange *exchange)
{
    return exchange->totals;
}

struct exchange *exchange_create(const struct exchange_limits *limits)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL) {
        return NULL;
    }
    exchange->limits = *limits;
    exchange->members_by_key =
        table_of(offsetof(struct member, key), sizeof(struct key32), limits->table_key);
    exchange->members_by_name =
        table_of(offsetof(struct member, name), EXCHANGE_NAME_SIZE, limits->table_key);
    exchange->invitations =
        table_of(offsetof(struct invitation, token_hash), sizeof(struct hash32), limits->table_key);
    exchange->ids =
        table_of(offsetof(struct id_entry, key), sizeof(struct id_key), limits->table_key);
    exchange->devices =
        table_of(offsetof(struct device, key), sizeof(struct device_key), limits->table_key);
    exchange->asks = table_of(offsetof(struct ask, order), sizeof(struct id128), limits->table_key);
    exchange->jobs = table_of(offsetof(struct job, id), sizeof(struct id128), limits->table_key);
    exchange->leases = table_of(offsetof(struct lease, id), sizeof(uint64_t), limits->table_key);
    exchange->attempts =
        table_of(offsetof(struct attempt, key), sizeof(struct attempt_key), limits->table_key);
    struct list_link *lists[] = {
        &exchange->id_ages,   &exchange->invitation_list, &exchange->provider_list,
        &exchange->job_list,  &exchange->wanting_asks,    &exchange->wanting_parts,
        &exchange->refills,   &exchange->spreads,         &exchange->fronts,
        &exchange->reports,   &exchange->dirty,           &exchange->challenges,
        &exchange->exposures, &exchange->backs,
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        list_init(lists[i]);
    }
    uint32_t orders = limits->asks + limits->jobs;
    exchange->accounts = accounts_create();
    exchange->book = book_create((struct book_limits){orders, limits->cells, limits->classes});
    exchange->cells = calloc(limits->cells, sizeof *exchange->cells);
    exchange->classes = calloc(limits->classes, sizeof *exchange->classes);
    exchange->free_handles = calloc(orders, sizeof *exchange->free_handles);
    exchange->orders_by_handle = calloc(orders, sizeof *exchange->orders_by_handle);
    exchange->steps = calloc(1, sizeof *exchange->steps);
    if (exchange->accounts == NULL || exchange->book == NULL || exchange->cells == NULL ||
        exchange->classes == NULL || exchange->free_handles == NULL ||
        exchange->orders_by_handle == NULL || exchange->steps == NULL) {
        exchange_destroy(&exchange);
        return NULL;
    }
    for (uint32_t i = 0; i < orders; i++) {
        exchange->free_handles[i] = orders - 1 - i;
    }
    exchange->free_handle_count = orders;
    exchange->handle_capacity = orders;
    exchange->next_lease = 1;
    exchange->sequence = 1;
    exchange->next_order = 1;
    track(exchange, &exchange->tracked, RECORD_MARKET);
    return exchange;
}

static void destroy_providers(struct exchange *exchange)
{
    while (!list_empty(&exchange->provider_list)) {
        struct provider *provider =
            LIST_ELEMENT(exchange->provider_list.next, struct provider, all);
        while (!list_empty(&provider->devices)) {
            struct device *device =
                LIST_ELEMENT(provider->devices.next, struct device, of_provider);
            list_remove(&device->of_provider);
            free(device->ask);
            free(device);
        }
        daily_destroy(provider);
        list_remove(&provider->all);
        free(provider);
    }
}

static void destroy_jobs(struct exchange *exchange)
{
    while (!list_empty(&exchange->job_list)) {
        struct job *job = LIST_ELEMENT(exchange->job_list.next, struct job, all);
        list_remove(&job->all);
        while (!list_empty(&job->leases)) {
            struct lease *lease = LIST_ELEMENT(job->leases.next, struct lease, of_job);
            list_remove(&lease->of_job);
            while (!list_empty(&lease->attempts)) {
                struct attempt *attempt =
                    LIST_ELEMENT(lease->attempts.next, struct attempt, of_lease);
                list_remove(&attempt->of_lease);
                free(attempt);
            }
            free(lease->lanes);
            free(lease);
        }
        job_free(job);
    }
}

void exchange_destroy(struct exchange **self)
{
    struct exchange *exchange = *self;
    if (exchange == NULL) {
        return;
    }
    destroy_jobs(exchange);
    destroy_providers(exchange);
    while (!list_empty(&exchange->invitation_list)) {
        struct invitation *invitation =
            LIST_ELEMENT(exchange->invitation_list.next, struct invitation, all);
        list_remove(&invitation->all);
        free(invitation);
    }
    while (!list_empty(&exchange->id_ages)) {
        struct id_entry *entry = LIST_ELEMENT(exchange->id_ages.next, struct id_entry, age);
        list_remove(&entry->age);
        free(entry);
    }
    free(exchange->enders);
    for (uint32_t i = 0; i < exchange->member_count; i++) {
        free(exchange->members[i]->ended.jobs);
        free(exchange->members[i]->uses);
        free(exchange->members[i]->standing);
        free(exchange->members[i]);
    }
    free(exchange->members);
    struct table *tables[] = {&exchange->members_by_key, &exchange->members_by_name,
                              &exchange->invitations,    &exchange->ids,
                              &exchange->devices,        &exchange->asks,
                              &exchange->jobs,           &exchange->leases,
                              &exchange->attempts};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        table_fini(tables[i]);
    }
    accounts_destroy(&exchange->accounts);
    book_destroy(&exchange->book);
    feed_destroy(&exchange->feed);
    spot_destroy(&exchange->spot);
    free(exchange->cells);
    free(exchange->classes);
    free(exchange->free_handles);
    free(exchange->orders_by_handle);
    free(exchange->steps);
    free(exchange->plan);
    free(exchange->timers);
    free(exchange);
    *self = NULL;
}

/* ---------------------------------------------------------------- effects */

static void free_blocks(struct exchange_effects *effects)
{
    while (effects->blocks != NULL) {
        struct exchange_block *next = effects->blocks->next;
        free(effects->blocks);
        effects->blocks = next;
    }
}

void exchange_effects_clear(struct exchange_effects *effects)
{
    free_blocks(effects);
    effects->count = 0;
}

void exchange_effects_fini(struct exchange_effects *effects)
{
    free_blocks(effects);
    free(effects->items);
    *effects = (struct exchange_effects){0};
}

struct exchange_effect *emit(struct exchange *exchange, enum exchange_effect_type type,
                             uint32_t account)
{
    struct exchange_effects *effects = exchange->effects;
    if (effects->count == effects->capacity) {
        size_t capacity = effects->capacity == 0 ? 64 : 2 * effects->capacity;
        struct exchange_effect *items = realloc(effects->items, capacity * sizeof *items);
        if (items == NULL) {
            exchange->is_out_of_memory = true;
            exchange->spare = (struct exchange_effect){.type = type, .account = account};
            return &exchange->spare;
        }
        effects->items = items;
        effects->capacity = capacity;
    }
    struct exchange_effect *effect = &effects->items[effects->count++];
    memset(effect, 0, sizeof *effect);
    effect->type = type;
    effect->account = account;
    return effect;
}

struct ledger_record *emit_ledger(struct exchange *exchange, enum ledger_kind kind)
{
    struct exchange_effect *effect = emit(exchange, EFFECT_LEDGER, EXCHANGE_NO_ACCOUNT);
    feed_record(exchange);
    effect->ledger.kind = kind;
    effect->ledger.log_index = exchange->index;
    effect->ledger.log_time_ns = exchange->now_ns;
    return &effect->ledger;
}

/* The unit of a refused limit comes from the command, so that a repeated command gets the same
 * answer. */
static enum rate rate_refused(const struct exchange_command *command, const char *field,
                              int64_t value)
{
    uint32_t rate = RATE_NONE;
    if (command->type == EXCHANGE_REPLACE && strcmp(field, "price_micro") == 0) {
        rate = command->replace.rate;
    } else if (command->type == EXCHANGE_SUBMIT && strcmp(field, "cap_micro") == 0) {
        rate = command->submit.rate;
    } else if (command->type == EXCHANGE_SUBMIT && strcmp(field, "parts.cap_micro") == 0) {
        for (size_t i = command->submit.part_count; i-- > 0;) {
            const struct exchange_part *part = &command->submit.parts[i];
            rate = part->cap_micro == value ? part->rate : rate;
        }
    }
    return rate < RATES ? (enum rate)rate : RATE_NONE;
}

struct exchange_effect *reject(struct exchange *exchange, uint32_t code, const char *field,
                               int64_t value, int64_t limit)
{
    struct exchange_effect *effect = emit(exchange, EFFECT_REJECT, exchange->command->account);
    effect->origin = exchange->command->origin;
    effect->id = exchange->command->id;
    effect->refused = exchange->command->type;
    effect->rate = rate_refused(exchange->command, field, value);
    effect->reject = (struct exchange_reject){.code = code, .value = value, .limit = limit};
    assert(strlen(field) < sizeof effect->reject.field);
    memcpy(effect->reject.field, field, strlen(field));
    exchange->is_rejected = true;
    exchange->rejection = effect->reject;
    return effect;
}

void report_job(struct exchange *exchange, struct job *job)
{
    if (!job->is_reported) {
        job->is_reported = true;
        list_append(&exchange->reports, &job->report);
    }
}

static void flush_reports(struct exchange *exchange)
{
    while (!list_empty(&exchange->reports)) {
        struct job *job = LIST_ELEMENT(exchange->reports.next, struct job, report);
        list_remove(&job->report);
        job->is_reported = false;
        emit(exchange, EFFECT_JOB, job->owner)->id = job->id;
    }
}

/* ---------------------------------------------------------------- small shared things */

void *allocate(struct exchange *exchange, size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL) {
        exchange->is_out_of_memory = true;
    }
    return memory;
}

void copy_name(char ret_name[EXCHANGE_NAME_SIZE], const char *name)
{
    size_t length = strnlen(name, EXCHANGE_NAME_SIZE - 1);
    memset(ret_name, 0, EXCHANGE_NAME_SIZE);
    memcpy(ret_name, name, length);
}

/* Doubles the table of handles. Callers have checked the caps of asks and jobs. The table is too
 * small after a cap was raised, or for a snapshot from before a cap was lowered. */
static bool handles_grow(struct exchange *exchange)
{
    uint32_t old = exchange->handle_capacity;
    uint32_t capacity = old < BOOK_NONE / 4 ? 2 * old : old;
    uint32_t *handles = realloc(exchange->free_handles, capacity * sizeof *handles);
    exchange->free_handles = handles != NULL ? handles : exchange->free_handles;
    void **orders = realloc(exchange->orders_by_handle, capacity * sizeof *orders);
    exchange->orders_by_handle = orders != NULL ? orders : exchange->orders_by_handle;
    if (capacity == old || handles == NULL || orders == NULL ||
        !book_grow(exchange->book, capacity)) {
        exchange->is_out_of_memory = true;
        return false;
    }
    for (uint32_t i = old; i < capacity; i++) {
        orders[i] = NULL;
        handles[i - old] = capacity - 1 - (i - old);
    }
    exchange->free_handle_count = capacity - old;
    exchange->handle_capacity = capacity;
    return true;
}

uint32_t handle_take(struct exchange *exchange, void *order)
{
    if (exchange->free_handle_count == 0 && !handles_grow(exchange)) {
        return BOOK_NONE;
    }
    uint32_t handle = exchange->free_handles[--exchange->free_handle_count];
    exchange->orders_by_handle[handle] = order;
    return handle;
}

void handle_give(struct exchange *exchange, uint32_t handle)
{
    assert(exchange->orders_by_handle[handle] != NULL);
    exchange->orders_by_handle[handle] = NULL;
    exchange->free_handles[exchange->free_handle_count++] = handle;
}

struct member *member_by_number(const struct exchange *exchange, uint32_t number)
{
    return number < exchange->member_count ? exchange->members[number] : NULL;
}

struct member *sender(const struct exchange *exchange)
{
    return member_by_number(exchange, exchange->command->account);
}

/* ---------------------------------------------------------------- ids (D7) */

static void id_forget(struct exchange *exchange, struct id_entry *entry)
{
    struct member *member = member_by_number(exchange, entry->key.account);
    if (entry->is_refused) {
        struct refused_id *refused = (struct refused_id *)entry;
        list_remove(&refused->of_member);
        member->refusal_count--;
    } else {
        member->ids--;
        touch(exchange, &member->tracked);
    }
    table_remove(&exchange->ids, &entry->key);
    list_remove(&entry->age);
    untrack(exchange, &entry->tracked);
    free(entry);
}

static void ids_expire(struct exchange *exchange)
{
    while (!list_empty(&exchange->id_ages)) {
        struct id_entry *entry = LIST_ELEMENT(exchange->id_ages.next, struct id_entry, age);
        if (entry->log_time_ns > exchange->now_ns - ID_AGE_NS - ID_AHEAD_NS) {
            return;
        }
        id_forget(exchange, entry);
    }
}

/* Puts the command's id under `account` in the table. Returns false and frees the entry when memory
 * is short. */
static bool id_enter(struct exchange *exchange, uint32_t account, struct id_entry *entry)
{
    const struct exchange_command *command = exchange->command;
    entry->key = (struct id_key){.id = command->id, .account = account};
    const uint64_t hash = account == exchange->id_account
                              ? exchange->id_hash
                              : table_hash_of(&exchange->ids, &entry->key);
    entry->body = command->body;
    entry->index = exchange->index;
    entry->log_time_ns = exchange->now_ns;
    if (!table_insert_as(&exchange->ids, entry, hash)) {
        exchange->is_out_of_memory = true;
        free(entry);
        return false;
    }
    list_append(&exchange->id_ages, &entry->age);
    track(exchange, &entry->tracked, RECORD_ID);
    return true;
}

static void remember_id(struct exchange *exchange, uint32_t account)
{
    struct member *member = member_by_number(exchange, account);
    struct id_entry *entry = allocate(exchange, sizeof *entry);
    if (entry != NULL && id_enter(exchange, account, entry)) {
        member->ids++;
        touch(exchange, &member->tracked);
    }
}

void refusal_link(struct exchange *exchange, struct refused_id *refused)
{
    struct member *member = member_by_number(exchange, refused->entry.key.account);
    list_append(&member->refusals, &refused->of_member);
    member->refusal_count++;
}

/* Remembers the id of a refused command, so that no copy on another connection runs later. An
 * expired id is not remembered, because the command may come again with a new stamp. */
static void remember_refusal(struct exchange *exchange)
{
    const struct member *member = sender(exchange);
    if (exchange->rejection.code == XREJECT_ID_EXPIRED) {
        return;
    }
    if (member->refusal_count >= REFUSALS_KEPT) {
        struct refused_id *oldest =
            LIST_ELEMENT(member->refusals.next, struct refused_id, of_member);
        id_forget(exchange, &oldest->entry);
    }
    struct refused_id *refused = allocate(exchange, sizeof *refused);
    if (refused == NULL) {
        return;
    }
    refused->entry.is_refused = true;
    refused->why = exchange->rejection;
    if (id_enter(exchange, member->number, &refused->entry)) {
        refusal_link(exchange, refused);
    }
}

static void accept(struct exchange *exchange, uint64_t index, bool repeated)
{
    struct exchange_effect *effect = emit(exchange, EFFECT_ACCEPT, exchange->command->account);
    effect->origin = exchange->command->origin;
    effect->id = exchange->command->id;
    effect->index = index;
    effect->repeated = repeated;
}

/* Results and statements are idempotent by content, and frequent, so they stay out of the id
 * table. */
static bool keeps_id(enum exchange_command_type type)
{
    return type != EXCHANGE_RESULTS && type != EXCHANGE_STATEMENT;
}

/* The id of a JOIN is kept under the account that it opened. Its session began without an account
 * and may send the JOIN again. */
static uint32_t id_owner(const struct exchange *exchange)
{
    const struct exchange_command *command = exchange->command;
    const struct member *joined =
        command->type == EXCHANGE_JOIN
            ? table_find(&exchange->members_by_key, &command->join.account)
            : NULL;
    return joined == NULL ? command->account : joined->number;
}

static const struct id_entry *find_id(struct exchange *exchange)
{
    const struct id_key key = {.id = exchange->command->id, .account = id_owner(exchange)};
    exchange->id_account = key.account;
    exchange->id_hash = table_hash_of(&exchange->ids, &key);
    return table_find_as(&exchange->ids, &key, exchange->id_hash);
}

/* Repeats the earlier answer to the id, or refuses an id that came before with another body. */
static void answer_again(struct exchange *exchange, const struct id_entry *known)
{
    if (!hash32_equal(&known->body, &exchange->command->body)) {
        reject(exchange, XREJECT_ID_REUSED, "id", 0, 0);
    } else if (known->is_refused) {
        const struct exchange_reject *why = &((const struct refused_id *)known)->why;
        reject(exchange, why->code, why->field, why->value, why->limit)->repeated = true;
    } else {
        accept(exchange, known->index, true);
    }
}

/* Returns true when the id may enter the table. */
static bool pass_id(struct exchange *exchange)
{
    const struct exchange_command *command = exchange->command;
    int64_t created_ns;
    if (!checked_mul(command->created_ms, NS_PER_MS, &created_ns) ||
        created_ns < exchange->now_ns - ID_AGE_NS || created_ns > exchange->now_ns + ID_AHEAD_NS) {
        reject(exchange, XREJECT_ID_EXPIRED, "created_ms", command->created_ms,
               exchange->now_ns / NS_PER_MS);
        return false;
    }
    const struct member *member = sender(exchange);
    if (member != NULL && member->ids >= exchange->limits.ids_per_account) {
        reject(exchange, XREJECT_ID_TABLE_FULL, "id", member->ids,
               exchange->limits.ids_per_account);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- limits and rules */

static void take_limits(struct exchange *exchange, const struct exchange_limits *limits)
{
    const struct exchange_limits old = exchange->limits;
    exchange->limits = *limits;
    exchange->limits.cells = old.cells;
    exchange->limits.classes = old.classes;
    memcpy(exchange->limits.table_key, old.table_key, sizeof old.table_key);
}

void limits_restore(struct exchange *exchange, const struct exchange_set_limits *set)
{
    if (exchange->rules == 0) {
        track(exchange, &exchange->limits_tracked, RECORD_LIMITS);
    } else {
        touch(exchange, &exchange->limits_tracked);
    }
    exchange->rules = set->rules;
    take_limits(exchange, &set->limits);
}

void exchange_presume_limits(struct exchange *exchange, const struct exchange_limits *limits)
{
    if (exchange->rules == 0) {
        take_limits(exchange, limits);
    }
}

/* ---------------------------------------------------------------- epochs of the dice */

/* A secret that does not match the commitment changes nothing. */
static void apply_epoch(struct exchange *exchange, const struct exchange_epoch *epoch)
{
    static const struct hash32 none;
    const struct hash32 shown = sha256_of(epoch->secret.bytes, sizeof epoch->secret.bytes);
    bool is_shown = !hash32_equal(&epoch->secret, &none);
    if (is_shown && (exchange->epochs == 0 || !hash32_equal(&shown, &exchange->commitment))) {
        return;
    }
    exchange->commitment = epoch->commitment;
    exchange->epochs++;
    struct ledger_record *record = emit_ledger(exchange, LEDGER_EPOCH);
    record->hash = epoch->commitment;
    record->check = epoch->secret;
}

/* ---------------------------------------------------------------- one step */

static bool is_from_broker(enum exchange_command_type type)
{
    return type == EXCHANGE_GENESIS || type == EXCHANGE_TICK || type == EXCHANGE_SUSPECT ||
           type == EXCHANGE_RETURNED || type == EXCHANGE_GOODBYE || type == EXCHANGE_LIMITS ||
           type == EXCHANGE_EPOCH;
}

static void resume_juries(struct exchange *exchange)
{
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        juries_resume(exchange, LIST_ELEMENT(at, struct job, all));
    }
}

static void apply_from_broker(struct exchange *exchange, const struct exchange_command *command)
{
    if (command->type == EXCHANGE_GENESIS) {
        if (!exchange->has_genesis) {
            apply_genesis(exchange, &command->genesis);
        }
    } else if (command->type == EXCHANGE_SUSPECT) {
        apply_suspect(exchange, command->provider);
    } else if (command->type == EXCHANGE_RETURNED) {
        apply_returned(exchange, command->provider);
    } else if (command->type == EXCHANGE_GOODBYE) {
        apply_goodbye(exchange, command->provider);
    } else if (command->type == EXCHANGE_LIMITS && command->set_limits.rules != 0) {
        limits_restore(exchange, &command->set_limits);
        resume_juries(exchange);
    } else if (command->type == EXCHANGE_EPOCH) {
        apply_epoch(exchange, &command->epoch);
    }
}

static void apply_message(struct exchange *exchange, const struct exchange_command *command)
{
    switch (command->type) {
    case EXCHANGE_JOIN:
        apply_join(exchange, &command->join);
        break;
    case EXCHANGE_MINT:
        apply_mint(exchange, &command->mint);
        break;
    case EXCHANGE_INVITE:
        apply_invite(exchange, &command->invite);
        break;
    case EXCHANGE_FREEZE:
        apply_freeze(exchange, &command->freeze);
        break;
    case EXCHANGE_HALT:
        apply_halt(exchange, &command->halt);
        break;
    case EXCHANGE_BANDS:
        apply_bands(exchange, &command->bands);
        break;
    case EXCHANGE_OWNER:
        apply_owner(exchange, &command->owner);
        break;
    case EXCHANGE_JUDGE:
        apply_judge(exchange, &command->judge);
        break;
    case EXCHANGE_ADVERTISE:
        apply_advertise(exchange, &command->advertise);
        break;
    case EXCHANGE_ASK:
        apply_ask(exchange, &command->ask);
        break;
    case EXCHANGE_CANCEL_ORDER:
        apply_cancel_order(exchange, &command->cancel_order);
        break;
    case EXCHANGE_REPLACE:
        apply_replace(exchange, &command->replace);
        break;
    case EXCHANGE_STATEMENT:
        apply_statement(exchange, &command->statement);
        break;
    case EXCHANGE_RESULTS:
        apply_results(exchange, &command->results);
        break;
    case EXCHANGE_SUBMIT:
        apply_submit(exchange, &command->submit);
        break;
    case EXCHANGE_CANCEL_JOB:
        apply_cancel_job(exchange, &command->cancel_job);
        break;
    case EXCHANGE_GENESIS:
    case EXCHANGE_TICK:
    case EXCHANGE_SUSPECT:
    case EXCHANGE_RETURNED:
    case EXCHANGE_GOODBYE:
    case EXCHANGE_LIMITS:
    case EXCHANGE_EPOCH:
        break; /* commands of the broker: apply_from_broker */
    }
}

/* A frozen account may still state what it holds and hand in results, because the work was done. */
static bool frozen_may(enum exchange_command_type type)
{
    return type == EXCHANGE_RESULTS || type == EXCHANGE_STATEMENT;
}

static void step_message(struct exchange *exchange, const struct exchange_command *command)
{
    const struct member *member = sender(exchange);
    bool is_anonymous = member == NULL || command->account < ACCOUNT_FIRST_USER;
    if (is_anonymous && command->type != EXCHANGE_JOIN) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (command->type == EXCHANGE_JOIN && !is_anonymous &&
        !key32_equal(&member->key, &command->join.account)) {
        /* The sender has an account other than this one, so neither account keeps the id. */
        reject(exchange, XREJECT_EXISTS, "account", 0, 0);
        return;
    }
    const bool has_id = keeps_id(command->type);
    if (has_id) {
        const struct id_entry *known = find_id(exchange);
        if (known != NULL) {
            answer_again(exchange, known);
            return;
        }
    }
    exchange->accept_as = command->account;
    if (member != NULL && member->is_frozen && !frozen_may(command->type)) {
        reject(exchange, XREJECT_FROZEN, "account", 0, 0);
    } else if (!has_id || pass_id(exchange)) {
        apply_message(exchange, command);
    }
    if (!exchange->is_rejected) {
        if (has_id) {
            remember_id(exchange, exchange->accept_as);
        }
        accept(exchange, exchange->index, false);
    } else if (has_id && member != NULL) {
        remember_refusal(exchange);
    }
}

void exchange_expect(const struct exchange *exchange, uint32_t account,
                     const struct exchange_command *command)
{
    if (!keeps_id(command->type)) {
        return;
    }
    const struct id_key key = {.id = command->id, .account = account};
    table_expect(&exchange->ids, &key);
    if (command->type == EXCHANGE_SUBMIT) {
        table_expect(&exchange->jobs, &command->id);
    } else if (command->type == EXCHANGE_CANCEL_JOB) {
        table_expect(&exchange->jobs, &command->cancel_job.job);
    } else if (command->type == EXCHANGE_REPLACE) {
        table_expect(&exchange->asks, &command->replace.order);
        table_expect(&exchange->jobs, &command->replace.order);
    } else if (command->type == EXCHANGE_CANCEL_ORDER) {
        table_expect(&exchange->asks, &command->cancel_order.order);
    } else if (command->type == EXCHANGE_ASK) {
        const struct device_key device = {.device = command->ask.device, .provider = account};
        table_expect(&exchange->asks, &command->id);
        table_expect(&exchange->devices, &device);
    }
}

void exchange_expect_found(const struct exchange *exchange, uint32_t account,
                           const struct exchange_command *command)
{
    if (command->type == EXCHANGE_CANCEL_JOB) {
        table_expect_element(&exchange->jobs, &command->cancel_job.job, sizeof(struct job));
    } else if (command->type == EXCHANGE_REPLACE) {
        table_expect_element(&exchange->asks, &command->replace.order, sizeof(struct ask));
        table_expect_element(&exchange->jobs, &command->replace.order, sizeof(struct job));
    } else if (command->type == EXCHANGE_CANCEL_ORDER) {
        table_expect_element(&exchange->asks, &command->cancel_order.order, sizeof(struct ask));
    } else if (command->type == EXCHANGE_ASK) {
        const struct device_key device = {.device = command->ask.device, .provider = account};
        table_expect_element(&exchange->devices, &device, sizeof(struct device));
    }
}

static void expect_handle(const struct exchange *exchange, uint32_t handle)
{
    if (handle != BOOK_NONE) {
        book_expect(exchange->book, handle);
        line_ahead(&exchange->orders_by_handle[handle]);
    }
}

/* Leaves out jobs with several parts, because the parts lie in memory that is not fetched yet. */
static void expect_bid(const struct exchange *exchange, const struct id128 *id)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job != NULL && job->parts == &job->only_part) {
        expect_handle(exchange, job->only_part.handle);
    }
}

static void expect_ask(const struct exchange *exchange, const struct id128 *id)
{
    const struct ask *ask = table_find(&exchange->asks, id);
    if (ask != NULL) {
        expect_handle(exchange, ask->handle);
        memory_ahead(ask->device, sizeof *ask->device);
    }
}

/* An ask replaces the standing one and meets the best bid. */
static void expect_offer(const struct exchange *exchange, const struct device_key *key)
{
    const struct device *device = table_find(&exchange->devices, key);
    if (device == NULL) {
        return;
    }
    if (device->ask != NULL) {
        memory_ahead(device->ask, sizeof *device->ask);
    }
    book_expect_match(exchange->book, false, device->cell);
}

void exchange_expect_orders(const struct exchange *exchange, uint32_t account,
                            const struct exchange_command *command)
{
    if (command->type == EXCHANGE_CANCEL_JOB) {
        expect_bid(exchange, &command->cancel_job.job);
    } else if (command->type == EXCHANGE_REPLACE) {
        expect_ask(exchange, &command->replace.order);
        expect_bid(exchange, &command->replace.order);
    } else if (command->type == EXCHANGE_CANCEL_ORDER) {
        expect_ask(exchange, &command->cancel_order.order);
    } else if (command->type == EXCHANGE_ASK) {
        const struct device_key device = {.device = command->ask.device, .provider = account};
        expect_offer(exchange, &device);
    }
}

enum exchange_status exchange_step(struct exchange *exchange,
                                   const struct exchange_command *command,
                                   struct exchange_effects *effects)
{
    if (command->index != exchange->index + 1 || command->log_time_ns < exchange->now_ns) {
        return EXCHANGE_OUT_OF_ORDER;
    }
    exchange->index = command->index;
    exchange->now_ns = command->log_time_ns;
    exchange->effects = effects;
    exchange->command = command;
    exchange->is_rejected = false;
    touch(exchange, &exchange->tracked);

    ids_expire(exchange);
    invitations_expire(exchange);
    timers_fire(exchange);
    market_run(exchange); /* the command then meets a market at rest */
    if (is_from_broker(command->type)) {
        apply_from_broker(exchange, command);
    } else {
        step_message(exchange, command);
    }
    market_run(exchange);
    flush_reports(exchange);
    timers_weed(exchange);
    feed_settle(exchange);

    exchange->effects = NULL;
    exchange->command = NULL;
    return exchange->is_out_of_memory ? EXCHANGE_OUT_OF_MEMORY : EXCHANGE_OK;
}
