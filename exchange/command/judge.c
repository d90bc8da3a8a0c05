/* The client of a job judges a held result, as referees do. */
#include "exchange/command/apply.h"
#include "exchange/lifecycle.h"
#include "exchange/state/effects.h"
#include "exchange/state/held.h"
#include "exchange/state/job_records.h"
#include "exchange/work/attempts.h"
#include "exchange/work/check_seeds.h"
#include "exchange/work/checks.h"
#include "exchange/work/held_results.h"
#include "exchange/work/jobs.h"

/* Returns the held result with those numbers; NULL: the command is refused. */
static struct held *held_to_judge(struct exchange *exchange, const struct job *job,
                                  const struct exchange_judge *judge)
{
    struct held *held = held_for_check(job, judge->index) ? job->checks->held[judge->index] : NULL;
    if (held == NULL || held->attempt != judge->attempt ||
        !hash32_equal(&held->hash, &judge->result)) {
        effect_reject(exchange, XREJECT_STATE, "index", judge->index, 0);
        return NULL;
    }
    const struct hash32 seed = check_seed_of_held(job, held);
    if (!hash32_equal(&seed, &judge->seed)) {
        effect_reject(exchange, XREJECT_VERIFY, "seed", judge->attempt, held->accusation.attempt);
        return NULL;
    }
    if (judge->verdict < XVERDICT_ACCEPT || judge->verdict > XVERDICT_UNSURE) {
        effect_reject(exchange, XREJECT_VERIFY, "verdict", judge->verdict, XVERDICT_UNSURE);
        return NULL;
    }
    return held;
}

void apply_judge(struct exchange *exchange, const struct exchange_judge *judge)
{
    struct job *job = table_find(&exchange->jobs, &judge->job);
    if (job == NULL || job->owner != exchange->command->account) {
        effect_reject(exchange, XREJECT_NOT_FOUND, "job", 0, 0);
        return;
    }
    if (job->phase != JOB_PHASE_OPEN || job->is_closing) {
        effect_reject(exchange, XREJECT_STATE, "job", job->phase, JOB_PHASE_OPEN);
        return;
    }
    const struct held *held = held_to_judge(exchange, job, judge);
    if (held == NULL) {
        return;
    }
    const struct decision decision = {.level = CHECK_CLIENT, .check = exchange->command->body};
    const uint8_t status = check_status_by_client(exchange, job, held, judge->verdict);
    if (status == XATTEMPT_ACCEPTED) {
        const uint32_t check = held_first_check(job) + judge->index;
        if (job_subtask(exchange, job, check)->attempts == 1) {
            attempts_withdraw_others(exchange, job, check);
        }
        check_accept(exchange, job, judge->index, &decision);
    } else {
        check_redo(exchange, job, judge->index, status, &decision);
    }
    job_check(exchange, job);
    effect_report_job(exchange, job);
}
