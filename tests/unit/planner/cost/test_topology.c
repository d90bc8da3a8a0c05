/* Ways between memories. The machine of most tests: two hosts; gpus 0 and 1 at host 4, gpu 2 at
 * host 5; gpus 0 and 1 also have NVLink and can reach each other over PCIe. Gpu 3 shares host 4's
 * memory: it is memory 4. */
#include "planner/cost/topology.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GPU0,
    GPU1,
    GPU2,
    LONELY,
    HOST0,
    HOST1,
    MEMORIES,
};

enum { NVLINK_OUT, NVLINK_IN, PCIE_OUT, PCIE_IN, FAR_PCIE, WIRE, PORTS };

/* Bandwidths are round: 100 GB/s, 10 GB/s, 1 GB/s. */
static const struct topology_link links[] = {
    {GPU0, GPU1, TOPOLOGY_NVLINK, 1e-6, 100e9, {NVLINK_OUT, NVLINK_IN}, 2},
    {GPU0, GPU1, TOPOLOGY_PEER, 2e-6, 10e9, {PCIE_OUT, PCIE_IN}, 2},
    {GPU0, HOST0, TOPOLOGY_HOST, 3e-6, 10e9, {PCIE_OUT}, 1},
    {HOST0, GPU1, TOPOLOGY_HOST, 3e-6, 10e9, {PCIE_IN}, 1},
    {HOST0, HOST1, TOPOLOGY_NETWORK, 10e-6, 1e9, {WIRE}, 1},
    {HOST1, GPU2, TOPOLOGY_HOST, 3e-6, 10e9, {FAR_PCIE}, 1},
};
enum { LINKS = sizeof links / sizeof links[0] };

static struct topology *machine(size_t first_link)
{
    const struct topology_input input = {
        .memory_count = MEMORIES,
        .port_count = PORTS,
        .hosts = UINT64_C(1) << HOST0 | UINT64_C(1) << HOST1,
        .links = links + first_link,
        .link_count = LINKS - first_link,
    };
    struct topology *topology = NULL;
    ck_assert_int_eq(topology_create(&input, &topology, NULL), TOPOLOGY_OK);
    return topology;
}

#define AT(memory) (UINT64_C(1) << (memory))

static struct topology_transfer found(const struct topology *topology,
                                      const struct topology_traffic *traffic, uint64_t copies,
                                      uint32_t to, int64_t bytes, double ready_s)
{
    struct topology_transfer transfer;
    ck_assert_int_eq(topology_find(topology, traffic, copies, to, bytes, ready_s, &transfer),
                     TOPOLOGY_OK);
    return transfer;
}

static void assert_near(double value, double wanted)
{
    ck_assert_double_eq_tol(value, wanted, 1e-9 * wanted + 1e-18);
}

START_TEST(what_is_there_costs_nothing)
{
    CLEANUP(topology_destroy) struct topology *topology = machine(0);
    struct topology_transfer here = found(topology, NULL, AT(GPU0) | AT(GPU1), GPU1, 1000000000, 7);
    ck_assert_int_eq(here.kind, TOPOLOGY_HERE);
    ck_assert_uint_eq(here.link_count, 0);
    ck_assert(here.start_s == 7 && here.finish_s == 7);
    /* Unified memory: what host 0 has, a device of the same memory has. */
    ck_assert_int_eq(found(topology, NULL, AT(HOST0), HOST0, 1000, 0).kind, TOPOLOGY_HERE);
}
END_TEST

START_TEST(the_fastest_way_is_taken_and_the_next_when_it_is_gone)
{
    CLEANUP(topology_destroy) struct topology *all = machine(0);
    struct topology_transfer transfer = found(all, NULL, AT(GPU0), GPU1, 1000000000, 0);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_NVLINK);
    assert_near(transfer.finish_s, 1e-6 + 1e9 / 100e9);
    CLEANUP(topology_destroy) struct topology *no_nvlink = machine(1);
    transfer = found(no_nvlink, NULL, AT(GPU0), GPU1, 1000000000, 0);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_PEER);
    assert_near(transfer.finish_s, 2e-6 + 0.1);
    CLEANUP(topology_destroy) struct topology *no_peer = machine(2);
    transfer = found(no_peer, NULL, AT(GPU0), GPU1, 1000000000, 0);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_HOST); /* through the CPU */
    ck_assert_uint_eq(transfer.link_count, 2);
    /* Twice 3 us, the first 4 MiB twice, the rest behind: 0.1 s and one chunk more. */
    assert_near(transfer.finish_s, 6e-6 + 1e9 / 10e9 + TOPOLOGY_CHUNK / 10e9);
    transfer =
        found(no_peer, NULL, AT(GPU0), GPU1, 1000, 0); /* less than a chunk: all of it twice */
    assert_near(transfer.finish_s, 6e-6 + 2 * 1000 / 10e9);
    transfer = found(no_peer, NULL, AT(GPU0), GPU1, 0, 0);
    assert_near(transfer.finish_s, 6e-6);
}
END_TEST

