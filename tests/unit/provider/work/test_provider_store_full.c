/* The store is bounded: by bytes, by files, and by what its disk has left. */
#include "base/cleanup.h"
#include "provider/work/free_space.h"
#include "provider/work/store.h"
#include "tests/support/folder_bytes.h"
#include "tests/support/store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

START_TEST(the_least_recently_used_goes_and_never_one_in_use)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 3 * BLOB_BYTES);
    struct store_blob held;
    ck_assert_int_eq(take(&play, 0, &held), STORE_OK);
    take_and_release(&play, 1);
    take_and_release(&play, 2);
    take_and_release(&play, 1); /* now 2 is the oldest that is free */
    take_and_release(&play, 3);
    ck_assert_int_ne(access(path_of(&play, 2), F_OK), 0);
    ck_assert_int_eq(access(path_of(&play, 0), F_OK), 0);
    ck_assert_int_eq(access(path_of(&play, 1), F_OK), 0);
    ck_assert_uint_eq(folder_bytes(play.folder), 3 * BLOB_BYTES);
    store_release(play.store, &held);
    unsigned before = fetches(&play.source);
    take_and_release(&play, 0);
    ck_assert_uint_eq(fetches(&play.source), before);
}
END_TEST

START_TEST(small_files_are_bounded_by_their_number)
{
    CLEANUP(play_end) struct play play;
    play_start_with(&play, 1 << 20, 2);
    take_and_release(&play, 0);
    take_and_release(&play, 1);
    take_and_release(&play, 2);
    ck_assert_int_ne(access(path_of(&play, 0), F_OK), 0);
    ck_assert_int_eq(access(path_of(&play, 1), F_OK), 0);
    ck_assert_uint_eq(folder_bytes(play.folder), 2 * BLOB_BYTES);
}
END_TEST

static void make_full(struct source *source, unsigned fetches)
{
    pthread_mutex_lock(&source->mutex);
    source->full = fetches;
    pthread_mutex_unlock(&source->mutex);
}

START_TEST(a_full_disk_costs_what_nobody_uses_and_then_the_take)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    struct store_blob held;
    ck_assert_int_eq(take(&play, 0, &held), STORE_OK);
    take_and_release(&play, 1);
    make_full(&play.source, 1);
    take_and_release(&play, 2); /* the second try had room */
    ck_assert_int_ne(access(path_of(&play, 1), F_OK), 0);
    ck_assert_int_eq(access(path_of(&play, 0), F_OK), 0);

    struct store_blob blob;
    make_full(&play.source, 2);
    atomic_store(&disk_bytes, FREE_SPACE_LEAST); /* less what is in use: crowded */
    ck_assert_int_eq(take(&play, 3, &blob), STORE_FULL);
    ck_assert_uint_eq(folder_bytes(play.folder), BLOB_BYTES); /* the one in use */
    take_and_release(&play, 3);
    store_release(play.store, &held);
}
END_TEST

static void make_full_for(struct source *source, unsigned fetches, uint64_t size)
{
    pthread_mutex_lock(&source->mutex);
    source->full_size = size;
    pthread_mutex_unlock(&source->mutex);
    make_full(source, fetches);
}

START_TEST(what_is_larger_than_a_disk_that_is_not_crowded_has_failed_and_drops_nothing)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    take_and_release(&play, 0);
    take_and_release(&play, 1);
    atomic_store(&disk_bytes, 2 * FREE_SPACE_LEAST);
    make_full_for(&play.source, 1, 2 * FREE_SPACE_LEAST + 1);
    struct store_blob blob;
    struct problem problem;
    ck_assert_int_eq(
        store_take(play.store, &play.source.hashes[2], &job, UINT64_MAX, NULL, &blob, &problem),
        STORE_FAILED);
    ck_assert_msg(strstr(problem.text, "2097153 bytes does not fit") != NULL, "%s", problem.text);
    ck_assert_msg(strstr(problem.text, "has 2095152 free") != NULL, "%s", problem.text);
    ck_assert_uint_eq(folder_bytes(play.folder), 2 * BLOB_BYTES);
}
END_TEST

START_TEST(a_blob_whose_size_is_known_costs_no_more_than_it_needs)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    for (size_t i = 0; i < 4; i++) {
        take_and_release(&play, i);
    }
    /* The needed room, with what is spared for others, is there once two of the four are gone. */
    atomic_store(&disk_bytes, 2 * BLOB_BYTES + BLOB_BYTES + BLOB_BYTES / 64 + FREE_SPACE_LEAST);
    make_full_for(&play.source, 1, BLOB_BYTES);
    take_and_release(&play, 4);
    ck_assert_int_ne(access(path_of(&play, 0), F_OK), 0);
    ck_assert_int_ne(access(path_of(&play, 1), F_OK), 0);
    ck_assert_int_eq(access(path_of(&play, 2), F_OK), 0);
    ck_assert_int_eq(access(path_of(&play, 3), F_OK), 0);
}
END_TEST

START_TEST(a_disk_that_has_room_and_takes_nothing_ends_the_tries)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    make_full_for(&play.source, UINT_MAX, BLOB_BYTES);
    struct store_blob blob;
    ck_assert_int_eq(take(&play, 0, &blob), STORE_FAILED);
    ck_assert_uint_lt(fetches(&play.source), 10);
}
END_TEST

START_TEST(room_is_made_from_what_nobody_uses)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    struct store_blob held;
    ck_assert_int_eq(take(&play, 0, &held), STORE_OK);
    take_and_release(&play, 1);
    ck_assert(store_has_space(play.store, 1));
    ck_assert_uint_eq(folder_bytes(play.folder), 2 * BLOB_BYTES);
    ck_assert(!store_has_space(play.store, UINT64_MAX)); /* no disk has that: nothing is dropped */
    ck_assert_uint_eq(folder_bytes(play.folder), 2 * BLOB_BYTES);
    atomic_store(&disk_bytes, 4 * BLOB_BYTES);
    ck_assert(store_has_space(play.store, 3 * BLOB_BYTES));
    ck_assert_uint_eq(folder_bytes(play.folder), BLOB_BYTES);
    store_release(play.store, &held);
}
END_TEST

SUITE("provider store: full", NULL, NULL, TEST(the_least_recently_used_goes_and_never_one_in_use),
      TEST(small_files_are_bounded_by_their_number),
      TEST(a_full_disk_costs_what_nobody_uses_and_then_the_take),
      TEST(what_is_larger_than_a_disk_that_is_not_crowded_has_failed_and_drops_nothing),
      TEST(a_blob_whose_size_is_known_costs_no_more_than_it_needs),
      TEST(a_disk_that_has_room_and_takes_nothing_ends_the_tries),
      TEST(room_is_made_from_what_nobody_uses))
