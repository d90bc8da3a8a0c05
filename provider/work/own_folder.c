#include "provider/work/own_folder.h"

#include "runtime/log.h"
#include "runtime/private_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bool own_folder_keep(const char *path, struct problem *ret_problem)
{
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        return true;
    }
    if (!private_folder(path, true, ret_problem)) {
        return false;
    }
    log_warning("somebody removed %s; the agent has made it again", path);
    return true;
}

static int open_nameless(const char *path)
{
    return open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int own_folder_file(const char *path)
{
    struct problem problem;
    int fd = open_nameless(path);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        if (own_folder_keep(path, &problem)) {
            fd = open_nameless(path);
        } else {
            log_warning("%s", problem.text);
            errno = ENOENT;
        }
    }
    return fd;
}
