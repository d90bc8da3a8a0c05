#include "ledger/receipt.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/sha256.h"
#include "base/text.h"

enum {
    HASH_TEXT_LENGTH = 44, /* base64 of 32 bytes */
    EXTRA_MAX = 18 + 16 + 2 + RECORD_LEAF_MAX + 4 + RECEIPT_RESULT_MAX + 64 + 2 +
                RECEIPT_BATCH_PATH_MAX * 32,
    EXTRA_TEXT_MAX = (EXTRA_MAX + 2) / 3 * 4 + 1,
};

static const char title[] = "c2sp.org/tlog-proof@v1\n";
static const char extra_domain[] = "bourse/receipt/v1"; /* written with its NUL */
/* The provider's signature has this domain, with its NUL (protocol/results.h). */
static const char batch_domain[] = "bourse/results/v1";

static_assert(sizeof extra_domain == 18, "EXTRA_MAX counts it");
/* The scratch memory holds the decoded extra bytes and the checkpoint. */
static_assert(EXTRA_MAX + CHECKPOINT_TEXT_SIZE <= RECEIPT_TEXT_MAX, "scratch suffices");
static_assert(sizeof title + 6 + EXTRA_TEXT_MAX + 6 + 20 + 1 +
                      MERKLE_LEVELS_MAX * (HASH_TEXT_LENGTH + 1) + 1 + CHECKPOINT_TEXT_SIZE <=
                  RECEIPT_TEXT_MAX,
              "every receipt fits");

const char *receipt_status_text(enum receipt_status status)
{
    switch (status) {
    case RECEIPT_OK:
        return "the receipt is valid";
    case RECEIPT_MALFORMED:
        return "not a receipt, or its text was changed";
    case RECEIPT_BAD_CHECKPOINT:
        return "the checkpoint is not signed by this log key";
    case RECEIPT_NOT_INCLUDED:
        return "the proof does not lead to the checkpoint's root";
    case RECEIPT_WRONG_RESULT:
        return "the result is not the one that was logged";
    case RECEIPT_BAD_SIGNATURE:
        return "the result is not signed by the provider that was logged";
    }
    return "unknown";
}

/* ---- writing */

static size_t write_extra(const struct receipt *receipt, uint8_t ret_bytes[EXTRA_MAX])
{
    assert(receipt->result_length <= RECEIPT_RESULT_MAX);
    assert(receipt->batch_path_length <= RECEIPT_BATCH_PATH_MAX);
    uint8_t leaf[RECORD_LEAF_MAX];
    size_t leaf_length = record_leaf(&receipt->leaf, leaf);
    struct writer out = writer_over(ret_bytes, EXTRA_MAX);
    writer_bytes(&out, extra_domain, sizeof extra_domain);
    writer_bytes(&out, receipt->cluster.bytes, sizeof receipt->cluster.bytes);
    writer_u16(&out, (uint16_t)leaf_length);
    writer_bytes(&out, leaf, leaf_length);
    writer_u32(&out, (uint32_t)receipt->result_length);
    writer_bytes(&out, receipt->result, receipt->result_length);
    writer_bytes(&out, receipt->signature.bytes, sizeof receipt->signature.bytes);
    writer_u8(&out, receipt->batch_path_length);
    writer_u8(&out, receipt->batch_sides);
    writer_bytes(&out, receipt->batch_path,
                 receipt->batch_path_length * sizeof receipt->batch_path[0]);
    assert(!out.failed);
    return out.position;
}

static void write_text(struct writer *out, const char *text)
{
    writer_bytes(out, text, strlen(text));
}

static void write_base64(struct writer *out, const void *bytes, size_t length)
{
    size_t size = text_base64_size(length);
    if (out->failed || size + 1 > out->capacity - out->position) {
        out->failed = true;
        return;
    }
    text_base64(bytes, length, (char *)out->bytes + out->position);
    out->position += size;
}

size_t receipt_write(const struct receipt *receipt, char *ret_text, size_t capacity)
{
    uint8_t *extra = malloc(EXTRA_MAX);
    if (extra == NULL) {
        return 0;
    }
    size_t extra_length = write_extra(receipt, extra);
    struct writer out = writer_over(ret_text, capacity);
    write_text(&out, title);
    write_text(&out, "extra ");
    write_base64(&out, extra, extra_length);
    free(extra);
    char index[32];
    /* The text always fits. */
    (void)snprintf(index, sizeof index, "\nindex %" PRIu64 "\n", receipt->leaf_index);
    write_text(&out, index);
    for (size_t i = 0; i < receipt->path_length; i++) {
        write_base64(&out, receipt->path[i].bytes, sizeof receipt->path[i].bytes);
        write_text(&out, "\n");
    }
    write_text(&out, "\n");
    write_text(&out, receipt->checkpoint);
    writer_u8(&out, 0);
    return out.failed ? 0 : out.position - 1;
}

