#include "provider/privilege.h"

#include "runtime/capability.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool privilege_user(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct problem *ret_problem)
{
    errno = 0;
    const struct passwd *user = getpwnam(name);
    char *end = NULL;
    unsigned long digits = user == NULL ? strtoul(name, &end, 10) : 0;
    if (user == NULL && end != NULL && end != name && *end == '\0' && digits < 0xffffffffUL) {
        user = getpwuid((uid_t)digits);
    }
    if (user == NULL) {
        problem_set(ret_problem,
                    "no user \"%.64s\" on this machine: name another one to run jobs as", name);
        return false;
    }
    if (user->pw_uid == 0) {
        problem_set(ret_problem, "jobs never run as root: name another user than \"%.64s\"", name);
        return false;
    }
    *ret_uid = user->pw_uid;
    *ret_gid = user->pw_gid;
    return true;
}

static bool is_only(uid_t uid, gid_t gid)
{
    uid_t users[3];
    gid_t groups[3];
    return getresuid(&users[0], &users[1], &users[2]) == 0 &&
           getresgid(&groups[0], &groups[1], &groups[2]) == 0 && users[0] == uid &&
           users[1] == uid && users[2] == uid && groups[0] == gid && groups[1] == gid &&
           groups[2] == gid;
}

bool privilege_drop(uid_t uid, gid_t gid, struct problem *ret_problem)
{
    if (uid == 0 || gid == 0) {
        problem_set(ret_problem, "jobs never run as root or in its group");
        return false;
    }
    if (geteuid() != 0) {
        if (!is_only(uid, gid)) {
            problem_set(ret_problem, "cannot become user %u: start as root or as that user",
                        (unsigned)uid);
            return false;
        }
        return capability_renounce(0, ret_problem);
    }
    capability_bound(0);
    /* Groups come first: after setresuid the process has no right to change them. */
    if (setgroups(1, &gid) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0) {
        problem_set(ret_problem, "cannot drop to user %u: %s", (unsigned)uid, strerror(errno));
        return false;
    }
    if (!is_only(uid, gid) || setuid(0) == 0 || setgid(0) == 0) {
        problem_set(ret_problem, "dropping to user %u did not hold", (unsigned)uid);
        return false;
    }
    return capability_renounce(0, ret_problem);
}
