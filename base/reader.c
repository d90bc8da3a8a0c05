#include "base/reader.h"

#include <assert.h>
#include <string.h>

struct reader reader_over(const void *bytes, size_t length)
{
    assert(bytes != NULL || length == 0);
    return (struct reader){.bytes = bytes, .length = length};
}

const uint8_t *reader_view(struct reader *reader, size_t length)
{
    if (reader->failed || length > reader->length - reader->position) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *view = reader->bytes + reader->position;
    reader->position += length;
    return view;
}

void reader_bytes(struct reader *reader, void *ret_bytes, size_t length)
{
    if (length == 0) {
        return;
    }
    const uint8_t *view = reader_view(reader, length);
    if (view == NULL) {
        memset(ret_bytes, 0, length);
        return;
    }
    memcpy(ret_bytes, view, length);
}

static uint64_t read_little_endian(struct reader *reader, size_t size)
{
    const uint8_t *view = reader_view(reader, size);
    uint64_t value = 0;
    if (view != NULL) {
        for (size_t i = size; i-- > 0;) {
            value = value << 8 | view[i];
        }
    }
    return value;
}

uint8_t reader_u8(struct reader *reader)
{
    return (uint8_t)read_little_endian(reader, 1);
}

uint16_t reader_u16(struct reader *reader)
{
    return (uint16_t)read_little_endian(reader, 2);
}

uint32_t reader_u32(struct reader *reader)
{
    return (uint32_t)read_little_endian(reader, 4);
}

uint64_t reader_u64(struct reader *reader)
{
    return read_little_endian(reader, 8);
}

int64_t reader_i64(struct reader *reader)
{
    uint64_t bits = reader_u64(reader);
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

size_t reader_left(const struct reader *reader)
{
    return reader->failed ? 0 : reader->length - reader->position;
}

bool reader_finished(const struct reader *reader)
{
    return !reader->failed && reader->position == reader->length;
}
