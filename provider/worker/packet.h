/* provider/worker/packet.h - one message with descriptors over a SOCK_SEQPACKET pair.
 *
 * Between the agent, its launcher and the workers. Both ends are bounded: a message or a list of
 * descriptors that does not fit is an error, and no descriptor leaks. */
#ifndef BOURSE_PROVIDER_WORKER_PACKET_H
#define BOURSE_PROVIDER_WORKER_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PACKET_FILES = 200 }; /* in one message; the kernel takes 253 */

/* A connected pair, close-on-exec. */
bool packet_pair(int ret_sockets[2]);

/* Sends it whole, with duplicates of `files`. False with errno. */
bool packet_send(int socket, const void *bytes, size_t length, const int *files, size_t file_count);

/* Receives one message: its length; 0 at end of file; -1 with errno (EMSGSIZE: it did not fit
 * and is lost, its descriptors closed). The received descriptors are close-on-exec and the
 * caller's. */
ssize_t packet_receive(int socket, void *ret_bytes, size_t capacity, int *ret_files,
                       size_t file_capacity, size_t *ret_file_count);

void packet_close_files(int *files, size_t file_count);

#endif
