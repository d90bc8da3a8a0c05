#include "tests/support/sample_work.h"

#include <check.h>
#include <stdlib.h>

struct steps *sample_steps(size_t count)
{
    struct steps *steps = calloc(1, sizeof *steps);
    ck_assert_ptr_nonnull(steps);
    steps->steps = calloc(count, sizeof *steps->steps);
    steps->edges = calloc(count * count + 1, sizeof *steps->edges);
    steps->sets = calloc(count + 1, sizeof *steps->sets);
    ck_assert(steps->steps != NULL && steps->edges != NULL && steps->sets != NULL);
    steps->step_count = count;
    for (size_t s = 0; s < count; s++) {
        (void)snprintf(steps->steps[s].name, sizeof steps->steps[s].name, "%c%.0d",
                       (char)('a' + s % 26), (int)(s / 26));
        steps->steps[s].passes = 1;
    }
    return steps;
}

static struct step_part units_of(enum dtype dtype, int64_t times)
{
    struct step_part part = {.operation = operation_of(OPERATION_MATMUL, dtype), .times = times};
    part.operation.shape.product.m = 1000;
    part.operation.shape.product.n = 1000;
    part.operation.shape.product.k = 1000;
    return part;
}

void sample_units(struct steps *steps, size_t step, int64_t fp32, int64_t bf16)
{
    struct step *it = &steps->steps[step];
    free(it->parts);
    it->parts = calloc(2, sizeof *it->parts);
    ck_assert_ptr_nonnull(it->parts);
    it->part_count = 0;
    if (fp32 > 0) {
        it->parts[it->part_count++] = units_of(DTYPE_FP32, fp32);
    }
    if (bf16 > 0) {
        it->parts[it->part_count++] = units_of(DTYPE_BF16, bf16);
    }
}

void sample_edge(struct steps *steps, uint32_t from, uint32_t to, int64_t bytes)
{
    ck_assert(from < to && to < steps->step_count);
    steps->edges[steps->edge_count++] = (struct step_edge){.from = from, .to = to, .bytes = bytes};
}

void sample_weights(struct steps *steps, size_t step, uint32_t first, uint32_t count, int64_t bytes)
{
    struct step *it = &steps->steps[step];
    ck_assert(first + count <= steps->step_count);
    it->first_set = first;
    it->set_count = count;
    it->weight_bytes = bytes * count;
    for (uint32_t i = first; i < first + count; i++) {
        steps->sets[i] = bytes;
    }
    steps->set_count = steps->set_count > first + count ? steps->set_count : first + count;
}

static void set(struct sample_device *device, enum profile_figure which, double value)
{
    device->profile.figures[which] =
        (struct figure){.value = value, .source = value > 0 ? FIGURE_DECLARED : FIGURE_UNKNOWN};
}

void sample_device(struct sample_device *device, double fp32_s, double bf16_s)
{
    *device = (struct sample_device){.cost = {.storage = {.source = FIGURE_UNKNOWN}}};
    device->cost.profile = &device->profile;
    set(device, FIGURE_FP32, fp32_s > 0 ? SAMPLE_UNIT / fp32_s : 0);
    set(device, FIGURE_BF16, bf16_s > 0 ? SAMPLE_UNIT / bf16_s : 0);
    set(device, FIGURE_MEMORY, SAMPLE_ENOUGH);
    set(device, FIGURE_BANDWIDTH, SAMPLE_ENOUGH);
}

void sample_memory(struct sample_device *device, double bytes)
{
    set(device, FIGURE_MEMORY, bytes);
}

void sample_power(struct sample_device *device, double watts)
{
    set(device, FIGURE_POWER, watts);
}

void sample_stream(struct sample_device *device, double bytes_per_s)
{
    device->cost.stream = (struct figure){.value = bytes_per_s, .source = FIGURE_DECLARED};
}

struct topology *sample_links(uint32_t count, double latency_s, double bandwidth)
{
    return sample_fabrics(count, 1, latency_s, bandwidth);
}

struct topology *sample_fabrics(uint32_t count, uint32_t size, double latency_s, double bandwidth)
{
    struct topology_link *links = calloc((size_t)count * count + 1, sizeof *links);
    struct topology *topology = NULL;
    size_t link_count = 0;
    ck_assert_ptr_nonnull(links);
    for (uint32_t p = 0; p < count; p++) {
        for (uint32_t q = 0; q < count; q++) {
            if (p != q) {
                links[link_count] = (struct topology_link){
                    .from = p,
                    .to = q,
                    .kind = p / size == q / size ? TOPOLOGY_NVLINK : TOPOLOGY_PEER,
                    .latency_s = latency_s,
                    .bandwidth = bandwidth,
                    .ports = {(uint32_t)link_count},
                    .port_count = 1};
                link_count++;
            }
        }
    }
    const struct topology_input input = {.memory_count = count,
                                         .port_count = (uint32_t)link_count + 1,
                                         .links = links,
                                         .link_count = link_count};
    ck_assert_int_eq(topology_create(&input, &topology, NULL), TOPOLOGY_OK);
    free(links);
    return topology;
}

struct plan *sample_plan(const struct plan_input *input)
{
    struct plan *plan = NULL;
    struct plan_fault fault;
    enum plan_status status = plan_search(input, &plan, &fault);
    ck_assert_msg(status == PLAN_OK, "%s: %s", plan_status_name(status), fault.problem.text);
    return plan;
}
