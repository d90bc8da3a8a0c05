/* tests/sim/agent.h - an agent of the simulated world: the production session, and a shell around
 * it that does what provider/agent.c does, with programs that only take their time.
 *
 * Like the real one it keeps nothing but its key: started again, it knows no lease and owes no
 * result. A liar has the same session, and claims, steals and invents beside it. */
#ifndef BOURSE_TESTS_SIM_AGENT_H
#define BOURSE_TESTS_SIM_AGENT_H

#include "protocol/identity.h"
#include "provider/session/agent_session.h"
#include "tests/sim/net.h"

enum { AGENT_DEVICES = 2, AGENT_RUNNING = 256 };

struct agent_running {
    struct agent_work work;
    uint64_t number; /* 0: free */
    int64_t began_ns;
    uint8_t outcome;
    bool has_left;
    bool is_check;
    uint8_t verdict; /* of a check, and the seed that it was given */
    struct hash32 seed;
};

struct agent {
    struct process process;
    struct peer peer;
    struct identity *identity;
    uint32_t account; /* number */
    struct id128 cluster;
    bool is_liar;
    uint32_t cheating; /* results of it that are wrong, in 10,000; a referee sees which */
    uint32_t device_count;
    struct {
        struct id128 id;
        uint32_t slots;
        int64_t price_micro, max_term_ms;
        bool is_gpu;
        int64_t memory;
        int64_t bf16; /* operations per second; 0: it does not say */
        struct agent_conditions conditions;
        bool is_interruptible;
        int64_t notice_ms, minimum_run_ms;
    } devices[AGENT_DEVICES];
    int64_t longest_ns; /* of most subtasks */
    uint32_t failing;   /* programs that fail, in 10,000 */
    /* lost in a crash */
    struct agent_session *session;
    int64_t reconnect_ns, due_ns;
    struct agent_running running[AGENT_RUNNING];
    uint64_t started, begun;
};

void agent_start(struct agent *agent);
void agent_crash(struct agent *agent); /* starts again after a while */
/* Something a liar would do. */
void agent_lies(struct agent *agent);
bool agent_is_ready(const struct agent *agent);

#endif
