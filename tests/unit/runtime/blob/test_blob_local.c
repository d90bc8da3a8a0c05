#include "protocol/reject.h"
#include "tests/support/blob_port.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

START_TEST(a_ticket_brings_the_whole_file)
{
    struct local local = open_local();
    struct problem problem = {""};
    check_get(local.port, &local.source);
    ck_assert_int_eq(atomic_load(&local.port->gets), 1);

    struct taker taker = {.source = &local.source, .most = UINT64_MAX, .any_order = true};
    atomic_store(&local.port->gives_tickets, true);
    ck_assert_msg(take_all(local.port, &taker, &problem), "%s", problem.text);
    ck_assert_uint_eq(taker.taken, local.source.size);
    ck_assert_int_eq(atomic_load(&local.port->gets), 2);

    taker.most = local.source.size - 1; /* our side ends it: nothing is asked for again */
    atomic_store(&local.port->gives_tickets, true);
    ck_assert(!take_all(local.port, &taker, &problem));
    ck_assert_str_eq(problem.text, "it is enough");
    ck_assert_int_eq(atomic_load(&local.port->gets), 3);

    enum reject_code reject;
    uint8_t *bytes;
    size_t length;
    atomic_store(&local.port->gives_tickets, true);
    ck_assert(!blob_client_get_bytes(local.port->client, &local.source.hash, NULL, 1000, &bytes,
                                     &length, &reject, &problem));
    ck_assert_int_eq(reject, REJECT_TOO_LARGE);
    ck_assert_int_eq(atomic_load(&local.port->tickets), 4);
    close_local(&local);
}
END_TEST

START_TEST(a_file_is_borrowed_as_it_is)
{
    struct local local = open_local();
    struct blob_client *client = local.port->client;
    const struct hash32 *hash = &local.source.hash;
    const struct hash32 absent = {{1}};
    uint64_t size = 0;
    char byte;
    int fd = blob_client_borrow(client, hash, NULL, BLOB_BYTES_MAX, &size, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_eq(size, local.source.size);
    ck_assert_int_eq(pread(fd, &byte, 1, 0), 1);
    (void)close(fd);

    atomic_store(&local.port->gives_tickets, true);
    ck_assert_int_eq(blob_client_borrow(client, hash, NULL, 1000, &size, NULL), -1); /* too large */
    ck_assert_int_eq(blob_client_borrow(client, &absent, NULL, BLOB_BYTES_MAX, &size, NULL), -1);
    atomic_store(&local.port->gives_tickets, false); /* bytes instead of a ticket */
    ck_assert_int_eq(blob_client_borrow(client, hash, NULL, BLOB_BYTES_MAX, &size, NULL), -1);
    ck_assert_int_eq(ftruncate(local.file, 2 << 20), 0);
    atomic_store(&local.port->gives_tickets, true); /* of a file that is shorter than was said */
    ck_assert_int_eq(blob_client_borrow(client, hash, NULL, BLOB_BYTES_MAX, &size, NULL), -1);
    check_get(local.port, &local.source); /* and the connection goes on */
    close_local(&local);
}
END_TEST

START_TEST(a_borrowed_file_is_hashed_as_the_sender_says_if_it_is_to_that)
{
    struct local local = open_local();
    const struct hash32 *hash = &local.source.hash;
    const struct hash32 other = {{1}}; /* as of a file that a stranger sent elsewhere */
    const struct hash32 *const said[] = {NULL, hash, &other};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        bool is_hashed = said[i] != hash;
        uint64_t size = 0;
        atomic_store(&local.port->said, said[i]);
        atomic_store(&local.port->gives_tickets, true);
        int fd =
            blob_client_borrow(local.port->client, hash, NULL, BLOB_BYTES_MAX, &size, &is_hashed);
        ck_assert_int_ge(fd, 0);
        ck_assert(is_hashed == (said[i] == hash));
        (void)close(fd);
    }
    close_local(&local);
}
END_TEST

enum wrong { ABSENT, DENIED, SHORT, LONG, FIFO, UNREADABLE, WRONG_COUNT };

