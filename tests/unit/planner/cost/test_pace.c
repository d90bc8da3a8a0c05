/* The tests ask how fast devices are beside others, by what was measured on both. */
#include "planner/cost/pace.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { MOST = 4096 };

static struct pace_row rows[MOST];
static size_t count;

static void took(uint32_t work, uint32_t device, uint32_t samples, int64_t median_ns)
{
    rows[count++] = (struct pace_row){work, device, samples, median_ns, 0};
}

static void took_at(uint32_t work, uint32_t device, int64_t median_ns, int64_t at_ns)
{
    rows[count++] = (struct pace_row){work, device, 4, median_ns, at_ns};
}

static void find(uint32_t works, uint32_t devices, uint32_t *ret_paces)
{
    ck_assert(pace_find(rows, count, works, devices, ret_paces));
    count = 0;
}

START_TEST(what_takes_three_times_as_long_has_pace_three)
{
    uint32_t paces[2];
    for (uint32_t work = 0; work < 4; work++) {
        took(work, 0, 1, 1000 * (work + 1));
        took(work, 1, 1, 3000 * (work + 1));
    }
    find(4, 2, paces);
    ck_assert_uint_eq(paces[0], PACE_ONE);
    ck_assert_uint_eq(paces[1], 3 * PACE_ONE);
    ck_assert_int_eq(pace_takes_ns(50, paces[1]), 150);
    ck_assert_int_eq(pace_base_ns(150, paces[1]), 50);
}
END_TEST

/* Works that a device did alone say nothing, however often, nor does it matter which did more of
 * them. */
START_TEST(paces_are_those_beside_the_fastest)
{
    uint32_t paces[3];
    for (uint32_t most = 0; most < 3; most++) {
        for (uint32_t device = 0; device < 3; device++) {
            took(0, device, 8, 1000 * (device + 1));
            took(1 + device, device, device == most ? 10000 : 1, 3);
        }
        find(4, 3, paces);
        ck_assert_uint_eq(paces[0], PACE_ONE);
        ck_assert_uint_eq(paces[1], 2 * PACE_ONE);
        ck_assert_uint_eq(paces[2], 3 * PACE_ONE);
    }
}
END_TEST

/* The second was as fast, and has been three times as slow, or the other way round, for a few works
 * more each time. */
START_TEST(a_device_that_changes_is_known_by_as_many_new_works)
{
    enum { BEFORE = 200 };
    uint32_t paces[2];
    const int64_t before = _i == 0 ? 1 : 3;
    const int64_t since = _i == 0 ? 3 : 1;
    for (uint32_t new = 0; new <= PACE_WORKS; new ++) {
        for (uint32_t work = 0; work < BEFORE + new; work++) {
            took_at(work, 0, 1000, 7);
            took_at(work, 1, 1000 * (work < BEFORE ? before : since), (int64_t)work);
        }
        find(BEFORE + new, 2, paces);
        ck_assert_uint_eq(paces[0], PACE_ONE);
        if (new < PACE_WORKS / 2 || new > PACE_WORKS / 2 + 1) {
            const int64_t is = new < PACE_WORKS / 2 ? before : since;
            ck_assert_uint_eq(paces[1], (uint32_t)is * PACE_ONE);
        }
    }
}
END_TEST

/* Hundreds of programs that hardly more than start say nothing of what takes long. */
START_TEST(many_short_works_are_not_many)
{
    uint32_t paces[2];
    for (uint32_t work = 0; work < 640; work++) {
        took_at(work, 0, work < 24 ? 1000000000 : 3000000, (int64_t)work);
        took_at(work, 1, work < 24 ? 3000000000 : 3000000, (int64_t)work);
    }
    find(640, 2, paces);
    ck_assert_uint_eq(paces[1], 3 * PACE_ONE);
}
END_TEST

START_TEST(few_samples_of_the_same_work_say_nothing)
{
    uint32_t paces[2];
    took(0, 0, 30, 1000);
    took(0, 1, PACE_TOLD - 1, 3000);
    took(1, 1, 20, 3000); /* the first never did that */
    find(2, 2, paces);
    ck_assert_uint_eq(paces[1], PACE_ONE);
    took(0, 0, 30, 1000);
    took(0, 1, PACE_TOLD, 3000);
    find(1, 2, paces);
    ck_assert_uint_eq(paces[1], 3 * PACE_ONE);
    find(0, 2, paces);
    ck_assert_uint_eq(paces[1], PACE_ONE);
}
END_TEST

