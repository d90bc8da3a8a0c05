/* Hashes made on a second thread are those that one thread makes. */
#include "runtime/hasher.h"

#include "base/cleanup.h"
#include "runtime/process.h"
#include "tests/support/first_thread.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ALL = 5 * HASHER_LEAST_BYTES + 3 };

static uint8_t *bytes;

static void setup(void)
{
    bytes = malloc(ALL);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < ALL; i++) {
        bytes[i] = (uint8_t)(i * 31 + (i >> 9));
    }
}

static void teardown(void)
{
    free(bytes);
}

/* Hashes all bytes, in pieces of `step`. */
static struct hash32 in_pieces(struct hasher *hasher, size_t step)
{
    struct sha256 sum;
    sha256_start(&sum);
    for (size_t done = 0; done < ALL; done += step) {
        hasher_begin(hasher, &sum, bytes + done, ALL - done < step ? ALL - done : step);
        hasher_finish(hasher);
    }
    return sha256_end(&sum);
}

static void check_pieces(struct hasher *hasher)
{
    static const size_t steps[] = {ALL, HASHER_LEAST_BYTES - 1, HASHER_LEAST_BYTES,
                                   HASHER_LEAST_BYTES + 1, 3 * HASHER_LEAST_BYTES / 2};
    struct hash32 right = sha256_of(bytes, ALL);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct hash32 made = in_pieces(hasher, steps[i]);
        ck_assert(hash32_equal(&made, &right));
    }
}

START_TEST(pieces_of_every_size_have_the_hash_of_the_whole)
{
    CLEANUP(hasher_destroy) struct hasher *hasher = hasher_create();
    ck_assert_ptr_nonnull(hasher);
    check_pieces(hasher);
}
END_TEST

START_TEST(without_a_thread_the_hashes_are_the_same)
{
    check_pieces(NULL);
}
END_TEST

START_TEST(one_thread_makes_the_hashes_of_many)
{
    CLEANUP(hasher_destroy) struct hasher *hasher = hasher_create();
    struct sha256 sums[2];
    sha256_start(&sums[0]);
    sha256_start(&sums[1]);
    for (size_t i = 0; i < 4; i++) {
        hasher_begin(hasher, &sums[i % 2], bytes + i * HASHER_LEAST_BYTES, HASHER_LEAST_BYTES);
        hasher_finish(hasher);
    }
    for (size_t i = 0; i < 2; i++) {
        struct sha256 right;
        sha256_start(&right);
        sha256_add(&right, bytes + i * HASHER_LEAST_BYTES, HASHER_LEAST_BYTES);
        sha256_add(&right, bytes + (i + 2) * HASHER_LEAST_BYTES, HASHER_LEAST_BYTES);
        struct hash32 made = sha256_end(&sums[i]);
        struct hash32 expected = sha256_end(&right);
        ck_assert(hash32_equal(&made, &expected));
    }
}
END_TEST

START_TEST(what_was_begun_is_finished_before_its_thread_ends)
{
    struct hasher *hasher = hasher_create();
    struct sha256 sum;
    struct hash32 right = sha256_of(bytes, ALL);
    sha256_start(&sum);
    hasher_begin(hasher, &sum, bytes, ALL);
    hasher_destroy(&hasher);
    ck_assert_ptr_null(hasher);
    struct hash32 made = sha256_end(&sum);
    ck_assert(hash32_equal(&made, &right));
}
END_TEST

/* The broker's threads for blobs leave the processors to those for orders, and are found by their
 * name. */
START_TEST(its_thread_is_ranked_with_its_maker)
{
    begin_threads();
    process_name_thread("maker");
    unsigned before = process_yield_threads("maker"); /* checkers of memory have threads, too */
    CLEANUP(hasher_destroy) struct hasher *hasher = hasher_create();
    ck_assert_ptr_nonnull(hasher);
    ck_assert_uint_eq(process_yield_threads("maker"), before + 1);
}
END_TEST

SUITE("hasher", setup, teardown, TEST(pieces_of_every_size_have_the_hash_of_the_whole),
      TEST(without_a_thread_the_hashes_are_the_same), TEST(one_thread_makes_the_hashes_of_many),
      TEST(what_was_begun_is_finished_before_its_thread_ends),
      TEST(its_thread_is_ranked_with_its_maker))
