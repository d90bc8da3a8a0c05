#include "broker/cluster/leave.h"

#include "base/checked.h"
#include "broker/cluster/folder_copy.h"
#include "broker/cluster/transfer.h"
#include "broker/storage/etcd/etcd_inquiry.h"
#include "broker/storage/etcd/etcd_mark.h"
#include "broker/storage/etcd/replicated.h"
#include "runtime/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { END_MS = 30000, LOOK_MS = 50 };

/* A leaving is under way. */
struct leaving {
    const struct leave_options *options;
    struct broker_config config;
    struct folder_copy copy;
    struct etcd_mark mark;
    struct etcd_inquiry found;
    struct etcd_roster *roster;
    struct etcd_roster_list list;
    int who; /* of the list */
};

/* ---- who */

static bool is_named(const struct etcd_roster_list *list, size_t i, const char *name)
{
    char rank[8];
    const struct etcd_member *member = &list->brokers[i].member;
    (void)snprintf(rank, sizeof rank, "%u", member->rank);
    return strcmp(member->id, name) == 0 ||
           (list->brokers[i].is_readable &&
            (strcmp(rank, name) == 0 || strcmp(member->control, name) == 0));
}

int leave_find(const struct etcd_roster_list *list, const char *name, struct problem *ret_problem)
{
    int found = -1;
    for (size_t i = 0; i < list->count; i++) {
        if (is_named(list, i, name) && found >= 0) {
            problem_set(ret_problem,
                        "--name %.140s: two brokers have it; name one by its id, which cluster "
                        "status --json shows",
                        name);
            return -1;
        }
        found = is_named(list, i, name) ? (int)i : found;
    }
    if (found < 0) {
        problem_set(ret_problem,
                    "--name %.140s: no broker of this market has this rank, address or id; cluster "
                    "status shows them",
                    name);
    }
    return found;
}

int leave_stays(const struct etcd_roster_list *list, int leaves)
{
    int stays = -1;
    for (size_t i = 0; i < list->count; i++) {
        const bool is_better =
            stays < 0 || (list->brokers[i].is_alive && !list->brokers[(size_t)stays].is_alive);
        if ((int)i != leaves && is_better) {
            stays = (int)i;
        }
    }
    return stays;
}

static bool read_list(struct leaving *leaving, struct problem *ret_problem)
{
    return etcd_roster_read(leaving->roster, &leaving->list, ret_problem) == ETCD_ROSTER_OK;
}

static bool find_who(struct leaving *leaving, struct problem *ret_problem)
{
    const char *name = leaving->options->name;
    if (name != NULL) {
        leaving->who = leave_find(&leaving->list, name, ret_problem);
        return leaving->who >= 0;
    }
    leaving->who = -1;
    for (size_t i = 0; i < leaving->list.count; i++) {
        if (strcmp(leaving->list.brokers[i].member.id, leaving->mark.member) == 0) {
            leaving->who = (int)i;
        }
    }
    if (leaving->who < 0) {
        problem_set(ret_problem,
                    "the broker of %.300s has no record on etcd: it has left already, "
                    "or never started",
                    leaving->options->folder);
    }
    return leaving->who >= 0;
}

static bool open_all(struct leaving *leaving, struct problem *ret_problem)
{
    const char *folder = leaving->options->folder;
    if (!folder_copy_read(folder, &leaving->config, &leaving->copy, ret_problem) ||
        !etcd_mark_read(folder, &leaving->mark, ret_problem) ||
        !etcd_inquire(&leaving->config.etcd, &leaving->copy.market, leaving->copy.last,
                      &leaving->found, ret_problem)) {
        return false;
    }
    leaving->roster =
        etcd_roster_create(&leaving->config.etcd, leaving->found.cluster, &leaving->found.journal);
    if (leaving->roster == NULL) {
        problem_set(ret_problem, "no memory for the records of brokers");
        return false;
    }
    return read_list(leaving, ret_problem) && find_who(leaving, ret_problem);
}

/* ---- what speaks against it */

static const struct etcd_member *member_of(const struct leaving *leaving)
{
    return &leaving->list.brokers[(size_t)leaving->who].member;
}

static bool check_stays(const struct leaving *leaving, struct problem *ret_problem)
{
    if (leave_stays(&leaving->list, leaving->who) >= 0) {
        return true;
    }
    problem_set(ret_problem, "this is the market's last broker, and cannot leave: let another one "
                             "join first, or take a backup and stop it");
    return false;
}

/* A broker that runs elsewhere is told there: only there is it seen to hand over and to end. */
static bool check_named(const struct leaving *leaving, struct problem *ret_problem)
{
    const struct etcd_member *member = member_of(leaving);
    const bool is_own = strcmp(member->id, leaving->mark.member) == 0;
    if (is_own || !leaving->list.brokers[(size_t)leaving->who].is_alive) {
        return true;
    }
    problem_set(ret_problem,
                "the broker at %.140s runs, or did so %d s ago: run cluster leave on its own "
                "folder, or stop it and wait so long",
                member->control, ETCD_ROSTER_LEASE_S);
    return false;
}

static bool leads(const struct leaving *leaving)
{
    return leaving->found.has_journal && !replicated_is_resigned(&leaving->found.leader) &&
           strcmp(member_of(leaving)->broker, leaving->found.leader.broker) == 0;
}

