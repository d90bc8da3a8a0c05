/* A device set holds the devices to plan for, with their figures, machines and links.
 *
 * A machine is a star around its memory. Processors share that memory; other devices have a memory
 * of their own:
 *
 *     host 0                                              host 1
 *     [cpu: memory 0]--- PCIe ---[gpu 1: memory 1]        [memory 3]--- PCIe ---[tpu: memory 4]
 *             |   \----- PCIe ---[gpu 2: memory 2]            |
 *             |                    fabric: 1 <-> 2            |
 *             +------------------- network -------------------+
 *
 * PCIe occupies a port each way at the device, the fabric another one, and the network one each way
 * at the machine (topology.h). A fabric connects devices of one model in one machine, when the
 * catalogue knows the fabric. Its bandwidth each way is half of the interconnect, which vendors
 * publish as the sum of both directions. A fabric that is no faster than PCIe counts as PCIe.
 *
 * No catalogue knows which devices may write to others over PCIe. A peer link exists only where the
 * caller gives one. Devices with unified memory, as the catalogue says, use their machine's memory,
 * as its processors do. Nothing is copied between such devices. */
#ifndef BOURSE_PLANNER_COST_DEVICE_SET_H
#define BOURSE_PLANNER_COST_DEVICE_SET_H

#include "base/problem.h"
#include "planner/cost/catalogue.h"
#include "planner/cost/cost.h"
#include "planner/cost/topology.h"

enum { DEVICE_SET_MOST = TOPOLOGY_MEMORIES, DEVICE_SET_NAME_SIZE = 64 };

enum device_set_wire {
    DEVICE_SET_PCIE,
    /* PCIe from one device of a machine to another: at most as fast as the PCIe of either. */
    DEVICE_SET_PEER,
    DEVICE_SET_FABRIC,
    DEVICE_SET_NETWORK,
    DEVICE_SET_WIRES
};

struct device_set_link {
    /* A bandwidth of 0 means that there is no link. A fabric with a bandwidth below 0 is as
     * catalogued. */
    double latency_s, bandwidth;
};

struct device_set_links {
    struct device_set_link wires[DEVICE_SET_WIRES];
    double storage;  /* bytes per second that each device loads data at; 0: unknown */
    bool may_stream; /* weights that do not fit come over PCIe again at each pass */
};

/* Returns PCIe 4.0 x16, the fabrics of the catalogue, and a network of 100 Gbit/s. docs/planner.md
 * names the sources of these figures. */
struct device_set_links device_set_defaults(void);
const char *device_set_wire_name(enum device_set_wire wire); /* "pcie" */

struct device_set_item {
    char name[DEVICE_SET_NAME_SIZE];      /* "h100-sxm5 2"; unique in the set */
    const struct catalogue_device *known; /* NULL: not in the catalogue */
    struct device_profile profile;
    struct cost_device cost; /* uses the profile above */
    uint32_t host, memory;
    bool is_processor;   /* uses its machine's memory, as a device with unified memory does */
    int64_t price_micro; /* price of an hour; -1: unknown */
};

/* Callers only read the fields. */
struct device_set {
    struct device_set_item items[DEVICE_SET_MOST];
    size_t count;
    uint32_t host_count, memory_count;
    struct device_set_links links;
    struct topology *topology; /* NULL until device_set_link */
};

enum device_set_status {
    DEVICE_SET_OK,
    DEVICE_SET_UNKNOWN,   /* no device has this name */
    DEVICE_SET_AMBIGUOUS, /* several devices have this name */
    DEVICE_SET_TOO_MANY,  /* too many memories of devices and machines together */
    DEVICE_SET_NO_MEMORY,
};

/* Returns a stable name such as "DEVICES_UNKNOWN"; docs/errors.md lists the names. */
const char *device_set_status_name(enum device_set_status status);

/* Finds the catalogue device that `name` means. A name is an id, whole words that occur in one id
 * alone ("tpu-v5p"), or a usual name ("h100" means the SXM5). Any status but OK lists the
 * candidates in the problem. */
enum device_set_status device_set_find(const char *name, const struct catalogue_device **ret_device,
                                       struct problem *ret_problem);

/* Returns an empty set that the caller owns. Returns NULL when memory is short. */
struct device_set *device_set_create(void);
void device_set_destroy(struct device_set **self);

/* Adds a device to machine `host`, which is an existing machine or the next one. When `known` is
 * NULL, the device has `label` and `profile`. A `profile` (may be NULL) beside a catalogue device
 * fills in the figures that the catalogue does not know. */
enum device_set_status device_set_add(struct device_set *set, uint32_t host,
                                      const struct catalogue_device *known, const char *label,
                                      const struct device_profile *profile, bool is_processor,
                                      int64_t price_micro, struct problem *ret_problem);

/* Declares a figure of all devices with this name: an id of the catalogue, or a device name without
 * its number. Returns false when there is none. Call it before device_set_link. */
bool device_set_declare(struct device_set *set, const char *name, enum profile_figure figure,
                        double value);

/* Names the devices, gives each its memory, and links them. Nothing may be added afterwards. */
enum device_set_status device_set_link(struct device_set *set, const struct device_set_links *links,
                                       struct problem *ret_problem);

/* Returns true when two linked devices have one unified memory. The catalogue gives each of them
 * the full size and bandwidth of that memory. */
bool device_set_are_unified(const struct device_set *set, size_t a, size_t b);

#endif