START_TEST(what_a_ticket_does_not_bring_comes_in_pieces)
{
    struct local local = open_local();
    int ends[2] = {-1, -1};
    switch ((enum wrong)_i) {
    case ABSENT:
        (void)unlink(local.path);
        break;
    case DENIED:
        atomic_store(&local.port->handed, -1);
        break;
    case SHORT:
        ck_assert_int_eq(ftruncate(local.file, 2 << 20), 0);
        break;
    case LONG:
        ck_assert_int_eq(ftruncate(local.file, 4 << 20), 0);
        break;
    case FIFO:
        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        atomic_store(&local.port->handed, ends[0]);
        break;
    case UNREADABLE: {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/w", local.folder);
        ends[0] = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_eq(ftruncate(ends[0], (off_t)local.source.size), 0);
        (void)unlink(path);
        atomic_store(&local.port->handed, ends[0]);
        break;
    }
    case WRONG_COUNT:
        break;
    }
    check_get(local.port, &local.source);
    ck_assert_int_eq(atomic_load(&local.port->tickets), 1);
    ck_assert_int_gt(atomic_load(&local.port->gets), 3);
    (void)close(ends[0]);
    (void)close(ends[1]);
    close_local(&local);
}
END_TEST

START_TEST(a_file_with_other_bytes_is_refused_and_asked_for_once_more)
{
    struct local local = open_local();
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *bytes;
    size_t length;
    ck_assert_int_eq(pwrite(local.file, "?", 1, (off_t)local.source.size - 1), 1);
    atomic_store(&local.port->lies, true); /* the pieces, too */
    ck_assert(!blob_client_get_bytes(local.port->client, &local.source.hash, NULL, BLOB_BYTES_MAX,
                                     &bytes, &length, &reject, &problem));
    ck_assert_int_eq(reject, REJECT_BLOB_HASH);
    atomic_store(&local.port->lies, false);
    atomic_store(&local.port->gives_tickets, true);
    check_get(local.port, &local.source); /* the file is wrong, and the pieces are right */
    ck_assert_int_eq(atomic_load(&local.port->tickets), 2);
    close_local(&local);
}
END_TEST

START_TEST(two_files_are_taken_at_once)
{
    struct local local = open_local();
    struct problem problem = {""};
    struct taker takers[2];
    struct blob_want wants[2];
    size_t failed = 7;
    enum reject_code reject;
    for (size_t i = 0; i < 2; i++) {
        takers[i] = (struct taker){.source = &local.source, .most = UINT64_MAX, .any_order = true};
        wants[i] = (struct blob_want){
            .hash = local.source.hash, .size = local.source.size, .context = &takers[i]};
    }
    struct blob_client *client = local.port->client;
    atomic_store(&local.port->keeps_giving, true);
    ck_assert(blob_client_get_many(client, wants, 2, NULL, take_piece, &failed, &reject, &problem));
    ck_assert_uint_eq(takers[0].taken, local.source.size);
    ck_assert_uint_eq(takers[1].taken, local.source.size);
    ck_assert_int_eq(atomic_load(&local.port->tickets), 2);
    ck_assert_int_eq(atomic_load(&local.port->gets), 2);

    takers[1].most = local.source.size - 1; /* our side ends it: nothing is asked for again */
    ck_assert(
        !blob_client_get_many(client, wants, 2, NULL, take_piece, &failed, &reject, &problem));
    ck_assert_str_eq(problem.text, "it is enough");
    ck_assert_uint_eq(failed, 1);
    ck_assert_int_eq(reject, REJECT_NONE);
    ck_assert_int_eq(atomic_load(&local.port->gets), 4);
    close_local(&local);
}
END_TEST

static bool take_any(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                     struct problem *ret_problem)
{
    (void)context;
    (void)offset;
    (void)bytes;
    (void)length;
    (void)ret_problem;
    return true;
}

