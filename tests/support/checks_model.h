/* tests/support/checks_model.h - a slow model of results that are checked, kept from commands and effects alone.
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
    uint32_t first;   /* of its checks; 0: it has none */
    bool is_shortcut; /* a result was taken that no check had found right: it cannot be done */
};
struct checks_model_held {
    struct id128 job;
    uint32_t index, attempt, position, provider;
    uint32_t accuser; /* that said first that it is wrong, or not there; 0: nobody */
    uint64_t lease, batch_index;
    struct hash32 hash, dice;
};
struct checks_model_judge { /* of a subtask; or, of no subtask, one that the job asks no more */
    struct id128 job;
    uint32_t index, account;
    bool is_overruled;
};
struct checks_model {
    struct checks_model_job *jobs;
    struct checks_model_held *held;
    struct checks_model_judge *judges;
    uint32_t *lease_jobs; /* by lease */
    size_t job_count, held_count, judge_count, lease_count, capacity;
    /* of the present command: the check whose result was settled last */
    struct hash32 check;
    struct id128 check_job;
    uint32_t check_index, check_by, check_outcome;
    uint64_t check_command;
    uint64_t accepted, refuted, unsure; /* results that a check decided */
    uint64_t by_client;                 /* results that their client judged */
};

/* Reads one effect of `command`; NULL, or what is wrong. Out of memory aborts. */
const char *checks_model_read(struct checks_model *model, const struct exchange_command *command,
                              const struct exchange_effect *effect);
/* Returns true when the account has judged that subtask of the job, and so is never sent it. */
bool checks_model_bars(const struct checks_model *model, const struct id128 *job, uint32_t index,
                       uint32_t account);
bool checks_model_was_judged(const struct checks_model *model, const struct id128 *job,
                             uint32_t index); /* by anybody */
/* Two questions about an account. One is whether it has judged a subtask of the job, so that it
 * may have nothing to make there. The other is whether it may judge something that is held of
 * the job. */
bool checks_model_judged(const struct checks_model *model, const struct id128 *job,
                         uint32_t account);
bool checks_model_may_judge(const struct checks_model *model, const struct id128 *job,
                            uint32_t account);
void checks_model_fini(struct checks_model *model);

#endif
