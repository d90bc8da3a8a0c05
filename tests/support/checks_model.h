/* tests/support/checks_model.h - a slow model of results that are checked, kept from commands and effects alone.
 *
 * It knows which results are held and with which dice, and says of each effect what is wrong with it: a result that is
 * settled twice, or not as its check found; a check by who made the result, or with another seed than the one drawn; a job
 * that ends while something is held. */
#ifndef BOURSE_TESTS_CHECKS_MODEL_H
#define BOURSE_TESTS_CHECKS_MODEL_H

#include "exchange/exchange.h"

struct checks_model_job {
    struct id128 id;
    uint32_t first;   /* of its checks; 0: it has none */
    bool is_shortcut; /* a result was taken that no check had found right: it cannot be done */
};
struct checks_model_held {
    struct id128 job;
    uint32_t index, attempt, position, provider;
    uint64_t lease, batch_index;
    struct hash32 hash, dice;
};
struct checks_model {
    struct checks_model_job *jobs;
    struct checks_model_held *held;
    uint32_t *lease_jobs; /* by lease */
    size_t job_count, held_count, lease_count, capacity;
    /* of the present command: the check whose result was settled last */
    struct hash32 check;
    struct id128 check_job;
    uint32_t check_index, check_by;
    uint64_t check_command;
    uint64_t accepted, refuted, unsure; /* results that a check decided */
};

/* Reads one effect of `command`; NULL, or what is wrong. Out of memory aborts. */
const char *checks_model_read(struct checks_model *model, const struct exchange_command *command,
                              const struct exchange_effect *effect);
void checks_model_fini(struct checks_model *model);

#endif
