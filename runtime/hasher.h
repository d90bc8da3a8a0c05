/* runtime/hasher.h computes SHA-256 on a thread of its own, while the caller uses the same
 * bytes.
 *
 * Hashing a large file takes as long as writing it. With a free processor, both together take as
 * long as one. The caller itself hashes pieces that are too small, and all pieces where no thread
 * can be had. A hasher has one owner, and one piece at a time. */
#ifndef BOURSE_RUNTIME_HASHER_H
#define BOURSE_RUNTIME_HASHER_H

#include "base/sha256.h"

#include <stddef.h>
#include <stdint.h>

enum { HASHER_LEAST_BYTES = 128 << 10 }; /* smallest piece that the thread hashes */

struct hasher;

/* Makes a hasher. Its thread has the caller's name and priority, and receives no signals. Returns
 * NULL when there is none; every call works without one. */
struct hasher *hasher_create(void);
void hasher_destroy(struct hasher **self);

/* Adds the bytes to `sum`. Until hasher_finish the caller must not change the bytes or use the
 * sum. */
void hasher_begin(struct hasher *hasher, struct sha256 *sum, const uint8_t *bytes, size_t length);
/* Waits until the piece is in its sum. Without a piece nothing happens. */
void hasher_finish(struct hasher *hasher);

#endif
