#include "runtime/invitation.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "base/text.h"
#include "protocol/route/endpoint.h"

#include <assert.h>
#include <string.h>

#define INVITATION_PREFIX "bourse-invite-1."
#define INVITATION_PREFIX_SEVERAL "bourse-invite-2."

enum {
    CHECKSUM_BYTES = 4,
    /* server, cluster, token, expires, three texts of at most 255 bytes, log key, checksum */
    INVITATION_ONE_BYTES_MAX = 32 + 16 + 16 + 8 + 3 * 256 + 32 + CHECKSUM_BYTES,
    /* The same, and the other brokers. */
    INVITATION_BYTES_MAX = INVITATION_ONE_BYTES_MAX + 1 + (CONTACTS_MAX - 1) * 2 * 256,
    PREFIX_BYTES = sizeof INVITATION_PREFIX - 1,
};
static_assert(sizeof INVITATION_PREFIX == sizeof INVITATION_PREFIX_SEVERAL,
              "both prefixes have the same length");
static_assert(PREFIX_BYTES + (INVITATION_BYTES_MAX + 2) / 3 * 4 < INVITATION_TEXT_SIZE,
              "the longest text has room");

static void write_text(struct writer *out, const char *text)
{
    size_t length = strlen(text);
    assert(length <= UINT8_MAX); /* the fields of struct market are no longer */
    writer_u8(out, (uint8_t)length);
    writer_bytes(out, text, length);
}

/* Reads a text for an endpoint or a name: at least one character, no control characters. */
static bool read_text(struct reader *in, char *ret_text, size_t capacity)
{
    size_t length = reader_u8(in);
    const uint8_t *bytes = reader_view(in, length);
    if (bytes == NULL || length == 0 || length >= capacity) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < ' ' || bytes[i] == 0x7f) {
            return false;
        }
    }
    memcpy(ret_text, bytes, length);
    ret_text[length] = '\0';
    return true;
}

/* Converts between base64 and base64url, which has '-' and '_' for '+' and '/', here without
 * padding. */
static void swap_letters(char *text, size_t length, char from_a, char to_a, char from_b, char to_b)
{
    for (size_t i = 0; i < length; i++) {
        text[i] = text[i] == from_a ? to_a : text[i] == from_b ? to_b : text[i];
    }
}

static bool unbase64url(const char *text, uint8_t *ret_bytes, size_t capacity, size_t *ret_length)
{
    char standard[2 * INVITATION_BYTES_MAX];
    size_t length = strlen(text);
    if (length > sizeof standard - 3 || strpbrk(text, "+/=") != NULL) {
        return false;
    }
    memcpy(standard, text, length);
    swap_letters(standard, length, '-', '+', '_', '/');
    while (length % 4 != 0) {
        standard[length++] = '=';
    }
    return text_unbase64(standard, length, ret_bytes, capacity, ret_length);
}

static bool read_tcp(struct reader *in, char *ret_text, size_t capacity)
{
    return read_text(in, ret_text, capacity) && endpoint_is_tcp(ret_text, strlen(ret_text));
}

static bool read_others(struct reader *in, struct market *market)
{
    const size_t count = reader_u8(in);
    if (count == 0 || count > CONTACTS_MAX - 1) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct contact *other = &market->others[i];
        if (!read_tcp(in, other->control, sizeof other->control) ||
            !read_tcp(in, other->blobs, sizeof other->blobs)) {
            return false;
        }
    }
    market->other_count = count;
    return true;
}

static void write_others(struct writer *out, const struct market *market)
{
    assert(market->other_count < CONTACTS_MAX);
    writer_u8(out, (uint8_t)market->other_count);
    for (size_t i = 0; i < market->other_count; i++) {
        write_text(out, market->others[i].control);
        write_text(out, market->others[i].blobs);
    }
}

