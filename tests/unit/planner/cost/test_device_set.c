/* Devices to plan for: as people name them, and how they are linked. */
#include "planner/cost/device_set.h"

#include "base/cleanup.h"
#include "formats/device_list.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the text */

START_TEST(machines_devices_numbers_and_prices_are_read)
{
    struct device_list list = {.part_count = 0};
    struct problem problem;
    ck_assert(device_list_add(&list, "h100:8@2.50, epyc-9654 + l4:2", &problem));
    ck_assert_uint_eq(list.part_count, 3);
    ck_assert_uint_eq(list.device_count, 11);
    ck_assert_uint_eq(list.host_count, 2);
    ck_assert_str_eq(list.parts[0].name, "h100");
    ck_assert_uint_eq(list.parts[0].count, 8);
    ck_assert_int_eq(list.parts[0].price_micro, 2500000);
    ck_assert_str_eq(list.parts[1].name, "epyc-9654");
    ck_assert_uint_eq(list.parts[1].count, 1);
    ck_assert_int_eq(list.parts[1].price_micro, -1);
    ck_assert_uint_eq(list.parts[1].host, 1);
    ck_assert_uint_eq(list.parts[2].host, 1);
    ck_assert(device_list_add(&list, "tpu-v5p@0", &problem)); /* a machine more; donated */
    ck_assert_uint_eq(list.parts[3].host, 2);
    ck_assert_int_eq(list.parts[3].price_micro, 0);
}
END_TEST

START_TEST(what_is_no_list_is_refused_and_changes_nothing)
{
    static const char *const wrong[] = {
        "",
        ",",
        "h100,",
        "h100++l4",
        "h100:0",
        "h100:",
        "h100:65",
        "h100:-1",
        "h100:x",
        "h100@",
        "h100@-1",
        "h100@x",
        "h100@1.0000001",
        "h 100",
        "h100:2 @1",
        "h100;l4",
        "h100:2:2",
        "@1",
        ":2",
        "h100\033",
        "h\xc3\xa9",
        "h100:99999999999999999999",
        "h100@1@1",
        "h100:40,l4:40",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct device_list list = {.part_count = 0};
        struct device_list before;
        struct problem problem = {.text = ""};
        ck_assert(device_list_add(&list, "b200", &problem));
        before = list;
        ck_assert_msg(!device_list_add(&list, wrong[i], &problem), "taken: %s", wrong[i]);
        ck_assert_mem_eq(&list, &before, sizeof list);
        ck_assert_uint_gt(strlen(problem.text), 10);
        ck_assert_ptr_null(strchr(problem.text, '\033'));
    }
    char name[200];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct device_list list = {.part_count = 0};
    ck_assert(!device_list_add(&list, name, NULL));
}
END_TEST

START_TEST(links_are_rates_in_bytes_or_bits_and_a_latency)
{
    struct device_link link = {.latency_ns = 7};
    struct problem problem;
    ck_assert(device_link_read("25GB/s", &link, &problem));
    ck_assert_int_eq(link.bandwidth, 25000000000);
    ck_assert_int_eq(link.latency_ns, 7); /* not said */
    ck_assert(device_link_read("100Gbit/s,10us", &link, &problem));
    ck_assert_int_eq(link.bandwidth, 12500000000);
    ck_assert_int_eq(link.latency_ns, 10000);
    ck_assert(device_link_read("none", &link, &problem));
    ck_assert(link.is_none);
    ck_assert_int_eq(link.bandwidth, 0);
    static const char *const wrong[] = {
        "",       "25",     "0GB/s",  "25GB/s,",         "25GB/s,10", "x,1us",
        "-1GB/s", "1bit/s", "Gbit/s", "25GB/s,10us,1us", "nonesuch",  ",1us"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct device_link before = link;
        ck_assert_msg(!device_link_read(wrong[i], &link, &problem), "taken: %s", wrong[i]);
        ck_assert_mem_eq(&before, &link, sizeof link);
    }
}
END_TEST

/* ---------------------------------------------------------------- names */

START_TEST(short_names_mean_one_device_or_none)
{
    const struct catalogue_device *found = NULL;
    struct problem problem;
    static const char *const good[][2] = {{"nvidia-h100-pcie", "nvidia-h100-pcie"},
                                          {"h100-pcie", "nvidia-h100-pcie"},
                                          {"tpu-v5p", "google-tpu-v5p"},
                                          {"v5p", "google-tpu-v5p"},
                                          {"groq-lpu-v1", "groq-lpu-v1"},
                                          {"h100", "nvidia-h100-sxm5"},
                                          {"a100", "nvidia-a100-sxm4-80"},
                                          {"l4", "nvidia-l4"}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_int_eq(device_set_find(good[i][0], &found, &problem), DEVICE_SET_OK);
        ck_assert_str_eq(found->id, good[i][1]);
    }
    ck_assert_int_eq(device_set_find("tpu", &found, &problem), DEVICE_SET_AMBIGUOUS);
    ck_assert_ptr_nonnull(strstr(problem.text, "google-tpu-v5p"));
    ck_assert_int_eq(device_set_find("h1000", &found, &problem), DEVICE_SET_UNKNOWN);
    ck_assert_int_eq(device_set_find("tpu-v5q", &found, &problem), DEVICE_SET_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(problem.text, "did you mean tpu-v5"));
    ck_assert_int_eq(device_set_find("", &found, &problem), DEVICE_SET_UNKNOWN);
    ck_assert_int_eq(device_set_find("100", &found, &problem),
                     DEVICE_SET_UNKNOWN); /* no whole word */
}
END_TEST

