#include "base/sha256.h"
#include "protocol/reject.h"
#include "tests/support/blob_port.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t sizes[] = {1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5000000, 20 << 20};
enum { SIZE_COUNT = sizeof sizes / sizeof sizes[0] };

START_TEST(what_is_put_can_be_got)
{
    struct port *port = port_open();
    uint8_t *bytes = pattern_of(sizes[_i], 1);
    struct blob_source source = source_of(bytes, sizes[_i]);
    enum reject_code reject;
    ck_assert(put_blobs(port, &source, 1, &reject));
    check_get(port, &source);
    struct problem problem = {""};
    struct taker taker = {.source = &source, .most = UINT64_MAX};
    ck_assert_msg(take_all(port, &taker, &problem), "%s", problem.text);
    ck_assert_uint_eq(taker.taken, source.size);
    taker.most = source.size - 1;
    ck_assert(!take_all(port, &taker, &problem));
    ck_assert_str_eq(problem.text, "it is enough");
    free(bytes);
    port_close(port);
}
END_TEST

static void add_bytes(void *context, uint64_t bytes)
{
    *(uint64_t *)context += bytes;
}

START_TEST(every_byte_of_both_directions_is_measured)
{
    enum { SIZE = 5000000, MORE = 20000 }; /* heads, hashes and answers are little */
    struct port *port = port_open();
    uint8_t *bytes = pattern_of(SIZE, 1);
    struct blob_source source = source_of(bytes, SIZE);
    enum reject_code reject;
    uint64_t measured = 0;
    blob_client_measure(port->client, add_bytes, &measured);
    ck_assert(put_blobs(port, &source, 1, &reject));
    ck_assert(measured > SIZE && measured < SIZE + MORE);
    measured = 0;
    check_get(port, &source);
    ck_assert(measured > SIZE && measured < SIZE + MORE);
    free(bytes);
    port_close(port);
}
END_TEST

/* The maker makes a blob as it is sent: the first `ends` bytes of it. */
struct maker {
    const uint8_t *bytes[2];
    uint64_t ends;
};

static bool make(void *context, size_t index, uint64_t offset, size_t length, uint8_t *ret_bytes,
                 struct problem *ret_problem)
{
    const struct maker *maker = context;
    if (offset + length > maker->ends) {
        problem_set(ret_problem, "it ends");
        return false;
    }
    memcpy(ret_bytes, maker->bytes[index] + offset, length);
    return true;
}

START_TEST(what_is_made_as_it_is_sent_arrives)
{
    enum { SIZE = 3 << 20 };
    struct port *port = port_open();
    struct maker maker = {.bytes = {pattern_of(SIZE, 1), pattern_of(SIZE, 2)}, .ends = SIZE};
    struct blob_source sources[2];
    enum reject_code reject;
    for (size_t i = 0; i < 2; i++) {
        sources[i] = source_of(maker.bytes[i], SIZE);
        sources[i].bytes = NULL;
        sources[i].read = make;
        sources[i].context = &maker;
        sources[i].index = i;
    }
    ck_assert(put_blobs(port, sources, 1, &reject));
    sources[0].bytes = maker.bytes[0];
    check_get(port, &sources[0]);
    /* A blob that cannot be made is said, and the connection can be used again. */
    struct problem problem = {""};
    maker.ends = SIZE - 1;
    ck_assert(
        !blob_client_put(port->client, sources, 2, NULL, NULL, NULL, &reject, NULL, &problem));
    ck_assert_str_eq(problem.text, "it ends");
    ck_assert_int_eq(reject, REJECT_NONE);
    maker.ends = SIZE;
    ck_assert(put_blobs(port, sources, 2, &reject));
    sources[1].bytes = maker.bytes[1];
    check_get(port, &sources[1]);
    free((void *)(uintptr_t)maker.bytes[0]);
    free((void *)(uintptr_t)maker.bytes[1]);
    port_close(port);
}
END_TEST

struct told {
    uint64_t done;
    uint64_t total;
    unsigned calls;
};

static void tell(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct told *told = context;
    ck_assert_uint_ge(done_bytes, told->done);
    told->done = done_bytes;
    told->total = total_bytes;
    told->calls++;
}

