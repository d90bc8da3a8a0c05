/* Bytes relayed by two threads: all of them, their hash, and what ends it. */
#include "runtime/relay.h"

#include "tests/support/first_thread.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_BYTES = 5 * RELAY_PIECE_BYTES + 3 };

struct place {
    uint8_t *source, *copy;
    uint64_t read;      /* up to here: in order, */
    uint64_t written;   /* as here */
    uint64_t unread;    /* nothing from here on can be read, */
    uint64_t unwritten; /* or written */
    atomic_int writers; /* at it */
    pthread_t caller;
    bool has_helper; /* somebody else wrote */
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
    ck_assert_int_eq(atomic_fetch_add(&place.writers, 1), 0);
    ck_assert_uint_eq(offset, place.written);
    bool good = offset + length <= place.unwritten;
    if (good) {
        memcpy(place.copy + offset, bytes, length);
        place.written += length;
    }
    place.has_helper = place.has_helper || !pthread_equal(pthread_self(), place.caller);
    (void)atomic_fetch_sub(&place.writers, 1);
    return good;
}

static bool relayed(uint64_t from, uint64_t to, struct hash32 *ret_hash)
{
    struct sha256 sum;
    place.read = place.written = from;
    place.caller = pthread_self();
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

START_TEST(all_bytes_arrive_in_order_and_have_the_hash_of_the_whole)
{
    const uint64_t *span = spans[_i];
    struct hash32 made;
    ck_assert(relayed(span[0], span[1], &made));
    struct hash32 right = sha256_of(place.source, (size_t)span[1]);
    ck_assert(hash32_equal(&made, &right));
    ck_assert_uint_eq(place.read, span[1]);
    ck_assert_uint_eq(place.written, span[1]);
    ck_assert_mem_eq(place.copy + span[0], place.source + span[0], (size_t)(span[1] - span[0]));
}
END_TEST

START_TEST(what_cannot_be_read_or_written_ends_it)
{
    struct hash32 hash;
    place.unread = (uint64_t)_i * RELAY_PIECE_BYTES;
    ck_assert(!relayed(0, MOST_BYTES, &hash));
    ck_assert_uint_eq(place.read, place.unread);
    place.unread = UINT64_MAX;
    place.unwritten = (uint64_t)_i * RELAY_PIECE_BYTES;
    ck_assert(!relayed(0, MOST_BYTES, &hash));
    ck_assert_mem_eq(place.copy, place.source, (size_t)place.unwritten);
}
END_TEST

START_TEST(on_one_processor_nobody_helps)
{
    cpu_set_t all;
    cpu_set_t one;
    struct hash32 hash;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (unsigned i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert(relayed(0, MOST_BYTES, &hash));
    ck_assert(!place.has_helper);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

/* A relay that lasts until it is told to end, on a thread of its own. */
struct other {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_reading, may_end;
    pthread_t thread;
};
static struct other other;

static bool read_until_told(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    struct other *self = context;
    (void)offset;
    memset(ret_bytes, 0, length);
    pthread_mutex_lock(&self->mutex);
    self->is_reading = true;
    pthread_cond_broadcast(&self->changed);
    while (!self->may_end) {
        pthread_cond_wait(&self->changed, &self->mutex);
    }
    pthread_mutex_unlock(&self->mutex);
    return true;
}

static bool write_nowhere(void *context, uint64_t offset, const uint8_t *bytes, size_t length)
{
    (void)context;
    (void)offset;
    (void)bytes;
    (void)length;
    return true;
}

static void *run_other(void *argument)
{
    struct sha256 sum;
    const struct relay relay = {
        .to = 1, .sum = &sum, .context = argument, .read = read_until_told, .write = write_nowhere};
    sha256_start(&sum);
    ck_assert(relay_run(&relay));
    return NULL;
}

/* Waits until the other relay is under way. */
static void begin_other(void)
{
    other = (struct other){.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    ck_assert_int_eq(pthread_create(&other.thread, NULL, run_other, &other), 0);
    pthread_mutex_lock(&other.mutex);
    while (!other.is_reading) {
        pthread_cond_wait(&other.changed, &other.mutex);
    }
    pthread_mutex_unlock(&other.mutex);
}

static void end_other(void)
{
    pthread_mutex_lock(&other.mutex);
    other.may_end = true;
    pthread_cond_broadcast(&other.changed);
    pthread_mutex_unlock(&other.mutex);
    ck_assert_int_eq(pthread_join(other.thread, NULL), 0);
}

enum { PIECES_ALONE = 3, PIECES_MOST = 8192 };

/* Alone while the other relay has the second processor; then until somebody else reads. */
static bool read_until_helped(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    struct place *self = context;
    memset(ret_bytes, 0, length);
    self->has_helper = self->has_helper || !pthread_equal(pthread_self(), self->caller);
    if (offset == PIECES_ALONE * (uint64_t)RELAY_PIECE_BYTES) {
        ck_assert(!self->has_helper);
        end_other();
    }
    return !self->has_helper;
}

/* Holds the process to two of the processors. Returns false when there are fewer. */
static bool hold_to_two(const cpu_set_t *all)
{
    cpu_set_t two;
    CPU_ZERO(&two);
    for (unsigned i = 0; i < CPU_SETSIZE && CPU_COUNT(&two) < 2; i++) {
        if (CPU_ISSET(i, all)) {
            CPU_SET(i, &two);
        }
    }
    return CPU_COUNT(&two) == 2 && sched_setaffinity(0, sizeof two, &two) == 0;
}

START_TEST(whom_nobody_helped_is_helped_when_another_relay_has_ended)
{
    cpu_set_t all;
    struct sha256 sum;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    if (!hold_to_two(&all)) {
        return; /* nobody helps on one processor */
    }
    begin_other();
    place.caller = pthread_self();
    const struct relay relay = {.to = PIECES_MOST * (uint64_t)RELAY_PIECE_BYTES,
                                .sum = &sum,
                                .context = &place,
                                .read = read_until_helped,
                                .write = write_nowhere};
    sha256_start(&sum);
    ck_assert(!relay_run(&relay)); /* ended by the helper's first reading */
    ck_assert(place.has_helper);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

static unsigned threads(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        count += task->d_name[0] != '.';
    }
    (void)closedir(tasks);
    return count;
}

static unsigned threads_before; /* the relay */

/* Reads until somebody else reads, when another relay begins, and then until the other is gone. */
static bool read_until_left_alone(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    struct place *self = context;
    (void)offset;
    memset(ret_bytes, 0, length);
    if (!self->has_helper && !pthread_equal(pthread_self(), self->caller)) {
        self->has_helper = true;
        begin_other();
    }
    return !self->has_helper || threads() > threads_before + 1;
}

/* Writes so slowly that whoever waits to read has his turn. */
static bool write_slowly(void *context, uint64_t offset, const uint8_t *bytes, size_t length)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    (void)nanosleep(&moment, NULL);
    return write_nowhere(context, offset, bytes, length);
}

START_TEST(who_helps_leaves_when_another_relay_begins)
{
    cpu_set_t all;
    struct sha256 sum;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    if (!hold_to_two(&all)) {
        return; /* nobody helps on one processor */
    }
    begin_threads();
    place.caller = pthread_self();
    threads_before = threads();
    const struct relay relay = {.to = PIECES_MOST * (uint64_t)RELAY_PIECE_BYTES,
                                .sum = &sum,
                                .context = &place,
                                .read = read_until_left_alone,
                                .write = write_slowly};
    sha256_start(&sum);
    ck_assert(!relay_run(&relay)); /* ended by the first piece without him */
    ck_assert(place.has_helper);
    end_other();
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

SUITE("relay", setup, teardown,
      LOOP(all_bytes_arrive_in_order_and_have_the_hash_of_the_whole, 0,
           sizeof spans / sizeof spans[0]),
      LOOP(what_cannot_be_read_or_written_ends_it, 0, 5), TEST(on_one_processor_nobody_helps),
      TEST(whom_nobody_helped_is_helped_when_another_relay_has_ended),
      TEST(who_helps_leaves_when_another_relay_begins))
