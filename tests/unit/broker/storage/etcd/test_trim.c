/* Etcd keeps the end of the journal, and the beginning goes in small steps. */
#include "broker/storage/etcd/trim.h"

#include "tests/support/suite.h"

#include <check.h>

START_TEST(nothing_is_cut_before_there_is_enough)
{
    struct replicated_trim trim = trim_start(0, 10);
    uint64_t index = 0;
    for (uint64_t last = 11; last < 11 + 127; last++) {
        ck_assert(!trim_step(&trim, last, UINT64_C(1) << 20, &index));
    }
    /* The 128th MiB: what was there at the start may go. */
    ck_assert(trim_step(&trim, 138, UINT64_C(1) << 20, &index));
    ck_assert_uint_eq(index, 10);
    trim_done(&trim, index);
    ck_assert(!trim_step(&trim, 139, 1, &index));
}
END_TEST

START_TEST(the_kept_end_has_between_one_and_two_times_the_bytes)
{
    struct replicated_trim trim = trim_start(0, 0);
    uint64_t index = 0;
    const uint64_t entry_bytes = UINT64_C(1) << 16;
    for (uint64_t last = 1; last <= 20000; last++) {
        if (trim_step(&trim, last, entry_bytes, &index)) {
            ck_assert_uint_le(index - trim.base, TRIM_STEP);
            ck_assert_uint_lt(index, last);
            trim_done(&trim, index);
        }
        const uint64_t kept = (last - trim.base) * entry_bytes;
        ck_assert_uint_le(kept, 2 * TRIM_KEEP_BYTES + TRIM_STEP * entry_bytes);
        if (trim.base > 0) {
            ck_assert_uint_ge(kept, TRIM_KEEP_BYTES);
        }
    }
    ck_assert_uint_gt(trim.base, 15000);
}
END_TEST

START_TEST(a_cut_that_failed_is_tried_again)
{
    struct replicated_trim trim = trim_start(0, 250);
    uint64_t index = 0;
    ck_assert(trim_step(&trim, 251, TRIM_KEEP_BYTES, &index));
    ck_assert_uint_eq(index, TRIM_STEP);
    ck_assert(trim_step(&trim, 252, 1, &index));
    ck_assert_uint_eq(index, TRIM_STEP);
    trim_done(&trim, index);
    ck_assert(trim_step(&trim, 253, 1, &index));
    ck_assert_uint_eq(index, 2 * TRIM_STEP);
    trim_done(&trim, index);
    ck_assert(trim_step(&trim, 254, 1, &index));
    ck_assert_uint_eq(index, 250);
    trim_done(&trim, index);
    ck_assert(!trim_step(&trim, 255, 1, &index));
}
END_TEST

SUITE("trim", NULL, NULL, TEST(nothing_is_cut_before_there_is_enough),
      TEST(the_kept_end_has_between_one_and_two_times_the_bytes),
      TEST(a_cut_that_failed_is_tried_again))
