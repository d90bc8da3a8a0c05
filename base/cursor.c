#include "base/cursor.h"

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

struct writer writer_over(void *bytes, size_t capacity)
{
    assert(bytes != NULL);
    return (struct writer){.bytes = bytes, .capacity = capacity};
}

struct writer writer_counting(void)
{
    return (struct writer){.bytes = NULL, .capacity = SIZE_MAX};
}

void writer_bytes(struct writer *writer, const void *bytes, size_t length)
{
    if (writer->failed || length > writer->capacity - writer->position) {
        writer->failed = true;
        return;
    }
    if (writer->bytes != NULL && length > 0) {
        memcpy(writer->bytes + writer->position, bytes, length);
    }
    writer->position += length;
}

static void write_little_endian(struct writer *writer, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    writer_bytes(writer, bytes, size);
}

void writer_u8(struct writer *writer, uint8_t value)
{
    write_little_endian(writer, value, 1);
}

void writer_u16(struct writer *writer, uint16_t value)
{
    write_little_endian(writer, value, 2);
}

void writer_u32(struct writer *writer, uint32_t value)
{
    write_little_endian(writer, value, 4);
}

void writer_u64(struct writer *writer, uint64_t value)
{
    write_little_endian(writer, value, 8);
}

void writer_i64(struct writer *writer, int64_t value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    writer_u64(writer, bits);
}
