/* The store takes a blob that is lent as an open file, and hashes it where nobody else has. */
#include "base/cleanup.h"
#include "provider/work/store.h"
#include "tests/support/folder_bytes.h"
#include "tests/support/store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum store_status take_lent(struct play *play, size_t number, struct store_blob *ret_blob)
{
    struct problem problem;
    return store_take_lent(play->store, &play->source.hashes[number], &job, UINT64_MAX, NULL,
                           ret_blob, &problem);
}

static void check_bytes(const struct play *play, size_t number, const struct store_blob *blob)
{
    uint8_t bytes[BLOB_BYTES];
    ck_assert_uint_eq(blob->size, BLOB_BYTES);
    ck_assert_int_eq(pread(blob->fd, bytes, sizeof bytes, 0), BLOB_BYTES);
    ck_assert_mem_eq(bytes, play->source.bytes[number], BLOB_BYTES);
}

START_TEST(who_does_not_say_what_he_hashed_reads_what_is_lent_once)
{
    CLEANUP(play_end) struct play play;
    struct store_blob blob;
    struct store_blob other;
    play_start(&play, 1 << 20);
    play.source.lends = true;
    ck_assert_int_eq(take_lent(&play, 3, &blob), STORE_OK);
    ck_assert(blob.is_lent);
    check_bytes(&play, 3, &blob);
    ck_assert_uint_eq(fetches(&play.source), 0);
    ck_assert_uint_eq(folder_bytes(play.folder), 0); /* no file of ours */

    ck_assert_int_eq(take_lent(&play, 3, &other), STORE_OK); /* meanwhile he may say it */
    ck_assert(other.is_lent);
    store_release(play.store, &other);
    ck_assert_int_eq(take_lent(&play, 3, &other), STORE_OK); /* who comes later has a copy */
    ck_assert(!other.is_lent);
    check_bytes(&play, 3, &other);
    check_bytes(&play, 3, &blob); /* which the first does not notice */
    ck_assert_uint_eq(fetches(&play.source), 1);
    ck_assert_uint_eq(play.source.loans, 1);
    store_release(play.store, &other);
    store_release(play.store, &blob);
    ck_assert_int_eq(take_lent(&play, 3, &blob), STORE_OK);
    ck_assert(!blob.is_lent);
    store_release(play.store, &blob);
    ck_assert_uint_eq(fetches(&play.source), 1);
}
END_TEST

START_TEST(what_looks_as_when_it_was_hashed_is_lent_to_all)
{
    CLEANUP(play_end) struct play play;
    struct store_blob blob;
    struct store_blob other;
    play_start(&play, 1 << 20);
    play.source.lends = true;
    ck_assert_int_eq(take_lent(&play, 3, &blob), STORE_OK);
    ck_assert(!blob.hashed.is_known);
    ck_assert(stamp_take(blob.fd, &blob.hashed));
    ck_assert_int_eq(take_lent(&play, 3, &other), STORE_OK);
    ck_assert(other.is_lent && !other.hashed.is_known); /* the first has it in use */
    store_release(play.store, &blob);
    store_release(play.store, &other); /* what one does not say the other has said */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(take_lent(&play, 3, &blob), STORE_OK);
        ck_assert(blob.is_lent && blob.hashed.is_known);
        ck_assert(!stamp_has_changed(&blob.hashed, blob.fd));
        check_bytes(&play, 3, &blob);
        store_release(play.store, &blob);
    }
    ck_assert_uint_eq(fetches(&play.source), 0);
    ck_assert_uint_eq(play.source.loans, 1);
    store_forget_lent(play.store);
    ck_assert_int_eq(take_lent(&play, 3, &blob), STORE_OK);
    ck_assert(!blob.hashed.is_known); /* with what was lent goes what was known of it */
    store_release(play.store, &blob);
    ck_assert_int_eq(take_lent(&play, 5, &blob), STORE_OK);
    ck_assert_int_eq(take_lent(&play, 5, &other), STORE_OK);
    store_release(play.store, &blob); /* who never read it, before who did */
    ck_assert(stamp_take(other.fd, &other.hashed));
    store_release(play.store, &other);
    ck_assert_int_eq(take_lent(&play, 5, &blob), STORE_OK);
    ck_assert(blob.is_lent && blob.hashed.is_known);
    blob.hashed.is_known = false; /* it has its hash no more */
    store_release(play.store, &blob);
    ck_assert_int_eq(take_lent(&play, 5, &blob), STORE_OK);
    ck_assert(!blob.is_lent);
    store_release(play.store, &blob);
    play.source.has_hashed = true;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(take_lent(&play, 4, &blob), STORE_OK);
        ck_assert(blob.is_lent && blob.hashed.is_known);
        ck_assert(!stamp_has_changed(&blob.hashed, blob.fd));
        store_release(play.store, &blob);
    }
}
END_TEST