START_TEST(every_id_of_the_catalogue_means_itself)
{
    for (size_t i = 0; i < catalogue_count(); i++) {
        const struct catalogue_device *found = NULL;
        ck_assert_int_eq(device_set_find(catalogue_at(i)->id, &found, NULL), DEVICE_SET_OK);
        ck_assert_ptr_eq(found, catalogue_at(i));
    }
}
END_TEST

/* ---------------------------------------------------------------- links */

static void add(struct device_set *set, uint32_t host, const char *name)
{
    const struct catalogue_device *known = NULL;
    ck_assert_int_eq(device_set_find(name, &known, NULL), DEVICE_SET_OK);
    ck_assert_int_eq(
        device_set_add(set, host, known, NULL, NULL, strcmp(known->kind, "cpu") == 0, -1, NULL),
        DEVICE_SET_OK);
}

static struct topology_transfer way(const struct device_set *set, size_t from, size_t to)
{
    struct topology_transfer transfer = {.link_count = 99};
    ck_assert_int_eq(topology_find(set->topology, NULL, UINT64_C(1) << set->items[from].memory,
                                   set->items[to].memory, 1000000000, 0, &transfer),
                     TOPOLOGY_OK);
    return transfer;
}

START_TEST(alike_devices_of_a_machine_have_its_fabric_and_others_go_through_the_host)
{
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    const struct device_set_links links = device_set_defaults();
    add(set, 0, "h100");
    add(set, 0, "h100");
    add(set, 0, "epyc-9654");
    add(set, 0, "l4");
    add(set, 1, "h100");
    ck_assert_int_eq(device_set_link(set, &links, NULL), DEVICE_SET_OK);
    ck_assert_str_eq(set->items[0].name, "h100-sxm5 1");
    ck_assert_str_eq(set->items[1].name, "h100-sxm5 2");
    ck_assert_str_eq(set->items[4].name, "h100-sxm5 3");
    ck_assert_str_eq(set->items[3].name, "l4");
    ck_assert_uint_eq(set->memory_count,
                      6); /* two machines, four cards: the processor is at home */

    struct topology_transfer transfer = way(set, 0, 1);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_NVLINK);
    ck_assert_double_eq_tol(transfer.finish_s, 1e9 / 450e9, 1e-5); /* half of 900 GB/s, one way */
    transfer = way(set, 0, 2);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_HOST);
    ck_assert_uint_eq(transfer.link_count, 1);
    ck_assert_double_eq_tol(transfer.finish_s, 1e9 / 31.5e9, 1e-4);
    transfer = way(set, 0, 3);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_HOST);
    ck_assert_uint_eq(transfer.link_count, 2);
    transfer = way(set, 0, 4);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_NETWORK);
    ck_assert_double_ge(transfer.finish_s, 1e9 / 12.5e9);
}
END_TEST

/* Their interconnect is PCIe, which both ways together are 64 GB/s of: a port each, and no
 * other. */
START_TEST(devices_without_a_fabric_are_linked_by_pcie_alone)
{
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    const struct device_set_links links = device_set_defaults();
    add(set, 0, "l40s");
    add(set, 0, "l40s");
    add(set, 0, "rtx4090");
    add(set, 0, "rtx4090");
    ck_assert_int_eq(device_set_link(set, &links, NULL), DEVICE_SET_OK);
    ck_assert_int_eq(way(set, 0, 1).kind, TOPOLOGY_HOST);
    ck_assert_int_eq(way(set, 2, 3).kind, TOPOLOGY_HOST);
}
END_TEST

/* The catalogue does not say which devices may, so it is said here. PCIe of both is held, and
 * bounds it. */
START_TEST(devices_of_a_machine_reach_one_another_over_pcie_where_that_is_given)
{
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    struct device_set_links links = device_set_defaults();
    links.wires[DEVICE_SET_PEER].bandwidth = 60e9;
    add(set, 0, "h100");
    add(set, 0, "rx580");
    add(set, 0, "h100");
    add(set, 0, "epyc-9654");
    add(set, 1, "l4");
    ck_assert_int_eq(device_set_link(set, &links, NULL), DEVICE_SET_OK);
    struct topology_transfer transfer = way(set, 0, 1);
    ck_assert_int_eq(transfer.kind, TOPOLOGY_PEER);
    ck_assert_uint_eq(transfer.link_count, 1);
    ck_assert_double_eq_tol(transfer.finish_s, 1e9 / 8e9 + 5e-6, 1e-9); /* half of 16 GB/s */
    ck_assert_int_eq(way(set, 0, 2).kind, TOPOLOGY_NVLINK);             /* its fabric is faster */
    ck_assert_int_eq(way(set, 0, 3).kind, TOPOLOGY_HOST);
    ck_assert_int_eq(way(set, 0, 4).kind, TOPOLOGY_NETWORK);
    double free_s[DEVICE_SET_MOST * 8] = {0};
    struct topology_traffic traffic = {.free_s = free_s};
    topology_reserve(set->topology, &traffic, &transfer);
    ck_assert_int_eq(topology_find(set->topology, &traffic, UINT64_C(1) << set->items[0].memory,
                                   set->items[3].memory, 1, 0, &transfer),
                     TOPOLOGY_OK);
    ck_assert(transfer.start_s >= 1e9 / 8e9); /* the port was taken */
}
END_TEST

