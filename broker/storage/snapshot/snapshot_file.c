#include "broker/storage/snapshot/snapshot_file.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "broker/storage/journal_sqlite.h"
#include "runtime/files.h"
#include "runtime/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char magic[4] = {'B', 'S', 'S', '1'};

enum { HEAD_BYTES = 96, TAIL_BYTES = 32, CLAIM_BYTES = HEAD_BYTES + TAIL_BYTES };
enum { PREFIX_LENGTH = 6, NAME_LENGTH = 35, PATH_SIZE = 4096 };
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
    /* Digits of one width sort like numbers. */
    return strcmp(*(char *const *)right, *(char *const *)left);
}

static bool is_snapshot(const char *name)
{
    return strlen(name) == NAME_LENGTH && strncmp(name, "state-", 6) == 0 &&
           strspn(name + 6, "0123456789") == 20 && strcmp(name + 26, ".snapshot") == 0;
}

static uint64_t command_of(const char *name)
{
    return strtoull(name + PREFIX_LENGTH, NULL, 10);
}

enum { LISTED_MAX = 1024 };

/* Lists the names in the folder, newest first; the caller frees each. Returns false with errno. */
static bool list(const char *folder, char *ret_names[LISTED_MAX], size_t *ret_count)
{
    DIR *directory = opendir(folder);
    *ret_count = 0;
    if (directory == NULL) {
        return errno == ENOENT;
    }
    size_t count = 0;
    errno = 0;
    for (struct dirent *entry; count < LISTED_MAX && (entry = readdir(directory)) != NULL;
         errno = 0) {
        if (is_snapshot(entry->d_name) && (ret_names[count] = strdup(entry->d_name)) != NULL) {
            count++;
        }
    }
    const int error = count < LISTED_MAX ? errno : 0;
    (void)closedir(directory); /* only read */
    qsort(ret_names, count, sizeof ret_names[0], newest_first);
    *ret_count = count;
    errno = error;
    return error == 0;
}

static bool path_of(const char *folder, const char *name, char ret_path[PATH_SIZE])
{
    return snprintf(ret_path, PATH_SIZE, "%s/%s", folder, name) < PATH_SIZE;
}

/* Removes all snapshots except `newest` and the kept ones before it. A later snapshot belongs to
 * another history, since commands only go forward: for example to a journal that an older one
 * replaced. */
