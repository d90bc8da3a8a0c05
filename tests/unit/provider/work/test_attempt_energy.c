/* An attempt has the energy that counters measured, or an estimate that says so. */
#include "provider/work/attempt_energy.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct offer offer; /* of cores */
static struct kernel_device gpu = {.kind = "gpu", .api = KERNEL_CUDA};
static struct energy_tally tally;

static void setup(void)
{
    memset(&offer, 0, sizeof offer);
    memset(&tally, 0, sizeof tally);
    offer.device.slots = 4;
    (void)snprintf(offer.device.label, sizeof offer.device.label, "gpu");
    offer.power_mw = 2500;
}

static struct outcome *ran_for(int64_t busy_ns)
{
    const struct agent_work work = {.lease = 1, .attempt = 1};
    struct outcome *outcome = outcome_create(&work, &(struct id128){{1}});
    ck_assert_ptr_nonnull(outcome);
    outcome->ran = true;
    outcome->busy_ns = busy_ns;
    outcome->cpu_ns = busy_ns;
    return outcome;
}

static void end(struct outcome *outcome, const struct energy_counters *counters)
{
    struct attempt_energy energy;
    attempt_energy_begin(counters, &offer, 0, &energy);
    attempt_energy_end(&energy, 2, outcome->busy_ns, outcome);
}

START_TEST(without_counters_the_energy_is_the_power_for_the_busy_time)
{
    const struct energy_counters none = {.tally = &tally};
    CLEANUP(outcome_destroy) struct outcome *outcome = ran_for(3 * NS_PER_S);
    end(outcome, &none);
    ck_assert(outcome->has_energy);
    ck_assert_int_eq(outcome->energy_source, ENERGY_BY_OWNER);
    ck_assert_int_eq(outcome->energy_uj, 15000000); /* two slots of 2.5 W, for 3 s */
    ck_assert_int_eq(outcome->peak_power_mw, 0);    /* an estimate is no reading */
    ck_assert_int_eq(atomic_load(&tally.estimated_uj), 15000000);
    ck_assert_int_eq(atomic_load(&tally.measured_uj), 0);
}
END_TEST

START_TEST(an_unknown_power_is_no_energy)
{
    const struct energy_counters none = {.tally = &tally};
    CLEANUP(outcome_destroy) struct outcome *outcome = ran_for(3 * NS_PER_S);
    offer.power_mw = 0;
    end(outcome, &none);
    ck_assert(!outcome->has_energy);
    ck_assert_int_eq(attempt_energy_estimate_uj(&offer, 1, NS_PER_S), -1);
}
END_TEST

START_TEST(what_did_not_run_has_no_energy)
{
    const struct energy_counters none = {.tally = &tally};
    CLEANUP(outcome_destroy) struct outcome *refused = ran_for(NS_PER_S);
    CLEANUP(outcome_destroy) struct outcome *idle = ran_for(0);
    refused->ran = false;
    end(refused, &none);
    end(idle, &none);
    ck_assert(!refused->has_energy && !idle->has_energy);
    ck_assert_int_eq(atomic_load(&tally.estimated_uj), 0);
}
END_TEST

/* The energy of a simulated device is set by its simulation. */
START_TEST(an_energy_that_is_known_stays)
{
    const struct energy_counters none = {.tally = &tally};
    CLEANUP(outcome_destroy) struct outcome *outcome = ran_for(NS_PER_S);
    outcome->has_energy = true;
    outcome->energy_uj = 7;
    outcome->energy_source = ENERGY_BY_CATALOGUE;
    end(outcome, &none);
    ck_assert_int_eq(outcome->energy_uj, 7);
    ck_assert_int_eq(outcome->energy_source, ENERGY_BY_CATALOGUE);
}
END_TEST

START_TEST(an_energy_above_the_most_is_left_out)
{
    const struct energy_counters none = {.tally = &tally};
    CLEANUP(outcome_destroy) struct outcome *outcome = ran_for(INT64_MAX / 4);
    offer.power_mw = INT64_C(1000000000);
    end(outcome, &none);
    ck_assert(!outcome->has_energy);
}
END_TEST

START_TEST(a_gpu_has_the_share_of_its_slots_in_what_was_read)
{
    CLEANUP(energy_gauge_destroy) struct energy_gauges *gauges = energy_gauge_create();
    const struct energy_counters counters = {.gauges = gauges, .tally = &tally};
    CLEANUP(outcome_destroy) struct outcome *outcome = ran_for(10 * NS_PER_S);
    struct attempt_energy energy;
    offer.kernel_device = &gpu;
    attempt_energy_begin(&counters, &offer, 0, &energy);
    energy_gauge_read(gauges, "gpu", 0, -1, 300000);
    energy_gauge_read(gauges, "gpu", 8 * NS_PER_S, -1, 300000);
    attempt_energy_end(&energy, 2, 10 * NS_PER_S, outcome);
    ck_assert(outcome->has_energy);
    ck_assert_int_eq(outcome->energy_source, ENERGY_MEASURED);
    ck_assert_int_eq(outcome->energy_uj, INT64_C(1500000000)); /* half of 300 W for 10 s */
    ck_assert_int_eq(atomic_load(&tally.measured_uj), INT64_C(1500000000));
    ck_assert_int_eq(outcome->peak_power_mw, 300000); /* of the whole device */
}
END_TEST

SUITE("attempt energy", setup, NULL,
      TEST(without_counters_the_energy_is_the_power_for_the_busy_time),
      TEST(an_unknown_power_is_no_energy), TEST(what_did_not_run_has_no_energy),
      TEST(an_energy_that_is_known_stays), TEST(an_energy_above_the_most_is_left_out),
      TEST(a_gpu_has_the_share_of_its_slots_in_what_was_read))