START_TEST(a_fifth_more_is_no_other_pace)
{
    uint32_t paces[4];
    const int64_t took_ns[] = {1000, 1200, 1100, 1210};
    for (uint32_t device = 0; device < 4; device++) {
        took(0, device, device == 0 ? 30 : 10, took_ns[device]);
    }
    find(1, 4, paces);
    ck_assert_uint_eq(paces[1], PACE_ONE);
    ck_assert_uint_eq(paces[2], PACE_ONE);
    ck_assert_uint_gt(paces[3], PACE_ONE);
}
END_TEST

/* The first and the last have nothing in common but what both share with the second. */
START_TEST(a_device_is_compared_by_way_of_others)
{
    uint32_t paces[5];
    took(0, 0, 30, 1000);
    took(0, 1, 8, 2000);
    took(1, 1, 8, 500);
    took(1, 2, 8, 1500);
    took(2, 3, 9, 700); /* of these two nobody knows how they are beside the others */
    took(2, 4, 8, 1400);
    find(3, 5, paces);
    ck_assert_uint_eq(paces[1], 2 * PACE_ONE);
    ck_assert_uint_eq(paces[2], 6 * PACE_ONE);
    ck_assert_uint_eq(paces[3], PACE_ONE);
    ck_assert_uint_eq(paces[4], 2 * PACE_ONE);
}
END_TEST

/* Starting a program takes as long everywhere. And a device that stood still once is not as slow as
 * that. */
START_TEST(work_weighs_as_long_as_it_takes)
{
    uint32_t paces[2];
    for (uint32_t work = 0; work < 100; work++) {
        took(work, 0, 2, 3000000);
        took(work, 1, 1, 3000000);
    }
    for (uint32_t work = 100; work < 110; work++) {
        took(work, 0, 1, 500000000);
        took(work, 1, 1, work == 105 ? INT64_MAX : 1500000000);
    }
    find(110, 2, paces);
    ck_assert_uint_eq(paces[1], 3 * PACE_ONE);
}
END_TEST

/* Devices of random speeds did random parts of the work in times up to a tenth longer. Their paces
 * are found to about that, and to the fifth that counts as no other pace. */
START_TEST(paces_are_found_to_the_noise)
{
    enum { WORKS = 60, DEVICES = 6 };
    struct random random = random_seeded((uint64_t)_i);
    uint32_t paces[DEVICES];
    int64_t speed[DEVICES];
    for (uint32_t device = 0; device < DEVICES; device++) {
        speed[device] = 100 + (int64_t)random_below(&random, 900);
    }
    for (uint32_t work = 0; work < WORKS; work++) {
        const int64_t work_ns = 1000000 + (int64_t)random_below(&random, 1000000000);
        for (uint32_t device = 0; device < DEVICES; device++) {
            if (random_below(&random, 3) == 0) {
                const int64_t noise = 1000 + (int64_t)random_below(&random, 100);
                took(work, device, 1, work_ns * speed[device] / 100 * noise / 1000);
            }
        }
    }
    find(WORKS, DEVICES, paces);
    for (uint32_t a = 0; a < DEVICES; a++) {
        for (uint32_t b = 0; b < DEVICES; b++) {
            const double found = (double)paces[a] / paces[b];
            const double is = (double)speed[a] / (double)speed[b];
            const bool is_snapped = paces[a] == PACE_ONE || paces[b] == PACE_ONE;
            ck_assert_double_le(found / is, is_snapped ? 1.7 : 1.15);
        }
    }
}
END_TEST

START_TEST(times_at_a_pace_stay_times)
{
    ck_assert_int_eq(pace_takes_ns(INT64_MAX, PACE_MOST), INT64_MAX);
    ck_assert_int_eq(pace_base_ns(INT64_MAX, 1), INT64_MAX);
    ck_assert_int_eq(pace_takes_ns(1, 1), 1);
    ck_assert_int_eq(pace_base_ns(1, PACE_MOST), 1);
    ck_assert_int_eq(pace_takes_ns(0, 3 * PACE_ONE), 0);
    uint32_t paces[2];
    took(0, 0, UINT32_MAX, 1);
    took(0, 1, UINT32_MAX, INT64_MAX);
    find(1, 2, paces);
    ck_assert_uint_eq(paces[1], PACE_MOST);
}
END_TEST

SUITE("pace", NULL, NULL, TEST(what_takes_three_times_as_long_has_pace_three),
      TEST(paces_are_those_beside_the_fastest),
      LOOP(a_device_that_changes_is_known_by_as_many_new_works, 0, 2),
      TEST(many_short_works_are_not_many), TEST(few_samples_of_the_same_work_say_nothing),
      TEST(a_fifth_more_is_no_other_pace), TEST(a_device_is_compared_by_way_of_others),
      TEST(work_weighs_as_long_as_it_takes), LOOP(paces_are_found_to_the_noise, 0, 100),
      TEST(times_at_a_pace_stay_times))
