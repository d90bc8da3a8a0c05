/* tests/sim/people.h - who is there besides brokers: agents, clients, the operator, newcomers and
 * those who mean ill, drawn from the seed; what they want; and how they calm down. */
#ifndef BOURSE_TESTS_SIM_PEOPLE_H
#define BOURSE_TESTS_SIM_PEOPLE_H

#include "protocol/genesis.h"
#include "tests/sim/agent.h"
#include "tests/sim/client.h"
#include "tests/sim/hostile.h"

enum {
    PEOPLE_AGENTS_MAX = 5,
    /* The first is the operator, the second an agent's owner, the last two join later. */
    PEOPLE_CLIENTS_MAX = 7,
    PEOPLE_OWNER = 1,
    PEOPLE_NEWCOMERS = 2,
    PEOPLE_HOSTILES = 2
};

struct people {
    struct { /* chances in 10,000 */
        uint32_t lie, replay;
        uint32_t jobs_open; /* requests of one client without an answer */
    } habits;
    struct genesis genesis;
    struct exchange_limits limits;
    struct agent agents[PEOPLE_AGENTS_MAX];
    unsigned agent_count;
    struct client clients[PEOPLE_CLIENTS_MAX];
    unsigned client_count;
    struct hostile hostiles[PEOPLE_HOSTILES];
    bool is_halted;
    struct id128 tokens[PEOPLE_NEWCOMERS]; /* what the newcomers were given */
};
extern struct people people; /* all zeros but for the habits, before people_found */

/* A run calls these in this order. */
void people_found(void);
void people_draw_limits(void);
void people_make_clients(void);
void people_make_agents(void);
void people_make_hostiles(void);
void people_start(void);

/* Somebody wants something. */
void people_work(void);
void people_operate(void);
void people_lie(void);
void people_be_hostile(void);
/* Something befalls somebody. */
struct peer *people_some_peer(void);
void people_crash_agent(void);
void people_crash_client(void);
void people_cut(void);
void people_replay(void);

void people_become_calm(void);
/* Whatever was halted or frozen is free again; asked for again while an older request may still
 * undo it. */
void people_reopen(void);
/* Returns how much is not right yet; 0: everything is. */
size_t people_unfinished(bool tells);

#endif
