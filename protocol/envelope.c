#include "protocol/envelope.h"

#include "base/cursor.h"

#include <assert.h>
#include <string.h>

enum { FLAG_SIGNED = 1 };

static const uint8_t magic[4] = {'B', 'R', 'S', '1'};
static const char domain[] = "bourse/message/v1"; /* signed with its NUL */

static_assert(ENVELOPE_SIGNED_HEAD_BYTES == sizeof domain + 16 + 2 + 2 + 16 + 8 + 4,
              "what is signed");

static bool signature_is_zero(const struct signature64 *signature)
{
    static const struct signature64 zero;
    return memcmp(signature, &zero, sizeof zero) == 0;
}

enum envelope_status envelope_read(const void *message, size_t length, uint32_t body_cap,
                                   struct envelope *ret_envelope)
{
    if (length < ENVELOPE_HEAD_BYTES) {
        return ENVELOPE_SHORT;
    }
    struct reader in = reader_over(message, length);
    if (memcmp(reader_view(&in, sizeof magic), magic, sizeof magic) != 0) {
        return ENVELOPE_BAD_MAGIC;
    }
    struct envelope envelope = {.version = reader_u16(&in)};
    if (envelope.version != ENVELOPE_VERSION) {
        return ENVELOPE_BAD_VERSION;
    }
    envelope.type = reader_u16(&in);
    envelope.session = reader_u64(&in);
    envelope.sequence = reader_u64(&in);
    reader_bytes(&in, envelope.id.bytes, sizeof envelope.id.bytes);
    envelope.created_ms = reader_i64(&in);
    envelope.body_length = reader_u32(&in);
    uint32_t flags = reader_u32(&in);
    reader_bytes(&in, envelope.signature.bytes, sizeof envelope.signature.bytes);
    envelope.is_signed = (flags & FLAG_SIGNED) != 0;
    if ((flags & ~(uint32_t)FLAG_SIGNED) != 0 ||
        (!envelope.is_signed && !signature_is_zero(&envelope.signature))) {
        return ENVELOPE_BAD_FLAGS;
    }
    if (envelope.body_length > body_cap) {
        return ENVELOPE_TOO_LARGE;
    }
    if (reader_left(&in) != envelope.body_length) {
        return reader_left(&in) < envelope.body_length ? ENVELOPE_SHORT : ENVELOPE_LONG;
    }
    envelope.body = reader_view(&in, envelope.body_length);
    assert(reader_finished(&in));
    *ret_envelope = envelope;
    return ENVELOPE_OK;
}

size_t envelope_size(const struct envelope *envelope)
{
    return (size_t)ENVELOPE_HEAD_BYTES + envelope->body_length;
}

void envelope_write_head(const struct envelope *envelope, uint8_t ret_message[ENVELOPE_HEAD_BYTES])
{
    static const struct signature64 unsigned_zeros;
    const struct signature64 *signature =
        envelope->is_signed ? &envelope->signature : &unsigned_zeros;

    struct writer out = writer_over(ret_message, ENVELOPE_HEAD_BYTES);
    writer_bytes(&out, magic, sizeof magic);
    writer_u16(&out, envelope->version);
    writer_u16(&out, envelope->type);
    writer_u64(&out, envelope->session);
    writer_u64(&out, envelope->sequence);
    writer_bytes(&out, envelope->id.bytes, sizeof envelope->id.bytes);
    writer_i64(&out, envelope->created_ms);
    writer_u32(&out, envelope->body_length);
    writer_u32(&out, envelope->is_signed ? FLAG_SIGNED : 0);
    writer_bytes(&out, signature->bytes, sizeof signature->bytes);
    assert(!out.failed && out.position == ENVELOPE_HEAD_BYTES);
}

void envelope_write(const struct envelope *envelope, void *ret_message, size_t capacity)
{
    uint8_t *message = ret_message;
    assert(capacity >= envelope_size(envelope));
    envelope_write_head(envelope, message);
    if (envelope->body_length > 0) {
        memcpy(message + ENVELOPE_HEAD_BYTES, envelope->body, envelope->body_length);
    }
}

void envelope_signed_head(const struct envelope *envelope, const struct id128 *cluster,
                          uint8_t ret_head[ENVELOPE_SIGNED_HEAD_BYTES])
{
    struct writer out = writer_over(ret_head, ENVELOPE_SIGNED_HEAD_BYTES);
    writer_bytes(&out, domain, sizeof domain);
    writer_bytes(&out, cluster->bytes, sizeof cluster->bytes);
    writer_u16(&out, envelope->version);
    writer_u16(&out, envelope->type);
    writer_bytes(&out, envelope->id.bytes, sizeof envelope->id.bytes);
    writer_i64(&out, envelope->created_ms);
    writer_u32(&out, envelope->body_length);
    assert(!out.failed && out.position == ENVELOPE_SIGNED_HEAD_BYTES);
}
