#include "broker/core/outage/past_state.h"

#include "broker/storage/snapshot/snapshot_file.h"
#include "broker/storage/snapshot/snapshots.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>

struct past_state {
    const char *database, *snapshots;
    struct exchange_limits limits;
    pthread_t thread;
    bool has_thread;           /* it runs, or ended and was not joined */
    bool is_old;               /* what the thread makes is not wanted any more */
    atomic_bool is_made;       /* the thread has ended its work */
    struct exchange *exchange; /* NULL: it failed; read after `is_made` */
};

struct past_state *past_state_create(const char *database, const char *snapshots,
                                     const struct exchange_limits *limits)
{
    struct past_state *past = calloc(1, sizeof *past);
    if (past != NULL) {
        past->database = database;
        past->snapshots = snapshots;
        past->limits = *limits;
    }
    return past;
}

/* ---- the thread ---- */

static bool find_end(sqlite3 *database, uint64_t *ret_entry)
{
    sqlite3_stmt *row = NULL;
    const bool good =
        sqlite3_prepare_v2(database, "SELECT max(idx) FROM journal", -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW;
    *ret_entry = good ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
    (void)sqlite3_finalize(row); /* only read */
    return good && *ret_entry > 0;
}

static struct exchange *make_from(const struct past_state *past, sqlite3 *database, uint64_t end,
                                  struct problem *ret_problem)
{
    struct exchange *exchange = NULL;
    struct snapshot_mark base = {0};
    const struct snapshot_search search = {.folder = past->snapshots,
                                           .limits = &past->limits,
                                           .journal = database,
                                           .last_entry = end,
                                           .older_only = true};
    switch (snapshot_newest(&search, &exchange, &base, ret_problem)) {
    case SNAPSHOT_FOUND:
        break;
    case SNAPSHOT_NONE:
        exchange = exchange_create(&past->limits);
        break;
    case SNAPSHOT_BEYOND:
    case SNAPSHOT_FORKED:
    case SNAPSHOT_UNREAD:
        return NULL;
    }
    if (exchange == NULL) {
        problem_set(ret_problem, "out of memory for a second exchange");
    } else if (base.entry != end &&
               !snapshots_apply(database, exchange, base.entry + 1, end, ret_problem)) {
        exchange_destroy(&exchange);
    }
    return exchange;
}

static void *run(void *argument)
{
    struct past_state *past = argument;
    struct problem problem = {.text = "the ledger cannot be read"};
    sqlite3 *database = NULL;
    uint64_t end = 0;
    process_name_thread("past");
    if (sqlite3_open_v2(past->database, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        find_end(database, &end)) {
        past->exchange = make_from(past, database, end, &problem);
    }
    (void)sqlite3_close(database); /* read-only: nothing to lose */
    if (past->exchange == NULL) {
        log_warning("reads are refused until the journal takes entries again: %s", problem.text);
    } else {
        log_info("reads are answered from the state after entry %" PRIu64, end);
    }
    atomic_store(&past->is_made, true);
    return NULL;
}

/* ---- the core ---- */

static void begin(struct past_state *past)
{
    past->exchange = NULL;
    past->is_old = false;
    atomic_store(&past->is_made, false);
    past->has_thread = pthread_create(&past->thread, NULL, run, past) == 0;
}

static void end(struct past_state *past)
{
    (void)pthread_join(past->thread, NULL);
    past->has_thread = false;
    exchange_destroy(&past->exchange);
}

const struct exchange *past_state_look(struct past_state *past)
{
    if (past->has_thread && past->is_old) {
        if (!atomic_load(&past->is_made)) {
            return NULL;
        }
        end(past);
    }
    if (!past->has_thread) {
        begin(past);
    }
    return past->has_thread && atomic_load(&past->is_made) ? past->exchange : NULL;
}

void past_state_drop(struct past_state *past)
{
    if (past->has_thread) {
        past->is_old = true;
        if (atomic_load(&past->is_made)) {
            end(past);
        }
    }
}

void past_state_destroy(struct past_state **self)
{
    struct past_state *past = *self;
    if (past != NULL) {
        if (past->has_thread) {
            end(past);
        }
        free(past);
        *self = NULL;
    }
}