START_TEST(what_has_unified_memory_is_at_its_machines)
{
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    const struct device_set_links links = device_set_defaults();
    add(set, 0, "spacemit-k1");
    add(set, 0, "intel-npu-mtl");
    add(set, 0, "l4");
    ck_assert_int_eq(device_set_link(set, &links, NULL), DEVICE_SET_OK);
    ck_assert_uint_eq(set->memory_count, 2);
    ck_assert_uint_eq(set->items[0].memory, set->items[1].memory);
    ck_assert_int_eq(way(set, 0, 1).kind, TOPOLOGY_HERE);
    ck_assert_uint_eq(way(set, 1, 2).link_count, 1);
}
END_TEST

START_TEST(links_that_are_said_are_taken_and_none_is_none)
{
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    struct device_set_links links = device_set_defaults();
    links.wires[DEVICE_SET_FABRIC].bandwidth = 0;
    links.wires[DEVICE_SET_NETWORK].bandwidth = 0;
    links.wires[DEVICE_SET_PCIE].bandwidth = 63e9;
    links.may_stream = true;
    links.storage = 7e9;
    add(set, 0, "h100");
    add(set, 0, "h100");
    add(set, 1, "edge-tpu");
    ck_assert_int_eq(device_set_link(set, &links, NULL), DEVICE_SET_OK);
    ck_assert_int_eq(way(set, 0, 1).kind, TOPOLOGY_HOST);
    struct topology_transfer transfer;
    ck_assert_int_eq(topology_find(set->topology, NULL, UINT64_C(1) << set->items[0].memory,
                                   set->items[2].memory, 1, 0, &transfer),
                     TOPOLOGY_NO_PATH);
    ck_assert_double_eq(set->items[0].cost.stream.value, 63e9);
    ck_assert_double_eq(set->items[0].cost.storage.value, 7e9);
    ck_assert_double_eq(set->items[2].cost.stream.value, 0.3125e9); /* its USB, not PCIe */
}
END_TEST

START_TEST(what_is_not_said_is_unknown)
{
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    const struct device_set_links links = device_set_defaults();
    add(set, 0, "h100");
    ck_assert_int_eq(device_set_link(set, &links, NULL), DEVICE_SET_OK);
    ck_assert_int_eq(set->items[0].cost.storage.source, FIGURE_UNKNOWN);
    ck_assert_int_eq(set->items[0].cost.stream.source, FIGURE_UNKNOWN);
    ck_assert_int_eq(set->items[0].price_micro, -1);
    ck_assert_str_eq(set->items[0].name, "h100-sxm5");
}
END_TEST

START_TEST(more_memories_than_can_be_planned_are_refused)
{
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    const struct catalogue_device *l4 = catalogue_find("nvidia-l4");
    struct problem problem = {.text = ""};
    for (uint32_t i = 0; i < 32; i++) {
        ck_assert_int_eq(device_set_add(set, i, l4, NULL, NULL, false, -1, &problem),
                         DEVICE_SET_OK);
    }
    ck_assert_int_eq(device_set_add(set, 0, l4, NULL, NULL, false, -1, &problem),
                     DEVICE_SET_TOO_MANY);
    ck_assert_ptr_nonnull(strstr(problem.text, "64"));
    const struct device_set_links links = device_set_defaults();
    ck_assert_int_eq(device_set_link(set, &links, &problem), DEVICE_SET_OK);
    ck_assert_int_eq(way(set, 0, 31).kind, TOPOLOGY_NETWORK);
}
END_TEST

SUITE("device_set", NULL, NULL, TEST(machines_devices_numbers_and_prices_are_read),
      TEST(what_is_no_list_is_refused_and_changes_nothing),
      TEST(links_are_rates_in_bytes_or_bits_and_a_latency),
      TEST(short_names_mean_one_device_or_none), TEST(every_id_of_the_catalogue_means_itself),
      TEST(alike_devices_of_a_machine_have_its_fabric_and_others_go_through_the_host),
      TEST(devices_without_a_fabric_are_linked_by_pcie_alone),
      TEST(devices_of_a_machine_reach_one_another_over_pcie_where_that_is_given),
      TEST(what_has_unified_memory_is_at_its_machines),
      TEST(links_that_are_said_are_taken_and_none_is_none), TEST(what_is_not_said_is_unknown),
      TEST(more_memories_than_can_be_planned_are_refused))
