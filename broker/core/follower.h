/* The follower is the thread that writes committed groups to the ledger's tables.
 *
 * The groups' entries are durable in the journal, and their effects have left. The follower takes
 * groups that wait, writes them in one transaction, and gives them back to the core, empty. Once a
 * second, or more often, it waits until the disk has what was written. Snapshots are asked for once
 * the disk has the marked command in the tables. Refusals enter the audit log
 * with the next groups, or within a second. When the disk is full, the follower gives up the disk
 * reserve. If there is none, it tries once a second until there is room, and the broker waits. */
#ifndef BOURSE_BROKER_CORE_FOLLOWER_H
#define BOURSE_BROKER_CORE_FOLLOWER_H

#include "broker/core/logtime.h"
#include "broker/core/queue.h"
#include "broker/storage/disk_reserve.h"
#include "broker/storage/storage.h"

struct follower;

struct follower_config {
    struct storage *store;   /* tables and audit log are the follower's while it runs */
    struct queue *groups;    /* from the committer, released */
    struct queue *applied;   /* direct groups, back to the committer */
    struct queue *returned;  /* empty groups, back to the core */
    struct queue *core;      /* woken when groups went back to it */
    struct queue *snapshots; /* struct snapshot_request */
    struct disk_reserve *reserve;
    struct logtime *clock;
};

/* Starts the thread. The process ends when memory or threads are short. */
struct follower *follower_start(const struct follower_config *config);
/* Closes `groups`, applies the groups left in it, and ends the thread. */
void follower_stop(struct follower **self);

#endif
