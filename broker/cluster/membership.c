#include "broker/cluster/membership.h"

#include "base/checked.h"
#include "broker/rules_known.h"
#include "broker/storage/etcd/etcd_mark.h"
#include "broker/storage/etcd/etcd_roster.h"
#include "broker/storage/etcd/replicated.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/process.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    START_MS = 10000, /* the bound of what a start asks etcd */
    PAUSE_MS = 100,   /* between two tries of a start */
    AT_END_MS = 1000  /* who was at the end of the journal within this time lacks nothing */
};

struct membership {
    struct membership_config config;
    struct etcd_roster *roster; /* of the thread, once it runs */
    struct etcd_member self;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ends, is_due; /* guarded by `mutex` */
    bool is_away;      /* the newest record was not taken */
    bool is_gone;      /* the record was removed */
};

/* ---- the record */

static void renew(struct membership *membership)
{
    struct storage *store = membership->config.store;
    struct etcd_member *self = &membership->self;
    const int64_t at_end_ns = atomic_load(&store->replica.at_end_ns);
    const int64_t away_ms = (clock_monotonic_ns() - at_end_ns) / NS_PER_MS;
    self->epoch = atomic_load(&store->replica.epoch);
    self->rules = atomic_load(&store->replica.rules);
    self->index = watermark_value(&store->durable);
    self->seen_ms = clock_wall_ns() / NS_PER_MS;
    self->state_command = replica_note_newest(&store->replica, &self->state);
    self->lag_ms = self->epoch > 0                ? 0
                   : at_end_ns == 0               ? -1
                   : away_ms < (int64_t)AT_END_MS ? 0
                                                  : away_ms;
}

static void copy_text(char *ret_text, size_t capacity, const char *text)
{
    (void)snprintf(ret_text, capacity, "%s", text); /* a longer address is cut: it is only shown */
}

static void describe(struct membership *membership, const struct etcd_mark *mark)
{
    const struct membership_config *config = &membership->config;
    struct etcd_member *self = &membership->self;
    char name[sizeof((struct journal_leader *)NULL)->broker];
    const struct rules_known known = rules_known();
    replicated_name(config->store->folder, config->config->cluster_rank, getpid(), name);
    *self = (struct etcd_member){.rank = config->config->cluster_rank,
                                 .runs = true,
                                 .rules_first = known.first,
                                 .rules_last = known.last};
    copy_text(self->broker, sizeof self->broker, name);
    copy_text(self->control, sizeof self->control, config->control);
    copy_text(self->blobs, sizeof self->blobs, config->blobs);
    copy_text(self->version, sizeof self->version, BOURSE_VERSION);
    (void)snprintf(self->id, sizeof self->id, "%s", mark->member[0] != '\0' ? mark->member : name);
}

/* ---- the start */

static void pause_a_moment(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * NS_PER_MS};
    (void)nanosleep(&pause, NULL); /* an early end only causes an early try */
}

/* One member of etcd may be away, or all of them for a moment. */
static bool read_all(struct membership *membership, struct etcd_roster_list *ret_list,
                     struct problem *ret_problem)
{
    const int64_t end_ns = clock_monotonic_ns() + START_MS * NS_PER_MS;
    while (etcd_roster_read(membership->roster, ret_list, ret_problem) != ETCD_ROSTER_OK) {
        if (clock_monotonic_ns() >= end_ns) {
            return false;
        }
        pause_a_moment();
    }
    return true;
}

/* Two brokers of one rank would try to lead at the same moment. */
static bool check_others(const struct membership *membership, const struct etcd_roster_list *list,
                         struct problem *ret_problem)
{
    const struct etcd_member *self = &membership->self;
    bool is_there = false;
    for (size_t i = 0; i < list->count; i++) {
        const struct etcd_member *other = &list->brokers[i].member;
        const bool is_me = strcmp(other->id, self->id) == 0;
        is_there = is_there || is_me;
        if (!is_me && list->brokers[i].is_readable && other->rank == self->rank) {
            log_warning("the broker at %s has rank %u, too: give each broker its own "
                        "cluster.rank, or remove one that is gone with cluster leave",
                        other->control, other->rank);
        }
    }
    if (!is_there && list->count == ETCD_MEMBERS_KEPT_MAX) {
        problem_set(ret_problem,
                    "etcd has the records of %d brokers, which is the most: remove those that are "
                    "gone with cluster leave",
                    ETCD_MEMBERS_KEPT_MAX);
        return false;
    }
    return true;
}

