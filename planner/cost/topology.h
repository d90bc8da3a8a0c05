/* planner/cost/topology.h - memories, the links between them, and how long it takes to bring data
 * from one to another.
 *
 * Data lies in memories. Devices that share one (an integrated GPU and its CPU: unified memory) are
 * in the same place: nothing is copied between them. A link goes one way, from a memory to a
 * memory; what it occupies are ports, and a port carries one transfer at a time. So a GPU's own
 * PCIe port is held by a copy to its CPU as it is by one to a peer:
 *
 *                      NVLink                      ports: 0 and 1 NVLink, out and in
 *         [gpu 0] ---------------> [gpu 1]                2 and 3 PCIe, out of gpu 0 and into gpu 1
 *            |                        ^
 *            |  PCIe: peer 2+3        |            paths from gpu 0 to gpu 1: NVLink {0, 1}, PCIe peer {2, 3},
 *            +--> [host 0] -----------+            through the CPU {2} {3}, and to another machine over the
 *                     | network                    network: {2} {network} {its PCIe}
 *                     v
 *                 [host 1] ...
 *
 * A path is one link, or goes through the memory of one host, or of two. Through a host, data goes
 * in chunks of TOPOLOGY_CHUNK: while one leaves the host, the next comes in.
 *
 *     t = sum of latencies + sum over links of min(bytes, chunk) / bandwidth + what is left / least bandwidth
 *
 * All ports of a path are held from its start to its end. Of several paths, and of several copies,
 * that one is taken which is there first; of equals that with fewer links, then that which was
 * named first. What is where it is needed costs nothing. Without a link there is no way: nothing is
 * ever assumed. Pure. */
#ifndef BOURSE_PLANNER_COST_TOPOLOGY_H
#define BOURSE_PLANNER_COST_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOPOLOGY_MEMORIES = 64, /* copies of data are a bit each */
    TOPOLOGY_LINKS = 8192,
    TOPOLOGY_PORTS = 8192,
    TOPOLOGY_PORTS_OF_LINK = 2,
    TOPOLOGY_HOPS = 3, /* links of a path */
    TOPOLOGY_CHUNK = 4 << 20,
};
#define TOPOLOGY_BYTES_MOST (INT64_C(1) << 60)

enum topology_kind { /* of a link; a path is of the slowest kind of its links, this order's last */
                     TOPOLOGY_HERE,   /* no path: the data is there */
                     TOPOLOGY_NVLINK, /* or any fabric between accelerators */
                     TOPOLOGY_PEER,   /* PCIe, one device to the other */
                     TOPOLOGY_HOST,   /* PCIe, between a device and its host; of a path: through the
                                         CPU */
                     TOPOLOGY_NETWORK,
};

struct topology_link {
    uint32_t from, to; /* memories */
    enum topology_kind kind;
    double latency_s; /* >= 0 */
    double bandwidth; /* bytes per second, this way; above 0 */
    uint32_t ports[TOPOLOGY_PORTS_OF_LINK];
    uint32_t port_count; /* 1 or 2 */
};

/* The caller's; copied by topology_create. */
struct topology_input {
    uint32_t memory_count, port_count;
    uint64_t hosts; /* a bit for each memory that others may go through */
    const struct topology_link *links;
    size_t link_count;
};

enum topology_status {
    TOPOLOGY_OK,
    TOPOLOGY_TOO_LARGE, /* above the limits above, or no memory at all */
    TOPOLOGY_BAD_LINK, /* a memory or port that is not, from a memory to itself, HERE as its kind */
    TOPOLOGY_BAD_FIGURE, /* a latency or bandwidth that is negative, zero, or no number */
    TOPOLOGY_NO_MEMORY,
    TOPOLOGY_NO_COPY,  /* the data is nowhere */
    TOPOLOGY_NO_PATH,  /* it cannot get there */
    TOPOLOGY_BAD_DATA, /* negative bytes, more than TOPOLOGY_BYTES_MOST, a time that is none */
};

struct topology;

/* `ret_link` (may be NULL) is the wrong link. The caller owns the topology. */
enum topology_status topology_create(const struct topology_input *input,
                                     struct topology **ret_topology, size_t *ret_link);
void topology_destroy(struct topology **self);

/* Of all that it was made of. */
uint32_t topology_port_count(const struct topology *topology);

/* From when on each port is free: `port_count` of them, the caller's, zeros at first. */
struct topology_traffic {
    double *free_s;
};

struct topology_transfer {
    enum topology_kind kind;
    uint32_t from; /* the copy that is taken */
    double start_s, finish_s;
    uint32_t links[TOPOLOGY_HOPS]; /* in the order of the input */
    uint32_t link_count;           /* 0: it is there */
};

/* The way by which `bytes`, of which there are `copies` (a bit for each memory), are in memory `to`
 * first, when nothing may start before `ready_s`. With `traffic` NULL, as if nothing else moved.
 * Reserves nothing. */
enum topology_status topology_find(const struct topology *topology,
                                   const struct topology_traffic *traffic, uint64_t copies,
                                   uint32_t to, int64_t bytes, double ready_s,
                                   struct topology_transfer *ret_transfer);

/* Holds the ports of a transfer that topology_find found. */
void topology_reserve(const struct topology *topology, struct topology_traffic *traffic,
                      const struct topology_transfer *transfer);

/* The figures for planners that know no paths, of one path. All 0 where from = to. */
struct topology_pair {
    double latency_s;
    double bandwidth; /* of the slowest link */
    double staging_s; /* for each byte of the first TOPOLOGY_CHUNK, the time on all links but the
                         slowest: 0 of one link */
};

/* Of the path that brings `bytes` first. */
enum topology_status topology_pair(const struct topology *topology, uint32_t from, uint32_t to,
                                   int64_t bytes, struct topology_pair *ret_pair);
/* latency + bytes / bandwidth + staging x what is not beyond the first chunk: what that path takes
 * for as many bytes as you like. Of a pair that is no path (0 as its bandwidth) 0. */
double topology_pair_s(const struct topology_pair *pair, double bytes);

const char *topology_kind_name(enum topology_kind kind); /* "fabric" */

#endif