START_TEST(many_go_at_once_and_what_is_there_is_not_sent)
{
    enum { COUNT = 40 };
    struct port *port = port_open();
    struct blob_source sources[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sources[i] = source_of(pattern_of(100 * i, (uint8_t)i), 100 * i);
    }
    free((void *)(uintptr_t)sources[7].bytes);
    sources[7] = sources[6]; /* the same bytes twice */
    enum reject_code reject;
    ck_assert(put_blobs(port, sources, 20, &reject));
    ck_assert_int_eq(atomic_load(&port->puts), 18); /* not the empty one, not the repeated one */

    struct told told = {0};
    struct problem problem = {""};
    ck_assert(
        blob_client_put(port->client, sources, COUNT, NULL, tell, &told, &reject, NULL, &problem));
    ck_assert_int_eq(atomic_load(&port->puts), 18 + 20);
    ck_assert_uint_eq(told.calls, COUNT);
    ck_assert_uint_eq(told.done, told.total);
    for (size_t i = 0; i < COUNT; i++) {
        check_get(port, &sources[i]);
    }
    ck_assert(put_blobs(port, sources, 0, &reject));
    for (size_t i = 0; i < COUNT; i++) {
        if (i != 7) {
            free((void *)(uintptr_t)sources[i].bytes);
        }
    }
    port_close(port);
}
END_TEST

START_TEST(descriptors_serve_on_both_ends)
{
    struct port *port = port_open();
    size_t size = 3000000;
    uint8_t *bytes = pattern_of(size, 3);
    int from = memfd_create("from", MFD_CLOEXEC);
    int to = memfd_create("to", MFD_CLOEXEC);
    ck_assert_int_eq(write(from, bytes, size), (ssize_t)size);
    struct blob_source source = {.hash = sha256_of(bytes, size), .size = size, .fd = from};
    struct problem problem = {""};
    enum reject_code reject;
    ck_assert(put_blobs(port, &source, 1, &reject));
    uint64_t got;
    int unwritten = 0;
    ck_assert(blob_client_get(port->client, &source.hash, NULL, size, to, &got, &reject, &unwritten,
                              &problem));
    ck_assert_uint_eq(got, size);
    uint8_t *again = malloc(size);
    ck_assert_int_eq(pread(to, again, size, 0), (ssize_t)size);
    ck_assert_mem_eq(again, bytes, size);

    int full = open("/dev/full",
                    O_RDWR | O_CLOEXEC); /* our side's fault, and told apart from the broker's */
    ck_assert(!blob_client_get(port->client, &source.hash, NULL, size, full, &got, &reject,
                               &unwritten, &problem));
    ck_assert_int_eq(reject, REJECT_NONE);
    ck_assert_int_eq(unwritten, ENOSPC);
    (void)close(full);

    uint8_t *other = pattern_of(size + 1, 9); /* of which the file has one byte less */
    struct blob_source cut = {.hash = sha256_of(other, size + 1), .size = size + 1, .fd = from};
    bool unread = false;
    ck_assert(
        !blob_client_put(port->client, &cut, 1, NULL, NULL, NULL, &reject, &unread, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "shorter"));
    ck_assert(unread);
    free(other);
    free(again);
    free(bytes);
    (void)close(from);
    (void)close(to);
    port_close(port);
}
END_TEST

enum { MANY = 30, MANY_BYTES = 70000, WINDOW = 12 };

/* Blob i has MANY_BYTES + i bytes, and its taker is the i-th. */
struct many {
    struct blob_source sources[MANY];
    struct taker takers[MANY];
    struct blob_want wants[MANY];
    uint8_t *bytes[MANY];
};

static void many_setup(struct port *port, struct many *many)
{
    enum reject_code reject;
    for (size_t i = 0; i < MANY; i++) {
        many->bytes[i] = pattern_of(MANY_BYTES + i, (uint8_t)i);
        many->sources[i] = source_of(many->bytes[i], MANY_BYTES + i);
        many->takers[i] = (struct taker){.source = &many->sources[i], .most = UINT64_MAX};
        many->wants[i] = (struct blob_want){.hash = many->sources[i].hash,
                                            .size = many->sources[i].size,
                                            .context = &many->takers[i]};
    }
    ck_assert(put_blobs(port, many->sources, MANY, &reject));
}

static void many_fini(struct many *many)
{
    for (size_t i = 0; i < MANY; i++) {
        free(many->bytes[i]);
    }
}

static bool get_many(struct port *port, const struct many *many, size_t *ret_failed,
                     enum reject_code *ret_reject)
{
    struct problem problem = {""};
    return blob_client_get_many(port->client, many->wants, MANY, NULL, take_piece, ret_failed,
                                ret_reject, &problem);
}

