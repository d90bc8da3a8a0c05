#include "formats/output/result_note.h"

#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(what_is_written_of_a_stream_is_read_back)
{
    char detail[512] = "";
    uint64_t written = 7;
    ck_assert(!result_note_cut(detail, false, &written));
    result_note_add_cut(detail, sizeof detail, false, 10888896, 1048576);
    ck_assert_str_eq(detail,
                     "10888896 bytes were written to standard output, and 1048576 are kept");
    ck_assert(result_note_cut(detail, false, &written));
    ck_assert_uint_eq(written, 10888896);
    ck_assert(!result_note_cut(detail, true, &written));

    result_note_add_cut(detail, sizeof detail, true, 0, 1048576);
    ck_assert(result_note_cut(detail, true, &written));
    ck_assert_uint_eq(written, 0);
    ck_assert(result_note_cut(detail, false, &written));
    ck_assert_uint_eq(written, 10888896);
}
END_TEST

START_TEST(an_agent_may_say_only_that_more_was_written)
{
    uint64_t written = 7;
    ck_assert(result_note_cut("more was written to standard error than is kept", true, &written));
    ck_assert_uint_eq(written, 0);
    ck_assert(!result_note_cut(" bytes were written to standard error, and ", true, &written));
    /* A figure that no counter holds is cut short, and never wraps. */
    ck_assert(result_note_cut(
        "99999999999999999999999999 bytes were written to standard error, and 1", true, &written));
    ck_assert_uint_gt(written, UINT64_MAX / 100);
}
END_TEST

START_TEST(a_note_makes_room_at_the_end_of_a_long_detail)
{
    char detail[200];
    uint64_t written = 0;
    memset(detail, 'x', sizeof detail);
    for (size_t i = 0; i + 2 < sizeof detail; i += 2) {
        memcpy(detail + i, "\xc3\xa9", 2); /* one character of two bytes */
    }
    detail[sizeof detail - 1] = '\0';
    result_note_add_cut(detail, sizeof detail, false, 2000000, 1048576);
    ck_assert(result_note_cut(detail, false, &written));
    ck_assert_uint_eq(written, 2000000);
    ck_assert_uint_lt(strlen(detail), sizeof detail);
    const char *end = strstr(detail, "; ");
    ck_assert_ptr_nonnull(end);
    ck_assert_uint_eq((size_t)(end - detail) % 2, 0);
}
END_TEST

START_TEST(what_was_left_out_of_folders_is_read_without_the_other_notes)
{
    char text[512];
    char detail[512] = "left out of results/: 1 links, devices, pipes or sockets, as l";
    ck_assert(result_note_left_out(detail, text, sizeof text));
    ck_assert_str_eq(text, detail);
    result_note_add_cut(detail, sizeof detail, true, 2000000, 1048576);
    result_note_add_cut(detail, sizeof detail, false, 0, 1048576);
    ck_assert(result_note_left_out(detail, text, sizeof text));
    ck_assert_str_eq(text, "left out of results/: 1 links, devices, pipes or sockets, as l");
    ck_assert(!result_note_left_out("exit code 3", text, sizeof text));
    ck_assert(!result_note_left_out("", text, sizeof text));
}
END_TEST

SUITE("result_note", NULL, NULL, TEST(what_is_written_of_a_stream_is_read_back),
      TEST(an_agent_may_say_only_that_more_was_written),
      TEST(a_note_makes_room_at_the_end_of_a_long_detail),
      TEST(what_was_left_out_of_folders_is_read_without_the_other_notes))
