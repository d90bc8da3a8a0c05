#include "broker/storage/folder.h"

#include "runtime/market.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

bool folder_path(const char *folder, const char *name, char *ret_path, size_t capacity,
                 struct problem *ret_problem)
{
    int length = snprintf(ret_path, capacity, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= capacity) {
        problem_set(ret_problem, "the path of the market's folder is too long");
        return false;
    }
    return true;
}

bool folder_lock(const char *folder, int *ret_lock, struct problem *ret_problem)
{
    char path[PATH_MAX];
    if (access(folder, W_OK | X_OK) != 0) {
        problem_set(ret_problem, "%s: %s: the broker's user must be able to write here", folder,
                    strerror(errno));
        return false;
    }
    if (!folder_path(folder, MARKET_LOCK, path, sizeof path, ret_problem)) {
        return false;
    }
    *ret_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*ret_lock < 0) {
        problem_set(ret_problem, "%s: %s", path, strerror(errno));
        return false;
    }
    if (flock(*ret_lock, LOCK_EX | LOCK_NB) != 0) {
        problem_set(ret_problem, "LOCKED: another broker is running on %s; stop it first", folder);
        return false;
    }
    return true;
}
