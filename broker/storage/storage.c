#include "broker/storage/storage.h"

#include "base/checked.h"
#include "broker/storage/founding.h"
#include "broker/storage/remains.h"
#include "broker/storage/storage_internal.h"
#include "broker/storage/tail/journal_tail.h"
#include "ledger/store/sqlite_code.h"
#include "runtime/clock.h"
#include "runtime/keyfile.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEDGER_LOCK MARKET_DATABASE "-lock" /* ledger/store makes it */

/* ---------------------------------------------------------------- opening */

/* Gets the size of a file, 0 when it is missing. Returns false with a problem on an error. */
static bool size_of(const struct storage *store, const char *name, off_t *ret_size, bool *ret_found,
                    struct problem *ret_problem)
{
    char path[sizeof store->folder + 16];
    struct stat status = {.st_size = 0};
    if (!folder_path(store->folder, name, path, sizeof path, ret_problem)) {
        return false;
    }
    *ret_found = stat(path, &status) == 0;
    if (!*ret_found && errno != ENOENT) {
        problem_set_unseen(ret_problem, path, " cannot be looked at", errno);
        return false;
    }
    *ret_size = status.st_size;
    return true;
}

void storage_advise(struct problem *problem)
{
    if (sqlite_reads_failed()) {
        return; /* no finding, so no reason to restore */
    }
    struct problem found = *problem;
    problem_set(
        problem,
        "%.250s; nothing was changed. Restore the newest backup into a new folder: "
        "bourse-broker restore BACKUP NEWDIR --head DIR/%s; where it does not reach %s, without "
        "--head, and start NEWDIR once with --adopt-journal: what came later is lost",
        found.text, MARKET_HEAD, MARKET_HEAD);
}

const char *storage_ledger_text(enum ledger_store_status status)
{
    switch (status) {
    case LEDGER_STORE_OK:
        return "ok";
    case LEDGER_STORE_LOCKED:
        return "LOCKED: another process has the ledger open";
    case LEDGER_STORE_NEWER:
        return "the ledger was written by a newer version; upgrade this broker";
    case LEDGER_STORE_CORRUPT:
        return "the ledger is damaged";
    case LEDGER_STORE_FULL:
        return "the disk is full";
    case LEDGER_STORE_FAILED:
        return "the disk failed";
    case LEDGER_STORE_NOT_FOUND:
        return "not found";
    case LEDGER_STORE_OUT_OF_MEMORY:
        return "out of memory";
    }
    return "unknown";
}

/* All marks of HEAD are spoilt, so HEAD says nothing; the way on is that of a backup. */
static void advise_without_head(struct problem *problem)
{
    struct problem found = *problem;
    problem_set(problem,
                "%.250s; nothing was changed. If %s was neither cut nor replaced: bourse-broker "
                "backup DIR B; bourse-broker restore B NEWDIR; start NEWDIR once with "
                "--adopt-journal. Else restore the newest backup",
                found.text, MARKET_DATABASE);
}

/* HEAD and the folder say this about the ledger before it is opened. */
struct prospect {
    bool is_old;   /* HEAD has seen entries */
    bool has_head; /* HEAD may have seen no entry */
    bool has_file; /* the ledger's file exists; it may be empty */
    bool is_empty;
    char remains[REMAINS_TEXT]; /* remains of a market that was served; "": none */
};

static bool look_at_head(const struct storage *store, struct prospect *prospect,
                         struct problem *ret_problem)
{
    char path[sizeof store->folder + 16];
    struct head head;
    off_t size = 0;
    if (!folder_path(store->folder, MARKET_HEAD, path, sizeof path, ret_problem)) {
        return false;
    }
    enum head_status status = head_read(path, &head, ret_problem);
    if (status == HEAD_CORRUPT) {
        advise_without_head(ret_problem);
    }
    if (status == HEAD_CORRUPT || status == HEAD_FAILED ||
        !size_of(store, MARKET_DATABASE, &size, &prospect->has_file, ret_problem)) {
        return false;
    }
    if (status == HEAD_OK) {
        head_warn(path, &head);
    }
    prospect->is_empty = size == 0;
    prospect->has_head = status == HEAD_OK;
    prospect->is_old = status == HEAD_OK && head.index > 0;
    if (!prospect->is_old || !prospect->is_empty) {
        return true;
    }
    problem_set(ret_problem, "%s is missing or empty beside %s, which has seen entry %" PRIu64,
                MARKET_DATABASE, MARKET_HEAD, head.index);
    storage_advise(ret_problem);
    struct problem advised = *ret_problem;
    problem_set(ret_problem,
                "%.400s. Where there is no backup, end the log: bourse-broker new "
                "--i-know-the-log-ends --dir DIR",
                advised.text);
    return false;
}

