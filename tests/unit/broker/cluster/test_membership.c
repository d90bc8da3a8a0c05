/* New rules wait until every broker that has a record knows them. */
#include "broker/cluster/membership.h"

#include "tests/support/suite.h"

#include <check.h>

static struct etcd_roster_list list;

static void add(uint32_t first, uint32_t last)
{
    list.brokers[list.count].is_readable = true;
    list.brokers[list.count].member.rules_first = first;
    list.brokers[list.count++].member.rules_last = last;
}

START_TEST(the_oldest_program_decides)
{
    list = (struct etcd_roster_list){.count = 0};
    ck_assert_uint_eq(membership_rules_of_all(&list), 0);
    add(22, 23);
    ck_assert_uint_eq(membership_rules_of_all(&list), 23);
    add(21, 22);
    ck_assert_uint_eq(membership_rules_of_all(&list), 22);
    add(22, 23);
    ck_assert_uint_eq(membership_rules_of_all(&list), 22);
    list.brokers[1].member.rules_last = 23;
    ck_assert_uint_eq(membership_rules_of_all(&list), 23); /* it stopped, and its record counts */
}
END_TEST

START_TEST(a_record_of_another_form_decides_against)
{
    list = (struct etcd_roster_list){.count = 0};
    add(22, 23);
    add(22, 23);
    list.brokers[1].is_readable = false;
    ck_assert_uint_eq(membership_rules_of_all(&list), 0);
}
END_TEST

START_TEST(programs_without_common_rules_agree_on_none)
{
    list = (struct etcd_roster_list){.count = 0};
    add(21, 22);
    add(23, 24);
    ck_assert_uint_eq(membership_rules_of_all(&list), 0);
}
END_TEST

SUITE("membership", NULL, NULL, TEST(the_oldest_program_decides),
      TEST(a_record_of_another_form_decides_against),
      TEST(programs_without_common_rules_agree_on_none))
