/* tests/support/checks_model.h has a slow model of results that are checked. The model follows
 * commands and effects alone.
 *
 * The model knows which results are held and with which dice, and says of each effect what is wrong
 * with it. Wrong are a result that is settled twice, or not as its check found, and a check by who
 * made the result, or with another seed than the one drawn. Also wrong are a subtask that is sent
 * to who judged it, and a job that ends while something is held. */
#ifndef BOURSE_TESTS_CHECKS_MODEL_H
#define BOURSE_TESTS_CHECKS_MODEL_H

#include "exchange/exchange.h"

struct checks_model_job {
    struct id128 id;
    struct hash32 manifest;
    uint32_t first; /* index of the job's first check; 0: the job has none */
    /* A result was taken that no check had found right, so the job cannot be done. */
    bool is_shortcut;
};
struct checks_model_held {
    struct id128 job;
    uint32_t index, attempt, position, provider;
    /* The account that first said that the result is wrong, or not there; 0: nobody. */
    uint32_t accuser;
    uint64_t lease, batch_index;
    struct hash32 hash, dice;
};
/* An account that judged a subtask. With is_overruled: an account that the job asks no more, and no
 * subtask. */
struct checks_model_judge {
    struct id128 job;
    uint32_t index, account;
    bool is_overruled;
};
struct checks_model {
    struct checks_model_job *jobs;
    struct checks_model_held *held;
    struct checks_model_judge *judges;
    uint32_t *lease_jobs; /* by lease */
    size_t job_count, held_count, judge_count, lease_count;
    size_t job_capacity, held_capacity, judge_capacity, lease_capacity;
    /* The check whose result was settled last in the present command. */
    struct hash32 check;
    struct id128 check_job;
    uint32_t check_index, check_by, check_outcome;
    uint64_t check_command;
    uint64_t accepted, refuted, unsure; /* how many results a check decided */
    uint64_t by_client;                 /* how many results their client judged */
};

/* Reads one effect of `command`. Returns NULL, or what is wrong with the effect. Aborts when memory
 * is short. */
const char *checks_model_read(struct checks_model *model, const struct exchange_command *command,
                              const struct exchange_effect *effect);
/* Returns true when the account has judged that subtask of the job, and so is never sent it. */
bool checks_model_bars(const struct checks_model *model, const struct id128 *job, uint32_t index,
                       uint32_t account);
bool checks_model_was_judged(const struct checks_model *model, const struct id128 *job,
                             uint32_t index); /* by anybody */
/* Two questions about an account. The first is whether it has judged a subtask of the job, which
 * may exclude it from making one. The second is whether it may judge something that is held of the
 * job. */
bool checks_model_judged(const struct checks_model *model, const struct id128 *job,
                         uint32_t account);
bool checks_model_may_judge(const struct checks_model *model, const struct id128 *job,
                            uint32_t account);
void checks_model_fini(struct checks_model *model);

#endif
