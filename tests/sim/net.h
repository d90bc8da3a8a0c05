/* tests/sim/net.h - the network between peers and the broker that leads: connections, and messages
 * on their way, which it loses, repeats, delays, reorders and cuts as the profile says. Also the
 * broker's end of it, behind runtime/router.h, for the production gateway.
 *
 * As on any stream, what is lost on the way to the broker takes its connection with it: nothing
 * that comes later on it arrives. On the way back a message may be missing in the middle, and its
 * session must notice. A connection belongs to one life of one broker and ends with it; the peer
 * notices nothing, and its next message opens another one, under another route, as with ZeroMQ. */
#ifndef BOURSE_TESTS_SIM_NET_H
#define BOURSE_TESTS_SIM_NET_H

#include "base/id.h"
#include "tests/sim/world.h"

struct net_faults { /* chances in 10,000 messages */
    uint32_t lost, repeated, reordered, delayed, unsent;
    uint32_t garbled;                      /* towards the broker: one bit arrives as another */
    int64_t delay_least_ns, delay_most_ns; /* of every message */
    int64_t late_most_ns;                  /* of a delayed one */
};

struct peer;
typedef void peer_deliver(struct peer *peer, const uint8_t *bytes, size_t length);

struct peer {
    struct process *process; /* whose messages these are */
    struct key32 transport;  /* X25519: what the handshake proves */
    peer_deliver *deliver;
    void *owner;
    bool is_hostile; /* what it sends is not what an honest session made */
    /* the network's */
    uint32_t connection;                        /* 0: none */
    int64_t cut_to_until_ns, cut_from_until_ns; /* towards the broker, and back */
    bool cut_holds;   /* messages wait for the end of the cut; else they are lost */
    uint64_t session; /* as its last message said */
};

struct broker;

void net_start(const struct net_faults *faults);
void net_set_faults(const struct net_faults *faults);
/* The broker that takes connections; NULL: none does. */
void net_set_leader(struct broker *broker);
void net_broker_ended(const struct broker *broker);
/* Nobody leads, or whoever does is stopped: what a follower sees as silence of the log. */
bool net_leader_is_gone(void);

/* A new connection; what is still on its way on the former one is gone, nearly always. */
void net_connect(struct peer *peer);
/* False: not connected, or full; nothing was taken. */
bool net_send(struct peer *peer, const void *bytes, size_t length);
void net_cut(struct peer *peer, bool to, bool from, bool holds, int64_t duration_ns);

/* Something that this peer sent before comes again, on its present connection and in its present
 * session: the worst that a resend can be. */
void net_replay(struct peer *peer);

/* Something that an honest peer sent before, for those who replay; NULL: nothing yet. */
const uint8_t *net_captured(size_t *ret_length);

#endif
