/* The committer is the thread that makes groups durable, and only then releases their effects (P6,
 * P7).
 *
 * For each group the committer calls storage_append (journal entry, HEAD). Then rights to read
 * blobs, accounts, answers and pushes go out, and the group goes on to the follower, which writes
 * the tables. A group with a privileged act goes to the tables first, without the tail, and its
 * answers go out after that. The committer gives up the disk reserve when the disk is full. If
 * there is no reserve, the committer tries once a second until there is room. */
#ifndef BOURSE_BROKER_CORE_COMMITTER_H
#define BOURSE_BROKER_CORE_COMMITTER_H

#include "broker/blob/outputs.h"
#include "broker/core/queue.h"
#include "broker/storage/disk_reserve.h"
#include "broker/storage/storage.h"

#include <stdatomic.h>

struct committer;

struct committer_config {
    struct storage *store;   /* shared with the follower */
    struct queue *groups;    /* from the core */
    struct queue *follower;  /* released groups, to the tables */
    struct queue *applied;   /* direct groups, back from the follower */
    struct queue *returned;  /* direct groups, back to the core, empty */
    struct queue *core;      /* woken when the committer is idle */
    atomic_uint *committing; /* groups that the core handed over and nobody released yet */
    struct queue *releases;  /* to the gateway */
    struct queue *blobs;     /* outgoing: serve, unserve, account */
    struct outputs *outputs; /* told of leases that begin and end; NULL: nothing checks outputs */
    struct queue *names;     /* outgoing: accounts, to the reader */
    struct disk_reserve *reserve;
};

/* Starts the thread. The process ends when memory or threads are short. */
struct committer *committer_start(const struct committer_config *config);
/* Closes `groups`, commits the groups left in it, and ends the thread. */
void committer_stop(struct committer **self);

#endif
