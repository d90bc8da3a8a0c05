/* provider/device/kernel_device.h knows the devices of this machine that run kernels.
 *
 * The agent never loads a library of OpenCL or CUDA: such libraries are large, and may crash or
 * hang. The program bourse-kernel lists the devices in a trial jail and measures them there
 * (provider/executors/kernel.h). This module reads the list and names what is in it. */
#ifndef BOURSE_PROVIDER_DEVICE_KERNEL_DEVICE_H
#define BOURSE_PROVIDER_DEVICE_KERNEL_DEVICE_H

#include "base/problem.h"
#include "base/requirement.h"
#include "formats/kernel/kernel_op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KERNEL_DEVICES_MAX = 16,
};

struct kernel_device {
    enum kernel_api api;
    uint32_t index; /* its number in the list, from 0 */
    char id[48];    /* how bourse-kernel finds the device again */
    /* An instance of MIG: the place of its whole device, and its numbers there. "": no instance. */
    char whole[48];
    int gpu_instance, compute_instance;
    char name[128]; /* as the library says it, whole */
    char vendor[ATTRIBUTE_TEXT_SIZE];
    char platform[ATTRIBUTE_TEXT_SIZE];
    char driver[ATTRIBUTE_TEXT_SIZE];
    /* The code that the device runs, as in sm_90. "": the device's compiler makes the code. */
    char target[16];
    char kind[16]; /* gpu, cpu or accelerator */
    uint64_t memory_bytes, local_bytes;
    uint32_t compute_units;
    uint64_t work_group; /* work-items of one work-group, at most */
    bool has_fp64, has_fp16;
    char place[48]; /* OpenCL: its place on the PCI bus; "": not known */
    int node;       /* of a maker with NVIDIA's driver: the number of its file; -1: not known */
    int render;     /* of another maker: the number of /dev/dri/renderD...; -1: not known */
    /* An instance of MIG: the numbers of its two files in /dev/nvidia-caps; -1: not known. */
    int caps[2];
    /* Measured in a trial jail, of one slot; 0: not measured. A device that is offered has both. */
    int64_t mflops, bandwidth_bytes;
    /* Measured likewise: float32 products. 0: the device computes none, for the reason in
     * `no_gemm`. */
    int64_t gemm_mflops;
    char no_gemm[256];
    /* Measured likewise: products whose factors are rounded to these types. 0: none. */
    int64_t tf32_mflops, bf16_mflops;
    /* The same products without the copies: their factors are in the device's memory already. */
    int64_t gemm_held_mflops, tf32_held_mflops, bf16_held_mflops;
    /* The library by the device's maker that computes the products, as in "cuBLASLt 13.1.0". "":
     * bourse's own kernel does; `no_library` says why, or is "" where no such library is known. */
    char library[64], no_library[256];
    /* Why the trial jail could not use the device. "": the device works, or was never tried. */
    char unusable[256];
};

/* The devices of one interface. */
struct kernel_device_list {
    enum kernel_api api;
    struct kernel_device items[KERNEL_DEVICES_MAX];
    size_t count;
    bool is_known;     /* the machine was asked */
    char problem[256]; /* why there are no devices, in one line */
};

/* Reads what bourse-kernel prints. Returns false when the text is no list of this interface. */
bool kernel_device_read(const char *text, size_t length, enum kernel_api api,
                        struct kernel_device_list *ret_list);

/* Finds the numbers in /dev of the files of a device with NVIDIA's driver, by its place. `folder`
 * is KERNEL_DEVICE_FOLDER; only tests give another. */
void kernel_device_learn_node(const char *folder, struct kernel_device *device);
#define KERNEL_DEVICE_FOLDER "/proc/driver/nvidia"
/* Finds the number of the file of another maker's device, by its place. `folder` is
 * KERNEL_DEVICE_PCI; only tests give another. */
void kernel_device_learn_render(const char *folder, struct kernel_device *device);
#define KERNEL_DEVICE_PCI "/sys/bus/pci/devices"
/* Returns true when a jail of the device shows the files of others, too, because nobody tells which
 * are the device's. */
bool kernel_device_shows_others(const struct kernel_device *device);

/* Returns the device with this number, or the first device whose name contains the text. Returns
 * NULL when there is no such device; the problem then lists the devices. */
const struct kernel_device *kernel_device_find(const struct kernel_device_list *list,
                                               const char *wanted, struct problem *ret_problem);

/* Returns the kind for the market. A device made of processor cores is a processor, never a GPU. */
const char *kernel_device_kind(const struct kernel_device *device);
/* Writes the name under which the market trades the device, such as gpu.nvidia.h100-80gb. */
void kernel_device_instrument(const struct kernel_device *device,
                              char ret_instrument[ATTRIBUTE_TEXT_SIZE]);

/* Returns the device files that the driver of this device needs in a jail; NULL ends the list. A
 * device of processor cores needs none. For a GPU whose `node` or `render` is known, the list has
 * the file of this GPU alone, beside the driver's. An instance of MIG has its own two files, too,
 * and none of other instances. For a NULL device, the list has the files of every maker. */
const char *const *kernel_device_nodes(const struct kernel_device *device);

#endif
