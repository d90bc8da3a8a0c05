/* base/sha256.h computes SHA-256 (FIPS 180-4), the hash of blobs, chains and the tree.
 *
 * The code calls OpenSSL's one-block functions. They use the processor's SHA instructions and
 * are five times faster here than libsodium's. They fetch no provider of OpenSSL and allocate
 * nothing. */
#ifndef BOURSE_BASE_SHA256_H
#define BOURSE_BASE_SHA256_H

#include "base/id.h"

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint64_t state[16]; /* opaque; at least OpenSSL's SHA256_CTX, checked in the .c file */
};

void sha256_start(struct sha256 *self);
void sha256_add(struct sha256 *self, const void *bytes, size_t length);
/* Ends the hash and returns it; `self` needs a new start before the next use. */
struct hash32 sha256_end(struct sha256 *self);

struct hash32 sha256_of(const void *bytes, size_t length);

#endif
