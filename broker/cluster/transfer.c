#include "broker/cluster/transfer.h"

#include "base/checked.h"
#include "broker/cluster/folder_copy.h"
#include "broker/storage/etcd/etcd_inquiry.h"
#include "broker/storage/etcd/replicated.h"
#include "broker/storage/etcd/succession.h"
#include "broker/storage/folder.h"
#include "protocol/route/endpoint.h"
#include "runtime/clock.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_FILE "transfer"

enum { PATIENCE_MS = 20000, LOOK_MS = 50 };

/* ---- the request */

void transfer_wish_rank(unsigned rank, char ret_wish[TRANSFER_WISH_SIZE])
{
    (void)snprintf(ret_wish, TRANSFER_WISH_SIZE, "rank %u", rank);
}

static bool is_rank(const char *text)
{
    return text[0] >= '0' && text[0] <= '0' + SUCCESSION_RANK_MAX && text[1] == '\0';
}

bool transfer_wish_read(const char *text, char ret_wish[TRANSFER_WISH_SIZE],
                        struct problem *ret_problem)
{
    ret_wish[0] = '\0';
    if (text == NULL) {
        return true;
    }
    if (is_rank(text)) {
        transfer_wish_rank((unsigned)(text[0] - '0'), ret_wish);
        return true;
    }
    if (endpoint_is_tcp(text, strlen(text)) && strlen(text) < TRANSFER_WISH_SIZE - 8) {
        (void)snprintf(ret_wish, TRANSFER_WISH_SIZE, "%s", text);
        return true;
    }
    problem_set(ret_problem,
                "--to %.100s: name a broker by its rank, 0 to %d, or by the address of its control "
                "port, tcp://HOST:PORT",
                text, SUCCESSION_RANK_MAX);
    return false;
}

bool transfer_put(const char *folder, const char *wish, struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct stat status;
    if (!folder_path(folder, REQUEST_FILE, path, sizeof path, ret_problem) ||
        !file_write(path, wish, strlen(wish), 0600, ret_problem)) {
        return false;
    }
    /* Root may give the word to a broker of another user, who has to read it. */
    if (stat(folder, &status) != 0 ||
        (status.st_uid != geteuid() && chown(path, status.st_uid, (gid_t)-1) != 0)) {
        problem_set(ret_problem, "%s: %s", path, strerror(errno));
        (void)unlink(path);
        return false;
    }
    return true;
}

bool transfer_take(const char *folder, char ret_wish[TRANSFER_WISH_SIZE])
{
    char path[PATH_MAX];
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct problem ignored;
    if (!folder_path(folder, REQUEST_FILE, path, sizeof path, &ignored) ||
        !file_read(path, TRANSFER_WISH_SIZE - 1, &bytes, &length, &ignored)) {
        return false;
    }
    memcpy(ret_wish, bytes, length);
    ret_wish[length] = '\0';
    free(bytes);
    (void)unlink(path); /* a request that stays is obeyed once more at the next SIGHUP */
    return true;
}

/* ---- the command */

/* A leader is the broker that is to hand over, as the command knows it. */
struct leader {
    const struct transfer_options *options;
    char folder[PATH_MAX];
    char wish[TRANSFER_WISH_SIZE];
    struct broker_config config;
    struct folder_copy copy;
    struct journal_leader before;
    long pid;
};

/* The pid in market.yaml counts only while a broker holds the lock: that of a killed broker may be
 * another program's by now. */
static bool find_broker(struct leader *leader, struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct market market;
    if (realpath(leader->options->folder, leader->folder) == NULL) {
        problem_set(ret_problem, "%s: %s", leader->options->folder, strerror(errno));
        return false;
    }
    if (!folder_copy_read(leader->folder, &leader->config, &leader->copy, ret_problem) ||
        !folder_path(leader->folder, MARKET_FILE, path, sizeof path, ret_problem)) {
        return false;
    }
    if (!folder_copy_is_served(leader->folder)) {
        problem_set(ret_problem, "no broker runs on %s", leader->folder);
        return false;
    }
    if (!market_read(path, &market, ret_problem)) {
        return false;
    }
    leader->pid = market.pid;
    return true;
}

