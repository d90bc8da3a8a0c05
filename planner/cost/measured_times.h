/* The store holds the times that pieces of work were measured to take on the devices of a market.
 * The reader says which time to expect for a piece of work.
 *
 * The store has a row for each work, size of its inputs, and class of devices. The row has the time
 * on the fastest device of the class. A device that is unlike its class has rows of its own. The
 * paces (pace.h) of slower devices stand beside the rows:
 *
 *    work  size  class     device   samples  median       class     device   pace
 *    0     97    nvidia.a                12  1.0 s        nvidia.a  ee01...  1.5
 *    0     97    nvidia.a  ee01...        5  1.7 s
 *    0     97    cpu.x                    3  9.0 s
 *
 * The reader answers for one work and size: on all devices together, where each class counts by its
 * samples, or on one kind of devices. A device without rows of its own takes the time of its class
 * at its pace. The caller numbers the works. */
#ifndef BOURSE_PLANNER_COST_MEASURED_TIMES_H
#define BOURSE_PLANNER_COST_MEASURED_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MEASURED_WORKS = 1024, /* most works in one store */
    MEASURED_CLASS_SIZE = 129,
    MEASURED_ACCOUNT_SIZE = 65,
    MEASURED_DEVICE_SIZE = 33,
};

struct measured_place {
    char device_class[MEASURED_CLASS_SIZE]; /* instrument; "" when the device names none */
    /* Provider's key and device's id; "": the whole class. */
    char account[MEASURED_ACCOUNT_SIZE], device[MEASURED_DEVICE_SIZE];
};

struct measured_row {
    uint32_t work; /* below MEASURED_WORKS */
    uint32_t size; /* of the inputs, in the steps of the caller */
    struct measured_place place;
    uint32_t samples, outliers; /* counted samples, above 0, and samples left out */
    int64_t median_ns;          /* above 0 */
    int64_t p90_ns;             /* -1: too few samples */
    int64_t at_ms;              /* log time of the newest sample */
};

struct measured_pace {
    struct measured_place place; /* a device */
    uint32_t pace;               /* in thousandths of its class's fastest, above 0 */
};

/* A kind groups devices with the same expected time: a class, or one device with a speed of its
 * own. The strings belong to the caller. */
struct measured_kind {
    const char *device_class;
    const char *account, *device; /* "": the whole class */
    uint32_t pace;                /* of the one device; 0: as fast as its class's fastest */
};

struct measured_time {
    int64_t median_ns; /* above 0 */
    int64_t p90_ns;    /* 90 % of the samples took at most this; -1: unknown for some */
    uint64_t samples;
    bool is_at_pace; /* the time comes from the class, scaled by the device's pace */
};

struct measured_times;

/* Returns an empty store, or NULL when memory is short. The caller owns the store. */
struct measured_times *measured_times_create(void);
void measured_times_destroy(struct measured_times **self);

/* measured_times_add() adds a copy of a row. measured_times_add_pace() adds the pace of a device,
 * which replaces an earlier pace of the device. Both return false, and change nothing, when memory
 * is short. */
bool measured_times_add(struct measured_times *times, const struct measured_row *row);
bool measured_times_add_pace(struct measured_times *times, const struct measured_pace *pace);

/* These functions return the rows, in the order in which they were added, and the paces. A returned
 * pointer is valid until the store changes. */
size_t measured_times_count(const struct measured_times *times);
const struct measured_row *measured_times_row(const struct measured_times *times, size_t index);
size_t measured_times_pace_count(const struct measured_times *times);
const struct measured_pace *measured_times_pace(const struct measured_times *times, size_t index);

/* Returns true when the device has rows or a pace of its own. *ret_pace is 0 without a pace. */
bool measured_times_are_unlike(const struct measured_times *times, const char *account,
                               const char *device, uint32_t *ret_pace);

/* Finds the time on all devices: real ones, or simulated ones, whose times come from a model. The
 * 90th percentile is that of the slowest device. Returns false when nothing was measured. */
bool measured_times_of_all(const struct measured_times *times, uint32_t work, uint32_t size,
                           bool is_simulated, struct measured_time *ret_time);
/* Finds the time on one kind of devices. Returns false when nothing was measured there. */
bool measured_times_of_kind(const struct measured_times *times, uint32_t work, uint32_t size,
                            const struct measured_kind *kind, struct measured_time *ret_time);

/* Returns the time to expect when the job states that the work takes `said_ns`, by history_blend().
 * 0: the job states nothing. */
int64_t measured_time_blend(const struct measured_time *time, int64_t said_ns);

#endif
