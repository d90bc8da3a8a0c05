/* The report says what became of a job. It has time, money and bytes per device, and a timeline.
 *
 * The report gets every attempt with a result, as its provider signed it. The start of an attempt
 * is a claim of the agent's clock, which nobody checks. The market's own times are the job's
 * submission and its end. So attempts outside that time are moved into it, by as little as
 * possible. If one shift puts all of them into it, all move by that shift, since then the market's
 * clock is off. Otherwise the attempts of each device move by one shift of their own. What still
 * sticks out is cut; `moved_ns` and `cut` say so.
 *
 * A lane runs one attempt at a time. Results do not name their lane. So attempts are assigned to as
 * few lanes as their times allow, and never to more than the slots of the device's leases:
 *
 *     submitted   first start                      ended
 *     |  waiting  |------------ span ---------------|
 *     lane 1      |=0=|===2===|====4====|==6==|               share = busy / (lanes x span)
 *     lane 2      |==1==|==3==|        x5x|
 *
 * Figures are integers; times are in ns of the market's log. */
#ifndef BOURSE_PLANNER_PICTURE_REPORT_H
#define BOURSE_PLANNER_PICTURE_REPORT_H

#include "planner/picture/picture.h"
#include "planner/plan/plan_make.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REPORT_NAME_SIZE = 129,
    REPORT_SLOWEST = 5,
    REPORT_CAUSES = 32,
    REPORT_LANES_MAX = 1024, /* lanes of one device */
    REPORT_GROUPS = 17,
};

enum report_fate { REPORT_ACCEPTED, REPORT_FAILED, REPORT_LATE, REPORT_CANCELLED };

struct report_attempt {
    /* Inputs: */
    uint32_t device; /* index of the device */
    uint32_t index, attempt;
    uint8_t fate;         /* enum report_fate */
    bool simulated;       /* the times come from a model */
    const char *cause;    /* cause of a failure: a text that lives as long as the report */
    int64_t started_ns;   /* claim of the agent; then the market's time */
    int64_t busy_ns;      /* >= 0 */
    int64_t charge_micro; /* >= 0 */
    int64_t bytes_in;     /* -1: unknown */
    int64_t bytes_out;    /* >= 0 */
    /* Bytes of inputs that the device's memory had, and of those copied to it; >= 0. */
    int64_t held_bytes, copied_bytes;
    int64_t energy_uj; /* -1: not in the result */
    /* The source of the energy, in words; NULL: the result does not say. The text lives as long
     * as the report. */
    const char *energy_source;
    bool energy_is_estimate; /* not measured */
    /* The most memory of one process, and the greatest power that was read of the whole device
     * meanwhile; 0: not in the result. */
    int64_t peak_memory_bytes, peak_power_mw;
    int isolation; /* level of the jail in which it ran; -1: not in the result */
    /* Outputs: */
    uint32_t lane;  /* lane of its device, from 0 */
    int64_t end_ns; /* end of its bar; started_ns + busy_ns unless cut */
};

/* Sums over the attempts of one device, or of all devices. */
struct report_sum {
    uint32_t accepted, failed, late, cancelled; /* attempts */
    uint32_t simulated;                         /* simulated attempts among those */
    uint32_t lanes;
    int64_t busy_ns;
    /* busy / (lanes x span), or -1 when there is no span, or the busy time comes from a model. */
    int64_t share_ppm;
    int64_t charge_micro;
    int64_t bytes_in; /* -1: unknown for some attempt */
    int64_t bytes_out;
    int64_t held_bytes, copied_bytes; /* both 0: no device has a memory of its own */
    int64_t energy_uj;                /* sum over `energy_known` attempts */
    uint32_t energy_known;            /* 0: the energy is unknown, not zero */
    uint32_t energy_estimated; /* of `energy_known`, the attempts whose energy is an estimate */
    /* The greatest of one attempt; 0: no result says. */
    int64_t peak_memory_bytes, peak_power_mw;
    int isolation; /* the least of one attempt; -1: no result says */
};

/* Accepted subtasks with a predicted time: their predicted and their measured time. */
struct report_predicted {
    uint32_t subtasks;
    int64_t predicted_ns, measured_ns;
};

struct report_group { /* subtasks with the same prediction */
    /* Inputs: */
    uint32_t first, count;
    int64_t expect_ns; /* time of one subtask; 0: not stated */
    /* Outputs: */
    struct report_predicted predicted;
    int64_t median_ns; /* median of the accepted attempts; -1: none */
};