START_TEST(of_two_files_that_with_other_bytes_is_refused_and_asked_for_once_more)
{
    struct local local = open_local();
    struct problem problem = {""};
    const struct blob_want want = {.hash = local.source.hash, .size = local.source.size};
    const struct blob_want wants[2] = {want, want};
    size_t failed = 7;
    enum reject_code reject;
    atomic_store(&local.port->keeps_giving, true);
    ck_assert_int_eq(pwrite(local.file, "?", 1, (off_t)local.source.size - 1), 1);
    atomic_store(&local.port->lies, true); /* the pieces, too */
    ck_assert(!blob_client_get_many(local.port->client, wants, 2, NULL, take_any, &failed, &reject,
                                    &problem));
    ck_assert_uint_eq(failed, 0);
    ck_assert_int_eq(reject, REJECT_BLOB_HASH);
    atomic_store(&local.port->lies, false);
    ck_assert(blob_client_get_many(local.port->client, wants, 2, NULL, take_any, &failed, &reject,
                                   &problem));

    atomic_store(&local.port->gives_tickets, false); /* bytes instead: in pieces */
    ck_assert(blob_client_get_many(local.port->client, wants, 2, NULL, take_any, &failed, &reject,
                                   &problem));
    close_local(&local);
}
END_TEST

START_TEST(a_ticket_that_was_not_asked_for_is_told)
{
    struct port *port = port_open(); /* not on this machine, as far as the client knows */
    uint8_t *bytes = pattern_of(2 << 20, 6);
    struct blob_source source = source_of(bytes, 2 << 20);
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *got;
    size_t length;
    ck_assert(put_blobs(port, &source, 1, &reject));
    atomic_store(&port->gives_tickets, true);
    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, BLOB_BYTES_MAX, &got,
                                     &length, &reject, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "other bytes than asked for"));
    free(bytes);
    port_close(port);
}
END_TEST

enum { SENT_COUNT = 4, SENT_BYTES = 2 << 20 };

/* The i-th has SENT_BYTES + i bytes; the last is small. */
static void make_sources(struct blob_source sources[SENT_COUNT], uint8_t *ret_bytes[SENT_COUNT])
{
    for (size_t i = 0; i < SENT_COUNT; i++) {
        size_t size = i + 1 < SENT_COUNT ? SENT_BYTES + i : 1000;
        ret_bytes[i] = pattern_of(size, (uint8_t)(40 + i));
        sources[i] = source_of(ret_bytes[i], size);
    }
}

/* They arrive at a port that gives streams, which err so. */
static void send_sources(struct port *port, enum stream_fault fault)
{
    struct blob_source sources[SENT_COUNT];
    uint8_t *bytes[SENT_COUNT];
    enum reject_code reject;
    make_sources(sources, bytes);
    atomic_store(&port->gives_tickets, false);
    atomic_store(&port->pieces, 0);
    atomic_store(&port->gives_streams, true);
    atomic_store(&port->stream_fault, fault);
    ck_assert(put_blobs(port, sources, SENT_COUNT, &reject));
    for (size_t i = 0; i < SENT_COUNT; i++) {
        check_get(port, &sources[i]);
        free(bytes[i]);
    }
}

START_TEST(large_blobs_go_through_streams)
{
    struct local local = open_local();
    send_sources(local.port, STREAM_GOOD);
    ck_assert_uint_eq(local.port->stream_count, SENT_COUNT - 1);
    ck_assert_int_eq(atomic_load(&local.port->pieces), 1); /* the small one */
    close_local(&local);
}
END_TEST

/* The first bytes of a made blob lie in no file, the others in stretches, some too short to be sent
 * by themselves. */
enum { LIES_FROM = 100, LIES_AT = 7, STRETCH_BYTES = 700000, SHORT_BYTES = 1000 };
struct lying {
    const uint8_t *bytes;
    int fd;
};

static bool read_lying(void *context, size_t index, uint64_t offset, size_t length,
                       uint8_t *ret_bytes, struct problem *ret_problem)
{
    const struct lying *lying = context;
    (void)index;
    (void)ret_problem;
    memcpy(ret_bytes, lying->bytes + offset, length);
    return true;
}

