/* This part of replay.h rebuilds a market from entry 1 and compares it with what is stored. */
#include "broker/storage/replay.h"

#include "base/sha256.h"
#include "base/text.h"
#include "broker/config.h"
#include "broker/core/act_log.h"
#include "broker/core/translate.h"
#include "broker/storage/balance_check.h"
#include "broker/storage/entry.h"
#include "broker/storage/head.h"
#include "broker/storage/history_mark.h"
#include "broker/storage/journal_sqlite.h"
#include "broker/storage/snapshot/snapshot_file.h"
#include "broker/storage/storage.h"
#include "broker/storage/tail/tail.h"
#include "ledger/checkpoint.h"
#include "ledger/merkle.h"
#include "ledger/store/sqlite.h"
#include "ledger/store/sqlite_code.h"
#include "runtime/market.h"

#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

struct verification {
    sqlite3 *database;
    struct exchange *exchange;
    /* Compares the stored tables with those of the replay. */
    struct ledger_comparison *comparison;
    uint64_t records;
    uint64_t entry;       /* last one applied */
    uint64_t entry_epoch; /* epoch of this entry; 0: there is none */
    uint64_t epoch;       /* epoch in the journal's base */
    uint64_t next_command;
    struct hash32 chain;
    struct tail tail; /* entries that the tables may not have yet */
    struct head head;
    bool has_head; /* a backup has none */
    struct hash32 chain_at_head;
    struct genesis genesis;
    struct snapshot_mark snapshot; /* compared when the replay gets there; entry 0: none */
    /* The result when something fails: a difference, until another reason is set. */
    enum replay_status fault;
};

static bool differs(struct problem *ret_problem, const char *what, uint64_t where)
{
    problem_set(ret_problem, "%s %" PRIu64 " differs from its replay", what, where);
    return false;
}

static bool failed(struct verification *verification)
{
    verification->fault = REPLAY_FAILED;
    return false;
}

static bool unreadable(struct verification *verification, struct problem *ret_problem)
{
    problem_set(ret_problem, "the ledger cannot be read: %s",
                sqlite3_errmsg(verification->database));
    return false;
}

/* ---------------------------------------------------------------- the journal */

static bool compared(struct verification *verification, enum ledger_store_status status)
{
    if (status != LEDGER_STORE_OK && status != LEDGER_STORE_CORRUPT) {
        return failed(verification);
    }
    return status == LEDGER_STORE_OK;
}

struct comparing {
    struct verification *verification;
    struct problem *problem;
    bool found; /* a row differs or is unreadable: the problem names it */
};

static bool compare_records(void *context, const struct translation *said,
                            const struct exchange_effects *effects)
{
    struct comparing *comparing = context;
    struct verification *verification = comparing->verification;
    for (size_t i = 0; i < effects->count && !comparing->found; i++) {
        const struct ledger_record *record = &effects->items[i].ledger;
        struct ledger_batch batch;
        if (effects->items[i].type == EFFECT_LEDGER) {
            const bool has_batch = storage_batch_of(said, record, &batch);
            verification->records++;
            comparing->found =
                !compared(verification,
                          ledger_comparison_take(verification->comparison, record,
                                                 has_batch ? &batch : NULL, comparing->problem));
        }
    }
    return !comparing->found;
}

static bool take_genesis(struct verification *verification, const void *bytes, size_t length)
{
    struct entry_command command;
    size_t position = 0;
    return entry_next(bytes, length, &position, &command) && command.kind == ENTRY_GENESIS &&
           genesis_read(command.payload, command.payload_length, &verification->genesis);
}

/* No program has the rules of both parts of a journal in which the rules changed. */
static void advise_the_audit(struct problem *problem)
{
    struct problem found = *problem;
    problem_set(problem,
                "%.250s: this is no damage, and cannot be checked by replaying it; `bourse-broker "
                "audit` checks it, and docs/operator.md, Upgrading, says how it is restored",
                found.text);
}

