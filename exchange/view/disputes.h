/* A dispute is a held result that its client may have to judge. A referee has accused it, or a
 * referee was overruled and no other can judge it. All functions are pure reads of bounded work.
 *
 * Which referees may judge a result follows from its maker and its accuser alone. Three referees
 * of different owners leave one for every result, so a call looks for three and never asks every
 * provider about every result. */
#ifndef BOURSE_EXCHANGE_VIEW_DISPUTES_H
#define BOURSE_EXCHANGE_VIEW_DISPUTES_H

#include "exchange/exchange.h"

enum {
    EXCHANGE_DISPUTES_LOOKS = 4096,   /* subtasks that one page looks at */
    EXCHANGE_DISPUTES_COUNTED = 4096, /* accused results that one count looks at */
};

struct exchange_dispute {
    uint32_t index, attempt;
    uint32_t maker, accuser; /* EXCHANGE_NO_ACCOUNT: nobody has accused it */
    struct hash32 result, seed;
    const uint8_t *bytes; /* encoded Result, valid until the next step */
    uint32_t length;
    bool has_referee; /* a device of an eligible referee fits the check */
};
/* Fills in the disputes of an open job from subtask `from` on, in order. Returns how many, at most
 * `limit`. A page ends early after EXCHANGE_DISPUTES_LOOKS subtasks. `ret_next` is the subtask to
 * go on from, or 0 when no subtask is left; NULL: the caller does not go on. */
size_t exchange_disputes(const struct exchange *exchange, const struct id128 *job, uint32_t from,
                         struct exchange_dispute *ret_rows, size_t limit, uint32_t *ret_next);

struct exchange_dispute_counts {
    uint32_t accused;    /* held results that a referee rejects */
    uint32_t for_client; /* held results that no referee is left to judge */
    /* More results are accused than a call looks at: `for_client` may be higher. */
    bool is_partial;
};
/* Counts the disputes of a job; all counts are 0 when there is no such open job. */
struct exchange_dispute_counts exchange_dispute_counts(const struct exchange *exchange,
                                                       const struct id128 *job);

#endif
