/* A start checks the pages of the database here, and every entry of the journal. */
#include "broker/storage/journal_sqlite_internal.h"

#include "broker/storage/entry.h"
#include "broker/storage/tail/tail.h"
#include "ledger/store/sqlite_code.h"

#include <inttypes.h>
#include <stdio.h>

/* Writes "tables results, transfers": those that fail the check on their own. */
static void name_damaged_tables(sqlite3 *database, char ret_names[100])
{
    sqlite3_stmt *tables = NULL;
    size_t length = 0;
    (void)snprintf(ret_names, 100, "its free pages or its schema");
    if (sqlite3_prepare_v2(database, "SELECT name FROM sqlite_schema WHERE type = 'table'", -1,
                           &tables, NULL) != SQLITE_OK) {
        return;
    }
    while (sqlite3_step(tables) == SQLITE_ROW && length < 80) {
        char why[PAGES_TEXT];
        const char *name = (const char *)sqlite3_column_text(tables, 0);
        if (sqlite_check_pages(database, name == NULL ? "" : name, why) != PAGES_WHOLE) {
            length += (size_t)snprintf(ret_names + length, 100 - length, "%s%.30s",
                                       length == 0 ? "table " : ", ", name == NULL ? "" : name);
        }
    }
    (void)sqlite3_finalize(tables); /* only read */
}

enum journal_status journal_sqlite_check_pages(struct engine *engine, struct problem *ret_problem)
{
    char why[PAGES_TEXT];
    char tables[100];
    switch (sqlite_check_pages(engine->database, NULL, why)) {
    case PAGES_WHOLE:
        break;
    case PAGES_DAMAGED:
        name_damaged_tables(engine->database, tables);
        problem_set(ret_problem, "the database is damaged in %s (%s)", tables, why);
        return JOURNAL_CORRUPT;
    case PAGES_UNREAD:
        problem_set(
            ret_problem,
            "%.200s cannot be read: the disk did not give every page (%.60s). " PROBLEM_TRY_AGAIN,
            sqlite3_db_filename(engine->database, "main"), why);
        return JOURNAL_UNAVAILABLE;
    }
    return JOURNAL_OK;
}

/* The end of the journal as the walk over all entries found it, and the chain value at HEAD's
 * entry. */
struct walk {
    struct journal_last last;
    uint64_t epoch;          /* epoch of the last entry; 0: none */
    const struct head *head; /* or NULL */
    bool met_head;
    struct hash32 chain_at_head;
};

static void pass_head(struct walk *walk)
{
    if (walk->head != NULL && walk->head->index == walk->last.index) {
        walk->met_head = true;
        walk->chain_at_head = walk->last.chain;
    }
}

/* Returns the epoch of a row that was read before. */
static uint64_t epoch_of(const struct row *row)
{
    struct entry_head head = {.epoch = 0};
    (void)entry_read_head(row->bytes, row->length, &head);
    return head.epoch;
}

