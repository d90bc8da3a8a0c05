#include "protocol/roles.h"

#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

START_TEST(each_bit_has_its_name)
{
    ck_assert_uint_eq(role_named("consumer"), ROLE_CONSUMER);
    ck_assert_uint_eq(role_named("provider"), ROLE_PROVIDER);
    ck_assert_uint_eq(role_named("auditor"), ROLE_AUDITOR);
    ck_assert_uint_eq(role_named("replica"), ROLE_REPLICA);
    ck_assert_uint_eq(role_named("risk"), ROLE_RISK);
    ck_assert_uint_eq(role_named("operator"), ROLE_OPERATOR);
    ck_assert_uint_eq(role_named("referee"), ROLE_REFEREE);
    ck_assert_uint_eq(role_named("Consumer"), 0);
    ck_assert_uint_eq(role_named(""), 0);
    ck_assert_uint_eq(role_named("consumer, provider"), 0);
}
END_TEST

START_TEST(a_set_of_roles_is_a_list_in_the_order_of_the_bits)
{
    char text[ROLES_TEXT_SIZE];
    roles_text(0, text, sizeof text);
    ck_assert_str_eq(text, "none");
    roles_text(ROLE_PROVIDER, text, sizeof text);
    ck_assert_str_eq(text, "provider");
    roles_text(ROLE_OPERATOR | ROLE_CONSUMER, text, sizeof text);
    ck_assert_str_eq(text, "consumer, operator");
    roles_text(1U << ROLE_COUNT, text, sizeof text);
    ck_assert_str_eq(text, "none");
    roles_text((1U << ROLE_COUNT) - 1, text, sizeof text);
    ck_assert_str_eq(text, "consumer, provider, auditor, replica, risk, operator, referee");
    /* Every set fits, and a list that is cut ends within its buffer. */
    char small[ROLES_TEXT_SIZE];
    memset(small, '#', sizeof small);
    roles_text((1U << ROLE_COUNT) - 1, small, 16);
    ck_assert_str_eq(small, "consumer, provi");
    ck_assert_int_eq(small[16], '#');
}
END_TEST

START_TEST(a_slip_finds_the_role_that_was_meant)
{
    ck_assert_str_eq(role_nearest("comsumer"), "consumer");
    ck_assert_str_eq(role_nearest("operater"), "operator");
    ck_assert_ptr_null(role_nearest("elephants"));
}
END_TEST

SUITE("roles", NULL, NULL, TEST(each_bit_has_its_name),
      TEST(a_set_of_roles_is_a_list_in_the_order_of_the_bits),
      TEST(a_slip_finds_the_role_that_was_meant))
