/* broker/blob/port/blobs.h is the thread on the blob port. The thread decides who may store and
 * read which bytes.
 *
 * Accounts read the blobs that they own. A provider that serves a job reads the blobs that the
 * job's manifest names, if the job's owner owns them. The provider stores outputs for that owner. A
 * put is acknowledged only when its bytes are durable; puts that arrive together share one commit.
 * Large blobs travel in chunks, so that none delays others. The blob port has no sessions: every
 * message stands alone, under the connection's key.
 *
 * Every message is charged to its account in steps: its bytes, its look-ups, what the disk has to
 * make durable. The account that was charged least is answered next (broker/blob/port/turns.h). A
 * long request is answered in slices. */
#ifndef BOURSE_BROKER_BLOB_PORT_BLOBS_H
#define BOURSE_BROKER_BLOB_PORT_BLOBS_H

#include "broker/blob/blob_store.h"
#include "broker/blob/outputs.h"
#include "broker/blob/port/blob_access.h"
#include "broker/core/logtime.h"
#include "broker/core/queue.h"
#include "broker/core/refusals.h"
#include "broker/gateway/directory.h"
#include "broker/storage/disk_reserve.h"
#include "runtime/router.h"

enum {
    BLOBS_RATE = 5000, /* requests a second of one account */
    /* Each byte costs an account so much of its time, since reading and sealing are work for the
     * broker: 238 MiB a second. */
    BLOBS_READ_NS = 4,
    /* A small blob costs an account so much, as its pages lie all over blobs.db: 4,000 a second.
     * An upload with another hash than it says costs more: no client of good will sends one. */
    BLOBS_ROW_NS = 250000,
    BLOBS_WRONG_NS = 2000000,
    /* The account that costs most leaves others so much time for each byte: 128 MiB a second. */
    BLOBS_READ_SHARED_NS = 7,
    BLOBS_RECEIVE_QUEUE = 4, /* messages of 5 MiB of one connection: then its sender waits */
    /* Chunks that wait to leave for one key, whatever number of connections it has: room for the 12
     * requests of four connections. Beyond, BlobGet is BUSY. */
    BLOBS_SEND_KEY_BYTES = 4 * 12 * (4 << 20),
    BLOBS_NAMES_MAX = 4096,      /* hashes that results named, before they are written down */
    BLOBS_DROPPED_AT_ONCE = 256, /* blobs of a lease that has ended */
    /* The most accounts with a waiting client that still has the files of its job, and the most
     * providers. */
    BLOBS_KEEPERS_MAX = 256,
    /* A client counts among them for so long after it last asked which files are lost. */
    BLOBS_KEEPER_S = 6,
    /* A client has so long to send a lost blob again, before the blob counts as not found. */
    BLOBS_KEEPER_TIME_S = 8,
    BLOBS_IO_THREADS = 1 << 1, /* the second of the context's */

    /* Steps, as in broker/gateway/budget.h: about 8 ns of the thread. */
    BLOBS_MESSAGE_STEPS = 1000, /* of any message */
    BLOBS_BYTES_PER_STEP = 4,   /* of data that comes or goes: hashed, copied, sealed */
    BLOBS_LOOK_STEPS = 500,     /* of a look-up in the database */
    BLOBS_SLICE_HASHES = 128,   /* of a BlobHave, before others have their turn */
    BLOBS_BATCH_STEPS = 500000, /* before a commit, while others ask */
    BLOBS_DEAR_MS = 3,          /* a batch that took so long leaves others as much after it, */
    BLOBS_DEAR_MOST_MS = 50,    /* but no more */
    BLOBS_OTHERS_MS = 2000,     /* others ask, if they did so just now */
    BLOBS_NEAR_MS = 250,        /* A transfer's next request comes within this time. */
    /* Bytes of one account that wait for their turn while others ask: then nothing more is read
     * from its connections for a while, so that what others send comes before. */
    BLOBS_WAITING_SHARED_BYTES = 4 << 20,
    BLOBS_PAUSED_MAX = 256, /* connections at a time */
    BLOBS_PAUSED_MS = 1000,
    BLOBS_RESUME_MS = 4, /* between two of them that go on */
    /* A BlobGet stays behind, for BLOBS_BEHIND_MS at most, while more than this waits to leave for
     * its key. While others ask, an answer to them shall not leave after many. While nobody else
     * asks, a key has what the 12 requests of four connections ask for, so that one slow link of an
     * owner does not slow the owner's others. */
    BLOBS_SEND_SHARED_BYTES = 2 << 20,
    BLOBS_SEND_ALONE_BYTES = 4 * 12 * (1 << 20),
    BLOBS_BEHIND_MS = 100,

    /* Answers that wait for other brokers. One more put is BUSY. */
    BLOBS_PROMISES_MAX = 4096,
    /* A put is refused after it waited so long. A client gives a silent connection up after 5 s. */
    BLOBS_PROMISE_MS = 3000,
    BLOBS_FEED_BYTES = 1 << 20, /* data of small blobs in one BlobChanges */
    /* A new leader says for so long that it does not know, where it would say that a blob is not
     * there: brokers that followed the former leader may bring what it lacks. */
    BLOBS_YOUNG_MS = 5000,
};
#define BLOBS_THREAD "blobs"
#define BLOBS_IO_THREAD "ZMQbg/IO/1" /* as libzmq calls it */

struct blobs;

struct blobs_config {
    struct router *router; /* the thread's alone while it runs */
    /* Peers bring tickets to this port (broker/blob/port/blob_ticket.h). Borrowed; -1: none. */
    int file_port;
    struct blob_store *store; /* taken over, as are the next two */
    struct directory *directory;
    struct blob_access *access;
    struct outputs *outputs;            /* shared; told of blobs that cannot be given out */
    struct queue *notes;                /* outgoing: serve, unserve, account */
    const struct disk_reserve *reserve; /* moved by the committer */
    struct logtime *clock;              /* shared */
    struct refusals *refusals;          /* what members are refused is noted there */
    int64_t quota_bytes, size_bytes;    /* as the store has them: for refusals */
    /* The market's own connection key: whoever has it is another broker. NULL: no cluster. */
    const struct key32 *self;
    unsigned copies;      /* brokers that have a blob before its put is answered */
    const char *database; /* the ledger, which says what results have named; borrowed */
};

struct blobs *blobs_start(const struct blobs_config *config); /* the process ends when that fails */
/* Closes `notes`, ends the thread. */
void blobs_stop(struct blobs **self);

#endif