START_TEST(who_does_not_hash_gets_nothing_lent)
{
    CLEANUP(play_end) struct play play;
    struct store_blob blob;
    play_start(&play, 1 << 20);
    play.source.lends = true;
    ck_assert_int_eq(take(&play, 3, &blob), STORE_OK);
    ck_assert(!blob.is_lent);
    store_release(play.store, &blob);
    ck_assert_uint_eq(play.source.loans, 0);

    store_prefetch_lent(play.store, &play.source.hashes[4], &job, UINT64_MAX);
    ck_assert_int_eq(take(&play, 4, &blob), STORE_OK); /* though it was lent for another */
    ck_assert(!blob.is_lent);
    check_bytes(&play, 4, &blob);
    store_release(play.store, &blob);

    ck_assert_int_eq(take_lent(&play, BLOBS - 1, &blob), STORE_OK); /* nobody lends it */
    ck_assert(!blob.is_lent);
    store_release(play.store, &blob);
    ck_assert_uint_eq(fetches(&play.source), 3);
}
END_TEST

START_TEST(what_was_announced_is_lent_too_and_given_back)
{
    CLEANUP(play_end) struct play play;
    struct store_blob blob;
    play_start(&play, 1 << 20);
    play.source.lends = true;
    store_prefetch_lent(play.store, &play.source.hashes[5], &job, UINT64_MAX);
    ck_assert_int_eq(take_lent(&play, 5, &blob), STORE_OK);
    ck_assert(blob.is_lent);
    store_release(play.store, &blob);
    ck_assert_int_eq(take_lent(&play, 6, &blob), STORE_OK);
    struct problem problem;
    struct store_blob small;
    ck_assert_int_eq(store_take_lent(play.store, &play.source.hashes[7], &job, BLOB_BYTES - 1, NULL,
                                     &small, &problem),
                     STORE_TOO_LARGE);
    store_release(play.store, &blob);
    ck_assert_uint_eq(play.source.loans, 2);
}
END_TEST

/* Counts the open files of what is lent. */
static size_t open_files(void)
{
    char path[64], target[128];
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        count += strstr(target, "memfd:lent") != NULL;
    }
    return count;
}

START_TEST(what_is_lent_and_nobody_uses_is_closed_when_told)
{
    CLEANUP(play_end) struct play play;
    struct store_blob blob, used;
    play_start(&play, 1 << 20);
    play.source.lends = true;
    ck_assert_int_eq(take_lent(&play, 3, &blob), STORE_OK);
    ck_assert_int_eq(take_lent(&play, 4, &used), STORE_OK);
    store_release(play.store, &blob);
    ck_assert_uint_eq(open_files(), 3); /* the store's two, and the taker's */
    store_forget_lent(play.store);
    ck_assert_uint_eq(open_files(), 2);
    check_bytes(&play, 4, &used);
    ck_assert_int_eq(take_lent(&play, 3, &blob), STORE_OK); /* lent anew */
    ck_assert(blob.is_lent);
    check_bytes(&play, 3, &blob);
    ck_assert_uint_eq(fetches(&play.source), 0);
    ck_assert_uint_eq(play.source.loans, 3);
    store_release(play.store, &blob);
    store_release(play.store, &used);
    store_forget_lent(play.store);
    ck_assert_uint_eq(open_files(), 0);
}
END_TEST

SUITE("provider store: lent", NULL, NULL,
      TEST(who_does_not_say_what_he_hashed_reads_what_is_lent_once),
      TEST(who_does_not_hash_gets_nothing_lent),
      TEST(what_looks_as_when_it_was_hashed_is_lent_to_all),
      TEST(what_was_announced_is_lent_too_and_given_back),
      TEST(what_is_lent_and_nobody_uses_is_closed_when_told))
