/* tests/fuzz/again.h - the round trip of protobuf: what was decoded is encoded, decoded and encoded
 * again, and the two encodings are the same. */
#ifndef BOURSE_TESTS_FUZZ_AGAIN_H
#define BOURSE_TESTS_FUZZ_AGAIN_H

#include "protocol/codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Asserts that `second`, decoded from the `first` encoding, encodes to the same bytes. */
static inline void same_bytes(const uint8_t *first, size_t first_length,
                              const ProtobufCMessage *second)
{
    size_t length;
    uint8_t *bytes = codec_encode(second, &length);
    assert(bytes != NULL);
    assert(length == first_length && memcmp(bytes, first, length) == 0);
    free(bytes);
}

#endif
