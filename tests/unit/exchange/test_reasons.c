/* The tests cover the operator's reason of a freeze or a halt: whoever is refused hears it. */
#include "tests/support/hand_market.h"

#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static void halt_for(bool halted, const char *reason)
{
    struct exchange_command halt = command(EXCHANGE_HALT, OPERATOR);
    halt.halt = (struct exchange_halt){.halted = halted, .reason = reason};
    apply(&halt);
    check_hash();
}

static void freeze_for(bool frozen, const char *reason)
{
    struct exchange_command freeze = command(EXCHANGE_FREEZE, OPERATOR);
    freeze.freeze = (struct exchange_freeze){.account = {{1}}, .frozen = frozen, .reason = reason};
    apply(&freeze);
    check_hash();
}

static const char *reason_of_refusal(enum reject_code code)
{
    struct exchange_command made = submit_of(1, 10);
    apply(&made);
    const struct exchange_effect *refusal = nth(EFFECT_REJECT, 0);
    ck_assert_ptr_nonnull(refusal);
    ck_assert_uint_eq(refusal->reject.code, code);
    return refusal->reason;
}

START_TEST(a_halted_market_refuses_with_the_operators_reason)
{
    halt_for(true, "the disk is replaced");
    ck_assert_str_eq(reason_of_refusal(REJECT_HALTED), "the disk is replaced");
    ck_assert_str_eq(exchange_halted_why(market.exchange), "the disk is replaced");
    reload();
    ck_assert_str_eq(reason_of_refusal(REJECT_HALTED), "the disk is replaced");
    halt_for(false, "done");
    ck_assert_ptr_null(exchange_halted_why(market.exchange));
    halt_for(true, NULL);
    ck_assert_ptr_null(reason_of_refusal(REJECT_HALTED));
}
END_TEST

START_TEST(a_frozen_account_is_refused_with_the_operators_reason)
{
    struct exchange_account_row row;
    freeze_for(true, "unpaid bills");
    const struct exchange_effect *changed = nth(EFFECT_ACCOUNT, 0);
    ck_assert_ptr_nonnull(changed);
    ck_assert_str_eq(changed->reason, "unpaid bills");
    ck_assert_str_eq(reason_of_refusal(REJECT_FROZEN), "unpaid bills");
    reload();
    ck_assert(exchange_account(market.exchange, CONSUMER, &row));
    ck_assert(row.frozen);
    ck_assert_str_eq(row.frozen_why, "unpaid bills");
    freeze_for(false, NULL);
    ck_assert_ptr_null(nth(EFFECT_ACCOUNT, 0)->reason);
    ck_assert(exchange_account(market.exchange, CONSUMER, &row));
    ck_assert_ptr_null(row.frozen_why);
    (void)submit(1, 10);
}
END_TEST

START_TEST(a_long_reason_is_cut_between_two_characters)
{
    char text[EXCHANGE_REASON_SIZE + 16];
    memset(text, 'x', sizeof text);
    memcpy(text + EXCHANGE_REASON_SIZE - 2, "\xc3\xa9", 3); /* its second byte is one too many */
    halt_for(true, text);
    ck_assert_uint_eq(strlen(exchange_halted_why(market.exchange)), EXCHANGE_REASON_SIZE - 2);
    reload();
}
END_TEST

SUITE("reasons", set_up, tear_down, TEST(a_halted_market_refuses_with_the_operators_reason),
      TEST(a_frozen_account_is_refused_with_the_operators_reason),
      TEST(a_long_reason_is_cut_between_two_characters))