static void check_all_taken(const struct many *many)
{
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(many->takers[i].taken, many->sources[i].size);
    }
}

START_TEST(small_ones_are_asked_for_ahead)
{
    struct port *port = port_open();
    struct many many;
    size_t failed;
    enum reject_code reject;
    many_setup(port, &many);
    atomic_store(&port->hold, WINDOW); /* nothing is answered before so many are asked for */
    ck_assert(get_many(port, &many, &failed, &reject));
    check_all_taken(&many);
    ck_assert_int_eq(atomic_load(&port->gets), MANY);
    many_fini(&many);
    port_close(port);
}
END_TEST

START_TEST(among_many_an_answer_that_was_dropped_is_asked_for_again)
{
    struct port *port = port_open();
    struct many many;
    size_t failed;
    enum reject_code reject;
    many_setup(port, &many);
    atomic_store(&port->drop_answers, 5);
    ck_assert(get_many(port, &many, &failed, &reject));
    check_all_taken(&many);
    ck_assert_int_eq(atomic_load(&port->gets), MANY + 1);
    many_fini(&many);
    port_close(port);
}
END_TEST

START_TEST(among_many_a_large_one_comes_in_pieces_and_an_empty_one_from_nobody)
{
    struct port *port = port_open();
    struct many many;
    size_t failed;
    enum reject_code reject;
    uint8_t *large = pattern_of(3 << 20, 99);
    struct blob_source source = source_of(large, 3 << 20);
    struct blob_source nothing = source_of(large, 0);
    many_setup(port, &many);
    ck_assert(put_blobs(port, &source, 1, &reject));
    many.takers[3] = (struct taker){.source = &source, .most = UINT64_MAX};
    many.wants[3].hash = source.hash;
    many.wants[3].size = source.size;
    many.takers[4] = (struct taker){.source = &nothing, .most = UINT64_MAX};
    many.wants[4].hash = nothing.hash;
    many.wants[4].size = 0;
    ck_assert(get_many(port, &many, &failed, &reject));
    ck_assert_uint_eq(many.takers[3].taken, source.size);
    ck_assert_uint_eq(many.takers[4].taken, 0);
    ck_assert_uint_eq(many.takers[MANY - 1].taken, many.sources[MANY - 1].size);
    free(large);
    many_fini(&many);
    port_close(port);
}
END_TEST

START_TEST(among_many_the_one_that_fails_is_named)
{
    struct port *port = port_open();
    struct many many;
    size_t failed;
    enum reject_code reject;
    many_setup(port, &many);
    many.wants[7].hash.bytes[0] ^= 1; /* nobody has that */
    ck_assert(!get_many(port, &many, &failed, &reject));
    ck_assert_uint_eq(failed, 7);
    ck_assert_int_eq(reject, REJECT_NOT_FOUND);
    many.wants[7].hash.bytes[0] ^= 1;
    many.wants[8].size -= 1; /* it is larger than was said */
    ck_assert(!get_many(port, &many, &failed, &reject));
    ck_assert_uint_eq(failed, 8);
    ck_assert_int_eq(reject, REJECT_TOO_LARGE);
    many.wants[8].size += 1;
    many.takers[9].most = 10;
    ck_assert(!get_many(port, &many, &failed, &reject));
    ck_assert_uint_eq(failed, 9);
    ck_assert_int_eq(reject, REJECT_NONE);
    many_fini(&many);
    port_close(port);
}
END_TEST

static bool take_any(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                     struct problem *ret_problem)
{
    uint64_t *taken = context;
    (void)bytes;
    (void)ret_problem;
    *taken = offset + length;
    return true;
}

START_TEST(among_many_other_bytes_are_refused)
{
    struct port *port = port_open();
    struct many many;
    struct problem problem = {""};
    size_t failed;
    enum reject_code reject;
    uint64_t taken = 0;
    many_setup(port, &many);
    for (size_t i = 0; i < MANY; i++) {
        many.wants[i].context = &taken;
    }
    atomic_store(&port->lies, true);
    ck_assert(!blob_client_get_many(port->client, many.wants, MANY, NULL, take_any, &failed,
                                    &reject, &problem));
    ck_assert_uint_eq(failed, 0);
    ck_assert_int_eq(reject, REJECT_BLOB_HASH);
    many_fini(&many);
    port_close(port);
}
END_TEST

