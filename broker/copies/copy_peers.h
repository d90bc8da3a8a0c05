/* Copy peers are the followers that copy a leader's blobs, and what each of them has.
 *
 * A follower says with each question which versions it has on its disk. A promise to a client, that
 * its blob is stored, is kept back until enough followers have its version. The code is pure. */
#ifndef BOURSE_BROKER_COPIES_COPY_PEERS_H
#define BOURSE_BROKER_COPIES_COPY_PEERS_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COPY_PEERS_MAX = 9, /* the one that was silent longest makes room */
    COPY_PEER_NAME_SIZE = 65,
    COPY_PEER_LACKS_MAX = 256, /* wanted blobs that a follower said it lacks; the oldest goes */
    COPY_SILENT_MS = 5000,     /* a follower that says nothing for so long counts as away */
};

struct copy_peer {
    char name[COPY_PEER_NAME_SIZE];
    uint64_t position; /* it has every version up to here */
    uint64_t from, to; /* and every version above `from`, up to `to` */
    int64_t heard_ns;
    struct hash32 lacks[COPY_PEER_LACKS_MAX];
    size_t lacks_count, lacks_next;
};

struct copy_peers {
    struct copy_peer list[COPY_PEERS_MAX];
    size_t count;
};

/* Notes that a follower spoke, and returns its place. *ret_is_new: it was away, or is unknown. */
size_t copy_peers_hear(struct copy_peers *peers, const char *name, uint64_t position, uint64_t from,
                       uint64_t to, int64_t now_ns, bool *ret_is_new);
/* Notes that the follower does not have a blob that the leader wants. */
void copy_peers_lack(struct copy_peers *peers, size_t place, const struct hash32 *hash);
/* Returns true when at least `needed` followers have the version. */
bool copy_peers_have(const struct copy_peers *peers, uint64_t version, unsigned needed);
/* Returns true when a follower that spoke lately has not said that it lacks the blob. */
bool copy_peers_may_have(const struct copy_peers *peers, const struct hash32 *hash, int64_t now_ns);
/* Writes which followers do not have the version, and for how long each was silent, for people. */
void copy_peers_text(const struct copy_peers *peers, uint64_t version, int64_t now_ns,
                     char *ret_text, size_t capacity);

#endif
