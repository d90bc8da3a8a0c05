/* The store of a provider fetches a blob once, keeps it, and finds it again. Blobs that are lent
 * are in test_provider_store_lent.c, full disks in test_provider_store_full.c. */
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "provider/work/store.h"
#include "tests/support/folder_bytes.h"
#include "tests/support/store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_closed(struct source *source, bool closed)
{
    pthread_mutex_lock(&source->mutex);
    source->closed = closed;
    pthread_cond_broadcast(&source->opened);
    pthread_mutex_unlock(&source->mutex);
}

START_TEST(a_blob_is_fetched_once_and_stays)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    struct store_blob blob;
    uint8_t bytes[BLOB_BYTES];
    ck_assert_int_eq(take(&play, 3, &blob), STORE_OK);
    ck_assert_uint_eq(blob.size, BLOB_BYTES);
    ck_assert_int_eq(pread(blob.fd, bytes, sizeof bytes, 0), BLOB_BYTES);
    ck_assert_mem_eq(bytes, play.source.bytes[3], BLOB_BYTES);
    store_release(play.store, &blob);
    take_and_release(&play, 3);
    ck_assert_uint_eq(fetches(&play.source), 1);
    ck_assert_uint_eq(folder_bytes(play.folder), BLOB_BYTES);
}
END_TEST

static void *take_seven(void *argument)
{
    take_and_release(argument, 7);
    return NULL;
}

START_TEST(many_who_ask_at_once_share_one_fetch)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    pthread_t takers[TAKERS];
    set_closed(&play.source, true);
    for (size_t i = 0; i < TAKERS; i++) {
        ck_assert_int_eq(pthread_create(&takers[i], NULL, take_seven, &play), 0);
    }
    set_closed(&play.source, false);
    for (size_t i = 0; i < TAKERS; i++) {
        pthread_join(takers[i], NULL);
    }
    ck_assert_uint_eq(fetches(&play.source), 1);
}
END_TEST

START_TEST(a_prefetched_blob_is_there_when_it_is_taken)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    store_prefetch(play.store, &play.source.hashes[1], &job, UINT64_MAX);
    store_prefetch(play.store, &play.source.hashes[1], &job, UINT64_MAX);
    take_and_release(&play, 1);
    ck_assert_uint_eq(fetches(&play.source), 1);
}
END_TEST

START_TEST(what_is_missing_or_too_large_says_so_and_may_be_asked_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    struct problem problem;
    struct store_blob blob;
    struct hash32 unknown = {{9}};
    ck_assert_int_eq(store_take(play.store, &unknown, &job, UINT64_MAX, NULL, &blob, &problem),
                     STORE_MISSING);
    ck_assert_str_eq(problem.text, "no such blob");
    ck_assert_int_eq(
        store_take(play.store, &play.source.hashes[0], &job, 10, NULL, &blob, &problem),
        STORE_TOO_LARGE);
    take_and_release(&play, 0);
    ck_assert_int_eq(
        store_take(play.store, &play.source.hashes[0], &job, 10, NULL, &blob, &problem),
        STORE_TOO_LARGE);
}
END_TEST

START_TEST(the_next_run_finds_whole_files_and_fetches_damaged_ones_anew)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    take_and_release(&play, 4);
    take_and_release(&play, 5);
    store_close(&play.store);
    int fd = open(path_of(&play, 5), O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, 10), 1);
    close(fd);
    char part[300];
    (void)snprintf(part, sizeof part, "%s.part", path_of(&play, 6));
    fd = open(part, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);

    open_store(&play, 1 << 20);
    ck_assert_int_ne(access(part, F_OK), 0);
    take_and_release(&play, 4);
    ck_assert_uint_eq(fetches(&play.source), 2);
    struct store_blob blob;
    uint8_t bytes[BLOB_BYTES];
    ck_assert_int_eq(take(&play, 5, &blob), STORE_OK);
    ck_assert_int_eq(pread(blob.fd, bytes, sizeof bytes, 0), BLOB_BYTES);
    ck_assert_mem_eq(bytes, play.source.bytes[5], BLOB_BYTES);
    store_release(play.store, &blob);
    ck_assert_uint_eq(fetches(&play.source), 3);
    ck_assert_uint_eq(folder_bytes(play.folder), 2 * BLOB_BYTES);
}
END_TEST

