/* Bytes relayed by two threads: all of them, their hash, and what ends it. */
#include "runtime/relay.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 5 * RELAY_PIECE_BYTES + 3 };

struct place {
    uint8_t *source, *copy;
    uint64_t read;        /* up to here: in order */
    uint64_t unread;      /* nothing from here on can be read, */
    uint64_t unwritten;   /* or written */
    atomic_bool is_begun; /* the first piece is written */
    uint64_t first;
};

static struct place place;

static void setup(void)
{
    place = (struct place){.source = malloc(MOST_BYTES),
                           .copy = calloc(1, MOST_BYTES),
                           .unread = UINT64_MAX,
                           .unwritten = UINT64_MAX};
    for (size_t i = 0; i < MOST_BYTES; i++) {
        place.source[i] = (uint8_t)(i * 13 + (i >> 11));
    }
}

static void teardown(void)
{
    free(place.source);
    free(place.copy);
}

static bool read_piece(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    ck_assert_ptr_eq(context, &place);
    ck_assert_uint_eq(offset, place.read);
    ck_assert(offset == place.first || atomic_load(&place.is_begun));
    if (offset + length > place.unread) {
        return false;
    }
    memcpy(ret_bytes, place.source + offset, length);
    place.read += length;
    return true;
}

static bool write_piece(void *context, uint64_t offset, const uint8_t *bytes, size_t length)
{
    ck_assert_ptr_eq(context, &place);
    if (offset + length > place.unwritten) {
        return false;
    }
    memcpy(place.copy + offset, bytes, length);
    atomic_store(&place.is_begun, true);
    return true;
}

static bool relayed(uint64_t from, uint64_t to, struct hash32 *ret_hash)
{
    struct sha256 sum;
    place.read = place.first = from;
    sha256_start(&sum);
    sha256_add(&sum, place.source, (size_t)from); /* what came another way */
    const struct relay relay = {.from = from,
                                .to = to,
                                .sum = &sum,
                                .context = &place,
                                .read = read_piece,
                                .write = write_piece};
    bool good = relay_run(&relay);
    *ret_hash = sha256_end(&sum);
    return good;
}

static const uint64_t spans[][2] = {{0, 0},
                                    {7, 7},
                                    {0, 1},
                                    {0, RELAY_PIECE_BYTES},
                                    {0, 2 * RELAY_PIECE_BYTES},
                                    {0, 2 * RELAY_PIECE_BYTES + 1},
                                    {0, MOST_BYTES},
                                    {1000, MOST_BYTES}};

START_TEST(all_bytes_arrive_and_have_the_hash_of_the_whole)
{
    const uint64_t *span = spans[_i];
    struct hash32 made;
    ck_assert(relayed(span[0], span[1], &made));
    struct hash32 right = sha256_of(place.source, (size_t)span[1]);
    ck_assert(hash32_equal(&made, &right));
    ck_assert_uint_eq(place.read, span[1]);
    ck_assert_mem_eq(place.copy + span[0], place.source + span[0], (size_t)(span[1] - span[0]));
}
END_TEST

START_TEST(what_cannot_be_read_or_written_ends_it)
{
    struct hash32 hash;
    place.unread = (uint64_t)_i * RELAY_PIECE_BYTES;
    ck_assert(!relayed(0, MOST_BYTES, &hash));
    ck_assert_uint_eq(place.read, place.unread);
    atomic_store(&place.is_begun, false);
    place.unread = UINT64_MAX;
    place.unwritten = (uint64_t)_i * RELAY_PIECE_BYTES;
    ck_assert(!relayed(0, MOST_BYTES, &hash));
    ck_assert_mem_eq(place.copy, place.source, (size_t)place.unwritten);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("relay");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, all_bytes_arrive_and_have_the_hash_of_the_whole, 0,
                        sizeof spans / sizeof spans[0]);
    tcase_add_loop_test(tests, what_cannot_be_read_or_written_ends_it, 0, 5);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
