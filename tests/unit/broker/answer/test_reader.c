#include "broker/answer/reader.h"

#include "broker/core/outgoing.h"
#include "broker/core/queue.h"
#include "broker/core/request.h"
#include "tests/support/small_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_NS INT64_C(120000000000) /* for what comes */
#define NEVER_NS INT64_C(200000000)   /* for what must not come */

static struct request *ask_for_checkpoint(void)
{
    struct request *request = request_create();
    ck_assert_ptr_nonnull(request);
    request->kind = REQUEST_MESSAGE;
    request->session = 7;
    request->envelope.type = MESSAGE_CHECKPOINT_REQUEST;
    return request;
}

START_TEST(no_answer_runs_ahead_of_head)
{
    ck_assert_int_ge(sodium_init(), 0);
    struct small_market market;
    small_market_create(&market, NULL, NULL);
    struct watermark durable;
    struct watermark applied;
    watermark_init(&durable, SMALL_MARKET_ENTRIES - 1);
    watermark_init(&applied,
                   SMALL_MARKET_ENTRIES - 1); /* the last is committed, HEAD not written */
    struct reader_config config = {.directory = directory_create(),
                                   .inbound = queue_create(4),
                                   .names = queue_create(4),
                                   .releases = queue_create(4),
                                   .durable = &durable,
                                   .applied = &applied,
                                   .synced = &applied};
    (void)snprintf(config.database, sizeof config.database, "%s", market.database);
    (void)snprintf(config.history, sizeof config.history, "%s-history", market.database);
    (void)snprintf(config.blobs, sizeof config.blobs, "%s-blobs", market.database);
    struct reader_thread *reader = reader_start(&config);

    ck_assert(queue_push(config.inbound, &ask_for_checkpoint()->link));
    ck_assert_ptr_null(queue_pop(config.releases, NEVER_NS));

    watermark_raise(&applied, SMALL_MARKET_ENTRIES);
    struct queue_link *link = queue_pop(config.releases, WAIT_NS);
    ck_assert_ptr_nonnull(link);
    struct outgoing *outgoing = QUEUE_ELEMENT(link, struct outgoing, link);
    ck_assert_int_eq(outgoing->type, MESSAGE_CHECKPOINT_REPLY);
    ck_assert_uint_eq(outgoing->session, 7);
    outgoing_destroy(&outgoing);

    reader_stop(&reader);
    queue_destroy(&config.inbound);
    queue_destroy(&config.names);
    queue_destroy(&config.releases);
    watermark_fini(&durable);
    watermark_fini(&applied);
    small_market_destroy(&market);
}
END_TEST

/* One entry is in the tail alone. The tables follow, or a full disk keeps them back. */
static struct outgoing *ask_behind(const struct disk_reserve *reserve)
{
    ck_assert_int_ge(sodium_init(), 0);
    struct small_market market;
    small_market_create(&market, NULL, NULL);
    struct watermark durable;
    struct watermark applied;
    watermark_init(&durable, SMALL_MARKET_ENTRIES + 1);
    watermark_init(&applied, SMALL_MARKET_ENTRIES);
    struct reader_config config = {.directory = directory_create(),
                                   .inbound = queue_create(4),
                                   .names = queue_create(4),
                                   .releases = queue_create(4),
                                   .durable = &durable,
                                   .applied = &applied,
                                   .synced = &applied,
                                   .reserve = reserve};
    (void)snprintf(config.database, sizeof config.database, "%s", market.database);
    (void)snprintf(config.history, sizeof config.history, "%s-history", market.database);
    (void)snprintf(config.blobs, sizeof config.blobs, "%s-blobs", market.database);
    struct reader_thread *reader = reader_start(&config);

    ck_assert(queue_push(config.inbound, &ask_for_checkpoint()->link));
    if (reserve == NULL) {
        ck_assert_ptr_null(queue_pop(config.releases, NEVER_NS));
        watermark_raise(&applied, SMALL_MARKET_ENTRIES + 1);
    }
    struct queue_link *link = queue_pop(config.releases, WAIT_NS);
    ck_assert_ptr_nonnull(link);
    watermark_raise(&applied, SMALL_MARKET_ENTRIES + 1);

    reader_stop(&reader);
    queue_destroy(&config.inbound);
    queue_destroy(&config.names);
    queue_destroy(&config.releases);
    watermark_fini(&durable);
    watermark_fini(&applied);
    small_market_destroy(&market);
    return QUEUE_ELEMENT(link, struct outgoing, link);
}

START_TEST(an_answer_waits_for_the_tables)
{
    struct outgoing *outgoing = ask_behind(NULL);
    ck_assert_int_eq(outgoing->type, MESSAGE_CHECKPOINT_REPLY);
    outgoing_destroy(&outgoing);
}
END_TEST

START_TEST(a_full_disk_that_keeps_the_tables_back_is_said)
{
    struct disk_reserve reserve = {.bytes = 0};
    atomic_init(&reserve.state, DISK_RESERVE_STUCK);
    struct outgoing *outgoing = ask_behind(&reserve);
    ck_assert_int_eq(outgoing->type, MESSAGE_REJECT);
    outgoing_destroy(&outgoing);
}
END_TEST

START_TEST(a_watermark_never_falls)
{
    struct watermark mark;
    watermark_init(&mark, 5);
    watermark_raise(&mark, 9);
    watermark_raise(&mark, 7);
    ck_assert_uint_eq(mark.value, 9);
    watermark_wait(&mark, 9);
    watermark_wait(&mark, 1);
    watermark_fini(&mark);
}
END_TEST

SUITE("reader", NULL, NULL, TEST(no_answer_runs_ahead_of_head),
      TEST(an_answer_waits_for_the_tables), TEST(a_full_disk_that_keeps_the_tables_back_is_said),
      TEST(a_watermark_never_falls))
