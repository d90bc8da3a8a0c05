/* provider/session/gpu_rule.h decides whether one GPU may be offered now, from its figures and what
 * the owner allows (`gpu:` of the config).
 *
 * The GPU is in use while a sign is seen, and for a while after the last one. A sign is a program
 * of others that uses the GPU, heat, or power above the owner's limit. When the owner wants a
 * figure watched and the device does not tell it, this is a sign, too. Heat and power stay a sign
 * until they are clearly below the limit, so that a GPU at its limit does not come and go.
 *
 *     WORK -> HOLD -> SAVE -> RETURN     a sign; each step goes back to WORK
 *
 * In HOLD the GPU is not offered, and the programs that use it for jobs stand still. What such a
 * program has given the GPU already runs to its end: no kernel can be stopped halfway. SAVE and
 * RETURN are those of idle_rule.h. The steps follow from the time alone, because a driver that
 * hangs gives no readings. SAVE always has its whole time. A GPU that fell off the bus goes to
 * RETURN at once, whatever the owner allows. The time is an argument; this file reads no clock and
 * no file. */
#ifndef BOURSE_PROVIDER_SESSION_GPU_RULE_H
#define BOURSE_PROVIDER_SESSION_GPU_RULE_H

#include "provider/session/idle_rule.h"

#include <stdbool.h>
#include <stdint.h>

/* Heat stops being a sign 5 degrees below the limit, and power a tenth below the limit. */
enum { GPU_COOLER_CELSIUS = 5, GPU_POWER_PART = 10 };

enum gpu_programs {
    GPU_PROGRAMS_COMPUTE, /* programs of others that compute on the GPU are signs */
    GPU_PROGRAMS_ANY,     /* programs that only draw are signs, too */
    GPU_PROGRAMS_RUN,     /* no program is a sign */
};

/* The owner says here when a GPU may be offered. */
struct gpu_terms {
    bool is_set; /* false: only the loss of a GPU counts */
    int64_t after_ns, give_back_ns;
    enum gpu_programs programs;
    int32_t celsius; /* a GPU as hot as this is in use; 0: heat is not looked at */
    /* A GPU that has taken this power for this time is in use; 0: power does not count. */
    int64_t milliwatts, power_for_ns;
};

/* One look at the GPU. A value counts only if it was seen. */
struct gpu_reading {
    bool is_lost; /* the GPU fell off the bus */
    bool sees_compute, sees_graphics, sees_heat, sees_power;
    /* A program of others that computes on the GPU, or draws with it; "": none. */
    char compute[IDLE_NAME_SIZE], graphics[IDLE_NAME_SIZE];
    int32_t celsius;
    int64_t milliwatts;
};

enum gpu_cause {
    GPU_CAUSE_START, /* nothing is known of the time before the agent started */
    GPU_CAUSE_PROGRAM,
    GPU_CAUSE_HEAT,
    GPU_CAUSE_POWER,
    GPU_CAUSE_BLIND, /* nobody tells what the owner wants watched */
    GPU_CAUSE_LOST,
};

struct gpu_rule {
    struct gpu_terms terms;
    enum gpu_cause cause;      /* the last sign */
    int64_t used_ns;           /* time of that sign */
    int64_t seen_ns;           /* time of the last reading */
    enum idle_order order;     /* now */
    int64_t order_ns;          /* time since when the order holds */
    bool is_lost;              /* by the last reading */
    bool is_hot, is_over;      /* heat, or power, has not fallen clearly below the limit since */
    int64_t over_ns;           /* the power is at the limit since then; -1: it is not */
    char name[IDLE_NAME_SIZE]; /* the sign's name, or its figure */
    int32_t celsius;
    int64_t milliwatts;
};

/* The GPU counts as in use at the start when there are terms. `now_ns` is 0 or more. */
void gpu_rule_init(struct gpu_rule *rule, const struct gpu_terms *terms, int64_t now_ns);
/* The owner changed the terms, which hold from the next reading on. */
void gpu_rule_change(struct gpu_rule *rule, const struct gpu_terms *terms);
/* Takes a reading, and returns the order from now on. */
enum idle_order gpu_rule_see(struct gpu_rule *rule, int64_t now_ns,
                             const struct gpu_reading *reading);
/* Takes note that time passed without a reading, and returns the order from now on. A GPU that is
 * withheld takes the next step when its time has come; only a reading puts it back on offer. */
enum idle_order gpu_rule_wait(struct gpu_rule *rule, int64_t now_ns);
/* Returns the time at which gpu_rule_wait gives another order; INT64_MAX: never. */
int64_t gpu_rule_due_ns(const struct gpu_rule *rule);
/* Returns the order that holds now. */
enum idle_order gpu_rule_order(const struct gpu_rule *rule);
/* Says what the last sign was and when: "python3 (process 3182) uses it". Without a sign since the
 * start, the text says for how long the GPU was watched. */
void gpu_rule_reason(const struct gpu_rule *rule, int64_t now_ns, char ret_text[IDLE_REASON_SIZE]);

#endif
