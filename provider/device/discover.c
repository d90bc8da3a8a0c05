#include "provider/device/discover.h"

#include "base/sha256.h"
#include "base/text.h"

#include <hwloc.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { LINE_BYTES = 16384 };

/* ---------------------------------------------------------------- the kernel's words */

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *place = strstr(words, word); place != NULL;
         place = strstr(place + length, word)) {
        bool begins = place == words || isspace((unsigned char)place[-1]);
        bool ends = place[length] == '\0' || isspace((unsigned char)place[length]);
        if (begins && ends) {
            return true;
        }
    }
    return false;
}

/* The instruction sets that a job may ask for. AVX-512 counts with the four parts that compilers
 * mean by x86-64-v4. */
static const struct {
    const char *name, *arch;
    const char *words[4]; /* of the kernel; all of them are needed */
} features[] = {
    {"avx512", "x86_64", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}},
    {"amx-tile", "x86_64", {"amx_tile"}},
    {"amx-bf16", "x86_64", {"amx_tile", "amx_bf16"}},
    {"amx-int8", "x86_64", {"amx_tile", "amx_int8"}},
    {"sve", "aarch64", {"sve"}},
    {"sve2", "aarch64", {"sve", "sve2"}},
};
enum { FEATURES_BY_WORDS = sizeof features / sizeof features[0], FEATURE_RVV = FEATURES_BY_WORDS };
#define NAME_RVV "rvv"

/* Returns true when an isa line such as "rv64imafdcv_zicbom_zvl128b" names the vector extension:
 * the letter v among those before the first longer name. */
static bool has_vectors(const char *isa)
{
    const size_t letters = strcspn(isa, "_ \t");
    const size_t prefix = strlen("rv64");
    return letters > prefix && memchr(isa + prefix, 'v', letters - prefix) != NULL;
}

uint32_t discover_features(const char *arch, const char *flags)
{
    uint32_t found = 0;
    for (unsigned i = 0; i < FEATURES_BY_WORDS; i++) {
        bool has_all = strcmp(features[i].arch, arch) == 0;
        for (size_t k = 0; has_all && k < 4 && features[i].words[k] != NULL; k++) {
            has_all = has_word(flags, features[i].words[k]);
        }
        found |= has_all ? UINT32_C(1) << i : 0;
    }
    const bool has_rvv = strncmp(arch, "riscv", 5) == 0 && has_vectors(flags);
    return found | (has_rvv ? UINT32_C(1) << FEATURE_RVV : 0);
}

const char *discover_feature_name(unsigned number)
{
    return number < FEATURES_BY_WORDS ? features[number].name
           : number == FEATURE_RVV    ? NAME_RVV
                                      : NULL;
}

static bool has_feature(uint32_t found, const char *name)
{
    bool has = false;
    for (unsigned i = 0; discover_feature_name(i) != NULL; i++) {
        has = has || ((found >> i & 1) != 0 && strcmp(discover_feature_name(i), name) == 0);
    }
    return has;
}

const char *discover_level(const char *arch, const char *flags)
{
    const uint32_t found = discover_features(arch, flags);
    if (strcmp(arch, "x86_64") == 0) {
        const bool has_avx2 = has_word(flags, "avx2") && has_word(flags, "fma");
        return has_feature(found, "avx512") ? "avx512" : has_avx2 ? "avx2" : "sse2";
    }
    if (strcmp(arch, "aarch64") == 0) {
        return has_feature(found, "sve") ? "sve" : "neon";
    }
    return has_feature(found, NAME_RVV) ? NAME_RVV : "";
}

static const char *vendor_name(const char *kernel_name)
{
    static const struct {
        const char *kernel, *ours;
    } names[] = {{"AuthenticAMD", "amd"}, {"GenuineIntel", "intel"}, {"HygonGenuine", "hygon"},
                 {"0x41", "arm"},         {"0xc0", "ampere"},        {"0x61", "apple"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].kernel, kernel_name) == 0) {
            return names[i].ours;
        }
    }
    return "";
}

