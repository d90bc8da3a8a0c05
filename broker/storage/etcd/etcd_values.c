#include "broker/storage/etcd/etcd_values.h"

#include "base/cursor.h"
#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char leader_magic[4] = {'B', 'J', 'L', '1'};
static const char base_magic[4] = {'B', 'J', 'B', '1'};
static const char source_magic[4] = {'B', 'J', 'S', '1'};
static const char ended_magic[4] = {'B', 'J', 'R', '1'};

/* ---- keys */

static struct etcd_key key_of(const struct id128 *cluster, const char *rest)
{
    struct etcd_key key;
    char hex[2 * sizeof cluster->bytes + 1];
    text_hex(cluster->bytes, sizeof cluster->bytes, hex);
    const int length = snprintf(key.text, sizeof key.text, "/bourse/%s/%s", hex, rest);
    assert(length > 0 && (size_t)length < sizeof key.text);
    return key;
}

struct etcd_key etcd_key_leader(const struct id128 *cluster)
{
    return key_of(cluster, "leader");
}

struct etcd_key etcd_key_base(const struct id128 *cluster)
{
    return key_of(cluster, "base");
}

struct etcd_key etcd_key_source(const struct id128 *cluster)
{
    return key_of(cluster, "source");
}

struct etcd_key etcd_key_entry(const struct id128 *cluster, uint64_t index)
{
    char rest[24];
    const int length = snprintf(rest, sizeof rest, "log/%016" PRIx64, index);
    assert(length > 0 && (size_t)length < sizeof rest);
    return key_of(cluster, rest);
}

static struct etcd_key key_in(const struct id128 *cluster, const char *part, const char *id)
{
    char rest[32];
    const int length = snprintf(rest, sizeof rest, "%s/%s", part, id);
    assert(length > 0 && (size_t)length < sizeof rest);
    return key_of(cluster, rest);
}

struct etcd_key etcd_key_broker(const struct id128 *cluster, const char *id)
{
    return key_in(cluster, "brokers", id);
}

struct etcd_key etcd_key_alive(const struct id128 *cluster, const char *id)
{
    return key_in(cluster, "alive", id);
}

struct etcd_key etcd_key_end(const struct etcd_key *key)
{
    struct etcd_key end = *key;
    const size_t length = strlen(end.text);
    assert(length > 0);
    end.text[length - 1]++; /* a slash or a digit, so the byte stays printable */
    return end;
}

struct etcd_key etcd_key_markets(void)
{
    return (struct etcd_key){.text = "/bourse/"};
}

struct etcd_bytes etcd_key_bytes(const struct etcd_key *key)
{
    return (struct etcd_bytes){.bytes = (const uint8_t *)key->text, .length = strlen(key->text)};
}

/* ---- the leader */

static void write_text(struct writer *out, const char *text)
{
    const size_t length = strnlen(text, UINT8_MAX);
    writer_u8(out, (uint8_t)length);
    writer_bytes(out, text, length);
}

struct etcd_leader etcd_leader_of(const struct journal_leader *leader, uint64_t mark)
{
    struct etcd_leader value = {.length = 0};
    struct writer out = writer_over(value.bytes, sizeof value.bytes);
    writer_bytes(&out, leader_magic, sizeof leader_magic);
    writer_u64(&out, leader->epoch);
    writer_u64(&out, mark);
    write_text(&out, leader->broker);
    write_text(&out, leader->address);
    assert(!out.failed);
    value.length = out.position;
    return value;
}

struct etcd_bytes etcd_leader_bytes(const struct etcd_leader *leader)
{
    return (struct etcd_bytes){.bytes = leader->bytes, .length = leader->length};
}

/* Reads a text of at most `capacity` - 1 bytes; a longer one breaks the reader's end. */
static bool read_text(struct reader *in, char *ret_text, size_t capacity)
{
    const size_t length = reader_u8(in);
    if (length >= capacity) {
        return false;
    }
    memset(ret_text, 0, capacity);
    reader_bytes(in, ret_text, length);
    return true;
}