/* `has_others`: the text says that the market has several brokers. */
static bool parse_invitation(const uint8_t *bytes, size_t length, bool has_others,
                             struct invitation *ret_invitation)
{
    if (length < CHECKSUM_BYTES) {
        return false;
    }
    struct hash32 hash = sha256_of(bytes, length - CHECKSUM_BYTES);
    if (memcmp(hash.bytes, bytes + length - CHECKSUM_BYTES, CHECKSUM_BYTES) != 0) {
        return false;
    }
    struct invitation invitation = {0};
    struct market *market = &invitation.market;
    struct reader in = reader_over(bytes, length - CHECKSUM_BYTES);
    reader_bytes(&in, market->server.bytes, 32);
    reader_bytes(&in, market->cluster.bytes, 16);
    reader_bytes(&in, invitation.token.bytes, 16);
    invitation.expires_ms = reader_i64(&in);
    if (!read_text(&in, market->control, sizeof market->control) ||
        !read_text(&in, market->blobs, sizeof market->blobs) ||
        !read_text(&in, market->origin, sizeof market->origin)) {
        return false;
    }
    reader_bytes(&in, market->log_key.bytes, 32);
    if (has_others && !read_others(&in, market)) {
        return false;
    }
    if (!reader_finished(&in) || invitation.expires_ms < 0) {
        return false;
    }
    *ret_invitation = invitation;
    return true;
}

bool invitation_read(const char *text, struct invitation *ret_invitation,
                     struct problem *ret_problem)
{
    const bool has_others = strncmp(text, INVITATION_PREFIX_SEVERAL, PREFIX_BYTES) == 0;
    if (!has_others && strncmp(text, INVITATION_PREFIX, PREFIX_BYTES) != 0) {
        problem_set(ret_problem, "an invitation starts with " INVITATION_PREFIX
                                 " or " INVITATION_PREFIX_SEVERAL "; copy the whole of it");
        return false;
    }
    uint8_t bytes[INVITATION_BYTES_MAX];
    size_t length;
    if (!unbase64url(text + PREFIX_BYTES, bytes, sizeof bytes, &length) ||
        !parse_invitation(bytes, length, has_others, ret_invitation)) {
        problem_set(ret_problem,
                    "the invitation is damaged; copy the whole of it, without spaces or breaks");
        return false;
    }
    return true;
}

bool invitation_write(const struct invitation *invitation, char *ret_text, unsigned long capacity)
{
    const struct market *market = &invitation->market;
    uint8_t bytes[INVITATION_BYTES_MAX];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_bytes(&out, market->server.bytes, 32);
    writer_bytes(&out, market->cluster.bytes, 16);
    writer_bytes(&out, invitation->token.bytes, 16);
    writer_i64(&out, invitation->expires_ms);
    write_text(&out, market->control);
    write_text(&out, market->blobs);
    write_text(&out, market->origin);
    writer_bytes(&out, market->log_key.bytes, 32);
    const bool has_others = market->other_count > 0;
    if (has_others) {
        write_others(&out, market);
    }
    struct hash32 hash = sha256_of(bytes, out.position);
    writer_bytes(&out, hash.bytes, CHECKSUM_BYTES);
    assert(!out.failed);

    /* An invitation that invitation_read would refuse is not written: line breaks in a path, an
     * empty name. */
    struct invitation again;
    if (!parse_invitation(bytes, out.position, has_others, &again) ||
        PREFIX_BYTES + text_base64_size(out.position) + 1 > capacity) {
        return false;
    }
    memcpy(ret_text, has_others ? INVITATION_PREFIX_SEVERAL : INVITATION_PREFIX, PREFIX_BYTES);
    char *body = ret_text + PREFIX_BYTES;
    text_base64(bytes, out.position, body);
    size_t length = strcspn(body, "=");
    body[length] = '\0';
    swap_letters(body, length, '+', '-', '/', '_');
    return true;
}

struct id128 invitation_join_id(const struct invitation *invitation, const struct key32 *account)
{
    static const char domain[] = "bourse/join/v1"; /* hashed with its NUL, like signed bytes */
    struct sha256 sum;
    sha256_start(&sum);
    sha256_add(&sum, domain, sizeof domain);
    sha256_add(&sum, invitation->market.cluster.bytes, sizeof invitation->market.cluster.bytes);
    sha256_add(&sum, invitation->token.bytes, sizeof invitation->token.bytes);
    sha256_add(&sum, account->bytes, sizeof account->bytes);
    const struct hash32 hash = sha256_end(&sum);
    struct id128 id;
    memcpy(id.bytes, hash.bytes, sizeof id.bytes);
    return id;
}