START_TEST(another_machine_is_reached_over_the_network)
{
    CLEANUP(topology_destroy) struct topology *topology = machine(0);
    struct topology_transfer transfer = found(topology, NULL, AT(GPU0), GPU2, 1000000000, 1);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_NETWORK);
    ck_assert_uint_eq(transfer.link_count, 3);
    assert_near(transfer.finish_s, 1 + 16e-6 + 1.0 + 2 * TOPOLOGY_CHUNK / 10e9);
    ck_assert_str_eq(topology_kind_name(transfer.kind), "network");
}
END_TEST

START_TEST(of_several_copies_the_nearest_is_taken)
{
    CLEANUP(topology_destroy) struct topology *topology = machine(0);
    struct topology_transfer transfer =
        found(topology, NULL, AT(GPU0) | AT(HOST1), GPU2, 1000000000, 0);
    ck_assert_uint_eq(transfer.from, HOST1);
    assert_near(transfer.finish_s, 3e-6 + 0.1);
}
END_TEST

START_TEST(a_port_carries_one_transfer_at_a_time)
{
    CLEANUP(topology_destroy) struct topology *topology = machine(1); /* without NVLink */
    double free_s[PORTS] = {0};
    struct topology_traffic traffic = {free_s};
    struct topology_transfer first = found(topology, &traffic, AT(GPU0), GPU1, 1000000000, 0);
    topology_reserve(topology, &traffic, &first);
    /* The way to the host leaves by the same port: it waits, though the host is elsewhere. */
    struct topology_transfer second = found(topology, &traffic, AT(GPU0), HOST0, 1000000000, 0);
    assert_near(second.start_s, first.finish_s);
    assert_near(second.finish_s, first.finish_s + 3e-6 + 0.1);
    topology_reserve(topology, &traffic, &second);
    /* Into gpu 1 from the host: only as long as the first held that port. */
    struct topology_transfer third = found(topology, &traffic, AT(HOST0), GPU1, 1000, 0);
    assert_near(third.start_s, first.finish_s);
    /* The wire is free. */
    ck_assert(found(topology, &traffic, AT(HOST0), HOST1, 1000, 0).start_s == 0);
}
END_TEST

START_TEST(who_waits_for_the_fast_way_takes_the_slow_one_if_that_is_sooner)
{
    CLEANUP(topology_destroy) struct topology *topology = machine(0);
    double free_s[PORTS] = {[NVLINK_OUT] = 0.05};
    struct topology_traffic traffic = {free_s};
    /* 0.01 s over NVLink from 0.05 on; 0.1 s over PCIe at once: waiting is better. */
    ck_assert_int_eq(found(topology, &traffic, AT(GPU0), GPU1, 1000000000, 0).kind,
                     TOPOLOGY_NVLINK);
    /* 1 ms over PCIe at once is better than 0.1 ms from 0.05 on. */
    ck_assert_int_eq(found(topology, &traffic, AT(GPU0), GPU1, 10000000, 0).kind, TOPOLOGY_PEER);
}
END_TEST

