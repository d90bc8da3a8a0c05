/* runtime/link.h is one CURVE connection to a broker, a DEALER on the control port or on the blob
 * port.
 *
 * Frames are single-part messages. Endpoints are "ipc://PATH" or "tcp://HOST:PORT". The product of
 * high-water mark and largest message is a named budget (link.c). One thread uses a link. */
#ifndef BOURSE_RUNTIME_LINK_H
#define BOURSE_RUNTIME_LINK_H

#include "base/problem.h"
#include "protocol/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

/* Opens a link. `context` is a zmq context. `server` is the broker's X25519 transport key. */
bool link_open(void *context, const char *endpoint, const struct key32 *server,
               const struct identity *identity, size_t max_message_bytes, struct link **ret_link,
               struct problem *ret_problem);
void link_close(struct link **self);
/* Opens a fresh socket to the same endpoint (after silence). */
bool link_reopen(struct link *link, struct problem *ret_problem);
/* Opens a fresh socket to another endpoint of the same server: one key, several machines. The link
 * stays at that endpoint, also when the call fails. */
bool link_reopen_at(struct link *link, const char *endpoint, struct problem *ret_problem);
/* Watches the connection from now on, so that link_has_ended can tell. The call opens a fresh
 * socket. A client with one address needs no watch: libzmq connects again by itself. */
bool link_watch(struct link *link, struct problem *ret_problem);
/* Returns true, once, when the connection was refused or has ended since the socket was opened.
 * Messages that came before can still be received. Without a watch it returns false. */
bool link_has_ended(struct link *link);
/* Returns the zmq socket that becomes readable when the connection ends; NULL without a watch. */
void *link_watch_socket(struct link *link);
/* Sends a message. Returns false when it cannot be queued now (full, or not connected). */
bool link_send(struct link *link, const void *message, size_t length);
/* Returns room for a message of `length` bytes that the caller writes in place, or NULL when memory
 * is short. The room is valid until link_send_draft or the next draft. */
uint8_t *link_draft(struct link *link, size_t length);
bool link_send_draft(struct link *link); /* false as with link_send; the draft is gone */
/* Waits up to timeout_ms (0: do not wait, -1: for ever). Returns 1 with a message that is valid
 * until the next call, 0 for none, -1 when the link is broken. After a send that was refused, the
 * wait also ends, with 0, as soon as a message can be sent. Of a watched link it also ends, with 0,
 * when the connection ends. */
int link_receive(struct link *link, int timeout_ms, const uint8_t **ret_message,
                 size_t *ret_length);
/* Returns the zmq socket, for zmq_poll beside other things. */
void *link_socket(struct link *link);

#endif
