/* The head of a message: what is read must be written again as the same bytes, and what is not read
 * must be refused without a trace. A body of a known type goes through its decoder too, as in the
 * gateway. */
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct envelope envelope;
    if (envelope_read(data, size, LIMIT_MESSAGE_BYTES, &envelope) != ENVELOPE_OK) {
        return 0;
    }
    assert(envelope_size(&envelope) == size);
    uint8_t *again = malloc(size);
    assert(again != NULL);
    envelope_write(&envelope, again, size);
    assert(memcmp(again, data, size) == 0);
    free(again);

    ProtobufCMessage *body = NULL;
    (void)codec_decode((enum message_type)envelope.type, envelope.body, envelope.body_length, &body,
                       NULL);
    codec_free(&body);
    return 0;
}