static bool check_leads(struct leader *leader, const struct etcd_inquiry *found,
                        struct problem *ret_problem)
{
    char name[sizeof leader->before.broker];
    replicated_name(leader->folder, leader->config.cluster_rank, leader->pid, name);
    leader->before = found->leader;
    if (found->has_journal && strcmp(name, found->leader.broker) == 0) {
        return true;
    }
    if (!found->has_journal || replicated_is_resigned(&found->leader)) {
        problem_set(ret_problem, "nobody leads at present, so nobody can hand over");
    } else {
        problem_set(ret_problem,
                    "the broker on %.200s does not lead: %s%.100s does; run the command there",
                    leader->folder, found->leader.broker,
                    found->leader.address[0] == '\0' ? "" : found->leader.address);
    }
    return false;
}

/* ---- the successor */

static bool inquire(const struct leader *leader, struct etcd_inquiry *ret_found,
                    struct problem *ret_problem)
{
    return etcd_inquire(&leader->config.etcd, &leader->copy.market, leader->copy.last, ret_found,
                        ret_problem);
}

static void print(const struct leader *leader, const struct journal_leader *now, int64_t took_ms)
{
    if (leader->options->is_quiet) {
        return;
    }
    if (leader->options->is_json) {
        (void)printf("{\"version\":1,\"from\":\"%s\",\"to\":\"%s\",\"address\":\"%s\","
                     "\"epoch\":%" PRIu64 ",\"took_ms\":%" PRId64 "}\n",
                     folder_copy_plain(leader->before.broker), folder_copy_plain(now->broker),
                     folder_copy_plain(now->address), now->epoch, took_ms);
    } else {
        (void)printf("%s%s%s leads under epoch %" PRIu64 ", after %" PRId64 " ms\n", now->broker,
                     now->address[0] == '\0' ? "" : " at ", now->address, now->epoch, took_ms);
    }
}

/* Returns false with a problem when the lead went to somebody else than was wished. */
static bool judge(const struct leader *leader, const struct journal_leader *now,
                  struct problem *ret_problem)
{
    const size_t home = strcspn(leader->before.broker, "/");
    if (strncmp(leader->before.broker, now->broker, home + 1) == 0) {
        problem_set(ret_problem, "no other broker took the lead, so this one leads again: is one "
                                 "following? Its log, or cluster status of its folder, says so");
        return false;
    }
    if (endpoint_is_tcp(leader->wish, strlen(leader->wish)) &&
        strcmp(leader->wish, now->address) != 0) {
        problem_set(ret_problem, "%.120s did not take the lead, and %.120s did", leader->wish,
                    now->address);
        return false;
    }
    return true;
}

static bool await(const struct leader *leader, int64_t began_ns, struct problem *ret_problem)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * NS_PER_MS};
    struct problem unheard;
    while (clock_monotonic_ns() - began_ns < PATIENCE_MS * NS_PER_MS) {
        struct etcd_inquiry found;
        const bool is_told = inquire(leader, &found, &unheard);
        if (is_told && found.leader.epoch > leader->before.epoch &&
            !replicated_is_resigned(&found.leader)) {
            print(leader, &found.leader, (clock_monotonic_ns() - began_ns) / NS_PER_MS);
            return judge(leader, &found.leader, ret_problem);
        }
        (void)nanosleep(&pause, NULL); /* an early end only causes an early look */
    }
    problem_set(ret_problem,
                "nobody took the lead within %d s; the broker's log says why, and cluster status "
                "who leads",
                PATIENCE_MS / 1000);
    return false;
}

bool transfer_run(const struct transfer_options *options, bool *ret_is_usage,
                  struct problem *ret_problem)
{
    struct leader *leader = calloc(1, sizeof *leader); /* a config is large */
    struct etcd_inquiry found;
    *ret_is_usage = false;
    if (leader == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    leader->options = options;
    *ret_is_usage = !transfer_wish_read(options->to, leader->wish, ret_problem);
    bool good = !*ret_is_usage && find_broker(leader, ret_problem) &&
                inquire(leader, &found, ret_problem) && check_leads(leader, &found, ret_problem) &&
                transfer_put(leader->folder, leader->wish, ret_problem);
    const int64_t began_ns = clock_monotonic_ns();
    if (good && kill((pid_t)leader->pid, SIGHUP) != 0) {
        problem_set(ret_problem, "the broker, process %ld, cannot be told: %s", leader->pid,
                    strerror(errno));
        char ignored[TRANSFER_WISH_SIZE];
        (void)transfer_take(leader->folder, ignored);
        good = false;
    }
    good = good && await(leader, began_ns, ret_problem);
    free(leader);
    return good;
}
