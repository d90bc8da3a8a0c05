/* This file makes steps, devices and links for tests of plans, with round figures. A unit of work
 * is a product of 2 x 10^9 operations. */
#ifndef BOURSE_TESTS_SUPPORT_SAMPLE_WORK_H
#define BOURSE_TESTS_SUPPORT_SAMPLE_WORK_H

#include "planner/layout/plan.h"

/* A unit of work takes some 12 MB of memory while it runs; no test comes near to this bound. */
#define SAMPLE_UNIT 2e9
/* Memory in bytes, and bandwidth in bytes per second, that no test comes near to. A device has them
 * unless the test says otherwise. */
#define SAMPLE_ENOUGH 1e30

/* Makes `count` steps called "a", "b" ... that do nothing yet, without edges. The caller calls
 * steps_destroy. */
struct steps *sample_steps(size_t count);
/* Sets the step's work: units of fp32, and of bf16, which a device may do at another rate or not at
 * all. */
void sample_units(struct steps *steps, size_t step, int64_t fp32, int64_t bf16);
void sample_edge(struct steps *steps, uint32_t from, uint32_t to, int64_t bytes);
/* Adds weights to a step: `count` sets of so many bytes each, from set `first` on. */
void sample_weights(struct steps *steps, size_t step, uint32_t first, uint32_t count,
                    int64_t bytes);

struct sample_device {
    struct device_profile profile;
    struct cost_device cost;
};

/* Makes a device that takes so long for a unit of each type; 0: the device cannot do the type.
 * Power and memory are unknown. */
void sample_device(struct sample_device *device, double fp32_s, double bf16_s);
void sample_memory(struct sample_device *device, double bytes);
void sample_power(struct sample_device *device, double watts);
void sample_stream(struct sample_device *device, double bytes_per_s);

/* Makes memories 0 to count - 1, each linked to each, with a port for each direction of each
 * pair. */
struct topology *sample_links(uint32_t count, double latency_s, double bandwidth);
/* The same as a fabric in machines of `size` memories each (the last has the rest), with links of
 * another kind between machines. */
struct topology *sample_fabrics(uint32_t count, uint32_t size, double latency_s, double bandwidth);

/* Plans, and fails the test when there is no plan. The caller owns the plan. */
struct plan *sample_plan(const struct plan_input *input);

#endif
