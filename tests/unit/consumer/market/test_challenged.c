/* Devices are counted by what the broker found when it challenged the speed that they claim. */
#include "consumer/market/challenged.h"

#include "tests/support/suite.h"

#include <check.h>

static struct bourse_device device_of(const struct bourse_attribute *claim, const char *outcome)
{
    return (struct bourse_device){
        .attribute_count = claim != NULL,
        .attributes = claim,
        .challenge = {.outcome = outcome, .at_ms = 7, .claimed_mflops = 1000}};
}

START_TEST(a_device_counts_once_by_its_last_challenge)
{
    const struct bourse_attribute claim = {.name = "gemm_fp32", .number = 1000};
    struct bourse_challenged counts = {0};
    struct bourse_device never = device_of(&claim, "none");
    never.challenge.at_ms = 0;
    struct bourse_device lowered = device_of(&claim, "slow");
    lowered.challenge.limit_mflops = 300;
    const struct bourse_device devices[] = {device_of(&claim, "ok"),
                                            device_of(&claim, "slow"),
                                            device_of(&claim, "wrong"),
                                            device_of(&claim, "unanswered"),
                                            lowered,
                                            never};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        challenged_add(&counts, &devices[i]);
    }
    ck_assert_uint_eq(counts.ok, 2); /* one of them was slow for once */
    ck_assert_uint_eq(counts.failed, 2);
    ck_assert_uint_eq(counts.lowered, 1);
    ck_assert_uint_eq(counts.claimed, 1);
}
END_TEST

START_TEST(a_device_without_a_claim_counts_nowhere)
{
    const struct bourse_attribute other = {.name = "memory", .number = 1000};
    const struct bourse_attribute text = {.name = "gemm_fp32", .text = "fast"};
    const struct bourse_attribute claim = {.name = "gemm_fp32", .number = 1000};
    struct bourse_challenged counts = {0};
    struct bourse_device simulated = device_of(&claim, "ok");
    simulated.simulated = true;
    const struct bourse_device devices[] = {device_of(NULL, "ok"), device_of(&other, "ok"),
                                            device_of(&text, "ok"), simulated};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        ck_assert_int_eq(challenged_claim(&devices[i]), 0);
        challenged_add(&counts, &devices[i]);
    }
    ck_assert_uint_eq(counts.ok + counts.failed + counts.lowered + counts.claimed, 0);
    const struct bourse_device real = device_of(&claim, "ok");
    ck_assert_int_eq(challenged_claim(&real), 1000);
    const struct bourse_attribute both[] = {claim, {.name = "gemm_fp32_held", .number = 5000}};
    struct bourse_device fast = device_of(both, "ok");
    fast.attribute_count = 2;
    ck_assert_int_eq(challenged_claim(&fast), 5000); /* the higher one is challenged */
}
END_TEST

SUITE("challenged", NULL, NULL, TEST(a_device_counts_once_by_its_last_challenge),
      TEST(a_device_without_a_claim_counts_nowhere))