static bool verify_entry(struct verification *verification, sqlite3_stmt *row,
                         struct problem *ret_problem)
{
    const void *bytes = sqlite3_column_blob(row, 1);
    size_t length = (size_t)sqlite3_column_bytes(row, 1);
    const void *stored_chain = sqlite3_column_blob(row, 2);
    struct entry_head head;
    if (!entry_read_head(bytes, length, &head) || head.index != verification->entry + 1 ||
        !hash32_equal(&head.previous, &verification->chain)) {
        return differs(ret_problem, "table journal: the chain at entry", verification->entry + 1);
    }
    verification->chain = sha256_of(bytes, length);
    if (sqlite3_column_bytes(row, 2) != 32 ||
        memcmp(stored_chain, verification->chain.bytes, 32) != 0) {
        return differs(ret_problem, "table journal: the chain hash of entry", head.index);
    }
    if ((uint64_t)sqlite3_column_int64(row, 3) != head.first_command + head.count) {
        problem_set(ret_problem,
                    "table journal, entry %" PRIu64
                    ", column next_command is %lld, and its commands lead to %" PRIu64,
                    head.index, (long long)sqlite3_column_int64(row, 3),
                    head.first_command + head.count);
        return false;
    }
    if (verification->has_head && verification->head.index == head.index) {
        verification->chain_at_head = verification->chain;
    }
    if (head.index == 1 && !take_genesis(verification, bytes, length)) {
        problem_set(ret_problem, "the journal does not begin with a genesis");
        return false;
    }
    struct comparing comparing = {.verification = verification, .problem = ret_problem};
    enum replay_status status = replay_entry(verification->exchange, bytes, length, compare_records,
                                             &comparing, ret_problem);
    if (comparing.found) {
        return false;
    }
    if (status != REPLAY_OK) {
        verification->fault = status;
        if (status == REPLAY_OTHER_RULES) {
            advise_the_audit(ret_problem);
        }
        return false;
    }
    verification->entry = head.index;
    verification->entry_epoch = head.epoch;
    if (verification->snapshot.entry == head.index) {
        struct hash32 state = exchange_state_hash(verification->exchange);
        if (!hash32_equal(&state, &verification->snapshot.state)) {
            return differs(ret_problem, "the state hash of the snapshot at entry", head.index);
        }
    }
    return true;
}

/* The base must hold nothing below the first entry, as the journal is whole. */
static bool verify_base(struct verification *verification, struct problem *ret_problem)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(verification->database,
                           "SELECT idx = 0 AND chain = zeroblob(32) AND state = zeroblob(32) AND "
                           "next_command = 1, epoch FROM journal_base",
                           -1, &rows, NULL) != SQLITE_OK) {
        return unreadable(verification, ret_problem);
    }
    const bool has_row = sqlite3_step(rows) == SQLITE_ROW;
    const bool is_empty = has_row && sqlite3_column_int(rows, 0) == 1;
    const sqlite3_int64 epoch = is_empty ? sqlite3_column_int64(rows, 1) : 0;
    (void)sqlite3_finalize(rows); /* repeats the error of the step */
    if (epoch < 0 || epoch == INT64_MAX) {
        problem_set(ret_problem,
                    "table journal_base, row 1, column epoch is %lld, after which none can follow",
                    (long long)epoch);
        return false;
    }
    verification->epoch = (uint64_t)epoch;
    if (!is_empty) {
        problem_set(ret_problem, "table journal_base, row 1 %s",
                    has_row ? "is not that of a journal that begins with its first entry"
                            : "is missing");
    }
    return is_empty;
}

static bool verify_journal(struct verification *verification, struct problem *ret_problem)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(verification->database,
                           "SELECT idx, bytes, chain, next_command FROM journal ORDER BY idx", -1,
                           &rows, NULL) != SQLITE_OK) {
        return unreadable(verification, ret_problem);
    }
    int step = SQLITE_DONE;
    bool good = true;
    while (good && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        good = verify_entry(verification, rows, ret_problem);
    }
    good = good && (step == SQLITE_DONE || unreadable(verification, ret_problem));
    (void)sqlite3_finalize(rows); /* repeats the error of the step */
    return good;
}

