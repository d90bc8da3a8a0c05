/* Devices are counted by the level of isolation that they state. */
#include "consumer/market/isolation_counts.h"

#include "consumer/command/cell.h"
#include "tests/support/suite.h"

#include <check.h>

static void add(struct bourse_isolation *counts, const struct bourse_attribute *attribute)
{
    const struct bourse_device device = {.attribute_count = attribute != NULL,
                                         .attributes = attribute};
    isolation_counts_add(counts, &device);
}

START_TEST(a_device_counts_once_by_its_level)
{
    const struct bourse_attribute open = {.name = "isolation", .number = 0};
    const struct bourse_attribute closed = {.name = "isolation", .number = 1};
    struct bourse_isolation counts = {0};
    ck_assert_str_eq(cell_isolation(&counts), "");
    add(&counts, &closed);
    ck_assert_str_eq(cell_isolation(&counts), "level 1 on 1 device");
    add(&counts, &closed);
    add(&counts, &open);
    ck_assert_uint_eq(counts.devices[1], 2);
    ck_assert_uint_eq(counts.devices[0], 1);
    ck_assert_str_eq(cell_isolation(&counts),
                     "level 1 on 2 devices, level 0 on 1, where files of /dev are in the jail");
}
END_TEST

START_TEST(a_level_that_is_none_is_not_stated)
{
    const struct bourse_attribute high = {.name = "isolation", .number = BOURSE_ISOLATION_LEVELS};
    const struct bourse_attribute low = {.name = "isolation", .number = -1};
    const struct bourse_attribute text = {.name = "isolation", .text = "1"};
    const struct bourse_attribute other = {.name = "memory", .number = 1};
    struct bourse_isolation counts = {0};
    add(&counts, &high);
    add(&counts, &low);
    add(&counts, &text);
    add(&counts, &other);
    add(&counts, NULL);
    ck_assert_uint_eq(counts.unstated, 5);
    ck_assert_str_eq(cell_isolation(&counts), "not stated by 5 devices");
}
END_TEST

SUITE("isolation_counts", NULL, NULL, TEST(a_device_counts_once_by_its_level),
      TEST(a_level_that_is_none_is_not_stated))
