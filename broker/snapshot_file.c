#include "broker/snapshot_file.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "broker/journal_sqlite.h"
#include "runtime/files.h"
#include "runtime/log.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char magic[4] = {'B', 'S', 'S', '1'};

enum { HEAD_BYTES = 96, TAIL_BYTES = 32, NAME_LENGTH = 35, PATH_SIZE = 4096 };
#define SNAPSHOT_BYTES_MAX ((size_t)16 << 30)

/* ---------------------------------------------------------------- bytes */

static uint8_t *encode(const struct exchange *exchange, const struct snapshot_mark *mark,
                       size_t *ret_length)
{
    size_t state_length = 0;
    uint8_t *state = exchange_save(exchange, &state_length);
    if (state == NULL) {
        return NULL;
    }
    size_t length = HEAD_BYTES + state_length + TAIL_BYTES;
    uint8_t *bytes = malloc(length);
    if (bytes != NULL) {
        struct writer out = writer_over(bytes, length);
        writer_bytes(&out, magic, sizeof magic);
        writer_u32(&out, 0);
        writer_u64(&out, mark->command);
        writer_u64(&out, mark->entry);
        writer_bytes(&out, mark->chain.bytes, sizeof mark->chain.bytes);
        writer_bytes(&out, mark->state.bytes, sizeof mark->state.bytes);
        writer_u64(&out, state_length);
        writer_bytes(&out, state, state_length);
        struct hash32 hash = sha256_of(bytes, out.position);
        writer_bytes(&out, hash.bytes, sizeof hash.bytes);
        *ret_length = length;
    }
    free(state);
    return bytes;
}

struct exchange *snapshot_decode(const struct exchange_limits *limits, const uint8_t *bytes,
                                 size_t length, struct snapshot_mark *ret_mark)
{
    if (length < HEAD_BYTES + TAIL_BYTES) {
        return NULL;
    }
    struct reader in = reader_over(bytes, length);
    char found[sizeof magic];
    reader_bytes(&in, found, sizeof found);
    uint32_t zeros = reader_u32(&in);
    struct snapshot_mark mark;
    mark.command = reader_u64(&in);
    mark.entry = reader_u64(&in);
    reader_bytes(&in, mark.chain.bytes, sizeof mark.chain.bytes);
    reader_bytes(&in, mark.state.bytes, sizeof mark.state.bytes);
    uint64_t state_length = reader_u64(&in);
    if (memcmp(found, magic, sizeof magic) != 0 || zeros != 0 ||
        state_length != length - HEAD_BYTES - TAIL_BYTES) {
        return NULL;
    }
    const uint8_t *state = reader_view(&in, (size_t)state_length);
    struct hash32 hash;
    reader_bytes(&in, hash.bytes, sizeof hash.bytes);
    struct hash32 right = sha256_of(bytes, length - TAIL_BYTES);
    if (!reader_finished(&in) || !hash32_equal(&hash, &right)) {
        return NULL;
    }
    struct exchange *exchange = exchange_load(limits, state, (size_t)state_length);
    if (exchange == NULL) {
        return NULL;
    }
    struct hash32 loaded = exchange_state_hash(exchange);
    if (!hash32_equal(&loaded, &mark.state) || exchange_index(exchange) != mark.command) {
        exchange_destroy(&exchange);
        return NULL;
    }
    *ret_mark = mark;
    return exchange;
}

/* ---------------------------------------------------------------- files */

static int newest_first(const void *left, const void *right)
{
    return strcmp(*(char *const *)right,
                  *(char *const *)left); /* digits of one width sort like numbers */
}

static bool is_snapshot(const char *name)
{
    return strlen(name) == NAME_LENGTH && strncmp(name, "state-", 6) == 0 &&
           strspn(name + 6, "0123456789") == 20 && strcmp(name + 26, ".snapshot") == 0;
}

enum { LISTED_MAX = 1024 };