/* ---- reading: strict, so that each receipt has one text */

struct scan {
    const char *text;
    size_t left;
};

static bool skip_text(struct scan *scan, const char *expected)
{
    size_t length = strlen(expected);
    if (scan->left < length || memcmp(scan->text, expected, length) != 0) {
        return false;
    }
    scan->text += length;
    scan->left -= length;
    return true;
}

/* Reads the rest of the line and skips its newline. */
static bool take_line(struct scan *scan, const char **ret_line, size_t *ret_length)
{
    const char *end = memchr(scan->text, '\n', scan->left);
    if (end == NULL) {
        return false;
    }
    *ret_line = scan->text;
    *ret_length = (size_t)(end - scan->text);
    scan->text = end + 1;
    scan->left -= *ret_length + 1;
    return true;
}

static bool read_index(const char *line, size_t length, uint64_t *ret_index)
{
    char again[32];
    uint64_t index = 0;
    for (size_t i = 0; i < length; i++) {
        uint64_t digit = (uint64_t)(line[i] - '0');
        if (line[i] < '0' || line[i] > '9' || index > (UINT64_MAX - digit) / 10) {
            return false;
        }
        index = index * 10 + digit;
    }
    int size = snprintf(again, sizeof again, "%" PRIu64, index);
    if (size < 0 || (size_t)size != length || memcmp(again, line, length) != 0) {
        return false;
    }
    *ret_index = index;
    return true;
}

static bool read_path(struct scan *scan, struct receipt *receipt)
{
    const char *line;
    size_t length;
    receipt->path_length = 0;
    while (take_line(scan, &line, &length)) {
        if (length == 0) {
            return true;
        }
        size_t count;
        if (receipt->path_length == MERKLE_LEVELS_MAX ||
            !text_unbase64(line, length, receipt->path[receipt->path_length].bytes, 32, &count) ||
            count != 32) {
            return false;
        }
        receipt->path_length++;
    }
    return false;
}

/* Every field has one encoding, and record_read_result accepts no spare bytes in the leaf. */
static bool read_extra(const uint8_t *bytes, size_t length, struct receipt *receipt)
{
    struct reader in = reader_over(bytes, length);
    const uint8_t *domain = reader_view(&in, sizeof extra_domain);
    if (domain == NULL || memcmp(domain, extra_domain, sizeof extra_domain) != 0) {
        return false;
    }
    reader_bytes(&in, receipt->cluster.bytes, sizeof receipt->cluster.bytes);
    size_t leaf_length = reader_u16(&in);
    const uint8_t *leaf = reader_view(&in, leaf_length);
    if (leaf == NULL || !record_read_result(leaf, leaf_length, &receipt->leaf)) {
        return false;
    }
    receipt->result_length = reader_u32(&in);
    receipt->result = reader_view(&in, receipt->result_length);
    reader_bytes(&in, receipt->signature.bytes, sizeof receipt->signature.bytes);
    receipt->batch_path_length = reader_u8(&in);
    receipt->batch_sides = reader_u8(&in);
    if (in.failed || receipt->result_length > RECEIPT_RESULT_MAX ||
        receipt->batch_path_length > RECEIPT_BATCH_PATH_MAX) {
        return false;
    }
    reader_bytes(&in, receipt->batch_path,
                 receipt->batch_path_length * sizeof receipt->batch_path[0]);
    return reader_finished(&in) && receipt->batch_sides >> receipt->batch_path_length == 0;
}

static bool read_text(const char *text, size_t length, uint8_t *scratch,
                      struct receipt *ret_receipt)
{
    struct scan scan = {.text = text, .left = length};
    const char *line;
    size_t size;
    size_t extra_length;
    if (!skip_text(&scan, title) || !skip_text(&scan, "extra ") ||
        !take_line(&scan, &line, &size) ||
        !text_unbase64(line, size, scratch, EXTRA_MAX, &extra_length) ||
        !read_extra(scratch, extra_length, ret_receipt)) {
        return false;
    }
    if (!skip_text(&scan, "index ") || !take_line(&scan, &line, &size) ||
        !read_index(line, size, &ret_receipt->leaf_index) || !read_path(&scan, ret_receipt)) {
        return false;
    }
    if (scan.left >= CHECKPOINT_TEXT_SIZE) {
        return false;
    }
    char *note = (char *)scratch + EXTRA_MAX;
    memcpy(note, scan.text, scan.left);
    note[scan.left] = '\0';
    ret_receipt->checkpoint = note;
    return strlen(note) == scan.left;
}

/* ---- checking */

size_t receipt_shared_path(const struct hash32 *path, size_t length, const struct hash32 *other,
                           size_t other_length)
{
    size_t shared = 0;
    while (shared < length && shared < other_length &&
           hash32_equal(&path[length - 1 - shared], &other[other_length - 1 - shared])) {
        shared++;
    }
    return shared;
}

