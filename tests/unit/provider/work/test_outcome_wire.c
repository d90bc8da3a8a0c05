#include "provider/work/outcome_wire.h"

#include "base/cleanup.h"
#include "provider/work/dispatch_inputs.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct outcome *outcome_of(bool is_executable)
{
    struct agent_work work = {.lease = 1, .attempt = 1};
    struct outcome *outcome = outcome_create(&work, &(struct id128){{1}});
    struct problem problem = {""};
    ck_assert_ptr_nonnull(outcome);
    ck_assert(outcome_reserve(outcome, 1));
    ck_assert_int_eq(outcome_keep("/nonexistent", "tool", -1, 0, &outcome->outputs[0], &problem),
                     OUTCOME_OK);
    outcome->outputs[0].is_executable = is_executable;
    outcome->output_count = 1;
    return outcome;
}

START_TEST(a_result_says_what_may_be_executed_and_nothing_of_other_files)
{
    for (int is_executable = 0; is_executable < 2; is_executable++) {
        CLEANUP(outcome_destroy) struct outcome *outcome = outcome_of(is_executable != 0);
        struct wire_outcome *wire = calloc(1, sizeof *wire);
        Bourse__V1__Result result;
        uint8_t bytes[128];
        ck_assert_ptr_nonnull(wire);
        outcome_to_wire(outcome, wire, &result);
        ck_assert_uint_eq(result.n_outputs, 1);
        const Bourse__V1__Output *output = result.outputs[0];
        /* A name of 4 bytes, a hash of 32 and the size 0; the flag takes 2 bytes more. */
        ck_assert_uint_eq(bourse__v1__output__pack(output, bytes),
                          6 + 34 + 2 + (is_executable != 0 ? 2U : 0U));
        ck_assert_int_eq(output->has_executable, is_executable);
        ck_assert_int_eq(output->executable, is_executable);
        free(wire);
    }
}
END_TEST

START_TEST(a_dispatch_hands_the_permission_on)
{
    uint8_t hash[32] = {7};
    Bourse__V1__Output outputs[] = {BOURSE__V1__OUTPUT__INIT, BOURSE__V1__OUTPUT__INIT};
    Bourse__V1__Output *pointers[] = {&outputs[0], &outputs[1]};
    outputs[0].name = (char *)(uintptr_t) "tool";
    outputs[1].name = (char *)(uintptr_t) "data";
    for (size_t i = 0; i < 2; i++) {
        outputs[i].hash = (ProtobufCBinaryData){.len = sizeof hash, .data = hash};
    }
    outputs[0].has_executable = outputs[0].executable = true;
    Bourse__V1__Given given = BOURSE__V1__GIVEN__INIT;
    given.index = 3;
    given.n_outputs = 2;
    given.outputs = pointers;
    Bourse__V1__Given *all[] = {&given};
    Bourse__V1__Work work = BOURSE__V1__WORK__INIT;
    work.n_given = 1;
    work.given = all;
    CLEANUP(dispatch_inputs_fini) struct dispatch_inputs inputs;
    ck_assert(dispatch_inputs_copy(&work, &inputs));
    ck_assert(dispatch_inputs_find(&inputs, 3, "tool")->is_executable);
    ck_assert(!dispatch_inputs_find(&inputs, 3, "data")->is_executable);
    ck_assert_ptr_null(dispatch_inputs_find(&inputs, 4, "tool"));
}
END_TEST

START_TEST(a_result_says_its_energy_and_where_that_comes_from_or_nothing)
{
    CLEANUP(outcome_destroy) struct outcome *outcome = outcome_of(false);
    struct wire_outcome *wire = calloc(1, sizeof *wire);
    Bourse__V1__Result result;
    ck_assert_ptr_nonnull(wire);
    outcome->energy_source = ENERGY_BY_OWNER;
    outcome_to_wire(outcome, wire, &result);
    ck_assert(!result.has_energy_mj && !result.has_energy_uj && !result.has_energy_source);
    outcome->has_energy = true;
    outcome->energy_uj = 1999;
    outcome_to_wire(outcome, wire, &result);
    ck_assert(result.has_energy_mj && result.has_energy_uj && result.has_energy_source);
    ck_assert_int_eq(result.energy_mj, 1);
    ck_assert_int_eq(result.energy_uj, 1999);
    ck_assert_uint_eq(result.energy_source, ENERGY_BY_OWNER);
    free(wire);
}
END_TEST

START_TEST(a_result_says_the_level_of_its_jail_or_nothing)
{
    CLEANUP(outcome_destroy) struct outcome *outcome = outcome_of(false);
    struct wire_outcome *wire = calloc(1, sizeof *wire);
    Bourse__V1__Result result;
    ck_assert_ptr_nonnull(wire);
    outcome_to_wire(outcome, wire, &result);
    ck_assert(!result.has_isolation); /* it ran in no jail */
    outcome->has_isolation = true;
    outcome_to_wire(outcome, wire, &result);
    ck_assert(result.has_isolation); /* 0 is said, and is less than nothing said */
    ck_assert_uint_eq(result.isolation, 0);
    outcome->isolation = 1;
    outcome_to_wire(outcome, wire, &result);
    ck_assert_uint_eq(result.isolation, 1);
    free(wire);
}
END_TEST

START_TEST(a_result_says_the_greatest_power_that_was_read_or_nothing)
{
    CLEANUP(outcome_destroy) struct outcome *outcome = outcome_of(false);
    struct wire_outcome *wire = calloc(1, sizeof *wire);
    Bourse__V1__Result result;
    ck_assert_ptr_nonnull(wire);
    outcome->ran = true;
    outcome->peak_memory_bytes = 4096;
    outcome_to_wire(outcome, wire, &result);
    ck_assert(result.has_peak_memory_bytes && !result.has_peak_power_mw);
    outcome->peak_power_mw = 210000;
    outcome_to_wire(outcome, wire, &result);
    ck_assert(result.has_peak_power_mw);
    ck_assert_int_eq(result.peak_power_mw, 210000);
    free(wire);
}
END_TEST

START_TEST(a_result_says_which_inputs_the_device_had_or_nothing)
{
    CLEANUP(outcome_destroy) struct outcome *outcome = outcome_of(false);
    struct wire_outcome *wire = calloc(1, sizeof *wire);
    Bourse__V1__Result result;
    ck_assert_ptr_nonnull(wire);
    outcome_to_wire(outcome, wire, &result);
    ck_assert(!result.has_held_bytes && !result.has_copied_bytes);
    outcome->copied_bytes = 4096;
    outcome_to_wire(outcome, wire, &result);
    ck_assert(result.has_held_bytes && result.has_copied_bytes);
    ck_assert_uint_eq(result.held_bytes, 0);
    ck_assert_uint_eq(result.copied_bytes, 4096);
    free(wire);
}
END_TEST

SUITE("outcome_wire", NULL, NULL, TEST(a_result_says_which_inputs_the_device_had_or_nothing),
      TEST(a_result_says_what_may_be_executed_and_nothing_of_other_files),
      TEST(a_result_says_its_energy_and_where_that_comes_from_or_nothing),
      TEST(a_result_says_the_level_of_its_jail_or_nothing),
      TEST(a_result_says_the_greatest_power_that_was_read_or_nothing),
      TEST(a_dispatch_hands_the_permission_on))
