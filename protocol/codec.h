/* protocol/codec.h - message bodies to structs and back, with every cap checked.
 *
 * codec_decode refuses, before and after unpacking: bodies over the type's byte cap, strings that
 * are not UTF-8 or hold control characters, ids, keys and hashes of the wrong size, repeated fields
 * over their cap, numbers out of range, enum values outside their table, both or neither of a
 * one-of pair. What passes can be used without another check of shape. Memory of a decoded body
 * comes from one bounded arena. Pure but for malloc. */
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

/* Decodes the body of a message of `type` (`body` may be NULL when `length` is 0). On OK, *ret_body
 * is a Bourse__V1__<Type> that codec_free releases. On any other status *ret_error says what was
 * wrong (it may be NULL). */
enum codec_status codec_decode(enum message_type type, const void *body, size_t length,
                               ProtobufCMessage **ret_body, struct codec_error *ret_error);
void codec_free(ProtobufCMessage **body);

/* The same for messages that are not envelope bodies: an encoded Result, a Manifest. */
enum codec_status codec_decode_result(const void *bytes, size_t length,
                                      Bourse__V1__Result **ret_result,
                                      struct codec_error *ret_error);
enum codec_status codec_decode_manifest(const void *bytes, size_t length,
                                        Bourse__V1__Manifest **ret_manifest,
                                        struct codec_error *ret_error);
void codec_result_free(Bourse__V1__Result **self);
void codec_manifest_free(Bourse__V1__Manifest **self);

/* Encodes any body into malloc'ed memory that the caller frees; NULL when out of memory. */
uint8_t *codec_encode(const ProtobufCMessage *body, size_t *ret_length);
/* Encodes into `ret_bytes`, which has room for protobuf_c_message_get_packed_size of them, all but
 * the bytes of the field that points to `hole`: those are not read, and the caller writes them at
 * the place that is returned. NULL: no field points there. For data that is too large to be
 * copied. */
uint8_t *codec_encode_around(const ProtobufCMessage *body, const uint8_t *hole, uint8_t *ret_bytes);

/* Requirements and attributes between their wire form and base/requirement.h. The wire form has
 * passed codec_decode. False when the postfix tree is not well formed. */
bool codec_requirement_from_wire(const Bourse__V1__Requirement *wire,
                                 struct requirement *ret_requirement);
/* Allocates the wire form; free with codec_requirement_free. NULL when out of memory. */
Bourse__V1__Requirement *codec_requirement_to_wire(const struct requirement *requirement);
void codec_requirement_free(Bourse__V1__Requirement **self);
void codec_attribute_from_wire(const Bourse__V1__Attribute *wire, struct attribute *ret_attribute);

/* Fixed-size byte fields; the size has been checked by codec_decode. */
struct id128 codec_id(ProtobufCBinaryData data);
struct key32 codec_key(ProtobufCBinaryData data);
struct hash32 codec_hash(ProtobufCBinaryData data);

#endif
