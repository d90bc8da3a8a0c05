/* A budget bounds the work that a session and an account cost the broker's threads. It counts steps
 * a second.
 *
 * The gateway counts messages (broker/gateway/allowance.h), but one message may cost a microsecond
 * or ten milliseconds. So the thread that answers a message counts the steps (exchange_steps) and
 * charges them here afterwards. No single answer is refused for its cost. A sender without steps
 * waits until it earns more. A few reads wait in the core, and a few commands in the gateway
 * (broker/gateway/held.h). All others are refused. Commands have a budget of their own, so that no
 * read keeps its sender from trading. A step is about 8 ns of one thread. Any thread may call these
 * functions; time is an argument. */
#ifndef BOURSE_BROKER_GATEWAY_BUDGET_H
#define BOURSE_BROKER_GATEWAY_BUDGET_H

#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Steps a second and session, unless limits.steps gives another number. */
enum { BUDGET_STEPS = 4000000 };
enum {
    /* An idle sender saves at most the steps of this time. */
    BUDGET_SAVED_MS = 30,
    /* An account has as many steps for reads as this number of sessions. */
    BUDGET_READS_SESSIONS = 2,
    /* A session has this many times the steps for commands, and all sessions of its account have
     * no more together. */
    BUDGET_COMMANDS_RATE = 4,
    BUDGET_WAITING = 16,          /* waiting reads of one session */
    BUDGET_WAITING_ACCOUNT = 64,  /* waiting reads of one account */
    BUDGET_ANSWER_STEPS = 64,     /* for any answer, which passes through the queues */
    BUDGET_COMMAND_STEPS = 12000, /* for any command: its signature and its journal rows */
    /* The charge for Results until they are accepted or refused. A burst of refused ones is
     * verified before the rest of its charge is known, so the number is not small. */
    BUDGET_RESULTS_STEPS = 4000,
    BUDGET_BYTES_PER_STEP = 2,   /* an answer is encoded, sealed and kept for a while */
    BUDGET_STORED_PER_STEP = 1,  /* a command is verified and goes to disk */
    BUDGET_RESULTS_PER_STEP = 8, /* for Results; they get the charge back once accepted */
    BUDGET_EFFECT_STEPS = 64,    /* for each effect of a command */
    BUDGET_VISIT_STEPS = 256,    /* for each row of measured work */
    BUDGET_LOOK_STEPS = 512,     /* for each blob that a result says is missing */
    /* A read of the ledger costs this much until its real cost is known, and never less than the
     * second number: its way through another thread and the start of a query. */
    BUDGET_LEDGER_STEPS = 16384,
    BUDGET_LEDGER_LEAST = 2048,
};

struct budget;

/* Creates a budget; `steps` is the rate of one session. Returns NULL when memory is short. */
struct budget *budget_create(uint32_t steps);
void budget_destroy(struct budget **self);
/* Sets another rate of one session. What senders have saved or owe stays. */
void budget_set_steps(struct budget *budget, uint32_t steps);

enum budget_kind { BUDGET_READS, BUDGET_COMMANDS };

struct budget_asker {
    /* The account; EXCHANGE_NO_ACCOUNT stands for all strangers together. */
    uint32_t account;
    uint64_t session;
    enum budget_kind kind;
};

enum budget_answer {
    BUDGET_NOW,
    /* The request is counted as waiting; budget_resumes says when its wait ends. */
    BUDGET_LATER,
    BUDGET_REFUSED, /* the request is refused */
};

struct budget_refusal {
    /* True when the sender is told of the refusal. A sender is told once a second, as when its rate
     * is too high. */
    bool is_told;
    const char *field; /* "steps_per_second", or "account_steps_per_second" */
    /* The steps that the sender must earn first, plus the steps of one second. */
    int64_t value;
    int64_t limit; /* steps a second */
};

/* Returns true when the gateway may pass a message on. A read may also pass while its session and
 * its account have few waiting reads. */
bool budget_admits(struct budget *budget, const struct budget_asker *asker, int64_t now_ns);
/* Returns the refusal for the sender of a message that may not pass. */
struct budget_refusal budget_refuse(struct budget *budget, const struct budget_asker *asker,
                                    int64_t now_ns);
/* Decides whether a read is answered now, later or never. Commands pass budget_admits alone. */
enum budget_answer budget_allows(struct budget *budget, const struct budget_asker *asker,
                                 int64_t now_ns, struct budget_refusal *ret_refusal);
/* Returns true when a waiting read may be answered now; then it no longer counts as waiting. */
bool budget_resumes(struct budget *budget, const struct budget_asker *asker, int64_t now_ns);
/* Ends the wait of a read that is not answered. */
void budget_forgets(struct budget *budget, const struct budget_asker *asker);
/* Charges the real cost, which may exceed the steps left. Negative `steps` give back an earlier
 * charge. */
void budget_charge(struct budget *budget, const struct budget_asker *asker, int64_t steps,
                   int64_t now_ns);

/* Returns the charge for an answer that took `steps` steps and has `bytes` bytes. */
static inline int64_t budget_of_answer(uint64_t steps, size_t bytes)
{
    return BUDGET_ANSWER_STEPS + (int64_t)(steps + bytes / BUDGET_BYTES_PER_STEP);
}

/* Returns the charge for a command of `bytes` bytes, before the command is applied. */
static inline int64_t budget_of_command(size_t bytes)
{
    return BUDGET_COMMAND_STEPS + (int64_t)(bytes / BUDGET_STORED_PER_STEP);
}

/* Returns the charge for Results, whose number the dispatches bound. Accepted Results get the
 * charge back. Refused Results pay the rest of the charge for a command. */
static inline int64_t budget_of_results(size_t bytes)
{
    return BUDGET_RESULTS_STEPS + (int64_t)(bytes / BUDGET_RESULTS_PER_STEP);
}

#endif
