/* tests/golden/wire_vector.h writes a message as a vector: its fields as text, by the descriptors
 * of the schema, and its bytes. Each vector is also decoded and verified. One program includes it
 * once. */
#ifndef BOURSE_TESTS_GOLDEN_WIRE_VECTOR_H
#define BOURSE_TESTS_GOLDEN_WIRE_VECTOR_H

#include "base/text.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/identity.h"
#include "protocol/message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOLDEN_BYTES_MAX = 1 << 20 };

/* ---- the text, growing ---- */

struct text {
    char bytes[GOLDEN_BYTES_MAX];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static inline void put(struct text *text, const char *format,
                                                             ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written =
        vsnprintf(text->bytes + text->length, sizeof text->bytes - text->length, format, arguments);
    va_end(arguments);
    if (written < 0 || (size_t)written >= sizeof text->bytes - text->length) {
        (void)fprintf(stderr, "the vectors do not fit\n");
        exit(EXIT_FAILURE);
    }
    text->length += (size_t)written;
}

static inline void put_hex(struct text *text, const char *name, const void *bytes, size_t length)
{
    char *hex = malloc(2 * length + 1);
    text_hex(bytes, length, hex);
    put(text, "%s: %s\n", name, hex);
    free(hex);
}

/* ---- fields of a body, by the schema's descriptors ---- */

static inline void put_message(struct text *text, const char *path,
                               const ProtobufCMessage *message);

static inline const void *at_offset(const ProtobufCMessage *message, size_t offset)
{
    return (const uint8_t *)message + offset;
}

static inline bool is_present(const ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field, const void *value)
{
    if (field->label == PROTOBUF_C_LABEL_REQUIRED) {
        return true;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return *(const void *const *)value != NULL;
    }
    return *(const protobuf_c_boolean *)at_offset(message, field->quantifier_offset) != 0;
}

static inline void put_value(struct text *text, const char *path,
                             const ProtobufCFieldDescriptor *field, const void *value)
{
    char name[256];
    (void)snprintf(name, sizeof name, "  %s", path);
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        put(text, "%s: %s\n", name, *(const protobuf_c_boolean *)value != 0 ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_UINT32:
        put(text, "%s: %" PRIu32 "\n", name, *(const uint32_t *)value);
        break;
    case PROTOBUF_C_TYPE_SINT32:
        put(text, "%s: %" PRId32 "\n", name, *(const int32_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT64:
        put(text, "%s: %" PRIu64 "\n", name, *(const uint64_t *)value);
        break;
    case PROTOBUF_C_TYPE_SINT64:
        put(text, "%s: %" PRId64 "\n", name, *(const int64_t *)value);
        break;
    case PROTOBUF_C_TYPE_STRING:
        put(text, "%s: \"%s\"\n", name, *(char *const *)value);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        put_hex(text, name, ((const ProtobufCBinaryData *)value)->data,
                ((const ProtobufCBinaryData *)value)->len);
        break;
    default: /* messages; the schema has nothing else */
        put_message(text, path, *(const ProtobufCMessage *const *)value);
        break;
    }
}

static inline size_t value_size(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_BYTES    ? sizeof(ProtobufCBinaryData)
           : type == PROTOBUF_C_TYPE_UINT32 ? sizeof(uint32_t)
                                            : sizeof(void *);
}

static inline void put_field(struct text *text, const char *path, const ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *field)
{
    const void *value = at_offset(message, field->offset);
    char name[256];
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        (void)snprintf(name, sizeof name, "%s%s", path, field->name);
        if (is_present(message, field, value)) {
            put_value(text, name, field, value);
        }
        return;
    }
    size_t count = *(const size_t *)at_offset(message, field->quantifier_offset);
    const uint8_t *values = *(const uint8_t *const *)value;
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%s%s[%zu]", path, field->name, i);
        put_value(text, name, field, values + i * value_size(field->type));
    }
}

static inline void put_message(struct text *text, const char *path, const ProtobufCMessage *message)
{
    char prefix[256];
    (void)snprintf(prefix, sizeof prefix, "%s%s", path, path[0] == '\0' ? "" : ".");
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        put_field(text, prefix, message, &message->descriptor->fields[i]);
    }
}

/* ---- the cast ---- */

struct cast { /* keys and ids that stand in several vectors */
    struct identity *consumer;
    struct identity *provider;
    struct id128 cluster;
    struct id128 job;
    struct id128 device;
    uint8_t hash[32];
    uint8_t token[16];
    unsigned failures;
};

