#include "runtime/private_folder.h"

#include "runtime/files_internal.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns true for folders that all programs need: closing one would break the machine. */
static bool is_shared(const char *path)
{
    static const char *const folders[] = {
        "/",      "/bin", "/boot", "/dev",     "/etc",     "/home",   "/lib", "/lib64",
        "/media", "/mnt", "/opt",  "/proc",    "/run",     "/sbin",   "/srv", "/sys",
        "/tmp",   "/usr", "/var",  "/var/lib", "/var/log", "/var/tmp"};
    static const char *const trees[] = {"/bin/",  "/boot/", "/dev/", "/lib/", "/lib64/",
                                        "/proc/", "/sbin/", "/sys/", "/usr/"};
    char real[PATH_MAX];
    const char *place = realpath(path, real) != NULL ? real : path;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (strcmp(place, folders[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        if (strncmp(place, trees[i], strlen(trees[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool private_folder_status_fits(const char *path, const struct stat *status, uid_t us,
                                struct problem *ret_problem)
{
    if (S_ISLNK(status->st_mode)) {
        problem_set(ret_problem, "%s is a symbolic link; name the folder itself", path);
        return false;
    }
    if (!S_ISDIR(status->st_mode)) {
        problem_set(ret_problem, "%s is not a folder", path);
        return false;
    }
    if (status->st_uid != us) {
        return file_not_ours(path, status->st_uid, us, ret_problem);
    }
    bool is_open = (status->st_mode & 0067) != 0; /* a group may pass through, and no more */
    if (is_open && is_shared(path)) {
        problem_set(
            ret_problem,
            "%s is the system's, open to other users, and must stay so; use a folder of its own",
            path);
        return false;
    }
    if (is_open) {
        problem_set(ret_problem,
                    "%s has mode %04o, open to other users; use a folder that is not, or, if "
                    "nothing else needs it, run: chmod 700 '%s'",
                    path, status->st_mode & 07777U, path);
        return false;
    }
    return true;
}

/* Syncs the folder that contains the folder `path`. */
static bool sync_parent(const char *path)
{
    char copy[PATH_MAX];
    int length = snprintf(copy, sizeof copy, "%s", path);
    return length > 0 && (size_t)length < sizeof copy && file_sync_names(dirname(copy));
}

/* Makes one folder and makes its name durable, because synced files inside would vanish with it. */
static bool make_folder(const char *path, struct problem *ret_problem)
{
    if (mkdir(path, 0700) != 0) {
        return errno == EEXIST || file_fail(ret_problem, path, "cannot be made");
    }
    return sync_parent(path) || file_fail(ret_problem, path, "cannot be made durable");
}

/* Makes the missing folders above `path`. */
static bool make_parents(const char *path, struct problem *ret_problem)
{
    char parent[PATH_MAX];
    if ((size_t)snprintf(parent, sizeof parent, "%s", path) >= sizeof parent) {
        problem_set(ret_problem, "%.100s...: the path is too long", path);
        return false;
    }
    for (char *at = parent + 1; *at != '\0'; at++) {
        if (*at != '/' || at[1] == '\0') {
            continue;
        }
        *at = '\0';
        if (!make_folder(parent, ret_problem)) {
            return false;
        }
        *at = '/';
    }
    return true;
}

bool private_folder_fits(const char *path, uid_t owner, struct problem *ret_problem)
{
    struct stat status;
    if (lstat(path, &status) != 0) {
        return file_unseen(ret_problem, path, "cannot be used");
    }
    return private_folder_status_fits(path, &status, owner, ret_problem);
}

bool private_folder(const char *path, bool create, struct problem *ret_problem)
{
    struct stat status;
    if (path[0] == '\0') {
        problem_set(ret_problem, "the name of the folder is empty");
        return false;
    }
    if (lstat(path, &status) != 0) {
        if (errno != ENOENT || !create) {
            return file_unseen(ret_problem, path, "cannot be used");
        }
        if (!make_parents(path, ret_problem) || !make_folder(path, ret_problem)) {
            return false;
        }
        if (lstat(path, &status) != 0) {
            return file_unseen(ret_problem, path, "cannot be used");
        }
    }
    if (!private_folder_status_fits(path, &status, geteuid(), ret_problem)) {
        return false;
    }
    /* The process that made the folder, or names in it, may have been killed before they were
     * durable. We did not make a parent that we may not read. */
    if (create && (!file_sync_names(path) || (!sync_parent(path) && errno != EACCES))) {
        return file_fail(ret_problem, path, "cannot be made durable");
    }
    return true;
}