static void remove_others(const char *folder, const char *newest)
{
    char *names[LISTED_MAX];
    size_t count = 0;
    size_t kept = 0;
    if (!list(folder, names, &count)) {
        log_warning("%s cannot be read: snapshots that are of no more use stay there", folder);
    }
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
        problem_set(ret_problem, "%.100s...: the path of the snapshots is too long", folder);
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

/* A file says this of itself, whatever its state is. */
struct claim {
    uint64_t name_command;   /* by the file's name */
    uint64_t command, entry; /* by its head; 0: the head is damaged */
    struct hash32 chain;     /* chain hash of the entry */
    bool has_cluster;        /* the bytes of the cluster are there */
    struct id128 cluster;
    bool is_whole; /* only read_claim tells */
};

/* The first CLAIM_BYTES of a file are enough. */
static struct claim read_head(const char *name, const uint8_t *bytes, size_t length)
{
    struct claim claim = {.name_command = command_of(name)};
    if (length < CLAIM_BYTES || memcmp(bytes, magic, sizeof magic) != 0) {
        return claim;
    }
    struct reader in = reader_over(bytes + 8, HEAD_BYTES - 8); /* after magic and zeros */
    claim.command = reader_u64(&in);
    claim.entry = reader_u64(&in);
    reader_bytes(&in, claim.chain.bytes, sizeof claim.chain.bytes);
    claim.has_cluster = length >= SNAPSHOT_CLUSTER_AT + sizeof claim.cluster.bytes;
    if (claim.has_cluster) {
        memcpy(claim.cluster.bytes, bytes + SNAPSHOT_CLUSTER_AT, sizeof claim.cluster.bytes);
    }
    return claim;
}

/* Reads the claim of a whole file's bytes. */
static struct claim read_claim(const char *name, const uint8_t *bytes, size_t length)
{
    struct claim claim = read_head(name, bytes, length);
    if (length >= CLAIM_BYTES && memcmp(bytes, magic, sizeof magic) == 0) {
        const struct hash32 right = sha256_of(bytes, length - TAIL_BYTES);
        claim.is_whole = memcmp(right.bytes, bytes + length - TAIL_BYTES, TAIL_BYTES) == 0;
    }
    return claim;
}

static bool is_of_market(const struct snapshot_search *search, const struct claim *claim)
{
    return search->cluster != NULL && claim->has_cluster &&
           id128_equal(&claim->cluster, search->cluster);
}

/* Gives a snapshot, which contradicts a journal that is adopted, another name. */
static enum snapshot_found set_aside(const char *path, const char *what,
                                     struct problem *ret_problem)
{
    char aside[PATH_SIZE];
    if (snprintf(aside, sizeof aside, "%s.before-adoption", path) >= (int)sizeof aside ||
        rename(path, aside) != 0) {
        problem_set(ret_problem, "%.300s, which %s, cannot be set aside: %s", path, what,
                    strerror(errno));
        return SNAPSHOT_UNREAD;
    }
    log_warning("%s %s: it is now %s", path, what, aside);
    return SNAPSHOT_NONE;
}

/* Handles a snapshot of this market, taken after an entry that its journal does not have. */
static enum snapshot_found meet_newer(const struct snapshot_search *search, const char *path,
                                      const struct claim *claim, struct problem *ret_problem)
{
    char what[96];
    if (search->adopts) {
        (void)snprintf(what, sizeof what,
                       "is of entry %" PRIu64 ", after the last entry %" PRIu64
                       " of the adopted journal",
                       claim->entry, search->last_entry);
        return set_aside(path, what, ret_problem);
    }
    problem_set(ret_problem,
                "%.120s is%s of entry %" PRIu64 ", the journal ends at entry %" PRIu64
                ": entries are lost; nothing was changed. Put the newer ledger.db and HEAD "
                "back, or restore the newest backup. Where nothing newer is left: "
                "bourse-broker backup DIR B; bourse-broker restore B NEWDIR; start NEWDIR once "
                "with --adopt-journal",
                path, claim->is_whole ? "" : " damaged, and", claim->entry, search->last_entry);
    return SNAPSHOT_BEYOND;
}

/* Weighs a damaged file. Its state is of no use, but it may be evidence: damage that leaves name,
 * head and cluster in agreement has spoilt only the state. */
static enum snapshot_found weigh_damaged(const struct snapshot_search *search, const char *path,
                                         const struct claim *claim, struct problem *ret_problem)
{
    const bool is_newer =
        claim->entry > search->last_entry || claim->name_command > search->last_command;
    if (search->cluster == NULL || !is_newer) {
        log_warning("passed over a damaged snapshot: %s", path);
        return SNAPSHOT_NONE;
    }
    if (claim->command == claim->name_command && claim->entry > search->last_entry &&
        is_of_market(search, claim)) {
        return meet_newer(search, path, claim, ret_problem);
    }
    log_error(
        "%s is damaged, and its name is of command %" PRIu64
        ", while the journal ends at command %" PRIu64
        ": if the file is of this market, later entries are lost. Stop the broker, and compare "
        "ledger.db with the newest backup and checkpoint",
        path, claim->name_command, search->last_command);
    return SNAPSHOT_NONE;
}

static enum snapshot_found journal_unread(const struct snapshot_search *search,
                                          struct problem *ret_problem)
{
    problem_set(ret_problem, "the journal cannot be read: %s", sqlite3_errmsg(search->journal));
    return SNAPSHOT_UNREAD;
}

static enum snapshot_found weigh(const struct snapshot_search *search, const char *path,
                                 struct exchange *exchange, const struct snapshot_mark *mark,
                                 const struct claim *claim, struct problem *ret_problem)
{
    const bool is_newer = claim->entry > search->last_entry;
    if (is_newer && is_of_market(search, claim)) {
        return meet_newer(search, path, claim, ret_problem);
    }
    if (is_newer && search->cluster == NULL) {
        log_warning("passed over a snapshot newer than the journal: %s", path);
        return SNAPSHOT_NONE;
    }
    if (exchange == NULL) {
        log_warning("passed over a damaged snapshot: %s", path);
        return SNAPSHOT_NONE;
    }
    const enum journal_match match =
        is_newer ? JOURNAL_HAS_NOT : journal_sqlite_has(search->journal, mark->entry, &mark->chain);
    switch (match) {
    case JOURNAL_HAS:
        return SNAPSHOT_FOUND;
    case JOURNAL_HAS_OTHER: /* of another market: meet_fork has looked at those of this one */
    case JOURNAL_HAS_NOT:
        log_warning("passed over a snapshot of another history: %s", path);
        return SNAPSHOT_NONE;
    case JOURNAL_UNREAD:
        break;
    }
    return journal_unread(search, ret_problem);
}

/* Loads one snapshot. NONE: a log line says why the snapshot is skipped. */
static enum snapshot_found load(const struct snapshot_search *search, const char *name,
                                struct exchange **ret_exchange, struct snapshot_mark *ret_mark,
                                struct problem *ret_problem)
{
    char path[PATH_SIZE];
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct snapshot_mark mark = {.entry = 0};
    if (!path_of(search->folder, name, path)) {
        return SNAPSHOT_NONE; /* the folder itself could not be listed then */
    }
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return SNAPSHOT_NONE; /* a running broker removed it, or an adoption set it aside */
    }
    if (!file_read(path, SNAPSHOT_BYTES_MAX, &bytes, &length, ret_problem)) {
        return SNAPSHOT_UNREAD;
    }
    const struct claim claim = read_claim(name, bytes, length);
    if (search->older_only && claim.entry > search->last_entry) {
        free(bytes);
        return SNAPSHOT_NONE;
    }
    struct exchange *exchange = snapshot_decode(search->limits, bytes, length, &mark);
    free(bytes);
    const enum snapshot_found found =
        claim.is_whole ? weigh(search, path, exchange, &mark, &claim, ret_problem)
                       : weigh_damaged(search, path, &claim, ret_problem);
    if (found == SNAPSHOT_FOUND) {
        *ret_exchange = exchange;
        *ret_mark = mark;
    } else {
        exchange_destroy(&exchange);
    }
    return found;
}

