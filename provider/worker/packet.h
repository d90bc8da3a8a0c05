/* A packet is one message with descriptors over a SOCK_SEQPACKET pair.
 *
 * Packets travel between the agent, its launcher and the workers. Both ends are bounded: a message
 * or a list of descriptors that does not fit is an error, and no descriptor leaks. */
#ifndef BOURSE_PROVIDER_WORKER_PACKET_H
#define BOURSE_PROVIDER_WORKER_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PACKET_FILES = 200 }; /* descriptors in one message; the kernel takes 253 */

/* Makes a connected pair, close-on-exec. */
bool packet_pair(int ret_sockets[2]);

/* Sends the complete message, with duplicates of `files`. Returns false with errno on failure. */
bool packet_send(int socket, const void *bytes, size_t length, const int *files, size_t file_count);

/* Receives one message and returns its length. Returns 0 at end of file, and -1 with errno on
 * failure. EMSGSIZE means that the message did not fit; it is lost, and its descriptors are closed.
 * The received descriptors are close-on-exec and belong to the caller. */
ssize_t packet_receive(int socket, void *ret_bytes, size_t capacity, int *ret_files,
                       size_t file_capacity, size_t *ret_file_count);

void packet_close_files(int *files, size_t file_count);

#endif
