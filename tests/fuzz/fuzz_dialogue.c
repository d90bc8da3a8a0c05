/* The target plays a broker to a client, message by message (u16 length each). A false broker may
 * say anything. The client must neither crash nor believe what does not fit. An id that begins with
 * 1 stands for the id of the client's Hello, one that begins with 2 for that of its request. */
#include "base/checked.h"
#include "base/cursor.h"
#include "protocol/dialogue.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct id128 request_id = {{'a', 's', 'k', 'e', 'd'}};

enum { ID_AT = 24 };

static struct id128 hello_id;

static void send_all(struct dialogue *dialogue)
{
    const uint8_t *message;
    size_t length;
    while (dialogue_outgoing(dialogue, &message, &length)) {
        struct envelope envelope;
        assert(envelope_read(message, length, LIMIT_MESSAGE_BYTES, &envelope) == ENVELOPE_OK);
        if (envelope.type == MESSAGE_HELLO) {
            hello_id = envelope.id;
        }
    }
}

/* The message with the id that it stands for. */
static const uint8_t *with_id(const uint8_t *message, size_t length)
{
    static uint8_t copy[UINT16_MAX];
    if (length == 0) {
        return message;
    }
    memcpy(copy, message, length);
    if (length >= ENVELOPE_HEAD_BYTES && (copy[ID_AT] == 1 || copy[ID_AT] == 2)) {
        memcpy(copy + ID_AT, copy[ID_AT] == 1 ? hello_id.bytes : request_id.bytes, 16);
    }
    return copy;
}

static void ask(struct dialogue *dialogue, int64_t now_ns)
{
    Bourse__V1__BalanceRequest body = BOURSE__V1__BALANCE_REQUEST__INIT;
    (void)dialogue_request(dialogue, now_ns, MESSAGE_BALANCE_REQUEST, &request_id, &body.base);
    send_all(dialogue);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t seed[32] = {7};
    static struct identity *identity;
    if (identity == NULL) {
        assert(sodium_init() >= 0);
        identity = identity_create(seed);
    }
    const struct dialogue_config config = {.identity = identity,
                                           .role = SESSION_CONSUMER,
                                           .program = "fuzz",
                                           .pending_max = 4,
                                           .pending_bytes_max = 1 << 16};
    struct dialogue *dialogue = dialogue_create(&config);
    assert(identity != NULL && dialogue != NULL);
    int64_t now_ns = NS_PER_S;
    dialogue_connected(dialogue, now_ns, 1);
    ask(dialogue, now_ns);
    struct reader in = reader_over(data, size);
    while (in.position < size) {
        size_t length = reader_u16(&in);
        const uint8_t *message = reader_view(&in, length);
        if (message == NULL || in.failed) {
            break;
        }
        struct dialogue_event event;
        now_ns += NS_PER_MS;
        dialogue_incoming(dialogue, now_ns, with_id(message, length), length, &event);
        assert(memchr(event.text, 0, sizeof event.text) != NULL);
        assert(event.type != DIALOGUE_ACCEPTED || id128_equal(&event.id, &request_id));
        codec_free(&event.body);
        dialogue_tick(dialogue, now_ns, &event);
        codec_free(&event.body);
        send_all(dialogue);
    }
    dialogue_destroy(&dialogue);
    return 0;
}