/* The log key's own file records whether the key has signed. A first start that was killed between
 * this note and its first entry leaves a HEAD that has seen no entry. */
static bool look_at_remains(struct storage *store, struct prospect *prospect,
                            struct problem *ret_problem)
{
    off_t size = 0;
    bool found = false;
    if (!size_of(store, MARKET_LOG_KEY, &size, &found, ret_problem) ||
        (found && !market_key_open(store->folder, MARKET_LOG_KEY, false, &store->log_key,
                                   &store->log_notes, ret_problem))) {
        return false;
    }
    if (prospect->is_old) {
        return true;
    }
    const bool has_signed = (store->log_notes & KEYFILE_SIGNED) != 0 && !prospect->has_head;
    if (!remains_find(store->folder, has_signed, prospect->remains, ret_problem)) {
        return false;
    }
    if (prospect->is_empty && prospect->remains[0] != '\0') {
        remains_refuse(store->folder,
                       prospect->has_file ? MARKET_DATABASE " is empty"
                                          : MARKET_DATABASE " is missing",
                       prospect->remains, ret_problem);
        return false;
    }
    return true;
}

/* If there were entries, SQLite must not make an empty ledger, nor delete a WAL whose ledger is
 * empty. */
static bool open_ledger(struct storage *store, const struct prospect *prospect,
                        struct problem *ret_problem)
{
    char path[sizeof store->folder + 16];
    char lock[sizeof path];
    const bool is_old = prospect->is_old || prospect->remains[0] != '\0';
    if (!folder_path(store->folder, MARKET_DATABASE, path, sizeof path, ret_problem) ||
        !folder_path(store->folder, LEDGER_LOCK, lock, sizeof lock, ret_problem)) {
        return false;
    }
    store->made.ledger_lock = access(lock, F_OK) != 0 && errno == ENOENT;
    enum ledger_store_status status = is_old ? ledger_store_open_old(path, &store->ledger)
                                             : ledger_store_open(path, &store->ledger);
    store->is_full = status == LEDGER_STORE_FULL;
    if (status == LEDGER_STORE_OK) {
        return true;
    }
    problem_set(ret_problem, "%s: %s", storage_ledger_text(status),
                store->ledger == NULL ? path : ledger_store_error(store->ledger));
    if (status == LEDGER_STORE_CORRUPT && is_old && !prospect->has_head) {
        struct problem found = *ret_problem;
        found.text[100] = '\0';
        remains_refuse(store->folder, found.text, prospect->remains, ret_problem);
    } else if (status == LEDGER_STORE_CORRUPT) {
        storage_advise(ret_problem);
    }
    return false;
}

/* *ret_head is the content of HEAD, or zeros when there is none. */
static bool open_journal(struct storage *store, bool adopt, struct head *ret_head,
                         struct problem *ret_problem)
{
    char path[sizeof store->folder + 16];
    struct head head = {.index = 0};
    if (!folder_path(store->folder, MARKET_HEAD, path, sizeof path, ret_problem)) {
        return false;
    }
    enum head_status found = head_open(path, &store->head, &head, ret_problem);
    if (found == HEAD_CORRUPT || found == HEAD_FAILED) {
        return false;
    }
    store->last_run_ns = found == HEAD_OK && !head.restored ? head_written_ns(store->head) : 0;
    if (!tail_read(store->folder, &store->tail, ret_problem)) {
        return false;
    }
    struct journal_sqlite_start start = {.head = found == HEAD_OK ? &head : NULL,
                                         .tail = &store->tail,
                                         .tree_size = ledger_store_tree(store->ledger)->size,
                                         .adopt = adopt};
    enum journal_status status = journal_sqlite_open(ledger_store_database(store->ledger), &start,
                                                     &store->rows, &store->last, ret_problem);
    store->table = store->last;
    if (status == JOURNAL_CORRUPT && found == HEAD_OK) {
        storage_advise(ret_problem);
    }
    *ret_head = head;
    return status == JOURNAL_OK;
}

