/* Memory of an arena is zeroed, aligned and apart from all that was taken before. */
#include "broker/core/arena.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static struct arena arena;

static void end(void)
{
    arena_fini(&arena);
}

static void check_zeroed(const uint8_t *bytes, size_t size)
{
    ck_assert_uint_eq((uintptr_t)bytes % _Alignof(max_align_t), 0);
    bool is_zeroed = true;
    for (size_t i = 0; i < size; i++) {
        is_zeroed = is_zeroed && bytes[i] == 0;
    }
    ck_assert(is_zeroed);
}

START_TEST(what_is_taken_is_zeroed_and_apart)
{
    enum { TAKEN = 2000 };
    static uint8_t *taken[TAKEN];
    for (size_t i = 0; i < TAKEN; i++) { /* sizes from 0 to 199: many blocks of all sizes */
        taken[i] = arena_take(&arena, i % 200, 1);
        ck_assert_ptr_nonnull(taken[i]);
        check_zeroed(taken[i], i % 200);
        memset(taken[i], (int)(i % 251), i % 200);
    }
    bool is_kept = true;
    for (size_t i = 0; i < TAKEN; i++) {
        for (size_t k = 0; k < i % 200; k++) {
            is_kept = is_kept && taken[i][k] == i % 251;
        }
    }
    ck_assert(is_kept);
}
END_TEST

START_TEST(one_large_take_has_a_block_of_its_own)
{
    enum { LARGE = 1 << 20 };
    uint8_t *large = arena_take(&arena, LARGE / 8, 8);
    ck_assert_ptr_nonnull(large);
    check_zeroed(large, LARGE);
    memset(large, 1, LARGE);
    uint8_t *small = arena_take(&arena, 1, 24);
    ck_assert_ptr_nonnull(small);
    check_zeroed(small, 24);
}
END_TEST

START_TEST(a_size_that_runs_over_is_refused)
{
    ck_assert_ptr_null(arena_take(&arena, SIZE_MAX, 2));
    ck_assert_ptr_null(arena_take(&arena, 2, SIZE_MAX));
    ck_assert_ptr_null(arena_take(&arena, SIZE_MAX, 1));
}
END_TEST

START_TEST(an_arena_is_used_again)
{
    memset(arena_take(&arena, 100, 1), 1, 100);
    arena_fini(&arena);
    check_zeroed(arena_take(&arena, 100, 1), 100);
}
END_TEST

SUITE("arena", NULL, end, TEST(what_is_taken_is_zeroed_and_apart),
      TEST(one_large_take_has_a_block_of_its_own), TEST(a_size_that_runs_over_is_refused),
      TEST(an_arena_is_used_again))
