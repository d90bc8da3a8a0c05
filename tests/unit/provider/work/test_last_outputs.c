/* The outputs of a jail's last run. */
#include "provider/work/last_outputs.h"
#include "tests/support/suite.h"

static struct last_outputs last;
static struct kept outputs[JAIL_MADE_MAX + 2];
static char names[JAIL_MADE_MAX + 2][8];

static struct outcome outcome_of(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "y%zu", i);
        outputs[i] = (struct kept){.name = names[i], .hash = {{(uint8_t)i}}};
    }
    return (struct outcome){.result = OUTCOME_OK, .outputs = outputs, .output_count = count};
}

START_TEST(a_run_replaces_what_the_one_before_left)
{
    struct outcome outcome = outcome_of(2);
    last_outputs_note(&last, &outcome);
    ck_assert_uint_eq(last.count, 2);
    outputs[1].name = names[0]; /* the names are copies */
    ck_assert_str_eq(last.items[1].name, "y1");
    ck_assert_uint_eq(last.items[1].hash.bytes[0], 1);
    outcome = outcome_of(1);
    last_outputs_note(&last, &outcome);
    ck_assert_uint_eq(last.count, 1);
    outcome.result = OUTCOME_PROGRAM_FAILED;
    last_outputs_note(&last, &outcome);
    ck_assert_uint_eq(last.count, 0);
}
END_TEST

START_TEST(more_outputs_than_a_run_tells_are_left_out)
{
    const struct outcome outcome = outcome_of(JAIL_MADE_MAX + 2);
    last_outputs_note(&last, &outcome);
    ck_assert_uint_eq(last.count, JAIL_MADE_MAX);
    last_outputs_clear(&last);
    ck_assert_uint_eq(last.count, 0);
}
END_TEST

SUITE("last_outputs", NULL, NULL, TEST(a_run_replaces_what_the_one_before_left),
      TEST(more_outputs_than_a_run_tells_are_left_out))
