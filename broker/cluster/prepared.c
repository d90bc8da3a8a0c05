#include "broker/cluster/prepared.h"

#include "broker/cluster/cluster_init.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {MARKET_BROKER_CONFIG, CLUSTER_INIT_CA,
                                    CLUSTER_INIT_CLIENT ".pem", CLUSTER_INIT_CLIENT ".key"};
enum { NAMES = sizeof names / sizeof names[0] };

static bool has(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

bool prepared_is(const char *folder)
{
    return has(folder, MARKET_BROKER_CONFIG) && !has(folder, MARKET_DATABASE);
}

static bool is_known(const char *name)
{
    bool found = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    for (size_t i = 0; i < NAMES; i++) {
        found = found || strcmp(name, names[i]) == 0;
    }
    return found;
}

bool prepared_place(const char *folder, char *ret_place, size_t capacity,
                    struct problem *ret_problem)
{
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        problem_set(ret_problem, "%s: %s", folder, strerror(errno));
        return false;
    }
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    bool good = snprintf(ret_place, capacity, "%.*s.joining", (int)length, folder) < (int)capacity;
    if (!good) {
        problem_set(ret_problem, "%.200s: the name is too long", folder);
    }
    for (const struct dirent *entry; good && (entry = readdir(entries)) != NULL;) {
        good = is_known(entry->d_name);
        if (!good) {
            problem_set(ret_problem,
                        "%s has %s, which `cluster init` does not make: move it away, or name a "
                        "new folder",
                        folder, entry->d_name);
        }
    }
    (void)closedir(entries);
    return good;
}

static bool move(const char *from, const char *to, struct problem *ret_problem)
{
    if (rename(from, to) == 0) {
        return true;
    }
    problem_set(ret_problem, "%s cannot become %s: %s", from, to, strerror(errno));
    return false;
}

bool prepared_fill(const char *folder, const char *place, struct problem *ret_problem)
{
    for (size_t i = 0; i < NAMES; i++) {
        char from[PATH_MAX];
        char to[PATH_MAX];
        if (!has(folder, names[i])) {
            continue;
        }
        if (snprintf(from, sizeof from, "%s/%s", folder, names[i]) >= (int)sizeof from ||
            snprintf(to, sizeof to, "%s/%s", place, names[i]) >= (int)sizeof to) {
            problem_set(ret_problem, "%.200s: the name is too long", folder);
            return false;
        }
        if (!move(from, to, ret_problem)) {
            return false;
        }
    }
    /* The folder is empty now, and a folder may take the place of an empty one. */
    return file_sync_folder(place, ret_problem) && move(place, folder, ret_problem);
}
