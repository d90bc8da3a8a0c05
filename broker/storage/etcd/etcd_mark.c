#include "broker/storage/etcd/etcd_mark.h"

#include "base/text.h"
#include "broker/storage/folder.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MARK_BYTES_MAX = 128 };
/* The first lines of a release before brokers had records, and of this one. */
static const char title_1[] = "bourse-journal-etcd 1\n";
static const char title_2[] = "bourse-journal-etcd 2\n";
static const char nobody[] = "0000000000000000";

static size_t write_text(const struct etcd_mark *mark, bool is_first_form, char *ret_text)
{
    char journal[2 * sizeof mark->journal.bytes + 1];
    int written;
    text_hex(mark->journal.bytes, sizeof mark->journal.bytes, journal);
    if (is_first_form) {
        written = snprintf(ret_text, MARK_BYTES_MAX, "%s%016" PRIx64 "\n", title_1, mark->cluster);
    } else {
        written = snprintf(ret_text, MARK_BYTES_MAX, "%s%016" PRIx64 "\n%s\n%s\n", title_2,
                           mark->cluster, journal, mark->member[0] == '\0' ? nobody : mark->member);
    }
    assert(written > 0 && written < MARK_BYTES_MAX);
    return (size_t)written;
}

/* Reads one line of `digits` hex digits. */
static bool take_line(const char **at, size_t digits, void *ret_bytes)
{
    char line[2 * sizeof(struct id128) + 1];
    if (strlen(*at) < digits + 1 || (*at)[digits] != '\n') {
        return false;
    }
    memcpy(line, *at, digits);
    line[digits] = '\0';
    *at += digits + 1;
    return text_unhex(line, ret_bytes, digits / 2);
}

static bool parse_lines(const char *text, struct etcd_mark *mark)
{
    const bool is_first_form = strncmp(text, title_1, sizeof title_1 - 1) == 0;
    const char *at = text + sizeof title_1 - 1; /* both titles are of one length */
    uint8_t cluster[8];
    uint8_t member[(ETCD_MEMBER_ID_SIZE - 1) / 2];
    if (strlen(text) < sizeof title_1 - 1 || !take_line(&at, 2 * sizeof cluster, cluster)) {
        return false;
    }
    for (size_t i = 0; i < sizeof cluster; i++) {
        mark->cluster = mark->cluster << 8 | cluster[i];
    }
    if (is_first_form) {
        return true;
    }
    if (!take_line(&at, 2 * sizeof mark->journal.bytes, mark->journal.bytes) ||
        !take_line(&at, ETCD_MEMBER_ID_SIZE - 1, member)) {
        return false;
    }
    text_hex(member, sizeof member, mark->member);
    if (strcmp(mark->member, nobody) == 0) {
        mark->member[0] = '\0';
    }
    return true;
}

/* The bytes have to be those that would be written. */
static bool parse(const char *bytes, size_t length, struct etcd_mark *ret_mark)
{
    char text[MARK_BYTES_MAX + 1];
    char again[MARK_BYTES_MAX];
    memcpy(text, bytes, length);
    text[length] = '\0';
    if (!parse_lines(text, ret_mark) || ret_mark->cluster == 0) {
        return false;
    }
    const bool is_first_form = strncmp(text, title_1, sizeof title_1 - 1) == 0;
    return write_text(ret_mark, is_first_form, again) == length &&
           memcmp(again, bytes, length) == 0;
}

bool etcd_mark_read(const char *folder, struct etcd_mark *ret_mark, struct problem *ret_problem)
{
    char path[PATH_MAX];
    uint8_t *bytes = NULL;
    size_t length = 0;
    *ret_mark = (struct etcd_mark){.cluster = 0};
    if (!folder_path(folder, MARKET_JOURNAL_ETCD, path, sizeof path, ret_problem)) {
        return false;
    }
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_read(path, MARK_BYTES_MAX, &bytes, &length, ret_problem)) {
        return false;
    }
    const bool good = parse((const char *)bytes, length, ret_mark);
    free(bytes);
    if (!good) {
        *ret_mark = (struct etcd_mark){.cluster = 0};
        problem_set(ret_problem,
                    "%s does not say on which etcd cluster the journal is: it is damaged. Restore "
                    "it, or start once with --adopt-journal",
                    path);
    }
    return good;
}

bool etcd_mark_write(const char *folder, const struct etcd_mark *mark, struct problem *ret_problem)
{
    char path[PATH_MAX];
    char text[MARK_BYTES_MAX];
    const size_t length = write_text(mark, false, text);
    return folder_path(folder, MARKET_JOURNAL_ETCD, path, sizeof path, ret_problem) &&
           file_write(path, text, length, 0600, ret_problem);
}

const struct id128 *etcd_mark_journal(const struct etcd_mark *mark, const struct id128 *market)
{
    return id128_is_zero(&mark->journal) ? market : &mark->journal;
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

bool etcd_mark_check_alone(const char *folder, bool adopt, struct problem *ret_problem)
{
    struct etcd_mark mark;
    if (adopt) {
        return etcd_mark_remove(folder, ret_problem);
    }
    if (!etcd_mark_read(folder, &mark, ret_problem)) {
        return false;
    }
    if (mark.cluster != 0) {
        problem_set(ret_problem,
                    "this market's journal is on etcd cluster %016" PRIx64
                    ", and journal.etcd is not in broker.yaml: name its members there, or start "
                    "once with --adopt-journal to go on without etcd",
                    mark.cluster);
        return false;
    }
    return true;
}
