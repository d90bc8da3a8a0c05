/* protocol/codec.h decodes message bodies to structs and encodes them, and checks every cap.
 *
 * codec_decode refuses bodies over the type's byte cap, and strings that are not UTF-8 or hold
 * control characters. Also refused are ids, keys and hashes of the wrong size, repeated fields over
 * their cap, and numbers out of range. Enum values outside their table are refused, and so are both
 * or neither of a one-of pair. A decoded body needs no further check of its shape. The memory of a
 * decoded body comes from one bounded arena. */
#ifndef BOURSE_PROTOCOL_CODEC_H
#define BOURSE_PROTOCOL_CODEC_H

#include "base/id.h"
#include "base/requirement.h"
#include "protocol/codec_error.h"
#include "protocol/message.h"

#include "protocol/bourse.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum codec_status {
    CODEC_OK,
    CODEC_UNKNOWN_TYPE,
    CODEC_TOO_LARGE,
    CODEC_MALFORMED,
    CODEC_OUT_OF_MEMORY
};

/* Decodes the body of a message of `type` (`body` may be NULL when `length` is 0). On CODEC_OK,
 * *ret_body is a Bourse__V1__<Type> that codec_free releases. On any other status *ret_error, which
 * may be NULL, gets the fault. */
enum codec_status codec_decode(enum message_type type, const void *body, size_t length,
                               ProtobufCMessage **ret_body, struct codec_error *ret_error);
void codec_free(ProtobufCMessage **body);

/* The two functions decode an encoded Result and a Manifest, which are not envelope bodies. */
enum codec_status codec_decode_result(const void *bytes, size_t length,
                                      Bourse__V1__Result **ret_result,
                                      struct codec_error *ret_error);
enum codec_status codec_decode_manifest(const void *bytes, size_t length,
                                        Bourse__V1__Manifest **ret_manifest,
                                        struct codec_error *ret_error);
void codec_result_free(Bourse__V1__Result **self);
void codec_manifest_free(Bourse__V1__Manifest **self);

/* Encodes any body into malloc'ed memory that the caller frees. Returns NULL when memory is
 * short. */
uint8_t *codec_encode(const ProtobufCMessage *body, size_t *ret_length);
/* Encodes into `ret_bytes`, which has room for protobuf_c_message_get_packed_size bytes. The
 * bytes of the field that points to `hole` are not read: the caller writes them at the returned
 * place. Returns NULL when no field points to `hole`. The function is for data that is too large
 * to copy. */
uint8_t *codec_encode_around(const ProtobufCMessage *body, const uint8_t *hole, uint8_t *ret_bytes);

/* Converts a requirement from its wire form, which has passed codec_decode. Returns false when the
 * postfix tree is not well formed. */
bool codec_requirement_from_wire(const Bourse__V1__Requirement *wire,
                                 struct requirement *ret_requirement);
/* Allocates the wire form; codec_requirement_free frees it. Returns NULL when memory is short. */
Bourse__V1__Requirement *codec_requirement_to_wire(const struct requirement *requirement);
void codec_requirement_free(Bourse__V1__Requirement **self);
void codec_attribute_from_wire(const Bourse__V1__Attribute *wire, struct attribute *ret_attribute);

/* The functions convert byte fields of fixed size; codec_decode has checked the size. */
struct id128 codec_id(ProtobufCBinaryData data);
struct key32 codec_key(ProtobufCBinaryData data);
struct hash32 codec_hash(ProtobufCBinaryData data);

#endif
