#include "protocol/codec.h"

#include "protocol/codec_check.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory of one decoded body ---- */

enum { ARENA_ALIGN = 16, ARENA_BLOCK_LEAST = 1024 };

struct block {
    struct block *next;
    size_t size; /* usable bytes behind the head */
    size_t used;
};

/* The arena lies at the start of its first block. The decoded message, which protobuf-c allocates
 * first, follows directly, so that codec_free finds the arena from the message. */
struct arena {
    struct block *blocks; /* newest first */
    size_t total;         /* usable bytes in all blocks */
    size_t cap;
    bool is_capped; /* true: an allocation did not fit under the cap */
};

static size_t aligned(size_t size)
{
    return (size + (ARENA_ALIGN - 1)) & ~(size_t)(ARENA_ALIGN - 1);
}

static size_t block_head_bytes(void)
{
    return aligned(sizeof(struct block));
}

static void *block_take(struct block *block, size_t size)
{
    void *taken = (uint8_t *)block + block_head_bytes() + block->used;
    block->used += size;
    return taken;
}

static struct block *block_create(size_t size)
{
    struct block *block = malloc(block_head_bytes() + size);
    if (block != NULL) {
        *block = (struct block){.size = size};
    }
    return block;
}

static struct arena *arena_create(size_t first_size, size_t cap)
{
    size_t size = aligned(first_size) + aligned(sizeof(struct arena));
    struct block *block = block_create(size);
    if (block == NULL) {
        return NULL;
    }
    struct arena *arena = block_take(block, aligned(sizeof *arena));
    *arena = (struct arena){.blocks = block, .total = size, .cap = cap};
    return arena;
}

static void arena_destroy(struct arena *arena)
{
    struct block *block = arena->blocks; /* the last block holds the arena itself */
    while (block != NULL) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}

static void *arena_alloc(void *context, size_t size)
{
    struct arena *arena = context;
    if (size > arena->cap) {
        arena->is_capped = true;
        return NULL;
    }
    size_t wanted = aligned(size == 0 ? 1 : size);
    struct block *block = arena->blocks;
    if (wanted <= block->size - block->used) {
        return block_take(block, wanted);
    }
    size_t grown = 2 * block->size > wanted ? 2 * block->size : wanted;
    if (grown > arena->cap - arena->total) {
        grown = wanted; /* the last block has the exact size */
    }
    if (grown > arena->cap - arena->total) {
        arena->is_capped = true;
        return NULL;
    }
    struct block *fresh = block_create(grown);
    if (fresh == NULL) {
        return NULL;
    }
    fresh->next = block;
    arena->blocks = fresh;
    arena->total += grown;
    return block_take(fresh, wanted);
}

static void arena_keep(void *context, void *pointer)
{
    (void)context; /* arena_destroy frees everything at once */
    (void)pointer;
}

static ProtobufCMessage *arena_root(struct arena *arena)
{
    return (ProtobufCMessage *)(void *)((uint8_t *)arena + aligned(sizeof *arena));
}

static struct arena *arena_of(ProtobufCMessage *root)
{
    return (struct arena *)(void *)((uint8_t *)root - aligned(sizeof(struct arena)));
}

static size_t decoded_factor(const struct shape *shape)
{
    if (shape->descriptor == &bourse__v1__dispatch__descriptor) {
        return LIMIT_DECODED_DISPATCH_FACTOR;
    }
    return shape == &codec_manifest_shape ? LIMIT_DECODED_MANIFEST_FACTOR : LIMIT_DECODED_FACTOR;
}

static size_t decoded_cap(const struct shape *shape, size_t length)
{
    /* The product does not overflow: the length is at most LIMIT_MANIFEST_BYTES. */
    size_t cap = LIMIT_DECODED_FLOOR_BYTES + length * decoded_factor(shape);
    return cap < (size_t)LIMIT_DECODED_BYTES ? cap : (size_t)LIMIT_DECODED_BYTES;
}

static enum codec_status unpack(const struct shape *shape, const uint8_t *bytes, size_t length,
                                ProtobufCMessage **ret_body, struct codec_error *ret_error)
{
    size_t first = shape->descriptor->sizeof_message + 2 * length;
    if (first < ARENA_BLOCK_LEAST) {
        first = ARENA_BLOCK_LEAST;
    }
    struct arena *arena = arena_create(first, decoded_cap(shape, length));
    if (arena == NULL) {
        return CODEC_OUT_OF_MEMORY;
    }
    ProtobufCAllocator allocator = {
        .alloc = arena_alloc, .free = arena_keep, .allocator_data = arena};
    ProtobufCMessage *body =
        protobuf_c_message_unpack(shape->descriptor, &allocator, length, bytes);
    /* The bytes passed codec_check, so memory is short or the arena's cap is reached. */
    if (body == NULL) {
        enum codec_status status = arena->is_capped ? CODEC_TOO_LARGE : CODEC_OUT_OF_MEMORY;
        ret_error->value = (int64_t)arena->total;
        ret_error->limit = (int64_t)arena->cap;
        arena_destroy(arena);
        return status;
    }
    assert(body == arena_root(arena));
    *ret_body = body;
    return CODEC_OK;
}

