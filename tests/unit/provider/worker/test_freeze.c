/* The tests play the processes of the jail: kill and watch_stopped are functions of the tests. */
#include "provider/worker/worker.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>

#define MS UINT64_C(1000000)

static int stops, continues;
static bool stand;

int __wrap_kill(pid_t pid, int signal_number);
int __wrap_kill(pid_t pid, int signal_number)
{
    ck_assert_int_eq(pid, -1);
    stops += signal_number == SIGSTOP;
    continues += signal_number == SIGCONT;
    return 0;
}

bool watch_stopped(void)
{
    return stand;
}

static void setup(void)
{
    stops = continues = 0;
    stand = true;
}

START_TEST(processes_are_stopped_once_and_continued_once)
{
    struct freeze freeze = {.since_ns = 0};
    ck_assert(freeze_obey(&freeze, false, true, 10 * MS));
    ck_assert(stops == 0 && continues == 0);
    ck_assert(freeze_obey(&freeze, true, false, 20 * MS));
    ck_assert(freeze_obey(&freeze, true, true, 5000 * MS));
    ck_assert(stops == 1 && continues == 0);
    ck_assert_uint_eq(freeze_total_ns(&freeze, 5000 * MS), 4980 * MS);
    ck_assert(freeze_obey(&freeze, false, true, 6020 * MS));
    ck_assert(stops == 1 && continues == 1);
    ck_assert_uint_eq(freeze_total_ns(&freeze, 9000 * MS), 6000 * MS);
    ck_assert(freeze_obey(&freeze, true, true, 9000 * MS));
    ck_assert_uint_eq(freeze_total_ns(&freeze, 9001 * MS), 6001 * MS);
}
END_TEST

START_TEST(processes_that_go_on_are_stopped_again_for_a_second)
{
    struct freeze freeze = {.since_ns = 0};
    ck_assert(freeze_obey(&freeze, true, true, 1000 * MS));
    stand = false;
    ck_assert(freeze_obey(&freeze, true, true, 1100 * MS));
    ck_assert(freeze_obey(&freeze, true, true, 1999 * MS));
    ck_assert_int_eq(stops, 3);
    ck_assert(freeze_obey(&freeze, true, false, 2100 * MS)); /* nobody looks */
    ck_assert(!freeze_obey(&freeze, true, true, 2100 * MS));
    ck_assert_int_eq(continues, 0);
}
END_TEST

START_TEST(processes_that_stand_in_between_get_another_second)
{
    struct freeze freeze = {.since_ns = 0};
    ck_assert(freeze_obey(&freeze, true, true, 1000 * MS));
    stand = false;
    ck_assert(freeze_obey(&freeze, true, true, 1900 * MS));
    stand = true;
    ck_assert(freeze_obey(&freeze, true, true, 1950 * MS));
    stand = false;
    ck_assert(freeze_obey(&freeze, true, true, 2900 * MS));
    ck_assert(!freeze_obey(&freeze, true, true, 2950 * MS));
}
END_TEST

SUITE("freeze", setup, NULL, TEST(processes_are_stopped_once_and_continued_once),
      TEST(processes_that_go_on_are_stopped_again_for_a_second),
      TEST(processes_that_stand_in_between_get_another_second))
