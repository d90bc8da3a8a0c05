/* Receipts: what is taken has one text only. The corpus is logged under the key of the seed 01
 * 01 .. */
#include "ledger/receipt.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t scratch[RECEIPT_TEXT_MAX];
    static char again[RECEIPT_TEXT_MAX];
    struct key32 key;
    unsigned char secret[crypto_sign_SECRETKEYBYTES];
    unsigned char seed[32];
    struct receipt receipt;
    memset(seed, 1, sizeof seed);
    (void)crypto_sign_seed_keypair(key.bytes, secret, seed); /* cannot fail */
    enum receipt_status status =
        receipt_verify((const char *)data, size, NULL, &key, scratch, sizeof scratch, &receipt);
    if (status == RECEIPT_OK) {
        assert(receipt_write(&receipt, again, sizeof again) == size);
        assert(memcmp(again, data, size) == 0);
    }
    assert(receipt_status_text(status)[0] != '\0');
    return 0;
}
