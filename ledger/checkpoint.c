#include "ledger/checkpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "base/text.h"

enum {
    ALGORITHM_ED25519 = 0x01, /* C2SP signed-note: signature type */
    KEY_ID_SIZE = 4,
    KEY_TEXT_SIZE = 45,  /* base64 of 1 + 32 bytes, and the NUL */
    HASH_TEXT_SIZE = 45, /* base64 of 32 bytes, and the NUL */
    SIGNED_SIZE = KEY_ID_SIZE + 64,
    SIGNED_TEXT_SIZE = 93, /* base64 of SIGNED_SIZE bytes, and the NUL */
};

/* A signature line begins with an em dash and a space. */
static const char signature_mark[] = "\xe2\x80\x94 ";

bool checkpoint_origin_valid(const char *origin)
{
    size_t length = strnlen(origin, CHECKPOINT_ORIGIN_SIZE);
    if (length == 0 || length == CHECKPOINT_ORIGIN_SIZE) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (origin[i] <= ' ' || origin[i] > '~' || origin[i] == '+') {
            return false;
        }
    }
    return true;
}

static void key_id_of(const char *origin, const struct key32 *key, uint8_t ret_id[KEY_ID_SIZE])
{
    static const uint8_t separator[] = {'\n', ALGORITHM_ED25519};
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, origin, strlen(origin));
    sha256_add(&hash, separator, sizeof separator);
    sha256_add(&hash, key->bytes, sizeof key->bytes);
    struct hash32 digest = sha256_end(&hash);
    memcpy(ret_id, digest.bytes, KEY_ID_SIZE);
}

/* Writes the signed text: origin, size and root, each with its newline. */
static size_t write_body(const struct checkpoint *checkpoint, char ret_text[CHECKPOINT_TEXT_SIZE])
{
    char root[HASH_TEXT_SIZE];
    text_base64(checkpoint->root.bytes, sizeof checkpoint->root.bytes, root);
    int length = snprintf(ret_text, CHECKPOINT_TEXT_SIZE, "%s\n%" PRIu64 "\n%s\n",
                          checkpoint->origin, checkpoint->size, root);
    assert(length > 0 && length < CHECKPOINT_TEXT_SIZE);
    return (size_t)length;
}

/* Appends the empty line and the signature line to a body of `length`. */
static size_t write_signature(const char *origin, const struct key32 *key,
                              const struct signature64 *signature, char text[CHECKPOINT_TEXT_SIZE],
                              size_t length)
{
    uint8_t bytes[SIGNED_SIZE];
    char encoded[SIGNED_TEXT_SIZE];
    key_id_of(origin, key, bytes);
    memcpy(bytes + KEY_ID_SIZE, signature->bytes, sizeof signature->bytes);
    text_base64(bytes, sizeof bytes, encoded);
    int more = snprintf(text + length, CHECKPOINT_TEXT_SIZE - length, "\n%s%s %s\n", signature_mark,
                        origin, encoded);
    assert(more > 0 && (size_t)more < CHECKPOINT_TEXT_SIZE - length);
    return length + (size_t)more;
}

size_t checkpoint_write(const struct checkpoint *checkpoint, const struct key32 *key,
                        checkpoint_sign *sign, void *context, char ret_text[CHECKPOINT_TEXT_SIZE])
{
    assert(checkpoint_origin_valid(checkpoint->origin));
    size_t length = write_body(checkpoint, ret_text);
    struct signature64 signature = sign(context, ret_text, length);
    return write_signature(checkpoint->origin, key, &signature, ret_text, length);
}

/* ---- parsing: read the fields, write them again, and compare every byte */

struct lines {
    const char *text;
    size_t left;
};

static bool next_line(struct lines *lines, const char **ret_line, size_t *ret_length)
{
    const char *end = memchr(lines->text, '\n', lines->left);
    if (end == NULL) {
        return false;
    }
    *ret_line = lines->text;
    *ret_length = (size_t)(end - lines->text);
    lines->left -= *ret_length + 1;
    lines->text = end + 1;
    return true;
}

static bool read_origin(const char *text, size_t length, char ret_origin[CHECKPOINT_ORIGIN_SIZE])
{
    if (length >= CHECKPOINT_ORIGIN_SIZE || memchr(text, '\0', length) != NULL) {
        return false;
    }
    memcpy(ret_origin, text, length);
    ret_origin[length] = '\0';
    return checkpoint_origin_valid(ret_origin);
}

/* Leading zeros pass here; the comparison with the rewritten text refuses them. */
static bool read_size(const char *text, size_t length, uint64_t *ret_size)
{
    uint64_t size = 0;
    if (length == 0) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (text[i] < '0' || text[i] > '9' || size > (UINT64_MAX - digit) / 10) {
            return false;
        }
        size = size * 10 + digit;
    }
    *ret_size = size;
    return true;
}

