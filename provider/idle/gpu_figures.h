/* provider/idle/gpu_figures.h reads the line in which bourse-kernel tells what NVIDIA's devices do
 * now (provider/kernel/nvml.h writes the line). A figure that the line lacks is not known. The code
 * is pure. */
#ifndef BOURSE_PROVIDER_IDLE_GPU_FIGURES_H
#define BOURSE_PROVIDER_IDLE_GPU_FIGURES_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GPU_PROCESSES_MAX = 64, GPU_ID_SIZE = 48, GPU_WHY_SIZE = 512 };

struct gpu_processes {
    bool is_known;
    bool has_unnamed; /* the driver names one or more of the processes by no number */
    pid_t pids[GPU_PROCESSES_MAX];
    int64_t memory_bytes[GPU_PROCESSES_MAX]; /* of the device's memory; -1: not known */
    size_t count;
};

/* A figure below 0 is not known. */
struct gpu_figures {
    char id[GPU_ID_SIZE];              /* place on the PCI bus */
    bool is_lost;                      /* it fell off the bus, and has not answered since */
    bool is_split;                     /* by MIG: memory, load and programs are not read then */
    int64_t memory_used, memory_total; /* bytes */
    int64_t busy_percent;
    int64_t power_mw, power_limit_mw;
    int64_t energy_mj; /* since the driver was loaded */
    int64_t celsius;
    struct gpu_processes compute, graphics;
    /* Why figures are not known, as in "power_mw: the device does not tell"; "": all are. */
    char why[GPU_WHY_SIZE];
};

/* Sets every figure to not known. A device that is lost stays lost. */
void gpu_figures_clear(struct gpu_figures *figures);
/* Returns true when one or more figures are known. */
bool gpu_figures_any(const struct gpu_figures *figures);
/* Reads a line, without its newline, for devices whose ids are set. The figures of a device that
 * the line does not name are cleared. Returns false with the problem, which is the line's own when
 * bourse-kernel could not read anything; the figures of all devices are cleared then. A device that
 * is lost stays lost until a line has a figure of the device. */
bool gpu_figures_read(const char *line, size_t length, struct gpu_figures *figures, size_t count,
                      struct problem *ret_problem);

#endif
