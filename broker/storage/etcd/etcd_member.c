#include "broker/storage/etcd/etcd_member.h"

#include "base/cursor.h"

#include <assert.h>
#include <string.h>

static const char magic[4] = {'B', 'J', 'M', '2'};
enum { FLAG_RUNS = 1, RANK_MAX = 255 };
static_assert(4 + 2 + 5 * 8 + 32 + 3 * 4 + 4 + 3 * (ETCD_MEMBER_TEXT_SIZE - 1) +
                      ETCD_MEMBER_VERSION_SIZE - 1 <=
                  ETCD_MEMBER_BYTES_MAX,
              "every record fits");

static void write_text(struct writer *out, const char *text)
{
    const size_t length = strlen(text);
    writer_u8(out, (uint8_t)length);
    writer_bytes(out, text, length);
}

size_t etcd_member_write(const struct etcd_member *member, uint8_t ret_bytes[ETCD_MEMBER_BYTES_MAX])
{
    struct writer out = writer_over(ret_bytes, ETCD_MEMBER_BYTES_MAX);
    assert(member->rank <= RANK_MAX);
    writer_bytes(&out, magic, sizeof magic);
    writer_u8(&out, (uint8_t)member->rank);
    writer_u8(&out, member->runs ? FLAG_RUNS : 0);
    writer_u64(&out, member->epoch);
    writer_u64(&out, member->index);
    writer_u64(&out, (uint64_t)member->lag_ms);
    writer_u64(&out, (uint64_t)member->seen_ms);
    writer_u64(&out, member->state_command);
    writer_bytes(&out, member->state.bytes, sizeof member->state.bytes);
    writer_u32(&out, member->rules);
    writer_u32(&out, member->rules_first);
    writer_u32(&out, member->rules_last);
    write_text(&out, member->broker);
    write_text(&out, member->control);
    write_text(&out, member->blobs);
    write_text(&out, member->version);
    assert(!out.failed);
    return out.position;
}

/* A text is printable ASCII: it goes to terminals and into JSON. */
static bool read_text(struct reader *in, char *ret_text, size_t capacity)
{
    const size_t length = reader_u8(in);
    if (length >= capacity) {
        return false;
    }
    memset(ret_text, 0, capacity);
    reader_bytes(in, ret_text, length);
    for (size_t i = 0; i < length; i++) {
        if (ret_text[i] < ' ' || ret_text[i] > '~' || strchr("\"\\", ret_text[i]) != NULL) {
            return false;
        }
    }
    return true;
}

bool etcd_member_read(struct etcd_bytes bytes, struct etcd_member *ret_member)
{
    char found[sizeof magic] = "";
    struct etcd_member member = {.id = ""};
    struct reader in = reader_over(bytes.bytes, bytes.length);
    reader_bytes(&in, found, sizeof found);
    member.rank = reader_u8(&in);
    const uint8_t flags = reader_u8(&in);
    member.runs = flags == FLAG_RUNS;
    member.epoch = reader_u64(&in);
    member.index = reader_u64(&in);
    member.lag_ms = (int64_t)reader_u64(&in);
    member.seen_ms = (int64_t)reader_u64(&in);
    member.state_command = reader_u64(&in);
    reader_bytes(&in, member.state.bytes, sizeof member.state.bytes);
    member.rules = reader_u32(&in);
    member.rules_first = reader_u32(&in);
    member.rules_last = reader_u32(&in);
    if (!read_text(&in, member.broker, sizeof member.broker) ||
        !read_text(&in, member.control, sizeof member.control) ||
        !read_text(&in, member.blobs, sizeof member.blobs) ||
        !read_text(&in, member.version, sizeof member.version) || !reader_finished(&in) ||
        flags > FLAG_RUNS || memcmp(found, magic, sizeof magic) != 0) {
        return false;
    }
    *ret_member = member;
    return true;
}

bool etcd_member_is_id(const char *text)
{
    return strlen(text) == ETCD_MEMBER_ID_SIZE - 1 &&
           strspn(text, "0123456789abcdef") == ETCD_MEMBER_ID_SIZE - 1 &&
           strspn(text, "0") < ETCD_MEMBER_ID_SIZE - 1;
}
