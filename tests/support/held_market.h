/* tests/support/held_market.h continues the market by hand with results that are held until a
 * referee has judged them. Each provider but NO_REFEREE is a referee.
 *
 * set_up_referees and tear_down are the fixture of a test. */
#ifndef BOURSE_TESTS_HELD_MARKET_H
#define BOURSE_TESTS_HELD_MARKET_H

#include "tests/support/hand_market.h"

enum { MAKER = PROVIDER, REFEREE = OTHER_PROVIDER, SECOND = 7, NO_REFEREE = 8, THIRD = 9 };
static const struct hash32 dice = {{5, 7}};
extern int64_t step_ns, busy_ns; /* that a work takes, and says that it took */
extern bool lacks_factor;        /* the next answers say so */

void set_up_referees(void);

/* The last job that checked_of made; a test may change it before it applies the command. */
enum { MOST = 32 };
struct checked_shape {
    uint32_t counts[2 * MOST], after[2 * MOST];
    struct exchange_graph graph;
    struct exchange_part checks;
};
extern struct checked_shape shape;
/* Returns the command that submits a job of so many results, each with a check. */
struct exchange_command checked_of(uint32_t results, int64_t budget_credits);
struct id128 submit_checked(uint32_t results);

/* Returns the work that the last command sent to the provider, which must be there. */
struct exchange_work sent_to(uint32_t provider);
bool is_sent_to(uint32_t provider);
/* Fails unless the index of who may make what waits says what a walk over all subtasks says. */
void check_choice(struct id128 id);
/* Sends a result, after step_ns. Returns the hash of the result. */
struct hash32 answer(uint32_t provider, struct id128 job, struct exchange_work work,
                     uint8_t outcome, uint8_t verdict);
void done(uint32_t provider, struct id128 job, struct exchange_work work);
/* MAKER does so many subtasks, of those that it has been sent by the last command and is sent
 * then. */
void make_all(struct id128 job, uint32_t results);
/* Returns the record of the subtask's result, which the last command must have made. */
const struct ledger_record *result_of(uint32_t index);

/* One result of MAKER, held, and its check sent to REFEREE. */
struct held_case {
    struct id128 job;
    struct exchange_work work, check;
};
struct held_case hold_one(void);
/* REFEREE has rejected what MAKER made, and so does whoever `other` is. */
void refute(const struct held_case *held, uint32_t other);
/* The operator says that the accounts with these keys have one owner. */
void group(const char *name, size_t count, const uint8_t *keys);

#endif
