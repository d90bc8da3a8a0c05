/* tests/sim/net.h - the network between peers and brokers: connections, and messages on their way,
 * which it loses, repeats, delays, reorders and cuts as the profile says. Also the broker's end of
 * it, behind runtime/router.h, for the production gateway.
 *
 * A peer that knows no address is connected to the broker that leads. Otherwise its session names
 * the address, and the broker behind it may lead, follow, or be gone.
 *
 * As on any stream, what is lost on the way to the broker takes its connection with it: nothing
 * that comes later on it arrives. On the way back a message may be missing in the middle, and its
 * session must notice. A connection belongs to one life of one broker and ends with it; the peer
 * notices nothing, and its next message opens another one, under another route, as with ZeroMQ. */
#ifndef BOURSE_TESTS_SIM_NET_H
#define BOURSE_TESTS_SIM_NET_H

#include "base/id.h"
#include "protocol/route/contacts.h"
#include "tests/sim/world.h"

struct net_faults { /* chances in 10,000 messages */
    uint32_t lost, repeated, reordered, delayed, unsent;
    uint32_t garbled;                      /* towards the broker: one bit arrives as another */
    int64_t delay_least_ns, delay_most_ns; /* of every message */
    int64_t late_most_ns;                  /* of a delayed one */
};

enum { NET_HOSTS_MAX = 3 };

/* A host is a process with a port that peers connect to. */
struct host;
typedef void host_hears(struct host *host, uint32_t route, const struct key32 *client,
                        const uint8_t *bytes, size_t length);
struct host {
    struct process *process;
    host_hears *hears;
    unsigned number; /* its links to peers are cut by this number */
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
    bool cut_holds; /* messages wait for the end of the cut; else they are lost */
    /* The same for the link to one host alone. */
    int64_t link_to_until_ns[NET_HOSTS_MAX], link_from_until_ns[NET_HOSTS_MAX];
    struct host *target; /* whom its session wants to reach; NULL: whoever leads */
    uint64_t session;    /* as its last message said */
};

void net_start(const struct net_faults *faults);
void net_set_faults(const struct net_faults *faults);
/* The broker that takes connections of peers without an address; NULL: none does. */
void net_set_leader(struct host *host);
void net_host_ended(const struct host *host);
/* Gives a host the next address. */
void net_add_host(struct host *host);
/* The addresses that every session is told; none in a world with one address. */
size_t net_addresses(const struct contact **ret_addresses);
/* The host behind an address; NULL for none, so that whoever leads is meant. */
struct host *net_host_at(const struct contact *address);
/* Nobody leads, or whoever does is stopped: what a follower sees as silence of the log. */
bool net_leader_is_gone(void);

/* A new connection; what is still on its way on the former one is gone, nearly always. */
void net_connect(struct peer *peer);
/* False: not connected, or full; nothing was taken. */
bool net_send(struct peer *peer, const void *bytes, size_t length);
void net_cut(struct peer *peer, bool to, bool from, bool holds, int64_t duration_ns);
/* Cuts the link of one peer to one host. */
void net_cut_link(struct peer *peer, const struct host *host, bool to, bool from,
                  int64_t duration_ns);

/* Something that this peer sent before comes again, on its present connection and in its present
 * session: the worst that a resend can be. */
void net_replay(struct peer *peer);

/* Something that an honest peer sent before, for those who replay; NULL: nothing yet. */
const uint8_t *net_captured(size_t *ret_length);

#endif
