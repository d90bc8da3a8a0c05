#include "base/cursor.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(fields_are_little_endian)
{
    uint8_t bytes[26];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_u8(&out, 0x01);
    writer_u16(&out, 0x0302);
    writer_u32(&out, UINT32_C(0x07060504));
    writer_u64(&out, UINT64_C(0x0f0e0d0c0b0a0908));
    writer_i64(&out, -2);
    writer_bytes(&out, "xyz", 3);
    ck_assert(!out.failed);
    ck_assert_uint_eq(out.position, 26);
    ck_assert_mem_eq(bytes,
                     "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
                     "\xfe\xff\xff\xff\xff\xff\xff\xff"
                     "xyz",
                     26);

    struct reader in = reader_over(bytes, sizeof bytes);
    ck_assert_uint_eq(reader_u8(&in), 0x01);
    ck_assert_uint_eq(reader_u16(&in), 0x0302);
    ck_assert_uint_eq(reader_u32(&in), UINT32_C(0x07060504));
    ck_assert(reader_u64(&in) == UINT64_C(0x0f0e0d0c0b0a0908));
    ck_assert(reader_i64(&in) == -2);
    ck_assert_uint_eq(reader_left(&in), 3);
    ck_assert(!reader_finished(&in)); /* something is left over */
    ck_assert_mem_eq(reader_view(&in, 3), "xyz", 3);
    ck_assert(reader_finished(&in));
}
END_TEST

START_TEST(a_reader_that_failed_yields_zeros_and_stays_failed)
{
    struct reader in = reader_over("\x01\x02\x03", 3);
    ck_assert_uint_eq(reader_u32(&in), 0);
    ck_assert(in.failed);
    ck_assert_uint_eq(reader_u8(&in), 0); /* though one byte would fit */
    uint8_t bytes[2] = {7, 7};
    reader_bytes(&in, bytes, 2);
    ck_assert_mem_eq(bytes, "\0\0", 2);
    ck_assert_ptr_null(reader_view(&in, 1));
    ck_assert(!reader_finished(&in));
}
END_TEST

START_TEST(no_length_wraps_a_reader)
{
    struct reader in = reader_over("abcd", 4);
    (void)reader_u16(&in);
    ck_assert_ptr_null(reader_view(&in, SIZE_MAX));
    ck_assert(in.failed);
    in = reader_over("abcd", 4);
    (void)reader_u16(&in);
    ck_assert_ptr_null(reader_view(&in, SIZE_MAX - 1)); /* position + length would be 0 */
    in = reader_over(NULL, 0);
    ck_assert(reader_finished(&in));
    ck_assert_uint_eq(reader_u8(&in), 0);
    ck_assert(!reader_finished(&in));
}
END_TEST

START_TEST(a_writer_drops_what_does_not_fit)
{
    uint8_t bytes[4] = {9, 9, 9, 9};
    struct writer out = writer_over(bytes, 3);
    writer_u16(&out, 0);
    ck_assert(!out.failed);
    writer_u16(&out, 0);
    ck_assert(out.failed);
    writer_u8(&out, 1); /* sticky: not even what would fit */
    ck_assert_mem_eq(bytes, "\0\0\x09\x09", 4);
}
END_TEST

START_TEST(a_counting_writer_tells_the_size)
{
    struct writer count = writer_counting();
    writer_u64(&count, 1);
    writer_bytes(&count, NULL, 0);
    writer_bytes(&count, "abc", 3);
    writer_u8(&count, 1);
    ck_assert(!count.failed);
    ck_assert_uint_eq(count.position, 12);
}
END_TEST

SUITE("cursor", NULL, NULL, TEST(fields_are_little_endian),
      TEST(a_reader_that_failed_yields_zeros_and_stays_failed), TEST(no_length_wraps_a_reader),
      TEST(a_writer_drops_what_does_not_fit), TEST(a_counting_writer_tells_the_size))
