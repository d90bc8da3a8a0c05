/* The facts that challenges found are found again by device, and come back out of their text. */
#include "broker/challenge/challenge_facts.h"

#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct challenge_facts *facts;

static void begin(void)
{
    facts = challenge_facts_create();
    ck_assert_ptr_nonnull(facts);
}

static void finish(void)
{
    challenge_facts_destroy(&facts);
}

static struct id128 device_of(unsigned number)
{
    struct id128 device = {{0}};
    device.bytes[0] = (uint8_t)(number * 37);
    device.bytes[15] = (uint8_t)number;
    return device;
}

START_TEST(each_device_of_each_account_has_a_fact_of_its_own)
{
    for (unsigned i = 0; i < 200; i++) {
        const struct id128 device = device_of(i);
        struct challenge_fact *fact = challenge_facts_of(facts, i % 3, &device);
        ck_assert_ptr_nonnull(fact);
        fact->limit_mflops = i + 1;
    }
    for (unsigned i = 0; i < 200; i++) {
        const struct id128 device = device_of(i);
        const struct challenge_fact *fact = challenge_facts_find(facts, i % 3, &device);
        ck_assert_ptr_nonnull(fact);
        ck_assert_int_eq(fact->limit_mflops, i + 1);
        ck_assert_ptr_eq(fact, challenge_facts_of(facts, i % 3, &device));
        ck_assert_ptr_null(challenge_facts_find(facts, 3, &device));
    }
}
END_TEST

START_TEST(the_number_of_facts_is_bounded)
{
    for (uint32_t i = 0; i < CHALLENGE_FACTS_MOST; i++) {
        const struct id128 device = device_of(1);
        ck_assert_ptr_nonnull(challenge_facts_of(facts, i, &device));
    }
    const struct id128 device = device_of(2);
    ck_assert_ptr_null(challenge_facts_of(facts, 0, &device));
}
END_TEST

START_TEST(a_text_brings_back_what_was_found)
{
    const struct id128 known = device_of(7);
    const struct id128 unknown = device_of(8);
    *challenge_facts_of(facts, 5, &known) = (struct challenge_fact){.account = 5,
                                                                    .device = known,
                                                                    .outcome = CHALLENGE_SLOW,
                                                                    .at_ns = 1,
                                                                    .claimed_mflops = 2,
                                                                    .shown_mflops = 3,
                                                                    .limit_mflops = 4,
                                                                    .limit_until_ns = 5,
                                                                    .slow = 2,
                                                                    .failed = 7,
                                                                    .best_mflops = 8,
                                                                    .closed_until_ns = 9,
                                                                    .due_ns = 10};
    (void)challenge_facts_of(facts, 5, &unknown);
    char *text = challenge_facts_text(facts);
    ck_assert_ptr_nonnull(text);
    struct challenge_facts *read = challenge_facts_create();
    ck_assert(challenge_facts_read(read, text));
    const struct challenge_fact *fact = challenge_facts_find(read, 5, &known);
    ck_assert_ptr_nonnull(fact);
    ck_assert_int_eq(fact->outcome, CHALLENGE_SLOW);
    ck_assert_int_eq(fact->at_ns, 1);
    ck_assert_int_eq(fact->claimed_mflops, 2);
    ck_assert_int_eq(fact->shown_mflops, 3);
    ck_assert_int_eq(fact->limit_mflops, 4);
    ck_assert_int_eq(fact->limit_until_ns, 5);
    ck_assert_uint_eq(fact->slow, 2);
    ck_assert_uint_eq(fact->failed, 7);
    ck_assert_int_eq(fact->best_mflops, 8);
    ck_assert_int_eq(fact->closed_until_ns, 9);
    ck_assert_int_eq(fact->due_ns, 10);
    ck_assert_ptr_null(challenge_facts_find(read, 5, &unknown)); /* nothing is known of it */
    /* A cut text makes no facts at all. */
    for (size_t length = 0; length < strlen(text); length++) {
        char *cut = strndup(text, length);
        if (challenge_facts_read(read, cut)) {
            ck_assert_ptr_null(challenge_facts_find(read, 5, &known)); /* cut after its head */
        } else {
            ck_assert_ptr_null(challenge_facts_find(read, 5, &known));
        }
        free(cut);
    }
    challenge_facts_destroy(&read);
    free(text);
}
END_TEST

START_TEST(a_damaged_text_makes_no_facts)
{
    const char *const bad[] = {
        "",
        "bourse challenges 2\n",
        "bourse challenges 1\nzz000000000000000000000000000000 1 1 1 1 1 1 1 1 1 1 1 1\n",
        "bourse challenges 1\n00000000000000000000000000000000 1 5 1 1 1 1 1 1 1 1 1 1\n",
        "bourse challenges 1\n00000000000000000000000000000000 1 1 -1 1 1 1 1 1 1 1 1 1\n",
        "bourse challenges 1\n00000000000000000000000000000000 4294967295 1 1 1 1 1 1 1 1 1 1 1\n",
        "bourse challenges 1\n00000000000000000000000000000000 1 1 1 1 1 1 1 9 1 1 1 1\n",
        "bourse challenges 1\n00000000000000000000000000000000 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
        "bourse challenges 1\n00000000000000000000000000000000 1 1 1 1 1 1 1 1 1 1 1 "
        "9223372036854775807\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!challenge_facts_read(facts, bad[i]), "text %zu", i);
    }
    ck_assert(challenge_facts_read(
        facts, "bourse challenges 1\n00000000000000000000000000000000 1 1 1 1 1 1 1 1 1 1 1 1\n"));
}
END_TEST

SUITE("challenge_facts", begin, finish, TEST(each_device_of_each_account_has_a_fact_of_its_own),
      TEST(the_number_of_facts_is_bounded), TEST(a_text_brings_back_what_was_found),
      TEST(a_damaged_text_makes_no_facts))
