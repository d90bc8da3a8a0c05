/* runtime/relay.h - many bytes from one place to another, hashed on the way, by two threads.
 *
 * While one thread writes a piece, the other reads and hashes the next one, and so on in turns.
 * Where memory is new to a machine, writing takes longest. */
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
    /* The next piece, in order and one at a time, though from either thread. */
    bool (*read)(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length);
    /* The same: what was read before was written before. */
    bool (*write)(void *context, uint64_t offset, const uint8_t *bytes, size_t length);
};

/* True when all was read, hashed and written. Else one of the calls said false, after which no more
 * were made than the other thread was at, or there is no memory. The second thread has name, rank
 * and processors of the caller's, and hears no signals; it is there while the caller has more
 * processors than relays are under way. Where none can be had, one does it all. */
bool relay_run(const struct relay *relay);

#endif