static enum receipt_status check_inclusion(const struct receipt *receipt,
                                           const struct checkpoint *checkpoint)
{
    uint8_t leaf[RECORD_LEAF_MAX];
    size_t leaf_length = record_leaf(&receipt->leaf, leaf);
    struct hash32 leaf_hash = merkle_leaf_hash(leaf, leaf_length);
    bool included = merkle_verify_inclusion(checkpoint->size, receipt->leaf_index, &leaf_hash,
                                            receipt->path, receipt->path_length, &checkpoint->root);
    return included ? RECEIPT_OK : RECEIPT_NOT_INCLUDED;
}

static enum receipt_status check_result(const struct receipt *receipt)
{
    struct hash32 hash = sha256_of(receipt->result, receipt->result_length);
    return hash32_equal(&hash, &receipt->leaf.hash) ? RECEIPT_OK : RECEIPT_WRONG_RESULT;
}

static struct hash32 batch_root(const struct receipt *receipt)
{
    struct hash32 hash = merkle_leaf_hash(receipt->result, receipt->result_length);
    for (unsigned i = 0; i < receipt->batch_path_length; i++) {
        bool is_left = (receipt->batch_sides >> i & 1) != 0;
        hash = is_left ? merkle_node_hash(&receipt->batch_path[i], &hash)
                       : merkle_node_hash(&hash, &receipt->batch_path[i]);
    }
    return hash;
}

static bool is_known_batch(const struct receipt *receipt, const struct hash32 *root,
                           const struct receipt_known *known)
{
    return known->has_batch && hash32_equal(root, &known->root) &&
           id128_equal(&receipt->cluster, &known->cluster) &&
           key32_equal(&receipt->leaf.provider, &known->provider) &&
           memcmp(receipt->signature.bytes, known->signature.bytes,
                  sizeof known->signature.bytes) == 0;
}

static enum receipt_status check_signature(const struct receipt *receipt,
                                           struct receipt_known *known)
{
    const struct hash32 root = batch_root(receipt);
    if (is_known_batch(receipt, &root, known)) {
        return RECEIPT_OK;
    }
    uint8_t message[sizeof batch_domain + sizeof receipt->cluster.bytes + sizeof root.bytes];
    struct writer out = writer_over(message, sizeof message);
    writer_bytes(&out, batch_domain, sizeof batch_domain);
    writer_bytes(&out, receipt->cluster.bytes, sizeof receipt->cluster.bytes);
    writer_bytes(&out, root.bytes, sizeof root.bytes);
    assert(!out.failed && out.position == sizeof message);
    if (crypto_sign_verify_detached(receipt->signature.bytes, message, sizeof message,
                                    receipt->leaf.provider.bytes) != 0) {
        return RECEIPT_BAD_SIGNATURE;
    }
    known->has_batch = true;
    known->root = root;
    known->cluster = receipt->cluster;
    known->provider = receipt->leaf.provider;
    known->signature = receipt->signature;
    return RECEIPT_OK;
}

static bool check_checkpoint(const char *note, const char *origin, const struct key32 *log_key,
                             struct receipt_known *known)
{
    if (known->has_checkpoint && strcmp(known->note, note) == 0) {
        return true;
    }
    struct checkpoint checkpoint;
    const size_t length = strlen(note);
    if (length >= sizeof known->note || !checkpoint_read(note, length, log_key, &checkpoint) ||
        (origin != NULL && strcmp(origin, checkpoint.origin) != 0)) {
        return false;
    }
    known->has_checkpoint = true;
    known->checkpoint = checkpoint;
    memcpy(known->note, note, length + 1);
    return true;
}

enum receipt_status receipt_check(const struct receipt *receipt, const char *origin,
                                  const struct key32 *log_key, struct receipt_known *known)
{
    if (!check_checkpoint(receipt->checkpoint, origin, log_key, known)) {
        return RECEIPT_BAD_CHECKPOINT;
    }
    enum receipt_status status = check_inclusion(receipt, &known->checkpoint);
    if (status == RECEIPT_OK) {
        status = check_result(receipt);
    }
    return status == RECEIPT_OK ? check_signature(receipt, known) : status;
}

enum receipt_status receipt_verify(const char *text, size_t length, const char *origin,
                                   const struct key32 *log_key, void *scratch,
                                   size_t scratch_capacity, struct receipt *ret_receipt)
{
    struct receipt receipt = {.path_length = 0};
    struct receipt_known known = {.has_checkpoint = false};
    if (scratch_capacity < RECEIPT_TEXT_MAX || length >= RECEIPT_TEXT_MAX ||
        !read_text(text, length, scratch, &receipt)) {
        return RECEIPT_MALFORMED;
    }
    enum receipt_status status = receipt_check(&receipt, origin, log_key, &known);
    if (status == RECEIPT_OK) {
        *ret_receipt = receipt;
    }
    return status;
}
