/* broker/core/committer.h - the thread that makes groups durable and only then lets their effects
 * go (P6, P7).
 *
 * Per group: store_commit (journal entry, ledger records, checkpoint, HEAD), then the rights to
 * read blobs, the accounts, the answers and pushes, then the group goes back to the core. What was
 * refused goes into the audit log with the next group, or within a second. On a full disk the
 * reserve is given up; without one it is waited out, one try a second. Nobody else moves `room`. */
#ifndef BOURSE_BROKER_CORE_COMMITTER_H
#define BOURSE_BROKER_CORE_COMMITTER_H

#include "broker/blob/outputs.h"
#include "broker/core/logtime.h"
#include "broker/core/queue.h"
#include "broker/storage/room.h"
#include "broker/storage/storage.h"

struct committer;

struct committer_config {
    struct storage *store;   /* the committer's alone while it runs */
    struct queue *groups;    /* from the core */
    struct queue *returned;  /* empty groups, back to it */
    struct queue *core;      /* woken when a group went back */
    struct queue *releases;  /* to the gateway */
    struct queue *blobs;     /* outgoing: serve, unserve, account */
    struct outputs *outputs; /* told of leases that begin and end; NULL: nobody looks */
    struct queue *names;     /* outgoing: accounts, to the reader */
    struct queue *snapshots; /* struct snapshot_request */
    struct room *room;
    struct logtime *clock;
};

struct committer *
committer_start(const struct committer_config *config); /* the process ends when that fails */
/* Closes `groups`, commits what is in it, ends the thread. */
void committer_stop(struct committer **self);

#endif
