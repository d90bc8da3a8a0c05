/* Verifying took a third of the simulator's time, nearly all of it for signatures that this very
 * program had made. Such a one is looked up; whatever else comes, damaged or forged, goes to
 * libsodium. `sim-sanitized` is without this file, and must give the same trace. */
#include "base/sha256.h"
#include "tests/sim/map.h"

#include <sodium.h>

int __real_crypto_sign_detached(unsigned char *signature, unsigned long long *ret_length,
                                const unsigned char *message, unsigned long long length,
                                const unsigned char *secret);
int __wrap_crypto_sign_detached(unsigned char *signature, unsigned long long *ret_length,
                                const unsigned char *message, unsigned long long length,
                                const unsigned char *secret);
int __real_crypto_sign_verify_detached(const unsigned char *signature, const unsigned char *message,
                                       unsigned long long length, const unsigned char *key);
int __wrap_crypto_sign_verify_detached(const unsigned char *signature, const unsigned char *message,
                                       unsigned long long length, const unsigned char *key);

static struct map made;

static struct map_key name_of(const unsigned char *signature, const unsigned char *message,
                              unsigned long long length, const unsigned char *key)
{
    struct sha256 sha256;
    sha256_start(&sha256);
    sha256_add(&sha256, key, crypto_sign_PUBLICKEYBYTES);
    sha256_add(&sha256, signature, crypto_sign_BYTES);
    sha256_add(&sha256, message, length);
    struct hash32 hash = sha256_end(&sha256);
    return map_key_of(&hash, sizeof hash, 0);
}

int __wrap_crypto_sign_detached(unsigned char *signature, unsigned long long *ret_length,
                                const unsigned char *message, unsigned long long length,
                                const unsigned char *secret)
{
    unsigned char key[crypto_sign_PUBLICKEYBYTES];
    int status = __real_crypto_sign_detached(signature, ret_length, message, length, secret);
    if (status == 0 && crypto_sign_ed25519_sk_to_pk(key, secret) == 0) {
        struct map_key name = name_of(signature, message, length, key);
        map_put(&made, &name, 0);
    }
    return status;
}

int __wrap_crypto_sign_verify_detached(const unsigned char *signature, const unsigned char *message,
                                       unsigned long long length, const unsigned char *key)
{
    struct map_key name = name_of(signature, message, length, key);
    return map_get(&made, &name, NULL)
               ? 0
               : __real_crypto_sign_verify_detached(signature, message, length, key);
}
