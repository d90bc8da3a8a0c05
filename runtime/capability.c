#include "runtime/capability.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAPABILITIES_MAX = 64, WORDS = _LINUX_CAPABILITY_U32S_3, WORD_BITS = 32 };

static bool look(struct __user_cap_data_struct ret_words[WORDS])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &header, ret_words) == 0;
}

static bool has_only(uint64_t kept)
{
    struct __user_cap_data_struct words[WORDS];
    bool good = look(words);
    for (unsigned i = 0; i < WORDS && good; i++) {
        const uint32_t other = ~(uint32_t)(kept >> (WORD_BITS * i));
        good =
            ((words[i].permitted | words[i].effective) & other) == 0 && words[i].inheritable == 0;
    }
    return good;
}

static bool keep(uint64_t kept)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct words[WORDS];
    if (!look(words)) {
        return false;
    }
    bool is_kept = true;
    for (unsigned i = 0; i < WORDS; i++) {
        const struct __user_cap_data_struct before = words[i];
        words[i].permitted &= (uint32_t)(kept >> (WORD_BITS * i));
        words[i].effective = words[i].permitted;
        words[i].inheritable = 0;
        is_kept = is_kept && before.permitted == words[i].permitted &&
                  before.effective == words[i].effective && before.inheritable == 0;
    }
    /* The filter of a service that has nothing to give up may forbid the call. */
    return is_kept || syscall(SYS_capset, &header, words) == 0;
}

void capability_bound(uint64_t kept)
{
    for (unsigned i = 0; i < CAPABILITIES_MAX; i++) {
        if ((kept & (UINT64_C(1) << i)) == 0) {
            (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        }
    }
}

bool capability_renounce(uint64_t kept, struct problem *ret_problem)
{
    capability_bound(kept);
    /* Old kernels have no ambient set. */
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (!keep(kept) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        problem_set(ret_problem, "the rights of root cannot be given up: %s", strerror(errno));
        return false;
    }
    if (!has_only(kept) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
        problem_set(ret_problem, "giving up the rights of root did not hold");
        return false;
    }
    return true;
}

bool capability_rest(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct words[WORDS];
    if (!look(words)) {
        return false;
    }
    for (unsigned i = 0; i < WORDS; i++) {
        words[i].effective = 0;
    }
    return syscall(SYS_capset, &header, words) == 0;
}

static void name_standing(uid_t user, uint64_t permitted, char *ret_text, size_t size)
{
    const struct passwd *entry = user == 0 ? NULL : getpwuid(user);
    char name[80];
    char rights[64] = "";
    if (user == 0) {
        (void)snprintf(name, sizeof name, "root");
    } else if (entry != NULL) {
        (void)snprintf(name, sizeof name, "user %.64s", entry->pw_name);
    } else {
        (void)snprintf(name, sizeof name, "user %lu", (unsigned long)user);
    }
    if (permitted == CAPABILITY_BIND_PORTS) {
        (void)snprintf(rights, sizeof rights, ", with no capability but CAP_NET_BIND_SERVICE");
    } else if (permitted != 0) {
        (void)snprintf(rights, sizeof rights, ", with capabilities %" PRIx64, permitted);
    } else if (user == 0) {
        (void)snprintf(rights, sizeof rights, ", with no capability");
    }
    (void)snprintf(ret_text, size, "%s%s", name, rights);
}

bool capability_standing(pid_t pid, char *ret_text, size_t size)
{
    char path[64];
    char line[256];
    bool has_user = false;
    bool has_rights = false;
    unsigned long user = 0;
    uint64_t permitted = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "Uid:", 4) == 0) { /* real, effective, ... */
            char *second = NULL;
            (void)strtoul(line + 4, &second, 10);
            user = strtoul(second, NULL, 10);
            has_user = true;
        } else if (strncmp(line, "CapPrm:", 7) == 0) {
            permitted = strtoull(line + 7, NULL, 16);
            has_rights = true;
        }
    }
    if (file != NULL) {
        (void)fclose(file); /* read only */
    }
    if (has_user && has_rights) {
        name_standing((uid_t)user, permitted, ret_text, size);
    }
    return has_user && has_rights;
}