struct report_device {
    /* Inputs: */
    char provider[REPORT_NAME_SIZE], name[REPORT_NAME_SIZE]; /* names sent by others */
    uint32_t slots;                            /* slots of its leases together; 0: unknown */
    int64_t price_low_micro, price_high_micro; /* prices of its leases; -1: unknown */
    int64_t shared_bytes;                      /* fetched once for all its attempts; -1: unknown */
    /* Outputs: */
    struct report_sum sum;
    struct report_predicted predicted;
    int64_t moved_ns; /* correction of its clock, added to its times */
    uint32_t cut;     /* attempts that stuck out even so */
};

struct report_cause {
    const char *text;
    uint32_t attempts;
};

struct report {
    /* Inputs: */
    char id[REPORT_NAME_SIZE], name[REPORT_NAME_SIZE], state[REPORT_NAME_SIZE];
    int64_t submitted_ns; /* time of the market's log */
    int64_t until_ns;     /* end of the job, or now */
    int64_t expect_ns;    /* expected time of one subtask; 0: not stated */
    /* Planned time from the first start to the last end; 0 means not stated. */
    int64_t planned_ns;
    int64_t planned_micro;  /* planned cost; 0 when planned_ns is 0 */
    uint32_t planned_slots; /* planned slots at once; 0: none was free then */
    bool planned_is_guess;  /* the times of subtasks were only guessed */
    /* The plan on the devices that were offered then. The report owns it; NULL means unknown. */
    struct plan *plan;
    /* Energy of each planned subtask at its device's full load, -1 where unknown. The report owns
     * it; NULL means that all are unknown. */
    int64_t *planned_uj;
    /* The best single device of the plan is unknown, since its places may be several devices. */
    bool single_is_unknown;
    /* Expected time until all is done, by the market; -1 means that the job has ended, or nobody
     * can tell. */
    int64_t left_ns;
    uint32_t subtasks;
    uint32_t checks; /* the last of the subtasks judge results of the others */
    struct report_group groups[REPORT_GROUPS]; /* ascending; checks are in none */
    size_t group_count;
    struct report_device *devices;
    size_t device_count;
    struct report_attempt *attempts;
    size_t attempt_count;
    uint32_t saved, restored; /* attempts that left a checkpoint, and attempts that resumed one */
    uint64_t saved_bytes;     /* bytes of all these checkpoints */
    /* Outputs: */
    struct report_sum total;
    struct report_predicted predicted;
    int64_t first_ns, last_ns; /* first start, last end; first_ns -1: nothing ran */
    int64_t wait_ns;           /* submission to first start; -1: nothing ran */
    int64_t span_ns;           /* first start to last end; 0: nothing ran */
    uint32_t checks_accepted;
    int64_t checks_ns; /* busy time of all checks, whatever their result */
    int64_t median_ns; /* busy time of an accepted attempt that is no check; -1: none */
    /* Time of the subtasks that ran, without checks, at expect_ns each over as many lanes; -1 means
     * unknown. */
    int64_t expect_span_ns;
    size_t slowest[REPORT_SLOWEST]; /* attempts, the slowest accepted first, without checks */
    size_t slowest_count;
    /* Most frequent first; the last one collects the rest. */
    struct report_cause causes[REPORT_CAUSES];
    size_t cause_count;
};

enum report_status {
    REPORT_OK,
    REPORT_BAD_INPUT, /* an attempt without a device, a negative time, amount or size */
    REPORT_NO_MEMORY,
};

/* Fills all outputs, and sorts the attempts by device, start and index. The devices keep their
 * order. Any status but OK leaves the outputs without meaning. Sums saturate at the largest
 * number. */
enum report_status report_make(struct report *report);
/* Returns how many attempts the sum counts, whatever became of them. */
uint64_t report_attempts(const struct report_sum *sum);
/* Return the energy of all planned subtasks, and of all attempts; -1 means that some is unknown. */
int64_t report_planned_uj(const struct report *report);
int64_t report_measured_uj(const struct report *report);
/* Frees what malloc gave: report, devices, attempts, and the plan. */
void report_destroy(struct report **self);

/* ---- pictures (picture.h)
 *
 * The text belongs to the caller, and is NULL when memory is short. Names are made printable. */

char *report_timeline(const struct report *report, const struct picture_style *style);
char *report_svg(const struct report *report);

#endif
