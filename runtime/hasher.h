/* runtime/hasher.h - SHA-256 of bytes on a thread of its own, beside what the caller does with the
 * same bytes.
 *
 * To hash a large file takes as long as to write it: where a processor is free, both take as long
 * as one. Pieces that are too small to be worth it are hashed by the caller, as all are where no
 * thread can be had. One owner, one piece at a time. */
#ifndef BOURSE_RUNTIME_HASHER_H
#define BOURSE_RUNTIME_HASHER_H

#include "base/sha256.h"

#include <stddef.h>
#include <stdint.h>

enum { HASHER_LEAST_BYTES = 128 << 10 }; /* of a piece that is given to the thread */

struct hasher;

/* Its thread has name and rank of the caller's, and hears no signals. NULL: there is none, and
 * every call is as good without. */
struct hasher *hasher_create(void);
void hasher_destroy(struct hasher **self);

/* Adds the bytes to `sum`. Until hasher_finish nobody writes the bytes, and nobody touches the
 * sum. */
void hasher_begin(struct hasher *hasher, struct sha256 *sum, const uint8_t *bytes, size_t length);
/* What was begun is in its sum; without that, nothing happens. */
void hasher_finish(struct hasher *hasher);

#endif
