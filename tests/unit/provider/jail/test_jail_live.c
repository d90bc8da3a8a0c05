/* The tests write the output of a run as the worker does, and read it as the agent does. */
#include "provider/jail/jail_internal.h"
#include "provider/worker/wire.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KEPT = 1000, SAFE = WIRE_RING_BYTES - WIRE_DRAIN_BYTES };

static struct jail jail;
static uint64_t written; /* so many bytes, each of which says its place */

static uint8_t byte_at(uint64_t place)
{
    return (uint8_t)(place * 7 + place / 251);
}

static void open_run(void)
{
    jail = (struct jail){.running = true, .number = 3, .kept_bytes = KEPT};
    pthread_mutex_init(&jail.lock, NULL);
    jail.capture[0] = memfd_create("out", MFD_CLOEXEC);
    jail.capture[1] = memfd_create("error", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(jail.capture[0], WIRE_CAPTURE_FILE_BYTES), 0);
    ck_assert_int_eq(ftruncate(jail.capture[1], WIRE_CAPTURE_FILE_BYTES), 0);
    written = 0;
}

static void close_run(void)
{
    close(jail.capture[0]);
    close(jail.capture[1]);
    pthread_mutex_destroy(&jail.lock);
}

static void mark_as(uint64_t number, uint64_t total, uint64_t check)
{
    const uint64_t mark[WIRE_MARK_WORDS] = {number, total, check};
    ck_assert_int_eq(pwrite(jail.capture[0], mark, sizeof mark, WIRE_MARK_AT), sizeof mark);
}

static void write_more(uint64_t bytes)
{
    for (uint64_t end = written + bytes; written < end; written++) {
        const uint8_t byte = byte_at(written);
        const uint64_t at = written < KEPT
                                ? written
                                : (uint64_t)WIRE_CAPTURE_BYTES + (written - KEPT) % WIRE_RING_BYTES;
        ck_assert_int_eq(pwrite(jail.capture[0], &byte, 1, (off_t)at), 1);
    }
    mark_as(jail.number, written, wire_mark_check(jail.number, written));
}

/* Reads from `from` on, and looks at every byte. */
static struct jail_live read_from(uint64_t from)
{
    static uint8_t bytes[2 * WIRE_RING_BYTES];
    struct jail_live live;
    ck_assert(jail_read_live(&jail, 0, false, from, bytes, sizeof bytes, &live));
    for (size_t i = 0; i < live.length; i++) {
        ck_assert_uint_eq(bytes[i], byte_at(live.offset + i));
    }
    return live;
}

START_TEST(what_was_written_is_read_once)
{
    struct jail_live live;
    ck_assert(!jail_read_live(&jail, 0, false, 0, NULL, 0, &live)); /* no mark yet */
    write_more(10);
    live = read_from(0);
    ck_assert_uint_eq(live.length, 10);
    ck_assert_uint_eq(live.total, 10);
    ck_assert_uint_eq(read_from(10).length, 0);
    write_more(5);
    live = read_from(10);
    ck_assert_uint_eq(live.offset, 10);
    ck_assert_uint_eq(live.length, 5);
}
END_TEST

START_TEST(output_goes_on_above_what_is_kept)
{
    uint64_t at = 0;
    for (int i = 0; i < 6; i++) {
        write_more(WIRE_RING_BYTES / 3);
        const struct jail_live live = read_from(at);
        ck_assert_uint_eq(live.offset, at);
        at += live.length;
        ck_assert_uint_eq(at, written);
    }
}
END_TEST

START_TEST(a_slow_reader_misses_the_oldest_bytes)
{
    write_more(KEPT + 2 * WIRE_RING_BYTES);
    struct jail_live live = read_from(0);
    ck_assert_uint_eq(live.offset, 0);
    ck_assert_uint_eq(live.length, KEPT); /* what the result keeps is never lost */
    live = read_from(KEPT);
    ck_assert_uint_eq(live.offset, written - SAFE);
    ck_assert_uint_eq(live.length, SAFE);
}
END_TEST

START_TEST(a_mark_of_another_run_or_a_torn_one_says_nothing)
{
    struct jail_live live;
    write_more(100);
    jail.number++; /* the next run has begun, and has not written yet */
    ck_assert_uint_eq(read_from(0).length, 0);
    mark_as(jail.number, 50, 1);
    ck_assert(!jail_read_live(&jail, 0, false, 0, NULL, 0, &live));
    mark_as(jail.number, UINT64_MAX, wire_mark_check(jail.number, UINT64_MAX));
    ck_assert(!jail_read_live(&jail, 0, false, 0, NULL, 0, &live));
}
END_TEST

START_TEST(a_run_that_has_ended_is_read_as_such)
{
    uint8_t bytes[64];
    struct jail_live live;
    write_more(50);
    ck_assert(!jail_read_live(&jail, 0, true, 0, bytes, sizeof bytes, &live));
    jail.running = false;
    ck_assert(!jail_read_live(&jail, 0, false, 0, bytes, sizeof bytes, &live));
    ck_assert(jail_read_live(&jail, 0, true, 0, bytes, sizeof bytes, &live));
    ck_assert_uint_eq(live.length, 50);
}
END_TEST

START_TEST(a_lying_mark_reads_no_further_than_the_file)
{
    static uint8_t bytes[2 * WIRE_RING_BYTES];
    struct jail_live live;
    mark_as(jail.number, INT64_MAX, wire_mark_check(jail.number, INT64_MAX));
    ck_assert(jail_read_live(&jail, 0, false, 0, bytes, sizeof bytes, &live));
    ck_assert_uint_le(live.length, sizeof bytes);
    ck_assert(jail_read_live(&jail, 0, false, INT64_MAX - 1, bytes, sizeof bytes, &live));
    ck_assert_uint_le(live.length, 1);
}
END_TEST

SUITE("jail_live", open_run, close_run, TEST(what_was_written_is_read_once),
      TEST(output_goes_on_above_what_is_kept), TEST(a_slow_reader_misses_the_oldest_bytes),
      TEST(a_mark_of_another_run_or_a_torn_one_says_nothing),
      TEST(a_run_that_has_ended_is_read_as_such), TEST(a_lying_mark_reads_no_further_than_the_file))