/* Returns the value of a line "key<blanks>: value" without its newline, or NULL for another key. */
static char *value_of(char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0) {
        return NULL;
    }
    char *colon = line + length + strspn(line + length, " \t");
    if (*colon != ':') {
        return NULL;
    }
    char *value = colon + 1 + strspn(colon + 1, " \t");
    value[strcspn(value, "\n")] = '\0';
    return value;
}

/* Returns the value of a line that lists instruction sets, or NULL. */
static const char *sets_of(char *line)
{
    static const char *const keys[] = {"flags", "Features", "isa"};
    const char *value = NULL;
    for (size_t i = 0; value == NULL && i < sizeof keys / sizeof keys[0]; i++) {
        value = value_of(line, keys[i]);
    }
    return value;
}

void discover_cpuinfo(FILE *file, struct machine *machine)
{
    char *line = malloc(LINE_BYTES);
    const char *value;
    bool has_sets = false;
    while (line != NULL && fgets(line, LINE_BYTES, file) != NULL) {
        if (machine->model[0] == '\0' && (value = value_of(line, "model name")) != NULL) {
            text_printable(value, strlen(value), machine->model, sizeof machine->model);
        } else if (machine->vendor[0] == '\0' &&
                   ((value = value_of(line, "vendor_id")) != NULL ||
                    (value = value_of(line, "CPU implementer")) != NULL)) {
            (void)snprintf(machine->vendor, sizeof machine->vendor, "%s", vendor_name(value));
        } else if ((value = sets_of(line)) != NULL) {
            const uint32_t found = discover_features(machine->arch, value);
            machine->features = has_sets ? machine->features & found : found;
            if (!has_sets) {
                (void)snprintf(machine->level, sizeof machine->level, "%s",
                               discover_level(machine->arch, value));
            }
            has_sets = true;
        }
    }
    free(line);
}

static void read_cpuinfo(struct machine *machine)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file != NULL) {
        discover_cpuinfo(file, machine);
        fclose(file);
    }
}

static uint64_t number_in(const char *path)
{
    FILE *file = fopen(path, "re");
    char text[64] = "";
    uint64_t number = UINT64_MAX;
    if (file != NULL) {
        if (fgets(text, sizeof text, file) != NULL && isdigit((unsigned char)text[0])) {
            number = strtoull(text, NULL, 10);
        }
        fclose(file);
    }
    return number;
}

/* A container or service may be given less than the machine has. Only our own group at its fixed
 * place is read: inside a container its limit binds. */
static void bound_memory(struct machine *machine)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        uint64_t bound = number_in(files[i]);
        if (bound > 0 && bound < machine->memory_bytes) {
            machine->memory_bytes = bound;
        }
    }
}

/* ---------------------------------------------------------------- hwloc */

static uint32_t count_of(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int count = hwloc_get_nbobjs_by_type(topology, type);
    return count > 0 ? (uint32_t)count : 0;
}

static uint64_t last_cache(hwloc_topology_t topology)
{
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE,
                                              HWLOC_OBJ_L1CACHE};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        hwloc_obj_t cache = hwloc_get_obj_by_type(topology, levels[i], 0);
        if (cache != NULL && cache->attr != NULL) {
            return cache->attr->cache.size;
        }
    }
    return 0;
}

/* hwloc shows only the processors that the process may use, by affinity and by control group. */
static void read_cores(hwloc_topology_t topology, hwloc_const_cpuset_t allowed,
                       struct machine *machine)
{
    uint32_t objects = count_of(topology, HWLOC_OBJ_CORE);
    hwloc_obj_type_t type = objects > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    for (uint32_t i = 0; i < count_of(topology, type) && machine->cores < DISCOVER_CPUS_MAX; i++) {
        hwloc_obj_t core = hwloc_get_obj_by_type(topology, type, i);
        hwloc_cpuset_t usable = hwloc_bitmap_dup(core->cpuset);
        if (usable == NULL) {
            return;
        }
        hwloc_bitmap_and(usable, usable, allowed);
        int first = hwloc_bitmap_first(usable);
        int weight = hwloc_bitmap_weight(usable);
        if (first >= 0 && weight > 0) {
            machine->cpus[machine->cores++] = (uint32_t)first;
            machine->threads += (uint32_t)weight;
        }
        hwloc_bitmap_free(usable);
    }
}

