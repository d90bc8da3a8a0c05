/* runtime/link.h - one CURVE connection to a broker: a DEALER on the control port or on the blob
 * port.
 *
 * Frames are single-part messages. Endpoints: "ipc://PATH" or "tcp://HOST:PORT". High-water marks
 * and the largest message are set so that their product is a named budget (link.c). Used by one
 * thread. */
#ifndef BOURSE_RUNTIME_LINK_H
#define BOURSE_RUNTIME_LINK_H

#include "base/problem.h"
#include "protocol/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

/* `context` is a zmq context. `server` is the broker's X25519 transport key. */
bool link_open(void *context, const char *endpoint, const struct key32 *server,
               const struct identity *identity, size_t max_message_bytes, struct link **ret_link,
               struct problem *ret_problem);
void link_close(struct link **self);
/* A fresh socket to the same place (after silence). */
bool link_reopen(struct link *link, struct problem *ret_problem);
/* False when the message cannot be queued now (full, or not connected). */
bool link_send(struct link *link, const void *message, size_t length);
/* The same for a message that is written where it leaves from: room for `length` bytes (NULL: no
 * memory), until link_send_draft, or another draft takes its place. */
uint8_t *link_draft(struct link *link, size_t length);
bool link_send_draft(struct link *link); /* false: as link_send; the draft is gone */
/* Waits up to timeout_ms (0: do not wait, -1: for ever). 1: a message, valid until the next call;
 * 0: none; -1: broken. */
int link_receive(struct link *link, int timeout_ms, const uint8_t **ret_message,
                 size_t *ret_length);
/* The zmq socket, for zmq_poll beside other things. */
void *link_socket(struct link *link);

#endif
