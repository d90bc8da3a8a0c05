/* Commands that wait: each account's in order, and no more than the caps say. */
#include "broker/gateway/held.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static struct held held;

static struct request *made(uint32_t account, uint64_t session, size_t length)
{
    struct request *request = request_create();
    ck_assert_ptr_nonnull(request);
    request->account = account;
    request->session = session;
    request->length = length;
    return request;
}

static void put(uint32_t account, uint64_t session)
{
    ck_assert(held_put(&held, made(account, session, 100)));
}

static void take(uint32_t account, uint64_t session)
{
    struct request *request = held_of(&held, account);
    ck_assert_ptr_nonnull(request);
    ck_assert_uint_eq(request->account, account);
    ck_assert_uint_eq(request->session, session);
    held_take(&held, account);
    request_destroy(&request);
}

static void tear_down(void)
{
    held_fini(&held);
    ck_assert_uint_eq(held.count, 0);
}

START_TEST(each_account_keeps_its_order)
{
    for (uint64_t i = 0; i < 5; i++) {
        put(1, i);
        put(2, 10 + i);
        put(3, 20 + i);
    }
    ck_assert_uint_eq(held.count, 3);
    for (uint64_t i = 0; i < 5; i++) {
        take(2, 10 + i);
    }
    ck_assert_ptr_null(held_of(&held, 2));
    ck_assert_uint_eq(held.count, 2);
    for (uint64_t i = 0; i < 5; i++) {
        take(1, i);
        take(3, 20 + i);
    }
    ck_assert_uint_eq(held.count, 0);
}
END_TEST

START_TEST(what_is_put_back_is_the_oldest_again)
{
    put(1, 1);
    put(1, 2);
    struct request *request = held_of(&held, 1);
    held_take(&held, 1);
    held_put_back(&held, request);
    put(1, 3);
    take(1, 1);
    request = held_of(&held, 1);
    held_take(&held, 1);
    held_put_back(&held, request);
    take(1, 2);
    request = held_of(&held, 1);
    held_take(&held, 1); /* the last one, and its queue */
    held_put_back(&held, request);
    put(1, 4);
    take(1, 3);
    take(1, 4);
}
END_TEST

START_TEST(an_account_fills_its_own_queue_only)
{
    for (uint64_t i = 0; i < HELD_EACH; i++) {
        put(1, i);
    }
    struct request *more = made(1, 0, 100);
    ck_assert(!held_put(&held, more));
    request_destroy(&more);
    put(2, 0);
}
END_TEST

START_TEST(large_ones_wait_alone)
{
    ck_assert(held_put(&held, made(1, 1, HELD_EACH_BYTES + 1)));
    struct request *more = made(1, 2, 1);
    ck_assert(!held_put(&held, more));
    take(1, 1);
    ck_assert(held_put(&held, more));
}
END_TEST

START_TEST(so_many_accounts_wait)
{
    for (uint32_t account = 0; account < HELD_ACCOUNTS; account++) {
        put(account, account);
    }
    struct request *more = made(HELD_ACCOUNTS, 0, 100);
    ck_assert(!held_put(&held, more));
    take(7, 7);
    ck_assert(held_put(&held, more));
}
END_TEST

SUITE("held", NULL, tear_down, TEST(each_account_keeps_its_order),
      TEST(what_is_put_back_is_the_oldest_again), TEST(an_account_fills_its_own_queue_only),
      TEST(large_ones_wait_alone), TEST(so_many_accounts_wait))
