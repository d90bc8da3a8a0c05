#include "broker/storage/etcd/etcd_version.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    MAJOR = 3,
    MINOR_TRIAL = 4, /* Debian 12 has it */
    MINOR_SPLIT = 5,
    PATCH_SPLIT = 17, /* transactions are whole from here on */
    PATCH_FLOOR_5 = 33,
    MINOR_NEW = 6,
    PATCH_FLOOR_6 = 14,
    NUMBER_MAX = 100000
};

/* Reads a number and the character after it. */
static bool take_number(const char **at, char after, int *ret_number)
{
    int number = 0;
    const char *from = *at;
    while (**at >= '0' && **at <= '9' && number < NUMBER_MAX) {
        number = number * 10 + (**at - '0');
        (*at)++;
    }
    if (*at == from || (after != '\0' && **at != after)) {
        return false;
    }
    *at += after != '\0' ? 1 : 0;
    *ret_number = number;
    return true;
}

enum etcd_version_verdict etcd_version_judge(const char *version, const char **ret_advice)
{
    static const char floors[] = "install etcd 3.5.33 or 3.6.14, or newer";
    int major = 0;
    int minor = 0;
    int patch = 0;
    *ret_advice = floors;
    if (!take_number(&version, '.', &major) || !take_number(&version, '.', &minor) ||
        !take_number(&version, '\0', &patch) || major != MAJOR || minor < MINOR_TRIAL) {
        *ret_advice = "this version is not known to keep a journal: install etcd 3.5.33 or 3.6.14, "
                      "or newer";
        return ETCD_VERSION_REFUSED;
    }
    if (minor == MINOR_TRIAL) {
        *ret_advice = "etcd 3.4 gets no more repairs and is for trials: install etcd 3.5.33 or "
                      "3.6.14, or newer";
        return ETCD_VERSION_OLD;
    }
    if (minor == MINOR_SPLIT && patch < PATCH_SPLIT) {
        *ret_advice = "etcd 3.5.0 to 3.5.16 can write a transaction in part: install etcd 3.5.33 "
                      "or 3.6.14, or newer";
        return ETCD_VERSION_REFUSED;
    }
    if ((minor == MINOR_SPLIT && patch < PATCH_FLOOR_5) ||
        (minor == MINOR_NEW && patch < PATCH_FLOOR_6)) {
        return ETCD_VERSION_OLD;
    }
    *ret_advice = "";
    return ETCD_VERSION_GOOD;
}
