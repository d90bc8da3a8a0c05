#include "provider/policy.h"

#include "formats/units.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define MEMORY_LEAST (64 * MIB) /* less runs nothing of use */

/* ---------------------------------------------------------------- attributes */

static struct attribute *next_attribute(struct offer *offer, const char *name)
{
    assert(offer->device.attribute_count < POLICY_ATTRIBUTES_MAX);
    struct attribute *attribute = &offer->attributes[offer->device.attribute_count++];
    memset(attribute, 0, sizeof *attribute);
    (void)snprintf(attribute->name, sizeof attribute->name, "%s", name);
    return attribute;
}

/* What is not known is not claimed: no attribute for "" and 0. */
static void text_attribute(struct offer *offer, const char *name, const char *text)
{
    if (text[0] != '\0') {
        struct attribute *attribute = next_attribute(offer, name);
        attribute->is_text = true;
        (void)snprintf(attribute->text, sizeof attribute->text, "%s", text);
    }
}

static void number_attribute(struct offer *offer, const char *name, int64_t number)
{
    if (number > 0) {
        next_attribute(offer, name)->number = number;
    }
}

/* The variant of a processor, from the machine code it runs; "" for one that has no name yet. */
static const char *cpu_variant(const char *arch)
{
    if (strcmp(arch, "x86_64") == 0) {
        return "cpu-x86";
    }
    if (strcmp(arch, "aarch64") == 0 || strncmp(arch, "arm", 3) == 0) {
        return "cpu-arm";
    }
    return strncmp(arch, "riscv", 5) == 0 ? "cpu-riscv" : "";
}

static void describe(struct offer *offer, const struct config *config,
                     const struct machine *machine, const struct profile *profile,
                     const struct isolation *isolation)
{
    text_attribute(offer, "kind", "cpu");
    text_attribute(offer, "kind", cpu_variant(machine->arch));
    text_attribute(offer, "instrument", machine->instrument);
    text_attribute(offer, "arch", machine->arch);
    text_attribute(offer, "vendor", machine->vendor);
    text_attribute(offer, "model", machine->model);
    text_attribute(offer, "label", config->name);
    text_attribute(offer, "region", config->region);
    number_attribute(offer, "cores", offer->device.slots);
    number_attribute(offer, "memory", (int64_t)offer->memory_bytes);
    number_attribute(offer, "gflops", profile->mflops / 1000);
    number_attribute(offer, "bandwidth", profile->bandwidth_bytes);
    number_attribute(offer, "isolation", isolation->level);
    text_attribute(offer, "executor", "command");
    text_attribute(offer, "executor", "noop");
    for (size_t i = 0; i < config->program_count; i++) {
        text_attribute(offer, "program", config->programs[i].name);
    }
}

/* ---------------------------------------------------------------- shares */

static bool share_memory(struct offer *offer, const struct config *config,
                         const struct machine *machine, struct problem *problem)
{
    uint64_t slots = offer->device.slots;
    uint64_t share = machine->memory_bytes / 4 * 3 / slots; /* a quarter stays the owner's */
    uint64_t disk = config->disk_bytes;
    uint64_t memory = config->memory_bytes;
    if (memory == 0) {
        memory = disk == 0 ? share / 4 * 3 : share > disk ? share - disk : 0;
    }
    if (disk == 0) {
        disk = memory / 3;
    }
    offer->memory_bytes = memory / MIB * MIB;
    offer->disk_bytes = disk / MIB * MIB;
    if (offer->memory_bytes < MEMORY_LEAST) {
        problem_set(problem,
                    "%llu slots leave %llu MiB of memory each, and a slot needs %llu; offer "
                    "fewer slots",
                    (unsigned long long)slots, (unsigned long long)(memory / MIB),
                    (unsigned long long)(MEMORY_LEAST / MIB));
        return false;
    }
    uint64_t each = offer->memory_bytes + offer->disk_bytes; /* files of jobs live in memory */
    if (machine->memory_bytes > 0 && each > machine->memory_bytes / slots) {
        char have[UNITS_TEXT_SIZE];
        units_bytes_short((int64_t)machine->memory_bytes, have);
        problem_set(problem,
                    "memory and disk of %llu slots are %llu MiB together, and this machine has "
                    "%s; lower `memory`, `disk` or `slots`",
                    (unsigned long long)slots, (unsigned long long)(each * slots / MIB), have);
        return false;
    }
    return true;
}

bool policy_offer(const struct config *config, const struct machine *machine,
                  const struct profile *profile, const struct isolation *isolation,
                  const struct key32 *account, struct offer *ret_offer, struct problem *ret_problem)
{
    if (isolation->level < 1) {
        problem_set(ret_problem, "this host cannot isolate jobs, so nothing is offered: %s",
                    isolation->refusal);
        return false;
    }
    if (config->slots > machine->cores) {
        problem_set(ret_problem, "slots: %u, but this process may use %u cores", config->slots,
                    machine->cores);
        return false;
    }
    memset(ret_offer, 0, sizeof *ret_offer);
    uint32_t slots = config->slots == 0 ? machine->cores : config->slots;
    ret_offer->device.slots = slots < LIMIT_SLOTS ? slots : LIMIT_SLOTS;
    ret_offer->device.device = discover_device_id(account, "cpu");
    ret_offer->device.attributes = ret_offer->attributes;
    ret_offer->processes = config->processes;
    (void)snprintf(ret_offer->device.instrument, sizeof ret_offer->device.instrument, "%s",
                   machine->instrument);
    (void)snprintf(ret_offer->device.label, sizeof ret_offer->device.label, "%s", config->name);
    if (!share_memory(ret_offer, config, machine, ret_problem)) {
        return false;
    }
    describe(ret_offer, config, machine, profile, isolation);
    ret_offer->ask = (struct agent_ask){
        .device = ret_offer->device.device,
        .slots = ret_offer->device.slots,
        .price_micro = config->price_micro,
        .max_term_ms = config->term_ms,
    };
    return true;
}

static uint64_t lesser(uint64_t ours, int64_t asked)
{
    return asked > 0 && (uint64_t)asked < ours ? (uint64_t)asked : ours;
}

struct jail_limits policy_jail(const struct offer *offer, uint32_t width, int64_t memory_bytes,
                               int64_t disk_bytes, uint32_t processes, bool cpu_enforced)
{
    assert(width >= 1 && width <= LIMIT_SLOTS);
    return (struct jail_limits){
        .memory_bytes = lesser(offer->memory_bytes * width, memory_bytes),
        .disk_bytes = lesser(offer->disk_bytes * width, disk_bytes),
        .processes = (uint32_t)lesser((uint64_t)offer->processes * width, processes),
        .cpu_milli = cpu_enforced ? 1000 * width : 0,
    };
}
