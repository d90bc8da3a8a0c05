/* runtime/relay.h copies many bytes from one place to another, and hashes them on the way, with two
 * threads.
 *
 * While one thread writes a piece, the other reads and hashes the next one, in turns. Where memory
 * is new to a machine, writing takes longest. */
#ifndef BOURSE_RUNTIME_RELAY_H
#define BOURSE_RUNTIME_RELAY_H

#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RELAY_PIECE_BYTES = 1 << 20 };

struct relay {
    uint64_t from, to; /* offsets */
    struct sha256 *sum;
    void *context;
    /* Reads the next piece. Calls come in order and one at a time, from either thread. */
    bool (*read)(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length);
    /* Writes the next piece. Calls come in the order of the reads, one at a time. */
    bool (*write)(void *context, uint64_t offset, const uint8_t *bytes, size_t length);
};

/* Returns true when all bytes were read, hashed and written. Otherwise a callback returned false,
 * or memory is short; after a failure only the call that the other thread was in completes. The
 * second thread has the caller's name, priority and processors, and receives no signals. This
 * thread runs while the caller has more processors than relays are under way. Where none can be
 * had, one thread does everything. */
bool relay_run(const struct relay *relay);

#endif
