#include "runtime/market.h"

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/sha256.h"
#include "base/text.h"
#include "formats/yaml.h"
#include "runtime/files.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INVITATION_PREFIX "bourse-invite-1."

enum {
    MARKET_FILE_BYTES = 8 << 10,
    CHECKSUM_BYTES = 4,
    /* server, cluster, token, expires, three texts of at most 255 bytes, log key, checksum */
    INVITATION_BYTES_MAX = 32 + 16 + 16 + 8 + 3 * 256 + 32 + CHECKSUM_BYTES,
};

static void free_bytes(uint8_t **self)
{
    free(*self);
}

/* ---- market.yaml ---- */

static void copy_text(struct yaml_value value, char *ret_text, size_t capacity)
{
    (void)snprintf(ret_text, capacity, "%s", yaml_text(value, capacity - 1, ""));
}

static void read_fields(struct yaml_value root, struct market *ret_market)
{
    static const char *const keys[] = {"control", "blobs",   "server_key", "cluster",
                                       "origin",  "log_key", "pid"};
    yaml_known_keys(root, keys, sizeof keys / sizeof keys[0]);
    copy_text(yaml_required(root, "control"), ret_market->control, sizeof ret_market->control);
    copy_text(yaml_required(root, "blobs"), ret_market->blobs, sizeof ret_market->blobs);
    copy_text(yaml_required(root, "origin"), ret_market->origin, sizeof ret_market->origin);
    /* The file keeps the refusals. */
    (void)yaml_hex(yaml_required(root, "server_key"), ret_market->server.bytes, 32);
    (void)yaml_hex(yaml_required(root, "cluster"), ret_market->cluster.bytes, 16);
    (void)yaml_hex(yaml_required(root, "log_key"), ret_market->log_key.bytes, 32);
    ret_market->pid = (long)yaml_integer(yaml_key(root, "pid"), 0, INT_MAX, 0);
}

bool market_read(const char *path, struct market *ret_market, struct problem *ret_problem)
{
    CLEANUP(free_bytes) uint8_t *bytes = NULL;
    size_t length;
    if (!file_read_trusted(path, MARKET_FILE_BYTES, &bytes, &length, ret_problem)) {
        return false;
    }
    CLEANUP(yaml_close)
    struct yaml_file *file = yaml_open((const char *)bytes, length, path, ret_problem);
    if (file == NULL) {
        return false;
    }
    struct market market = {0};
    read_fields(yaml_root(file), &market);
    if (!yaml_finished(file, ret_problem)) {
        return false;
    }
    *ret_market = market;
    return true;
}

bool market_write(const char *path, const struct market *market, struct problem *ret_problem)
{
    char control[4 * sizeof market->control];
    char blobs[4 * sizeof market->blobs];
    char origin[4 * sizeof market->origin];
    if (!yaml_quote(market->control, control, sizeof control) ||
        !yaml_quote(market->blobs, blobs, sizeof blobs) ||
        !yaml_quote(market->origin, origin, sizeof origin)) {
        problem_set(ret_problem, "%s: an endpoint or the origin is not UTF-8 text", path);
        return false;
    }
    char server[65];
    char cluster[33];
    char log_key[65];
    text_hex(market->server.bytes, 32, server);
    text_hex(market->cluster.bytes, 16, cluster);
    text_hex(market->log_key.bytes, 32, log_key);

    char text[MARKET_FILE_BYTES];
    int length = snprintf(
        text, sizeof text,
        "# Written by the broker when it is ready; read by the programs that use this market.\n"
        "control: %s\n"
        "blobs: %s\n"
        "server_key: \"%s\"\n"
        "cluster: \"%s\"\n"
        "origin: %s\n"
        "log_key: \"%s\"\n"
        "pid: %ld\n",
        control, blobs, server, cluster, origin, log_key, market->pid);
    assert(length > 0 && (size_t)length < sizeof text);
    return file_write(path, text, (size_t)length, 0640, ret_problem);
}

/* ---- joining ---- */

static bool staged_path(const char *path, char ret_path[PATH_MAX], struct problem *ret_problem)
{
    const int length = snprintf(ret_path, PATH_MAX, "%s.joining", path);
    if (length < 0 || length >= PATH_MAX) {
        problem_set(ret_problem, "%.100s...: the path is too long", path);
        return false;
    }
    return true;
}

bool market_stage(const char *path, const struct market *market, struct problem *ret_problem)
{
    char staged[PATH_MAX];
    return staged_path(path, staged, ret_problem) && market_write(staged, market, ret_problem);
}

bool market_settle(const char *path, struct problem *ret_problem)
{
    char staged[PATH_MAX];
    char folder[PATH_MAX];
    if (!staged_path(path, staged, ret_problem)) {
        return false;
    }
    (void)snprintf(folder, sizeof folder, "%s", path); /* shorter than `staged`, which fits */
    if (rename(staged, path) != 0) {
        problem_set(ret_problem, "%s cannot become %s: %s", staged, path, strerror(errno));
        return false;
    }
    return folder_sync(dirname(folder), ret_problem);
}

void market_unstage(const char *path)
{
    char staged[PATH_MAX];
    struct problem problem;
    if (staged_path(path, staged, &problem)) {
        (void)unlink(staged); /* there may be none */
    }
}

/* ---- invitations ---- */

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

static bool parse_invitation(const uint8_t *bytes, size_t length, struct invitation *ret_invitation)
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
    if (!reader_finished(&in) || invitation.expires_ms < 0) {
        return false;
    }
    *ret_invitation = invitation;
    return true;
}

bool invitation_read(const char *text, struct invitation *ret_invitation,
                     struct problem *ret_problem)
{
    size_t prefix_length = strlen(INVITATION_PREFIX);
    if (strncmp(text, INVITATION_PREFIX, prefix_length) != 0) {
        problem_set(ret_problem,
                    "an invitation starts with " INVITATION_PREFIX "; copy the whole of it");
        return false;
    }
    uint8_t bytes[INVITATION_BYTES_MAX];
    size_t length;
    if (!unbase64url(text + prefix_length, bytes, sizeof bytes, &length) ||
        !parse_invitation(bytes, length, ret_invitation)) {
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
    struct hash32 hash = sha256_of(bytes, out.position);
    writer_bytes(&out, hash.bytes, CHECKSUM_BYTES);
    assert(!out.failed);

    /* An invitation that invitation_read would refuse is not written: line breaks in a path, an
     * empty name. */
    struct invitation again;
    size_t prefix_length = strlen(INVITATION_PREFIX);
    if (!parse_invitation(bytes, out.position, &again) ||
        prefix_length + text_base64_size(out.position) + 1 > capacity) {
        return false;
    }
    memcpy(ret_text, INVITATION_PREFIX, prefix_length);
    char *body = ret_text + prefix_length;
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
