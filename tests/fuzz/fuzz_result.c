/* Encoded results, as agents sign them and receipts hold them. */
#include "tests/fuzz/again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bourse__V1__Result *result = NULL;
    if (codec_decode_result(data, size, &result, NULL) != CODEC_OK) {
        return 0;
    }
    (void)codec_id(result->job); /* asserts the sizes */
    (void)codec_key(result->provider);
    (void)codec_hash(result->manifest);
    size_t length;
    uint8_t *bytes = codec_encode(&result->base, &length);
    Bourse__V1__Result *again = NULL;
    enum codec_status status = codec_decode_result(bytes, length, &again, NULL);
    /* The cap on memory goes with the length, and numbers in long form may change theirs. */
    assert(status == CODEC_OK || status == CODEC_TOO_LARGE);
    if (status == CODEC_OK) {
        same_bytes(bytes, length, &again->base);
    }
    codec_result_free(&again);
    codec_result_free(&result);
    free(bytes);
    return 0;
}
