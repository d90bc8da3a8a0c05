/* tests/golden/result_vector.h writes a Result as a vector: its fields, its bytes, and its leaf of
 * the tree of results. One program includes it once. */
#ifndef BOURSE_TESTS_GOLDEN_RESULT_VECTOR_H
#define BOURSE_TESTS_GOLDEN_RESULT_VECTOR_H

#include "base/energy.h"
#include "protocol/results.h"
#include "tests/golden/wire_vector.h"

/* Returns false when the bytes do not decode. The caller frees the bytes. */
static inline bool result_vector(struct text *text, const char *title,
                                 const Bourse__V1__Result *result, uint8_t **ret_bytes,
                                 size_t *ret_length, struct hash32 *ret_leaf)
{
    Bourse__V1__Result *decoded = NULL;
    *ret_bytes = codec_encode(&result->base, ret_length);
    *ret_leaf = results_leaf(*ret_bytes, *ret_length);
    const bool good = codec_decode_result(*ret_bytes, *ret_length, &decoded, NULL) == CODEC_OK;
    codec_result_free(&decoded);
    put(text, "[%s]\nfields:\n", title);
    put_message(text, "", &result->base);
    put_hex(text, "bytes", *ret_bytes, *ret_length);
    put_hex(text, "leaf", ret_leaf->bytes, sizeof ret_leaf->bytes);
    put(text, "\n");
    return good;
}

/* Writes the result of an attempt whose energy is an estimate by the owner's power. */
static inline bool result_vector_energy(struct text *text, const Bourse__V1__Result *like)
{
    Bourse__V1__Result result = *like;
    struct hash32 leaf;
    uint8_t *bytes;
    size_t length;
    result.has_energy_mj = result.has_energy_uj = result.has_energy_source = true;
    result.energy_mj = 1234;
    result.energy_uj = 1234567;
    result.energy_source = ENERGY_BY_OWNER;
    const bool good = result_vector(text, "result with energy", &result, &bytes, &length, &leaf);
    free(bytes);
    return good;
}

#endif