static enum journal_status check_chain(struct engine *engine, struct walk *walk,
                                       struct problem *ret_problem)
{
    sqlite3_stmt *select;
    if (sqlite3_prepare_v2(engine->database,
                           "SELECT idx, chain, next_command, bytes FROM journal ORDER BY idx", -1,
                           &select, NULL) != SQLITE_OK) {
        return journal_sqlite_unreadable(engine, ret_problem);
    }
    enum journal_status status = JOURNAL_OK;
    int code;
    pass_head(walk);
    while (status == JOURNAL_OK && (code = sqlite3_step(select)) != SQLITE_DONE) {
        struct row row;
        if (code != SQLITE_ROW) {
            status = journal_sqlite_unreadable(engine, ret_problem);
            break;
        }
        status = journal_sqlite_check_row(select, &walk->last, &row);
        if (status == JOURNAL_OK) {
            walk->last = row.end;
            walk->epoch = epoch_of(&row);
            pass_head(walk);
        } else {
            problem_set(ret_problem,
                        "table journal, entry %" PRIu64
                        ": the row (number %lld) is damaged or missing: its hash does not follow",
                        walk->last.index + 1, (long long)sqlite3_column_int64(select, 0));
        }
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    return status;
}

/* Walks on over the entries that stand in the tail alone. */
static enum journal_status walk_tail(struct walk *walk, struct tail *tail,
                                     struct problem *ret_problem)
{
    if (tail == NULL) {
        return JOURNAL_OK;
    }
    if (tail_fit(tail, &walk->last, ret_problem) != TAIL_FITS) {
        return JOURNAL_CORRUPT;
    }
    for (size_t i = 0; i < tail->count; i++) {
        walk->last = tail->entries[i].end;
        walk->epoch = tail->entries[i].epoch;
        pass_head(walk);
    }
    return JOURNAL_OK;
}

static enum journal_status check_head(const struct walk *walk, const struct journal_last *base,
                                      const struct journal_sqlite_start *start,
                                      struct problem *ret_problem)
{
    const struct head *head = start->head;
    if (head == NULL) {
        if (walk->last.index == 0 || start->adopt) {
            return JOURNAL_OK;
        }
        problem_set(ret_problem,
                    "HEAD is missing beside a journal of %" PRIu64
                    " entries, so nothing shows that it is the newest: put HEAD back, or if you"
                    " restored a backup on purpose, start once with --adopt-journal",
                    walk->last.index);
        return JOURNAL_CORRUPT;
    }
    if (head->index > walk->last.index) {
        problem_set(
            ret_problem,
            "the journal ends at entry %" PRIu64 " but HEAD has seen %" PRIu64
            ": an old backup was restored, or the database's WAL is damaged or missing, or the "
            "journal's tail is",
            walk->last.index, head->index);
        return JOURNAL_CORRUPT;
    }
    if (head->index >= base->index &&
        (!walk->met_head || !hash32_equal(&walk->chain_at_head, &head->chain))) {
        problem_set(ret_problem,
                    "entry %" PRIu64
                    " of the journal is not the one that HEAD has seen: this is another history",
                    head->index);
        return JOURNAL_CORRUPT;
    }
    if (head->tree_size > start->tree_size) {
        problem_set(ret_problem,
                    "the ledger's tree has %" PRIu64 " leaves but one of %" PRIu64
                    " was signed: an old backup was restored, or the database is damaged",
                    start->tree_size, head->tree_size);
        return JOURNAL_CORRUPT;
    }
    return JOURNAL_OK;
}

/* Each start leads under the next epoch; an older epoch would let two starts write under the
 * same. */
static enum journal_status check_epoch(const struct walk *walk, uint64_t epoch,
                                       struct problem *ret_problem)
{
    if (epoch >= walk->epoch) {
        return JOURNAL_OK;
    }
    problem_set(ret_problem,
                "table journal_base: its epoch is %" PRIu64 ", and entry %" PRIu64
                " was written under epoch %" PRIu64
                ": the row is damaged; docs/operator.md says how it is restored",
                epoch, walk->last.index, walk->epoch);
    return JOURNAL_CORRUPT;
}

enum journal_status journal_sqlite_check_entries(struct engine *engine,
                                                 const struct journal_sqlite_start *start,
                                                 struct journal_last *ret_last,
                                                 struct problem *ret_problem)
{
    struct walk walk = {.head = start->head};
    struct journal_last base;
    uint64_t epoch;
    const enum journal_status found = journal_sqlite_read_base(engine, &base, &epoch);
    if (found == JOURNAL_CORRUPT) {
        problem_set(ret_problem,
                    "table journal_base: its row is damaged or missing; `bourse-broker "
                    "replay --verify` says more, docs/operator.md how it is restored");
        return JOURNAL_CORRUPT;
    }
    if (found != JOURNAL_OK) {
        return journal_sqlite_unreadable(engine, ret_problem);
    }
    walk.last = base;
    enum journal_status status = check_chain(engine, &walk, ret_problem);
    const struct journal_last last = walk.last;
    if (status == JOURNAL_OK) {
        status = walk_tail(&walk, start->tail, ret_problem);
    }
    if (status == JOURNAL_OK) {
        status = check_epoch(&walk, epoch, ret_problem);
    }
    if (status == JOURNAL_OK) {
        status = check_head(&walk, &base, start, ret_problem);
    }
    if (status == JOURNAL_OK) {
        *ret_last = last;
    }
    return status;
}
