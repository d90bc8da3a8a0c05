#include "base/writer.h"

#include <assert.h>
#include <string.h>

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