/* Each start leads under the next epoch, and may have written nothing yet. */
static bool verify_epoch(const struct verification *verification, struct problem *ret_problem)
{
    if (verification->epoch < verification->entry_epoch) {
        problem_set(ret_problem,
                    "table journal_base, row 1, column epoch is %" PRIu64 ", and entry %" PRIu64
                    " of the journal was written under epoch %" PRIu64,
                    verification->epoch, verification->entry, verification->entry_epoch);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- marks of HEAD */

/* Fits the tail to the journal in the tables. An entry that HEAD has seen may be there alone. */
static bool verify_tail(struct verification *verification, struct problem *ret_problem)
{
    const struct journal_last last = {.index = verification->entry,
                                      .chain = verification->chain,
                                      .next_command = verification->next_command};
    if (tail_fit(&verification->tail, &last, ret_problem) != TAIL_FITS) {
        return false;
    }
    for (size_t i = 0; i < verification->tail.count; i++) {
        const struct journal_last *end = &verification->tail.entries[i].end;
        if (verification->has_head && end->index == verification->head.index) {
            verification->chain_at_head = end->chain;
        }
    }
    return true;
}

/* HEAD and the tail are read before the database: a running broker writes the tables last. */
static bool read_head(struct verification *verification, const char *folder,
                      struct problem *ret_problem)
{
    char path[PATH_MAX];
    if (!folder_path(folder, MARKET_HEAD, path, sizeof path, ret_problem)) {
        return failed(verification);
    }
    switch (head_read(path, &verification->head, ret_problem)) {
    case HEAD_OK:
        verification->has_head = true;
        head_warn(path, &verification->head);
        return true;
    case HEAD_MISSING:
        return true;
    case HEAD_CORRUPT:
        return false;
    case HEAD_FAILED:
        break;
    }
    return failed(verification);
}

static bool verify_head(const struct verification *verification, struct problem *ret_problem)
{
    const struct head *head = &verification->head;
    if (!verification->has_head) {
        return true;
    }
    const uint64_t entries = verification->entry + verification->tail.count;
    if (head->index > entries) {
        problem_set(
            ret_problem,
            "table journal, entry %" PRIu64 " is missing: HEAD has seen %" PRIu64
            " entries; an old backup was restored, or the database's WAL is damaged, or the "
            "journal's tail is",
            entries + 1, head->index);
        return false;
    }
    if (!hash32_equal(&verification->chain_at_head, &head->chain)) {
        problem_set(ret_problem,
                    "table journal, entry %" PRIu64
                    " is not the one that HEAD has seen: this is another history",
                    head->index);
        return false;
    }
    const uint64_t leaves = ledger_comparison_tree(verification->comparison)->size;
    if (head->tree_size > leaves) {
        problem_set(ret_problem,
                    "table tree, leaf %" PRIu64 " is missing: HEAD has seen %" PRIu64 " signed",
                    leaves, head->tree_size);
        return false;
    }
    return true;
}

/* The audit log does not follow from the journal: each record follows from the one before, and HEAD
 * names one. */
static bool verify_acts(struct verification *verification, struct problem *ret_problem)
{
    uint64_t reached;
    uint64_t lost = 0;
    struct act_log_mark mark;
    if (!act_log_check_chain(verification->database, &reached, ret_problem)) {
        return false;
    }
    if (!verification->has_head) {
        return true;
    }
    switch (act_log_hold_against(verification->database, &verification->head.acts,
                                 &verification->genesis.cluster, &mark, &lost, ret_problem)) {
    case ACT_LOG_REACHED:
        return true;
    case ACT_LOG_SHORT:
        problem_set(ret_problem,
                    "table acts, record %" PRIu64 " is missing: HEAD has seen %" PRIu64 " records",
                    reached + 1, verification->head.acts.number);
        return false;
    case ACT_LOG_OTHER:
        return false;
    case ACT_LOG_UNREADABLE:
        break;
    }
    return failed(verification);
}

/* ---------------------------------------------------------------- derived data */

static bool verify_state(struct verification *verification, struct problem *ret_problem)
{
    struct hash32 kept = exchange_state_hash(verification->exchange);
    struct hash32 walked = exchange_state_hash_walk(verification->exchange);
    return hash32_equal(&kept, &walked) ||
           differs(ret_problem, "the state hash kept while replaying to command",
                   exchange_index(verification->exchange));
}

static bool verify_tree(struct verification *verification, struct problem *ret_problem)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(verification->database, "SELECT note FROM checkpoint", -1, &rows,
                           NULL) != SQLITE_OK) {
        return unreadable(verification, ret_problem);
    }
    bool good = false;
    struct checkpoint checkpoint;
    if (sqlite3_step(rows) != SQLITE_ROW) {
        problem_set(ret_problem, "the ledger has no signed checkpoint");
    } else if (!checkpoint_read(sqlite3_column_blob(rows, 0), (size_t)sqlite3_column_bytes(rows, 0),
                                &verification->genesis.log_key, &checkpoint)) {
        problem_set(ret_problem, "the checkpoint is not signed by the log's key");
    } else {
        const struct merkle *tree = ledger_comparison_tree(verification->comparison);
        struct hash32 root = merkle_root(tree);
        good = (checkpoint.size == tree->size && hash32_equal(&checkpoint.root, &root) &&
                strcmp(checkpoint.origin, verification->genesis.origin) == 0) ||
               differs(ret_problem, "the signed tree head of size", checkpoint.size);
    }
    (void)sqlite3_finalize(rows);
    return good;
}