/* Checks that the ledger follows from the journal, which agrees with HEAD. */
static bool check_ledger(struct storage *store, struct problem *ret_problem)
{
    char text[LEDGER_CHECK_TEXT];
    enum ledger_store_status status =
        ledger_check(ledger_store_database(store->ledger), &store->genesis.log_key, text);
    if (status != LEDGER_STORE_OK) {
        problem_set(ret_problem, "%s: %s", storage_ledger_text(status), text);
    }
    if (status == LEDGER_STORE_CORRUPT) {
        storage_advise(ret_problem);
    }
    return status == LEDGER_STORE_OK;
}

static bool read_genesis(struct storage *store, struct problem *ret_problem)
{
    struct journal_entry entry;
    struct entry_head head;
    struct entry_command command;
    size_t position = 0;
    if (journal_next(store->rows, 1, &entry, 0) != JOURNAL_OK ||
        !entry_read_head(entry.bytes, entry.length, &head) ||
        !entry_next(entry.bytes, entry.length, &position, &command) ||
        command.kind != ENTRY_GENESIS ||
        !genesis_read(command.payload, command.payload_length, &store->genesis)) {
        problem_set(ret_problem,
                    "the journal does not begin with a genesis; it was not written by a broker");
        return false;
    }
    if (!key32_equal(&store->genesis.log_key, identity_key(store->log_key))) {
        problem_set(ret_problem, "%s is not the key of this market's log; restore the right one",
                    MARKET_LOG_KEY);
        return false;
    }
    if (!key32_equal(&store->genesis.transport_key, identity_transport(store->transport_key))) {
        problem_set(ret_problem,
                    "%s is not the key that this market's members know; restore the right one",
                    MARKET_BROKER_KEY);
        return false;
    }
    return true;
}

/* The act is durable before a HEAD exists. So no adopted journal with a HEAD lacks its record, at
 * whatever point this start ends. */
static bool record_adoption(struct storage *store, int64_t log_ns, struct problem *ret_problem)
{
    struct act believed = {.kind = ACT_ADOPT,
                           .log_time_ns = log_ns,
                           .account = EXCHANGE_NO_ACCOUNT,
                           .log_index = store->last.next_command - 1,
                           .target = *identity_key(store->audit_key)};
    enum ledger_store_status status = ledger_store_begin(store->ledger);
    if (status == LEDGER_STORE_OK) {
        status = storage_append_act(store, &believed);
        status = status == LEDGER_STORE_OK ? ledger_store_commit(store->ledger) : status;
    }
    store->is_full = status == LEDGER_STORE_FULL;
    if (status != LEDGER_STORE_OK) {
        act_log_rolled_back(store->acts);
        problem_set(ret_problem, "the adoption could not be recorded: %s",
                    storage_ledger_text(status));
        return false;
    }
    act_log_committed(store->acts);
    return true;
}

/* Notes that the broker runs, and which key signs the audit log. */
static void note_start(struct storage *store, const struct head *head)
{
    struct act begun = {.kind = ACT_START,
                        .account = EXCHANGE_NO_ACCOUNT,
                        .target = *identity_key(store->audit_key),
                        .text = "bourse-broker " BOURSE_VERSION};
    struct act brought_back = {
        .kind = ACT_RESTORE, .account = EXCHANGE_NO_ACCOUNT, .count = head->acts_lost};
    if (head->acts_lost > 0) {
        (void)snprintf(brought_back.text, sizeof brought_back.text,
                       "%" PRIu64 " records before this are lost", head->acts_lost);
    }
    storage_note(store, &begun);
    if (head->restored) {
        storage_note(store, &brought_back);
    }
}

/* Makes the genesis of a market that has none. */
static bool make_genesis(struct storage *store, const struct broker_config *config,
                         struct problem *ret_problem)
{
    const struct founding_keys keys = {
        .log = store->log_key, .transport = store->transport_key, .log_notes = store->log_notes};
    return founding_may(store->folder, config, ret_problem) &&
           founding_genesis(config, &keys, &store->genesis, ret_problem);
}

