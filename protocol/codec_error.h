/* protocol/codec_error.h says which field of a message breaks which limit. */
#ifndef BOURSE_PROTOCOL_CODEC_ERROR_H
#define BOURSE_PROTOCOL_CODEC_ERROR_H

#include <stdint.h>

struct codec_error {
    char field[64]; /* "devices.slots"; "" when the body does not parse at all */
    int64_t value;
    int64_t limit;
};

#endif
