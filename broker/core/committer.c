#include "broker/core/committer.h"

#include "base/checked.h"
#include "broker/core/release.h"
#include "broker/fatal.h"
#include "broker/storage/snapshot/snapshots.h"
#include "runtime/process.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* The longest time until a refusal is in the audit log, and until free disk space is noticed. */
#define IDLE_NS (1 * NS_PER_S)
/* The time between two tries of an entry that etcd does not take. */
#define AWAY_PAUSE_NS (NS_PER_S / 5)

struct committer {
    struct committer_config config;
    pthread_t thread;
    bool is_scarce; /* space on the disk is scarce */
};

static void send(struct queue *queue, struct outgoing *outgoing)
{
    if (!queue_push(queue, &outgoing->link)) {
        outgoing_destroy(&outgoing); /* the receiver has ended: the broker is stopping */
    }
}

static struct outgoing *copy_account(const struct outgoing *outgoing)
{
    struct outgoing *copy = outgoing_account(&outgoing->opened);
    if (copy == NULL) {
        fatal("out of memory");
    }
    return copy;
}

static void route(void *context, struct outgoing *outgoing)
{
    const struct committer *committer = context;
    switch (outgoing->kind) {
    case OUTGOING_ACCOUNT:
        send(committer->config.blobs, copy_account(outgoing));
        send(committer->config.names, copy_account(outgoing));
        send(committer->config.releases, outgoing);
        return;
    /* The right to read goes out before the agent hears of the lease. */
    case OUTGOING_SERVE:
        if (committer->config.outputs != NULL &&
            !outputs_serve(committer->config.outputs,
                           &(struct outputs_lease){.lease = outgoing->lease,
                                                   .holder = {outgoing->account, outgoing->job},
                                                   .owner = outgoing->owner_number,
                                                   .manifest = outgoing->manifest})) {
            fatal("out of memory");
        }
        send(committer->config.blobs, outgoing);
        return;
    case OUTGOING_UNSERVE:
        if (committer->config.outputs != NULL) {
            outputs_end(committer->config.outputs, outgoing->lease);
        }
        send(committer->config.blobs, outgoing);
        return;
    case OUTGOING_GIVEN:
        if (committer->config.outputs != NULL &&
            !outputs_give(committer->config.outputs, outgoing->lease, (uint32_t)outgoing->index,
                          (const struct hash32 *)outgoing->body,
                          outgoing->length / sizeof(struct hash32))) {
            fatal("out of memory");
        }
        send(committer->config.blobs, outgoing);
        return;
    case OUTGOING_NAMED:
        send(committer->config.blobs, outgoing);
        return;
    case OUTGOING_REPLY:
    case OUTGOING_PUSH:
    case OUTGOING_EVENT:
    case OUTGOING_INDEX:
    case OUTGOING_DOUBT:
    case OUTGOING_FORGET:
        send(committer->config.releases, outgoing);
        return;
    }
}

static void release_group(struct committer *committer, struct group *group)
{
    if (!release_effects(&group->effects, route, committer)) {
        fatal("out of memory");
    }
    for (uint32_t i = 0; i < group->reply_count; i++) {
        route(committer, group->replies[i]);
    }
    group->reply_count = 0; /* the gateway owns them now */
    if (group->command_count > 0) {
        struct outgoing *index = outgoing_create(OUTGOING_INDEX);
        if (index == NULL) {
            fatal("out of memory");
        }
        index->index = group->first_command + group->command_count - 1;
        index->log_time_ns = group->commands[group->command_count - 1].entry.log_time_ns;
        route(committer, index);
    }
}

static void request_snapshot(struct committer *committer, const struct group *group)
{
    struct snapshot_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        return; /* the next mark makes the next request */
    }
    const struct journal_last *last = &committer->config.store->last;
    request->mark = (struct snapshot_mark){.command = last->next_command - 1,
                                           .entry = last->index,
                                           .chain = last->chain,
                                           .state = group->mark};
    if (!queue_try_push(committer->config.snapshots, &request->link)) {
        free(request);
    }
}

/* SQLite's log is copied after every commit while the disk is full. The next commit then overwrites
 * the log and needs next to no space. */
static void review_reserve(struct committer *committer)
{
    disk_reserve_review(committer->config.reserve);
    const bool is_scarce = disk_reserve_state(committer->config.reserve) != DISK_RESERVE_UNUSED;
    if (is_scarce != committer->is_scarce) {
        committer->is_scarce = is_scarce;
        storage_save_space(committer->config.store, is_scarce);
    }
}

static void commit(struct committer *committer, const struct group *group)
{
    /* Time for an operator to free space; a signal that ends the sleep early only causes an early
     * try. An etcd that does not answer has made the committer wait already, one that is full has
     * not. */
    const struct timespec second = {.tv_sec = 1};
    for (;;) {
        switch (storage_commit(committer->config.store, group)) {
        case STORAGE_OK:
            return;
        case STORAGE_FULL:
            if (!disk_reserve_met_full(committer->config.reserve)) {
                (void)nanosleep(&second, NULL);
            }
            break;
        case STORAGE_AWAY:
            (void)nanosleep(&(struct timespec){.tv_nsec = AWAY_PAUSE_NS}, NULL);
            break;
        }
    }
}

/* Writes waiting acts to the audit log when there is nothing to commit. While space is scarce, the
 * rest of the disk stays for cancels. */
static void idle(struct committer *committer)
{
    if (disk_reserve_state(committer->config.reserve) != DISK_RESERVE_UNUSED) {
        review_reserve(committer);
    } else {
        /* A full disk leaves the acts waiting: the next second tries again. */
        (void)storage_write_acts(committer->config.store, logtime_now(committer->config.clock),
                                 false);
    }
}

static void *run(void *argument)
{
    struct committer *committer = argument;
    process_name_thread("committer");
    while (!queue_finished(committer->config.groups)) {
        struct queue_link *link = queue_pop(committer->config.groups, IDLE_NS);
        if (link == NULL) {
            idle(committer);
            continue;
        }
        struct group *group = QUEUE_ELEMENT(link, struct group, link);
        if (group->command_count > 0) {
            commit(committer, group);
            review_reserve(committer);
            if (group->has_mark &&
                disk_reserve_state(committer->config.reserve) == DISK_RESERVE_UNUSED) {
                request_snapshot(committer, group);
            }
        }
        release_group(committer, group);
        group_clear(group);
        bool pushed = queue_push(committer->config.returned, &group->link);
        assert(pushed); /* never closed, and as large as there are groups */
        queue_wake(committer->config.core);
    }
    return NULL;
}

struct committer *committer_start(const struct committer_config *config)
{
    struct committer *committer = calloc(1, sizeof *committer);
    if (committer == NULL) {
        fatal("the committer cannot start: out of memory");
    }
    committer->config = *config;
    if (pthread_create(&committer->thread, NULL, run, committer) != 0) {
        fatal("the committer cannot start: no thread");
    }
    return committer;
}

void committer_stop(struct committer **self)
{
    struct committer *committer = *self;
    if (committer != NULL) {
        queue_close(committer->config.groups);
        pthread_join(committer->thread, NULL);
        free(committer);
        *self = NULL;
    }
}
