#include "tests/support/zip_writer.h"

#include "base/cursor.h"

#include <check.h>
#include <string.h>
#include <zlib.h>

static size_t deflate_into(const void *bytes, size_t size, uint8_t *out, size_t capacity)
{
    z_stream stream = {.next_in = NULL};
    ck_assert_int_eq(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (z_const Bytef *)bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = out;
    stream.avail_out = (uInt)capacity;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const size_t length = stream.total_out;
    ck_assert_int_eq(deflateEnd(&stream), Z_OK);
    return length;
}

/* These fields stand in both headers of a file, one after the other. */
static void write_common(struct writer *out, bool is_deflated, uint32_t crc, size_t packed,
                         size_t size, size_t name_length)
{
    writer_u16(out, 20); /* version */
    writer_u16(out, 0);  /* flags */
    writer_u16(out, is_deflated ? 8 : 0);
    writer_u32(out, 0); /* time */
    writer_u32(out, crc);
    writer_u32(out, (uint32_t)packed);
    writer_u32(out, (uint32_t)size);
    writer_u16(out, (uint16_t)name_length);
}

void zip_writer_add(struct zip_writer *zip, const char *name, const void *bytes, size_t size,
                    bool is_deflated)
{
    static const uint8_t extra[20] = {1, 0, 16, 0}; /* as NumPy leaves room for long sizes */
    static uint8_t packed[ZIP_WRITER_BYTES];
    const size_t packed_size =
        is_deflated ? deflate_into(bytes, size, packed, sizeof packed) : size;
    const uint32_t crc = (uint32_t)crc32(0, bytes, (uInt)size);
    struct writer out = writer_over(zip->bytes + zip->length, sizeof zip->bytes - zip->length);
    struct writer entry =
        writer_over(zip->entries + zip->entries_length, sizeof zip->entries - zip->entries_length);
    ck_assert_uint_lt(zip->count, ZIP_WRITER_MEMBERS);
    zip->members[zip->count].local = zip->length;
    zip->members[zip->count].entry = zip->entries_length; /* in the folder, until the end */
    writer_u32(&out, 0x04034b50);
    write_common(&out, is_deflated, crc, packed_size, size, strlen(name));
    writer_u16(&out, sizeof extra);
    writer_bytes(&out, name, strlen(name));
    writer_bytes(&out, extra, sizeof extra);
    writer_bytes(&out, is_deflated ? packed : bytes, packed_size);
    writer_u32(&entry, 0x02014b50);
    writer_u16(&entry, 20);
    write_common(&entry, is_deflated, crc, packed_size, size, strlen(name));
    writer_u16(&entry, 0); /* extra */
    writer_u16(&entry, 0); /* comment */
    writer_u16(&entry, 0); /* part */
    writer_u16(&entry, 0);
    writer_u32(&entry, 0);
    writer_u32(&entry, (uint32_t)zip->length);
    writer_bytes(&entry, name, strlen(name));
    ck_assert(!out.failed && !entry.failed);
    zip->length += out.position;
    zip->entries_length += entry.position;
    zip->count++;
}

void zip_writer_end(struct zip_writer *zip)
{
    struct writer out = writer_over(zip->bytes + zip->length, sizeof zip->bytes - zip->length);
    zip->folder = zip->length;
    writer_bytes(&out, zip->entries, zip->entries_length);
    writer_u32(&out, 0x06054b50);
    writer_u16(&out, 0);
    writer_u16(&out, 0);
    writer_u16(&out, (uint16_t)zip->count);
    writer_u16(&out, (uint16_t)zip->count);
    writer_u32(&out, (uint32_t)zip->entries_length);
    writer_u32(&out, (uint32_t)zip->length);
    writer_u16(&out, 0);
    ck_assert(!out.failed);
    zip->end = zip->length + zip->entries_length;
    zip->length += out.position;
    for (size_t i = 0; i < zip->count; i++) {
        zip->members[i].entry += zip->folder;
    }
}
