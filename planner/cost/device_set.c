#include "planner/cost/device_set.h"

#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bandwidth is 16 GT/s x 16 lanes x 128 / 130, each way: PCI Express Base Specification 4.0. */
#define PCIE_4_X16 31.5e9
/* No vendor publishes latencies of copies. These are typical times of copies of a few bytes on
 * common machines. */
#define PCIE_LATENCY_S 5e-6
#define FABRIC_LATENCY_S 2e-6
#define NETWORK_LATENCY_S 10e-6
#define NETWORK_100_GBIT 12.5e9

struct device_set_links device_set_defaults(void)
{
    return (struct device_set_links){
        .wires = {[DEVICE_SET_PCIE] = {PCIE_LATENCY_S, PCIE_4_X16},
                  [DEVICE_SET_PEER] = {PCIE_LATENCY_S, 0},
                  [DEVICE_SET_FABRIC] = {FABRIC_LATENCY_S, -1},
                  [DEVICE_SET_NETWORK] = {NETWORK_LATENCY_S, NETWORK_100_GBIT}}};
}

const char *device_set_wire_name(enum device_set_wire wire)
{
    static const char *const names[] = {[DEVICE_SET_PCIE] = "pcie",
                                        [DEVICE_SET_PEER] = "peer",
                                        [DEVICE_SET_FABRIC] = "fabric",
                                        [DEVICE_SET_NETWORK] = "network"};
    return names[wire];
}

const char *device_set_status_name(enum device_set_status status)
{
    static const char *const names[] = {[DEVICE_SET_OK] = "OK",
                                        [DEVICE_SET_UNKNOWN] = "DEVICES_UNKNOWN",
                                        [DEVICE_SET_AMBIGUOUS] = "DEVICES_AMBIGUOUS",
                                        [DEVICE_SET_TOO_MANY] = "DEVICES_TOO_MANY",
                                        [DEVICE_SET_NO_MEMORY] = "DEVICES_NO_MEMORY"};
    return names[status];
}

/* ---------------------------------------------------------------- names */

/* Usual names have one meaning although their words occur in several ids. */
static const struct {
    const char *name, *id;
} usual[] = {{"h100", "nvidia-h100-sxm5"}, {"a100", "nvidia-a100-sxm4-80"}};

/* Returns true when `name` is a run of whole words in `id`. */
static bool is_in(const char *name, const char *id)
{
    size_t length = strlen(name);
    if (length == 0) {
        return false;
    }
    for (const char *at = id; (at = strstr(at, name)) != NULL; at++) {
        bool begins = at == id || at[-1] == '-';
        bool ends = at[length] == '\0' || at[length] == '-';
        if (begins && ends) {
            return true;
        }
    }
    return false;
}

/* Appends an id to a list "id, id", if it fits. */
static void list_id(char *text, size_t capacity, const char *id)
{
    size_t used = strlen(text);
    if (used + strlen(id) + 3 < capacity) {
        (void)snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : ", ", id);
    }
}

enum { RUNS_MOST = 1024, RUN_SIZE = 32 };
struct runs {
    char texts[RUNS_MOST][RUN_SIZE];
    const char *names[RUNS_MOST];
    size_t count;
};

static const char *word_end(const char *at)
{
    return at + strcspn(at, "-");
}

static void add_run(struct runs *runs, const char *from, const char *to)
{
    if (runs->count < RUNS_MOST && to - from < RUN_SIZE) {
        char *text = runs->texts[runs->count];
        memcpy(text, from, (size_t)(to - from));
        text[to - from] = '\0';
        runs->names[runs->count++] = text;
    }
}

/* Adds each run of whole words of an id: h100, h100-sxm5, nvidia-h100 ... */
static void add_runs(struct runs *runs, const char *id)
{
    for (const char *from = id; *from != '\0';) {
        const char *to = from;
        do {
            to = word_end(to + 1);
            add_run(runs, from, to);
        } while (*to != '\0');
        from = word_end(from) + (*word_end(from) == '-');
    }
}

/* Writes "; did you mean h200", or nothing. */
static void add_nearest(const char *name, char *text, size_t capacity)
{
    struct runs *runs = calloc(1, sizeof *runs);
    if (runs == NULL) {
        return;
    }
    for (size_t i = 0; i < catalogue_count(); i++) {
        add_runs(runs, catalogue_at(i)->id);
    }
    const char *near = text_nearest(name, runs->names, runs->count);
    if (near != NULL) {
        (void)snprintf(text, capacity, "; did you mean %s", near);
    }
    free(runs);
}

