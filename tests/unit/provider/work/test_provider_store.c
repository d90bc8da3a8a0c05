#include "provider/work/store.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "provider/work/free_space.h"
#include "tests/support/folder_bytes.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A source of blobs: "blob <n>" repeated to 1000 bytes, under its hash; it counts what it is
 * asked. */
enum { BLOBS = 16, BLOB_BYTES = 1000, TAKERS = 8 };

struct source {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool closed; /* fetches wait */
    unsigned fetches;
    bool lends;
    bool has_hashed; /* what it lends */
    unsigned loans;
    unsigned full;      /* so many fetches find the disk full */
    uint64_t full_size; /* of the blob that they fetch; 0: it is not known */
    uint8_t bytes[BLOBS][BLOB_BYTES];
    struct hash32 hashes[BLOBS];
};

struct play {
    char folder[64];
    struct source source;
    struct store *store;
    size_t files_max;
};

static const struct id128 job = {{1}};

static enum store_status fetch(void *context, size_t thread, const struct hash32 *hash,
                               const struct id128 *for_job, uint64_t cap, int fd,
                               uint64_t *ret_size, struct problem *ret_problem)
{
    struct source *source = context;
    ck_assert_uint_lt(thread, 2);
    ck_assert(id128_equal(for_job, &job));
    pthread_mutex_lock(&source->mutex);
    while (source->closed) {
        pthread_cond_wait(&source->opened, &source->mutex);
    }
    source->fetches++;
    bool is_full = source->full > 0;
    source->full -= is_full;
    uint64_t full_size = source->full_size;
    pthread_mutex_unlock(&source->mutex);
    if (is_full) {
        *ret_size = full_size;
        problem_set(ret_problem, "no space");
        return store_unwritten(ENOSPC);
    }
    for (size_t i = 0; i < BLOBS; i++) {
        if (hash32_equal(&source->hashes[i], hash)) {
            if (cap < BLOB_BYTES) {
                problem_set(ret_problem, "too large");
                return STORE_TOO_LARGE;
            }
            ck_assert_int_eq(pwrite(fd, source->bytes[i], BLOB_BYTES, 0), BLOB_BYTES);
            *ret_size = BLOB_BYTES;
            return STORE_OK;
        }
    }
    problem_set(ret_problem, "no such blob");
    return STORE_MISSING;
}

/* The blob as somebody's open file; of number 15 none is lent. */
static int lend(void *context, size_t thread, const struct hash32 *hash,
                const struct id128 *for_job, uint64_t cap, uint64_t *ret_size, bool *ret_is_hashed)
{
    struct source *source = context;
    ck_assert_uint_lt(thread, 2);
    ck_assert(!*ret_is_hashed);
    ck_assert(id128_equal(for_job, &job));
    for (size_t i = 0; i + 1 < BLOBS; i++) {
        if (source->lends && hash32_equal(&source->hashes[i], hash) && cap >= BLOB_BYTES) {
            int fd = memfd_create("lent", MFD_CLOEXEC);
            ck_assert_int_eq(write(fd, source->bytes[i], BLOB_BYTES), BLOB_BYTES);
            pthread_mutex_lock(&source->mutex);
            source->loans++;
            pthread_mutex_unlock(&source->mutex);
            *ret_size = BLOB_BYTES;
            *ret_is_hashed = source->has_hashed;
            return fd;
        }
    }
    return -1;
}

/* The disk of a play: what its files leave of `disk_bytes`. */
static atomic_ullong disk_bytes;

static uint64_t free_space(const char *folder)
{
    uint64_t left = atomic_load(&disk_bytes);
    for (unsigned i = 0; i < 256; i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s/%02x", folder, i);
        DIR *files = opendir(name);
        ck_assert_ptr_nonnull(files);
        for (const struct dirent *file; (file = readdir(files)) != NULL;) {
            left -= file->d_name[0] != '.' ? BLOB_BYTES : 0;
        }
        closedir(files);
    }
    return left;
}

