/* This file checks the files beside the ledger, as a broker does at its start. Findings are
 * snapshots that are newer than the journal or follow another journal, and a history.db that is
 * newer than the results. Keys that are not this market's, and a missing HEAD, are findings,
 * too. */
#include "audit/audit_internal.h"

#include "base/cursor.h"
#include "base/problem.h"
#include "base/sha256.h"
#include "base/text.h"
#include "protocol/identity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SNAPSHOT_HEAD = 96, /* magic, zeros, command, entry, two hashes, length of the state */
    SNAPSHOT_CHAIN = 24,
    SNAPSHOT_CLUSTER = 111,
    SNAPSHOT_LOOK = SNAPSHOT_CLUSTER + 16,
    SNAPSHOT_TAIL = 32, /* SHA-256 of all before */
    SEED_DIGITS = 64,
};

/* ---------------------------------------------------------------- snapshots */

static bool is_snapshot(const char *name)
{
    return strlen(name) == AUDIT_SNAPSHOT_NAME - 1 && strncmp(name, "state-", 6) == 0 &&
           strspn(name + 6, "0123456789") == 20 && strcmp(name + 26, ".snapshot") == 0;
}

static void read_claim(const uint8_t *bytes, size_t length, struct audit_snapshot *snapshot)
{
    if (length < SNAPSHOT_LOOK || memcmp(bytes, "BSS1", 4) != 0) {
        return;
    }
    struct reader in = reader_over(bytes + 8, 16);
    snapshot->command = reader_u64(&in);
    snapshot->entry = reader_u64(&in);
    memcpy(snapshot->chain.bytes, bytes + SNAPSHOT_CHAIN, sizeof snapshot->chain.bytes);
    memcpy(snapshot->cluster.bytes, bytes + SNAPSHOT_CLUSTER, sizeof snapshot->cluster.bytes);
}

static bool unread(struct audit *audit, const char *name)
{
    return audit_unreadable(audit, "%s cannot be read: %s%s", name, strerror(errno),
                            problem_advice(errno));
}

static bool add_snapshot(struct audit *audit, int folder, const char *name)
{
    uint8_t bytes[SNAPSHOT_LOOK];
    struct audit_snapshot *grown =
        reallocarray(audit->snapshots, audit->snapshot_count + 1, sizeof *grown);
    if (grown == NULL) {
        return audit_out_of_memory(audit);
    }
    audit->snapshots = grown;
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    const int error = errno;
    if (fd >= 0) {
        (void)close(fd); /* read only */
    }
    errno = error;
    if (length < 0) { /* a running broker removes older ones */
        return errno == ENOENT || unread(audit, name);
    }
    struct audit_snapshot *snapshot = &audit->snapshots[audit->snapshot_count++];
    *snapshot = (struct audit_snapshot){.name_command = strtoull(name + 6, NULL, 10)};
    memcpy(snapshot->name, name, sizeof snapshot->name);
    read_claim(bytes, (size_t)length, snapshot);
    return true;
}

static bool list_snapshots(struct audit *audit)
{
    DIR *directory = opendir(audit->snapshots_folder);
    if (directory == NULL) {
        return errno == ENOENT || unread(audit, audit->snapshots_folder);
    }
    bool good = true;
    errno = 0;
    for (struct dirent *entry; good && (entry = readdir(directory)) != NULL; errno = 0) {
        good = !is_snapshot(entry->d_name) || add_snapshot(audit, dirfd(directory), entry->d_name);
    }
    if (good && errno != 0) {
        good = unread(audit, audit->snapshots_folder);
    }
    (void)closedir(directory); /* read only */
    return good;
}

/* Hashes all of the file but its tail, and compares. Returns false when the file cannot be read. */
static bool is_whole(int fd, bool *ret_whole)
{
    static uint8_t bytes[1 << 20]; /* one audit runs at a time */
    struct stat facts;
    struct sha256 sum;
    uint8_t tail[SNAPSHOT_TAIL];
    *ret_whole = false;
    if (fstat(fd, &facts) != 0) {
        return false;
    }
    if (facts.st_size < SNAPSHOT_HEAD + SNAPSHOT_TAIL) {
        return true; /* not whole */
    }
    const off_t end = facts.st_size - SNAPSHOT_TAIL;
    sha256_start(&sum);
    for (off_t at = 0; at < end;) {
        const size_t left = end - at < (off_t)sizeof bytes ? (size_t)(end - at) : sizeof bytes;
        const ssize_t length = pread(fd, bytes, left, at);
        if (length <= 0) {
            return false;
        }
        sha256_add(&sum, bytes, (size_t)length);
        at += length;
    }
    if (pread(fd, tail, sizeof tail, end) != (ssize_t)sizeof tail) {
        return false;
    }
    const struct hash32 hash = sha256_end(&sum);
    *ret_whole = memcmp(hash.bytes, tail, sizeof tail) == 0;
    return true;
}