/* Reads at most CLAIM_BYTES of the file. Returns -1 with errno when the file cannot be read. */
static ssize_t read_beginning(const char *path, uint8_t bytes[CLAIM_BYTES])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, bytes, CLAIM_BYTES);
    const int error = errno;
    if (fd >= 0) {
        (void)close(fd); /* read only */
    }
    errno = error;
    return length;
}

static enum snapshot_found refuse_fork(const struct snapshot_search *search, const char *path,
                                       uint64_t entry, struct problem *ret_problem)
{
    char what[96];
    if (search->adopts) {
        (void)snprintf(what, sizeof what,
                       "follows another entry %" PRIu64 " than the adopted journal", entry);
        return set_aside(path, what, ret_problem);
    }
    problem_set(ret_problem,
                "%.120s is of this market and of entry %" PRIu64
                ", but the journal has another entry %" PRIu64
                ": two histories were signed, which part there or before; nothing was changed. "
                "To find out which of them people's newest checkpoint or receipt belongs to: "
                "bourse-broker backup DIR B; bourse-broker restore B NEWDIR --checkpoint FILE. If "
                "it is the journal's, move the snapshot out of DIR",
                path, entry, entry);
    return SNAPSHOT_FORKED;
}

/* Finds out whether a snapshot of this market follows another entry than the journal's. Damage may
 * have made the difference, so only a whole file is evidence. The head alone is read otherwise. */
static enum snapshot_found meet_fork(const struct snapshot_search *search, const char *name,
                                     struct problem *ret_problem)
{
    char path[PATH_SIZE];
    uint8_t head[CLAIM_BYTES];
    uint8_t *bytes = NULL;
    size_t length = 0;
    if (!path_of(search->folder, name, path)) {
        return SNAPSHOT_NONE; /* the folder itself could not be listed then */
    }
    const ssize_t count = read_beginning(path, head);
    if (count < 0 && errno != ENOENT) { /* a running broker removes older ones */
        problem_set_unread(ret_problem, path, errno);
        return SNAPSHOT_UNREAD;
    }
    const struct claim claim = read_head(name, head, count < 0 ? 0 : (size_t)count);
    if (!is_of_market(search, &claim) || claim.entry == 0 || claim.entry > search->last_entry) {
        return SNAPSHOT_NONE;
    }
    const enum journal_match match = journal_sqlite_has(search->journal, claim.entry, &claim.chain);
    if (match == JOURNAL_UNREAD) {
        return journal_unread(search, ret_problem);
    }
    if (match != JOURNAL_HAS_OTHER) {
        return SNAPSHOT_NONE;
    }
    if (!file_read(path, SNAPSHOT_BYTES_MAX, &bytes, &length, ret_problem)) {
        return SNAPSHOT_UNREAD;
    }
    const bool is_whole = read_claim(name, bytes, length).is_whole;
    free(bytes);
    return is_whole ? refuse_fork(search, path, claim.entry, ret_problem) : SNAPSHOT_NONE;
}

enum snapshot_found snapshot_newest(const struct snapshot_search *search,
                                    struct exchange **ret_exchange, struct snapshot_mark *ret_mark,
                                    struct problem *ret_problem)
{
    char *names[LISTED_MAX];
    size_t count = 0;
    enum snapshot_found found = SNAPSHOT_NONE;
    if (!list(search->folder, names, &count)) {
        problem_set_unread(ret_problem, search->folder, errno);
        found = SNAPSHOT_UNREAD;
    }
    for (size_t i = 0; i < count && search->cluster != NULL && found == SNAPSHOT_NONE; i++) {
        found = meet_fork(search, names[i], ret_problem);
    }
    for (size_t i = 0; i < count; i++) {
        const bool is_passed = search->newer_only && command_of(names[i]) <= search->last_command;
        if (found == SNAPSHOT_NONE && !is_passed) {
            found = load(search, names[i], ret_exchange, ret_mark, ret_problem);
        }
        free(names[i]);
    }
    return found;
}
