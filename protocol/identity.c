#include "protocol/identity.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* The struct holds bytes only, so that any address from sodium_malloc suits it. */
struct identity {
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    uint8_t transport_secret[crypto_scalarmult_SCALARBYTES];
    struct key32 key;
    struct key32 transport;
};

static_assert(crypto_sign_PUBLICKEYBYTES == sizeof(struct key32), "Ed25519 public key");
static_assert(crypto_sign_BYTES == sizeof(struct signature64), "Ed25519 signature");
static_assert(crypto_sign_SEEDBYTES == 32, "Ed25519 seed");

struct identity *identity_create(const uint8_t seed[32])
{
    struct identity *identity = sodium_malloc(sizeof *identity);
    if (identity == NULL) {
        return NULL;
    }
    int status = crypto_sign_seed_keypair(identity->key.bytes, identity->secret, seed);
    assert(status == 0);
    status = crypto_sign_ed25519_sk_to_curve25519(identity->transport_secret, identity->secret);
    assert(status == 0);
    status = crypto_scalarmult_base(identity->transport.bytes, identity->transport_secret);
    assert(status == 0);
    (void)status; /* only the asserts read it */
    /* Read-only memory is a hardening; the code works without it where the kernel refuses. */
    (void)sodium_mprotect_readonly(identity);
    return identity;
}

void identity_destroy(struct identity **self)
{
    sodium_free(*self); /* wipes the memory; NULL is allowed */
    *self = NULL;
}

const struct key32 *identity_key(const struct identity *identity)
{
    return &identity->key;
}

const struct key32 *identity_transport(const struct identity *identity)
{
    return &identity->transport;
}

const uint8_t *identity_transport_secret(const struct identity *identity)
{
    return identity->transport_secret;
}

/* Multiplies by L - 1, L being the order of the main subgroup, and compares with the negated point.
 * For P + T, T of order 2, 4 or 8, the product is -P + 4T (L is 5 modulo 8), never -(P + T). An
 * unpatched libsodium up to 1.0.20 looks at one coordinate of L * P only. Its
 * crypto_core_ed25519_is_valid_point accepts points of order 2L, so its answer is not enough. */
static bool in_main_subgroup(const struct key32 *key)
{
    static const uint8_t order_less_one[32] = {0xec, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,
                                               0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
                                               0,    0,    0,    0,    0,    0,    0,    0,
                                               0,    0,    0,    0,    0,    0,    0,    0x10};
    struct key32 product;
    if (crypto_scalarmult_ed25519_noclamp(product.bytes, order_less_one, key->bytes) != 0) {
        return false;
    }
    struct key32 negated = *key;
    negated.bytes[31] ^= 0x80; /* the sign of x */
    return key32_equal(&product, &negated);
}

bool identity_key_valid(const struct key32 *key)
{
    return crypto_core_ed25519_is_valid_point(key->bytes) == 1 && in_main_subgroup(key);
}

bool identity_transport_of(const struct key32 *key, struct key32 *ret_transport)
{
    struct key32 transport;
    if (!identity_key_valid(key) ||
        crypto_sign_ed25519_pk_to_curve25519(transport.bytes, key->bytes) != 0) {
        return false;
    }
    *ret_transport = transport;
    return true;
}

struct signature64 identity_sign(const struct identity *identity, const void *bytes, size_t length)
{
    struct signature64 signature;
    int status = crypto_sign_detached(signature.bytes, NULL, bytes, length, identity->secret);
    assert(status == 0);
    (void)status;
    return signature;
}

bool identity_verify(const struct key32 *key, const void *bytes, size_t length,
                     const struct signature64 *signature)
{
    return crypto_sign_verify_detached(signature->bytes, bytes, length, key->bytes) == 0;
}

/* Returns the bytes under the signature in one piece, because libsodium's multi-part form is the
 * pre-hashed variant. Returns NULL when memory is short. */
static uint8_t *signed_bytes(const struct id128 *cluster, const struct envelope *envelope,
                             size_t *ret_length)
{
    size_t length = (size_t)ENVELOPE_SIGNED_HEAD_BYTES + envelope->body_length;
    uint8_t *bytes = malloc(length);
    if (bytes == NULL) {
        return NULL;
    }
    envelope_signed_head(envelope, cluster, bytes);
    if (envelope->body_length > 0) {
        memcpy(bytes + ENVELOPE_SIGNED_HEAD_BYTES, envelope->body, envelope->body_length);
    }
    *ret_length = length;
    return bytes;
}

bool identity_sign_envelope(const struct identity *identity, const struct id128 *cluster,
                            struct envelope *envelope)
{
    size_t length;
    uint8_t *bytes = signed_bytes(cluster, envelope, &length);
    if (bytes == NULL) {
        return false;
    }
    envelope->signature = identity_sign(identity, bytes, length);
    envelope->is_signed = true;
    free(bytes);
    return true;
}

bool identity_verify_envelope(const struct key32 *key, const struct id128 *cluster,
                              const struct envelope *envelope)
{
    if (!envelope->is_signed) {
        return false;
    }
    size_t length;
    uint8_t *bytes = signed_bytes(cluster, envelope, &length);
    if (bytes == NULL) {
        return false; /* memory is short: an unverified signature counts as wrong */
    }
    bool good = identity_verify(key, bytes, length, &envelope->signature);
    free(bytes);
    return good;
}
