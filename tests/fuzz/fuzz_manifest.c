/* Manifests: hostile files that every agent reads. */
#include "tests/fuzz/again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bourse__V1__Manifest *manifest = NULL;
    if (codec_decode_manifest(data, size, &manifest, NULL) != CODEC_OK) {
        return 0;
    }
    assert(manifest->n_subtasks == 0 || manifest->n_subtasks == manifest->subtask_count);
    size_t length;
    uint8_t *bytes = codec_encode(&manifest->base, &length);
    Bourse__V1__Manifest *again = NULL;
    enum codec_status status = codec_decode_manifest(bytes, length, &again, NULL);
    /* The cap on memory goes with the length, and numbers in long form may change theirs. */
    assert(status == CODEC_OK || status == CODEC_TOO_LARGE);
    if (status == CODEC_OK) {
        same_bytes(bytes, length, &again->base);
    }
    codec_manifest_free(&again);
    codec_manifest_free(&manifest);
    free(bytes);
    return 0;
}