static bool read_signature(const char *line, size_t length, const char *origin,
                           struct signature64 *ret_signature)
{
    size_t before = strlen(signature_mark) + strlen(origin) + 1;
    uint8_t bytes[SIGNED_SIZE];
    size_t count;
    if (length <= before ||
        !text_unbase64(line + before, length - before, bytes, sizeof bytes, &count) ||
        count != sizeof bytes) {
        return false;
    }
    memcpy(ret_signature->bytes, bytes + KEY_ID_SIZE, sizeof ret_signature->bytes);
    return true;
}

static bool parse(const char *text, size_t length, struct checkpoint *ret_checkpoint,
                  struct signature64 *ret_signature)
{
    struct lines lines = {.text = text, .left = length};
    const char *line;
    size_t size;
    size_t count;
    if (!next_line(&lines, &line, &size) || !read_origin(line, size, ret_checkpoint->origin)) {
        return false;
    }
    if (!next_line(&lines, &line, &size) || !read_size(line, size, &ret_checkpoint->size)) {
        return false;
    }
    if (!next_line(&lines, &line, &size) ||
        !text_unbase64(line, size, ret_checkpoint->root.bytes, sizeof ret_checkpoint->root.bytes,
                       &count) ||
        count != sizeof ret_checkpoint->root.bytes) {
        return false;
    }
    if (!next_line(&lines, &line, &size) || size != 0) {
        return false;
    }
    return next_line(&lines, &line, &size) &&
           read_signature(line, size, ret_checkpoint->origin, ret_signature) && lines.left == 0;
}

bool checkpoint_read(const char *text, size_t length, const struct key32 *key,
                     struct checkpoint *ret_checkpoint)
{
    struct checkpoint checkpoint = {.size = 0};
    struct signature64 signature;
    if (length >= CHECKPOINT_TEXT_SIZE || !parse(text, length, &checkpoint, &signature)) {
        return false;
    }
    char again[CHECKPOINT_TEXT_SIZE];
    size_t body_length = write_body(&checkpoint, again);
    size_t again_length = write_signature(checkpoint.origin, key, &signature, again, body_length);
    if (again_length != length || memcmp(again, text, length) != 0) {
        return false;
    }
    if (crypto_sign_verify_detached(signature.bytes, (const unsigned char *)text, body_length,
                                    key->bytes) != 0) {
        return false;
    }
    *ret_checkpoint = checkpoint;
    return true;
}

/* ---- verifier keys */

void checkpoint_verifier(const char *origin, const struct key32 *key,
                         char ret_text[CHECKPOINT_TEXT_SIZE])
{
    assert(checkpoint_origin_valid(origin));
    uint8_t id[KEY_ID_SIZE];
    char id_text[2 * KEY_ID_SIZE + 1];
    uint8_t typed[1 + sizeof key->bytes] = {ALGORITHM_ED25519};
    char key_text[KEY_TEXT_SIZE];
    key_id_of(origin, key, id);
    text_hex(id, sizeof id, id_text);
    memcpy(typed + 1, key->bytes, sizeof key->bytes);
    text_base64(typed, sizeof typed, key_text);
    int length = snprintf(ret_text, CHECKPOINT_TEXT_SIZE, "%s+%s+%s", origin, id_text, key_text);
    assert(length > 0 && length < CHECKPOINT_TEXT_SIZE);
}

bool checkpoint_verifier_read(const char *text, char ret_origin[CHECKPOINT_ORIGIN_SIZE],
                              struct key32 *ret_key)
{
    const char *plus = strchr(text, '+');
    char origin[CHECKPOINT_ORIGIN_SIZE];
    uint8_t typed[1 + sizeof ret_key->bytes];
    size_t count;
    size_t key_at = 1 + 2 * KEY_ID_SIZE + 1; /* behind the plus */
    if (plus == NULL || !read_origin(text, (size_t)(plus - text), origin) ||
        strlen(plus) < key_at) {
        return false;
    }
    const char *encoded = plus + key_at;
    if (!text_unbase64(encoded, strlen(encoded), typed, sizeof typed, &count) ||
        count != sizeof typed) {
        return false;
    }
    struct key32 key;
    memcpy(key.bytes, typed + 1, sizeof key.bytes);
    char again[CHECKPOINT_TEXT_SIZE];
    checkpoint_verifier(origin, &key, again);
    if (strcmp(again, text) != 0) {
        return false;
    }
    memcpy(ret_origin, origin, sizeof origin);
    *ret_key = key;
    return true;
}
