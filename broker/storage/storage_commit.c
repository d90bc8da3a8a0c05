/* A group of commands becomes durable here, with the acts that the audit log records. */
#include "broker/storage/storage_internal.h"

#include "base/sha256.h"
#include "broker/core/privileged_acts.h"
#include "broker/fatal.h"
#include "broker/storage/etcd/replicated.h"
#include "ledger/store/wal.h"
#include "runtime/clock.h"
#include "runtime/keyfile.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t write_entry(struct storage *store, const struct group *group)
{
    return group_write_entry(group, store->last.index + 1, store->epoch, &store->last.chain,
                             store->buffer);
}

bool storage_batch_of(const struct translation *said, const struct ledger_record *record,
                      struct ledger_batch *ret_batch)
{
    bool is_of_this_batch =
        record->kind == LEDGER_HELD ||
        (record->kind == LEDGER_RESULT && record->batch_index == record->log_index);
    if (!is_of_this_batch || said->results_count == 0) {
        return false; /* stored already, or an outcome that the broker decided */
    }
    *ret_batch = (struct ledger_batch){.signature = said->results_signature,
                                       .leaves = said->results_leaves,
                                       .count = said->results_count};
    return true;
}

/* Returns the message of the record's command, or NULL for a command of the broker itself. */
static const struct translation *said_by(const struct group *group,
                                         const struct ledger_record *record)
{
    assert(record->log_index >= group->first_command);
    assert(record->log_index - group->first_command < group->command_count);
    const struct request *request =
        group->commands[record->log_index - group->first_command].request;
    return request == NULL ? NULL : &request->translation;
}

enum ledger_store_status storage_append_record(struct storage *store,
                                               const struct translation *said,
                                               const struct ledger_record *record)
{
    struct ledger_batch batch;
    const bool has_batch = said != NULL && storage_batch_of(said, record, &batch);
    return ledger_store_append(store->ledger, record, has_batch ? &batch : NULL);
}

static enum ledger_store_status append_records(struct storage *store, const struct group *group)
{
    enum ledger_store_status status = LEDGER_STORE_OK;
    for (size_t i = 0; status == LEDGER_STORE_OK && i < group->effects.count; i++) {
        const struct exchange_effect *effect = &group->effects.items[i];
        if (effect->type == EFFECT_LEDGER) {
            status = storage_append_record(store, said_by(group, &effect->ledger), &effect->ledger);
        }
    }
    return status;
}

static struct signature64 sign_note(void *context, const void *text, size_t length)
{
    return identity_sign(context, text, length);
}

enum ledger_store_status storage_sign_tree(struct storage *store, uint64_t size_before)
{
    const struct merkle *tree = ledger_store_tree(store->ledger);
    if (tree->size == size_before) {
        return LEDGER_STORE_OK;
    }
    assert(store->table.index > 0 || (store->log_notes & KEYFILE_SIGNED) != 0);
    struct checkpoint checkpoint = {.size = tree->size, .root = merkle_root(tree)};
    memcpy(checkpoint.origin, store->genesis.origin, sizeof checkpoint.origin);
    char note[CHECKPOINT_TEXT_SIZE];
    size_t length = checkpoint_write(&checkpoint, identity_key(store->log_key), sign_note,
                                     store->log_key, note);
    return ledger_store_set_checkpoint(store->ledger, note, length, checkpoint.size);
}

/* The ledger explains its own failures, and SQLite those of the audit log. */
const char *storage_why_failed(const struct storage *store)
{
    const char *why = ledger_store_error(store->ledger);
    return why[0] != '\0' ? why : sqlite3_errmsg(ledger_store_database(store->ledger));
}

enum ledger_store_status storage_append_act(struct storage *store, struct act *act)
{
    act->wall_ms = clock_wall_ns() / NS_PER_MS;
    switch (act_log_append(store->acts, act)) {
    case ACT_LOG_OK:
        return LEDGER_STORE_OK;
    case ACT_LOG_FULL:
        ledger_store_rollback(store->ledger);
        return LEDGER_STORE_FULL;
    case ACT_LOG_FAILED:
        break;
    }
    return LEDGER_STORE_FAILED;
}

static enum ledger_store_status append_privileged_acts(struct storage *store,
                                                       const struct group *group)
{
    enum ledger_store_status status = LEDGER_STORE_OK;
    for (size_t i = 0; status == LEDGER_STORE_OK && i < group->effects.count; i++) {
        struct act act;
        if (privileged_act_of(group, &group->effects.items[i], &act)) {
            status = storage_append_act(store, &act);
        }
    }
    return status;
}

