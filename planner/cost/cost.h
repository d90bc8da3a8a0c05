/* The cost model says how long an operation takes on a device and how much energy it uses. It is a
 * roofline.
 *
 *    t = launch + max( F / (eta_c Peak), B / (eta_b Bandwidth), L / Links, S / Storage )
 *    energy = t x power
 *    eta_c = eta x d1 / (d1 + h1) x d2 / (d2 + h2) x d3 / (d3 + h3)
 *
 * F, B, L and S belong to the operation (operations.h). Peaks and bandwidth are the best that the
 * device reaches, for dense operands. Without a calibration, every eta is 1, and every h and the
 * launch are 0. Then t is the least time that the device can need: the bound. A calibration says
 * which share of these figures the device reaches, for each class of operations. h is the extent of
 * a dimension at which half of the efficiency is reached (Hockney's n_1/2).
 *
 * Sums of products run at the peak of their type. The sparsity factor multiplies the peak if an
 * operand is declared 2:4 sparse and the device has that mode. Element-wise operations are computed
 * in fp64 or fp32, whatever type is stored. They run at the fp32 rate. Where the fp32 rate is
 * unknown, they run no faster than products of their type.
 *
 * An operation that a device cannot run is refused by name; it is never taken for slow. An unknown
 * figure is never taken for fast: some known figure has to bound the operation's time. For the
 * bound of one operation, an unknown memory does not refuse a device. An unknown bandwidth or fp32
 * rate leaves the other figures to bound t, and `lacks` reports the gap. A time with such a gap is
 * a bound and no estimate. A comparison of devices leaves out a device that lacks a memory or a
 * bandwidth (plan.h). A figure worked out from others is as good as the worst of them. */
#ifndef BOURSE_PLANNER_COST_COST_H
#define BOURSE_PLANNER_COST_COST_H

#include "planner/cost/history.h"
#include "planner/cost/operations.h"
#include "planner/cost/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Efficiency of a device in one class of operations; calibrate.h computes it. */
struct cost_calibration {
    uint32_t samples;               /* samples behind the figures; 0: there is none */
    uint32_t outliers;              /* samples that were left out */
    double launch_s;                /* >= 0 */
    double compute_efficiency;      /* above 0, at most 1 */
    double bandwidth_efficiency;    /* above 0, at most 1 */
    double half[OPERATION_EXTENTS]; /* >= 0 */
    /* Factor, >= 1: nine of ten samples took at most this many times the modelled time. */
    double p90;
    /* Largest rate of any sample, in bytes per second. It stands in for an unknown bandwidth; 0
     * means none. */
    double reached;
};

struct cost_device {
    const struct device_profile *profile;
    const struct cost_calibration *calibrations; /* indexed by operation_class; NULL: none */
    struct figure storage;                       /* bytes per second */
    /* Rate in bytes per second at which weights that do not fit are fetched again at each call.
     * When it is unknown, an operation that does not fit is refused. */
    struct figure stream;
};

enum cost_term {
    COST_COMPUTE,
    COST_BANDWIDTH,
    COST_LINKS,
    COST_STORAGE,
    COST_STREAM, /* fetching weights that do not fit */
    COST_TERMS,
};

enum cost_status {
    COST_OK,
    COST_BAD_OPERATION, /* operation_measure refuses the operation */
    COST_NO_DTYPE,      /* no rate of the operation's type is known */
    COST_NO_MEMORY,
    COST_NO_RATE, /* no rate of look-ups in tables is known */
    COST_NO_LINK, /* the speed of the device's links is unknown */
    COST_NO_STORAGE,
    COST_UNKNOWN_BANDWIDTH, /* bandwidth unknown, and no other figure bounds the time */
    /* A step in a plan cannot be shown to fit. Plans alone use this status. */
    COST_UNKNOWN_MEMORY,
};

/* Unknown figures of a device that would bound its time or its memory. */
enum cost_lack { COST_LACKS_RATE = 1, COST_LACKS_BANDWIDTH = 2, COST_LACKS_MEMORY = 4 };

struct cost {
    struct operation_size size;
    double operations, bytes; /* bytes read and written in the device's memory */
    /* Terms in seconds. A term is unknown without a figure, or with nothing of its kind to do. */
    struct figure terms[COST_TERMS];
    enum cost_term bound;   /* the largest term */
    struct figure bound_s;  /* the least that the device can need */
    struct figure time_s;   /* the expected time: as often more as less */
    double p90_s;           /* time that nine of ten runs take at most; 0: unknown */
    uint32_t samples;       /* measurements behind time_s */
    struct figure energy_j; /* unknown when the power is */
    uint32_t passes;        /* products for one product in cost_float32; else 1 */
    enum dtype dtype;       /* type of the computation */
    /* Bits of cost_lack that the operation needs. Measurements make up for unknown rates. */
    unsigned lacks;
    /* The operation is declared sparse, and the device has no such mode. */
    bool is_as_dense;
    /* Weights are stored in a type without a known rate; the time uses the rate of the operation's
     * type. */
    bool is_widened;
};

/* Returns the name of a status, such as "NO_MEMORY"; docs/errors.md lists the names. */
const char *cost_status_name(enum cost_status status);

/* Computes the bound: no calibration, no storage, nothing streamed. Any status but OK leaves the
 * operation's size in `ret_cost`; BAD_OPERATION leaves nothing. */
enum cost_status cost_estimate(const struct device_profile *profile,
                               const struct operation *operation, struct cost *ret_cost);

/* Computes the cost with everything known about a device. time_s is never below bound_s. A failure
 * leaves behind what cost_estimate does. */
enum cost_status cost_predict(const struct cost_device *device, const struct operation *operation,
                              struct cost *ret_cost);

/* Blends measurements into the cost. `history` holds samples of the operation's kind, type and
 * similar shapes on a device of the same kind, in millionths of bound_s. Measurements may be below
 * the bound, since a cache is faster than the memory. When the model lacks a bandwidth, the
 * measurements alone count. */
void cost_learn(const struct history_summary *history, struct cost *cost);

/* Computes the cost of a matmul or gemm for float32 arrays, whatever the operation's own type. A
 * device without an fp32 rate splits each element into parts whose products keep the 24 bits of
 * float32. Three parts of bf16 take 6 passes (XLA's "highest" precision). Two parts of tf32 or fp16
 * take 3 (Ootomo and Yokota 2022). The fastest choice is taken, and `ret_cost` names it. */
enum cost_status cost_float32(const struct device_profile *profile,
                              const struct operation *operation, struct cost *ret_cost);

/* Writes a line for people about a status that is not OK. `name` is the device, and `cost` is what
 * the refusal left. */
void cost_explain(enum cost_status status, const char *name, const struct device_profile *profile,
                  const struct operation *operation, const struct cost *cost, char *ret_text,
                  size_t capacity);

/* Computes the price of the time at `price_micro` (>= 0) per hour, rounded up to a micro-credit.
 * Returns false when the time is unknown or the price exceeds an int64. */
bool cost_price(const struct cost *cost, int64_t price_micro, int64_t *ret_micro);

#endif
