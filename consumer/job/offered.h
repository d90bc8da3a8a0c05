/* consumer/job/offered.h holds the places that the quotes offer for the parts of a job, and lays
 * the job out on them (planner/schedule/deal.h). The header is not installed.
 *
 * A quote has slots by price. Two parts with as many slots of as many providers at one price are
 * assumed to share them. A look at the fitting devices gives slots the names of their devices. */
#ifndef BOURSE_CONSUMER_JOB_OFFERED_H
#define BOURSE_CONSUMER_JOB_OFFERED_H

#include "consumer/job/bourse_job.h"
#include "consumer/market/history.h"
#include "planner/cost/profile.h"
#include "planner/schedule/deal.h"

struct offered_place { /* slots at one price */
    struct deal_device slots;
    char label[2 * BOURSE_NAME_SIZE + 2]; /* "provider/device"; "": unknown */
    char instrument[BOURSE_NAME_SIZE];    /* "": unknown */
    /* Provider's key and device's id; "": unknown. */
    char account[BOURSE_HEX32_SIZE], device[BOURSE_ID_SIZE];
    bool is_unlike; /* its speed is not that of its instrument, at this job's work or at all work */
    uint32_t pace;  /* its slowness in thousandths; 0: unknown, as fast as the fastest */
    bool has_kind;  /* its class is of this device alone */
    uint32_t providers;    /* 0: leased slots, to be taken from their holders */
    uint32_t device_slots; /* all slots of the device; 0: unknown */
    int64_t slot_uw;       /* from offered_power, set by offered_set_power; 0: unknown */
    /* Most slots on one device, set by offered_set_widest; 0: unknown. */
    uint32_t widest;
    bool is_simulated;
};

struct offered {
    struct offered_place *places; /* the cheapest first */
    size_t count;
    bool is_busy; /* some part has no free slot: leased slots count as free */
    /* Figures by class of place and unit of the job (history.h); NULL: all classes take the
     * same. */
    struct history_figure *figures;
    /* Number of classes: instruments, and devices unlike theirs. Class 0 is for places of unknown
     * instrument. */
    uint32_t class_count;
};

/* Makes the places from one quote for each part of the job. Returns NULL when memory is short. */
struct offered *offered_create(const struct bourse_job *job, const struct bourse_quote *quotes);
void offered_destroy(struct offered **self);
/* Names the devices of the places, as far as the market's list agrees with the quotes. */
bool offered_name(struct bourse *bourse, const struct bourse_job *job, struct offered *offered,
                  struct bourse_error *error);

/* Looks up the instrument of every named device, on offer or not. */
bool offered_find_instruments(struct bourse *bourse, const struct bourse_job *job,
                              struct offered *offered, struct bourse_error *error);
/* Numbers the instruments of places from 1 on, the cheapest places first, then devices unlike their
 * instrument. Other places keep 0. A device beyond DEAL_CLASSES gets the number of a device of its
 * instrument with a similar pace. Returns how many numbers there are, 0 included. The function is
 * pure. */
size_t offered_number_kinds(struct offered *offered, struct history_kind ret_kinds[DEAL_CLASSES]);
/* Asks the market for the measured times of subtasks on these instruments, and on devices unlike
 * theirs. */
bool offered_learn(struct bourse *bourse, const struct bourse_job *job, struct offered *offered,
                   struct bourse_error *error);

/* Returns the watts of one slot at full load of its device, from the catalogue. A simulated device
 * has the figure of the device that it imitates. */
struct figure offered_power(const struct offered_place *place);
/* Sets the power of places without names, when all of `named` at the price and for the parts of a
 * place use the same power. */
void offered_set_power(struct offered *offered, const struct offered *named);
/* Sets power and width of the named places from their own devices. */
void offered_know(struct offered *named);
/* Sets the width of places without names: the most slots that one matching device of `named`
 * has. */
void offered_set_widest(struct offered *offered, const struct offered *named);

/* Returns the time of a subtask on devices of a class, and the basis of the figure. */
struct history_figure offered_figure(const struct bourse_job *job, const struct offered *offered,
                                     uint32_t of_class, size_t part, uint32_t index);

/* Returns true when some subtask takes another time on some place than the job expects. */
bool offered_is_unlike(const struct bourse_job *job, const struct offered *offered);

/* Returns the expected time of a subtask of part `part`. */
int64_t offered_takes_ns(const struct bourse_job *job, size_t part, uint32_t index);

/* Lays the job out on these places. Each subtask takes its expected time. With `all_take_ns` above
 * 0 a subtask takes its p90, or `all_take_ns` where its p90 is unknown. Returns DEAL_NOWHERE also
 * when nothing is on offer. `ret_single`, which may be NULL, is the place that would be done first
 * alone, in `ret_single_ns`; offered->count: no place can do everything. */
enum deal_status offered_deal(const struct bourse_job *job, const struct offered *offered,
                              int64_t all_take_ns, struct deal **ret_deal, size_t *ret_single,
                              int64_t *ret_single_ns);

#endif