/* Appends waiting notes and refusals, within the transaction. */
static enum ledger_store_status append_waiting(struct storage *store, int64_t log_ns, bool all)
{
    enum ledger_store_status status = LEDGER_STORE_OK;
    if (store->refused_count == 0) {
        store->refused_count =
            refusals_take(store->refusals, clock_monotonic_ns(), all, store->refused);
    }
    for (size_t i = 0; status == LEDGER_STORE_OK && i < store->note_count; i++) {
        struct act act = store->notes[i];
        act.log_time_ns = log_ns;
        act.log_index = store->table.next_command - 1;
        status = storage_append_act(store, &act);
    }
    for (size_t i = 0; status == LEDGER_STORE_OK && i < store->refused_count; i++) {
        const struct refusal_count *refused = &store->refused[i];
        struct act act = {.kind = ACT_REFUSAL,
                          .log_time_ns = log_ns,
                          .account = refused->account,
                          .log_index = store->table.next_command - 1,
                          .code = (uint16_t)refused->code,
                          .type = (uint16_t)refused->type,
                          .count = refused->count};
        status = storage_append_act(store, &act);
    }
    return status;
}

/* Settles the appended acts after the commit of their transaction. HEAD knows of them once the disk
 * has them. */
static void acts_are_in(struct storage *store)
{
    act_log_committed(store->acts);
    store->note_count = 0;
    store->refused_count = 0;
}

void storage_note(struct storage *store, const struct act *act)
{
    if (store->note_count == STORAGE_NOTES_MAX) {
        log_error(
            "the audit log has lost an act of kind %d: %d acts already wait for room on the disk",
            (int)act->kind, STORAGE_NOTES_MAX);
        return;
    }
    store->notes[store->note_count++] = *act;
}

/* A HEAD that is removed under a running broker is made again: the process knows where the journal
 * stands. */
static enum head_status keep_head(struct storage *store, const struct head *head)
{
    switch (head_look(store->head)) {
    case HEAD_STANDS:
        return head_write(store->head, head);
    case HEAD_REMOVED:
        if (head_create_again(store->head, head) != HEAD_OK) {
            break;
        }
        log_warning("%s/%s was removed while the broker runs: it has been written anew",
                    store->folder, MARKET_HEAD);
        return HEAD_OK;
    case HEAD_REPLACED:
        fatal("%s/%s was replaced by another file while the broker runs; stopped, and that file "
              "was left as it is",
              store->folder, MARKET_HEAD);
    case HEAD_UNSEEN:
        break;
    }
    return HEAD_FAILED;
}

void storage_write_head(struct storage *store, const struct journal_last *end)
{
    pthread_mutex_lock(&store->head_mutex);
    if (end->index > store->mark.index) {
        store->mark.index = end->index;
        store->mark.chain = end->chain;
    }
    if (keep_head(store, &store->mark) != HEAD_OK) {
        fatal("%s could not be written: %s; stopped", MARKET_HEAD, strerror(errno));
    }
    pthread_mutex_unlock(&store->head_mutex);
}

/* The tree and the audit log are the follower's; HEAD says how far both reach. */
static void mark_tables(struct storage *store)
{
    pthread_mutex_lock(&store->head_mutex);
    store->mark.tree_size = ledger_store_tree(store->ledger)->size;
    store->mark.acts = *act_log_mark(store->acts);
    pthread_mutex_unlock(&store->head_mutex);
}

void storage_tables_reach(struct storage *store, const struct journal_last *end)
{
    assert(ledger_store_is_synced(store->ledger));
    store->table = *end;
    store->unsynced_bytes = 0;
    mark_tables(store);
    storage_write_head(store, end);
    watermark_raise(&store->applied, end->index);
    watermark_raise(&store->synced, end->index);
}

void storage_sync_tables(struct storage *store)
{
    const struct journal_last end = store->table;
    if (watermark_value(&store->synced) == end.index) {
        return;
    }
    const enum ledger_store_status status = ledger_store_sync(store->ledger);
    if (status != LEDGER_STORE_OK) {
        fatal("%s could not be made durable after entry %" PRIu64 ": %s: %s; stopped",
              MARKET_DATABASE, end.index, storage_ledger_text(status), storage_why_failed(store));
    }
    storage_tables_reach(store, &end);
}

/* Settles the tables after a commit that did not wait for the disk. HEAD knows of the entries since
 * they are in the tail. */
static void tables_have(struct storage *store, const struct journal_last *end, size_t bytes)
{
    store->table = *end;
    store->unsynced_bytes += bytes;
    watermark_raise(&store->applied, end->index);
    if (ledger_store_is_synced(store->ledger) || store->unsynced_bytes >= store->sync_bytes) {
        storage_sync_tables(store);
    }
}

