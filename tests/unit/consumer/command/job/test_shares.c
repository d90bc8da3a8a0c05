/* The tests ask what each device did of a product. */
#include "consumer/command/job/shares.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct bourse_lease lease(const char *provider, const char *device, uint32_t accepted)
{
    struct bourse_lease made = {.accepted = accepted, .paid_ns = 100, .charged_micro = 7};
    (void)strncpy(made.provider, provider, sizeof made.provider - 1);
    (void)strncpy(made.device, device, sizeof made.device - 1);
    return made;
}

START_TEST(leases_of_one_device_are_one_row)
{
    const struct bourse_lease leases[] = {lease("ada", "cpu", 2), lease("ada", "gpu", 1),
                                          lease("ada", "cpu", 3), lease("bob", "cpu", 4)};
    const uint32_t tiles[] = {2, 1, 2, 3};
    struct device_share shares[4];
    ck_assert_uint_eq(shares_by_device(leases, 4, tiles, shares), 3);
    ck_assert_str_eq(shares[0].device, "cpu");
    ck_assert_uint_eq(shares[0].tiles, 4);
    ck_assert_uint_eq(shares[0].others, 1);
    ck_assert_int_eq(shares[0].paid_ns, 200);
    ck_assert_int_eq(shares[0].charged_micro, 14);
    ck_assert_str_eq(shares[1].device, "gpu");
    ck_assert_str_eq(shares[2].provider, "bob");
    ck_assert_uint_eq(shares_providers(shares, 3), 2);
}
END_TEST

/* It judged tiles, and made none; another device got a lease and nothing to do. */
START_TEST(who_made_no_tiles_is_no_provider_of_the_product)
{
    const struct bourse_lease leases[] = {lease("ada", "cpu", 2), lease("referee", "cpu", 2),
                                          lease("bob", "cpu", 0)};
    const uint32_t tiles[] = {2, 0, 0};
    struct device_share shares[3];
    ck_assert_uint_eq(shares_by_device(leases, 3, tiles, shares), 3);
    ck_assert_uint_eq(shares[1].others, 2);
    ck_assert_uint_eq(shares_providers(shares, 3), 1);
    ck_assert_uint_eq(shares_by_device(leases, 0, tiles, shares), 0);
    ck_assert_uint_eq(shares_providers(shares, 0), 0);
}
END_TEST

SUITE("shares", NULL, NULL, TEST(leases_of_one_device_are_one_row),
      TEST(who_made_no_tiles_is_no_provider_of_the_product))