/* Names in the folder, newest first; the caller frees each. */
static size_t list(const char *folder, char *ret_names[LISTED_MAX])
{
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        return 0;
    }
    size_t count = 0;
    for (struct dirent *entry; count < LISTED_MAX && (entry = readdir(directory)) != NULL;) {
        if (is_snapshot(entry->d_name) && (ret_names[count] = strdup(entry->d_name)) != NULL) {
            count++;
        }
    }
    (void)closedir(directory); /* only read */
    qsort(ret_names, count, sizeof ret_names[0], newest_first);
    return count;
}

static bool path_of(const char *folder, const char *name, char ret_path[PATH_SIZE])
{
    return snprintf(ret_path, PATH_SIZE, "%s/%s", folder, name) < PATH_SIZE;
}

/* All but `newest` and those before it that are kept beside it. What is of a later time than that
 * is of another history, since commands only go forward: as of a journal before an older one was
 * put back. */
static void remove_others(const char *folder, const char *newest)
{
    char *names[LISTED_MAX];
    size_t count = list(folder, names);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        char path[PATH_SIZE];
        if (strcmp(names[i], newest) <= 0 && kept < SNAPSHOT_KEPT) {
            kept++;
        } else if (path_of(folder, names[i], path) && unlink(path) != 0) {
            log_warning("a snapshot that is of no more use cannot be removed: %s", path);
        }
        free(names[i]);
    }
}

bool snapshot_write(const char *folder, const struct exchange *exchange,
                    const struct snapshot_mark *mark, struct problem *ret_problem)
{
    char name[NAME_LENGTH + 1];
    char path[PATH_SIZE];
    (void)snprintf(name, sizeof name, "state-%020" PRIu64 ".snapshot", mark->command);
    if (!path_of(folder, name, path)) {
        problem_set(ret_problem, "the path of the snapshots is too long");
        return false;
    }
    size_t length = 0;
    uint8_t *bytes = encode(exchange, mark, &length);
    if (bytes == NULL) {
        problem_set(ret_problem, "out of memory for a snapshot");
        return false;
    }
    bool written = file_write(path, bytes, length, 0600, ret_problem);
    free(bytes);
    if (written) {
        remove_others(folder, name);
    }
    return written;
}

/* One snapshot, or NULL with a log line that says why it is passed over. */
static struct exchange *load(const char *path, const struct exchange_limits *limits,
                             sqlite3 *journal, uint64_t last_entry, struct snapshot_mark *ret_mark)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct problem problem;
    if (!file_read(path, SNAPSHOT_BYTES_MAX, &bytes, &length, &problem)) {
        log_warning("passed over a snapshot: %s", problem.text);
        return NULL;
    }
    struct exchange *exchange = snapshot_decode(limits, bytes, length, ret_mark);
    free(bytes);
    if (exchange == NULL) {
        log_warning("passed over a damaged snapshot: %s", path);
    } else if (ret_mark->entry > last_entry) {
        log_warning("passed over a snapshot newer than the journal: %s", path);
        exchange_destroy(&exchange);
    } else if (!journal_sqlite_has(journal, ret_mark->entry, &ret_mark->chain)) {
        log_warning("passed over a snapshot of another history: %s", path);
        exchange_destroy(&exchange);
    }
    return exchange;
}

bool snapshot_newest(const char *folder, const struct exchange_limits *limits, sqlite3 *journal,
                     uint64_t last_entry, struct exchange **ret_exchange,
                     struct snapshot_mark *ret_mark)
{
    char *names[LISTED_MAX];
    size_t count = list(folder, names);
    struct exchange *found = NULL;
    struct snapshot_mark mark;
    for (size_t i = 0; i < count; i++) {
        char path[PATH_SIZE];
        if (found == NULL && path_of(folder, names[i], path)) {
            found = load(path, limits, journal, last_entry, &mark);
        }
        free(names[i]);
    }
    if (found == NULL) {
        return false;
    }
    *ret_exchange = found;
    *ret_mark = mark;
    return true;
}
