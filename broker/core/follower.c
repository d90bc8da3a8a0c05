#include "broker/core/follower.h"

#include "base/checked.h"
#include "broker/core/core.h"
#include "broker/fatal.h"
#include "broker/storage/snapshot/snapshots.h"
#include "runtime/clock.h"
#include "runtime/process.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* The longest time until a refusal is in the audit log, until the disk has what was applied, and
 * until free disk space is noticed. */
#define IDLE_NS (1 * NS_PER_S)
/* The time between two tries of an entry that etcd does not take. */
#define AWAY_PAUSE_NS (NS_PER_S / 5)

/* One transaction has at most so many groups: the others serve the core meanwhile. */
enum { GROUPS_AT_ONCE = CORE_GROUPS / 2 };

struct follower {
    struct follower_config config;
    pthread_t thread;
    bool is_scarce;      /* space on the disk is scarce */
    int64_t sync_due_ns; /* monotonic: the tables are synced by then */
};

/* SQLite's log is copied after every commit while the disk is full. The next commit then overwrites
 * the log and needs next to no space. Whoever was stuck ends that state, which may be the
 * committer. */
static void review_reserve(struct follower *follower, bool was_full)
{
    if (was_full || disk_reserve_state(follower->config.reserve) != DISK_RESERVE_STUCK) {
        disk_reserve_review(follower->config.reserve);
    }
    const bool is_scarce = disk_reserve_state(follower->config.reserve) != DISK_RESERVE_UNUSED;
    if (is_scarce != follower->is_scarce) {
        follower->is_scarce = is_scarce;
        storage_save_space(follower->config.store, is_scarce);
    }
}

static void sync_tables(struct follower *follower)
{
    storage_sync_tables(follower->config.store);
    follower->sync_due_ns = clock_monotonic_ns() + IDLE_NS;
}

/* Writes waiting acts to the audit log when there is nothing to apply. While space is scarce, the
 * rest of the disk stays for cancels. */
static void idle(struct follower *follower)
{
    sync_tables(follower);
    if (disk_reserve_state(follower->config.reserve) != DISK_RESERVE_UNUSED) {
        review_reserve(follower, false);
    } else {
        /* A full disk leaves the acts waiting: the next second tries again. */
        (void)storage_write_acts(follower->config.store, logtime_now(follower->config.clock),
                                 false);
    }
}

static void request_snapshot(const struct follower *follower, const struct group *group)
{
    const struct journal_last *last = &follower->config.store->last; /* after a direct group */
    struct snapshot_request *request = NULL;
    if (!group->has_mark || disk_reserve_state(follower->config.reserve) != DISK_RESERVE_UNUSED) {
        return;
    }
    request = calloc(1, sizeof *request);
    if (request == NULL) {
        return; /* the next mark makes the next request */
    }
    request->mark =
        (struct snapshot_mark){.command = group->first_command + group->command_count - 1,
                               .entry = group->is_direct ? last->index : group->entry.index,
                               .chain = group->is_direct ? last->chain : group->entry.chain,
                               .state = group->mark};
    if (!queue_try_push(follower->config.snapshots, &request->link)) {
        free(request);
    }
}

static enum storage_status write_tables(struct follower *follower, struct group *const *groups,
                                        size_t count)
{
    return groups[0]->is_direct ? storage_commit(follower->config.store, groups[0])
                                : storage_apply(follower->config.store, groups, count);
}

/* Frees the reserve, or waits. From here on SQLite's log is copied after every commit. */
static void meet_full(struct follower *follower)
{
    const struct timespec second = {.tv_sec = 1};
    follower->is_scarce = true;
    storage_save_space(follower->config.store, true);
    if (!disk_reserve_met_full(follower->config.reserve)) {
        /* Time for an operator to free space; a signal that ends the sleep early only causes an
         * early try. */
        (void)nanosleep(&second, NULL);
    }
}

/* All groups are one transaction. On a full disk each group is one, which needs least space. An
 * etcd that does not answer has made the follower wait already, one that is full has not. */
static void apply(struct follower *follower, struct group *const *groups, size_t count)
{
    const struct timespec away = {.tv_nsec = AWAY_PAUSE_NS};
    bool was_full = false;
    for (size_t done = 0; done < count;) {
        const size_t most = was_full ? 1 : count;
        switch (write_tables(follower, &groups[done], most)) {
        case STORAGE_OK:
            done += most;
            break;
        case STORAGE_FULL:
            was_full = true;
            meet_full(follower);
            break;
        case STORAGE_AWAY:
            (void)nanosleep(&away, NULL);
            break;
        }
    }
    review_reserve(follower, was_full);
    bool has_mark = false;
    for (size_t i = 0; i < count; i++) {
        has_mark = has_mark || groups[i]->has_mark;
    }
    if (has_mark || clock_monotonic_ns() >= follower->sync_due_ns) {
        sync_tables(follower); /* a snapshot must not be ahead of the tables after a power cut */
    }
    for (size_t i = 0; i < count; i++) {
        request_snapshot(follower, groups[i]);
    }
}

static void give_back(struct follower *follower, struct group *group)
{
    struct queue *to = follower->config.applied;
    if (!group->is_direct) {
        group_clear(group);
        to = follower->config.returned;
    }
    const bool pushed = queue_push(to, &group->link);
    assert(pushed); /* never closed, and as large as there are groups */
    (void)pushed;
}

/* Takes groups that wait. A group without commands has nothing for the tables. */
static size_t take(struct follower *follower, struct queue_link *first,
                   struct group *ret_groups[GROUPS_AT_ONCE])
{
    size_t count = 0;
    for (struct queue_link *link = first; link != NULL;
         link = count < GROUPS_AT_ONCE ? queue_pop(follower->config.groups, 0) : NULL) {
        struct group *group = QUEUE_ELEMENT(link, struct group, link);
        if (group->command_count > 0) {
            ret_groups[count++] = group;
        } else {
            give_back(follower, group);
        }
    }
    return count;
}

static void *run(void *argument)
{
    struct follower *follower = argument;
    process_name_thread("ledger");
    while (!queue_finished(follower->config.groups)) {
        struct group *groups[GROUPS_AT_ONCE];
        struct queue_link *link = queue_pop(follower->config.groups, IDLE_NS);
        if (link == NULL) {
            idle(follower);
            continue;
        }
        const size_t count = take(follower, link, groups);
        /* A direct group is the last, because the committer waits for it. */
        const bool has_direct = count > 0 && groups[count - 1]->is_direct;
        if (count > has_direct) {
            apply(follower, groups, count - has_direct);
        }
        if (has_direct) {
            apply(follower, &groups[count - 1], 1);
        }
        for (size_t i = 0; i < count; i++) {
            give_back(follower, groups[i]);
        }
        queue_wake(follower->config.core);
    }
    sync_tables(follower);
    return NULL;
}

struct follower *follower_start(const struct follower_config *config)
{
    struct follower *follower = calloc(1, sizeof *follower);
    if (follower == NULL) {
        fatal("the follower cannot start: out of memory");
    }
    follower->config = *config;
    if (pthread_create(&follower->thread, NULL, run, follower) != 0) {
        fatal("the follower cannot start: no thread");
    }
    return follower;
}

void follower_stop(struct follower **self)
{
    struct follower *follower = *self;
    if (follower != NULL) {
        queue_close(follower->config.groups);
        pthread_join(follower->thread, NULL);
        free(follower);
        *self = NULL;
    }
}
