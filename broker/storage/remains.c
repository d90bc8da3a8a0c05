#include "broker/storage/remains.h"

#include "broker/storage/folder.h"
#include "broker/storage/startable.h"
#include "protocol/identity.h"
#include "runtime/files.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ASIDE_MAX = 1000 };

/* ---------------------------------------------------------------- remains */

static bool unread(const char *path, struct problem *ret_problem)
{
    problem_set_unseen(ret_problem, path, " cannot be looked at", errno);
    return false;
}

static bool has_name(const char *folder, const char *name, bool *ret_has,
                     struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct stat status;
    if (!folder_path(folder, name, path, sizeof path, ret_problem)) {
        return false;
    }
    *ret_has = lstat(path, &status) == 0;
    return *ret_has || errno == ENOENT || unread(path, ret_problem);
}

static bool is_snapshot(const char *name)
{
    return strncmp(name, "state-", 6) == 0;
}

/* Names the index, or a folder of blobs that begin with the same byte. A first start makes only
 * other names. */
static bool is_of_blobs(const char *name)
{
    return strcmp(name, "blobs.db") == 0 ||
           (strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2);
}

/* Finds whether a folder, which may be missing, holds a name of this kind. */
static bool holds(const char *folder, const char *name, bool (*is_kind)(const char *name),
                  bool *ret_holds, struct problem *ret_problem)
{
    char path[PATH_MAX];
    *ret_holds = false;
    if (!folder_path(folder, name, path, sizeof path, ret_problem)) {
        return false;
    }
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return errno == ENOENT || unread(path, ret_problem);
    }
    errno = 0;
    for (struct dirent *entry; !*ret_holds && (entry = readdir(directory)) != NULL;) {
        *ret_holds = is_kind(entry->d_name);
    }
    bool good = *ret_holds || errno == 0 || unread(path, ret_problem);
    (void)closedir(directory); /* only read */
    return good;
}

static void add_text(char text[REMAINS_TEXT], bool is_there, const char *more)
{
    const size_t length = strlen(text);
    if (is_there) {
        (void)snprintf(text + length, REMAINS_TEXT - length, "%s%s", length == 0 ? "" : ", ", more);
    }
}

bool remains_find(const char *folder, bool has_signed, char ret_text[REMAINS_TEXT],
                  struct problem *ret_problem)
{
    bool snapshots = false;
    bool secret = false;
    bool history = false;
    bool blobs = false;
    if (!holds(folder, MARKET_SNAPSHOTS, is_snapshot, &snapshots, ret_problem) ||
        !has_name(folder, MARKET_EPOCH, &secret, ret_problem) ||
        !has_name(folder, MARKET_HISTORY, &history, ret_problem) ||
        !holds(folder, MARKET_BLOBS, is_of_blobs, &blobs, ret_problem)) {
        return false;
    }
    ret_text[0] = '\0';
    add_text(ret_text, has_signed, MARKET_LOG_KEY " has signed");
    add_text(ret_text, snapshots, MARKET_SNAPSHOTS "/");
    add_text(ret_text, secret, MARKET_EPOCH);
    add_text(ret_text, history, MARKET_HISTORY);
    add_text(ret_text, blobs, MARKET_BLOBS "/");
    return true;
}

void remains_refuse(const char *folder, const char *what_is_missing, const char *found,
                    struct problem *ret_problem)
{
    problem_set(ret_problem,
                "there is no ledger in %.100s: %s. A market was served there: %s. Nothing was "
                "changed: a new ledger would be a second history under the same key. Restore the "
                "newest backup into a new folder: bourse-broker restore BACKUP NEWDIR; or, where "
                "there is none, end the log: bourse-broker new --i-know-the-log-ends --dir DIR",
                folder, what_is_missing, found);
}

/* ---------------------------------------------------------------- the end of a log */

static bool has_log(const char *folder, struct problem *ret_problem)
{
    char found[REMAINS_TEXT] = "";
    bool head = false;
    bool ledger = false;
    bool key = false;
    unsigned notes = 0;
    struct identity *identity = NULL;
    char path[PATH_MAX];
    if (!has_name(folder, MARKET_HEAD, &head, ret_problem) ||
        !has_name(folder, MARKET_DATABASE, &ledger, ret_problem) ||
        !has_name(folder, MARKET_LOG_KEY, &key, ret_problem) ||
        !folder_path(folder, MARKET_LOG_KEY, path, sizeof path, ret_problem) ||
        (key && !keyfile_load_noted(path, &identity, &notes, ret_problem))) {
        return false;
    }
    identity_destroy(&identity);
    if (!remains_find(folder, (notes & KEYFILE_SIGNED) != 0, found, ret_problem)) {
        return false;
    }
    if (!head && !ledger && found[0] == '\0') {
        problem_set(ret_problem,
                    "%s holds no market whose log could end; bourse-broker run --dir begins one",
                    folder);
        return false;
    }
    return true;
}

