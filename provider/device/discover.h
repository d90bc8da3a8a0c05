/* provider/device/discover.h - what this machine is: its CPU as one device of the market.
 *
 * Read from hwloc (cores this process may use, memory, caches) and from the kernel (model,
 * instruction sets), never guessed: what cannot be read is left out of the offer. Measured figures
 * come from provider/device/probe.h. */
#ifndef BOURSE_PROVIDER_DEVICE_DISCOVER_H
#define BOURSE_PROVIDER_DEVICE_DISCOVER_H

#include "base/id.h"
#include "base/problem.h"
#include "base/requirement.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DISCOVER_CPUS_MAX = 4096 };

struct machine {
    uint32_t packages;
    uint32_t cores;   /* that we may use: one processing unit of each */
    uint32_t threads; /* processing units that we may use */
    uint32_t numa_nodes;
    uint64_t memory_bytes;                /* of the machine, or of our control group when less */
    uint64_t cache_bytes;                 /* of the last level, once */
    char model[ATTRIBUTE_TEXT_SIZE];      /* "AMD EPYC 9654" */
    char vendor[ATTRIBUTE_TEXT_SIZE];     /* amd, intel, arm, ...; "" when unknown */
    char arch[16];                        /* x86_64, aarch64, ... */
    char level[16];                       /* avx512, avx2, sse2, neon, sve; "" when unknown */
    char instrument[ATTRIBUTE_TEXT_SIZE]; /* cpu.x86_64.avx512 */
    uint32_t cpus[DISCOVER_CPUS_MAX];     /* one processing unit per core, `cores` of them */
};

/* `synthetic` (NULL: this machine) is an hwloc description such as "pack:2 core:4 pu:2"; the
 * kernel's files are not read then. False with the problem when hwloc cannot tell. */
bool discover_machine(const char *synthetic, struct machine *ret_machine,
                      struct problem *ret_problem);

/* The instruction level of a "flags" or "Features" line of /proc/cpuinfo. */
const char *discover_level(const char *arch, const char *flags);

/* The id of a device of this account, the same at every start. */
struct id128 discover_device_id(const struct key32 *account, const char *name);

#endif
