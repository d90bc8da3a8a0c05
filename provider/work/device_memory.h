/* provider/work/device_memory.h adds up what the devices for kernels hold in their memory, and what
 * that has saved since the agent's start. It also gives a device's memory to one lane at a time.
 * Thread-safe. */
#ifndef BOURSE_PROVIDER_WORK_DEVICE_MEMORY_H
#define BOURSE_PROVIDER_WORK_DEVICE_MEMORY_H

#include "provider/tensor/held_figures.h"

#include <stddef.h>
#include <stdint.h>

struct device_memory;

/* Returns NULL when memory is short. Devices are numbered below `devices`, which is at least 1. */
struct device_memory *device_memory_create(size_t devices);
void device_memory_destroy(struct device_memory **self);

/* Notes the figures of one run. *held_bytes is what the run's lane held before, and becomes what it
 * holds now. */
void device_memory_note(struct device_memory *memory, size_t device,
                        const struct held_figures *figures, uint64_t *held_bytes);
/* Notes that the lane holds nothing any more. */
void device_memory_forget(struct device_memory *memory, size_t device, uint64_t *held_bytes);
/* Takes the device for one lane, and waits while another lane has it. A lane gives a device back
 * when its jail has ended. */
void device_memory_take(struct device_memory *memory, size_t device);
void device_memory_give(struct device_memory *memory, size_t device);
/* Returns the sums of one device. */
struct held_figures device_memory_read(struct device_memory *memory, size_t device);

#endif
