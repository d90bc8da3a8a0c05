/* bench/scale/parts.h declares the parts of bench/scale.c, which bench/cluster.c uses, too. */
#ifndef BOURSE_BENCH_SCALE_PARTS_H
#define BOURSE_BENCH_SCALE_PARTS_H

#include "base/problem.h"
#include "bench/shared/programs.h"
#include "consumer/client/bourse.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SCALE_AGENTS_MAX = 4032, SCALE_PATH_SIZE = 128 };

/* ---------------------------------------------------------------- agents.c
 * Many agents in one process: each has the agent's own session (provider/session), its own key and
 * its own CURVE connection. Only jails are left out: work takes a time and gives nothing. */

/* The process of the agents and its parent share this struct. */
struct agents_shared {
    /* The parent sets these. */
    atomic_uint wanted;          /* agents that run; more start as the number grows */
    atomic_int_fast64_t work_ns; /* how long the lane of a subtask is busy, on average */
    /* One more before each restart of the broker: from then on an agent is there again when the new
     * broker has welcomed it. */
    atomic_uint restarts;
    atomic_bool has_to_end;
    /* The agents' process sets these. */
    atomic_uint ready, standing;   /* agents that were welcomed, and whose ask stands */
    atomic_uint_fast64_t messages; /* sent and received, heartbeats included */
    atomic_uint_fast64_t heartbeats;
    atomic_uint_fast64_t result_messages, finished;
    atomic_uint_fast64_t reconnects; /* sessions that were lost */
    atomic_bool has_failed;
    char failure[160]; /* written before has_failed */
};

/* Forks the process, which runs no agent yet. Returns it, or -1. No thread exists in the caller. */
pid_t agents_start(const char *folder, struct agents_shared **ret_shared,
                   struct problem *ret_problem);

/* ---------------------------------------------------------------- market.c
 * A market of a broker process, and of as many accounts of providers as there are agents. */

struct scale_market {
    char folder[SCALE_PATH_SIZE]; /* holds broker/, owner/ and agents/ */
    char broker_folder[SCALE_PATH_SIZE];
    char file[SCALE_PATH_SIZE * 2]; /* market.yaml */
    char key[SCALE_PATH_SIZE * 2];  /* of the owner, who is consumer and operator */
    char programs[PROGRAM_PATH_SIZE - 32];
    const char *heartbeat; /* the key `heartbeat` of broker.yaml */
    const char *lines;     /* further lines of broker.yaml; NULL: none */
    char owner[65];        /* the owner's public key, in hex */
    pid_t broker;
    uint32_t joined;
};

/* Makes the folders and the owner's key. The path of an agent's key is known from its number. */
bool market_prepare(struct scale_market *market, struct problem *ret_problem);
/* Writes broker.yaml to a folder. */
bool market_write_config(const struct scale_market *market, const char *folder, const char *lines,
                         struct problem *ret_problem);
void market_agent_key(const char *folder, uint32_t number, char ret_path[SCALE_PATH_SIZE * 2]);
bool market_start(struct scale_market *market, struct problem *ret_problem);
/* Lets agents join until the market has so many. */
bool market_join(struct scale_market *market, uint32_t agents, struct problem *ret_problem);

#endif
