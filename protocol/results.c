#include "protocol/results.h"

#include "base/sha256.h"

#include <assert.h>
#include <string.h>

static const char domain[] = "bourse/results/v1"; /* signed with its NUL */

enum { SIGNED_BYTES = sizeof domain + 16 + 32 };

struct hash32 results_leaf(const void *result, size_t length)
{
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, "\x00", 1);
    sha256_add(&hash, result, length);
    return sha256_end(&hash);
}

static struct hash32 parent_of(const struct hash32 *left, const struct hash32 *right)
{
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, "\x01", 1);
    sha256_add(&hash, left->bytes, sizeof left->bytes);
    sha256_add(&hash, right->bytes, sizeof right->bytes);
    return sha256_end(&hash);
}

/* Returns the largest power of two below `count` (>= 2): RFC 6962 splits there. */
static size_t split_of(size_t count)
{
    size_t split = 1;
    while (split * 2 < count) {
        split *= 2;
    }
    return split;
}

struct hash32 results_root(const struct hash32 *leaves, size_t count)
{
    assert(count >= 1 && count <= LIMIT_RESULTS);
    if (count == 1) {
        return leaves[0];
    }
    size_t split = split_of(count);
    struct hash32 left = results_root(leaves, split);
    struct hash32 right = results_root(leaves + split, count - split);
    return parent_of(&left, &right);
}

static void signed_bytes(const struct id128 *cluster, const struct hash32 *root,
                         uint8_t ret_bytes[SIGNED_BYTES])
{
    memcpy(ret_bytes, domain, sizeof domain);
    memcpy(ret_bytes + sizeof domain, cluster->bytes, sizeof cluster->bytes);
    memcpy(ret_bytes + sizeof domain + sizeof cluster->bytes, root->bytes, sizeof root->bytes);
}

struct signature64 results_sign(const struct identity *identity, const struct id128 *cluster,
                                const struct hash32 *root)
{
    uint8_t bytes[SIGNED_BYTES];
    signed_bytes(cluster, root, bytes);
    return identity_sign(identity, bytes, sizeof bytes);
}

bool results_verify(const struct key32 *provider, const struct id128 *cluster,
                    const struct hash32 *root, const struct signature64 *signature)
{
    uint8_t bytes[SIGNED_BYTES];
    signed_bytes(cluster, root, bytes);
    return identity_verify(provider, bytes, sizeof bytes, signature);
}

/* ---------------------------------------------------------------- blobs of a result */

struct field { /* one field of an encoded message */
    uint64_t number;
    const uint8_t *bytes; /* the bytes of a field with a length; else NULL */
    size_t length;
};

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* Reads the next field. Returns false at the end, or for bytes that are no field. */
static bool read_field(const uint8_t **at, const uint8_t *end, struct field *ret_field)
{
    enum { VARINT = 0, EIGHT_BYTES = 1, BYTES = 2, FOUR_BYTES = 5 };
    uint64_t key;
    uint64_t length = 0;
    if (!read_varint(at, end, &key)) {
        return false;
    }
    switch (key & 7) {
    case VARINT:
        *ret_field = (struct field){.number = key >> 3};
        return read_varint(at, end, &length);
    case EIGHT_BYTES:
        length = 8;
        break;
    case FOUR_BYTES:
        length = 4;
        break;
    case BYTES:
        if (!read_varint(at, end, &length)) {
            return false;
        }
        break;
    default:
        return false;
    }
    if (length > (uint64_t)(end - *at)) {
        return false;
    }
    const bool has_bytes = (key & 7) == BYTES;
    *ret_field = (struct field){.number = key >> 3,
                                .bytes = has_bytes ? *at : NULL,
                                .length = has_bytes ? (size_t)length : 0};
    *at += length;
    return true;
}

/* Adds the hash of an encoded Output. */
static size_t add_output(const struct field *output, struct hash32 *ret_hashes, size_t count)
{
    const uint8_t *at = output->bytes;
    struct field field;
    while (at != NULL && read_field(&at, output->bytes + output->length, &field)) {
        if (field.number == 2 && field.length == sizeof(struct hash32) &&
            count < RESULTS_BLOBS_MAX) {
            memcpy(ret_hashes[count++].bytes, field.bytes, field.length);
        }
    }
    return count;
}

static size_t add_saved(const struct field *saved, struct hash32 *ret_hashes, size_t count)
{
    const uint8_t *at = saved->bytes;
    struct field field;
    while (at != NULL && read_field(&at, saved->bytes + saved->length, &field)) {
        count = field.number == 1 ? add_output(&field, ret_hashes, count) : count;
    }
    return count;
}

size_t results_blobs(const uint8_t *result, size_t length, unsigned which,
                     struct hash32 ret_hashes[RESULTS_BLOBS_MAX])
{
    enum { OUTPUT = 15, STANDARD_OUTPUT = 16, STANDARD_ERROR = 17, SAVED = 24 };
    const uint8_t *at = result;
    struct field field;
    size_t count = 0;
    while (length > 0 && read_field(&at, result + length, &field)) {
        if ((field.number == OUTPUT && (which & RESULTS_OUTPUTS) != 0) ||
            ((field.number == STANDARD_OUTPUT || field.number == STANDARD_ERROR) &&
             (which & RESULTS_STREAMS) != 0)) {
            count = add_output(&field, ret_hashes, count);
        } else if (field.number == SAVED && (which & RESULTS_SAVED) != 0) {
            count = add_saved(&field, ret_hashes, count);
        }
    }
    return count;
}
