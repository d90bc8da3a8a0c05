/* runtime/router.h is the broker's side of a port, a CURVE ROUTER bound to ipc and tcp
 * endpoints.
 *
 * A message is one part. Each comes with the client's X25519 key, proved by the handshake, and with
 * the route of an answer. A route ends with its connection, but a key stays, so callers store state
 * by key. Clients may not choose their routing id, and messages of several parts are dropped; both
 * are counted. zap_start must have run. One thread uses a router.
 *
 * Memory is bounded by bytes, not by messages. Sent bytes that have not left yet are counted for
 * all clients together and for each client key, however many connections it has. Beyond either cap
 * a send returns ROUTER_FULL. A key without waiting bytes may always be sent one message, so that
 * nobody is shut out by others. At most `receive_queue` received messages of a connection wait;
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

struct route { /* one connection, as libzmq numbers it; plain bytes for hash tables */
    uint8_t bytes[ROUTE_BYTES];
};

struct router_config {
    const struct identity *identity; /* the broker's transport key; borrowed */
    size_t max_message_bytes;
    uint64_t io_threads; /* bits of the context's threads that serve the port; 0: any */
    /* Received messages of one connection that may wait; 0: ROUTER_RECEIVE_QUEUE. */
    unsigned receive_queue;
    size_t send_bytes;     /* bytes that wait to leave, in total; 0: ROUTER_SEND_BYTES */
    size_t send_key_bytes; /* the part for one client key; 0: ROUTER_SEND_KEY_BYTES */
    /* The ipc peers allowed, by SO_PEERCRED. None: every user who can open the socket. */
    const uid_t *uids;
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
    uint64_t dropped_routes; /* messages from peers that chose their own routing id */
};

enum router_sent {
    ROUTER_SENT,
    ROUTER_GONE, /* the connection has ended */
    ROUTER_FULL, /* too much waits for the client: it does not read */
    ROUTER_BROKEN,
};

bool router_open(void *context, const struct router_config *config, struct router **ret_router,
                 struct problem *ret_problem);
/* Binds to "ipc://PATH", "tcp://ADDRESS:PORT" or "tcp://ADDRESS:*". ret_endpoint (may be NULL,
 * capacity bytes) gets the bound endpoint, with its port. An ipc socket is made 0600, or 0660 with
 * `group`. */
bool router_bind(struct router *router, const char *endpoint, bool group, char *ret_endpoint,
                 size_t capacity, struct problem *ret_problem);
/* Unbinds, gives queued messages half a second to leave, and removes ipc sockets. */
void router_close(struct router **self);

/* Returns 1 with a message, 0 for none within timeout_ms (0: do not wait, -1: for ever), and -1
 * when the port is broken (the context ends). */
int router_receive(struct router *router, int timeout_ms, struct router_message *ret_message);
/* Keeps the last message beyond the next receive. The caller frees the returned object.
 * `message` then points to its bytes there. Returns NULL when memory is short; the message is
 * then unchanged. */
struct router_kept;
struct router_kept *router_keep(struct router *router, struct router_message *message);
void router_kept_free(struct router_kept **self);
/* Returns true when the last received message, which is not kept, came over ipc. */
bool router_is_local(struct router *router);
/* Returns the connection's descriptor of the last received message, which is not kept; -1: unknown.
 * The connection may be gone by now, and its number reused. */
int router_descriptor(struct router *router);
/* Pauses or resumes reading from the connection; its peer has to wait. A pause must be short,
 * because a peer that is silent for half a minute counts as dead. */
void router_pause(int descriptor, bool is_paused);
/* Sends to a connection of `client`. The call never waits, and copies the bytes. */
enum router_sent router_send(struct router *router, const struct route *route,
                             const struct key32 *client, const void *bytes, size_t length);
/* Returns room for a message of `length` bytes that the caller writes in place, or NULL (as
 * ROUTER_FULL). The room is valid until the message is sent or dropped, or until the next draft. */
uint8_t *router_draft(struct router *router, const struct key32 *client, size_t length);
enum router_sent router_send_draft(struct router *router, const struct route *route);
void router_drop_draft(struct router *router);
/* Returns the bytes that wait to leave for one key. Each key shares its count with one in 4096
 * others, by a secret hash. */
size_t router_waiting_key(const struct router *router, const struct key32 *client);
/* Returns the zmq socket, for zmq_poll beside other things. */
void *router_socket(struct router *router);
struct router_counts router_counts(const struct router *router);

#endif