static bool say_gone(const struct membership *membership, struct problem *ret_problem)
{
    problem_set(ret_problem,
                "LEFT: broker %s has left the brokers of this market, or was removed: make its "
                "folder anew from a backup of another one, with bourse-broker cluster join",
                membership->self.id);
    return false;
}

/* The mark comes after the record: a start that ends in between writes the same record again. */
static bool write_record(struct membership *membership, struct etcd_mark *mark,
                         struct problem *ret_problem)
{
    renew(membership);
    if (mark->member[0] == '\0') {
        memcpy(mark->member, membership->self.id, sizeof mark->member);
        return etcd_roster_enter(membership->roster, &membership->self, ret_problem) ==
                   ETCD_ROSTER_OK &&
               etcd_mark_write(membership->config.store->folder, mark, ret_problem);
    }
    switch (etcd_roster_refresh(membership->roster, &membership->self, ret_problem)) {
    case ETCD_ROSTER_OK:
        return true;
    case ETCD_ROSTER_GONE:
        return say_gone(membership, ret_problem);
    case ETCD_ROSTER_HELD:
    case ETCD_ROSTER_AWAY:
        break;
    }
    return false;
}

/* ---- the thread */

static void take_gone(struct membership *membership)
{
    if (membership->self.epoch > 0) {
        log_error("this broker's record was removed by `cluster leave`, and this broker leads: it "
                  "goes on until it hands the lead over, and does not start again");
    } else {
        log_error("this broker's record was removed by `cluster leave`: this broker ends, and does "
                  "not start again");
        (void)kill(getpid(), SIGTERM); /* a proper stop */
    }
}

uint32_t membership_rules_of_all(const struct etcd_roster_list *list)
{
    uint32_t most = UINT32_MAX;
    uint32_t least = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct etcd_member *member = &list->brokers[i].member;
        if (!list->brokers[i].is_readable) {
            return 0;
        }
        most = member->rules_last < most ? member->rules_last : most;
        least = member->rules_first > least ? member->rules_first : least;
    }
    return list->count == 0 || most < least ? 0 : most;
}

/* A leader whose market is not under its newest rules asks what the others know. */
static void compare_rules(struct membership *membership)
{
    const struct etcd_member *self = &membership->self;
    struct replica_note *note = &membership->config.store->replica;
    struct etcd_roster_list list;
    struct problem problem;
    uint32_t rules = 0;
    if (self->epoch > 0 && self->rules < self->rules_last &&
        etcd_roster_read(membership->roster, &list, &problem) == ETCD_ROSTER_OK) {
        rules = membership_rules_of_all(&list);
    }
    atomic_store(&note->rules_of_all, rules);
}

static void refresh(struct membership *membership)
{
    struct problem problem;
    renew(membership);
    const enum etcd_roster_status status =
        etcd_roster_refresh(membership->roster, &membership->self, &problem);
    if (status == ETCD_ROSTER_GONE) {
        membership->is_gone = true;
        take_gone(membership);
        return;
    }
    if (status != ETCD_ROSTER_OK && !membership->is_away) {
        log_warning("%s; cluster status shows an old record of this broker", problem.text);
    }
    membership->is_away = status != ETCD_ROSTER_OK;
    compare_rules(membership);
}

static struct timespec next_time(void)
{
    const int64_t at_ns = clock_monotonic_ns() + ETCD_ROSTER_REFRESH_S * NS_PER_S;
    return (struct timespec){.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};
}

static void *run(void *argument)
{
    struct membership *membership = argument;
    process_name_thread("member");
    pthread_mutex_lock(&membership->mutex);
    while (!membership->ends && !membership->is_gone) {
        membership->is_due = false;
        pthread_mutex_unlock(&membership->mutex);
        refresh(membership);
        pthread_mutex_lock(&membership->mutex);
        const struct timespec due = next_time();
        int late = 0;
        while (!membership->ends && !membership->is_due && late == 0) {
            late = pthread_cond_timedwait(&membership->changed, &membership->mutex, &due);
        }
    }
    pthread_mutex_unlock(&membership->mutex);
    return NULL;
}

