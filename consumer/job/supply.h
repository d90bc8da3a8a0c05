/* consumer/job/supply.h holds the places that the quotes offer for the parts of a job. job_plan.h
 * plans the job on them. The header is not installed.
 *
 * A quote has slots by price. Two parts with as many slots of as many providers at one price are
 * assumed to share them. A look at the fitting devices gives slots the names of their devices. */
#ifndef BOURSE_CONSUMER_JOB_SUPPLY_H
#define BOURSE_CONSUMER_JOB_SUPPLY_H

#include "consumer/job/bourse_job.h"
#include "consumer/market/history.h"
#include "planner/cost/profile.h"
#include "planner/schedule/list_schedule.h"

struct supply_place { /* slots at one price */
    struct list_schedule_device slots;
    char label[2 * BOURSE_NAME_SIZE + 2]; /* "provider/device"; "": unknown */
    char instrument[BOURSE_NAME_SIZE];    /* "": unknown */
    /* Provider's key and device's id; "": unknown. */
    char account[BOURSE_HEX32_SIZE], device[BOURSE_ID_SIZE];
    /* The device's speed is not that of its instrument, at this job's work or at all work. */
    bool is_unlike;
    uint32_t pace;         /* slowness in thousandths; 0: unknown, as fast as the fastest */
    bool has_kind;         /* the class is of this device alone */
    uint32_t providers;    /* 0: leased slots, to be taken from their holders */
    uint32_t device_slots; /* all slots of the device; 0: unknown */
    int64_t power_mw;      /* of one slot, as the device says; 0: it does not */
    int64_t slot_uw;       /* from supply_power, set by supply_set_power; 0: unknown */
    /* Most slots on one device, set by supply_set_widest; 0: unknown. */
    uint32_t widest;
    bool is_simulated;
    int64_t claim_mflops;              /* the device's claim of `gemm_fp32`; 0: none, or unknown */
    struct bourse_challenge challenge; /* of that claim */
};

struct supply {
    struct supply_place *places; /* the cheapest first */
    size_t count;
    bool is_busy; /* some part has no free slot: leased slots count as free */
    /* Figures by class of place and unit of the job (history.h); NULL: all classes take the
     * same. */
    struct history_figure *figures;
    /* Number of classes: instruments, and devices unlike theirs. Class 0 is for places of unknown
     * instrument. */
    uint32_t class_count;
    struct bourse_challenged challenged; /* the devices that supply_name found on offer */
    struct bourse_isolation isolation;   /* the same devices */
};

/* Makes the places from one quote for each part of the job. Returns NULL when memory is short. */
struct supply *supply_create(const struct bourse_job *job, const struct bourse_quote *quotes);
void supply_destroy(struct supply **self);
/* Names the devices of the places, as far as the market's list agrees with the quotes. */
bool supply_name(struct bourse *bourse, const struct bourse_job *job, struct supply *supply,
                 struct bourse_error *error);

/* Looks up the instrument of every named device, on offer or not. */
bool supply_find_instruments(struct bourse *bourse, const struct bourse_job *job,
                             struct supply *supply, struct bourse_error *error);
/* Numbers the instruments of places from 1 on, the cheapest places first, then devices unlike their
 * instrument. Other places keep 0. A device beyond LIST_SCHEDULE_CLASSES gets the number of a
 * device of its instrument with a similar pace. Returns how many numbers there are, 0 included. The
 * function is pure. */
size_t supply_number_kinds(struct supply *supply,
                           struct measured_kind ret_kinds[LIST_SCHEDULE_CLASSES]);
/* Reads the times that the job learned (history.h) for these instruments, and for devices unlike
 * theirs. Returns false when memory is short. */
bool supply_learn(const struct bourse_job *job, struct supply *supply, struct bourse_error *error);

/* Returns the watts of one slot at full load of its device: the catalogue's, else what the device
 * says. A simulated device has the figure of the device that it imitates. */
struct figure supply_power(const struct supply_place *place);
/* Sets the power of places without names, when all of `named` at the price and for the parts of a
 * place use the same power. */
void supply_set_power(struct supply *supply, const struct supply *named);
/* Sets power and width of the named places from their own devices. */
void supply_know(struct supply *named);
/* Sets the width of places without names: the most slots that one matching device of `named`
 * has. */
void supply_set_widest(struct supply *supply, const struct supply *named);

/* Returns the time of a subtask on devices of a class, and the basis of the figure. */
struct history_figure supply_figure(const struct bourse_job *job, const struct supply *supply,
                                    uint32_t of_class, size_t part, uint32_t index);

/* Returns true when some subtask takes another time on some place than the job expects. */
bool supply_is_unlike(const struct bourse_job *job, const struct supply *supply);

/* Returns the expected time of a subtask of part `part`. */
int64_t supply_takes_ns(const struct bourse_job *job, size_t part, uint32_t index);

#endif
