/* A held result is settled, and perhaps paid, when its check is decided. */
#ifndef BOURSE_EXCHANGE_WORK_HELD_RESULTS_H
#define BOURSE_EXCHANGE_WORK_HELD_RESULTS_H

#include "exchange/state/records.h"

/* A check's Result or the client's word decides about a result. */
struct decision {
    uint8_t level; /* enum check_level */
    struct hash32 check;
    bool is_missing; /* the result's bytes are missing, which is not the maker's fault */
};

/* Holds the result until its check is decided. */
void held_keep(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
               const struct exchange_result *result, uint32_t position);
/* Returns the decision that the result of a check makes. */
struct decision held_decision(const struct exchange_result *check, uint8_t outcome);
/* Accuses a result that is not accused yet. */
void held_accuse(struct exchange *exchange, struct held *held, const struct accusation *accusation);
/* Settles the held result and drops it. `decision` NULL: none was made. */
void held_settle(struct exchange *exchange, struct job *job, uint32_t index, uint8_t status,
                 const struct decision *decision);

#endif
