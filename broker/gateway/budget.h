/* broker/gateway/budget.h - the work that a session and an account may cost the broker's threads:
 * so many steps a second.
 *
 * Messages are counted at the gateway (broker/gateway/allowance.h). But one may cost a microsecond
 * or ten milliseconds, so what answers it says its steps afterwards (exchange_steps), and those are
 * taken off here: a single answer is never too dear. A sender who has used up its steps waits
 * until more are earned: some reads in the core, some commands in the gateway
 * (broker/gateway/held.h). The rest is refused. Commands have a budget of their own, so that no
 * read keeps its sender from trading. A step is about 8 ns of one thread. Any thread; time is an
 * argument. */
#ifndef BOURSE_BROKER_GATEWAY_BUDGET_H
#define BOURSE_BROKER_GATEWAY_BUDGET_H

#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Steps a second and session, unless limits.steps says another number. */
enum { BUDGET_STEPS = 4000000 };
enum {
    BUDGET_SAVED_MS = 30, /* who asks little has what that time earns, at most */
    /* An account has as much as so many sessions. */
    BUDGET_READS_SESSIONS = 2,
    BUDGET_COMMANDS_SESSIONS = 1,
    BUDGET_WAITING = 16,         /* reads of one session that wait for more to be earned */
    BUDGET_WAITING_ACCOUNT = 64, /* and of one account */
    BUDGET_ANSWER_STEPS = 64,    /* of any answer: its way through the queues */
    BUDGET_COMMAND_STEPS = 600,  /* of any command: its signature, and its rows of the journal */
    BUDGET_BYTES_PER_STEP = 2,   /* of an answer, which is encoded, sealed and kept for a while */
    BUDGET_STORED_PER_STEP = 1,  /* of a command, which is verified and goes to disk */
    BUDGET_RESULTS_PER_STEP = 8, /* of Results, until they are accepted */
    BUDGET_EFFECT_STEPS = 64,    /* of each effect that a command has */
    BUDGET_VISIT_STEPS = 256,    /* of each row of what work was measured to take */
    BUDGET_LEDGER_STEPS = 16384, /* of a read of the ledger until it is known what it took */
};

struct budget;

/* `steps`: of one session. NULL when out of memory. */
struct budget *budget_create(uint32_t steps);
void budget_destroy(struct budget **self);

enum budget_kind { BUDGET_READS, BUDGET_COMMANDS };

struct budget_asker {
    uint32_t account; /* EXCHANGE_NO_ACCOUNT: all strangers are one account */
    uint64_t session;
    enum budget_kind kind;
};

enum budget_answer {
    BUDGET_NOW,
    BUDGET_LATER,   /* it waits, and is counted as waiting: budget_resumes */
    BUDGET_REFUSED, /* nothing is to be done for it */
};

struct budget_refusal {
    bool is_told;      /* the sender hears of it: once a second, as of messages above a rate */
    const char *field; /* "steps_per_second", or "account_steps_per_second" */
    int64_t value;     /* the steps that it would have to earn first, and one second's */
    int64_t limit;     /* steps a second */
};

/* At the gateway: whether a message is to go on. A read does while its session has not too many
 * before it that wait. */
bool budget_admits(struct budget *budget, const struct budget_asker *asker, int64_t now_ns);
/* What is said to the sender of one that does not. */
struct budget_refusal budget_refuse(struct budget *budget, const struct budget_asker *asker,
                                    int64_t now_ns);
/* Before a read is answered. Commands are not asked about again. */
enum budget_answer budget_allows(struct budget *budget, const struct budget_asker *asker,
                                 int64_t now_ns, struct budget_refusal *ret_refusal);
/* Whether one that waits may be answered now; then it waits no more. */
bool budget_resumes(struct budget *budget, const struct budget_asker *asker, int64_t now_ns);
/* It waits no more, and is not answered. */
void budget_forgets(struct budget *budget, const struct budget_asker *asker);
/* Takes what it did cost, which may be more than was left; or gives back what was taken too much.
 */
void budget_charge(struct budget *budget, const struct budget_asker *asker, int64_t steps,
                   int64_t now_ns);

/* What is charged for an answer that took so many steps and has so many bytes. */
static inline int64_t budget_of_answer(uint64_t steps, size_t bytes)
{
    return BUDGET_ANSWER_STEPS + (int64_t)(steps + bytes / BUDGET_BYTES_PER_STEP);
}

/* What is charged for a command of so many bytes, before it is applied. */
static inline int64_t budget_of_command(size_t bytes)
{
    return BUDGET_COMMAND_STEPS + (int64_t)(bytes / BUDGET_STORED_PER_STEP);
}

/* Results are bounded by what was dispatched: this is given back when they are accepted, and when
 * they are refused the rest of a command is charged. */
static inline int64_t budget_of_results(size_t bytes)
{
    return BUDGET_COMMAND_STEPS + (int64_t)(bytes / BUDGET_RESULTS_PER_STEP);
}

#endif
