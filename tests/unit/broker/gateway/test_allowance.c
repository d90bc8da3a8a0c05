#include "broker/gateway/allowance.h"

#include "base/checked.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

START_TEST(a_rate_allows_a_burst_and_then_its_pace)
{
    struct allowance allowance = {0};
    int allowed = 0;
    for (int i = 0; i < 100; i++) {
        allowed += allowance_take(&allowance, 10, 0) ? 1 : 0;
    }
    ck_assert_int_eq(allowed, 20);
    allowed = 0;
    for (int64_t at = 0; at < 10 * NS_PER_S; at += NS_PER_MS) {
        allowed += allowance_take(&allowance, 10, at) ? 1 : 0;
    }
    ck_assert_int_ge(allowed, 99);
    ck_assert_int_le(allowed, 101);
}
END_TEST

START_TEST(one_refusal_a_second_is_told)
{
    struct allowance allowance = {0};
    int told = 0;
    for (int64_t at = NS_PER_S; at < 11 * NS_PER_S; at += NS_PER_MS) {
        told += allowance_tell(&allowance, at) ? 1 : 0;
    }
    ck_assert_int_eq(told, 10);
}
END_TEST

START_TEST(each_account_has_its_own)
{
    struct allowance_list allowances = {0};
    while (allowance_take(allowance_list_of(&allowances, 3), 10, 0)) {
    }
    ck_assert(allowance_take(allowance_list_of(&allowances, 1000), 10, 0));
    ck_assert(!allowance_take(allowance_list_of(&allowances, 3), 10, 0));
    ck_assert(allowance_take(allowance_list_of(&allowances, 4), 10, 0));
    allowance_list_fini(&allowances);
}
END_TEST

SUITE("allowance", NULL, NULL, TEST(a_rate_allows_a_burst_and_then_its_pace),
      TEST(one_refusal_a_second_is_told), TEST(each_account_has_its_own))
