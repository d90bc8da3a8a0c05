/* tests/support/checked_market.h continues the small market with a job whose results are checked.
 *
 * An epoch of dice begins; a referee (account 5) joins and asks. The owner's second job has two
 * subtasks and a check of each (`verify: cheap`). The provider's results of 0 and 1 are held. The
 * checks say yes to 0 and no to 1, which is refuted and made again. Then a second epoch shows the
 * first one's secret. A lie is told where the broker or a member would tell it, so that signatures,
 * leaves and tree agree with it. */
#ifndef BOURSE_TESTS_CHECKED_MARKET_H
#define BOURSE_TESTS_CHECKED_MARKET_H

#include "tests/support/small_market.h"

enum checked_lie {
    LIE_NONE,
    LIE_DICE,       /* the dice of a batch are not made from the secret */
    LIE_SECRET,     /* the secret shown is not the one committed to */
    LIE_SEED,       /* the referee used another seed than the one drawn, and is believed */
    LIE_OWN_CHECK,  /* the referee also made the results */
    LIE_NO_REFEREE, /* a provider without the referee's role makes the checks */
    LIE_ROW,        /* the test's `bend` tells this lie */
    LIE_ALONE,      /* with of_two: the reject of one referee refutes the result */
    LIE_ONE_OWNER,  /* with of_two: the operator said that both referees have one owner */
};

/* The broker's store loses what the result of 1 left, so its checks find no bytes. */
enum checked_loss {
    LOSS_NONE,
    LOSS_PAID,    /* the result is paid as failed, and made again */
    LOSS_REFUTED, /* the result is refuted */
    LOSS_FACTOR,  /* as PAID, but no rules say so: the checks say that they lack a factor */
};

struct checked_market {
    struct small_market market;
    bool of_two; /* under rules 18: a second referee (account 6) rejects 1 as well */
    struct identity *referee, *second;
    struct id128 job;    /* the checked job */
    struct hash32 check; /* hash of the result that decided its subtask 1 in the end */
    enum checked_lie lie;
    enum checked_loss loss;
    uint32_t rules;          /* with of_two: 18 or later; 0: 18 */
    bool is_unproved;        /* no command says that the broker lacks what the checks do not find */
    small_market_bend *bend; /* called for any record; NULL: none */
    void *context;
};

/* `self` says which lie, and under which rules. The function fills in the rest. */
void checked_market_create(struct checked_market *self);
void checked_market_destroy(struct checked_market *self);

#endif
