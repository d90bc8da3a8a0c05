#include "provider/work/outcome_wire.h"

#include <signal.h>

static void output_to_wire(const struct kept *kept, Bourse__V1__Output *ret_output)
{
    bourse__v1__output__init(ret_output);
    ret_output->name = kept->name;
    ret_output->hash.len = sizeof kept->hash.bytes;
    ret_output->hash.data = (uint8_t *)(uintptr_t)kept->hash.bytes;
    ret_output->size = kept->size;
    ret_output->has_executable = ret_output->executable = kept->is_executable; /* absent: no */
}

static void checkpoint_to_wire(const struct outcome *outcome, struct wire_outcome *wire,
                               Bourse__V1__Result *ret_result)
{
    ret_result->has_restored = outcome->dispatch.restored != 0;
    ret_result->restored = outcome->dispatch.restored;
    if (outcome->checkpoint_count == 0) {
        return;
    }
    bourse__v1__saved__init(&wire->checkpoint);
    for (size_t i = 0; i < outcome->checkpoint_count; i++) {
        output_to_wire(&outcome->checkpoint[i], &wire->saved[i]);
        wire->saved_pointers[i] = &wire->saved[i];
    }
    wire->checkpoint.n_files = outcome->checkpoint_count;
    wire->checkpoint.files = wire->saved_pointers;
    ret_result->saved = &wire->checkpoint;
}

void outcome_to_wire(const struct outcome *outcome, struct wire_outcome *wire,
                     Bourse__V1__Result *ret_result)
{
    bourse__v1__result__init(ret_result);
    ret_result->outcome = outcome->result;
    ret_result->started_ms = outcome->started_ms;
    ret_result->busy_ns = outcome->busy_ns > 0 ? outcome->busy_ns : 0;
    if (outcome->ran) {
        /* The exit code 0 is sent only with OK. */
        ret_result->has_exit_code = outcome->exit_code != 0 || outcome->result == OUTCOME_OK;
        ret_result->exit_code = outcome->exit_code;
        ret_result->has_signal = outcome->signal != 0;
        ret_result->signal = outcome->signal;
        ret_result->has_cpu_ns = outcome->cpu_ns > 0;
        ret_result->cpu_ns = outcome->cpu_ns;
        ret_result->has_peak_memory_bytes = outcome->peak_memory_bytes > 0;
        ret_result->peak_memory_bytes = outcome->peak_memory_bytes;
        ret_result->has_peak_power_mw = outcome->peak_power_mw > 0;
        ret_result->peak_power_mw = outcome->peak_power_mw;
    }
    ret_result->has_isolation = outcome->has_isolation;
    ret_result->isolation = (uint32_t)outcome->isolation;
    ret_result->has_lacks_factor = ret_result->lacks_factor =
        outcome->lacks_factor && outcome->result == OUTCOME_INPUT_MISSING;
    if (outcome->verdict != VERDICT_NONE) {
        ret_result->has_verdict = true;
        ret_result->verdict = outcome->verdict;
        ret_result->has_seed = true;
        ret_result->seed.len = sizeof outcome->dispatch.seed.bytes;
        ret_result->seed.data = (uint8_t *)(uintptr_t)outcome->dispatch.seed.bytes;
    }
    ret_result->has_energy_mj = ret_result->has_energy_uj = outcome->has_energy;
    ret_result->energy_mj = outcome->energy_uj / 1000;
    ret_result->energy_uj = outcome->energy_uj;
    ret_result->has_energy_source =
        outcome->has_energy && outcome->energy_source != ENERGY_UNSTATED;
    ret_result->energy_source = (uint32_t)outcome->energy_source;
    ret_result->has_held_bytes = ret_result->has_copied_bytes =
        outcome->held_bytes > 0 || outcome->copied_bytes > 0;
    ret_result->held_bytes = outcome->held_bytes;
    ret_result->copied_bytes = outcome->copied_bytes;
    if (outcome->standard_output.name != NULL && outcome->standard_output.size > 0) {
        output_to_wire(&outcome->standard_output, &wire->standard_output);
        ret_result->standard_output = &wire->standard_output;
    }
    if (outcome->standard_error.name != NULL && outcome->standard_error.size > 0) {
        output_to_wire(&outcome->standard_error, &wire->standard_error);
        ret_result->standard_error = &wire->standard_error;
    }
    for (size_t i = 0; i < outcome->output_count; i++) {
        if (outcome->outputs[i].name != NULL) {
            output_to_wire(&outcome->outputs[i], &wire->outputs[ret_result->n_outputs]);
            wire->pointers[ret_result->n_outputs] = &wire->outputs[ret_result->n_outputs];
            ret_result->n_outputs++;
        }
    }
    ret_result->outputs = wire->pointers;
    checkpoint_to_wire(outcome, wire, ret_result);
    if (outcome->detail[0] != '\0') {
        ret_result->detail = (char *)(uintptr_t)outcome->detail;
    }
}
