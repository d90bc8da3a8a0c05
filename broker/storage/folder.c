#include "broker/storage/folder.h"

#include "runtime/market.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool folder_path(const char *folder, const char *name, char *ret_path, size_t capacity,
                 struct problem *ret_problem)
{
    int length = snprintf(ret_path, capacity, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= capacity) {
        problem_set(ret_problem, "%.100s...: the path of the market's folder is too long", folder);
        return false;
    }
    return true;
}

static bool failed(const char *path, int *lock, struct problem *ret_problem)
{
    problem_set(ret_problem, "%s: %s", path, strerror(errno));
    if (*lock >= 0) {
        (void)close(*lock); /* nothing was written */
        *lock = -1;
    }
    return false;
}

/* Returns true when the path still names the open file: who had the lock may have removed it. */
static bool is_named(int lock, const char *path)
{
    struct stat ours;
    struct stat there;
    return fstat(lock, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* Opens the file. *ret_made: it was not there. */
static int open_lock(const char *path, bool *ret_made)
{
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    int lock = open(path, flags | O_EXCL, 0600);
    *ret_made = lock >= 0;
    return lock < 0 && errno == EEXIST ? open(path, flags, 0600) : lock;
}

bool folder_lock(const char *folder, int *ret_lock, bool *ret_made, struct problem *ret_problem)
{
    char path[PATH_MAX];
    int lock = -1;
    *ret_lock = -1;
    *ret_made = false;
    if (access(folder, W_OK | X_OK) != 0 && problem_is_of_disk(errno)) {
        problem_set_unseen(ret_problem, folder, " cannot be looked at", errno);
        return false;
    }
    if (access(folder, W_OK | X_OK) != 0) {
        problem_set(ret_problem, "%s: %s: the broker's user must be able to write here", folder,
                    strerror(errno));
        return false;
    }
    if (!folder_path(folder, MARKET_LOCK, path, sizeof path, ret_problem)) {
        return false;
    }
    do {
        if (lock >= 0) {
            (void)close(lock); /* of a start that was refused, and has removed it */
        }
        lock = open_lock(path, ret_made);
        if (lock < 0) {
            return failed(path, &lock, ret_problem);
        }
        if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
            (void)close(lock); /* nothing was written */
            problem_set(ret_problem, "LOCKED: another broker is running on %s; stop it first",
                        folder);
            return false;
        }
    } while (!is_named(lock, path));
    *ret_lock = lock;
    return true;
}

void folder_unlock(const char *folder, int *lock, bool remove)
{
    char path[PATH_MAX];
    struct problem problem;
    if (*lock < 0) {
        return;
    }
    if (remove && folder_path(folder, MARKET_LOCK, path, sizeof path, &problem)) {
        (void)unlink(path); /* an empty file that stays harms nobody */
    }
    (void)close(*lock); /* releases the lock */
    *lock = -1;
}