enum device_set_status device_set_find(const char *name, const struct catalogue_device **ret_device,
                                       struct problem *ret_problem)
{
    const struct catalogue_device *found = catalogue_find(name);
    char ids[300] = "";
    char shown[DEVICE_SET_NAME_SIZE];
    size_t count = 0;
    for (size_t i = 0; found == NULL && i < sizeof usual / sizeof usual[0]; i++) {
        found = strcmp(name, usual[i].name) == 0 ? catalogue_find(usual[i].id) : NULL;
    }
    if (found != NULL) {
        *ret_device = found;
        return DEVICE_SET_OK;
    }
    for (size_t i = 0; i < catalogue_count(); i++) {
        const struct catalogue_device *device = catalogue_at(i);
        if (is_in(name, device->id)) {
            found = device;
            count++;
            list_id(ids, sizeof ids, device->id);
        }
    }
    text_printable(name, strlen(name), shown, sizeof shown);
    if (count > 1) {
        problem_set(ret_problem, "device \"%s\" is several: %s", shown, ids);
        return DEVICE_SET_AMBIGUOUS;
    }
    if (count == 0) {
        char near[64] = "";
        add_nearest(name, near, sizeof near);
        problem_set(ret_problem,
                    "there is no device \"%s\"%s; `bourse devices --catalogue` lists all", shown,
                    near);
        return DEVICE_SET_UNKNOWN;
    }
    *ret_device = found;
    return DEVICE_SET_OK;
}

/* ---------------------------------------------------------------- devices */

struct device_set *device_set_create(void)
{
    return calloc(1, sizeof(struct device_set));
}

void device_set_destroy(struct device_set **self)
{
    if (*self != NULL) {
        topology_destroy(&(*self)->topology);
        free(*self);
        *self = NULL;
    }
}

static uint32_t memories_of(const struct device_set *set)
{
    uint32_t count = set->host_count;
    for (size_t i = 0; i < set->count; i++) {
        count += !set->items[i].is_processor;
    }
    return count;
}

static bool is_unified(const struct catalogue_device *known)
{
    return known != NULL && strncmp(known->memory_type, "unified", strlen("unified")) == 0;
}

enum device_set_status device_set_add(struct device_set *set, uint32_t host,
                                      const struct catalogue_device *known, const char *label,
                                      const struct device_profile *profile, bool is_processor,
                                      int64_t price_micro, struct problem *ret_problem)
{
    assert(set->topology == NULL);
    assert(host <= set->host_count);
    is_processor = is_processor || is_unified(known);
    uint32_t memories = memories_of(set) + (host == set->host_count) + !is_processor;
    if (memories > TOPOLOGY_MEMORIES || set->count == DEVICE_SET_MOST) {
        problem_set(ret_problem,
                    "devices and the machines they are in have more than %d memories, which is as "
                    "many as are planned for at a time",
                    TOPOLOGY_MEMORIES);
        return DEVICE_SET_TOO_MANY;
    }
    struct device_set_item *item = &set->items[set->count++];
    const char *id = known != NULL ? known->id : label;
    const char *model = known != NULL ? strchr(id, '-') : NULL;
    *item = (struct device_set_item){.known = known,
                                     .profile = known != NULL ? known->profile : *profile,
                                     .host = host,
                                     .is_processor = is_processor,
                                     .price_micro = price_micro};
    (void)snprintf(item->name, sizeof item->name, "%.48s", model != NULL ? model + 1 : id);
    for (int i = 0; known != NULL && profile != NULL && i < PROFILE_FIGURES; i++) {
        struct figure *figure = &item->profile.figures[i];
        *figure = figure->source == FIGURE_UNKNOWN ? profile->figures[i] : *figure;
    }
    set->host_count += host == set->host_count;
    return DEVICE_SET_OK;
}

bool device_set_declare(struct device_set *set, const char *name, enum profile_figure figure,
                        double value)
{
    const struct catalogue_device *known = NULL;
    struct problem problem;
    bool is_any = false;
    assert(set->topology == NULL);
    if (device_set_find(name, &known, &problem) != DEVICE_SET_OK) {
        known = NULL; /* a device outside the catalogue may have the name */
    }
    for (size_t i = 0; i < set->count; i++) {
        struct device_set_item *item = &set->items[i];
        if ((known != NULL && item->known == known) || strcmp(item->name, name) == 0) {
            item->profile.figures[figure] =
                (struct figure){.value = value, .source = FIGURE_DECLARED, .unverified = true};
            is_any = true;
        }
    }
    return is_any;
}

