/* Limits of money that somebody set, or nobody. */
#include "base/limit.h"

#include "tests/support/suite.h"

#include <check.h>

START_TEST(a_limit_of_nothing_is_set)
{
    ck_assert(limit_is_set(0));
    ck_assert(limit_allows(0, 0));
    ck_assert(!limit_allows(0, 1));
}
END_TEST

START_TEST(without_a_limit_every_amount_is_allowed)
{
    ck_assert(!limit_is_set(LIMIT_NONE));
    ck_assert(limit_allows(LIMIT_NONE, INT64_MAX));
    ck_assert(limit_allows(7, 7));
    ck_assert(!limit_allows(7, 8));
}
END_TEST

SUITE("limit", NULL, NULL, TEST(a_limit_of_nothing_is_set),
      TEST(without_a_limit_every_amount_is_allowed))
