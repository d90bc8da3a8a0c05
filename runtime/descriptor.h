/* runtime/descriptor.h - open files handed to another process of this machine, each for a ticket of
 * 16 random bytes.
 *
 * Who holds a ticket sends it as one datagram to a unix socket and gets one back, with the
 * descriptor or without. There are no connections: whoever sends something else, or nothing, holds
 * nothing here, and no more than 16 bytes are read of anybody. Rights are not looked at here: a
 * ticket is given where identity is known, over CURVE. */
#ifndef BOURSE_RUNTIME_DESCRIPTOR_H
#define BOURSE_RUNTIME_DESCRIPTOR_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { DESCRIPTOR_WAIT_MS = 1000 }; /* for an answer, which comes at once or not at all */

/* Where tickets for what `endpoint` gave are taken to: ipc://NAME.sock has NAME.fd beside it.
 * False: nowhere. */
bool descriptor_path(const char *endpoint, char *ret_path, size_t capacity);

/* The socket at `path`, mode 0600, or 0660 with `group`; it never blocks. What was there before is
 * removed. */
bool descriptor_port_open(const char *path, bool group, int *ret_port, struct problem *ret_problem);
struct descriptor_asker {
    struct sockaddr_un address;
    socklen_t length;
};
/* The next ticket that somebody sent. False: none is there. */
bool descriptor_port_receive(int port, struct id128 *ret_ticket,
                             struct descriptor_asker *ret_asker);
/* Hands over `fd`, which stays the caller's; -1: there is nothing for that ticket. `hash` (may be
 * NULL): the caller has hashed what is in it, to that, and knows of nobody who wrote to it since.
 * Who is gone or does not read gets nothing. */
void descriptor_port_answer(int port, const struct descriptor_asker *asker, int fd,
                            const struct hash32 *hash);

struct descriptor_answer {
    int fd; /* for the ticket, of whatever kind, for the caller to close; -1: there is none */
    bool has_hash; /* the sender has hashed what is in it, as he says, and is believed: he is root
                    * or our own user, by the kernel's word (SCM_CREDENTIALS, unix(7)) */
    struct hash32 hash; /* to this: a file of another hash is handed over as well */
};
/* False, with -1: nobody answers within wait_ms. */
bool descriptor_ask(const char *path, const struct id128 *ticket, int wait_ms,
                    struct descriptor_answer *ret_answer);

#endif