START_TEST(what_cannot_be_carried_is_refused)
{
    CLEANUP(topology_destroy) struct topology *topology = machine(0);
    struct topology_transfer transfer = {.from = 99};
    ck_assert_int_eq(topology_find(topology, NULL, 0, GPU1, 1, 0, &transfer), TOPOLOGY_NO_COPY);
    ck_assert_int_eq(topology_find(topology, NULL, AT(40), GPU1, 1, 0, &transfer),
                     TOPOLOGY_NO_COPY); /* a memory that is not */
    ck_assert_int_eq(topology_find(topology, NULL, AT(GPU1), GPU0, 1, 0, &transfer),
                     TOPOLOGY_NO_PATH); /* links go one way */
    ck_assert_int_eq(topology_find(topology, NULL, AT(GPU0), LONELY, 1, 0, &transfer),
                     TOPOLOGY_NO_PATH);
    ck_assert_int_eq(topology_find(topology, NULL, AT(GPU0), GPU1, -1, 0, &transfer),
                     TOPOLOGY_BAD_DATA);
    ck_assert_int_eq(
        topology_find(topology, NULL, AT(GPU0), GPU1, TOPOLOGY_BYTES_MOST + 1, 0, &transfer),
        TOPOLOGY_BAD_DATA);
    ck_assert_int_eq(topology_find(topology, NULL, AT(GPU0), GPU1, 1, NAN, &transfer),
                     TOPOLOGY_BAD_DATA);
    ck_assert_int_eq(topology_find(topology, NULL, AT(GPU0), GPU1, 1, -1, &transfer),
                     TOPOLOGY_BAD_DATA);
    ck_assert_uint_eq(transfer.from, 99);
}
END_TEST