static inline void fill(uint8_t *bytes, size_t length, uint8_t first)
{
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(first + i);
    }
}

static inline struct cast make_cast(void)
{
    struct cast cast = {0};
    uint8_t seed[32];
    fill(seed, sizeof seed, 0x00);
    cast.consumer = identity_create(seed);
    fill(seed, sizeof seed, 0x40);
    cast.provider = identity_create(seed);
    fill(cast.cluster.bytes, 16, 0xc0);
    fill(cast.job.bytes, 16, 0x10);
    fill(cast.device.bytes, 16, 0xd0);
    fill(cast.hash, 32, 0x80);
    fill(cast.token, 16, 0xe0);
    return cast;
}

static inline ProtobufCBinaryData binary(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){length,
                                 (uint8_t *)(uintptr_t)bytes}; /* protobuf-c only reads it */
}

static inline void put_identity(struct text *text, const char *name, uint8_t first,
                                const struct identity *identity)
{
    uint8_t seed[32];
    fill(seed, sizeof seed, first);
    put(text, "[%s]\n", name);
    put_hex(text, "seed", seed, sizeof seed);
    put_hex(text, "account", identity_key(identity)->bytes, 32);
    put_hex(text, "transport", identity_transport(identity)->bytes, 32);
    put(text, "\n");
}

static inline void expect(struct cast *cast, bool is_good, const char *what)
{
    if (!is_good) {
        (void)fprintf(stderr, "%s: does not hold\n", what);
        cast->failures++;
    }
}

/* One message: head, fields, body, and all bytes. `signer` NULL: unsigned. */
static inline void put_vector(struct text *text, struct cast *cast, enum message_type type,
                              const struct identity *signer, const ProtobufCMessage *body)
{
    size_t body_length;
    uint8_t *bytes = codec_encode(body, &body_length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = 0x0102030405060708,
                                .sequence = (uint64_t)type,
                                .created_ms = 1700000000000 + (int64_t)type,
                                .body = bytes,
                                .body_length = (uint32_t)body_length};
    fill(envelope.id.bytes, 16, (uint8_t)type);
    if (signer != NULL) {
        expect(cast, identity_sign_envelope(signer, &cast->cluster, &envelope), "signing");
    }
    size_t length = envelope_size(&envelope);
    uint8_t *message = malloc(length);
    envelope_write(&envelope, message, length);

    put(text, "[%s]\n", message_name(type));
    put(text, "type: %d\nsession: %" PRIu64 "\nsequence: %" PRIu64 "\n", (int)type,
        envelope.session, envelope.sequence);
    put_hex(text, "id", envelope.id.bytes, 16);
    put(text, "created_ms: %" PRId64 "\n", envelope.created_ms);
    put(text, "signed by: %s\n",
        signer == NULL             ? "nobody"
        : signer == cast->consumer ? "consumer"
                                   : "provider");
    put(text, "fields:\n");
    put_message(text, "", body);
    put_hex(text, "body", bytes, body_length);
    put_hex(text, "message", message, length);
    put(text, "\n");

    struct envelope again;
    expect(cast, envelope_read(message, length, message_body_cap(type), &again) == ENVELOPE_OK,
           message_name(type));
    expect(cast, message_must_be_signed(type) == (signer != NULL), message_name(type));
    expect(cast,
           signer == NULL || identity_verify_envelope(identity_key(signer), &cast->cluster, &again),
           message_name(type));
    ProtobufCMessage *decoded = NULL;
    expect(cast, codec_decode(type, again.body, again.body_length, &decoded, NULL) == CODEC_OK,
           message_name(type));
    if (decoded != NULL) {
        size_t again_length;
        uint8_t *encoded = codec_encode(decoded, &again_length);
        expect(cast, again_length == body_length && memcmp(encoded, bytes, body_length) == 0,
               message_name(type));
        free(encoded);
    }
    codec_free(&decoded);
    free(message);
    free(bytes);
}

/* Shows people the first line that differs. */
static inline void wire_show_difference(const char *name, const char *expected, const char *made)
{
    size_t line = 1;
    size_t at = 0;
    for (; expected[at] != '\0' && expected[at] == made[at]; at++) {
        line += expected[at] == '\n';
    }
    (void)fprintf(stderr,
                  "%s:%zu differs from what the code makes; if the protocol was meant to change, "
                  "write it anew with --print\n",
                  name, line);
}

#endif
