/* provider/device/energy_meter.h measures the energy of work on this machine's cores.
 *
 * The kernel counts the energy of processor packages and of their memory (RAPL, below
 * /sys/class/powercap). The counters cover the whole machine. So a piece of work gets a share: its
 * CPU time over the busy time of all cores meanwhile, which /proc/stat has. Idle power is shared in
 * the same way. The counters are mostly for root's eyes. The meter is therefore opened before the
 * agent gives up root, and keeps the files open. Thread-safe. */
#ifndef BOURSE_PROVIDER_DEVICE_ENERGY_METER_H
#define BOURSE_PROVIDER_DEVICE_ENERGY_METER_H

#include <stdbool.h>
#include <stdint.h>

/* /proc/stat counts hundredths of a second, so shorter work is not measured. */
#define ENERGY_METER_LEAST_NS INT64_C(100000000)
/* A counter starts again from 0 after minutes at full load, so a meter in use is read so often. */
#define ENERGY_METER_LOOK_NS INT64_C(30000000000)

struct energy_meter;

/* Opens the counters below `root`, "" for the machine's own files. Returns NULL when there are
 * none, some cannot be read, or memory is short. */
struct energy_meter *energy_meter_open(const char *root);
void energy_meter_close(struct energy_meter **self);

/* The counters at a moment, all since the meter was opened. */
struct energy_mark {
    bool is_known;
    int64_t at_ns;     /* monotonic clock */
    int64_t energy_uj; /* of the machine */
    int64_t busy_ns;   /* of all cores together */
};
/* Reads the counters. `meter` may be NULL; the mark then is not known. */
struct energy_mark energy_meter_mark(struct energy_meter *meter, int64_t now_ns);
/* Reads the counters when the last look is long ago. `meter` may be NULL. */
void energy_meter_keep(struct energy_meter *meter, int64_t now_ns);

/* Returns the share of work that took `cpu_ns` between the marks, in microjoules. Returns -1 when
 * the share cannot be told. The function is pure. */
int64_t energy_meter_share_uj(const struct energy_mark *from, const struct energy_mark *until,
                              int64_t cpu_ns);

#endif
