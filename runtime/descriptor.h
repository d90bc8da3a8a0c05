/* runtime/descriptor.h hands open files to another process of this machine, each for a ticket of 16
 * random bytes.
 *
 * The holder of a ticket sends it as one datagram to a unix socket. The holder gets one datagram
 * back, with or without the descriptor. There are no connections, so senders of other data, or of
 * none, use up nothing here. At most 16 bytes are read from a sender. Rights are not checked here:
 * a ticket is issued over CURVE, where the identity is known. */
#ifndef BOURSE_RUNTIME_DESCRIPTOR_H
#define BOURSE_RUNTIME_DESCRIPTOR_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { DESCRIPTOR_WAIT_MS = 1000 }; /* for an answer, which comes at once or never */

/* Writes the socket for tickets that belongs to `endpoint`: ipc://NAME.sock has NAME.fd beside it.
 * Returns false when there is none. */
bool descriptor_path(const char *endpoint, char *ret_path, size_t capacity);

/* Opens the socket at `path`, mode 0600, or 0660 with `group`. The socket never blocks. An existing
 * file at `path` is removed. */
bool descriptor_port_open(const char *path, bool group, int *ret_port, struct problem *ret_problem);
struct descriptor_asker {
    struct sockaddr_un address;
    socklen_t length;
};
/* Receives the next ticket. Returns false when none is there. */
bool descriptor_port_receive(int port, struct id128 *ret_ticket,
                             struct descriptor_asker *ret_asker);
/* Hands over `fd`, which stays the caller's; -1: there is no file for the ticket. A `hash` (may be
 * NULL) says that the caller has hashed the file, and knows of no writer since. An asker that is
 * gone or does not read gets nothing. */
void descriptor_port_answer(int port, const struct descriptor_asker *asker, int fd,
                            const struct hash32 *hash);

struct descriptor_answer {
    /* The descriptor for the ticket, of any kind; the caller closes it. -1: there is none. */
    int fd;
    /* The sender says that it has hashed the file, and is trusted. The kernel reports it as root or
     * our own user (SCM_CREDENTIALS, unix(7)). */
    bool has_hash;
    struct hash32 hash; /* the hash; files with other hashes are handed over as well */
};
/* Asks for a ticket's descriptor. Returns false, with -1, when no answer comes within wait_ms. */
bool descriptor_ask(const char *path, const struct id128 *ticket, int wait_ms,
                    struct descriptor_answer *ret_answer);

#endif
