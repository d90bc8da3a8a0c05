/* consumer/job/offered.h - what is on offer for the parts of a job, as the quotes of its parts say,
 * and how it would run there (planner/schedule/deal.h). Not installed.
 *
 * A quote has slots by price. Where parts are offered as many slots of as many providers at one
 * price, these are taken to be the same. By asking for the devices that fit, slots get the names of
 * those that they are on. */
#ifndef BOURSE_CONSUMER_JOB_OFFERED_H
#define BOURSE_CONSUMER_JOB_OFFERED_H

#include "consumer/job/bourse_job.h"
#include "consumer/market/history.h"
#include "planner/cost/profile.h"
#include "planner/schedule/deal.h"

struct offered_place { /* slots at one price */
    struct deal_device slots;
    char label[2 * BOURSE_NAME_SIZE + 2]; /* "provider/device"; "": of whom is not known */
    char instrument[BOURSE_NAME_SIZE];    /* "": not known */
    char account[BOURSE_HEX32_SIZE], device[BOURSE_ID_SIZE]; /* whose, and which; "": not known */
    bool is_unlike;        /* it is not of the speed of its make, at this job's work or all work */
    uint32_t pace;         /* of these; 0: not told, so that it is as fast as the fastest */
    bool has_kind;         /* its class is of this device alone */
    uint32_t providers;    /* 0: they are leased, and would be taken from their holders */
    uint32_t device_slots; /* of all of the device, offered or not; 0: not known */
    int64_t slot_uw;       /* offered_power, where offered_set_power found it; 0: not known */
    uint32_t
        widest; /* slots of these on one device, where offered_set_widest found it; 0: not known */
    bool is_simulated;
};

struct offered {
    struct offered_place *places; /* the cheapest first */
    size_t count;
    bool is_busy; /* of some part nothing is free: it is as if what is leased were */
    struct history_figure *figures; /* by class of place and unit of the job (history.h); NULL: what
                                       it takes is the same everywhere */
    uint32_t class_count; /* of these, makes and devices that are not of their speed; class 0: all
                             devices, for a place of which it is not known what it is */
};

/* `quotes` has one of each part of the job. NULL without memory. */
struct offered *offered_create(const struct bourse_job *job, const struct bourse_quote *quotes);
void offered_destroy(struct offered **self);
/* Finds out on which devices the slots are, as far as the market's list agrees with the quotes. */
bool offered_name(struct bourse *bourse, const struct bourse_job *job, struct offered *offered,
                  struct bourse_error *error);

/* Finds out of what make the devices are that have a name, on offer or not. */
bool offered_find_instruments(struct bourse *bourse, const struct bourse_job *job,
                              struct offered *offered, struct bourse_error *error);
/* Numbers the makes of places from 1 on, those of the cheapest first; the rest, and places of no
 * known make, stay 0. Then devices that are not of the speed of theirs, as many as there is room
 * for; the others have the number of one of their make that is about as fast. How many numbers
 * there are. Pure. */
size_t offered_number_kinds(struct offered *offered, struct history_kind ret_kinds[DEAL_CLASSES]);
/* Asks the market what subtasks took on devices of these makes, and on those that are not of the
 * speed of their make. */
bool offered_learn(struct bourse *bourse, const struct bourse_job *job, struct offered *offered,
                   struct bourse_error *error);

/* Watts of one of its slots at its device's full load, as the catalogue has them; of a simulated
 * device those of what it is made after. */
struct figure offered_power(const struct offered_place *place);
/* The same of places without names, where all that `named` has at their price for their parts take
 * as much. */
void offered_set_power(struct offered *offered, const struct offered *named);
/* Both of places with names, for what they have themselves. */
void offered_know(struct offered *named);
/* How many slots the device with most has of places without names, among those that `named` has in
 * their stead. */
void offered_set_widest(struct offered *offered, const struct offered *named);

/* What a subtask takes on devices of a class, and what that rests on. */
struct history_figure offered_figure(const struct bourse_job *job, const struct offered *offered,
                                     uint32_t of_class, size_t part, uint32_t index);

/* Whether some subtask takes longer or less long on some of the places than the job expects. */
bool offered_is_unlike(const struct bourse_job *job, const struct offered *offered);

/* What a subtask of part `part` is expected to take. */
int64_t offered_takes_ns(const struct bourse_job *job, size_t part, uint32_t index);

/* The job on these places: each as long as expected or, with `all_take_ns` above 0, as long as nine
 * of ten took at most there and, where that is not known, all as long as that. DEAL_NOWHERE also
 * where nothing is on offer. `ret_single` (may be NULL): the place that would be done first alone,
 * with ret_single_ns; count: none can do all. */
enum deal_status offered_deal(const struct bourse_job *job, const struct offered *offered,
                              int64_t all_take_ns, struct deal **ret_deal, size_t *ret_single,
                              int64_t *ret_single_ns);

#endif
