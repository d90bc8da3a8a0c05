#include "broker/core/committer.h"

#include "broker/core/privileged_acts.h"
#include "broker/core/release.h"
#include "broker/fatal.h"
#include "runtime/process.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct committer {
    struct committer_config config;
    pthread_t thread;
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

static void commit(struct committer *committer, struct group *group)
{
    const struct timespec second = {.tv_sec = 1};
    bool was_full = false;
    while (storage_append(committer->config.store, group) == STORAGE_FULL) {
        was_full = true;
        if (!disk_reserve_met_full(committer->config.reserve)) {
            /* Time for an operator to free space; a signal that ends the sleep early only causes an
             * early try. */
            (void)nanosleep(&second, NULL);
        }
    }
    if (was_full) {
        disk_reserve_review(committer->config.reserve);
    }
}

static void push_group(struct queue *queue, struct group *group)
{
    const bool pushed = queue_push(queue, &group->link);
    assert(pushed); /* as large as there are groups, and closed after the committer has ended */
    (void)pushed;
}

/* One transaction makes a privileged command and its record in the audit log durable (P26). So such
 * a group goes to the tables at once, after those that wait for them. */
static void commit_directly(struct committer *committer, struct group *group)
{
    group->is_direct = true;
    push_group(committer->config.follower, group);
    struct queue_link *link = NULL;
    while (link == NULL) {
        link = queue_pop(committer->config.applied, QUEUE_FOREVER);
    }
    assert(link == &group->link);
}

static void pass(struct committer *committer, struct group *group)
{
    if (group->command_count > 0 &&
        (privileged_acts_in(group) || storage_has_notes(committer->config.store))) {
        commit_directly(committer, group);
        release_group(committer, group);
        group_clear(group);
        push_group(committer->config.returned, group);
        return;
    }
    if (group->command_count > 0) {
        commit(committer, group);
    }
    release_group(committer, group);
    push_group(committer->config.follower, group);
}

static void *run(void *argument)
{
    struct committer *committer = argument;
    process_name_thread("committer");
    while (!queue_finished(committer->config.groups)) {
        struct queue_link *link = queue_pop(committer->config.groups, QUEUE_FOREVER);
        if (link != NULL) {
            pass(committer, QUEUE_ELEMENT(link, struct group, link));
            atomic_fetch_sub(committer->config.committing, 1);
            queue_wake(committer->config.core);
        }
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
