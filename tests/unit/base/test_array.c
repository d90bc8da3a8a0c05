/* Arrays that grow by an element at a time. */
#include "base/array.h"

#include "tests/support/suite.h"

#include <check.h>
#include <stdint.h>

START_TEST(elements_stay_while_the_array_grows)
{
    enum { COUNT = 1000 };
    uint32_t *items = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t *moved = array_with_room(items, i, &capacity, sizeof *items);
        ck_assert_ptr_nonnull(moved);
        items = moved;
        items[i] = i;
        ck_assert_uint_gt(capacity, i);
    }
    ck_assert_uint_lt(capacity, 3 * COUNT); /* it doubles, and no more */
    for (uint32_t i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(items[i], i);
    }
    free(items);
}
END_TEST

START_TEST(an_array_too_large_leaves_the_old_one)
{
    size_t capacity = 0;
    char *items = array_with_room(NULL, 0, &capacity, 1);
    const size_t before = capacity;
    const volatile size_t huge = SIZE_MAX / 2;
    ck_assert_ptr_nonnull(items);
    ck_assert_ptr_null(array_with_room(items, before, &capacity, huge));
    ck_assert_uint_eq(capacity, before);
    items[before - 1] = 'x'; /* still there */
    free(items);
}
END_TEST

SUITE("array", NULL, NULL, TEST(elements_stay_while_the_array_grows),
      TEST(an_array_too_large_leaves_the_old_one))
