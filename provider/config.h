/* provider/config.h - provider.yaml: what its owner offers, at what price, within which limits.
 *
 *     market: market.yaml    the market's file, or a folder that holds one; default beside this file
 *     name: attic            the label of the machine in lists; default the host's name
 *     region: eu-west        a text that jobs may ask for
 *     price: 0.10            credits per slot-hour; 0 is a donation
 *     slots: 4               cores to offer; default all that this process may use
 *     memory: 2GiB           of one slot, for a job's processes; default a share of three quarters
 *     disk: 1GiB             of one slot, for a job's files, which live in memory; default a third of memory
 *     processes: 256         of one slot
 *     term: 1h               longest lease
 *     to: [alice, bob]       whose jobs it is offered to, by names or keys; default anyone
 *     hours: [22:00-07:00]   when, each with its days: mon-fri 22:00-07:00; default always
 *     daily: 8h              slot-hours a day, all leases together; default any
 *     utc_offset: +01:00     of these hours and days, of all devices; default +00:00
 *     interruptible: {notice: 30s, minimum_run: 5m}   higher bids may take leases; default false: none may
 *     programs: [xz, sh]     names looked up in /usr/bin and /bin; or {NAME: /usr/bin/PATH}
 *     visible: [/usr/local]  more folders below /usr or /opt that jobs see, read-only
 *     user: bourse           whom the agent becomes when root starts it
 *     cache: 4GiB            of inputs, and as much again of unpacked images
 *     image_files: 131072    files, folders and links of one image; default the most there may be
 *     image_size: 4GiB       bytes of an image's files together; default as much as `cache`
 *     spool: spool           folder for outputs on their way; default beside this file
 *     devices:               more devices beside the one that all of the above describes
 *       - {name: quiet, slots: 2, price: 0.02}    cores of their own; memory, disk, processes, term, interruptible, to, hours, daily, too
 *       - {simulate: groq-lpu-v1, price: 0.5}     a device of the catalogue, simulated; it owns no core
 *
 * Unknown keys are refused with their line. Reading touches no device; what the machine has stands
 * in provider/device/discover.h. */
#ifndef BOURSE_PROVIDER_CONFIG_H
#define BOURSE_PROVIDER_CONFIG_H

#include "base/problem.h"
#include "base/requirement.h"
#include "planner/cost/catalogue.h"
#include "provider/session/session.h"
#include "runtime/files.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    CONFIG_PROGRAMS_MAX = 96, /* with the other attributes below LIMIT_ATTRIBUTES */
    CONFIG_PATH_SIZE = 1024,
    CONFIG_DEVICES_MAX = 63, /* of `devices:`; the first stands before them */
};

#define CONFIG_PRICE_MICRO INT64_C(100000)
#define CONFIG_USER "bourse"

struct config_program {
    char name[ATTRIBUTE_TEXT_SIZE];
    char path[256]; /* absolute, below /usr */
};

/* More of the machine than system_tree.h shows. */
enum { CONFIG_VISIBLE_MAX = 16, CONFIG_VISIBLE_SIZE = 256 };

struct config_spot { /* whether another bid may take leases; then how */
    bool is_interruptible;
    int64_t notice_ms;      /* how long before its end a lease's holder is told */
    int64_t minimum_run_ms; /* how long nobody may take it */
};

struct config_device { /* one of `devices:`; what it does not say is as above it */
    const struct catalogue_device *simulates; /* NULL: cores of this machine */
    char name[ATTRIBUTE_TEXT_SIZE];
    int64_t price_micro;
    uint32_t slots;
    uint64_t memory_bytes, disk_bytes; /* per slot; 0: as those of the first device */
    uint32_t processes;
    int64_t term_ms;
    struct agent_conditions conditions;
    struct config_spot spot;
};

struct config {
    char folder[CONFIG_PATH_SIZE]; /* of the agent: key, cache, spool, profile */
    char market[CONFIG_PATH_SIZE]; /* market.yaml */
    char spool[CONFIG_PATH_SIZE];
    char name[ATTRIBUTE_TEXT_SIZE];
    char region[ATTRIBUTE_TEXT_SIZE];
    char user[64];
    bool names_user;         /* the file does */
    struct file_hands hands; /* who decides what is in the file */
    int64_t price_micro;
    uint32_t slots;        /* 0: all that no other device has */
    uint64_t memory_bytes; /* per slot; 0: a share of the machine */
    uint64_t disk_bytes;   /* per slot; 0: a third of memory */
    uint32_t processes;    /* per slot */
    int64_t term_ms;       /* 0: no bound */
    struct agent_conditions conditions;
    struct config_spot spot;
    uint64_t cache_bytes;
    uint64_t image_files, image_bytes; /* of one image, unpacked */
    struct config_program programs[CONFIG_PROGRAMS_MAX];
    size_t program_count;
    char visible[CONFIG_VISIBLE_MAX][CONFIG_VISIBLE_SIZE]; /* the owner's, and of his programs */
    size_t visible_count;
    struct config_device devices[CONFIG_DEVICES_MAX];
    size_t device_count;
};

/* Reads FOLDER/provider.yaml or `file` (NULL: that); a missing default file is an empty one. Names
 * of files are relative to the config's folder. False with "FILE:LINE: what". */
bool config_read(const char *folder, const char *file, struct config *ret_config,
                 struct problem *ret_problem);
/* The program offered as `name`, or as a path that is one of theirs; NULL: not offered. */
const struct config_program *config_program(const struct config *config, const char *name);

/* Whether the market takes it as the label of a machine, and the config as its `name`. */
bool config_name_fits(const char *name, struct problem *ret_problem);

#endif
