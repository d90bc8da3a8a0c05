/* broker/budget.h - the work that a session and an account may cost the broker's threads: so many steps a second.
 *
 * Messages are counted at the gateway (broker/allowance.h). But one message may cost a hundred microseconds or ten
 * milliseconds, so what answers it says its steps afterwards (exchange_steps), and those are taken off here. Who has used up
 * what it had is refused until it has earned more; so a single answer is never too dear, and a second one waits. A step is about
 * 8 ns of one thread. Any thread; time is an argument. */
#ifndef BOURSE_BROKER_BUDGET_H
#define BOURSE_BROKER_BUDGET_H

#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Steps a second and session, unless limits.steps says another number. */
enum { BUDGET_STEPS = 4000000 };
enum {
    BUDGET_ACCOUNT_SESSIONS = 2, /* an account has as much as so many sessions */
    BUDGET_ANSWER_STEPS = 64,    /* of any answer and any command: its way through the queues */
    BUDGET_BYTES_PER_STEP = 2,   /* of an answer, which is encoded, sealed and kept for a while */
    BUDGET_STORED_PER_STEP = 2,  /* of a command, which is verified and goes to disk */
    BUDGET_EFFECT_STEPS = 64,    /* of each effect that a command has */
    BUDGET_VISIT_STEPS = 256,    /* of each row of what work was measured to take */
};

struct budget;

/* `steps`: of one session. NULL when out of memory. */
struct budget *budget_create(uint32_t steps);
void budget_destroy(struct budget **self);

struct budget_refusal {
    bool is_told;      /* the sender hears of it: once a second, as of messages above a rate */
    const char *field; /* "steps_per_second", or "account_steps_per_second" */
    int64_t value;     /* steps that it is behind, and one second's more */
    int64_t limit;     /* steps a second */
};

/* Whether a message of that session may cost anything now. All strangers are one account
 * (EXCHANGE_NO_ACCOUNT). */
bool budget_allows(struct budget *budget, uint32_t account, uint64_t session, int64_t now_ns,
                   struct budget_refusal *ret_refusal);
/* Takes what it did cost, which may be more than was left. */
void budget_charge(struct budget *budget, uint32_t account, uint64_t session, uint64_t steps,
                   int64_t now_ns);

/* What is charged for an answer that took so many steps and has so many bytes. */
static inline uint64_t budget_of_answer(uint64_t steps, size_t bytes)
{
    return BUDGET_ANSWER_STEPS + steps + bytes / BUDGET_BYTES_PER_STEP;
}

/* What is charged for a command of so many bytes, before it is applied. */
static inline uint64_t budget_of_command(size_t bytes)
{
    return BUDGET_ANSWER_STEPS + bytes / BUDGET_STORED_PER_STEP;
}

#endif
