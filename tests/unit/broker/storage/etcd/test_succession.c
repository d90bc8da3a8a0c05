/* These tests say when a broker that follows tries to take the lead. */
#include "broker/storage/etcd/succession.h"

#include "base/checked.h"
#include "tests/support/suite.h"

#include <check.h>

#define MS(ms) ((int64_t)(ms)*NS_PER_MS)

/* Etcd answers every 100 ms that there is nothing new, from `from_ms` until `until_ms`. */
static void stay_quiet(struct succession *succession, int64_t from_ms, int64_t until_ms)
{
    for (int64_t ms = from_ms; ms <= until_ms; ms += 100) {
        succession_quiet(succession, 1, false, MS(ms));
    }
}

START_TEST(a_rank_waits_for_its_share_of_silence)
{
    const unsigned rank = (unsigned)_i;
    const int64_t due_ms = SUCCESSION_SILENCE_MS + _i * SUCCESSION_RANK_MS;
    struct succession succession = succession_start(rank, 1, 0);
    stay_quiet(&succession, 100, due_ms - 100);
    ck_assert(!succession_is_due(&succession, MS(due_ms) - 1));
    ck_assert(succession_is_due(&succession, MS(due_ms)));
}
END_TEST

START_TEST(an_entry_ends_the_silence)
{
    struct succession succession = succession_start(0, 1, 0);
    stay_quiet(&succession, 100, 1900);
    succession_entry(&succession, false, MS(1950));
    stay_quiet(&succession, 2000, 3900);
    ck_assert(!succession_is_due(&succession, MS(3949)));
    ck_assert(succession_is_due(&succession, MS(3950)));
}
END_TEST

START_TEST(a_leader_that_starts_is_given_time)
{
    struct succession succession = succession_start(0, 1, 0);
    succession_entry(&succession, true, MS(100));
    stay_quiet(&succession, 200, 30000);
    ck_assert(!succession_is_due(&succession, MS(30000)));
    stay_quiet(&succession, 30100, 30100);
    ck_assert(succession_is_due(&succession, MS(30100)));
    succession_entry(&succession, false, MS(30200)); /* it serves */
    stay_quiet(&succession, 30300, 32200);
    ck_assert(succession_is_due(&succession, MS(32200)));
    succession_entry(&succession, true, MS(40000));
    succession_quiet(&succession, 1, true, MS(40100)); /* it resigned */
    ck_assert(succession_is_due(&succession, MS(40100)));
}
END_TEST

START_TEST(another_leader_is_given_time)
{
    struct succession succession = succession_start(0, 1, 0);
    stay_quiet(&succession, 100, 1900);
    succession_quiet(&succession, 2, false, MS(2100));
    ck_assert(!succession_is_due(&succession, MS(2100)));
    ck_assert(succession_due_ns(&succession) == MS(4100));
}
END_TEST

START_TEST(who_resigned_is_not_waited_for)
{
    struct succession first = succession_start(0, 1, 0);
    struct succession third = succession_start(2, 1, 0);
    succession_quiet(&first, 1, true, MS(50));
    succession_quiet(&third, 1, true, MS(50));
    ck_assert(succession_is_due(&first, MS(50)));
    ck_assert(!succession_is_due(&third, MS(649))); /* the others are first */
    ck_assert(succession_is_due(&third, MS(650)));
    succession_quiet(&third, 2, false, MS(100)); /* one of them leads */
    ck_assert(!succession_is_due(&third, MS(650)));
}
END_TEST

/* A leader that hands over names its successor, and others are patient for a while. */
START_TEST(whom_the_leader_named_comes_first)
{
    struct succession named = succession_start(3, 1, 0);
    struct succession other = succession_start(0, 1, 0);
    succession_quiet(&named, 1, true, MS(50));
    succession_quiet(&other, 1, true, MS(50));
    succession_wishes(&named, SUCCESSION_ME);
    succession_wishes(&other, SUCCESSION_ANOTHER);
    ck_assert(succession_is_due(&named, MS(50)));
    ck_assert(!succession_is_due(&other, MS(1549)));
    ck_assert(succession_is_due(&other, MS(1550))); /* nobody waits for ever */
}
END_TEST

START_TEST(silence_does_not_count_while_etcd_is_silent)
{
    struct succession succession = succession_start(0, 1, 0);
    succession_quiet(&succession, 1, false, MS(1000));
    ck_assert(!succession_is_due(&succession, MS(3000))); /* nobody has asked etcd since */
    succession_quiet(&succession, 1, false, MS(3000));
    ck_assert(!succession_is_due(&succession, MS(3000)));
    ck_assert(succession_due_ns(&succession) == MS(5000));
}
END_TEST

/* An election of etcd must not make a takeover longer. */
START_TEST(a_short_pause_of_etcd_counts)
{
    struct succession succession = succession_start(0, 1, 0);
    succession_quiet(&succession, 1, false, MS(1900));
    ck_assert(succession_is_due(&succession, MS(2000)));
}
END_TEST

START_TEST(who_was_refused_waits_anew)
{
    struct succession succession = succession_start(0, 1, 0);
    stay_quiet(&succession, 100, 2000);
    succession_refused(&succession, MS(2000));
    ck_assert(!succession_is_due(&succession, MS(2001)));
    stay_quiet(&succession, 2100, 4000);
    ck_assert(succession_is_due(&succession, MS(4000)));
}
END_TEST

SUITE("succession", NULL, NULL, LOOP(a_rank_waits_for_its_share_of_silence, 0, 4),
      TEST(an_entry_ends_the_silence), TEST(a_leader_that_starts_is_given_time),
      TEST(another_leader_is_given_time), TEST(who_resigned_is_not_waited_for),
      TEST(whom_the_leader_named_comes_first), TEST(silence_does_not_count_while_etcd_is_silent),
      TEST(a_short_pause_of_etcd_counts), TEST(who_was_refused_waits_anew))
