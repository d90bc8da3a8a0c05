/* provider/device/discover.h describes this machine, that is its CPU, as one device of the market.
 *
 * The facts come from hwloc (usable cores, memory, caches) and from the kernel (model, instruction
 * sets). Nothing is guessed: a fact that cannot be read is left out of the offer. Measured figures
 * come from provider/device/probe.h. */
#ifndef BOURSE_PROVIDER_DEVICE_DISCOVER_H
#define BOURSE_PROVIDER_DEVICE_DISCOVER_H

#include "base/id.h"
#include "base/problem.h"
#include "base/requirement.h"
#include "provider/device/kernel_device.h"
#include "provider/device/model_device.h"
#include "provider/device/model_engine.h"
#include "provider/device/plugin_device.h"
#include "provider/device/wasm_engine.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { DISCOVER_CPUS_MAX = 4096 };

struct machine {
    uint32_t packages;
    uint32_t cores;   /* cores that we may use, one processing unit each */
    uint32_t threads; /* processing units that we may use */
    uint32_t numa_nodes;
    uint64_t memory_bytes;            /* the machine's, or our control group's limit when lower */
    uint64_t cache_bytes;             /* size of the last level, counted once */
    char model[ATTRIBUTE_TEXT_SIZE];  /* "AMD EPYC 9654" */
    char vendor[ATTRIBUTE_TEXT_SIZE]; /* amd, intel, arm, ...; "" when unknown */
    char arch[16];                    /* x86_64, aarch64, ... */
    char level[16];                   /* avx512, avx2, sse2, neon, sve, rvv; "" when unknown */
    uint32_t features;                /* that every processor has; bits of discover_features */
    char instrument[ATTRIBUTE_TEXT_SIZE]; /* cpu.x86_64.avx512 */
    uint32_t cpus[DISCOVER_CPUS_MAX];     /* one processing unit per core, `cores` of them */
    /* One list for each interface; provider/executors/kernels.h fills them, at a start. */
    struct kernel_device_list kernel_devices[KERNEL_APIS];
    struct plugin_list plugins;             /* likewise provider/executors/plugins.h */
    struct wasm_engine wasm;                /* likewise provider/executors/wasm.h */
    struct model_engine models;             /* likewise provider/executors/onnx.h */
    struct model_device_list model_devices; /* likewise provider/executors/model_devices.h */
};

/* Describes this machine, or the one that `synthetic` describes, such as "pack:2 core:4 pu:2" in
 * hwloc's words. A synthetic machine does not read the kernel's files. Returns false with the
 * problem when hwloc cannot tell. */
bool discover_machine(const char *synthetic, struct machine *ret_machine,
                      struct problem *ret_problem);

/* Reads model, vendor, level and features from a file in the form of /proc/cpuinfo. A feature that
 * one of the processors lacks does not count, because a job may run on any of them. */
void discover_cpuinfo(FILE *file, struct machine *machine);

/* Returns the instruction level of a "flags", "Features" or "isa" line of /proc/cpuinfo. */
const char *discover_level(const char *arch, const char *flags);

/* Returns the instruction sets that such a line names, one bit for each. Bit 0 stands for the first
 * name of discover_feature_name. */
uint32_t discover_features(const char *arch, const char *flags);
/* Returns the value of the attribute `feature` for the bit of this number, or NULL when there is no
 * such bit. */
const char *discover_feature_name(unsigned number);

/* Returns the variant of a processor by its instruction set, or "" for one without a name. */
const char *discover_variant(const char *arch);

/* Returns the id of the account's device with this name. The id is the same at every start. */
struct id128 discover_device_id(const struct key32 *account, const char *name);

#endif
