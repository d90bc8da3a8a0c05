#include "broker/storage/snapshot/snapshots.h"

#include "broker/fatal.h"
#include "broker/storage/replay.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct snapshots {
    char database[4096], folder[4096];
    struct exchange_limits limits;
    struct queue *requests;
    atomic_bool is_stopping;
    pthread_t thread;
};

bool snapshots_apply(sqlite3 *database, struct exchange *exchange, uint64_t first, uint64_t last,
                     struct problem *ret_problem)
{
    sqlite3_stmt *select = NULL;
    replay_presume_limits(database, exchange, first);
    if (sqlite3_prepare_v2(
            database, "SELECT idx, bytes FROM journal WHERE idx BETWEEN ?1 AND ?2 ORDER BY idx", -1,
            &select, NULL) != SQLITE_OK) {
        problem_set(ret_problem, "the journal cannot be read: %s", sqlite3_errmsg(database));
        return false;
    }
    /* Two numbers of a fresh statement: the binds cannot fail. */
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)first);
    (void)sqlite3_bind_int64(select, 2, (sqlite3_int64)last);
    uint64_t expected = first;
    bool good = true;
    int step = SQLITE_DONE;
    while (good && (step = sqlite3_step(select)) == SQLITE_ROW) {
        good = (uint64_t)sqlite3_column_int64(select, 0) == expected;
        if (!good) {
            problem_set(ret_problem, "journal entry %" PRIu64 " is missing", expected);
            break;
        }
        enum replay_status status =
            replay_entry(exchange, sqlite3_column_blob(select, 1),
                         (size_t)sqlite3_column_bytes(select, 1), NULL, NULL, ret_problem);
        good = status == REPLAY_OK;
        expected++;
    }
    if (good && (step != SQLITE_DONE || expected != last + 1)) {
        problem_set(ret_problem, "the journal ends before entry %" PRIu64 ": %s", last,
                    sqlite3_errmsg(database));
        good = false;
    }
    (void)sqlite3_finalize(select); /* repeats the error of the step */
    return good;
}

static void compare(const struct snapshot_request *request, struct exchange *exchange)
{
    struct hash32 state = exchange_state_hash(exchange);
    if (exchange_index(exchange) != request->mark.command ||
        !hash32_equal(&state, &request->mark.state)) {
        fatal("the replayed state at command %" PRIu64
              " differs from the live one; stopped. Keep this folder and report it",
              request->mark.command);
    }
}

static bool make(struct snapshots *snapshots, sqlite3 *database,
                 const struct snapshot_request *request, struct problem *ret_problem)
{
    struct exchange *exchange = NULL;
    struct snapshot_mark base = {0};
    const struct snapshot_search search = {.folder = snapshots->folder,
                                           .limits = &snapshots->limits,
                                           .journal = database,
                                           .last_entry = request->mark.entry};
    switch (snapshot_newest(&search, &exchange, &base, ret_problem)) {
    case SNAPSHOT_FOUND:
        break;
    case SNAPSHOT_NONE:
        exchange = exchange_create(&snapshots->limits);
        break;
    case SNAPSHOT_BEYOND:
    case SNAPSHOT_FORKED:
    case SNAPSHOT_UNREAD:
        return false;
    }
    if (exchange == NULL) {
        problem_set(ret_problem, "out of memory for a second exchange");
        return false;
    }
    bool good =
        base.entry == request->mark.entry ||
        snapshots_apply(database, exchange, base.entry + 1, request->mark.entry, ret_problem);
    if (good) {
        compare(request, exchange);
        good = snapshot_write(snapshots->folder, exchange, &request->mark, ret_problem);
    }
    exchange_destroy(&exchange);
    return good;
}

static void handle(struct snapshots *snapshots, const struct snapshot_request *request)
{
    struct problem problem = {.text = ""};
    sqlite3 *database = NULL;
    bool good =
        sqlite3_open_v2(snapshots->database, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;
    if (!good) {
        problem_set(&problem, "%s cannot be opened", snapshots->database);
    }
    good = good && make(snapshots, database, request, &problem);
    (void)sqlite3_close(database); /* read-only: nothing to lose */
    if (good) {
        log_info("snapshot at command %" PRIu64, request->mark.command);
    } else {
        log_warning("no snapshot at command %" PRIu64 ": %s", request->mark.command, problem.text);
    }
}

static void *run(void *argument)
{
    struct snapshots *snapshots = argument;
    process_name_thread("snapshots");
    while (!queue_finished(snapshots->requests)) {
        struct queue_link *link = queue_pop(snapshots->requests, QUEUE_FOREVER);
        if (link == NULL) {
            continue;
        }
        struct snapshot_request *request = QUEUE_ELEMENT(link, struct snapshot_request, link);
        if (!atomic_load(&snapshots->is_stopping)) {
            handle(snapshots, request);
        }
        free(request);
    }
    return NULL;
}

struct snapshots *snapshots_start(const char *database, const char *folder,
                                  const struct exchange_limits *limits, struct queue *requests)
{
    struct snapshots *snapshots = calloc(1, sizeof *snapshots);
    if (snapshots == NULL) {
        fatal("the snapshot thread cannot start: out of memory");
    }
    (void)snprintf(snapshots->database, sizeof snapshots->database, "%s", database);
    (void)snprintf(snapshots->folder, sizeof snapshots->folder, "%s", folder);
    snapshots->limits = *limits;
    snapshots->requests = requests;
    if (pthread_create(&snapshots->thread, NULL, run, snapshots) != 0) {
        fatal("the snapshot thread cannot start: no thread");
    }
    return snapshots;
}

void snapshots_stop(struct snapshots **self, const struct snapshot_mark *end)
{
    struct snapshots *snapshots = *self;
    if (snapshots != NULL) {
        atomic_store(&snapshots->is_stopping, true);
        queue_close(snapshots->requests);
        pthread_join(snapshots->thread, NULL);
        if (end != NULL) {
            handle(snapshots, &(struct snapshot_request){.mark = *end});
        }
        free(snapshots);
        *self = NULL;
    }
}