/* ---- decoding ---- */

static enum codec_status decode(const struct shape *shape, size_t cap, const void *bytes,
                                size_t length, ProtobufCMessage **ret_body,
                                struct codec_error *ret_error)
{
    struct codec_error ignored;
    struct codec_error *error = ret_error == NULL ? &ignored : ret_error;
    *error = (struct codec_error){0};
    if (length > cap) {
        *error = (struct codec_error){.value = length > INT64_MAX ? INT64_MAX : (int64_t)length,
                                      .limit = (int64_t)cap};
        return CODEC_TOO_LARGE;
    }
    if (!codec_check(shape, bytes, length, error)) {
        return CODEC_MALFORMED;
    }
    return unpack(shape, bytes, length, ret_body, error);
}

enum codec_status codec_decode(enum message_type type, const void *body, size_t length,
                               ProtobufCMessage **ret_body, struct codec_error *ret_error)
{
    const struct message_row *row = codec_row(type);
    if (row == NULL) {
        if (ret_error != NULL) {
            *ret_error = (struct codec_error){.value = (int64_t)type};
        }
        return CODEC_UNKNOWN_TYPE;
    }
    return decode(row->shape, row->body_cap, body, length, ret_body, ret_error);
}

void codec_free(ProtobufCMessage **body)
{
    if (*body != NULL) {
        arena_destroy(arena_of(*body));
        *body = NULL;
    }
}

enum codec_status codec_decode_result(const void *bytes, size_t length,
                                      Bourse__V1__Result **ret_result,
                                      struct codec_error *ret_error)
{
    ProtobufCMessage *body;
    enum codec_status status =
        decode(&codec_result_shape, LIMIT_RESULT_BYTES, bytes, length, &body, ret_error);
    if (status == CODEC_OK) {
        *ret_result = (Bourse__V1__Result *)(void *)body;
    }
    return status;
}

void codec_result_free(Bourse__V1__Result **self)
{
    if (*self != NULL) {
        arena_destroy(arena_of(&(*self)->base));
        *self = NULL;
    }
}

enum codec_status codec_decode_manifest(const void *bytes, size_t length,
                                        Bourse__V1__Manifest **ret_manifest,
                                        struct codec_error *ret_error)
{
    ProtobufCMessage *body;
    enum codec_status status =
        decode(&codec_manifest_shape, LIMIT_MANIFEST_BYTES, bytes, length, &body, ret_error);
    if (status == CODEC_OK) {
        *ret_manifest = (Bourse__V1__Manifest *)(void *)body;
    }
    return status;
}

void codec_manifest_free(Bourse__V1__Manifest **self)
{
    if (*self != NULL) {
        arena_destroy(arena_of(&(*self)->base));
        *self = NULL;
    }
}

uint8_t *codec_encode(const ProtobufCMessage *body, size_t *ret_length)
{
    size_t length = protobuf_c_message_get_packed_size(body);
    uint8_t *bytes = malloc(length == 0 ? 1 : length);
    if (bytes == NULL) {
        return NULL;
    }
    size_t packed = protobuf_c_message_pack(body, bytes);
    assert(packed == length);
    *ret_length = packed;
    return bytes;
}

struct around {
    ProtobufCBuffer base; /* first, because protobuf-c knows only this part */
    const uint8_t *hole;
    uint8_t *at;
    uint8_t *place;
};

static void append_around(ProtobufCBuffer *buffer, size_t length, const uint8_t *bytes)
{
    struct around *around = (struct around *)(void *)buffer;
    if (bytes == around->hole) {
        around->place = around->at;
    } else if (length > 0) {
        memcpy(around->at, bytes, length);
    }
    around->at += length;
}

uint8_t *codec_encode_around(const ProtobufCMessage *body, const uint8_t *hole, uint8_t *ret_bytes)
{
    struct around around = {.base = {.append = append_around}, .hole = hole, .at = ret_bytes};
    assert(hole != NULL);
    size_t packed = protobuf_c_message_pack_to_buffer(body, &around.base);
    assert(packed == (size_t)(around.at - ret_bytes));
    return around.place;
}

/* ---- fields of fixed size ---- */

struct id128 codec_id(ProtobufCBinaryData data)
{
    struct id128 id;
    assert(data.len == sizeof id.bytes);
    memcpy(id.bytes, data.data, sizeof id.bytes);
    return id;
}

struct key32 codec_key(ProtobufCBinaryData data)
{
    struct key32 key;
    assert(data.len == sizeof key.bytes);
    memcpy(key.bytes, data.data, sizeof key.bytes);
    return key;
}

struct hash32 codec_hash(ProtobufCBinaryData data)
{
    struct hash32 hash;
    assert(data.len == sizeof hash.bytes);
    memcpy(hash.bytes, data.data, sizeof hash.bytes);
    return hash;
}