/* A folder whose broker leads hands the lead over before its record goes. */
static bool hand_over(struct leaving *leaving, struct problem *ret_problem)
{
    bool is_usage = false;
    const struct transfer_options transfer = {.folder = leaving->options->folder, .is_quiet = true};
    if (!folder_copy_is_served(leaving->options->folder) || !leads(leaving)) {
        return true;
    }
    struct problem reason;
    if (!transfer_run(&transfer, &is_usage, &reason)) {
        problem_set(ret_problem, "this broker leads, and could not hand over: %.500s", reason.text);
        return false;
    }
    return true;
}

/* ---- leaving */

static bool await_end(const struct leaving *leaving, struct problem *ret_problem)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * NS_PER_MS};
    const int64_t began_ns = clock_monotonic_ns();
    while (folder_copy_is_served(leaving->options->folder)) {
        if (clock_monotonic_ns() - began_ns > END_MS * NS_PER_MS) {
            problem_set(ret_problem,
                        "the broker left, and still runs after %d s: its log says why; stop it",
                        END_MS / 1000);
            return false;
        }
        (void)nanosleep(&pause, NULL); /* an early end only causes an early look */
    }
    return true;
}

static bool remove_record(struct leaving *leaving, struct problem *ret_problem)
{
    const int stays = leave_stays(&leaving->list, leaving->who);
    if (stays < 0) {
        return check_stays(leaving, ret_problem);
    }
    const char *other = leaving->list.brokers[(size_t)stays].member.id;
    switch (etcd_roster_remove(leaving->roster, member_of(leaving)->id, other, ret_problem)) {
    case ETCD_ROSTER_OK:
        return true;
    case ETCD_ROSTER_HELD:
    case ETCD_ROSTER_GONE:
        problem_set(ret_problem,
                    "broker %s, which was to stay, has left meanwhile: look at cluster "
                    "status, and try again",
                    other);
        return false;
    case ETCD_ROSTER_AWAY:
        break;
    }
    return false;
}

/* ---- what is left to do */

/* Compares the host of a URL with the host of a control port's address. */
static bool is_on(const char *url, const char *address)
{
    const char *at = strstr(url, "://");
    const char *other = strstr(address, "://");
    if (at == NULL || other == NULL) {
        return false;
    }
    const char *end = strrchr(at + 3, ':');
    const char *other_end = strrchr(other + 3, ':');
    const size_t length = end != NULL ? (size_t)(end - at - 3) : strlen(at + 3);
    const size_t other_length =
        other_end != NULL ? (size_t)(other_end - other - 3) : strlen(other + 3);
    return length == other_length && strncmp(at + 3, other + 3, length) == 0;
}

static void print_etcd(const struct leaving *leaving)
{
    struct etcd_roster_host hosts[ETCD_PAIRS_MAX];
    const struct etcd_config *etcd = &leaving->config.etcd;
    struct problem ignored;
    size_t count = 0;
    size_t matches = 0;
    uint64_t id = 0;
    (void)etcd_roster_hosts(leaving->roster, hosts, &count, &ignored); /* none: the list is told */
    for (size_t i = 0; i < count; i++) {
        if (is_on(hosts[i].url, member_of(leaving)->control)) {
            id = hosts[i].id;
            matches++;
        }
    }
    (void)puts("A member of etcd on its machine stays. To replace that one, too, remove it first, "
               "and then\nadd a new one, under a fresh name and with an empty folder:");
    (void)fputs("  etcdctl --endpoints ", stdout);
    for (size_t i = 0; i < etcd->member_count; i++) {
        (void)printf("%s%s", i > 0 ? "," : "", etcd->members[i]);
    }
    (void)printf(" --cacert %s --cert %s --key %s ", etcd->ca, etcd->certificate, etcd->key);
    if (matches == 1) {
        (void)printf("member remove %016" PRIx64 "\n", id);
        return;
    }
    (void)puts("member list\n  and with the id of the member there: member remove ID");
}

static void print(const struct leaving *leaving)
{
    const struct etcd_member *member = member_of(leaving);
    if (leaving->options->is_json) {
        (void)printf("{\"version\":1,\"left\":\"%s\",\"rank\":%u,\"control\":\"%s\","
                     "\"brokers\":%zu}\n",
                     member->id, member->rank, member->control, leaving->list.count - 1);
        return;
    }
    (void)printf("broker %u at %s has left; %zu of its market are there\n", member->rank,
                 member->control, leaving->list.count - 1);
    (void)puts("Take its line out of `addresses` in broker.yaml of the others, at their next "
               "restart.");
    print_etcd(leaving);
}

bool leave_run(const struct leave_options *options, bool *ret_is_usage, struct problem *ret_problem)
{
    struct leaving *leaving = calloc(1, sizeof *leaving); /* a config is large */
    *ret_is_usage = false;
    if (leaving == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    leaving->options = options;
    bool good = open_all(leaving, ret_problem) && check_stays(leaving, ret_problem) &&
                check_named(leaving, ret_problem);
    if (good && strcmp(member_of(leaving)->id, leaving->mark.member) == 0) {
        good = hand_over(leaving, ret_problem) && remove_record(leaving, ret_problem) &&
               await_end(leaving, ret_problem);
    } else if (good) {
        good = remove_record(leaving, ret_problem);
    }
    if (good) {
        print(leaving);
    }
    etcd_roster_destroy(&leaving->roster);
    free(leaving);
    return good;
}