static bool open_files(struct storage *store, const struct broker_config *config, bool adopt,
                       struct head *ret_head, struct problem *ret_problem)
{
    struct prospect prospect = {.is_old = false};
    unsigned notes = 0; /* unused: the store keeps only the log key's notes */
    if (!folder_lock(store->folder, &store->lock, &store->made.lock, ret_problem) ||
        !look_at_head(store, &prospect, ret_problem) ||
        !look_at_remains(store, &prospect, ret_problem)) {
        return false;
    }
    const bool may_make = !prospect.has_file;
    if (may_make && !founding_may(store->folder, config, ret_problem)) {
        return false;
    }
    if (!market_key_open(store->folder, MARKET_BROKER_KEY, may_make, &store->transport_key, &notes,
                         ret_problem) ||
        (store->log_key == NULL &&
         !market_key_open(store->folder, MARKET_LOG_KEY, may_make, &store->log_key,
                          &store->log_notes, ret_problem)) ||
        !open_ledger(store, &prospect, ret_problem) ||
        !open_journal(store, adopt, ret_head, ret_problem)) {
        return false;
    }
    if (store->last.index == 0 && prospect.remains[0] != '\0') {
        remains_refuse(store->folder, MARKET_DATABASE " holds no entry", prospect.remains,
                       ret_problem);
        return false;
    }
    return true;
}

/* A new key begins an audit log, or goes on with an adopted one, which records the new key. */
static bool open_audit_log(struct storage *store, const struct head *head, bool adopted,
                           struct problem *ret_problem)
{
    sqlite3 *database = ledger_store_database(store->ledger);
    const bool may_make = adopted || (head->acts.number == 0 && act_log_is_empty(database));
    unsigned notes = 0; /* unused: the store keeps only the log key's notes */
    return market_key_open(store->folder, MARKET_AUDIT_KEY, may_make, &store->audit_key, &notes,
                           ret_problem) &&
           act_log_open(database, adopted ? NULL : &head->acts, store->audit_key,
                        &store->genesis.cluster, &store->acts, ret_problem);
}

/* The audit reads what this writes. A start does not end for lack of it. */
static void tell_keys(const struct storage *store)
{
    struct problem problem;
    if (!market_key_tell(store->folder, MARKET_BROKER_KEY, &store->genesis.transport_key,
                         &problem) ||
        !market_key_tell(store->folder, MARKET_LOG_KEY, &store->genesis.log_key, &problem) ||
        !market_key_tell(store->folder, MARKET_AUDIT_KEY, identity_key(store->audit_key),
                         &problem)) {
        log_warning("%s; until a start can write the file, the audit misses a key", problem.text);
    }
}