/* Numbers equal names: "h100-sxm5 1", "h100-sxm5 2". A unique name gets no number. */
static void number_names(struct device_set *set)
{
    char plain[DEVICE_SET_MOST][DEVICE_SET_NAME_SIZE];
    for (size_t i = 0; i < set->count; i++) {
        memcpy(plain[i], set->items[i].name, sizeof plain[i]);
    }
    for (size_t i = 0; i < set->count; i++) {
        size_t before = 0;
        size_t all = 0;
        for (size_t k = 0; k < set->count; k++) {
            bool is_same = strcmp(plain[i], plain[k]) == 0;
            all += is_same;
            before += is_same && k < i;
        }
        if (all > 1) {
            (void)snprintf(set->items[i].name, sizeof set->items[i].name, "%.48s %zu", plain[i],
                           before + 1);
        }
    }
}

/* ---------------------------------------------------------------- links */

enum { DEVICE_PORTS = 4, OUT = 0, IN = 1, FABRIC_OUT = 2, FABRIC_IN = 3, HOST_PORTS = 2 };

struct wiring {
    const struct device_set *set;
    struct topology_link *links;
    size_t count;
};

static uint32_t port_of(size_t device, uint32_t port)
{
    return (uint32_t)device * DEVICE_PORTS + port;
}

static uint32_t host_port(const struct wiring *wiring, uint32_t host, uint32_t port)
{
    return (uint32_t)wiring->set->count * DEVICE_PORTS + host * HOST_PORTS + port;
}

/* Adds a link. `there` is the second port, or the first again if the link has one port. */
static void wire(struct wiring *wiring, enum topology_kind kind, uint32_t from, uint32_t to,
                 double latency_s, double bandwidth, uint32_t here, uint32_t there)
{
    assert(wiring->count < TOPOLOGY_LINKS);
    wiring->links[wiring->count++] = (struct topology_link){.from = from,
                                                            .to = to,
                                                            .kind = kind,
                                                            .latency_s = latency_s,
                                                            .bandwidth = bandwidth,
                                                            .ports = {here, there},
                                                            .port_count = here == there ? 1 : 2};
}

/* Returns the bandwidth of the device's links one way, by its figures; 0 means unknown. */
static double interconnect_of(const struct device_set_item *item)
{
    return item->profile.figures[FIGURE_INTERCONNECT].value / 2;
}

static double pcie_of(const struct device_set *set, const struct device_set_item *item)
{
    double pcie = set->links.wires[DEVICE_SET_PCIE].bandwidth;
    double own = interconnect_of(item);
    return own > 0 && own < pcie ? own : pcie;
}

static double fabric_of(const struct device_set *set, const struct device_set_item *item)
{
    double given = set->links.wires[DEVICE_SET_FABRIC].bandwidth;
    double own = interconnect_of(item);
    if (given >= 0) {
        return given;
    }
    bool has_fabric = item->known != NULL && item->known->fabric[0] != '\0';
    return has_fabric && own > set->links.wires[DEVICE_SET_PCIE].bandwidth ? own : 0;
}

static void wire_device(struct wiring *wiring, size_t number)
{
    const struct device_set *set = wiring->set;
    const struct device_set_item *item = &set->items[number];
    double latency_s = set->links.wires[DEVICE_SET_PCIE].latency_s;
    double pcie = pcie_of(set, item);
    if (item->is_processor) {
        return; /* a processor uses its machine's memory */
    }
    if (pcie > 0) {
        uint32_t out = port_of(number, OUT);
        uint32_t in = port_of(number, IN);
        wire(wiring, TOPOLOGY_HOST, item->memory, item->host, latency_s, pcie, out, out);
        wire(wiring, TOPOLOGY_HOST, item->host, item->memory, latency_s, pcie, in, in);
    }
    double fabric = fabric_of(set, item);
    for (size_t i = 0; fabric > 0 && i < set->count; i++) {
        const struct device_set_item *peer = &set->items[i];
        if (i != number && peer->host == item->host && item->known != NULL &&
            peer->known == item->known) {
            wire(wiring, TOPOLOGY_NVLINK, item->memory, peer->memory,
                 set->links.wires[DEVICE_SET_FABRIC].latency_s, fabric, port_of(number, FABRIC_OUT),
                 port_of(i, FABRIC_IN));
        }
    }
}