/* Finds out whether the file of a snapshot is whole. */
static bool look_at_file(struct audit *audit, const struct audit_snapshot *snapshot,
                         bool *ret_whole)
{
    char path[PATH_MAX];
    *ret_whole = false;
    (void)snprintf(path, sizeof path, "%s/%s", audit->snapshots_folder, snapshot->name); /* fits */
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool good = fd >= 0 && is_whole(fd, ret_whole);
    const int error = errno;
    if (fd >= 0) {
        (void)close(fd); /* read only */
    }
    errno = error;
    return good || unread(audit, snapshot->name);
}

static bool is_ours(const struct audit *audit, const struct audit_snapshot *snapshot)
{
    return memcmp(snapshot->cluster.bytes, audit->genesis.cluster.bytes,
                  sizeof snapshot->cluster.bytes) == 0;
}

/* Judges a snapshot that is newer than the journal, as a start does (docs/ledger.md, section 1). */
static bool judge_newer(struct audit *audit, const struct audit_snapshot *snapshot)
{
    bool whole;
    if (!look_at_file(audit, snapshot, &whole)) {
        return false;
    }
    const bool is_newer = snapshot->entry > audit->report->journal_entries;
    if (is_newer && is_ours(audit, snapshot) &&
        (whole || snapshot->command == snapshot->name_command)) {
        return audit_finding(audit, "snapshots", 0,
                             "%s is%s of entry %" PRIu64 ", the journal ends at entry %" PRIu64
                             ": entries are lost",
                             snapshot->name, whole ? "" : " damaged, and", snapshot->entry,
                             audit->report->journal_entries);
    }
    if (!whole) {
        audit->report->snapshots_doubtful++;
        audit->report->doubtful_command = snapshot->name_command;
        (void)snprintf(audit->report->doubtful, sizeof audit->report->doubtful, "%s",
                       snapshot->name); /* fits */
    }
    return true;
}

static bool journal_unread(struct audit *audit)
{
    return audit_unreadable(audit, "table journal cannot be read: %s",
                            sqlite3_errmsg(audit->database));
}

/* Sets whether the journal has the snapshot's entry with another chain hash. */
static bool look_at_chain(struct audit *audit, const struct audit_snapshot *snapshot,
                          bool *ret_differs)
{
    sqlite3_stmt *select = NULL;
    *ret_differs = false;
    if (sqlite3_prepare_v2(audit->database, "SELECT chain FROM journal WHERE idx = ?1", -1, &select,
                           NULL) != SQLITE_OK) {
        return journal_unread(audit);
    }
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)snapshot->entry); /* the index exists */
    const int code = sqlite3_step(select);
    if (code == SQLITE_ROW) {
        const void *chain = sqlite3_column_blob(select, 0);
        *ret_differs = sqlite3_column_bytes(select, 0) == (int)sizeof snapshot->chain.bytes &&
                       memcmp(chain, snapshot->chain.bytes, sizeof snapshot->chain.bytes) != 0;
    }
    (void)sqlite3_finalize(select); /* `code` tells the same */
    return code == SQLITE_ROW || code == SQLITE_DONE || journal_unread(audit);
}

/* Judges a snapshot of an entry that the journal has, too. Only a whole file is evidence, because
 * damage may have made the difference. */
static bool judge_fork(struct audit *audit, const struct audit_snapshot *snapshot)
{
    bool differs;
    bool whole = false;
    if (!look_at_chain(audit, snapshot, &differs) ||
        (differs && !look_at_file(audit, snapshot, &whole))) {
        return false;
    }
    return !whole || audit_finding(audit, "snapshots", 0,
                                   "%s follows another entry %" PRIu64
                                   " than the journal's: two histories were signed",
                                   snapshot->name, snapshot->entry);
}

static bool judge_snapshot(struct audit *audit, const struct audit_snapshot *snapshot)
{
    if (snapshot->entry > audit->report->journal_entries ||
        snapshot->name_command > audit->report->commands) {
        return judge_newer(audit, snapshot);
    }
    return snapshot->entry == 0 || !is_ours(audit, snapshot) || judge_fork(audit, snapshot);
}