static void remove_folder(const char *folder)
{
    ck_assert_int_eq(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Somebody cleans the caches of the machine. */
START_TEST(a_folder_that_is_removed_is_made_again)
{
    CLEANUP(play_end) struct play play;
    struct problem problem = {""};
    struct store_blob blob;
    char shelf[300];
    play_start(&play, 1 << 20);
    take_and_release(&play, 3);
    remove_folder(play.folder);
    take_and_release(&play, 3);
    take_and_release(&play, 4);
    ck_assert_uint_eq(fetches(&play.source), 3);
    (void)snprintf(shelf, sizeof shelf, "%s", path_of(&play, 3));
    *strrchr(shelf, '/') = '\0';
    remove_folder(shelf);
    take_and_release(&play, 3);
    ck_assert_uint_eq(fetches(&play.source), 4);
    remove_folder(play.folder);
    ck_assert(store_keep_folder(play.store, &problem));
    ck_assert_int_eq(access(play.folder, F_OK), 0);

    remove_folder(play.folder);
    const int fd = open(play.folder, O_WRONLY | O_CREAT, 0600); /* in the way */
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert(!store_keep_folder(play.store, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "is not a folder"));
    ck_assert_int_eq(take(&play, 3, &blob), STORE_NO_FOLDER);
    ck_assert_int_eq(unlink(play.folder), 0);
    take_and_release(&play, 3);
}
END_TEST

START_TEST(what_is_here_is_found_and_hashed_anew_and_nothing_is_fetched)
{
    struct play play;
    struct store_blob blob;
    struct problem problem;
    char path[160];
    char hex[65];
    play_start(&play, 1 << 20);
    const struct hash32 *hash = &play.source.hashes[3];
    ck_assert(!store_find(play.store, hash, &blob));
    ck_assert_uint_eq(play.source.fetches, 0);
    ck_assert_int_eq(store_take(play.store, hash, &job, BLOB_BYTES, NULL, &blob, &problem),
                     STORE_OK);
    store_release(play.store, &blob);
    ck_assert(store_find(play.store, hash, &blob));
    ck_assert_uint_eq(blob.size, BLOB_BYTES);
    store_release(play.store, &blob);

    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", play.folder, hex, hex);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, "x", 1, 5), 1); /* the disk changes it */
    ck_assert_int_eq(close(fd), 0);
    ck_assert(!store_find(play.store, hash, &blob));
    ck_assert_uint_eq(play.source.fetches, 1);
    ck_assert_int_eq(store_take(play.store, hash, &job, BLOB_BYTES, NULL, &blob, &problem),
                     STORE_OK); /* and so the next taker gets it fetched anew */
    store_release(play.store, &blob);
    ck_assert_uint_eq(play.source.fetches, 2);
    play_end(&play);
}
END_TEST

START_TEST(the_hash_of_nothing_needs_no_fetch)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    struct problem problem;
    struct store_blob blob;
    struct hash32 nothing = sha256_of("", 0);
    ck_assert_int_eq(store_take(play.store, &nothing, &job, 0, NULL, &blob, &problem), STORE_OK);
    ck_assert_uint_eq(blob.size, 0);
    ck_assert_int_ge(blob.fd, 0);
    store_release(play.store, &blob);
    ck_assert_uint_eq(fetches(&play.source), 0);
}
END_TEST

static atomic_bool give_up;

static void *take_and_give_up(void *argument)
{
    struct play *play = argument;
    struct problem problem;
    struct store_blob blob;
    enum store_status status = store_take(play->store, &play->source.hashes[8], &job, UINT64_MAX,
                                          &give_up, &blob, &problem);
    ck_assert_int_eq(status, STORE_GIVEN_UP);
    return NULL;
}

START_TEST(a_wait_can_be_given_up)
{
    CLEANUP(play_end) struct play play;
    play_start(&play, 1 << 20);
    pthread_t taker;
    set_closed(&play.source, true);
    ck_assert_int_eq(pthread_create(&taker, NULL, take_and_give_up, &play), 0);
    atomic_store(&give_up, true);
    pthread_join(taker, NULL);
    set_closed(&play.source, false);
    take_and_release(&play, 8);
}
END_TEST

START_TEST(a_folder_open_to_others_is_refused)
{
    char folder[] = "/tmp/bourse-store-XXXXXX";
    struct problem problem;
    struct store *store = NULL;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chmod(folder, 0755), 0);
    struct store_config config = {.folder = folder, .cap_bytes = 1, .threads = 1, .fetch = fetch};
    ck_assert(!store_open(&config, &store, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "chmod 700"));
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

SUITE("provider store", NULL, NULL, TEST(a_blob_is_fetched_once_and_stays),
      TEST(many_who_ask_at_once_share_one_fetch), TEST(a_prefetched_blob_is_there_when_it_is_taken),
      TEST(what_is_missing_or_too_large_says_so_and_may_be_asked_again),
      TEST(the_next_run_finds_whole_files_and_fetches_damaged_ones_anew),
      TEST(a_folder_that_is_removed_is_made_again),
      TEST(what_is_here_is_found_and_hashed_anew_and_nothing_is_fetched),
      TEST(the_hash_of_nothing_needs_no_fetch), TEST(a_wait_can_be_given_up),
      TEST(a_folder_open_to_others_is_refused))
