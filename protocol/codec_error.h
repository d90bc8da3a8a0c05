/* protocol/codec_error.h names the field of a message that breaks a limit. */
#ifndef BOURSE_PROTOCOL_CODEC_ERROR_H
#define BOURSE_PROTOCOL_CODEC_ERROR_H

#include <stdint.h>

struct codec_error {
    char field[64]; /* e.g. "devices.slots"; "" when the body does not parse at all */
    int64_t value;
    int64_t limit;
};

#endif
