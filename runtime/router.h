/* runtime/router.h - the broker's side of a port: a CURVE ROUTER bound to ipc and tcp endpoints.
 *
 * A message is one part. Each comes with the client's X25519 key, proved by the handshake, and with
 * the route that an answer takes: routes end with their connection, keys do not, so whoever keeps
 * state keeps it by key. Clients may not choose their routing id, and messages of several parts are
 * dropped; both are counted. zap_start must have run. Used by one thread.
 *
 * Memory is bounded by bytes, not by messages. What is sent and has not left yet is counted for all
 * clients together and for each client key, whatever number of connections it has: beyond either a
 * send is FULL. A key of which nothing is waiting may always be sent one message, so that nobody is
 * shut out by others. What is received waits in at most `receive_queue` messages of a connection;
 * then its sender has to wait. */
#ifndef BOURSE_RUNTIME_ROUTER_H
#define BOURSE_RUNTIME_ROUTER_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct router;

enum {
    ROUTE_BYTES = 5,
    ROUTER_ENDPOINTS_MAX = 8,
    ROUTER_UIDS_MAX = 8,
    ROUTER_RECEIVE_QUEUE = 64,
    ROUTER_SEND_BYTES = 1 << 30,
    ROUTER_SEND_KEY_BYTES = 64 << 20,
};

struct route { /* one connection, as libzmq numbers it; plain bytes, fit for a hash table */
    uint8_t bytes[ROUTE_BYTES];
};

struct router_config {
    const struct identity *identity; /* the broker's transport key; borrowed */
    size_t max_message_bytes;
    uint64_t io_threads; /* bits of those of the context that serve the port; 0: any */
    /* Messages of one connection that wait to be received; 0: ROUTER_RECEIVE_QUEUE. */
    unsigned receive_queue;
    size_t send_bytes;     /* that wait to leave, in all; 0: ROUTER_SEND_BYTES */
    size_t send_key_bytes; /* of these, to one client key; 0: ROUTER_SEND_KEY_BYTES */
    const uid_t *uids;     /* ipc peers allowed, by SO_PEERCRED; none: whoever reaches the socket */
    size_t uid_count;
};

struct router_message {
    struct route route;
    struct key32 client;  /* X25519 */
    const uint8_t *bytes; /* valid until the next receive */
    size_t length;
};

struct router_counts {
    uint64_t dropped_parts;  /* messages of the wrong number of parts */
    uint64_t dropped_routes; /* from peers with a routing id of their own making */
};

enum router_sent {
    ROUTER_SENT,
    ROUTER_GONE, /* no such connection any more */
    ROUTER_FULL, /* too much waits for that client: it does not read */
    ROUTER_BROKEN,
};

bool router_open(void *context, const struct router_config *config, struct router **ret_router,
                 struct problem *ret_problem);
/* "ipc://PATH", "tcp://ADDRESS:PORT" or "tcp://ADDRESS:*". ret_endpoint (may be NULL, capacity
 * bytes) gets the endpoint as bound, with its port. An ipc socket is made 0600, or 0660 with
 * `group`. */
bool router_bind(struct router *router, const char *endpoint, bool group, char *ret_endpoint,
                 size_t capacity, struct problem *ret_problem);
/* Unbinds, gives what is queued half a second to leave, removes ipc sockets. */
void router_close(struct router **self);

/* 1: a message; 0: none within timeout_ms (0: do not wait, -1: for ever); -1: broken (the context
 * ends). */
int router_receive(struct router *router, int timeout_ms, struct router_message *ret_message);
/* Keeps the message received last beyond the next receive: the caller's, who frees it. It points to
 * its bytes anew. NULL: out of memory, and the message is as it was. */
struct router_kept;
struct router_kept *router_keep(struct router *router, struct router_message *message);
void router_kept_free(struct router_kept **self);
/* Whether the message received last, which is not kept, came over ipc. */
bool router_is_local(struct router *router);
/* The descriptor of the connection of the message received last, which is not kept; -1: not known.
 * Its connection may be gone by now, and another one have its number. */
int router_descriptor(struct router *router);
/* Reads nothing from the connection until told otherwise: its peer has to wait. For short pauses:
 * who is silent for half a minute is taken for dead. */
void router_pause(int descriptor, bool is_paused);
/* To a connection of `client`. Never waits. Copies the bytes. */
enum router_sent router_send(struct router *router, const struct route *route,
                             const struct key32 *client, const void *bytes, size_t length);
/* The same for a message that is written where it leaves from: room for `length` bytes, or NULL
 * (FULL), until it is sent or dropped, or another draft takes its place. */
uint8_t *router_draft(struct router *router, const struct key32 *client, size_t length);
enum router_sent router_send_draft(struct router *router, const struct route *route);
void router_drop_draft(struct router *router);
/* Bytes that wait to leave: to that key, and to all. Keys share their count with one in 4096
 * others, by a hash that nobody else knows. */
size_t router_waiting_key(const struct router *router, const struct key32 *client);
size_t router_waiting(const struct router *router);
/* The zmq socket, for zmq_poll beside other things. */
void *router_socket(struct router *router);
struct router_counts router_counts(const struct router *router);

#endif