static bool check_snapshots(struct audit *audit)
{
    for (size_t i = 0; i < audit->snapshot_count; i++) {
        if (!judge_snapshot(audit, &audit->snapshots[i])) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- keys */

enum key_found { KEY_READ, KEY_MISSING, KEY_WRONG, KEY_UNSEEN };

/* Reads the seed of a key file: 64 hex digits, a newline, notes that are not judged here. */
static enum key_found read_key(const char *path, struct identity **ret_identity)
{
    char text[SEED_DIGITS + 1];
    uint8_t seed[SEED_DIGITS / 2];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? KEY_MISSING : errno == ELOOP ? KEY_WRONG : KEY_UNSEEN;
    }
    const ssize_t length = read(fd, text, sizeof text);
    (void)close(fd); /* read only */
    if (length < 0) {
        return KEY_UNSEEN;
    }
    bool good = length == (ssize_t)sizeof text && text[SEED_DIGITS] == '\n';
    text[SEED_DIGITS] = '\0';
    good = good && text_unhex(text, seed, sizeof seed);
    *ret_identity = good ? identity_create(seed) : NULL;
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(text, sizeof text);
    return *ret_identity == NULL ? KEY_WRONG : KEY_READ;
}

/* Reads the public key that stands for a key outside the folder: `log.public` for `log.key`.
 * Returns false when there is none, or it is damaged. */
static bool read_public(const struct audit *audit, const char *name, struct key32 *ret_key)
{
    char path[PATH_MAX];
    char text[SEED_DIGITS + 1];
    (void)snprintf(path, sizeof path, "%s/%.*s.public", audit->folder, (int)strcspn(name, "."),
                   name); /* shorter than ledger.db's */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    const ssize_t length = read(fd, text, sizeof text);
    (void)close(fd); /* read only */
    bool good = length == (ssize_t)sizeof text && text[SEED_DIGITS] == '\n';
    text[SEED_DIGITS] = '\0';
    return good && text_unhex(text, ret_key->bytes, sizeof ret_key->bytes);
}

/* Checks one key file against the key that the journal or the audit log names. */
static bool check_key(struct audit *audit, const char *name, bool is_transport,
                      const struct key32 *expected)
{
    char path[PATH_MAX];
    struct identity *identity = NULL;
    struct key32 elsewhere;
    bool good = true;
    (void)snprintf(path, sizeof path, "%s/%s", audit->folder, name); /* shorter than ledger.db's */
    switch (read_key(path, &identity)) {
    case KEY_READ:
        good = key32_equal(is_transport ? identity_transport(identity) : identity_key(identity),
                           expected) ||
               audit_finding(audit, name, 0,
                             "the file is not this market's key: restore the right one");
        break;
    case KEY_MISSING:
        if (read_public(audit, name, &elsewhere)) {
            good = key32_equal(&elsewhere, expected) ||
                   audit_finding(audit, name, 0,
                                 "the broker had another key as a credential: hand over the right "
                                 "one");
            break;
        }
        /* A restored market waits for its keys until its first start. */
        if (audit->was_served) {
            good = audit_finding(audit, name, 0,
                                 "the file is missing: put back this file, no other will do");
        } else if (audit->report->key_missing[0] == '\0') {
            (void)snprintf(audit->report->key_missing, sizeof audit->report->key_missing, "%s",
                           name); /* our own names fit */
        }
        break;
    case KEY_WRONG:
        good = audit_finding(
            audit, name, 0,
            "the file is not a key file (64 hex digits and a newline): restore the right one");
        break;
    case KEY_UNSEEN:
        break; /* a user who may read the ledger may lack the right to read the keys */
    }
    identity_destroy(&identity);
    return good;
}

/* A backup has no HEAD, and may have no keys. */
static bool check_keys(struct audit *audit)
{
    return !audit->has_mark ||
           (check_key(audit, "broker.key", true, &audit->genesis.transport_key) &&
            check_key(audit, "log.key", false, &audit->genesis.log_key) &&
            (!audit->has_acts_key || check_key(audit, "audit.key", false, &audit->acts_key)));
}

/* ---------------------------------------------------------------- the rest of the folder */

static bool has_file(const struct audit *audit, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", audit->folder, name) < PATH_MAX &&
           access(path, F_OK) == 0;
}

/* The index of the blobs must be a database; its files are looked at by a backup alone. */
static bool check_blobs(struct audit *audit)
{
    char path[PATH_MAX];
    sqlite3 *database = NULL;
    if (!has_file(audit, "blobs/blobs.db") ||
        snprintf(path, sizeof path, "%s/blobs/blobs.db", audit->folder) >= PATH_MAX) {
        return true;
    }
    int code = sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL);
    (void)sqlite3_busy_timeout(database, 5000); /* cannot fail on an open handle */
    if (code == SQLITE_OK) {
        code = sqlite3_exec(database, "SELECT 1 FROM blob LIMIT 1", NULL, NULL, NULL);
    }
    bool good = (code != SQLITE_NOTADB && code != SQLITE_CORRUPT) ||
                audit_finding(audit, "blobs.db", 0, "blobs/blobs.db: %s", sqlite3_errmsg(database));
    if (good && code != SQLITE_OK && audit_reads_failed()) {
        good = audit_unreadable(audit, "blobs/blobs.db: %s", sqlite3_errmsg(database));
    }
    (void)sqlite3_close(database); /* read only */
    return good;
}