/* ---- the whole */

static struct membership *create(const struct membership_config *config)
{
    struct membership *membership = calloc(1, sizeof *membership);
    pthread_condattr_t monotonic;
    if (membership == NULL) {
        return NULL;
    }
    membership->config = *config;
    pthread_mutex_init(&membership->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&membership->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return membership;
}

static void destroy(struct membership **self)
{
    struct membership *membership = *self;
    pthread_cond_destroy(&membership->changed);
    pthread_mutex_destroy(&membership->mutex);
    etcd_roster_destroy(&membership->roster);
    free(membership);
    *self = NULL;
}

static bool start(struct membership *membership, struct problem *ret_problem)
{
    struct storage *store = membership->config.store;
    struct etcd_mark mark;
    struct etcd_roster_list list;
    if (!etcd_mark_read(store->folder, &mark, ret_problem)) {
        return false;
    }
    membership->roster = etcd_roster_create(&membership->config.config->etcd, mark.cluster,
                                            etcd_mark_journal(&mark, &store->genesis.cluster));
    if (membership->roster == NULL) {
        problem_set(ret_problem, "no memory for the broker's record on etcd");
        return false;
    }
    describe(membership, &mark);
    if (!read_all(membership, &list, ret_problem) ||
        !check_others(membership, &list, ret_problem) ||
        !write_record(membership, &mark, ret_problem)) {
        return false;
    }
    membership->has_thread = pthread_create(&membership->thread, NULL, run, membership) == 0;
    if (!membership->has_thread) {
        problem_set(ret_problem, "no thread is left for the broker's record on etcd");
    }
    return membership->has_thread;
}

struct membership *membership_enter(const struct membership_config *config,
                                    struct problem *ret_problem)
{
    struct membership *membership = create(config);
    if (membership == NULL) {
        problem_set(ret_problem, "out of memory");
        return NULL;
    }
    if (!start(membership, ret_problem)) {
        destroy(&membership);
    }
    return membership;
}

void membership_tell(struct membership *membership)
{
    if (membership != NULL) {
        pthread_mutex_lock(&membership->mutex);
        membership->is_due = true;
        pthread_cond_signal(&membership->changed);
        pthread_mutex_unlock(&membership->mutex);
    }
}

void membership_stop(struct membership **self)
{
    struct membership *membership = *self;
    struct problem ignored;
    if (membership == NULL) {
        return;
    }
    pthread_mutex_lock(&membership->mutex);
    membership->ends = true;
    pthread_cond_signal(&membership->changed);
    pthread_mutex_unlock(&membership->mutex);
    pthread_join(membership->thread, NULL);
    if (!membership->is_gone && !membership->is_away) {
        renew(membership);
        membership->self.runs = false;
        membership->self.epoch = 0;
        /* The lease ends by itself without this word. */
        (void)etcd_roster_refresh(membership->roster, &membership->self, &ignored);
    }
    destroy(self);
}

/* ---- a new market */

bool membership_check_new(const char *folder, const struct broker_config *config, bool adopt,
                          struct problem *ret_problem)
{
    static const struct id128 any;
    char path[PATH_MAX];
    struct etcd_roster_found found;
    if (config->etcd.member_count == 0 || adopt) {
        return true;
    }
    if (!folder_path(folder, MARKET_DATABASE, path, sizeof path, ret_problem)) {
        return false;
    }
    if (access(path, F_OK) == 0 || errno != ENOENT) {
        return true; /* what is there is looked at soon */
    }
    struct etcd_roster *roster = etcd_roster_create(&config->etcd, 0, &any);
    if (roster == NULL) {
        problem_set(ret_problem, "no memory to ask etcd");
        return false;
    }
    const enum etcd_roster_status status = etcd_roster_look(roster, &found, ret_problem);
    etcd_roster_destroy(&roster);
    if (status == ETCD_ROSTER_OK && found.has_market) {
        problem_set(ret_problem,
                    "%s has no market, and this etcd has market %s: to make this node one of its "
                    "brokers, also again, use bourse-broker cluster join. To found one more market "
                    "on this etcd, start once with --adopt-journal",
                    folder, found.market);
    }
    return status == ETCD_ROSTER_OK && !found.has_market;
}