bool storage_open(const char *folder, const struct broker_config *config, bool adopt,
                  struct storage *ret_store, bool *ret_new, struct problem *ret_problem)
{
    *ret_store = (struct storage){.lock = -1};
    struct storage *store = ret_store;
    if (!folder_path(folder, "", store->folder, sizeof store->folder - 64, ret_problem)) {
        return false;
    }
    store->folder[strlen(store->folder) - 1] = '\0'; /* without the slash */
    store->buffer = malloc(ENTRY_MAX_BYTES);
    store->refusals = refusals_create();
    if (store->buffer == NULL || store->refusals == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    struct head head = {.index = 0};
    watermark_init(&store->durable, 0);
    watermark_init(&store->applied, 0);
    watermark_init(&store->synced, 0);
    store->turn_bytes = TAIL_TURN_BYTES;
    store->sync_bytes = TAIL_SYNC_BYTES;
    pthread_mutex_init(&store->head_mutex, NULL);
    quorum_note_init(&store->quorum);
    replica_note_init(&store->replica);
    if (!private_folder(folder, true, ret_problem) ||
        !open_files(store, config, adopt, &head, ret_problem)) {
        return false;
    }
    *ret_new = store->last.index == 0;
    bool adopted = store->head == NULL && !*ret_new;
    bool is_whole = *ret_new ? make_genesis(store, config, ret_problem)
                             : read_genesis(store, ret_problem) && check_ledger(store, ret_problem);
    if (!is_whole || !open_audit_log(store, &head, adopted, ret_problem)) {
        return false;
    }
    tell_keys(store);
    note_start(store, &head);
    return true;
}

/* The note is durable before this process signs a tree head. If there are entries already, the
 * ledger itself prevents a second history, so a disk without space does not end the start. */
static bool note_signing(struct storage *store, struct problem *ret_problem)
{
    char path[sizeof store->folder + 16];
    const unsigned notes = store->log_notes | KEYFILE_SIGNED;
    if (notes == store->log_notes) {
        return true;
    }
    if (!folder_path(store->folder, MARKET_LOG_KEY, path, sizeof path, ret_problem)) {
        return false;
    }
    if (keyfile_note(path, notes, ret_problem)) {
        store->log_notes = notes;
        return true;
    }
    store->is_full = errno == ENOSPC || errno == EDQUOT;
    if (store->last.index == 0) {
        return false;
    }
    log_warning("%s; the next start notes that this key has signed", ret_problem->text);
    return true;
}

static bool mend_head(const struct storage *store, const char *path, struct problem *ret_problem)
{
    unsigned mended = 0;
    if (head_mend(store->head, &mended) != HEAD_OK) {
        problem_set(ret_problem, "%s cannot be written: %s", path, strerror(errno));
        return false;
    }
    if (mended > 0) {
        log_info("%s: its %u damaged cop%s of a mark %s been written anew", path, mended,
                 mended == 1 ? "y" : "ies", mended == 1 ? "has" : "have");
    }
    return true;
}

bool storage_lead(struct storage *store, int64_t log_ns, struct problem *ret_problem)
{
    if (store->head == NULL && store->last.index > 0 &&
        !record_adoption(store, log_ns, ret_problem)) {
        return false;
    }
    char path[sizeof store->folder + 16];
    struct journal_leader me = {.epoch = 0};
    struct head fresh = {.index = store->last.index,
                         .chain = store->last.chain,
                         .tree_size = ledger_store_tree(store->ledger)->size,
                         .acts = *act_log_mark(store->acts)};
    if (!folder_path(store->folder, MARKET_HEAD, path, sizeof path, ret_problem) ||
        (store->head == NULL && head_create(path, &fresh, &store->head, ret_problem) != HEAD_OK) ||
        !mend_head(store, path, ret_problem) || !note_signing(store, ret_problem)) {
        return false;
    }
    ledger_store_trust(store->ledger);
    (void)snprintf(me.broker, sizeof me.broker, "%ld", (long)getpid());
    enum journal_status led = journal_lead(store->rows, store->last.index, &me, &store->epoch);
    if (led != JOURNAL_OK) {
        problem_set(ret_problem, "the journal cannot be led: %s", journal_status_text(led));
    } else {
        led =
            store->journal != NULL
                ? JOURNAL_OK
                : journal_tail_open(&(struct journal_tail_config){.folder = store->folder,
                                                                  .rows = store->rows,
                                                                  .synced = &store->synced,
                                                                  .turn_bytes = store->turn_bytes},
                                    &store->journal, ret_problem);
    }
    store->is_full = led == JOURNAL_FULL;
    store->mark = fresh;
    watermark_raise(&store->durable, store->last.index);
    watermark_raise(&store->applied, store->last.index);
    watermark_raise(&store->synced, store->last.index); /* SQLite's log was written again */
    return led == JOURNAL_OK;
}

/* The folder's own lock keeps other brokers away from the file meanwhile. */
static void remove_ledger_lock(const struct storage *store)
{
    char path[sizeof store->folder + 16];
    struct problem problem;
    if (store->made.ledger_lock && store->lock >= 0 &&
        folder_path(store->folder, LEDGER_LOCK, path, sizeof path, &problem)) {
        (void)unlink(path); /* an empty file that stays harms nobody */
    }
}

void storage_close(struct storage *store)
{
    const bool is_whole =
        store->journal != NULL && store->tail.count == 0 && store->table.index == store->last.index;
    if (is_whole) {
        storage_sync_tables(store);
    }
    head_close(&store->head);
    act_log_close(&store->acts);
    refusals_destroy(&store->refusals);
    journal_destroy(&store->replicated);
    /* The tables have everything: a stopped market needs no tail. */
    if (is_whole) {
        journal_tail_remove(store->folder);
    }
    journal_destroy(&store->journal);
    journal_destroy(&store->rows);
    tail_fini(&store->tail);
    remove_ledger_lock(store);
    ledger_store_close(&store->ledger);
    identity_destroy(&store->transport_key);
    identity_destroy(&store->log_key);
    identity_destroy(&store->audit_key);
    if (store->buffer != NULL) {
        watermark_fini(&store->durable);
        watermark_fini(&store->applied);
        watermark_fini(&store->synced);
        pthread_mutex_destroy(&store->head_mutex);
        quorum_note_fini(&store->quorum);
        replica_note_fini(&store->replica);
        free(store->buffer);
        store->buffer = NULL;
    }
    folder_unlock(store->folder, &store->lock, store->made.lock);
}

size_t storage_genesis(const struct storage *store, uint8_t *ret_bytes, size_t capacity)
{
    return genesis_write(&store->genesis, ret_bytes, capacity);
}
