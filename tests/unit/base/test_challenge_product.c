/* The products of a challenge follow from the seed, and only the right row has the right digest. */
#include "base/challenge_product.h"

#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

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

static const struct challenge_product chain = {
    .seed = {{4, 5, 6}}, .side = SIDE, .rounds = 2, .rows = SIDE, .steps = 4};

/* Multiplies square matrices of whole numbers. */
static void multiply(int64_t a[SIDE][SIDE], int64_t b[SIDE][SIDE], int64_t ret[SIDE][SIDE])
{
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            ret[i][j] = 0;
            for (int k = 0; k < SIDE; k++) {
                ret[i][j] += a[i][k] * b[k][j];
            }
        }
    }
}

/* Keeps bits 2 to 11 of each sum, as a remainder of a division that rounds down. */
static void fold(int64_t x[SIDE][SIDE])
{
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            const int64_t low = (x[i][j] % 4096 + 4096) % 4096;
            x[i][j] = low / 4 - 512;
        }
    }
}

/* Computes Y of a round with whole matrices. */
static void slow_chain(uint32_t round, int32_t ret_last[SIDE][CHALLENGE_CHAIN_COLUMNS])
{
    static int64_t a[SIDE][SIDE], b[SIDE][SIDE], x[SIDE][SIDE], next[SIDE][SIDE];
    int16_t row[SIDE];
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    for (uint32_t i = 0; i < SIDE; i++) {
        challenge_chain_first(&chain, round, i, row);
        for (int k = 0; k < CHALLENGE_CHAIN_INNER; k++) {
            a[i][k] = row[k];
        }
    }
    for (uint32_t i = 0; i < CHALLENGE_CHAIN_INNER; i++) {
        challenge_chain_spread(&chain, i, row);
        for (int k = 0; k < SIDE; k++) {
            b[i][k] = row[k];
        }
    }
    multiply(a, b, x);
    for (uint32_t j = 0; j < SIDE; j++) {
        challenge_chain_column(&chain, j, row);
        for (int k = 0; k < SIDE; k++) {
            b[k][j] = row[k];
        }
    }
    for (uint32_t step = 0; step < chain.steps; step++) {
        fold(x);
        multiply(x, b, next);
        memcpy(x, next, sizeof x);
    }
    fold(x);
    memset(b, 0, sizeof b);
    for (uint32_t i = 0; i < SIDE; i++) {
        challenge_chain_last(&chain, i, row);
        for (int k = 0; k < CHALLENGE_CHAIN_COLUMNS; k++) {
            b[i][k] = row[k];
        }
    }
    multiply(x, b, next);
    for (int i = 0; i < SIDE; i++) {
        for (int k = 0; k < CHALLENGE_CHAIN_COLUMNS; k++) {
            ret_last[i][k] = (int32_t)next[i][k];
        }
    }
}

static bool holds(const struct challenge_product *of, const int16_t *factor, uint32_t round,
                  uint32_t row, const uint8_t digest[CHALLENGE_CHAIN_DIGEST_BYTES])
{
    uint8_t own[CHALLENGE_CHAIN_DIGEST_BYTES];
    challenge_chain_row(of, factor, round, row, own);
    return memcmp(own, digest, sizeof own) == 0;
}

START_TEST(a_row_of_a_chain_is_that_of_whole_matrices)
{
    static int32_t last[SIDE][CHALLENGE_CHAIN_COLUMNS];
    static int16_t factor[SIDE * SIDE];
    uint8_t digest[CHALLENGE_CHAIN_DIGEST_BYTES];
    challenge_chain_factor(&chain, factor);
    for (uint32_t round = 0; round < chain.rounds; round++) {
        slow_chain(round, last);
        for (uint32_t row = 0; row < SIDE; row++) {
            challenge_chain_digest(last[row], digest);
            ck_assert(holds(&chain, factor, round, row, digest));
        }
    }
    last[7][0]++;
    challenge_chain_digest(last[7], digest);
    ck_assert(!holds(&chain, factor, 1, 7, digest));
    struct challenge_product other = chain;
    other.steps++; /* a step that is left out */
    challenge_chain_digest(last[8], digest);
    ck_assert(holds(&chain, factor, 1, 8, digest));
    ck_assert(!holds(&other, factor, 1, 8, digest));
}
END_TEST

/* Whoever multiplies B by itself first must not come to the same result. */
START_TEST(a_fold_is_not_linear)
{
    int unequal = 0;
    for (int32_t a = -100000; a < 100000; a += 997) {
        for (int32_t b = -100000; b < 100000; b += 991) {
            const int sum = challenge_chain_fold(a) + challenge_chain_fold(b) + 512;
            unequal += ((sum - challenge_chain_fold(a + b)) & 1023) != 0;
        }
        ck_assert_int_ge(challenge_chain_fold(a), -512);
        ck_assert_int_le(challenge_chain_fold(a), 511);
    }
    ck_assert_int_gt(unequal, 201 * 202 / 4); /* carries of the bits below */
    ck_assert_int_eq(challenge_chain_fold(0), -512);
    ck_assert_int_eq(challenge_chain_fold(-1), 511);
    ck_assert_int_eq(challenge_chain_fold(4095), 511);
    ck_assert_int_eq(challenge_chain_fold(4096), -512);
}
END_TEST

START_TEST(the_figures_of_a_chain_have_bounds)
{
    struct challenge_product tried = {.side = 1024, .rounds = 2, .rows = 65536, .steps = 1024};
    ck_assert(challenge_product_is_valid(&tried));
    ck_assert_uint_eq(challenge_product_answer_bytes(&tried), CHALLENGE_ANSWER_MOST);
    tried.rounds = 3; /* the answer is too long */
    ck_assert(!challenge_product_is_valid(&tried));
    tried = (struct challenge_product){.side = 1088, .rounds = 1, .rows = 64, .steps = 1};
    ck_assert(!challenge_product_is_valid(&tried));
    tried.side = 1024;
    ck_assert(challenge_product_is_valid(&tried));
    tried.steps = 0;
    ck_assert(!challenge_product_is_valid(&tried));
    tried.steps = 1025;
    ck_assert(!challenge_product_is_valid(&tried));
    tried.steps = 1;
    tried.rows = 96;
    ck_assert(!challenge_product_is_valid(&tried));
    tried.rows = 0;
    ck_assert(!challenge_product_is_valid(&tried));
}
END_TEST

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

SUITE("challenge_product", NULL, NULL, TEST(a_row_of_a_chain_is_that_of_whole_matrices),
      TEST(a_fold_is_not_linear), TEST(the_figures_of_a_chain_have_bounds),
      TEST(the_digest_of_a_row_holds_for_that_row_alone),
      TEST(entries_keep_sums_exact_and_need_more_bits_than_bfloat16_has),
      TEST(sides_and_rounds_have_bounds))
