#include "planner/cost/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NO_LINK UINT32_MAX

struct topology {
    uint32_t memory_count, port_count;
    uint32_t host_count;
    uint32_t hosts[TOPOLOGY_MEMORIES];
    uint32_t link_count;
    struct topology_link *links;
    uint32_t first[TOPOLOGY_MEMORIES][TOPOLOGY_MEMORIES]; /* link from a to b, then `next` */
    uint32_t *next;
};

const char *topology_kind_name(enum topology_kind kind)
{
    switch (kind) {
    case TOPOLOGY_HERE:
        return "here";
    case TOPOLOGY_NVLINK:
        return "fabric";
    case TOPOLOGY_PEER:
        return "peer";
    case TOPOLOGY_HOST:
        return "host";
    case TOPOLOGY_NETWORK:
        return "network";
    }
    return "";
}

/* ---------------------------------------------------------------- construction */

static enum topology_status check_link(const struct topology_input *input,
                                       const struct topology_link *link)
{
    if (link->from >= input->memory_count || link->to >= input->memory_count ||
        link->from == link->to || link->kind <= TOPOLOGY_HERE || link->kind > TOPOLOGY_NETWORK ||
        link->port_count < 1 || link->port_count > TOPOLOGY_PORTS_OF_LINK) {
        return TOPOLOGY_BAD_LINK;
    }
    for (uint32_t i = 0; i < link->port_count; i++) {
        if (link->ports[i] >= input->port_count) {
            return TOPOLOGY_BAD_LINK;
        }
    }
    bool is_latency = link->latency_s >= 0 && link->latency_s <= 1e9;
    bool is_bandwidth = link->bandwidth >= 1e-9 && link->bandwidth <= 1e18;
    return is_latency && is_bandwidth ? TOPOLOGY_OK : TOPOLOGY_BAD_FIGURE;
}

static enum topology_status check(const struct topology_input *input, size_t *ret_link)
{
    if (input->memory_count == 0 || input->memory_count > TOPOLOGY_MEMORIES ||
        input->port_count > TOPOLOGY_PORTS || input->link_count > TOPOLOGY_LINKS) {
        return TOPOLOGY_TOO_LARGE;
    }
    for (size_t i = 0; i < input->link_count; i++) {
        enum topology_status status = check_link(input, &input->links[i]);
        if (status != TOPOLOGY_OK) {
            if (ret_link != NULL) {
                *ret_link = i;
            }
            return status;
        }
    }
    return TOPOLOGY_OK;
}

static void fill(struct topology *topology, const struct topology_input *input)
{
    topology->memory_count = input->memory_count;
    topology->port_count = input->port_count;
    topology->link_count = (uint32_t)input->link_count;
    for (uint32_t i = 0; i < input->memory_count; i++) {
        if ((input->hosts >> i & 1) != 0) {
            topology->hosts[topology->host_count++] = i;
        }
        for (uint32_t k = 0; k < input->memory_count; k++) {
            topology->first[i][k] = NO_LINK;
        }
    }
    /* The loop goes backwards, so that chains run in the input's order. */
    for (uint32_t i = topology->link_count; i-- > 0;) {
        const struct topology_link *link = &input->links[i];
        topology->links[i] = *link;
        topology->next[i] = topology->first[link->from][link->to];
        topology->first[link->from][link->to] = i;
    }
}

enum topology_status topology_create(const struct topology_input *input,
                                     struct topology **ret_topology, size_t *ret_link)
{
    enum topology_status status = check(input, ret_link);
    if (status != TOPOLOGY_OK) {
        return status;
    }
    struct topology *topology = calloc(1, sizeof *topology);
    if (topology == NULL) {
        return TOPOLOGY_NO_MEMORY;
    }
    topology->links = calloc(input->link_count + 1, sizeof *topology->links);
    topology->next = calloc(input->link_count + 1, sizeof *topology->next);
    if (topology->links == NULL || topology->next == NULL) {
        topology_destroy(&topology);
        return TOPOLOGY_NO_MEMORY;
    }
    fill(topology, input);
    *ret_topology = topology;
    return TOPOLOGY_OK;
}

