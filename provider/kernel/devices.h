/* provider/kernel/devices.h keeps the devices that one interface finds on this machine, and what
 * they can do. */
#ifndef BOURSE_PROVIDER_KERNEL_DEVICES_H
#define BOURSE_PROVIDER_KERNEL_DEVICES_H

#include "provider/kernel/interface.h"
#include "provider/session/device_fault.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { DEVICES_MAX = 16, DEVICES_TEXT_SIZE = 128, DEVICES_ID_SIZE = 48 };

struct device_facts {
    const struct kernel_interface *interface;
    const void *library; /* the interface's loaded functions */
    void *handle;        /* OpenCL: the device */
    int number;          /* CUDA: the device */
    /* The id of the device. A jail that has only this device's files shows the same id. The id is
     * the place on the PCI bus, as in 0000:3b:00.0, or the UUID of an instance of MIG. For a device
     * of OpenCL without a known place, the id is the number in the list. */
    char id[DEVICES_ID_SIZE];
    /* An instance of MIG: the place of its whole device, and its numbers there. "": no instance. */
    char whole[DEVICES_ID_SIZE];
    unsigned gpu_instance, compute_instance;
    /* OpenCL: the place of the device on the PCI bus. "": the library does not tell it. */
    char place[DEVICES_ID_SIZE];
    bool is_split; /* OpenCL: the device is split by MIG, so nobody can use all of it */
    char platform_name[DEVICES_TEXT_SIZE];
    char name[DEVICES_TEXT_SIZE];
    char vendor[DEVICES_TEXT_SIZE];
    char driver[DEVICES_TEXT_SIZE];
    /* The code that the device runs, as in sm_90. "": the device's compiler makes the code. */
    char target[16];
    const char *kind; /* "gpu", "cpu" or "accelerator" */
    uint64_t memory_bytes;
    bool has_host_memory;  /* buffers are in this machine's memory, and the device has none */
    uint64_t buffer_bytes; /* of one buffer */
    uint64_t local_bytes;
    uint32_t compute_units;
    uint64_t work_group; /* work-items of one work-group */
    bool has_fp64, has_fp16;
};

struct devices {
    struct device_facts items[DEVICES_MAX]; /* in the library's order */
    size_t count;
    enum device_fault fault; /* why none was found, or why the one wanted is not among them */
};

/* Writes the devices of one interface as one line of JSON. Without devices, the line has
 * `problem`. */
bool devices_print(FILE *out, enum kernel_api api, const struct devices *devices,
                   const char *problem);

#endif
