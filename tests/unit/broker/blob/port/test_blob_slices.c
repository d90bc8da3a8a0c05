/* Large chunks are stored in slices while others ask, and at once while nobody does. */
#include "broker/blob/port/blob_slices.h"

#include <check.h>
#include <stdlib.h>

enum { CHUNK_BYTES = (1 << 20) + 1, OFFSET = 4 << 20 };

static const uint8_t data[CHUNK_BYTES];

static struct blob_chunk chunk_of(uint64_t size, uint64_t offset, size_t length)
{
    return (struct blob_chunk){.size = size, .offset = offset, .data = data, .length = length};
}

START_TEST(slices_follow_one_another_up_to_the_end_of_the_chunk)
{
    const struct blob_chunk chunk = chunk_of(OFFSET + CHUNK_BYTES, OFFSET, CHUNK_BYTES);
    size_t done = 0;
    size_t count = 0;
    while (done < CHUNK_BYTES) {
        const struct blob_chunk slice = blob_slice(&chunk, done, true);
        ck_assert_uint_eq(slice.size, chunk.size);
        ck_assert_uint_eq(slice.offset, OFFSET + done);
        ck_assert_ptr_eq(slice.data, data + done);
        ck_assert_uint_gt(slice.length, 0);
        ck_assert_uint_le(slice.length, BLOB_SLICE_BYTES);
        done += slice.length;
        count++;
    }
    ck_assert_uint_eq(done, CHUNK_BYTES);
    ck_assert_uint_eq(count, 5);
}
END_TEST

START_TEST(who_is_alone_stores_the_chunk_at_once)
{
    const struct blob_chunk chunk = chunk_of(CHUNK_BYTES, 0, CHUNK_BYTES);
    ck_assert_uint_eq(blob_slice(&chunk, 0, false).length, CHUNK_BYTES);
    /* The others may stop asking after the first slice. */
    const struct blob_chunk rest = blob_slice(&chunk, BLOB_SLICE_BYTES, false);
    ck_assert_uint_eq(rest.offset, BLOB_SLICE_BYTES);
    ck_assert_uint_eq(rest.length, CHUNK_BYTES - BLOB_SLICE_BYTES);
}
END_TEST

START_TEST(the_store_sees_all_of_a_chunk_that_it_refuses)
{
    const struct blob_chunk longer = chunk_of(CHUNK_BYTES - 1, 0, CHUNK_BYTES);
    ck_assert_uint_eq(blob_slice(&longer, 0, true).length, CHUNK_BYTES);
    const struct blob_chunk beyond = chunk_of(CHUNK_BYTES, UINT64_MAX, CHUNK_BYTES);
    ck_assert_uint_eq(blob_slice(&beyond, 0, true).length, CHUNK_BYTES);
    const struct blob_chunk row = chunk_of(BLOB_ROW_BYTES, 0, CHUNK_BYTES);
    ck_assert_uint_eq(blob_slice(&row, 0, true).length, CHUNK_BYTES);
    const struct blob_chunk nothing = {.size = CHUNK_BYTES};
    ck_assert_uint_eq(blob_slice(&nothing, 0, true).length, 0);
}
END_TEST

START_TEST(the_first_slice_pays_for_the_file_and_the_last_for_the_disk)
{
    const struct blob_chunk row = chunk_of(BLOB_ROW_BYTES, 0, BLOB_ROW_BYTES);
    ck_assert_uint_eq(blob_slice_steps(&row, true), BLOB_ROW_STEPS);
    const struct blob_chunk first = chunk_of(CHUNK_BYTES, 0, BLOB_SLICE_BYTES);
    ck_assert_uint_eq(blob_slice_steps(&first, false), BLOB_UPLOAD_STEPS);
    const struct blob_chunk last = chunk_of(CHUNK_BYTES, BLOB_SLICE_BYTES, 1);
    ck_assert_uint_eq(blob_slice_steps(&last, false), 0);
    ck_assert_uint_eq(blob_slice_steps(&last, true), BLOB_FILE_STEPS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blob slices");
    TCase *tests = tcase_create("slices");
    tcase_add_test(tests, slices_follow_one_another_up_to_the_end_of_the_chunk);
    tcase_add_test(tests, who_is_alone_stores_the_chunk_at_once);
    tcase_add_test(tests, the_store_sees_all_of_a_chunk_that_it_refuses);
    tcase_add_test(tests, the_first_slice_pays_for_the_file_and_the_last_for_the_disk);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
