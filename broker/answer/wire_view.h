/* broker/answer/wire_view.h lends memory of the broker to an answer while the answer is packed. */
#ifndef BOURSE_BROKER_ANSWER_WIRE_VIEW_H
#define BOURSE_BROKER_ANSWER_WIRE_VIEW_H

#include "protocol/codec.h"

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes as a field of a message. The memory stays the caller's. */
static inline ProtobufCBinaryData wire_view(const void *bytes, size_t length)
{
    /* The union drops const: protobuf-c does not write through the pointer when it packs. */
    union {
        const void *from;
        uint8_t *to;
    } borrowed = {.from = bytes};
    return (ProtobufCBinaryData){.data = borrowed.to, .len = length};
}

#endif
