/* Checkpoints and verifier keys: what is taken has one text only. The corpus is signed with the
 * key of the seed 01 01 .. */
#include "ledger/checkpoint.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct key32 key;
static unsigned char secret[crypto_sign_SECRETKEYBYTES];

static struct signature64 sign(void *context, const void *text, size_t length)
{
    struct signature64 signature;
    (void)context;
    (void)crypto_sign_detached(signature.bytes, NULL, text, length, secret); /* cannot fail */
    return signature;
}

static void check_verifier(const uint8_t *data, size_t size)
{
    char text[CHECKPOINT_TEXT_SIZE];
    char origin[CHECKPOINT_ORIGIN_SIZE];
    char again[CHECKPOINT_TEXT_SIZE];
    struct key32 read;
    if (size >= sizeof text) {
        return;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (checkpoint_verifier_read(text, origin, &read)) {
        checkpoint_verifier(origin, &read, again);
        assert(strcmp(again, text) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct checkpoint checkpoint;
    char again[CHECKPOINT_TEXT_SIZE];
    unsigned char seed[32];
    memset(seed, 1, sizeof seed);
    (void)crypto_sign_seed_keypair(key.bytes, secret, seed); /* cannot fail */
    if (checkpoint_read((const char *)data, size, &key, &checkpoint)) {
        assert(checkpoint_origin_valid(checkpoint.origin));
        assert(checkpoint_write(&checkpoint, &key, sign, NULL, again) ==
               size); /* Ed25519 is deterministic */
        assert(memcmp(again, data, size) == 0);
    }
    check_verifier(data, size);
    return 0;
}
