/* consumer/job/quote/quote_objective.h chooses the slots of a job whose objective is the price. The
 * search serves quote_energy.h, too. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_OBJECTIVE_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_OBJECTIVE_H

#include "consumer/job/bourse_job.h"
#include "consumer/job/supply.h"
#include "planner/plan/plan_make.h"

/* A try is what a number of slots at a time costs and takes, by the plan. For the energy, the
 * number is that of a step, and the cost is in microjoules. */
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

/* Returns the time until the job's deadline; 0: the job has none, or it has passed. */
int64_t quote_objective_left_ns(const struct bourse *bourse, const struct bourse_job *job);
/* Fills the error of a job that cannot be planned, which would run as if it had no objective.
 * Returns false. */
bool quote_objective_refuse(const struct bourse_job *job, enum plan_status status,
                            struct bourse_error *error);

/* Sets the at_most of a job with `objective: price` to the choice for its supply, and the quote's
 * chosen_slots and chosen_of. Any other job stays as it is, and so does a job to which nothing is
 * on offer; quote_energy.h chooses for the energy. Returns false and fills the error when a job
 * with an objective besides the time has several parts. Returns false, too, when the job has too
 * many subtasks to plan, or memory is short. */
bool quote_objective(const struct bourse *bourse, struct bourse_job *job,
                     const struct supply *supply, struct bourse_quote *quote,
                     struct bourse_error *error);

#endif
