/* Steps, devices and links for tests of plans, with round figures: a unit of work is a product of 2
 * x 10^9 operations. */
#ifndef BOURSE_TESTS_SUPPORT_SAMPLE_WORK_H
#define BOURSE_TESTS_SUPPORT_SAMPLE_WORK_H

#include "planner/layout/plan.h"

/* Takes some 12 MB of memory while it is done, which no test is near to. */
#define SAMPLE_UNIT 2e9
/* Bytes, and bytes per second, that no test comes near to: memory and bandwidth, unless it says
 * otherwise. */
#define SAMPLE_ENOUGH 1e30

/* `count` steps called "a", "b" ... that do nothing yet, and no edges. For steps_destroy. */
struct steps *sample_steps(size_t count);
/* `units` of fp32, and of bf16, which a device may do at another rate or not at all. */
void sample_units(struct steps *steps, size_t step, int64_t fp32, int64_t bf16);
void sample_edge(struct steps *steps, uint32_t from, uint32_t to, int64_t bytes);
/* Weights of which the step needs `count` sets of so many bytes each, from `first` on. */
void sample_weights(struct steps *steps, size_t step, uint32_t first, uint32_t count,
                    int64_t bytes);

struct sample_device {
    struct device_profile profile;
    struct cost_device cost;
};

/* Takes so long for a unit of each type; 0: cannot do it. Power and memory unknown. */
void sample_device(struct sample_device *device, double fp32_s, double bf16_s);
void sample_memory(struct sample_device *device, double bytes);
void sample_power(struct sample_device *device, double watts);
void sample_stream(struct sample_device *device, double bytes_per_s);

/* Memories 0 to count - 1, each linked to each, a port for each direction of each pair. */
struct topology *sample_links(uint32_t count, double latency_s, double bandwidth);
/* The same as a fabric in machines of `size` each, the last of what is left, and links of another
 * kind between them. */
struct topology *sample_fabrics(uint32_t count, uint32_t size, double latency_s, double bandwidth);

/* The caller's; that there is one is asserted. */
struct plan *sample_plan(const struct plan_input *input);

#endif