static bool locate_lying(void *context, size_t index, uint64_t offset, struct blob_place *ret_place)
{
    const struct lying *lying = context;
    const uint64_t within = offset % STRETCH_BYTES;
    (void)index;
    ret_place->fd = lying->fd;
    ret_place->at = LIES_AT + offset;
    ret_place->length = within < SHORT_BYTES ? SHORT_BYTES - within : STRETCH_BYTES - within;
    return offset >= LIES_FROM;
}

START_TEST(what_lies_in_a_file_is_sent_from_there)
{
    struct local local = open_local();
    uint8_t *bytes = pattern_of(2 * SENT_BYTES, 60);
    struct lying lying = {.bytes = bytes, .fd = memfd_create("lying", MFD_CLOEXEC)};
    struct blob_source source = source_of(bytes, 2 * SENT_BYTES);
    struct blob_source made = source;
    enum reject_code reject;
    ck_assert_int_eq(pwrite(lying.fd, bytes, 2 * SENT_BYTES, LIES_AT), 2 * SENT_BYTES);
    made.bytes = NULL;
    made.read = read_lying;
    made.locate = locate_lying;
    made.context = &lying;
    atomic_store(&local.port->gives_tickets, false);
    atomic_store(&local.port->gives_streams, true);
    atomic_store(&local.port->stream_fault, (enum stream_fault)_i);
    ck_assert(put_blobs(local.port, &made, 1, &reject));
    check_get(local.port, &source);
    (void)close(lying.fd);
    free(bytes);
    close_local(&local);
}
END_TEST

START_TEST(what_does_not_go_through_a_stream_goes_in_pieces)
{
    struct local local = open_local();
    send_sources(local.port, (enum stream_fault)_i);
    ck_assert_uint_ge(local.port->stream_count, 1);
    ck_assert_int_ge(atomic_load(&local.port->pieces), SENT_COUNT);
    close_local(&local);
}
END_TEST

START_TEST(a_source_that_ends_early_ends_a_stream)
{
    struct local local = open_local();
    struct problem problem = {""};
    enum reject_code reject;
    bool is_unread = false;
    uint8_t *bytes = pattern_of(SENT_BYTES, 50);
    struct blob_source cut = source_of(bytes, SENT_BYTES);
    cut.bytes = NULL;
    cut.fd = memfd_create("cut", MFD_CLOEXEC);
    ck_assert_int_eq(write(cut.fd, bytes, SENT_BYTES - 1), SENT_BYTES - 1);
    atomic_store(&local.port->gives_streams, true);
    ck_assert(!blob_client_put(local.port->client, &cut, 1, NULL, NULL, NULL, &reject, &is_unread,
                               &problem));
    ck_assert(is_unread);
    ck_assert_ptr_nonnull(strstr(problem.text, "shorter"));
    ck_assert_uint_eq(local.port->stream_count, 1);
    (void)close(cut.fd);
    free(bytes);
    close_local(&local);
}
END_TEST

SUITE("blob_local", NULL, NULL, TEST(a_ticket_brings_the_whole_file),
      TEST(a_file_is_borrowed_as_it_is),
      TEST(a_borrowed_file_is_hashed_as_the_sender_says_if_it_is_to_that),
      LOOP(what_a_ticket_does_not_bring_comes_in_pieces, 0, WRONG_COUNT),
      TEST(a_file_with_other_bytes_is_refused_and_asked_for_once_more),
      TEST(two_files_are_taken_at_once),
      TEST(of_two_files_that_with_other_bytes_is_refused_and_asked_for_once_more),
      TEST(a_ticket_that_was_not_asked_for_is_told), TEST(large_blobs_go_through_streams),
      LOOP(what_does_not_go_through_a_stream_goes_in_pieces, STREAM_NOT_HANDED, STREAM_FAULTS),
      LOOP(what_lies_in_a_file_is_sent_from_there, STREAM_GOOD, STREAM_FAULTS),
      TEST(a_source_that_ends_early_ends_a_stream))
