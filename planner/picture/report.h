/* planner/picture/report.h - what became of a job: time, money and bytes per device, and a
 * timeline.
 *
 * It is given every attempt that has a result, as its provider signed it. The start is a claim of
 * the agent's clock, which nobody checks; the market's own times are when the job was submitted and
 * when it ended. So attempts that do not lie in that time are moved into it, by as little as it
 * takes: all by as much, where that puts all into it, since then the market's clock is off, else
 * those of each device by as much. What still sticks out is cut; `moved_ns` and `cut` say so.
 *
 * A lane is what runs one attempt at a time. Results do not name theirs, so attempts are dealt to
 * as few lanes as their times allow, and never to more than the device's leases had slots:
 *
 *     submitted   first start                      ended
 *     |  waiting  |------------ span ---------------|
 *     lane 1      |=0=|===2===|====4====|==6==|               share = busy / (lanes x span)
 *     lane 2      |==1==|==3==|        x5x|
 *
 * Integers only, times in ns of the market's log. Pure. */
#ifndef BOURSE_PLANNER_PICTURE_REPORT_H
#define BOURSE_PLANNER_PICTURE_REPORT_H

#include "planner/picture/picture.h"
#include "planner/schedule/deal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REPORT_NAME_SIZE = 129,
    REPORT_SLOWEST = 5,
    REPORT_CAUSES = 32,
    REPORT_LANES_MAX = 1024, /* of one device */
    REPORT_GROUPS = 17,
};

enum report_fate { REPORT_ACCEPTED, REPORT_FAILED, REPORT_LATE };

struct report_attempt {
    /* given */
    uint32_t device; /* which of the devices */
    uint32_t index, attempt;
    uint8_t fate;         /* enum report_fate */
    bool simulated;       /* its times are a model's */
    const char *cause;    /* of one that failed: a text that lives as long as the report */
    int64_t started_ns;   /* as the agent said; then where it lies in the market's time */
    int64_t busy_ns;      /* >= 0 */
    int64_t charge_micro; /* >= 0 */
    int64_t bytes_in;     /* -1: unknown */
    int64_t bytes_out;    /* >= 0 */
    int64_t energy_uj;    /* -1: the result does not say */
    /* made */
    uint32_t lane;  /* of its device, from 0 */
    int64_t end_ns; /* where it is drawn to; started_ns + busy_ns unless cut */
};

/* Sums over attempts: of one device, or of all. */
struct report_sum {
    uint32_t accepted, failed, late; /* attempts */
    uint32_t simulated;              /* of those */
    uint32_t lanes;
    int64_t busy_ns;
    int64_t share_ppm; /* busy / (lanes x span); -1: there is no span, or busy is a model's */
    int64_t charge_micro;
    int64_t bytes_in; /* -1: unknown of some attempt */
    int64_t bytes_out;
    int64_t energy_uj;     /* of `energy_known` attempts */
    uint32_t energy_known; /* 0: unknown, which is not none */
};

/* Accepted subtasks of which somebody predicted a time: what was predicted of them, and what they
 * took. */
struct report_predicted {
    uint32_t subtasks;
    int64_t predicted_ns, measured_ns;
};

struct report_group { /* subtasks that were predicted alike */
    /* given */
    uint32_t first, count;
    int64_t expect_ns; /* of one; 0: nobody said */
    /* made */
    struct report_predicted predicted;
    int64_t median_ns; /* of the accepted; -1: none */
};

struct report_device {
    /* given */
    char provider[REPORT_NAME_SIZE], name[REPORT_NAME_SIZE]; /* as others sent them */
    uint32_t slots;                            /* of its leases together; 0: unknown */
    int64_t price_low_micro, price_high_micro; /* of its leases; -1: unknown */
    int64_t shared_bytes;                      /* fetched once for all its attempts; -1: unknown */
    /* made */
    struct report_sum sum;
    struct report_predicted predicted;
    int64_t moved_ns; /* its clock: this was added to its times */
    uint32_t cut;     /* attempts that stuck out even so */
};

struct report_cause {
    const char *text;
    uint32_t attempts;
};

struct report {
    /* given */
    char id[REPORT_NAME_SIZE], name[REPORT_NAME_SIZE], state[REPORT_NAME_SIZE];
    int64_t submitted_ns; /* by the market's log */
    int64_t until_ns;     /* when the job ended, or now */
    int64_t expect_ns;    /* what one subtask was to take; 0: nobody said */
    int64_t planned_ns; /* from the first start to the last end, as planned; 0: nobody said, and */
    int64_t planned_micro;  /* what it was to cost: then 0, too */
    uint32_t planned_slots; /* on so many at once; 0: none was free then */
    bool planned_is_guess;  /* what subtasks take was only guessed */
    struct deal *plan;      /* how it would have run on what was on offer then: the report's; NULL:
                               nobody knows any more */
    int64_t *planned_uj;    /* what each subtask of the plan takes at its device's full load, -1:
                               unknown; the report's; NULL: of none known */
    size_t single;          /* the place of the plan that would be done first alone, and */
    int64_t single_ns;      /* when; 0: there is no plan, or none could do all */
    bool single_is_unknown; /* of places of the plan: nobody knows on which devices they were */
    int64_t
        left_ns; /* until all is done, as the market expects now; -1: it is, or nobody can tell */
    uint32_t subtasks;
    uint32_t checks; /* the last of the subtasks judge results of the others */
    struct report_group groups[REPORT_GROUPS]; /* in order, none for checks */
    size_t group_count;
    struct report_device *devices;
    size_t device_count;
    struct report_attempt *attempts;
    size_t attempt_count;
    uint32_t saved, restored; /* attempts that left a checkpoint, and that went on from one */
    uint64_t saved_bytes;     /* of all these checkpoints */
    /* made */
    struct report_sum total;
    struct report_predicted predicted;
    int64_t first_ns, last_ns; /* first start, last end; first_ns -1: nothing ran */
    int64_t wait_ns;           /* from submitting to the first start; -1: nothing ran */
    int64_t span_ns;           /* from the first start to the last end; 0: nothing ran */
    uint32_t checks_accepted;
    int64_t checks_ns;      /* busy time of all checks, whatever they came to */
    int64_t median_ns;      /* busy time of an accepted attempt that is no check; -1: none */
    int64_t expect_span_ns; /* the subtasks that ran, but for checks, at expect_ns each over as many
                               lanes; -1: unknown */
    size_t slowest[REPORT_SLOWEST]; /* attempts, the slowest accepted first; no checks */
    size_t slowest_count;
    struct report_cause
        causes[REPORT_CAUSES]; /* most frequent first; what does not fit is in the last */
    size_t cause_count;
};

enum report_status {
    REPORT_OK,
    REPORT_BAD_INPUT, /* an attempt of no device, a negative time, amount or size */
    REPORT_NO_MEMORY,
};

/* Fills all that is `made`; sorts the attempts by device, start and index, and the devices stay.
 * Any status but OK leaves the made parts without meaning. Sums that would wrap stop at the largest
 * number. */
enum report_status report_make(struct report *report);
/* Energy of all that was planned, and of all attempts; -1: not known of some. */
int64_t report_planned_uj(const struct report *report);
int64_t report_measured_uj(const struct report *report);
/* Frees what malloc gave: report, devices, attempts, and the plan. */
void report_destroy(struct report **self);

/* ---- pictures (picture.h): text that the caller frees, NULL without memory. Names are made
 * printable. */

char *report_timeline(const struct report *report, const struct picture_style *style);
char *report_svg(const struct report *report);

#endif
