/* The committer is the thread that makes groups durable, and only then releases their effects (P6,
 * P7).
 *
 * For each group the committer calls storage_commit (journal entry, ledger records, checkpoint,
 * HEAD). Then rights to read blobs, accounts, answers and pushes go out, and the group returns to
 * the core. Refusals enter the audit log with the next group, or within a second. The committer
 * gives up the disk reserve when the disk is full. If there is no reserve, the committer tries once
 * a second until there is room. No other thread changes the state of `reserve`. */
#ifndef BOURSE_BROKER_CORE_COMMITTER_H
#define BOURSE_BROKER_CORE_COMMITTER_H

#include "broker/blob/outputs.h"
#include "broker/core/logtime.h"
#include "broker/core/queue.h"
#include "broker/storage/disk_reserve.h"
#include "broker/storage/storage.h"

struct committer;

struct committer_config {
    struct storage *store;   /* no other thread uses the store while the committer runs */
    struct queue *groups;    /* from the core */
    struct queue *returned;  /* empty groups, back to the core */
    struct queue *core;      /* woken when a group went back to it */
    struct queue *releases;  /* to the gateway */
    struct queue *blobs;     /* outgoing: serve, unserve, account */
    struct outputs *outputs; /* told of leases that begin and end; NULL: nothing checks outputs */
    struct queue *names;     /* outgoing: accounts, to the reader */
    struct queue *snapshots; /* struct snapshot_request */
    struct disk_reserve *reserve;
    struct logtime *clock;
};

/* Starts the thread. The process ends when memory or threads are short. */
struct committer *committer_start(const struct committer_config *config);
/* Closes `groups`, commits the groups left in it, and ends the thread. */
void committer_stop(struct committer **self);

#endif