static bool verify_all(struct verification *verification, const char *folder,
                       struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct broker_config config; /* for its limits, if the journal has none */
    struct exchange *snapshot = NULL;
    if (!read_head(verification, folder, ret_problem)) {
        return false;
    }
    if (!tail_read(folder, &verification->tail, ret_problem)) {
        return failed(verification);
    }
    if (!folder_path(folder, MARKET_SNAPSHOTS, path, sizeof path, ret_problem) ||
        !config_load(folder, false, &config, ret_problem)) {
        return failed(verification);
    }
    struct snapshot_search search = {.folder = path,
                                     .limits = &config.limits,
                                     .journal = verification->database,
                                     .older_only = true};
    if (!journal_sqlite_last_entry(verification->database, &search.last_entry)) {
        return unreadable(verification, ret_problem);
    }
    if (snapshot_newest(&search, &snapshot, &verification->snapshot, ret_problem) ==
        SNAPSHOT_UNREAD) {
        return failed(verification);
    }
    exchange_destroy(&snapshot); /* only its mark is needed */
    verification->exchange = exchange_create(&config.limits);
    if (verification->exchange == NULL) {
        problem_set(ret_problem, "out of memory");
        return failed(verification);
    }
    /* One read transaction shows journal and ledger of the same moment, even if a broker runs. */
    if (sqlite3_exec(verification->database, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return unreadable(verification, ret_problem);
    }
    replay_presume_limits(verification->database, verification->exchange, 1);
    return compared(verification, ledger_comparison_open(verification->database,
                                                         &verification->comparison, ret_problem)) &&
           verify_base(verification, ret_problem) && verify_journal(verification, ret_problem) &&
           verify_epoch(verification, ret_problem) && verify_tail(verification, ret_problem) &&
           verify_head(verification, ret_problem) && verify_state(verification, ret_problem) &&
           compared(verification, ledger_comparison_end(verification->comparison, ret_problem)) &&
           balance_check(verification->database, verification->exchange, ret_problem) &&
           verify_tree(verification, ret_problem) && verify_acts(verification, ret_problem);
}

/* A snapshot of this market that is newer than the journal proves that entries are lost. A snapshot
 * that follows another entry than the journal's proves that two histories were signed. A running
 * broker commits the entry before it writes the snapshot, so the journal is looked at once more. */
static bool verify_snapshots(struct verification *verification, const char *folder,
                             struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct broker_config config;
    if (sqlite3_exec(verification->database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        return unreadable(verification, ret_problem);
    }
    if (!folder_path(folder, MARKET_SNAPSHOTS, path, sizeof path, ret_problem) ||
        !config_load(folder, false, &config, ret_problem)) {
        return failed(verification);
    }
    struct snapshot_search search = {.folder = path,
                                     .limits = &config.limits,
                                     .journal = verification->database,
                                     .last_entry = verification->entry,
                                     .last_command = exchange_index(verification->exchange),
                                     .newer_only = true,
                                     .cluster = &verification->genesis.cluster};
    for (;;) {
        struct exchange *exchange = NULL;
        struct snapshot_mark mark;
        uint64_t last = search.last_entry;
        const enum snapshot_found found = snapshot_newest(&search, &exchange, &mark, ret_problem);
        exchange_destroy(&exchange);
        if (found == SNAPSHOT_UNREAD) {
            return failed(verification);
        }
        if (found == SNAPSHOT_FORKED) {
            return false;
        }
        if (found != SNAPSHOT_BEYOND) {
            return true;
        }
        if (!journal_sqlite_last_entry(verification->database, &last)) {
            return unreadable(verification, ret_problem);
        }
        if (last <= search.last_entry) {
            return false;
        }
        search.last_entry = last;
    }
}

/* A history.db that is ahead of the ledger proves likewise that entries are lost. */
static bool verify_history(struct verification *verification, const char *folder,
                           struct problem *ret_problem)
{
    switch (history_mark_look(folder, verification->database, false, ret_problem)) {
    case HISTORY_FITS:
        return true;
    case HISTORY_BEYOND:
        break;
    case HISTORY_UNREAD:
        return failed(verification);
    }
    return false;
}

static struct replay_summary summarise(struct verification *verification)
{
    return (struct replay_summary){.command = exchange_index(verification->exchange),
                                   .entries = verification->entry,
                                   .tail = verification->tail.count,
                                   .records = verification->records,
                                   .tree_size =
                                       ledger_comparison_tree(verification->comparison)->size,
                                   .log_time_ns = exchange_log_time_ns(verification->exchange),
                                   .accounts = exchange_account_count(verification->exchange),
                                   .state = exchange_state_hash(verification->exchange),
                                   .has_head = verification->has_head,
                                   .genesis = verification->genesis};
}

enum replay_status replay_check(const char *folder, struct replay_summary *ret_summary,
                                struct problem *ret_problem)
{
    struct verification verification = {.fault = REPLAY_WRONG};
    char path[PATH_MAX];
    if (!folder_path(folder, MARKET_DATABASE, path, sizeof path, ret_problem)) {
        return REPLAY_FAILED;
    }
    bool good = false;
    if (sqlite3_open_v2(path, &verification.database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        problem_set(ret_problem, "%s cannot be opened: is this the folder of a market?", path);
    } else {
        good = verify_all(&verification, folder, ret_problem) &&
               verify_snapshots(&verification, folder, ret_problem) &&
               verify_history(&verification, folder, ret_problem);
    }
    if (good) {
        *ret_summary = summarise(&verification);
    } else if (sqlite_could_not(verification.database)) {
        (void)failed(&verification);
    }
    tail_fini(&verification.tail);
    ledger_comparison_close(&verification.comparison);
    (void)sqlite3_close(verification.database); /* read only */
    exchange_destroy(&verification.exchange);
    return good ? REPLAY_OK : verification.fault;
}

static void print(const struct replay_summary *summary, bool json)
{
    char hash[65];
    const char *head = summary->has_head ? "ok" : "missing";
    char behind[80] = "";
    if (summary->tail > 0) {
        (void)snprintf(behind, sizeof behind,
                       ", and %" PRIu64 " entries that the next start applies", summary->tail);
    }
    text_hex(summary->state.bytes, sizeof summary->state.bytes, hash);
    if (json) {
        (void)printf("{\"version\":1,\"replay\":\"ok\",\"index\":%" PRIu64 ",\"entries\":%" PRIu64
                     ",\"state\":\"%s\",\"records\":%" PRIu64 ",\"tree_size\":%" PRIu64
                     ",\"accounts\":%u,\"head\":\"%s\",\"tail\":%" PRIu64 "}\n",
                     summary->command, summary->entries, hash, summary->records, summary->tree_size,
                     summary->accounts, head, summary->tail);
    } else {
        (void)printf("replay ok: %" PRIu64 " commands in %" PRIu64 " entries, state %s, %" PRIu64
                     " records, tree of %" PRIu64 ", %u balances ok, HEAD %s%s\n",
                     summary->command, summary->entries, hash, summary->records, summary->tree_size,
                     summary->accounts, head, behind);
    }
}

enum replay_status replay_verify(const char *folder, bool json, struct problem *ret_problem)
{
    struct replay_summary summary = {.command = 0};
    enum replay_status status = replay_check(folder, &summary, ret_problem);
    if (status == REPLAY_OK) {
        print(&summary, json);
    }
    return status;
}
