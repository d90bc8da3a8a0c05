#define OPENSSL_SUPPRESS_DEPRECATED /* the one-block API needs no provider and no allocation */
#include "base/sha256.h"

#include <assert.h>
#include <openssl/sha.h>
#include <string.h>

static_assert(sizeof(struct sha256) >= sizeof(SHA256_CTX), "room for OpenSSL's state");
static_assert(_Alignof(struct sha256) >= _Alignof(SHA256_CTX), "aligned for OpenSSL's state");

void sha256_start(struct sha256 *self)
{
    SHA256_Init((SHA256_CTX *)(void *)self);
}

void sha256_add(struct sha256 *self, const void *bytes, size_t length)
{
    SHA256_Update((SHA256_CTX *)(void *)self, bytes, length);
}

struct hash32 sha256_end(struct sha256 *self)
{
    struct hash32 hash;
    SHA256_Final(hash.bytes, (SHA256_CTX *)(void *)self);
    return hash;
}

struct hash32 sha256_of(const void *bytes, size_t length)
{
    struct sha256 self;
    sha256_start(&self);
    sha256_add(&self, bytes, length);
    return sha256_end(&self);
}
