/* provider/config.h reads provider.yaml, in which the owner says what is offered, at what price,
 * within which limits.
 *
 *     market: market.yaml    the market's file, or a folder with one; default beside this file
 *     name: attic            the label of the machine in lists; default the host's name
 *     region: eu-west        a text that jobs may ask for
 *     price: 0.10            credits per slot-hour; 0 is a donation
 *     slots: 4               cores to offer; default all that this process may use
 *     memory: 2GiB           per slot, for a job's processes; default a share of three quarters
 *     disk: 1GiB             per slot, for a job's files, held in memory; default a third of memory
 *     processes: 256         per slot
 *     term: 1h               longest lease
 *     to: [alice, bob]       accounts that may use it, by name or key; default anyone
 *     hours: [22:00-07:00]   each may have days: mon-fri 22:00-07:00; default always
 *     daily: 8h              slot-hours a day, all leases together; default any
 *     utc_offset: +01:00     for the hours and days of all devices; default +00:00
 *     interruptible: {notice: 30s, minimum_run: 5m}   higher bids may take leases; default false
 *     programs: [xz, sh]     names looked up in /usr/bin and /bin; or {NAME: /usr/bin/PATH}
 *     wasm: {engine: /usr/bin/node}  what runs WASM modules; or {wasmtime: FILE}, the library of
 *                            wasmtime; default what is installed, node first; false: none are run
 *     onnx: {library: FILE}  ONNX Runtime's library, which computes ONNX models; default what
 *                            $BOURSE_ONNXRUNTIME names, or is installed; false: none are computed
 *     visible: [/usr/local]  more folders below /usr or /opt that jobs see, read-only
 *     user: bourse           the user that the agent becomes when root starts it
 *     cache: 4GiB            for inputs, and as much again for unpacked images
 *     image_files: 131072    files, folders and links of one image; default the largest allowed
 *     image_size: 4GiB       bytes of an image's files together; default as much as `cache`
 *     spool: spool           folder for outputs on their way; default beside this file
 *     idle: {after: 5m}      the devices work only while nobody else uses the machine; without the
 *                            key they always work. config_idle.c reads the keys of `idle`
 *     gpu: {temperature: 80} withholds a CUDA device while others use it, or while it is hot;
 *                            without the key it is always offered. config_idle.c reads its keys
 *     devices:               more devices, beside the one that the keys above describe
 *       - {name: quiet, slots: 2, price: 0.02}    has cores of its own; may also have memory, disk,
 *                                                 processes, term, interruptible, to, hours, daily
 *       - {simulate: groq-lpu-v1, price: 0.5}     a simulated catalogue device; it owns no core
 *       - {opencl: 0, name: gpu0, price: 0.5}     an OpenCL device, by number or part of its name;
 *                                                 it owns a core for each slot
 *       - {cuda: 0, name: gpu1, price: 0.5}       a CUDA device, likewise; either may also have
 *                                                 device_cache: 2GiB, for inputs that stay in the
 *                                                 device's memory, all slots together; 0: none;
 *                                                 default a quarter of the memory for buffers
 *       - {plugin: /opt/x/plugin, name: x}        a device that the owner's program reaches, with
 *                                                 the device files of `nodes`; it owns cores, too
 *       - {onnx: WebGPU, name: w}                 ONNX models by that execution provider of ONNX
 *                                                 Runtime, or of the plug-in `library`; may also
 *                                                 have nodes, options: {KEY: VALUE} for the
 *                                                 provider, and environment: {NAME: VALUE}
 *
 * Unknown keys are refused with their line. Reading the file touches no device;
 * provider/device/discover.h finds out what the machine has. */
#ifndef BOURSE_PROVIDER_CONFIG_H
#define BOURSE_PROVIDER_CONFIG_H

#include "base/problem.h"
#include "base/requirement.h"
#include "formats/kernel/kernel_op.h"
#include "planner/cost/catalogue.h"
#include "provider/device/model_device.h"
#include "provider/device/plugin_device.h"
#include "provider/session/agent_session.h"
#include "provider/session/gpu_rule.h"
#include "provider/session/idle_rule.h"
#include "provider/session/network_rule.h"
#include "runtime/files.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    /* The programs and the other attributes together stay below LIMIT_ATTRIBUTES. */
    CONFIG_PROGRAMS_MAX = 87,
    CONFIG_PATH_SIZE = 1024,
    CONFIG_DEVICES_MAX = 63, /* entries of `devices:`, without the first device */
};

#define CONFIG_PRICE_MICRO INT64_C(100000)
#define CONFIG_USER "bourse"
/* This variable of the environment names ONNX Runtime's library, unless the config does. */
#define CONFIG_ONNXRUNTIME "BOURSE_ONNXRUNTIME"
#define CONFIG_HELD_SHARE UINT64_MAX /* the owner does not say how much the device holds */

struct config_program {
    char name[ATTRIBUTE_TEXT_SIZE];
    char path[256]; /* absolute, below /usr */
};

/* The owner may show jobs this much of the machine beyond system_tree.h. */
enum { CONFIG_VISIBLE_MAX = 16, CONFIG_VISIBLE_SIZE = 256 };

/* The owner says here whether another bid may take leases, and how. */
struct config_spot {
    bool is_interruptible;
    int64_t notice_ms;      /* a lease's holder is told so long before the lease ends */
    int64_t minimum_run_ms; /* nobody may take the lease for so long */
};

/* The owner bounds here what jobs may take of a device's own memory; both 0: all of it. */
struct config_share {
    uint64_t bytes;
    uint32_t percent;
};

