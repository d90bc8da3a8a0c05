/* A grpc_member is a connection to one etcd member, for calls of gRPC.
 *
 * Libcurl makes the calls over HTTP/2 and TLS. Both sides show certificates; there is no way
 * without TLS. One thread uses a member. A call blocks at most for its timeout. The connection
 * stays open between calls, and is made again when it breaks. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_GRPC_MEMBER_H
#define BOURSE_BROKER_STORAGE_ETCD_GRPC_MEMBER_H

#include "base/problem.h"
#include "broker/storage/etcd/etcd_config.h"
#include "broker/storage/etcd/grpc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRPC_ANSWER_BYTES_MAX = 16 << 20 };

struct grpc_member;

/* Starts libcurl; the process calls it once, before any thread of ours uses it. */
bool grpc_member_begin(void);
/* `config` must outlive the member. Returns NULL when memory is short, or libcurl lacks HTTP/2. */
struct grpc_member *grpc_member_create(const struct etcd_config *config, size_t number);
void grpc_member_destroy(struct grpc_member **self);

struct grpc_reply {
    enum grpc_outcome outcome;
    const uint8_t *message; /* ANSWERED: borrowed until the member's next call */
    size_t length;
};
/* Sends one request and waits for its answer. */
struct grpc_reply grpc_member_call(struct grpc_member *member, const char *path,
                                   const uint8_t *message, size_t length, long timeout_ms);
/* Returns why the last call failed, for the log; "" after ANSWERED. */
const char *grpc_member_error(const struct grpc_member *member);
const char *grpc_member_url(const struct grpc_member *member);

#endif
