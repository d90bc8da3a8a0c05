/* Message bodies: the first byte picks the type. */
#include "tests/fuzz/again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_requirement(enum message_type type, const ProtobufCMessage *body)
{
    struct requirement requirement;
    if (type == MESSAGE_SUBMIT_JOB) {
        (void)codec_requirement_from_wire(
            ((const Bourse__V1__SubmitJob *)(const void *)body)->needs, &requirement);
    }
    if (type == MESSAGE_BOOK_REPLY) {
        const Bourse__V1__BookReply *book = (const void *)body;
        for (size_t i = 0; i < book->n_needs; i++) {
            (void)codec_requirement_from_wire(book->needs[i]->needs, &requirement);
        }
    }
    if (type == MESSAGE_MARKET_REPLY) {
        const Bourse__V1__MarketReply *market = (const void *)body;
        for (size_t i = 0; i < market->n_needs; i++) {
            (void)codec_requirement_from_wire(market->needs[i]->needs, &requirement);
        }
    }
    if (type == MESSAGE_DEVICES_REQUEST &&
        ((const Bourse__V1__DevicesRequest *)(const void *)body)->needs != NULL) {
        (void)codec_requirement_from_wire(
            ((const Bourse__V1__DevicesRequest *)(const void *)body)->needs, &requirement);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    enum message_type type = (enum message_type)data[0];
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    if (codec_decode(type, data + 1, size - 1, &body, &error) != CODEC_OK) {
        assert(body == NULL);
        assert(memchr(error.field, 0, sizeof error.field) != NULL);
        return 0;
    }
    check_requirement(type, body);
    size_t length;
    uint8_t *bytes = codec_encode(body, &length);
    ProtobufCMessage *again = NULL;
    enum codec_status status = codec_decode(type, bytes, length, &again, &error);
    assert(status == CODEC_OK ||
           status == CODEC_TOO_LARGE); /* numbers in long form may change their length */
    if (status == CODEC_OK) {
        same_bytes(bytes, length, again);
    }
    codec_free(&again);
    codec_free(&body);
    free(bytes);
    return 0;
}