/* One entry of `devices:`; settings that the entry leaves out are as for the first device. */
struct config_device {
    const struct catalogue_device *simulates; /* NULL: cores of this machine */
    /* The number of a device for kernels, or a part of its name; "": no such device. */
    char kernel[ATTRIBUTE_TEXT_SIZE];
    enum kernel_api kernel_api;
    uint64_t held_bytes;               /* inputs that such a device holds, all slots together */
    struct config_share kernel_memory; /* of that device */
    struct plugin_program plugin;      /* the owner's program for the device; path "": none */
    struct model_provider provider;    /* what computes ONNX models on the device; name "": none */
    char name[ATTRIBUTE_TEXT_SIZE];
    int64_t price_micro;
    uint32_t slots;
    uint64_t memory_bytes, disk_bytes; /* per slot; 0: as for the first device */
    uint32_t processes;
    int64_t power_w; /* of the whole device at full load; 0: unknown */
    int64_t term_ms;
    struct agent_conditions conditions;
    struct config_spot spot;
};

/* The lines of keys whose values only the machine can refuse; 0: the file does not have the key. */
struct config_lines {
    unsigned slots, memory, disk, user, cpu;
};

struct config {
    char file[CONFIG_PATH_SIZE]; /* path of the config's file, for messages */
    struct config_lines lines;
    char folder[CONFIG_PATH_SIZE]; /* the agent's folder: key, cache, spool, profile */
    char market[CONFIG_PATH_SIZE]; /* path of market.yaml */
    char spool[CONFIG_PATH_SIZE];
    char name[ATTRIBUTE_TEXT_SIZE];
    char region[ATTRIBUTE_TEXT_SIZE];
    char user[64];
    bool names_user;         /* true when the file has `user:` */
    struct file_hands hands; /* the users who can change the file */
    int64_t price_micro;
    uint32_t slots;        /* 0: all cores that no other device has */
    uint64_t memory_bytes; /* per slot; 0: a share of the machine */
    uint64_t disk_bytes;   /* per slot; 0: a third of memory */
    uint32_t processes;    /* per slot */
    /* Jobs get so much of the time of each core that they lease; 100: all of it. */
    uint32_t cpu_percent;
    int64_t power_w; /* of the first device at full load; 0: unknown */
    int64_t term_ms; /* 0: no bound */
    struct agent_conditions conditions;
    struct config_spot spot;
    uint64_t cache_bytes;
    uint64_t image_files, image_bytes; /* limits of one unpacked image */
    struct idle_terms idle;
    struct gpu_terms gpu;
    struct network_terms network;
    char idle_root[256]; /* the sensors read the files below this folder; "": the machine's root */
    struct config_program programs[CONFIG_PROGRAMS_MAX];
    size_t program_count;
    /* The engine that runs WASM modules; "": none, because the file says so or there is none. */
    char wasm_engine[256];
    bool wasm_is_library; /* true when the engine is wasmtime's library, and no program */
    bool names_wasm;      /* true when the file names the engine */
    bool has_wasm;        /* false when the file says `wasm: false` */
    /* ONNX Runtime's library, which computes models; "": there is none. */
    char onnx_library[CONFIG_PATH_SIZE];
    bool names_onnx; /* true when the file names the library */
    bool has_onnx;   /* false when the file says `onnx: false` */
    /* The list holds the owner's folders and the folders of offered programs. */
    char visible[CONFIG_VISIBLE_MAX][CONFIG_VISIBLE_SIZE];
    size_t visible_count;
    struct config_device devices[CONFIG_DEVICES_MAX];
    size_t device_count;
};

/* Each kind of map in the config has keys of its own. */
enum config_map {
    CONFIG_MAP_FILE, /* the whole file */
    CONFIG_MAP_DEVICE,
    CONFIG_MAP_IDLE,
    CONFIG_MAP_GPU,
    CONFIG_MAP_NETWORK,
    CONFIG_MAP_SPOT, /* `interruptible` */
    CONFIG_MAP_WASM,
    CONFIG_MAP_ONNX,
    CONFIG_MAPS,
};
/* Returns the keys that such a map may have; NULL ends the list. */
const char *const *config_keys(enum config_map which);
/* CONFIG_KEYS counts the keys of CONFIG_MAP_FILE; agent_reload.h says what a change does. */
enum { CONFIG_KEYS = 29 };

/* Reads `file`, or FOLDER/provider.yaml when `file` is NULL. A missing default file counts as
 * empty. Relative file names start from the config's folder. Returns false with "FILE:LINE: what"
 * as the problem. */
bool config_read(const char *folder, const char *file, struct config *ret_config,
                 struct problem *ret_problem);
/* Puts the file and a line of it before the problem; line 0 changes nothing. */
void config_place(const struct config *config, unsigned line, struct problem *problem);
/* Returns the offered program with this name or path, or NULL when none is offered. */
const struct config_program *config_program(const struct config *config, const char *name);

/* Lists the folders that jobs see beside those of system_tree.h; NULL ends the list. The texts are
 * the config's. */
void config_visible(const struct config *config, const char *ret_paths[CONFIG_VISIBLE_MAX + 1]);

/* Returns the milliwatts of one slot of the device when all its slots work; 0: unknown. */
int64_t config_power_mw(const struct config_device *device);
/* Returns true when the entry offers a device of this interface for kernels. */
bool config_device_is_of(const struct config_device *device, enum kernel_api api);

/* Returns what jobs may take of so much memory. */
uint64_t config_share_of(const struct config_share *share, uint64_t memory_bytes);

/* Returns true when the file has `gpu:` without effect: on a device that is offered by `opencl`, or
 * on any, because none is offered by `cuda`. The warning says so. */
bool config_gpu_warning(const struct config *config, struct problem *ret_warning);

/* Returns true when the market takes `name` as the label of a machine and the config takes it as
 * its `name`. Otherwise the problem says why. */
bool config_name_fits(const char *name, struct problem *ret_problem);

#endif
