#include "broker/cluster/folder_copy.h"

#include "base/sha256.h"
#include "broker/storage/entry.h"
#include "broker/storage/folder.h"
#include "protocol/genesis.h"
#include "runtime/market.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

/* Gives the first or the last entry of the folder. */
typedef bool take_entry(struct folder_copy *copy, const void *bytes, size_t length);

static bool take_first(struct folder_copy *copy, const void *bytes, size_t length)
{
    struct entry_head head;
    struct entry_command command;
    struct genesis genesis;
    size_t position = 0;
    if (!entry_read_head(bytes, length, &head) || !entry_next(bytes, length, &position, &command) ||
        !genesis_read(command.payload, command.payload_length, &genesis)) {
        return false;
    }
    copy->market = genesis.cluster;
    return true;
}

static bool take_last(struct folder_copy *copy, const void *bytes, size_t length)
{
    struct entry_head head;
    struct entry_command command;
    size_t position = 0;
    if (!entry_read_head(bytes, length, &head)) {
        return false;
    }
    while (entry_next(bytes, length, &position, &command)) {
        copy->log_ns = command.log_time_ns;
    }
    copy->last = head.index;
    copy->chain = sha256_of(bytes, length);
    return true;
}

static bool query(sqlite3 *database, const char *text, take_entry *take, struct folder_copy *copy)
{
    sqlite3_stmt *row = NULL;
    const bool good = sqlite3_prepare_v2(database, text, -1, &row, NULL) == SQLITE_OK &&
                      sqlite3_step(row) == SQLITE_ROW &&
                      take(copy, sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0));
    (void)sqlite3_finalize(row); /* only read */
    return good;
}

bool folder_copy_end(const char *folder, struct folder_copy *ret_copy, struct problem *ret_problem)
{
    char path[PATH_MAX];
    sqlite3 *database = NULL;
    *ret_copy = (struct folder_copy){.last = 0};
    if (!folder_path(folder, MARKET_DATABASE, path, sizeof path, ret_problem)) {
        return false;
    }
    const bool good =
        sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        query(database, "SELECT bytes FROM journal WHERE idx = 1", take_first, ret_copy) &&
        query(database, "SELECT bytes FROM journal ORDER BY idx DESC LIMIT 1", take_last, ret_copy);
    (void)sqlite3_close(database); /* only read */
    if (!good) {
        problem_set(ret_problem, "%s has no journal that can be read", path);
    }
    return good;
}

bool folder_copy_chain(const char *folder, uint64_t index, struct hash32 *ret_chain)
{
    char path[PATH_MAX];
    sqlite3 *database = NULL;
    sqlite3_stmt *row = NULL;
    struct problem ignored;
    bool good = folder_path(folder, MARKET_DATABASE, path, sizeof path, &ignored) &&
                sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(database, "SELECT bytes FROM journal WHERE idx = ?", -1, &row,
                                   NULL) == SQLITE_OK &&
                sqlite3_bind_int64(row, 1, (sqlite3_int64)index) == SQLITE_OK &&
                sqlite3_step(row) == SQLITE_ROW;
    if (good) {
        *ret_chain = sha256_of(sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0));
    }
    (void)sqlite3_finalize(row); /* only read */
    (void)sqlite3_close(database);
    return good;
}

bool folder_copy_config(const char *folder, struct broker_config *ret_config,
                        struct problem *ret_problem)
{
    if (!config_load(folder, false, ret_config, ret_problem)) {
        return false;
    }
    if (ret_config->etcd.member_count == 0) {
        problem_set(ret_problem,
                    "%s/%s does not name etcd: brokers are a cluster by their journal, which "
                    "journal.etcd names",
                    folder, MARKET_BROKER_CONFIG);
        return false;
    }
    return true;
}

bool folder_copy_read(const char *folder, struct broker_config *ret_config,
                      struct folder_copy *ret_copy, struct problem *ret_problem)
{
    return folder_copy_config(folder, ret_config, ret_problem) &&
           folder_copy_end(folder, ret_copy, ret_problem);
}

bool folder_copy_is_served(const char *folder)
{
    char path[PATH_MAX];
    struct problem ignored;
    if (!folder_path(folder, MARKET_LOCK, path, sizeof path, &ignored)) {
        return false;
    }
    const int lock = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_held = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (lock >= 0) {
        (void)close(lock);
    }
    return is_held;
}

const char *folder_copy_plain(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\') {
            return "?";
        }
    }
    return text;
}
