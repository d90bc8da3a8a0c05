/* The broker hands on what a job states of its time, and the deadline of a replacement. */
#include "broker/gateway/verify.h"
#include "tests/support/signed_request.h"
#include "tests/support/suite.h"

#include <check.h>

/* An expectation is stated when the message says so. A client of an earlier version does not. */
START_TEST(only_an_expectation_that_is_said_to_be_stated_is_stated)
{
    struct codec_error error;
    Bourse__V1__SubmitJob body = submit_body("none");
    body.has_expect_ms = true;
    body.expect_ms = 4000;
    body.has_deadline_ms = true;
    body.deadline_ms = 1700000000000;
    body.has_expect_stated = _i > 0;
    body.expect_stated = _i > 1;
    fill(MESSAGE_SUBMIT_JOB, &body.base);
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_NONE);
    const struct exchange_submit *submit = &request->translation.command.submit;
    ck_assert_int_eq(submit->expect_ns, INT64_C(4000000000));
    ck_assert_int_eq(submit->deadline_ns, INT64_C(1700000000000) * 1000000);
    ck_assert(submit->is_expectation_stated == (_i > 1));
}
END_TEST

static Bourse__V1__OrderReplace replace_body(void)
{
    static const uint8_t order[16] = {8};
    Bourse__V1__OrderReplace body = BOURSE__V1__ORDER_REPLACE__INIT;
    body.order = bytes_of(order, sizeof order);
    return body;
}

START_TEST(a_deadline_alone_replaces_nothing_else)
{
    struct codec_error error;
    Bourse__V1__OrderReplace body = replace_body();
    body.has_deadline_ms = true;
    body.deadline_ms = 1700000000123;
    fill(MESSAGE_ORDER_REPLACE, &body.base);
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_NONE);
    const struct exchange_command *command = &request->translation.command;
    ck_assert_int_eq(command->type, EXCHANGE_REPLACE);
    ck_assert(command->replace.has_deadline);
    ck_assert_int_eq(command->replace.deadline_ns, INT64_C(1700000000123) * 1000000);
    ck_assert(!command->replace.has_price && !command->replace.has_slots);
    ck_assert(!command->replace.has_budget);
    ck_assert_uint_eq(command->replace.order.bytes[0], 8);
}
END_TEST

START_TEST(an_order_that_is_replaced_without_a_deadline_keeps_its_own)
{
    struct codec_error error;
    Bourse__V1__OrderReplace body = replace_body();
    body.has_slots = true;
    body.slots = 3;
    fill(MESSAGE_ORDER_REPLACE, &body.base);
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_NONE);
    const struct exchange_command *command = &request->translation.command;
    ck_assert(!command->replace.has_deadline);
    ck_assert_int_eq(command->replace.deadline_ns, 0);
    ck_assert_uint_eq(command->replace.slots, 3);
}
END_TEST

START_TEST(a_deadline_that_nanoseconds_cannot_count_is_refused_by_name)
{
    struct codec_error error;
    Bourse__V1__OrderReplace body = replace_body();
    body.has_deadline_ms = true;
    body.deadline_ms = INT64_MAX / 1000000 + 1;
    fill(MESSAGE_ORDER_REPLACE, &body.base);
    ck_assert_int_ne(verify_request(request, &cluster, &error), REJECT_NONE);
    ck_assert_str_eq(error.field, "deadline_ms");
    ck_assert_int_eq(error.value, body.deadline_ms);
}
END_TEST

SUITE("translate: deadlines", setup, teardown,
      LOOP(only_an_expectation_that_is_said_to_be_stated_is_stated, 0, 3),
      TEST(a_deadline_alone_replaces_nothing_else),
      TEST(an_order_that_is_replaced_without_a_deadline_keeps_its_own),
      TEST(a_deadline_that_nanoseconds_cannot_count_is_refused_by_name))