enum storage_status storage_write_acts(struct storage *store, int64_t log_ns, bool all)
{
    if (store->note_count == 0 && store->refused_count == 0) {
        store->refused_count =
            refusals_take(store->refusals, clock_monotonic_ns(), all, store->refused);
        if (store->refused_count == 0) {
            return STORAGE_OK;
        }
    }
    enum ledger_store_status status = ledger_store_begin(store->ledger);
    if (status == LEDGER_STORE_OK) {
        status = append_waiting(store, log_ns, all);
        status = status == LEDGER_STORE_OK ? ledger_store_commit(store->ledger) : status;
    }
    if (status == LEDGER_STORE_FULL) {
        act_log_rolled_back(store->acts);
        return STORAGE_FULL;
    }
    if (status != LEDGER_STORE_OK) {
        fatal("the audit log could not be written: %s: %s; stopped", storage_ledger_text(status),
              storage_why_failed(store));
    }
    const struct journal_last end = store->table;
    acts_are_in(store);
    storage_tables_reach(store, &end);
    return STORAGE_OK;
}

void storage_save_space(struct storage *store, bool is_scarce)
{
    store->saves_space = is_scarce;
    ledger_store_checkpoint_every(store->ledger, is_scarce ? 1 : WAL_CHECKPOINT_PAGES);
}

enum ledger_store_status storage_append_row(struct storage *store, uint64_t index,
                                            const uint8_t *bytes, size_t length)
{
    const struct journal_entry entry = {.index = index, .bytes = bytes, .length = length};
    switch (journal_append(store->rows, store->epoch, &entry, 1)) {
    case JOURNAL_OK:
        return LEDGER_STORE_OK;
    case JOURNAL_FULL:
        /* The ledger's own calls roll back when they fail; journal_append does not. */
        ledger_store_rollback(store->ledger);
        return LEDGER_STORE_FULL;
    case JOURNAL_UNKNOWN:
    case JOURNAL_DEPOSED:
    case JOURNAL_BEHIND:
    case JOURNAL_TOO_LARGE:
    case JOURNAL_UNAVAILABLE:
    case JOURNAL_CORRUPT:
        break;
    }
    return LEDGER_STORE_FAILED;
}

void storage_note_limits(struct group *group, const struct exchange *exchange,
                         const struct exchange_set_limits *set)
{
    const struct exchange_limits old = exchange_limits_now(exchange);
    if (exchange_rules(exchange) != 0) {
        group->limits = (struct act){.kind = ACT_LIMITS, .state = set->rules};
        config_limits_text(&old, &set->limits, group->limits.text, sizeof group->limits.text);
    }
}

static enum ledger_store_status append_limits(struct storage *store, const struct group *group)
{
    struct act act = group->limits;
    act.log_time_ns = group->commands[0].entry.log_time_ns;
    act.account = EXCHANGE_NO_ACCOUNT;
    act.log_index = group->first_command - 1;
    return act.kind == 0 ? LEDGER_STORE_OK : storage_append_act(store, &act);
}

/* Writes the group within the transaction; `bytes` is its entry. */
static enum ledger_store_status write_group(struct storage *store, const struct group *group,
                                            uint64_t index, const uint8_t *bytes, size_t length)
{
    enum ledger_store_status status = storage_append_row(store, index, bytes, length);
    if (status == LEDGER_STORE_OK) {
        status = append_records(store, group);
    }
    if (status == LEDGER_STORE_OK) {
        status = append_waiting(store, group->commands[0].entry.log_time_ns, false);
    }
    if (status == LEDGER_STORE_OK) {
        status = append_limits(store, group);
    }
    if (status == LEDGER_STORE_OK) {
        status = append_privileged_acts(store, group);
    }
    return status;
}

/* Ends the transaction of the groups before entry `index`: OK, or FULL. */
static enum storage_status end_tables(struct storage *store, enum ledger_store_status status,
                                      uint64_t index)
{
    if (status == LEDGER_STORE_OK) {
        status = ledger_store_commit(store->ledger);
    }
    if (status == LEDGER_STORE_FULL) {
        act_log_rolled_back(store->acts);
        return STORAGE_FULL;
    }
    if (status != LEDGER_STORE_OK) {
        fatal("entry %" PRIu64
              " could not be committed: %s: %s; stopped, nothing unacknowledged was sent",
              index, storage_ledger_text(status), storage_why_failed(store));
    }
    return STORAGE_OK;
}

static struct journal_last end_after(const struct journal_last *before, const struct group *group,
                                     const struct hash32 *chain)
{
    return (struct journal_last){.index = before->index + 1,
                                 .chain = *chain,
                                 .next_command = before->next_command + group->command_count};
}

