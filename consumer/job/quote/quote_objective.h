/* consumer/job/quote/quote_objective.h chooses the slots of a job whose objective is the price. The
 * header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_OBJECTIVE_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_OBJECTIVE_H

#include "consumer/job/bourse_job.h"
#include "consumer/job/supply.h"

/* A try has what the job costs and how long it takes with `slots` slots at a time, by its plan. */
struct objective_try {
    uint32_t slots;
    int64_t cost_micro, makespan_ns;
};

/* Plans the job with that many slots at a time. Returns false when memory is short or the job
 * cannot be planned; the search then ends without a choice. */
typedef bool objective_plan(void *context, uint32_t slots, struct objective_try *ret_try);

/* Chooses a number of slots. `steps` has ascending numbers of slots, one for each price on offer.
 * The choice is the cheapest step with which the job takes at most `most_ns` (0: any time). Of
 * steps that cost the same, the largest is chosen, because the job then ends sooner. When a smaller
 * step is too slow, the choice is narrowed down to the fewest slots that are in time, in units of
 * `width`. When no step is in time, the choice is the last step. Returns false without a choice.
 * Only `plan` reads anything but the arguments. */
bool quote_objective_choose(const uint32_t *steps, size_t step_count, uint32_t width,
                            int64_t most_ns, objective_plan *plan, void *context,
                            struct objective_try *ret_choice);

/* Chooses the slots of a job with `objective: price` from its supply. Sets the job's at_most, and
 * chosen_slots and chosen_of of the quote. A job without this objective stays as it is, and so does
 * a job for which nothing is on offer. Returns false and fills the error when the job has several
 * parts or too many subtasks to plan, or memory is short. */
bool quote_objective(const struct bourse *bourse, struct bourse_job *job,
                     const struct supply *supply, struct bourse_quote *quote,
                     struct bourse_error *error);

#endif