/* Peers use the PCIe ports of both devices, which a copy to their machine holds, too. */
static void wire_peers(struct wiring *wiring, size_t number)
{
    const struct device_set *set = wiring->set;
    const struct device_set_item *item = &set->items[number];
    const struct device_set_link *given = &set->links.wires[DEVICE_SET_PEER];
    for (size_t i = 0; given->bandwidth > 0 && !item->is_processor && i < set->count; i++) {
        const struct device_set_item *peer = &set->items[i];
        double slowest = fmin(given->bandwidth, fmin(pcie_of(set, item), pcie_of(set, peer)));
        if (i != number && peer->host == item->host && !peer->is_processor && slowest > 0) {
            wire(wiring, TOPOLOGY_PEER, item->memory, peer->memory, given->latency_s, slowest,
                 port_of(number, OUT), port_of(i, IN));
        }
    }
}

static void wire_hosts(struct wiring *wiring)
{
    const struct device_set_link *network = &wiring->set->links.wires[DEVICE_SET_NETWORK];
    for (uint32_t from = 0; from < wiring->set->host_count; from++) {
        for (uint32_t to = 0; to < wiring->set->host_count; to++) {
            if (from != to && network->bandwidth > 0) {
                wire(wiring, TOPOLOGY_NETWORK, from, to, network->latency_s, network->bandwidth,
                     host_port(wiring, from, OUT), host_port(wiring, to, IN));
            }
        }
    }
}

static void set_figures(struct device_set *set, struct device_set_item *item)
{
    const struct figure none = {.source = FIGURE_UNKNOWN};
    double pcie = pcie_of(set, item);
    item->cost = (struct cost_device){.profile = &item->profile, .storage = none, .stream = none};
    if (set->links.storage > 0) {
        item->cost.storage =
            (struct figure){.value = set->links.storage, .source = FIGURE_DECLARED};
    }
    if (set->links.may_stream && !item->is_processor && pcie > 0) {
        item->cost.stream = (struct figure){.value = pcie, .source = FIGURE_DECLARED};
    }
}

enum device_set_status device_set_link(struct device_set *set, const struct device_set_links *links,
                                       struct problem *ret_problem)
{
    assert(set->count > 0 && set->topology == NULL);
    struct wiring wiring = {.set = set, .links = calloc(TOPOLOGY_LINKS, sizeof *wiring.links)};
    struct topology_input input = {.links = wiring.links};
    uint32_t memory = set->host_count;
    if (wiring.links == NULL) {
        return DEVICE_SET_NO_MEMORY;
    }
    set->links = *links;
    number_names(set);
    for (size_t i = 0; i < set->count; i++) {
        struct device_set_item *item = &set->items[i];
        item->memory = item->is_processor ? item->host : memory++;
        set_figures(set, item);
    }
    set->memory_count = memory;
    for (size_t i = 0; i < set->count; i++) {
        wire_device(&wiring, i);
        wire_peers(&wiring, i);
    }
    wire_hosts(&wiring);
    input.link_count = wiring.count;
    input.memory_count = memory;
    input.port_count = (uint32_t)set->count * DEVICE_PORTS + set->host_count * HOST_PORTS;
    input.hosts = set->host_count == 64 ? UINT64_MAX : (UINT64_C(1) << set->host_count) - 1;
    enum topology_status status = topology_create(&input, &set->topology, NULL);
    free(wiring.links);
    if (status == TOPOLOGY_NO_MEMORY) {
        return DEVICE_SET_NO_MEMORY;
    }
    if (status != TOPOLOGY_OK) {
        problem_set(ret_problem, "a link or a number of memories is out of its range");
        return DEVICE_SET_TOO_MANY;
    }
    return DEVICE_SET_OK;
}

bool device_set_are_unified(const struct device_set *set, size_t a, size_t b)
{
    const struct device_set_item *left = &set->items[a];
    const struct device_set_item *right = &set->items[b];
    assert(set->topology != NULL);
    return a != b && left->memory == right->memory && is_unified(left->known) &&
           is_unified(right->known);
}
