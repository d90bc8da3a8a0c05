/* tests/support/checked_market.h - the small market, and after it a job whose results are checked.
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
    LIE_DICE,       /* of a batch: not made of the secret */
    LIE_SECRET,     /* another one is shown than was committed to */
    LIE_SEED,       /* the referee used another than was drawn, and is believed */
    LIE_OWN_CHECK,  /* the referee's are the results too */
    LIE_NO_REFEREE, /* the checks are made by a provider without that role */
    LIE_ROW,        /* `bend` tells it */
    LIE_ALONE,      /* of two: one referee's no refutes the result */
    LIE_ONE_OWNER,  /* of two: the operator has said that both referees are one owner's */
};

/* The broker's store loses what the result of 1 left: the checks of it find no bytes. */
enum checked_loss {
    LOSS_NONE,
    LOSS_PAID,    /* the result is paid as failed, and made again */
    LOSS_REFUTED, /* the result is refuted */
    LOSS_FACTOR,  /* as PAID, though the checks say that they lack a factor: no rules say so */
};

struct checked_market {
    struct small_market market;
    bool of_two; /* under rules 18: a second referee (account 6) says no to 1 as well */
    struct identity *referee, *second;
    struct id128 job;    /* the checked one */
    struct hash32 check; /* what decided its subtask 1 in the end */
    enum checked_lie lie;
    enum checked_loss loss;
    uint32_t rules;          /* of two: 18 or later; 0: 18 */
    bool is_unproved;        /* no command says that the broker lacks what the checks do not find */
    small_market_bend *bend; /* of any record; NULL: none */
    void *context;
};

/* `self` says which lie, and by which rules; the rest is filled in. */
void checked_market_create(struct checked_market *self);
void checked_market_destroy(struct checked_market *self);

#endif