void topology_destroy(struct topology **self)
{
    struct topology *topology = *self;
    if (topology != NULL) {
        free(topology->links);
        free(topology->next);
        free(topology);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- one path */

struct path {
    uint32_t links[TOPOLOGY_HOPS];
    uint32_t count;
};

static double least_bandwidth(const struct topology *topology, const struct path *path)
{
    double least = topology->links[path->links[0]].bandwidth;
    for (uint32_t i = 1; i < path->count; i++) {
        double bandwidth = topology->links[path->links[i]].bandwidth;
        least = bandwidth < least ? bandwidth : least;
    }
    return least;
}

/* The time is the sum of the latencies, the first chunk's time on all links, and the rest at the
 * pace of the slowest link. */
static double duration(const struct topology *topology, const struct path *path, double bytes)
{
    double chunk = bytes < TOPOLOGY_CHUNK ? bytes : TOPOLOGY_CHUNK;
    double sum = (bytes - chunk) / least_bandwidth(topology, path);
    for (uint32_t i = 0; i < path->count; i++) {
        const struct topology_link *link = &topology->links[path->links[i]];
        sum += link->latency_s + chunk / link->bandwidth;
    }
    return sum;
}

/* Returns when all ports of the path are free. */
static double start_of(const struct topology *topology, const struct topology_traffic *traffic,
                       const struct path *path, double ready_s)
{
    double start = ready_s;
    for (uint32_t i = 0; i < path->count && traffic != NULL; i++) {
        const struct topology_link *link = &topology->links[path->links[i]];
        for (uint32_t k = 0; k < link->port_count; k++) {
            double free_s = traffic->free_s[link->ports[k]];
            start = free_s > start ? free_s : start;
        }
    }
    return start;
}

/* ---------------------------------------------------------------- all paths */

struct search {
    const struct topology *topology;
    const struct topology_traffic *traffic;
    double bytes, ready_s;
    bool is_found;
    struct topology_transfer best;
};

/* An earlier finish is better, then fewer links. Among equals, the path found first stays. */
static void consider(struct search *search, const struct path *path)
{
    const struct topology *topology = search->topology;
    struct topology_transfer *best = &search->best;
    double start = start_of(topology, search->traffic, path, search->ready_s);
    double finish = start + duration(topology, path, search->bytes);
    bool is_equal = search->is_found && finish == best->finish_s;
    if (search->is_found && !(finish < best->finish_s) &&
        !(is_equal && path->count < best->link_count)) {
        return;
    }
    search->is_found = true;
    *best = (struct topology_transfer){.from = topology->links[path->links[0]].from,
                                       .start_s = start,
                                       .finish_s = finish,
                                       .link_count = path->count};
    memcpy(best->links, path->links, sizeof best->links);
    for (uint32_t i = 0; i < path->count; i++) {
        enum topology_kind kind = topology->links[path->links[i]].kind;
        best->kind = kind > best->kind ? kind : best->kind;
    }
}

/* Extends the path from memory `at`: to its end, or through hosts that it has not visited. */
static void extend(struct search *search, struct path *path, uint32_t at, uint32_t to,
                   uint64_t been)
{
    const struct topology *topology = search->topology;
    path->count++;
    for (uint32_t link = topology->first[at][to]; link != NO_LINK; link = topology->next[link]) {
        path->links[path->count - 1] = link;
        consider(search, path);
    }
    for (uint32_t i = 0; i < topology->host_count && path->count < TOPOLOGY_HOPS; i++) {
        uint32_t host = topology->hosts[i];
        if (host == to || (been >> host & 1) != 0) {
            continue;
        }
        for (uint32_t link = topology->first[at][host]; link != NO_LINK;
             link = topology->next[link]) {
            path->links[path->count - 1] = link;
            extend(search, path, host, to, been | UINT64_C(1) << host);
        }
    }
    path->count--;
}

uint32_t topology_port_count(const struct topology *topology)
{
    return topology->port_count;
}

enum topology_status topology_find(const struct topology *topology,
                                   const struct topology_traffic *traffic, uint64_t copies,
                                   uint32_t to, int64_t bytes, double ready_s,
                                   struct topology_transfer *ret_transfer)
{
    assert(to < topology->memory_count);
    if (bytes < 0 || bytes > TOPOLOGY_BYTES_MOST || !(ready_s >= 0) || !(ready_s <= 1e18)) {
        return TOPOLOGY_BAD_DATA;
    }
    if (topology->memory_count < TOPOLOGY_MEMORIES) {
        copies &= (UINT64_C(1) << topology->memory_count) - 1;
    }
    if (copies == 0) {
        return TOPOLOGY_NO_COPY;
    }
    if ((copies >> to & 1) != 0) {
        *ret_transfer = (struct topology_transfer){
            .kind = TOPOLOGY_HERE, .from = to, .start_s = ready_s, .finish_s = ready_s};
        return TOPOLOGY_OK;
    }
    struct search search = {
        .topology = topology, .traffic = traffic, .bytes = (double)bytes, .ready_s = ready_s};
    for (uint32_t from = 0; from < topology->memory_count; from++) {
        struct path path = {.count = 0};
        if ((copies >> from & 1) != 0) {
            extend(&search, &path, from, to, UINT64_C(1) << from);
        }
    }
    if (!search.is_found) {
        return TOPOLOGY_NO_PATH;
    }
    *ret_transfer = search.best;
    return TOPOLOGY_OK;
}

void topology_reserve(const struct topology *topology, struct topology_traffic *traffic,
                      const struct topology_transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->link_count; i++) {
        const struct topology_link *link = &topology->links[transfer->links[i]];
        for (uint32_t k = 0; k < link->port_count; k++) {
            double *free_s = &traffic->free_s[link->ports[k]];
            *free_s = transfer->finish_s > *free_s ? transfer->finish_s : *free_s;
        }
    }
}