/* A market that starts is not ended by mistake: who ends it gives its name. */
static bool may_end(const char *folder, const char *end_market, struct problem *ret_problem)
{
    struct startable found;
    if (!startable_find(folder, &found, ret_problem)) {
        return false;
    }
    if (!found.starts || (end_market != NULL && strcmp(end_market, found.origin) == 0)) {
        return true;
    }
    problem_set(
        ret_problem,
        "%.100s holds a market that starts%s: %s, with %" PRIu64 " entries and %" PRIu64
        " account%s. Nothing was changed. To serve it: bourse-broker run --dir %.100s%s. To "
        "end it all the same, add --end-market %s",
        folder, found.has_head ? "" : ", restored and without HEAD", found.origin, found.entries,
        found.accounts, found.accounts == 1 ? "" : "s", folder,
        found.has_head ? "" : " --adopt-journal, once", found.origin);
    return false;
}

static bool make_aside(const char *folder, char ret_aside[PATH_MAX], struct problem *ret_problem)
{
    for (int i = 1; i < ASIDE_MAX; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "ended-%d", i);
        if (!folder_path(folder, name, ret_aside, PATH_MAX, ret_problem)) {
            return false;
        }
        if (mkdir(ret_aside, 0700) == 0) {
            return true;
        }
        if (errno != EEXIST) {
            problem_set(ret_problem, "%s cannot be made: %s", ret_aside, strerror(errno));
            return false;
        }
    }
    problem_set(ret_problem, "%s holds %d logs that ended: move them elsewhere", folder,
                ASIDE_MAX - 1);
    return false;
}

/* The old key stays until the new one takes its name. Notes of the new key say that it follows
 * another. */
static bool replace_key(const char *folder, const char *aside, struct problem *ret_problem)
{
    char key[PATH_MAX];
    char old[PATH_MAX];
    char fresh[PATH_MAX];
    struct identity *identity = NULL;
    bool good = folder_path(folder, MARKET_LOG_KEY, key, sizeof key, ret_problem) &&
                folder_path(aside, MARKET_LOG_KEY, old, sizeof old, ret_problem) &&
                folder_path(aside, "next.key", fresh, sizeof fresh, ret_problem) &&
                keyfile_create(fresh, &identity, ret_problem) &&
                keyfile_note(fresh, KEYFILE_FOLLOWS, ret_problem);
    identity_destroy(&identity);
    if (!good) {
        return false;
    }
    if ((link(key, old) != 0 && errno != ENOENT) || rename(fresh, key) != 0) {
        problem_set(ret_problem, "%s cannot be replaced: %s", key, strerror(errno));
        return false;
    }
    return file_sync_folder(aside, ret_problem) && file_sync_folder(folder, ret_problem);
}

static bool move_others(const char *folder, const char *aside, struct problem *ret_problem)
{
    static const char *const names[] = {MARKET_DATABASE,
                                        MARKET_DATABASE "-wal",
                                        MARKET_DATABASE "-shm",
                                        MARKET_TAIL_0,
                                        MARKET_TAIL_1,
                                        MARKET_HEAD,
                                        MARKET_AUDIT_KEY,
                                        "audit" MARKET_KEY_PUBLIC,
                                        "log" MARKET_KEY_PUBLIC,
                                        MARKET_EPOCH,
                                        MARKET_HISTORY,
                                        MARKET_HISTORY "-wal",
                                        MARKET_HISTORY "-shm",
                                        MARKET_CHALLENGES,
                                        MARKET_BLOBS,
                                        MARKET_FILE,
                                        MARKET_FILE ".old",
                                        MARKET_SNAPSHOTS,
                                        MARKET_JOURNAL_ETCD};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char from[PATH_MAX];
        char to[PATH_MAX];
        if (!folder_path(folder, names[i], from, sizeof from, ret_problem) ||
            !folder_path(aside, names[i], to, sizeof to, ret_problem)) {
            return false;
        }
        if (rename(from, to) != 0 && errno != ENOENT) {
            problem_set(ret_problem, "%s cannot be moved into %s: %s", from, aside,
                        strerror(errno));
            return false;
        }
    }
    return file_sync_folder(aside, ret_problem) && file_sync_folder(folder, ret_problem);
}

bool remains_set_aside(const char *folder, const char *end_market, char ret_aside[PATH_MAX],
                       struct problem *ret_problem)
{
    int lock = -1;
    bool has_made = false;
    const bool may = private_folder(folder, false, ret_problem) &&
                     folder_lock(folder, &lock, &has_made, ret_problem) &&
                     has_log(folder, ret_problem) && may_end(folder, end_market, ret_problem);
    const bool good = may && make_aside(folder, ret_aside, ret_problem) &&
                      replace_key(folder, ret_aside, ret_problem) &&
                      move_others(folder, ret_aside, ret_problem);
    folder_unlock(folder, &lock, has_made && !may);
    return good;
}
