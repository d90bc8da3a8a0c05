#include "broker/storage/etcd/etcd_mark.h"

#include "broker/storage/folder.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MARK_BYTES_MAX = 64 };
static const char title[] = "bourse-journal-etcd 1\n";

static bool parse(const char *text, size_t length, uint64_t *ret_cluster)
{
    char again[MARK_BYTES_MAX];
    char digits[17] = "";
    if (length != sizeof title - 1 + 17) {
        return false;
    }
    memcpy(digits, text + sizeof title - 1, 16);
    *ret_cluster = strtoull(digits, NULL, 16);
    const int written = snprintf(again, sizeof again, "%s%016" PRIx64 "\n", title, *ret_cluster);
    return *ret_cluster != 0 && written == (int)length && memcmp(again, text, length) == 0;
}

bool etcd_mark_read(const char *folder, uint64_t *ret_cluster, struct problem *ret_problem)
{
    char path[PATH_MAX];
    uint8_t *bytes = NULL;
    size_t length = 0;
    *ret_cluster = 0;
    if (!folder_path(folder, MARKET_JOURNAL_ETCD, path, sizeof path, ret_problem)) {
        return false;
    }
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_read(path, MARK_BYTES_MAX, &bytes, &length, ret_problem)) {
        return false;
    }
    const bool good = parse((const char *)bytes, length, ret_cluster);
    free(bytes);
    if (!good) {
        problem_set(ret_problem,
                    "%s does not say on which etcd cluster the journal is: it is damaged. Restore "
                    "it, or start once with --adopt-journal",
                    path);
    }
    return good;
}

bool etcd_mark_write(const char *folder, uint64_t cluster, struct problem *ret_problem)
{
    char path[PATH_MAX];
    char text[MARK_BYTES_MAX];
    const int length = snprintf(text, sizeof text, "%s%016" PRIx64 "\n", title, cluster);
    return folder_path(folder, MARKET_JOURNAL_ETCD, path, sizeof path, ret_problem) &&
           file_write(path, text, (size_t)length, 0600, ret_problem);
}

bool etcd_mark_remove(const char *folder, struct problem *ret_problem)
{
    char path[PATH_MAX];
    if (!folder_path(folder, MARKET_JOURNAL_ETCD, path, sizeof path, ret_problem)) {
        return false;
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        problem_set(ret_problem, "%s cannot be removed: %s", path, strerror(errno));
        return false;
    }
    return true;
}
