/* base/id.h defines ids of 128 bits, and keys and hashes of 256 bits.
 *
 * Each is a struct, so that the compiler rejects a key where an id is meant, and so that
 * assignment copies it. All hold plain bytes, so byte order plays no part. */
#ifndef BOURSE_BASE_ID_H
#define BOURSE_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct id128 {
    uint8_t bytes[16];
};

struct key32 { /* a public key: Ed25519 or X25519; the field's name says which */
    uint8_t bytes[32];
};

struct hash32 { /* SHA-256 */
    uint8_t bytes[32];
};

struct signature64 { /* Ed25519 */
    uint8_t bytes[64];
};

static inline bool id128_equal(const struct id128 *a, const struct id128 *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static inline bool id128_is_zero(const struct id128 *id)
{
    static const struct id128 zero;
    return id128_equal(id, &zero);
}

static inline bool key32_equal(const struct key32 *a, const struct key32 *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static inline bool hash32_equal(const struct hash32 *a, const struct hash32 *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static inline bool hash32_is_zero(const struct hash32 *hash)
{
    static const struct hash32 zero;
    return hash32_equal(hash, &zero);
}

#endif
