/* Blobs that come through streams: when they are whole, and all that ends one. */
#include "broker/blob/port/upload_stream.h"

#include "base/sha256.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ALICE = 3, BOB = 4, SIZE = (5 << 20) + 77 };

static struct disk_reserve reserve;
static struct upload_streams *streams;
static uint8_t *bytes;
static int file;

static void setup(void)
{
    atomic_init(&reserve.state, DISK_RESERVE_UNUSED);
    streams = upload_streams_create(&reserve);
    ck_assert_ptr_nonnull(streams);
    file = memfd_create("blob", MFD_CLOEXEC);
    bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (uint8_t)(i * 7 + (i >> 10));
    }
}

static void teardown(void)
{
    upload_streams_destroy(&streams);
    (void)close(file);
    free(bytes);
}

static struct upload_stream_facts facts_of(uint32_t account, uint64_t size)
{
    return (struct upload_stream_facts){.token = entropy_id(),
                                        .account = account,
                                        .hash = sha256_of(bytes, (size_t)size),
                                        .size = size,
                                        .upload = 17,
                                        .fd = file};
}

static int begun(const struct upload_stream_facts *facts)
{
    int end = -1;
    ck_assert(upload_streams_have_room(streams, facts->account));
    ck_assert(upload_streams_begin(streams, facts, &end));
    ck_assert_int_ge(end, 0);
    return end;
}

/* Sends as much as the stream takes. */
static size_t sent(int end, const uint8_t *from, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t put = send(end, from + done, length - done, MSG_NOSIGNAL);
        if (put <= 0) {
            break;
        }
        done += (size_t)put;
    }
    return done;
}

static struct upload_stream_end ended(void)
{
    struct upload_stream_end end;
    struct pollfd item = {.fd = upload_streams_descriptor(streams), .events = POLLIN};
    ck_assert_int_eq(poll(&item, 1, -1), 1);
    ck_assert(upload_streams_take_ended(streams, &end));
    ck_assert_uint_eq(end.upload, 17);
    return end;
}

START_TEST(what_comes_whole_is_in_the_file)
{
    struct upload_stream_facts facts = facts_of(ALICE, SIZE);
    int end = begun(&facts);
    int place = upload_streams_find(streams, ALICE, &facts.token);
    struct upload_stream_end none;
    ck_assert_int_ge(place, 0);
    ck_assert_int_eq(upload_streams_find(streams, BOB, &facts.token), -1);
    ck_assert(!upload_streams_take_ended(streams, &none));
    ck_assert_uint_eq(sent(end, bytes, SIZE), SIZE);
    struct upload_stream_end stream = ended();
    ck_assert_int_eq(stream.status, UPLOAD_STREAM_WHOLE);
    ck_assert_int_eq(stream.place, place);
    ck_assert_uint_eq(stream.size, SIZE);
    ck_assert(hash32_equal(&stream.hash, &facts.hash));
    ck_assert_int_eq(upload_streams_find(streams, ALICE, &facts.token), -1);
    uint8_t *found = malloc(SIZE + 1);
    ck_assert_int_eq(pread(file, found, SIZE + 1, 0), SIZE);
    ck_assert_mem_eq(found, bytes, SIZE);
    free(found);
    (void)close(end);
}
END_TEST

START_TEST(what_follows_the_last_byte_goes_nowhere)
{
    struct upload_stream_facts facts = facts_of(ALICE, 1000);
    int end = begun(&facts);
    (void)sent(end, bytes, 3000);
    ck_assert_int_eq(ended().status, UPLOAD_STREAM_WHOLE);
    ck_assert_int_eq(lseek(file, 0, SEEK_END), 1000);
    ck_assert_uint_eq(sent(end, bytes, 1000), 0); /* nobody is there any more */
    (void)close(end);
}
END_TEST