START_TEST(wrong_links_are_named)
{
    static const struct {
        struct topology_link link;
        enum topology_status status;
    } wrong[] = {
        {{9, 1, TOPOLOGY_PEER, 0, 1, {0}, 1}, TOPOLOGY_BAD_LINK},
        {{0, 9, TOPOLOGY_PEER, 0, 1, {0}, 1}, TOPOLOGY_BAD_LINK},
        {{2, 1, TOPOLOGY_PEER, 0, 1, {0}, 1}, TOPOLOGY_BAD_LINK}, /* memories are 0 and 1 */
        {{0, 2, TOPOLOGY_PEER, 0, 1, {0}, 1}, TOPOLOGY_BAD_LINK},
        {{1, 1, TOPOLOGY_PEER, 0, 1, {0}, 1}, TOPOLOGY_BAD_LINK},
        {{0, 1, TOPOLOGY_HERE, 0, 1, {0}, 1}, TOPOLOGY_BAD_LINK},
        {{0, 1, TOPOLOGY_PEER, 0, 1, {9}, 1}, TOPOLOGY_BAD_LINK},
        {{0, 1, TOPOLOGY_PEER, 0, 1, {0, 9}, 2}, TOPOLOGY_BAD_LINK},
        {{0, 1, TOPOLOGY_PEER, 0, 1, {0}, 0}, TOPOLOGY_BAD_LINK},
        {{0, 1, TOPOLOGY_PEER, 0, 1, {0}, 3}, TOPOLOGY_BAD_LINK},
        {{0, 1, TOPOLOGY_PEER, -1, 1, {0}, 1}, TOPOLOGY_BAD_FIGURE},
        {{0, 1, TOPOLOGY_PEER, NAN, 1, {0}, 1}, TOPOLOGY_BAD_FIGURE},
        {{0, 1, TOPOLOGY_PEER, 0, 0, {0}, 1}, TOPOLOGY_BAD_FIGURE},
        {{0, 1, TOPOLOGY_PEER, 0, NAN, {0}, 1}, TOPOLOGY_BAD_FIGURE},
        {{0, 1, TOPOLOGY_PEER, 0, INFINITY, {0}, 1}, TOPOLOGY_BAD_FIGURE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct topology_link two[2] = {{0, 1, TOPOLOGY_PEER, 0, 1, {0}, 1}, wrong[i].link};
        struct topology_input input = {
            .memory_count = 2, .port_count = 1, .links = two, .link_count = 2};
        struct topology *topology = NULL;
        size_t bad = 99;
        ck_assert_int_eq(topology_create(&input, &topology, &bad), wrong[i].status);
        ck_assert_uint_eq(bad, 1);
        ck_assert_ptr_null(topology);
    }
    struct topology *topology = NULL;
    struct topology_input input = {.memory_count = 0};
    ck_assert_int_eq(topology_create(&input, &topology, NULL), TOPOLOGY_TOO_LARGE);
    input.memory_count = TOPOLOGY_MEMORIES + 1;
    ck_assert_int_eq(topology_create(&input, &topology, NULL), TOPOLOGY_TOO_LARGE);
    input = (struct topology_input){.memory_count = 1, .port_count = TOPOLOGY_PORTS + 1};
    ck_assert_int_eq(topology_create(&input, &topology, NULL), TOPOLOGY_TOO_LARGE);
}
END_TEST

/* Random machines, random transfers: none is sooner than alone, and no port carries two at a
 * time. */
START_TEST(ports_are_never_shared)
{
    enum { TRANSFERS = 60, SIZE = 6 };
    struct random random = random_seeded((uint64_t)_i + 1);
    struct topology_link any[30];
    for (size_t i = 0; i < 30; i++) {
        uint32_t from = (uint32_t)random_below(&random, SIZE);
        any[i] = (struct topology_link){
            .from = from,
            .to = (from + 1 + (uint32_t)random_below(&random, SIZE - 1)) % SIZE,
            .kind = (enum topology_kind)(1 + random_below(&random, 4)),
            .latency_s = (double)random_below(&random, 10),
            .bandwidth = (double)(1 + random_below(&random, 1000)),
            .ports = {(uint32_t)random_below(&random, 12), (uint32_t)random_below(&random, 12)},
            .port_count = 1 + (uint32_t)random_below(&random, 2),
        };
    }
    const struct topology_input input = {.memory_count = SIZE,
                                         .port_count = 12,
                                         .hosts = random_below(&random, 64),
                                         .links = any,
                                         .link_count = 30};
    CLEANUP(topology_destroy) struct topology *topology = NULL;
    ck_assert_int_eq(topology_create(&input, &topology, NULL), TOPOLOGY_OK);
    double free_s[12] = {0};
    struct topology_traffic traffic = {free_s};
    struct topology_transfer done[TRANSFERS];
    size_t count = 0;
    for (size_t i = 0; i < TRANSFERS; i++) {
        uint64_t copies = random_below(&random, 64);
        uint32_t to = (uint32_t)random_below(&random, SIZE);
        int64_t bytes = (int64_t)random_below(&random, 100000);
        double ready = (double)random_below(&random, 100);
        struct topology_transfer transfer;
        struct topology_transfer alone;
        enum topology_status status =
            topology_find(topology, &traffic, copies, to, bytes, ready, &transfer);
        ck_assert_int_eq(topology_find(topology, NULL, copies, to, bytes, ready, &alone), status);
        if (status != TOPOLOGY_OK) {
            ck_assert(status == TOPOLOGY_NO_PATH || status == TOPOLOGY_NO_COPY);
            continue;
        }
        ck_assert(transfer.start_s >= ready && transfer.finish_s >= transfer.start_s);
        ck_assert(transfer.finish_s >= alone.finish_s);
        uint32_t at = transfer.from;
        for (uint32_t k = 0; k < transfer.link_count; k++) { /* a way that hangs together */
            ck_assert_uint_eq(any[transfer.links[k]].from, at);
            at = any[transfer.links[k]].to;
        }
        ck_assert_uint_eq(at, to);
        ck_assert((copies >> transfer.from & 1) != 0);
        topology_reserve(topology, &traffic, &transfer);
        done[count++] = transfer;
    }
    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b < a; b++) {
            uint64_t ports[2] = {0, 0};
            for (uint32_t k = 0; k < done[a].link_count; k++) {
                const struct topology_link *link = &any[done[a].links[k]];
                ports[0] |= AT(link->ports[0]) | AT(link->ports[link->port_count - 1]);
            }
            for (uint32_t k = 0; k < done[b].link_count; k++) {
                const struct topology_link *link = &any[done[b].links[k]];
                ports[1] |= AT(link->ports[0]) | AT(link->ports[link->port_count - 1]);
            }
            ck_assert((ports[0] & ports[1]) == 0 || done[a].start_s >= done[b].finish_s ||
                      done[b].start_s >= done[a].finish_s);
        }
    }
}
END_TEST

SUITE("topology", NULL, NULL, TEST(what_is_there_costs_nothing),
      TEST(the_fastest_way_is_taken_and_the_next_when_it_is_gone),
      TEST(another_machine_is_reached_over_the_network),
      TEST(of_several_copies_the_nearest_is_taken), TEST(a_port_carries_one_transfer_at_a_time),
      TEST(who_waits_for_the_fast_way_takes_the_slow_one_if_that_is_sooner),
      TEST(what_cannot_be_carried_is_refused), TEST(wrong_links_are_named),
      LOOP(ports_are_never_shared, 0, 50))
