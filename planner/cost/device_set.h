/* planner/cost/device_set.h - devices to plan for: what is known of each, in which machine it is,
 * and how they are linked.
 *
 * Machines are stars around their memory, which their processors share; others have a memory of
 * their own:
 *
 *     host 0                                              host 1
 *     [cpu: memory 0]--- PCIe ---[gpu 1: memory 1]        [memory 3]--- PCIe ---[tpu: memory 4]
 *             |   \----- PCIe ---[gpu 2: memory 2]            |
 *             |                    fabric: 1 <-> 2            |
 *             +------------------- network -------------------+
 *
 * PCIe holds a port each way at the device, the fabric another, the network one each way at the
 * machine (topology.h). A fabric is between devices of one model in one machine, where the
 * catalogue knows their fabric: half of their interconnect, which is published as the sum of both
 * directions, each way. What is no faster than PCIe is PCIe. Which devices may write to others over
 * PCIe no catalogue knows: there is such a way where it is given. Devices with unified memory, as
 * the catalogue says, are at their machine's, as its processors are: nothing is copied between
 * them. Pure. */
#ifndef BOURSE_PLANNER_COST_DEVICE_SET_H
#define BOURSE_PLANNER_COST_DEVICE_SET_H

#include "base/problem.h"
#include "planner/cost/catalogue.h"
#include "planner/cost/cost.h"
#include "planner/cost/topology.h"

enum { DEVICE_SET_MOST = TOPOLOGY_MEMORIES, DEVICE_SET_NAME_SIZE = 64 };

enum device_set_wire {
    DEVICE_SET_PCIE,
    DEVICE_SET_PEER, /* PCIe from one device of a machine to another: at most as fast as that of
                        either */
    DEVICE_SET_FABRIC,
    DEVICE_SET_NETWORK,
    DEVICE_SET_WIRES
};

struct device_set_link {
    double latency_s,
        bandwidth; /* bandwidth 0: there is none; of a fabric below 0: as catalogued */
};

struct device_set_links {
    struct device_set_link wires[DEVICE_SET_WIRES];
    double storage;  /* bytes per second that each device loads data at; 0: not known */
    bool may_stream; /* weights that do not fit come over PCIe again at each pass */
};

/* PCIe 4.0 x16, the catalogue's fabrics, a network of 100 Gbit/s; docs/planner.md says where they
 * are from. */
struct device_set_links device_set_defaults(void);
const char *device_set_wire_name(enum device_set_wire wire); /* "pcie" */

struct device_set_item {
    char name[DEVICE_SET_NAME_SIZE];      /* "h100-sxm5 2": no other's */
    const struct catalogue_device *known; /* NULL: none of the catalogue */
    struct device_profile profile;
    struct cost_device cost; /* with that profile */
    uint32_t host, memory;
    bool is_processor;   /* has its machine's memory, as what has unified memory */
    int64_t price_micro; /* for an hour; -1: unknown */
};

struct device_set { /* to be read only */
    struct device_set_item items[DEVICE_SET_MOST];
    size_t count;
    uint32_t host_count, memory_count;
    struct device_set_links links;
    struct topology *topology; /* NULL until device_set_link */
};

enum device_set_status {
    DEVICE_SET_OK,
    DEVICE_SET_UNKNOWN,   /* no device is called so */
    DEVICE_SET_AMBIGUOUS, /* several are */
    DEVICE_SET_TOO_MANY,  /* memories: those of devices and of machines */
    DEVICE_SET_NO_MEMORY,
};

/* "DEVICES_UNKNOWN": stable, docs/errors.md. */
const char *device_set_status_name(enum device_set_status status);

/* The device of the catalogue that `name` means: an id, whole words of it that no other id has
 * ("tpu-v5p"), or a usual name ("h100": the SXM5). Any status but OK says in the problem which
 * there are. */
enum device_set_status device_set_find(const char *name, const struct catalogue_device **ret_device,
                                       struct problem *ret_problem);

/* Empty. NULL without memory. */
struct device_set *device_set_create(void);
void device_set_destroy(struct device_set **self);

/* Adds one of the catalogue, or, where `known` is NULL, of `label` and `profile`, to machine
 * `host`, which is one of those there are or the next. A `profile` (may be NULL) of one of the
 * catalogue says what that does not know. */
enum device_set_status device_set_add(struct device_set *set, uint32_t host,
                                      const struct catalogue_device *known, const char *label,
                                      const struct device_profile *profile, bool is_processor,
                                      int64_t price_micro, struct problem *ret_problem);

/* A figure of all devices that are called so: by an id of the catalogue, or as they will be named,
 * without a number. False: none is. Before they are linked. */
bool device_set_declare(struct device_set *set, const char *name, enum profile_figure figure,
                        double value);

/* Names them, gives each its memory, and links them; nothing is added afterwards. */
enum device_set_status device_set_link(struct device_set *set, const struct device_set_links *links,
                                       struct problem *ret_problem);

/* Of linked devices: whether both have one unified memory, of which the catalogue gives each all of
 * its size and bandwidth. */
bool device_set_are_unified(const struct device_set *set, size_t a, size_t b);

#endif
