/* broker/answer/reader.h - the thread that answers from committed data: statements, outcomes,
 * receipts, the checkpoint; and what work was measured to take, which it works out itself while it
 * has nothing else to do.
 *
 * Over a connection of its own, so a long read delays no commit. The core has already seen to it
 * that the asker may. That connection sees rows between their commit and HEAD; no answer leaves
 * before HEAD holds all that it can have been made from. */
#ifndef BOURSE_BROKER_ANSWER_READER_H
#define BOURSE_BROKER_ANSWER_READER_H

#include "base/id.h"
#include "broker/core/messages.h"
#include "broker/core/watermark.h"
#include "broker/gateway/budget.h"
#include "broker/gateway/directory.h"

struct reader_thread;

struct reader_config {
    char database[4096];
    char history[4096]; /* measuring.h's file, */
    char blobs[4096];   /* and the blobs' folder */
    struct id128 cluster;
    struct directory *directory; /* taken over: names of counterparties */
    struct queue *inbound;       /* requests */
    struct queue *names;         /* outgoing: accounts, from the committer */
    struct queue *releases;
    struct watermark *durable; /* newest entry that HEAD holds */
    struct budget *budget;     /* shared with the gateway and the core; NULL: none */
};

struct reader_thread *
reader_start(const struct reader_config *config); /* the process ends when that fails */
/* Closes `inbound`, answers what is in it, ends the thread. */
void reader_stop(struct reader_thread **self);

#endif
