/* The products of a challenge follow from the seed, and only the right row has the right digest. */
#include "base/challenge_product.h"

#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { SIDE = 64 };

static const struct challenge_product product = {.seed = {{1, 2, 3}}, .side = SIDE, .rounds = 2};

/* Computes one row entry by entry, from both factors. */
static void slow_row(const struct challenge_product *of, uint32_t round, uint32_t row,
                     int32_t ret_entries[SIDE])
{
    int16_t left[SIDE];
    int16_t right[SIDE];
    challenge_product_left(of, round, row, left);
    for (uint32_t j = 0; j < SIDE; j++) {
        ret_entries[j] = 0;
        for (uint32_t k = 0; k < SIDE; k++) {
            challenge_product_right(of, round, k, right);
            ret_entries[j] += left[k] * right[j];
        }
    }
}

START_TEST(the_digest_of_a_row_holds_for_that_row_alone)
{
    int32_t entries[SIDE];
    uint8_t digest[CHALLENGE_DIGEST_BYTES];
    slow_row(&product, 1, 63, entries);
    challenge_product_digest(entries, SIDE, digest);
    ck_assert(challenge_product_holds(&product, 1, 63, digest));
    ck_assert(!challenge_product_holds(&product, 1, 62, digest));
    ck_assert(!challenge_product_holds(&product, 0, 63, digest));
    struct challenge_product other = product;
    other.seed.bytes[31] ^= 1;
    ck_assert(!challenge_product_holds(&other, 1, 63, digest));
    entries[0]++;
    challenge_product_digest(entries, SIDE, digest);
    ck_assert(!challenge_product_holds(&product, 1, 63, digest));
}
END_TEST

START_TEST(entries_keep_sums_exact_and_need_more_bits_than_bfloat16_has)
{
    int16_t row[SIDE];
    int most_left = 0;
    int most_right = 0;
    bool has_negative = false;
    for (uint32_t i = 0; i < SIDE; i++) {
        challenge_product_left(&product, 0, i, row);
        for (uint32_t k = 0; k < SIDE; k++) {
            most_left = abs(row[k]) > most_left ? abs(row[k]) : most_left;
            has_negative = has_negative || row[k] < 0;
        }
        challenge_product_right(&product, 0, i, row);
        for (uint32_t k = 0; k < SIDE; k++) {
            most_right = abs(row[k]) > most_right ? abs(row[k]) : most_right;
        }
    }
    ck_assert(has_negative);
    ck_assert_int_gt(most_left, 256);
    ck_assert_int_le(most_left, 511);
    ck_assert_int_eq(most_right, 7);
}
END_TEST

START_TEST(sides_and_rounds_have_bounds)
{
    struct challenge_product of = product;
    ck_assert(challenge_product_is_valid(&of));
    ck_assert_uint_eq(challenge_product_answer_bytes(&of), 2 * SIDE * CHALLENGE_DIGEST_BYTES);
    of.side = 0;
    ck_assert(!challenge_product_is_valid(&of));
    of.side = 65;
    ck_assert(!challenge_product_is_valid(&of));
    of.side = CHALLENGE_SIDE_MOST;
    ck_assert(challenge_product_is_valid(&of));
    of.side = CHALLENGE_SIDE_MOST + 64;
    ck_assert(!challenge_product_is_valid(&of));
    of.side = SIDE;
    of.rounds = 0;
    ck_assert(!challenge_product_is_valid(&of));
    of.rounds = CHALLENGE_ROUNDS_MOST + 1;
    ck_assert(!challenge_product_is_valid(&of));
}
END_TEST

SUITE("challenge_product", NULL, NULL, TEST(the_digest_of_a_row_holds_for_that_row_alone),
      TEST(entries_keep_sums_exact_and_need_more_bits_than_bfloat16_has),
      TEST(sides_and_rounds_have_bounds))