static void open_store(struct play *play, uint64_t cap)
{
    struct problem problem;
    struct store_config config = {.folder = play->folder,
                                  .cap_bytes = cap,
                                  .files_max = play->files_max,
                                  .threads = 2,
                                  .fetch = fetch,
                                  .lend = lend,
                                  .context = &play->source,
                                  .free_space = free_space};
    ck_assert_msg(store_open(&config, &play->store, &problem), "%s", problem.text);
}

static void play_start_with(struct play *play, uint64_t cap, size_t files_max)
{
    memset(play, 0, sizeof *play);
    atomic_store(&disk_bytes, UINT64_C(1) << 40);
    play->files_max = files_max;
    (void)snprintf(play->folder, sizeof play->folder, "/tmp/bourse-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(play->folder));
    pthread_mutex_init(&play->source.mutex, NULL);
    pthread_cond_init(&play->source.opened, NULL);
    for (size_t i = 0; i < BLOBS; i++) {
        memset(play->source.bytes[i], (int)('a' + i), BLOB_BYTES);
        play->source.hashes[i] = sha256_of(play->source.bytes[i], BLOB_BYTES);
    }
    open_store(play, cap);
}

static void play_start(struct play *play, uint64_t cap)
{
    play_start_with(play, cap, 0);
}

static int remove_one(const char *path, const struct stat *facts, int flag, struct FTW *walk)
{
    (void)facts;
    (void)flag;
    (void)walk;
    return remove(path);
}

static void play_end(struct play *play)
{
    store_close(&play->store);
    (void)nftw(play->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void set_closed(struct source *source, bool closed)
{
    pthread_mutex_lock(&source->mutex);
    source->closed = closed;
    pthread_cond_broadcast(&source->opened);
    pthread_mutex_unlock(&source->mutex);
}

static unsigned fetches(struct source *source)
{
    pthread_mutex_lock(&source->mutex);
    unsigned count = source->fetches;
    pthread_mutex_unlock(&source->mutex);
    return count;
}

static enum store_status take(struct play *play, size_t number, struct store_blob *ret_blob)
{
    struct problem problem;
    return store_take(play->store, &play->source.hashes[number], &job, UINT64_MAX, NULL, ret_blob,
                      &problem);
}

static enum store_status take_lent(struct play *play, size_t number, struct store_blob *ret_blob)
{
    struct problem problem;
    return store_take_lent(play->store, &play->source.hashes[number], &job, UINT64_MAX, NULL,
                           ret_blob, &problem);
}

static void take_and_release(struct play *play, size_t number)
{
    struct store_blob blob;
    ck_assert_int_eq(take(play, number, &blob), STORE_OK);
    store_release(play->store, &blob);
}

static char *path_of(const struct play *play, size_t number)
{
    static char path[256];
    char hex[65];
    text_hex(play->source.hashes[number].bytes, 32, hex);
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", play->folder, hex, hex);
    return path;
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
      TEST(who_does_not_say_what_he_hashed_reads_what_is_lent_once),
      TEST(who_does_not_hash_gets_nothing_lent),
      TEST(what_looks_as_when_it_was_hashed_is_lent_to_all),
      TEST(what_was_announced_is_lent_too_and_given_back),
      TEST(what_is_lent_and_nobody_uses_is_closed_when_told),
      TEST(what_is_missing_or_too_large_says_so_and_may_be_asked_again),
      TEST(the_least_recently_used_goes_and_never_one_in_use),
      TEST(small_files_are_bounded_by_their_number),
      TEST(a_full_disk_costs_what_nobody_uses_and_then_the_take),
      TEST(what_is_larger_than_a_disk_that_is_not_crowded_has_failed_and_drops_nothing),
      TEST(a_blob_whose_size_is_known_costs_no_more_than_it_needs),
      TEST(a_disk_that_has_room_and_takes_nothing_ends_the_tries),
      TEST(room_is_made_from_what_nobody_uses),
      TEST(the_next_run_finds_whole_files_and_fetches_damaged_ones_anew),
      TEST(what_is_here_is_found_and_hashed_anew_and_nothing_is_fetched),
      TEST(the_hash_of_nothing_needs_no_fetch), TEST(a_wait_can_be_given_up),
      TEST(a_folder_open_to_others_is_refused))