START_TEST(other_bytes_are_not_the_blob)
{
    struct upload_stream_facts facts = facts_of(ALICE, SIZE);
    int end = begun(&facts);
    bytes[SIZE - 1] ^= 1;
    ck_assert_uint_eq(sent(end, bytes, SIZE), SIZE);
    ck_assert_int_eq(ended().status, UPLOAD_STREAM_ENDED);
    (void)close(end);
}
END_TEST

START_TEST(a_stream_that_ends_early_is_not_the_blob)
{
    struct upload_stream_facts facts = facts_of(ALICE, SIZE);
    int end = begun(&facts);
    ck_assert_uint_eq(sent(end, bytes, SIZE - 1), SIZE - 1);
    (void)close(end);
    ck_assert_int_eq(ended().status, UPLOAD_STREAM_ENDED);
    end = begun(&facts);
    (void)close(end); /* without a byte */
    ck_assert_int_eq(ended().status, UPLOAD_STREAM_ENDED);
}
END_TEST

START_TEST(without_room_on_the_disk_nothing_is_taken)
{
    struct upload_stream_facts facts = facts_of(ALICE, SIZE);
    atomic_store(&reserve.state, DISK_RESERVE_IN_USE);
    int end = begun(&facts);
    ck_assert_uint_lt(sent(end, bytes, SIZE), SIZE);
    ck_assert_int_eq(ended().status, UPLOAD_STREAM_ENDED);
    ck_assert_int_eq(lseek(file, 0, SEEK_END), 0);
    (void)close(end);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_ends_it)
{
    struct upload_stream_facts facts = facts_of(ALICE, SIZE);
    facts.fd = -1;
    int end = begun(&facts);
    (void)sent(end, bytes, SIZE);
    ck_assert_int_eq(ended().status, UPLOAD_STREAM_ENDED);
    (void)close(end);
}
END_TEST

START_TEST(a_file_that_cannot_be_made_durable_is_told)
{
    struct upload_stream_facts facts = facts_of(ALICE, 0);
    facts.fd = -1; /* nothing to write, and fsync fails */
    int end = begun(&facts);
    ck_assert_int_eq(ended().status, UPLOAD_STREAM_UNSYNCED);
    (void)close(end);
}
END_TEST

START_TEST(an_account_has_its_share_and_all_end_with_the_broker)
{
    int ends[UPLOAD_STREAMS_MAX];
    size_t count = 0;
    struct upload_stream_facts facts;
    for (uint32_t account = ALICE; count < UPLOAD_STREAMS_MAX; account++) {
        for (size_t i = 0; i < UPLOAD_STREAMS_PER_ACCOUNT; i++) {
            facts = facts_of(account, SIZE);
            ends[count++] = begun(&facts);
        }
        ck_assert(!upload_streams_have_room(streams, account));
    }
    ck_assert(!upload_streams_have_room(streams, 1000));
    (void)close(ends[0]);
    ck_assert_int_eq(ended().status, UPLOAD_STREAM_ENDED);
    ck_assert(upload_streams_have_room(streams, ALICE));
    ck_assert(upload_streams_have_room(streams, 1000));
    facts = facts_of(1000, SIZE);
    ends[0] = begun(&facts);
    upload_streams_destroy(&streams); /* though nobody has sent a byte */
    ck_assert_ptr_null(streams);
    for (size_t i = 0; i < UPLOAD_STREAMS_MAX; i++) {
        ck_assert_uint_eq(sent(ends[i], bytes, 1), 0);
        (void)close(ends[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("upload_stream");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, what_comes_whole_is_in_the_file);
    tcase_add_test(tests, what_follows_the_last_byte_goes_nowhere);
    tcase_add_test(tests, other_bytes_are_not_the_blob);
    tcase_add_test(tests, a_stream_that_ends_early_is_not_the_blob);
    tcase_add_test(tests, without_room_on_the_disk_nothing_is_taken);
    tcase_add_test(tests, a_file_that_cannot_be_written_ends_it);
    tcase_add_test(tests, a_file_that_cannot_be_made_durable_is_told);
    tcase_add_test(tests, an_account_has_its_share_and_all_end_with_the_broker);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
