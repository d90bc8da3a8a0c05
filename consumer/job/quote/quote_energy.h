/* consumer/job/quote/quote_energy.h chooses the devices of a job whose objective is the energy. The
 * header is not installed.
 *
 * A device's energy is the power of its slots times what the work takes there. The choice adds
 * devices in rising order of energy, and those of unknown power last. The order then asks for the
 * chosen devices by two attributes, their instrument and the most power of a slot. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_ENERGY_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_ENERGY_H

#include "consumer/job/bourse_job.h"
#include "consumer/job/supply.h"

/* A step is a set of places: those up to some energy. */
struct energy_step {
    struct job_power_limits limits; /* count 0: all places */
    uint32_t slots;
};
enum { QUOTE_ENERGY_STEPS = 64 };

/* Fills the steps of a supply, whose places have names and powers. Each step has more slots than
 * the one before, and the last has all places. Places of equal energy come together. Places that
 * their attributes do not tell apart from chosen ones come with those. Returns the number of
 * steps; 0 without places or memory. Beyond QUOTE_ENERGY_STEPS, only the last step is added. The
 * function is pure. */
size_t quote_energy_steps(const struct bourse_job *job, const struct supply *supply,
                          struct energy_step ret_steps[QUOTE_ENERGY_STEPS]);

/* Removes the places that the limits leave out. */
void quote_energy_restrict(const struct job_power_limits *limits, struct supply *supply);

/* Sets the limits of a job with `objective: energy` to the choice for its supply, and what the
 * quote says of the choice. The choice is the step of least energy that keeps the deadline, and all
 * places when no step does. `supply` has names. Returns false and fills the error when the job
 * cannot be planned, its needs are full, or memory is short. Any other job stays as it is. */
bool quote_energy(const struct bourse *bourse, struct bourse_job *job, const struct supply *supply,
                  struct bourse_quote *quote, struct bourse_error *error);

#endif
