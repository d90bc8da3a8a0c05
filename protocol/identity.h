/* protocol/identity.h defines Ed25519 identities, the X25519 keys derived from them, and signatures
 * (D5, D6).
 *
 * An account is an Ed25519 key (RFC 8032). Its connections authenticate with the X25519 key that
 * libsodium derives from it (RFC 7748, the birational map), so one secret serves both. The map
 * cannot be inverted: accounts are indexed by both. Secrets live in memory from sodium_malloc
 * (identity_create). sodium_init() must have been called. */
#ifndef BOURSE_PROTOCOL_IDENTITY_H
#define BOURSE_PROTOCOL_IDENTITY_H

#include "base/id.h"
#include "protocol/envelope.h"

#include <stdbool.h>
#include <stddef.h>

struct identity; /* a secret key with its public halves */

/* Makes an identity from a 32-byte seed, which the caller wipes. Returns NULL when memory is
 * short. */
struct identity *identity_create(const uint8_t seed[32]);
void identity_destroy(struct identity **self);
const struct key32 *identity_key(const struct identity *identity);       /* Ed25519 public */
const struct key32 *identity_transport(const struct identity *identity); /* X25519 public */
/* Returns the X25519 secret, 32 bytes, borrowed. */
const uint8_t *identity_transport_secret(const struct identity *identity);

/* Returns true when `key` is a canonical point of the main subgroup, not of small order. The broker
 * checks a key when it is registered (libsodium 1.0.18 accepts some signatures of mixed-order
 * keys). */
bool identity_key_valid(const struct key32 *key);
/* Derives the X25519 key of an account. Returns false when the key is not valid. */
bool identity_transport_of(const struct key32 *key, struct key32 *ret_transport);

struct signature64 identity_sign(const struct identity *identity, const void *bytes, size_t length);
bool identity_verify(const struct key32 *key, const void *bytes, size_t length,
                     const struct signature64 *signature);

/* Signs the envelope in place (sets is_signed and signature). Returns false when memory is
 * short. */
bool identity_sign_envelope(const struct identity *identity, const struct id128 *cluster,
                            struct envelope *envelope);
/* Returns true when the signature is right; an unsigned envelope gives false. The key has passed
 * identity_key_valid at its registration. */
bool identity_verify_envelope(const struct key32 *key, const struct id128 *cluster,
                              const struct envelope *envelope);

#endif
