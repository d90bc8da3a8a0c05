/* provider/idle/gpu_watch.h knows what the machine's NVIDIA devices do now, and which may be
 * offered.
 *
 * The agent never loads a library of NVIDIA: a watcher does (provider/jail/watcher.h), which is
 * bourse-kernel. This module asks the watcher for figures from time to time, and starts it again
 * when it has ended or hangs. provider/session/gpu_rule.h decides. Nothing here blocks. */
#ifndef BOURSE_PROVIDER_IDLE_GPU_WATCH_H
#define BOURSE_PROVIDER_IDLE_GPU_WATCH_H

#include "base/problem.h"
#include "provider/device/energy_gauge.h"
#include "provider/device/kernel_device.h"
#include "provider/idle/gpu_figures.h"
#include "provider/jail/launcher.h"
#include "provider/session/gpu_rule.h"

#include <jansson.h>
#include <sys/types.h>

enum { GPU_WATCH_DEVICES_MAX = 16 };
/* The time between two readings; the longer one holds without terms of the owner, when only the
 * loss of a device matters. */
#define GPU_WATCH_LOOK_NS INT64_C(5000000000)
#define GPU_WATCH_LONG_LOOK_NS INT64_C(15000000000)
/* A watcher that does not answer for this time is killed. */
#define GPU_WATCH_PATIENCE_NS INT64_C(30000000000)
/* A watcher that has ended is started again after this time. */
#define GPU_WATCH_RETRY_NS INT64_C(15000000000)

struct gpu_watch;

/* All pointers are borrowed for as long as the watch lives. */
struct gpu_watch_config {
    struct launcher *launcher;
    const char *kernel_path; /* the installed bourse-kernel */
    const struct gpu_terms *terms;
    struct energy_gauges *gauges; /* gets each reading; NULL: nobody measures energy */
    pid_t self;                   /* the agent, whose programs are not those of others */
};

/* Returns NULL when memory is short. */
struct gpu_watch *gpu_watch_create(const struct gpu_watch_config *config);
/* Kills the watcher, too. */
void gpu_watch_destroy(struct gpu_watch **self);
/* The driver's own part of a job, its context and code, may take so much beyond the owner's limit
 * of memory. */
#define GPU_WATCH_CONTEXT_BYTES (INT64_C(1) << 30)
/* Adds a device under the label that the market knows. Jobs may take `allowed_bytes` of its memory;
 * 0: all. A device of another maker has no figures and
 * is always offered. Devices beyond GPU_WATCH_DEVICES_MAX are left out. */
void gpu_watch_add(struct gpu_watch *watch, const struct kernel_device *device, const char *label,
                   int64_t allowed_bytes, int64_t now_ns);

/* Obeys the terms of its config, which have changed, from the next reading on. */
void gpu_watch_change(struct gpu_watch *watch);

/* Starts the watcher, asks it and reads its answer, whichever is due. Returns true when the devices
 * were judged anew, or when time alone changed an order. */
bool gpu_watch_turn(struct gpu_watch *watch, int64_t now_ns);
/* Returns a descriptor that is readable when gpu_watch_turn has something to do, or -1. */
int gpu_watch_fd(const struct gpu_watch *watch);
/* Returns the time at which gpu_watch_turn must be called even if nothing came. */
int64_t gpu_watch_due_ns(const struct gpu_watch *watch);

/* Returns the number of devices, and says of one what holds now. */
size_t gpu_watch_count(const struct gpu_watch *watch);
const char *gpu_watch_label(const struct gpu_watch *watch, size_t index);
enum idle_order gpu_watch_order(const struct gpu_watch *watch, size_t index);
bool gpu_watch_is_lost(const struct gpu_watch *watch, size_t index);
void gpu_watch_reason(const struct gpu_watch *watch, size_t index, int64_t now_ns,
                      char ret_text[IDLE_REASON_SIZE]);
/* Says what the device does, and how old that is. Returns false when nothing is known of it. */
bool gpu_watch_figures(const struct gpu_watch *watch, size_t index, int64_t now_ns,
                       struct gpu_figures *ret_figures, int64_t *ret_age_ns);
/* Returns true when the agent's programs take more of the device's memory than the owner allows, by
 * the last figures. */
bool gpu_watch_exceeds(const struct gpu_watch *watch, size_t index, int64_t *ret_used_bytes,
                       int64_t *ret_allowed_bytes);
/* Returns why no device has figures now, or "". */
const char *gpu_watch_problem(const struct gpu_watch *watch);
/* Returns the devices for `status`, or NULL when memory is short. */
json_t *gpu_watch_json(const struct gpu_watch *watch, int64_t now_ns);

#endif
