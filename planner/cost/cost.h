/* planner/cost/cost.h - how long an operation takes on a device and what energy it uses: the
 * roofline.
 *
 *     t = launch + max( F / (eta_c Peak), B / (eta_b Bandwidth), L / Links, S / Storage )      energy = t x power
 *     eta_c = eta x d1 / (d1 + h1) x d2 / (d2 + h2) x d3 / (d3 + h3)
 *
 * F, B, L and S are the operation's (operations.h). Peaks and bandwidth are the device's best,
 * dense, so that without a calibration, all eta 1 and all h and the launch 0, t is the least that
 * the device can need: the bound. A calibration says what the device reaches of it, for each class
 * of operations: h is the extent of a dimension at which half of the efficiency is there (Hockney's
 * n_1/2).
 *
 * Sums of products run at the peak of their type, or that times the sparsity factor if an operand
 * is declared 2:4 sparse and the device has the mode. What goes element by element is computed in
 * fp64 or fp32, whatever it is stored in: at the fp32 rate, or, where that is not known, no faster
 * than products of its type.
 *
 * What a device cannot do is said by name, never taken for slow; what is not known is never taken
 * for fast: of what the operation needs there has to be a figure that bounds its time. For the
 * bound of one operation an unknown memory is not held against a device, and an unknown bandwidth
 * or fp32 rate leaves the others to bound t; `lacks` says so. That is a bound and no estimate:
 * whoever compares devices takes none that lacks a memory or a bandwidth (plan.h). A figure worked
 * out of others is as good as the worst of them. Pure. */
#ifndef BOURSE_PLANNER_COST_COST_H
#define BOURSE_PLANNER_COST_COST_H

#include "planner/cost/history.h"
#include "planner/cost/operations.h"
#include "planner/cost/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a device reaches in one class of operations (calibrate.h finds it). */
struct cost_calibration {
    uint32_t samples;               /* it rests on; 0: there is none */
    uint32_t outliers;              /* left out of them */
    double launch_s;                /* >= 0 */
    double compute_efficiency;      /* above 0, at most 1 */
    double bandwidth_efficiency;    /* above 0, at most 1 */
    double half[OPERATION_EXTENTS]; /* >= 0 */
    double p90;     /* >= 1: nine of ten took at most as many times what the model says */
    double reached; /* bytes per second, the most that any sample moved: stands for a bandwidth that
                       is not known; 0: none */
};

struct cost_device {
    const struct device_profile *profile;
    const struct cost_calibration *calibrations; /* by operation_class; NULL: none */
    struct figure storage;                       /* bytes per second */
    struct figure stream; /* bytes per second at which weights that do not fit are fetched, again at
                             each call; unknown: what does not fit is refused */
};

enum cost_term {
    COST_COMPUTE,
    COST_BANDWIDTH,
    COST_LINKS,
    COST_STORAGE,
    COST_STREAM, /* of weights that do not fit */
    COST_TERMS,
};

enum cost_status {
    COST_OK,
    COST_BAD_OPERATION, /* operation_measure refuses it */
    COST_NO_DTYPE,      /* no rate of that type is known */
    COST_NO_MEMORY,
    COST_NO_RATE, /* of look-ups in tables */
    COST_NO_LINK, /* nor how fast the device's links are */
    COST_NO_STORAGE,
    COST_UNKNOWN_BANDWIDTH, /* and nothing else bounds it */
    COST_UNKNOWN_MEMORY,    /* of a step in a plan only: that it fits cannot be shown */
};

/* What is not known of a device and would bound what it does, or its room for it. */
enum cost_lack { COST_LACKS_RATE = 1, COST_LACKS_BANDWIDTH = 2, COST_LACKS_MEMORY = 4 };

struct cost {
    struct operation_size size;
    double operations, bytes;        /* of it: bytes read and written in the device's memory */
    struct figure terms[COST_TERMS]; /* seconds; unknown: no figure, or nothing of that to do */
    enum cost_term bound;            /* the largest */
    struct figure bound_s;           /* the least that the device can need */
    struct figure time_s;            /* what it takes: as often more as less */
    double p90_s;                    /* what nine of ten take at most; 0: unknown */
    uint32_t samples;                /* measurements that time_s rests on */
    struct figure energy_j;          /* unknown when the power is */
    uint32_t passes;                 /* cost_float32: products made for one; else 1 */
    enum dtype dtype;                /* that it was worked out for */
    unsigned
        lacks; /* cost_lack, of what the operation needs; what was measured makes up for rates */
    bool is_as_dense; /* declared sparse, and the device has no such mode */
    bool is_widened; /* weights are stored in a type of which the device has no rate: at that of the
                        operation's */
};

/* "NO_MEMORY"; docs/errors.md lists them. */
const char *cost_status_name(enum cost_status status);

/* The bound: no calibration, no storage, nothing streamed. Any status but OK leaves in `ret_cost`
 * the operation's size, of BAD_OPERATION nothing. */
enum cost_status cost_estimate(const struct device_profile *profile,
                               const struct operation *operation, struct cost *ret_cost);

/* The same with all that is known of a device. time_s is never below bound_s. */
enum cost_status cost_predict(const struct cost_device *device, const struct operation *operation,
                              struct cost *ret_cost);

/* Lets what was measured speak: `history` is of samples of the operation's kind, type and like
 * shapes on a device of the same kind, in millionths of bound_s. Measurements may be below the
 * bound: a cache is faster than the memory. Where the model lacks a bandwidth they alone count. */
void cost_learn(const struct history_summary *history, struct cost *cost);

/* Of a matmul or gemm for float32 arrays, whatever its own dtype. A device without an fp32 rate
 * splits each element into parts whose products keep float32's 24 bits: three parts of bf16 take 6
 * passes (XLA's "highest" precision), two of tf32 or fp16 take 3 (Ootomo and Yokota 2022). The
 * fastest of these is taken, and said. */
enum cost_status cost_float32(const struct device_profile *profile,
                              const struct operation *operation, struct cost *ret_cost);

/* A line for people on a status that is not OK: `name` has no such rate, or not the room. `cost` is
 * what the refusal left. */
void cost_explain(enum cost_status status, const char *name, const struct device_profile *profile,
                  const struct operation *operation, const struct cost *cost, char *ret_text,
                  size_t capacity);

/* What the time costs at `price_micro` (>= 0) per hour, rounded up to a micro-credit. False: the
 * time is unknown, or it is more than an int64 holds. */
bool cost_price(const struct cost *cost, int64_t price_micro, int64_t *ret_micro);

#endif