bool etcd_leader_read(struct etcd_bytes bytes, struct etcd_leader *ret_value,
                      struct journal_leader *ret_leader)
{
    char magic[sizeof leader_magic] = "";
    struct reader in = reader_over(bytes.bytes, bytes.length);
    struct journal_leader leader;
    reader_bytes(&in, magic, sizeof magic);
    leader.epoch = reader_u64(&in);
    (void)reader_u64(&in); /* the mark counts only as a part of the whole value */
    if (bytes.length > sizeof ret_value->bytes ||
        !read_text(&in, leader.broker, sizeof leader.broker) ||
        !read_text(&in, leader.address, sizeof leader.address) || !reader_finished(&in) ||
        memcmp(magic, leader_magic, sizeof magic) != 0) {
        return false;
    }
    *ret_leader = leader;
    memcpy(ret_value->bytes, bytes.bytes, bytes.length);
    ret_value->length = bytes.length;
    return true;
}

/* ---- the end of a journal */

void etcd_ended_write(const struct id128 *successor, uint8_t ret_bytes[ETCD_ENDED_BYTES])
{
    struct writer out = writer_over(ret_bytes, ETCD_ENDED_BYTES);
    writer_bytes(&out, ended_magic, sizeof ended_magic);
    writer_bytes(&out, successor->bytes, sizeof successor->bytes);
    assert(out.position == ETCD_ENDED_BYTES && !out.failed);
}

bool etcd_ended_read(struct etcd_bytes bytes, struct id128 *ret_successor)
{
    char magic[sizeof ended_magic] = "";
    struct id128 successor;
    struct reader in = reader_over(bytes.bytes, bytes.length);
    reader_bytes(&in, magic, sizeof magic);
    reader_bytes(&in, successor.bytes, sizeof successor.bytes);
    if (!reader_finished(&in) || memcmp(magic, ended_magic, sizeof magic) != 0) {
        return false;
    }
    *ret_successor = successor;
    return true;
}

/* ---- the source */

void etcd_source_write(const struct etcd_source *source, uint8_t ret_bytes[ETCD_SOURCE_BYTES])
{
    struct writer out = writer_over(ret_bytes, ETCD_SOURCE_BYTES);
    writer_bytes(&out, source_magic, sizeof source_magic);
    writer_u64(&out, source->index);
    writer_bytes(&out, source->chain.bytes, sizeof source->chain.bytes);
    assert(out.position == ETCD_SOURCE_BYTES && !out.failed);
}

bool etcd_source_read(struct etcd_bytes bytes, struct etcd_source *ret_source)
{
    char magic[sizeof source_magic] = "";
    struct reader in = reader_over(bytes.bytes, bytes.length);
    struct etcd_source source;
    reader_bytes(&in, magic, sizeof magic);
    source.index = reader_u64(&in);
    reader_bytes(&in, source.chain.bytes, sizeof source.chain.bytes);
    if (!reader_finished(&in) || memcmp(magic, source_magic, sizeof magic) != 0) {
        return false;
    }
    *ret_source = source;
    return true;
}

/* ---- the base */

void etcd_base_write(const struct journal_base *base, uint8_t ret_bytes[ETCD_BASE_BYTES])
{
    struct writer out = writer_over(ret_bytes, ETCD_BASE_BYTES);
    writer_bytes(&out, base_magic, sizeof base_magic);
    writer_u64(&out, base->index);
    writer_bytes(&out, base->chain.bytes, sizeof base->chain.bytes);
    writer_bytes(&out, base->state.bytes, sizeof base->state.bytes);
    assert(out.position == ETCD_BASE_BYTES && !out.failed);
}

bool etcd_base_read(struct etcd_bytes bytes, struct journal_base *ret_base)
{
    char magic[sizeof base_magic] = "";
    struct reader in = reader_over(bytes.bytes, bytes.length);
    struct journal_base base;
    reader_bytes(&in, magic, sizeof magic);
    base.index = reader_u64(&in);
    reader_bytes(&in, base.chain.bytes, sizeof base.chain.bytes);
    reader_bytes(&in, base.state.bytes, sizeof base.state.bytes);
    if (!reader_finished(&in) || memcmp(magic, base_magic, sizeof magic) != 0) {
        return false;
    }
    *ret_base = base;
    return true;
}