/* Reads the number that the query gives. The number stays as it was when the query gives none. */
static int read_number(sqlite3 *database, const char *query, uint64_t *number)
{
    sqlite3_stmt *select = NULL;
    int code = sqlite3_prepare_v2(database, query, -1, &select, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(select)) == SQLITE_ROW) {
        *number = (uint64_t)sqlite3_column_int64(select, 0);
    }
    (void)sqlite3_finalize(select); /* `code` tells the same */
    return code;
}

/* Reads up to which record history.db has seen results. The file is made anew from the ledger when
 * it is damaged, so that no mark is no finding but a warning. Returns false when the disk did not
 * give the file. */
static bool read_history(struct audit *audit)
{
    char path[PATH_MAX];
    sqlite3 *database = NULL;
    if (snprintf(path, sizeof path, "%s/history.db", audit->folder) >= PATH_MAX) {
        return true;
    }
    if (access(path, F_OK) != 0) {
        return errno == ENOENT || audit_unreadable(audit, "%s cannot be looked at: %s%s", path,
                                                   strerror(errno), problem_advice(errno));
    }
    audit_watch_reads();
    int code = sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_busy_timeout(database, 5000); /* cannot fail on an open handle */
        code = read_number(database, "SELECT entry FROM mark", &audit->history_mark);
    }
    const bool could_read = code != SQLITE_IOERR && code != SQLITE_CANTOPEN &&
                            code != SQLITE_NOMEM && code != SQLITE_BUSY && !audit_reads_failed();
    if (!could_read) {
        (void)audit_unreadable(audit, "history.db cannot be read: %s. " PROBLEM_TRY_AGAIN,
                               sqlite3_errmsg(database));
    }
    audit->report->history_damaged = code != SQLITE_ROW && code != SQLITE_DONE;
    (void)sqlite3_close(database); /* read only */
    return could_read;
}

/* A result that history.db has seen was durable in the ledger before. */
static bool check_history(struct audit *audit)
{
    uint64_t last = 0;
    if (audit->history_mark == 0) {
        return true;
    }
    if (read_number(audit->database, "SELECT ifnull(max(entry), 0) FROM results", &last) !=
        SQLITE_ROW) {
        return audit_unreadable(audit, "table results cannot be read: %s",
                                sqlite3_errmsg(audit->database));
    }
    return audit->history_mark <= last ||
           audit_finding(audit, "history.db", 0,
                         "history.db has seen record %" PRIu64
                         ", and the last result of the ledger is record %" PRIu64
                         ": entries are lost",
                         audit->history_mark, last);
}

bool audit_folder_look(struct audit *audit, const char *folder)
{
    audit->folder = folder;
    if (snprintf(audit->snapshots_folder, sizeof audit->snapshots_folder, "%s/snapshots", folder) >=
        (int)sizeof audit->snapshots_folder) {
        return audit_unreadable(audit, "the path of the folder is too long");
    }
    audit->was_served = has_file(audit, "epoch.secret") || has_file(audit, "history.db");
    return read_history(audit) && list_snapshots(audit);
}

bool audit_folder_check(struct audit *audit)
{
    if (!audit->has_mark && audit->was_served) {
        return audit_finding(audit, "HEAD", 0,
                             "the file is missing beside a market that was served: put HEAD back; "
                             "after a restore on purpose, start once with --adopt-journal");
    }
    return check_snapshots(audit) && check_history(audit) && check_keys(audit) &&
           check_blobs(audit);
}

void audit_folder_end(struct audit *audit)
{
    free(audit->snapshots);
}
