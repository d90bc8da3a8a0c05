/* base/sha256.h - SHA-256 (FIPS 180-4), the hash of blobs, chains and the tree.
 *
 * OpenSSL's one-block functions underneath: they use the processor's SHA instructions and are five
 * times faster here than libsodium's. Pure: no provider is fetched, nothing is allocated. */
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
/* Ends the hash; `self` needs a new start before it is used again. */
struct hash32 sha256_end(struct sha256 *self);

struct hash32 sha256_of(const void *bytes, size_t length);

#endif