static bool read_topology(hwloc_topology_t topology, bool synthetic, struct machine *machine,
                          struct problem *problem)
{
    hwloc_cpuset_t allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));
    if (allowed == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    hwloc_cpuset_t bound = synthetic ? NULL : hwloc_bitmap_alloc();
    if (bound != NULL && hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0) {
        hwloc_bitmap_and(allowed, allowed, bound);
    }
    read_cores(topology, allowed, machine);
    hwloc_bitmap_free(bound);
    hwloc_bitmap_free(allowed);
    machine->packages = count_of(topology, HWLOC_OBJ_PACKAGE);
    machine->numa_nodes = count_of(topology, HWLOC_OBJ_NUMANODE);
    machine->cache_bytes = last_cache(topology);
    machine->memory_bytes = hwloc_get_root_obj(topology)->total_memory;
    if (machine->cores == 0) {
        problem_set(problem, "no processor that this process may use; check its CPU affinity");
        return false;
    }
    return true;
}

static bool load(const char *synthetic, hwloc_topology_t *ret_topology, struct problem *problem)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) {
        problem_set(problem, "hwloc, which finds the devices, cannot start");
        return false;
    }
    bool good = synthetic == NULL || hwloc_topology_set_synthetic(topology, synthetic) == 0;
    if (!good || hwloc_topology_load(topology) != 0) {
        problem_set(problem, "hwloc cannot read the %s",
                    synthetic == NULL ? "machine" : "description");
        hwloc_topology_destroy(topology);
        return false;
    }
    *ret_topology = topology;
    return true;
}

static void name_instrument(struct machine *machine)
{
    (void)snprintf(machine->instrument, sizeof machine->instrument, "cpu.%s%s%s", machine->arch,
                   machine->level[0] == '\0' ? "" : ".", machine->level);
}

bool discover_machine(const char *synthetic, struct machine *ret_machine,
                      struct problem *ret_problem)
{
    hwloc_topology_t topology;
    if (!load(synthetic, &topology, ret_problem)) {
        return false;
    }
    memset(ret_machine, 0, sizeof *ret_machine);
    bool good = read_topology(topology, synthetic != NULL, ret_machine, ret_problem);
    hwloc_topology_destroy(topology);
    struct utsname host;
    if (uname(&host) == 0) {
        (void)snprintf(ret_machine->arch, sizeof ret_machine->arch, "%.15s", host.machine);
    }
    if (synthetic == NULL) {
        read_cpuinfo(ret_machine);
        bound_memory(ret_machine);
    }
    name_instrument(ret_machine);
    return good;
}

const char *discover_variant(const char *arch)
{
    if (strcmp(arch, "x86_64") == 0) {
        return "cpu-x86";
    }
    if (strcmp(arch, "aarch64") == 0 || strncmp(arch, "arm", 3) == 0) {
        return "cpu-arm";
    }
    return strncmp(arch, "riscv", 5) == 0 ? "cpu-riscv" : "";
}

struct id128 discover_device_id(const struct key32 *account, const char *name)
{
    static const char domain[] = "bourse/device/v1";
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, domain, sizeof domain);
    sha256_add(&hash, account->bytes, sizeof account->bytes);
    sha256_add(&hash, name, strlen(name));
    struct hash32 digest = sha256_end(&hash);
    struct id128 id;
    memcpy(id.bytes, digest.bytes, sizeof id.bytes);
    return id;
}
