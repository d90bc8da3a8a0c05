/* This part of replay.h finds limits for commands from before the first limits in the journal. */
#include "broker/storage/replay.h"

#include "broker/core/translate.h"
#include "broker/storage/entry.h"

static bool limits_in(const void *bytes, size_t length, struct exchange_limits *ret_limits)
{
    struct entry_head head;
    struct entry_command entry;
    size_t position = 0;
    const struct id128 no_cluster = {0};
    bool found = false;
    if (!entry_read_head(bytes, length, &head)) {
        return false;
    }
    while (!found && entry_next(bytes, length, &position, &entry)) {
        if (entry.kind == ENTRY_LIMITS) {
            struct translation translation = {0};
            found = translate_entry(&entry, head.first_command, &no_cluster, &translation);
            *ret_limits = translation.command.set_limits.limits;
            translation_fini(&translation);
        }
    }
    return found;
}

void replay_presume_limits(sqlite3 *database, struct exchange *exchange, uint64_t first)
{
    sqlite3_stmt *rows = NULL;
    struct exchange_limits limits;
    bool found = false;
    if (exchange_rules(exchange) != 0 ||
        sqlite3_prepare_v2(database, "SELECT bytes FROM journal WHERE idx >= ?1 ORDER BY idx", -1,
                           &rows, NULL) != SQLITE_OK) {
        return; /* the replay meets and reports unreadable rows itself */
    }
    (void)sqlite3_bind_int64(rows, 1, (sqlite3_int64)first); /* a fresh statement: cannot fail */
    while (!found && sqlite3_step(rows) == SQLITE_ROW) {
        found =
            limits_in(sqlite3_column_blob(rows, 0), (size_t)sqlite3_column_bytes(rows, 0), &limits);
    }
    (void)sqlite3_finalize(rows); /* read only */
    if (found) {
        exchange_presume_limits(exchange, &limits);
    }
}
