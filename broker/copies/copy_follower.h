/* A copy follower is the thread of a broker that follows, which copies the blobs of the leader.
 *
 * It asks the leader what changed, over the leader's blob port and under the market's own key.
 * It fetches the bytes that it lacks, makes all of it durable in its own blobs.db, and only then
 * says so with its next question. It sends the leader blobs that the leader has lost, and asks for
 * those that it lost itself. The thread owns the store while it runs. */
#ifndef BOURSE_BROKER_COPIES_COPY_FOLLOWER_H
#define BOURSE_BROKER_COPIES_COPY_FOLLOWER_H

#include "base/problem.h"
#include "protocol/identity.h"

#include <stdint.h>

struct copy_follower_config {
    void *context;                   /* of zmq, borrowed */
    const struct identity *identity; /* the market's connection key, borrowed */
    const char *folder;              /* the blobs, borrowed */
    int64_t quota_bytes, size_bytes; /* as the broker's configuration has them */
    const char *name;                /* of this broker, for the leader's log; borrowed */
};

struct copy_follower;

/* Opens the store and starts the thread. Returns NULL with a problem. */
struct copy_follower *copy_follower_start(const struct copy_follower_config *config,
                                          struct problem *ret_problem);
/* Sets the endpoint of the leader's blob port; "": nobody leads, or it is not known. */
void copy_follower_point(struct copy_follower *follower, const char *endpoint);
/* Ends the thread and closes the store. */
void copy_follower_stop(struct copy_follower **self);

#endif