START_TEST(a_busy_broker_is_asked_again)
{
    struct port *port = port_open();
    uint8_t *bytes = pattern_of(3 << 20, 4);
    struct blob_source source = source_of(bytes, 3 << 20);
    enum reject_code reject;
    atomic_store(&port->busy_answers, 3);
    ck_assert(put_blobs(port, &source, 1, &reject));
    atomic_store(&port->busy_answers, 2);
    check_get(port, &source);
    free(bytes);
    port_close(port);
}
END_TEST

START_TEST(of_a_blob_that_can_be_read_in_part_only_enough_is_asked)
{
    struct port *port = port_open();
    uint8_t *bytes = pattern_of(3 << 20, 4);
    struct blob_source source = source_of(bytes, 3 << 20);
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *got;
    size_t length;
    ck_assert(put_blobs(port, &source, 1, &reject));
    atomic_store(&port->unread_from, 1 << 20);
    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, 3 << 20, &got, &length,
                                     &reject, &problem));
    ck_assert_int_eq(reject, REJECT_UNAVAILABLE);
    atomic_store(&port->unread_from, 0);
    check_get(port, &source);
    free(bytes);
    port_close(port);
}
END_TEST

START_TEST(a_blob_goes_on_where_the_broker_says)
{
    struct port *port = port_open();
    uint8_t *bytes = pattern_of(12 << 20, 5);
    struct blob_source source = source_of(bytes, 12 << 20);
    enum reject_code reject;
    atomic_store(&port->forget_after, 6);
    ck_assert(put_blobs(port, &source, 1, &reject));
    check_get(port, &source);
    free(bytes);
    port_close(port);
}
END_TEST

START_TEST(a_dropped_answer_is_asked_for_again)
{
    struct port *port = port_open();
    uint8_t *bytes = pattern_of(8 << 20, 7);
    struct blob_source source = source_of(bytes, 8 << 20);
    enum reject_code reject;
    ck_assert(put_blobs(port, &source, 1, &reject));
    atomic_store(&port->drop_answers, 4);
    check_get(port, &source);
    ck_assert_int_gt(atomic_load(&port->gets), 8);
    free(bytes);
    port_close(port);
}
END_TEST

START_TEST(refusals_and_lies_are_told)
{
    struct port *port = port_open();
    uint8_t *bytes = pattern_of(2 << 20, 6);
    struct blob_source source = source_of(bytes, 2 << 20);
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *got;
    size_t length;

    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, 1 << 22, &got, &length,
                                     &reject, &problem));
    ck_assert_int_eq(reject, REJECT_NOT_FOUND);
    atomic_store(&port->refuses_quota, true);
    ck_assert(!put_blobs(port, &source, 1, &reject));
    ck_assert_int_eq(reject, REJECT_BLOB_QUOTA);
    atomic_store(&port->refuses_quota, false);
    ck_assert(put_blobs(port, &source, 1, &reject));
    ck_assert_int_eq(reject, REJECT_NONE);

    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, (2 << 20) - 1, &got, &length,
                                     &reject, &problem));
    ck_assert_int_eq(reject, REJECT_TOO_LARGE);
    atomic_store(&port->lies, true);
    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, 2 << 20, &got, &length,
                                     &reject, &problem));
    ck_assert_int_eq(reject, REJECT_BLOB_HASH);
    atomic_store(&port->lies, false);
    check_get(port, &source);
    free(bytes);
    port_close(port);
}
END_TEST

/* The broker counts what is asked for against what an account may read in a second, there or
 * not. */
START_TEST(no_more_is_asked_for_than_may_come)
{
    struct port *port = port_open();
    uint8_t *bytes = pattern_of(100, 6);
    struct blob_source source = source_of(bytes, 100);
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *got;
    size_t length;

    ck_assert(put_blobs(port, &source, 1, &reject));
    ck_assert(blob_client_get_bytes(port->client, &source.hash, NULL, 100, &got, &length, &reject,
                                    &problem));
    ck_assert_uint_eq(length, 100);
    ck_assert_uint_eq(atomic_load(&port->largest_get), 100);
    free(got);
    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, 99, &got, &length, &reject,
                                     &problem));
    ck_assert_int_eq(reject, REJECT_TOO_LARGE);
    free(bytes);
    port_close(port);
}
END_TEST

