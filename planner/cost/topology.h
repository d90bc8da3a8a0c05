/* The topology holds memories and the links between them, and says how long data takes from one to
 * another.
 *
 * Data lies in memories. Devices that share a memory (an integrated GPU and its CPU: unified
 * memory) are in the same place, and nothing is copied between them. A link goes one way, from one
 * memory to another. A link occupies ports, and a port carries one transfer at a time. So a copy
 * from a GPU to its CPU holds the GPU's own PCIe port, as a copy to a peer does:
 *
 *    [gpu 0] ---- NVLink ----> [gpu 1]     ports: 0 and 1 NVLink, out and in
 *       |                         ^               2 and 3 PCIe, out of gpu 0 and into gpu 1
 *       |  PCIe: peer 2+3         |        paths from gpu 0 to gpu 1: NVLink {0, 1},
 *       +----> [host 0] ----------+               PCIe peer {2, 3}, through the CPU {2} {3}
 *                 | network                paths to another machine, over the network:
 *                 v                               {2} {network} {its PCIe}
 *              [host 1] ...
 *
 * A path is one link, or goes through the memory of one host or of two. Through a host, data goes
 * in chunks of TOPOLOGY_CHUNK: while one chunk leaves the host, the next comes in.
 *
 *    t = sum of latencies + sum over links of min(bytes, chunk) / bandwidth
 *        + remaining bytes / least bandwidth
 *
 * All ports of a path are held from its start to its end. Among several paths and several copies,
 * the one that arrives first is taken. Among equals, the one with fewer links is taken, then the
 * one named first. Data that is already in place costs nothing. Without a link there is no path:
 * nothing is ever assumed. */
#ifndef BOURSE_PLANNER_COST_TOPOLOGY_H
#define BOURSE_PLANNER_COST_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOPOLOGY_MEMORIES = 64, /* a set of copies has one bit for each memory */
    TOPOLOGY_LINKS = 8192,
    TOPOLOGY_PORTS = 8192,
    TOPOLOGY_PORTS_OF_LINK = 2,
    TOPOLOGY_HOPS = 3, /* most links of a path */
    TOPOLOGY_CHUNK = 4 << 20,
};
#define TOPOLOGY_BYTES_MOST (INT64_C(1) << 60)

/* Kind of a link. A path has the slowest kind of its links, the last in this order. */
enum topology_kind {
    TOPOLOGY_HERE,   /* no path: the data is there */
    TOPOLOGY_NVLINK, /* NVLink, or any fabric between accelerators */
    TOPOLOGY_PEER,   /* PCIe from one device to another */
    /* PCIe between a device and its host. A path of this kind goes through the CPU. */
    TOPOLOGY_HOST,
    TOPOLOGY_NETWORK,
};

struct topology_link {
    uint32_t from, to; /* memories */
    enum topology_kind kind;
    double latency_s; /* >= 0 */
    double bandwidth; /* bytes per second in this direction; above 0 */
    uint32_t ports[TOPOLOGY_PORTS_OF_LINK];
    uint32_t port_count; /* 1 or 2 */
};

/* The caller keeps the input; topology_create copies it. */
struct topology_input {
    uint32_t memory_count, port_count;
    uint64_t hosts; /* a bit for each memory that paths may go through */
    const struct topology_link *links;
    size_t link_count;
};

enum topology_status {
    TOPOLOGY_OK,
    TOPOLOGY_TOO_LARGE, /* above the limits above, or no memory at all */
    /* A memory or port does not exist, a link leads to its own start, or its kind is HERE. */
    TOPOLOGY_BAD_LINK,
    /* A latency is negative, a bandwidth is not positive, or a figure is no number. */
    TOPOLOGY_BAD_FIGURE,
    TOPOLOGY_NO_MEMORY,
    TOPOLOGY_NO_COPY, /* no memory holds the data */
    TOPOLOGY_NO_PATH, /* no path leads to the memory */
    /* Bytes are negative or above TOPOLOGY_BYTES_MOST, or a time is invalid. */
    TOPOLOGY_BAD_DATA,
};

struct topology;

/* Creates a topology, which the caller owns. For a bad link or figure, `ret_link` (may be NULL) is
 * the index of the wrong link. */
enum topology_status topology_create(const struct topology_input *input,
                                     struct topology **ret_topology, size_t *ret_link);
void topology_destroy(struct topology **self);

/* Returns the number of ports in the input. */
uint32_t topology_port_count(const struct topology *topology);

/* Times from which each port is free: `port_count` numbers that the caller owns, zeros at first. */
struct topology_traffic {
    double *free_s;
};

struct topology_transfer {
    enum topology_kind kind;
    uint32_t from; /* memory of the copy that is used */
    double start_s, finish_s;
    uint32_t links[TOPOLOGY_HOPS]; /* indexes in the input */
    uint32_t link_count;           /* 0: the data is there */
};

/* Finds the path that brings `bytes` to memory `to` first, when nothing may start before `ready_s`.
 * `copies` has a bit for each memory that holds the data. A NULL `traffic` means that nothing else
 * moves. The call reserves nothing. */
enum topology_status topology_find(const struct topology *topology,
                                   const struct topology_traffic *traffic, uint64_t copies,
                                   uint32_t to, int64_t bytes, double ready_s,
                                   struct topology_transfer *ret_transfer);

/* Holds the ports of a transfer that topology_find returned. */
void topology_reserve(const struct topology *topology, struct topology_traffic *traffic,
                      const struct topology_transfer *transfer);

const char *topology_kind_name(enum topology_kind kind); /* "fabric" */

#endif
