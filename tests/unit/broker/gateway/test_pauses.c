/* Connections that nothing is read from for a while, at a port that only counts. */
#include "broker/gateway/pauses.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { DESCRIPTORS = 1000 };

static struct pauses pauses;
static int last; /* the descriptor of the message received last */
static int paused[DESCRIPTORS];

int router_descriptor(struct router *router)
{
    (void)router;
    return last;
}

void router_pause(int descriptor, bool is_paused)
{
    ck_assert_int_ge(descriptor, 0);
    paused[descriptor] += is_paused ? 1 : -1;
    ck_assert_int_ge(paused[descriptor], 0);
    ck_assert_int_le(paused[descriptor], 1);
}

static void begin(int descriptor, int64_t until_ns)
{
    last = descriptor;
    pauses_begin(&pauses, NULL, until_ns);
}

START_TEST(each_goes_on_at_its_time)
{
    begin(3, 100);
    begin(4, 50);
    begin(5, 100);
    pauses_end(&pauses, 50);
    ck_assert_int_eq(paused[3], 1);
    ck_assert_int_eq(paused[4], 0);
    ck_assert_int_eq(paused[5], 1);
    pauses_end(&pauses, 100);
    ck_assert_int_eq(paused[3] + paused[5], 0);
    ck_assert_uint_eq(pauses.count, 0);
}
END_TEST

START_TEST(further_messages_lengthen_no_pause)
{
    begin(3, 100);
    begin(3, 200);
    ck_assert_uint_eq(pauses.count, 1);
    pauses_end(&pauses, 100);
    ck_assert_int_eq(paused[3], 0);
}
END_TEST

START_TEST(what_is_not_known_or_too_many_go_on)
{
    begin(-1, 100);
    ck_assert_uint_eq(pauses.count, 0);
    for (int i = 0; i < PAUSES_MAX + 10; i++) {
        begin(i, 100);
    }
    ck_assert_uint_eq(pauses.count, PAUSES_MAX);
    ck_assert_int_eq(paused[PAUSES_MAX], 0);
    pauses_end(&pauses, 100);
    for (int i = 0; i < DESCRIPTORS; i++) {
        ck_assert_int_eq(paused[i], 0);
    }
}
END_TEST

SUITE("pauses", NULL, NULL, TEST(each_goes_on_at_its_time),
      TEST(further_messages_lengthen_no_pause), TEST(what_is_not_known_or_too_many_go_on))