START_TEST(the_empty_blob_needs_nobody)
{
    struct port *port = port_open();
    struct blob_source source = source_of((const uint8_t *)"", 0);
    enum reject_code reject;
    ck_assert(put_blobs(port, &source, 1, &reject));
    check_get(port, &source);
    ck_assert_int_eq(atomic_load(&port->puts) + atomic_load(&port->gets), 0);
    port_close(port);
}
END_TEST

/* A signpost says where the client is sent, and counts how often it asks. */
struct signpost {
    const char *endpoint;
    int asked;
};

static void where(void *context, char ret_endpoint[LIMIT_ENDPOINT_BYTES + 1])
{
    struct signpost *signpost = context;
    signpost->asked++;
    (void)snprintf(ret_endpoint, LIMIT_ENDPOINT_BYTES + 1, "%s", signpost->endpoint);
}

/* A broker that follows another one takes no blobs: the call goes on at the leader's port. */
START_TEST(a_put_goes_on_at_the_broker_that_leads)
{
    struct port *follower = port_open();
    struct port *leader = port_open();
    struct signpost signpost = {.endpoint = leader->endpoint};
    uint8_t *bytes = pattern_of(3 << 20, 7);
    struct blob_source source = source_of(bytes, 3 << 20);
    enum reject_code reject;
    atomic_store(&follower->follows, true);
    blob_client_follow(follower->client, where, &signpost);
    ck_assert(put_blobs(follower, &source, 1, &reject));
    ck_assert_int_eq(signpost.asked, 1);
    ck_assert_str_eq(blob_client_endpoint(follower->client), leader->endpoint);
    ck_assert_int_eq(atomic_load(&follower->puts), 0);
    check_get(leader, &source);
    check_get(follower, &source); /* its client is at the leader's port */
    port_close(follower);
    port_close(leader);
    free(bytes);
}
END_TEST

/* Nobody has said where to go instead, so the refusal is the answer. */
START_TEST(without_a_way_to_the_leader_a_follower_refuses)
{
    struct port *port = port_open();
    struct blob_source source = source_of((const uint8_t *)"x", 1);
    enum reject_code reject;
    atomic_store(&port->follows, true);
    ck_assert(!put_blobs(port, &source, 1, &reject));
    ck_assert_int_eq(reject, REJECT_NOT_LEADER);
    port_close(port);
}
END_TEST

static void *interrupt(void *argument)
{
    blob_client_interrupt(argument);
    return NULL;
}

START_TEST(an_interrupted_call_gives_up)
{
    struct port *port = port_open();
    struct blob_client *client; /* of a port where nobody listens */
    struct problem problem = {""};
    ck_assert(blob_client_open(port->context, "tcp://127.0.0.1:1", identity_transport(port->server),
                               port->client_key, &client, &problem));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt, client), 0);
    struct blob_source source = source_of((const uint8_t *)"x", 1);
    enum reject_code reject;
    ck_assert(!blob_client_put(client, &source, 1, NULL, NULL, NULL, &reject, NULL, &problem));
    ck_assert_str_eq(problem.text, "interrupted");
    ck_assert_int_eq(reject, REJECT_NONE);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    blob_client_close(&client);
    port_close(port);
}
END_TEST

SUITE("blob_client", NULL, NULL, LOOP(what_is_put_can_be_got, 0, SIZE_COUNT),
      TEST(every_byte_of_both_directions_is_measured), TEST(what_is_made_as_it_is_sent_arrives),
      TEST(many_go_at_once_and_what_is_there_is_not_sent), TEST(descriptors_serve_on_both_ends),
      TEST(small_ones_are_asked_for_ahead),
      TEST(among_many_an_answer_that_was_dropped_is_asked_for_again),
      TEST(among_many_a_large_one_comes_in_pieces_and_an_empty_one_from_nobody),
      TEST(among_many_the_one_that_fails_is_named), TEST(among_many_other_bytes_are_refused),
      TEST(a_busy_broker_is_asked_again),
      TEST(of_a_blob_that_can_be_read_in_part_only_enough_is_asked),
      TEST(a_blob_goes_on_where_the_broker_says), TEST(a_dropped_answer_is_asked_for_again),
      TEST(refusals_and_lies_are_told), TEST(no_more_is_asked_for_than_may_come),
      TEST(a_put_goes_on_at_the_broker_that_leads),
      TEST(without_a_way_to_the_leader_a_follower_refuses), TEST(the_empty_blob_needs_nobody),
      TEST(an_interrupted_call_gives_up))