/* Writes the entry in `buffer`, which has `length` bytes, and the group's records to this disk. */
static enum storage_status commit_here(struct storage *store, const struct group *group,
                                       size_t length)
{
    const uint64_t index = store->last.index + 1;
    const uint64_t size_before = ledger_store_tree(store->ledger)->size;
    enum ledger_store_status status = ledger_store_begin(store->ledger);
    assert(store->table.index == store->last.index);
    if (status == LEDGER_STORE_OK) {
        status = write_group(store, group, index, store->buffer, length);
    }
    if (status == LEDGER_STORE_OK) {
        status = storage_sign_tree(store, size_before);
    }
    if (end_tables(store, status, index) == STORAGE_FULL) {
        return STORAGE_FULL;
    }
    const struct hash32 chain = sha256_of(store->buffer, length);
    store->last = end_after(&store->last, group, &chain);
    store->frozen = 0;
    store->is_frozen_in = false;
    acts_are_in(store);
    storage_tables_reach(store, &store->last);
    watermark_raise(&store->durable, store->last.index);
    return STORAGE_OK;
}

enum storage_status storage_commit(struct storage *store, const struct group *group)
{
    assert(group->command_count > 0);
    assert(group->first_command == store->last.next_command);
    size_t length = 0;
    enum storage_status status = STORAGE_OK;
    if (store->replicated != NULL) {
        status = replicated_append(store, group, &length);
    } else {
        length = write_entry(store, group);
    }
    if (status == STORAGE_OK) {
        status = commit_here(store, group, length);
    }
    if (status == STORAGE_OK && store->replicated != NULL) {
        replicated_trim(store, length);
    }
    return status;
}

bool storage_follow(struct storage *store, const struct group *group, size_t length)
{
    assert(group->first_command == store->last.next_command);
    assert(store->frozen == 0);
    return commit_here(store, group, length) == STORAGE_OK;
}

/* ------------------------------------------------------- the tail, and the tables after it */

/* The group keeps its entry until the tables have it. */
static void keep_entry(struct storage *store, struct group *group, size_t length)
{
    if (length > group->entry.capacity) {
        free(group->entry.bytes);
        group->entry.bytes = malloc(length);
        if (group->entry.bytes == NULL) {
            fatal("out of memory for a journal entry");
        }
        group->entry.capacity = length;
    }
    memcpy(group->entry.bytes, store->buffer, length);
    group->entry.length = length;
    group->entry.index = store->last.index + 1;
    group->entry.chain = sha256_of(store->buffer, length);
}

enum storage_status storage_append(struct storage *store, struct group *group)
{
    assert(group->command_count > 0);
    assert(group->first_command == store->last.next_command);
    if (group->entry.length == 0) { /* else this is another try */
        keep_entry(store, group, write_entry(store, group));
    }
    const struct journal_entry entry = {
        .index = group->entry.index, .bytes = group->entry.bytes, .length = group->entry.length};
    const enum journal_status status = journal_append(store->journal, store->epoch, &entry, 1);
    if (status == JOURNAL_FULL) {
        return STORAGE_FULL;
    }
    if (status != JOURNAL_OK) {
        fatal("entry %" PRIu64
              " could not be appended to the journal: %s (%s); stopped, nothing unacknowledged "
              "was sent",
              entry.index, journal_status_text(status), strerror(errno));
    }
    store->last = end_after(&store->last, group, &group->entry.chain);
    storage_write_head(store, &store->last);
    watermark_raise(&store->durable, store->last.index);
    return STORAGE_OK;
}

enum storage_status storage_apply(struct storage *store, struct group *const *groups, size_t count)
{
    assert(count > 0);
    struct journal_last end = store->table;
    size_t bytes = 0;
    const uint64_t size_before = ledger_store_tree(store->ledger)->size;
    enum ledger_store_status status = store->saves_space ? ledger_store_begin(store->ledger)
                                                         : ledger_store_begin_lazily(store->ledger);
    for (size_t i = 0; status == LEDGER_STORE_OK && i < count; i++) {
        const struct group *group = groups[i];
        bytes += group->entry.length;
        assert(group->entry.index == end.index + 1);
        status =
            write_group(store, group, group->entry.index, group->entry.bytes, group->entry.length);
        end = end_after(&end, group, &group->entry.chain);
    }
    if (status == LEDGER_STORE_OK) {
        status = storage_sign_tree(store, size_before);
    }
    if (end_tables(store, status, store->table.index + 1) == STORAGE_FULL) {
        return STORAGE_FULL;
    }
    acts_are_in(store);
    tables_have(store, &end, bytes);
    return STORAGE_OK;
}
