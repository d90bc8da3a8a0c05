/* Effects as messages: what an agent gets must be something that it can read. */
#include "broker/release.h"

#include "base/checked.h"
#include "protocol/codec.h"

#include <check.h>

static struct outgoing *released;

static void keep(void *context, struct outgoing *outgoing)
{
    (void)context;
    if (outgoing->kind == OUTGOING_PUSH || outgoing->refused != REJECT_NONE) {
        outgoing_destroy(&released);
        released = outgoing;
    } else {
        outgoing_destroy(&outgoing);
    }
}

static int64_t term_ms_told(int64_t term_ns)
{
    struct exchange_effect effect = {
        .type = EFFECT_LEASE_GRANT,
        .account = 4,
        .grant = {.lease = 7,
                  .job = {{1}},
                  .device = {{2}},
                  .ask = {{3}},
                  .owner = {{4}},
                  .slots = 2,
                  .width = 1,
                  .term_ns = term_ns,
                  .limit_ns = NS_PER_S,
                  .manifest = {{5}}},
    };
    const struct exchange_effects effects = {.items = &effect, .count = 1, .capacity = 1};
    ProtobufCMessage *body = NULL;
    ck_assert(release_effects(&effects, keep, NULL));
    ck_assert_int_eq(
        codec_decode(MESSAGE_LEASE_GRANT, released->body, released->length, &body, NULL), CODEC_OK);
    int64_t term_ms = ((const Bourse__V1__LeaseGrant *)(const void *)body)->term_ms;
    codec_free(&body);
    outgoing_destroy(&released);
    return term_ms;
}

START_TEST(a_term_is_told_in_milliseconds_rounded_down)
{
    ck_assert_int_eq(term_ms_told(2 * NS_PER_S), 2000);
    ck_assert_int_eq(term_ms_told(2 * NS_PER_MS - 1), 1);
}
END_TEST

/* An agent that restarted within the grace of a lease is told of it again: the term is over by then, but a
 * message that it cannot read would cost it its session, again and again. */
START_TEST(a_lease_that_is_all_but_over_can_still_be_read)
{
    ck_assert_int_eq(term_ms_told(1), 1);
    ck_assert_int_eq(term_ms_told(0), 1);
}
END_TEST

/* The audit log says of each refusal what was refused. */
START_TEST(a_refusal_names_the_message_that_was_refused)
{
    static const struct {
        enum exchange_command_type command;
        enum message_type message;
    } pairs[] = {{EXCHANGE_JOIN, MESSAGE_JOIN},
                 {EXCHANGE_MINT, MESSAGE_MINT},
                 {EXCHANGE_INVITE, MESSAGE_INVITE_CREATE},
                 {EXCHANGE_FREEZE, MESSAGE_FREEZE},
                 {EXCHANGE_HALT, MESSAGE_HALT},
                 {EXCHANGE_ADVERTISE, MESSAGE_ADVERTISE},
                 {EXCHANGE_ASK, MESSAGE_ASK_PLACE},
                 {EXCHANGE_CANCEL_ORDER, MESSAGE_ORDER_CANCEL},
                 {EXCHANGE_STATEMENT, MESSAGE_STATEMENT_HELD},
                 {EXCHANGE_RESULTS, MESSAGE_RESULTS},
                 {EXCHANGE_SUBMIT, MESSAGE_SUBMIT_JOB},
                 {EXCHANGE_CANCEL_JOB, MESSAGE_JOB_CANCEL}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct exchange_effect effect = {.type = EFFECT_REJECT,
                                         .account = 3,
                                         .refused = pairs[i].command,
                                         .reject = {.code = REJECT_ROLE}};
        const struct exchange_effects effects = {.items = &effect, .count = 1, .capacity = 1};
        ck_assert(release_effects(&effects, keep, NULL));
        ck_assert_int_eq(released->refused, REJECT_ROLE);
        ck_assert_int_eq(released->refused_type, pairs[i].message);
        outgoing_destroy(&released);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("release");
    TCase *tests = tcase_create("release");
    tcase_add_test(tests, a_term_is_told_in_milliseconds_rounded_down);
    tcase_add_test(tests, a_lease_that_is_all_but_over_can_still_be_read);
    tcase_add_test(tests, a_refusal_names_the_message_that_was_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
