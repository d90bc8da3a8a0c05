/* bench/endtoend/parts.h declares the parts of bench/endtoend.c. */
#ifndef BOURSE_BENCH_ENDTOEND_PARTS_H
#define BOURSE_BENCH_ENDTOEND_PARTS_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { AGENTS_MAX = 256, ENDTOEND_PATH_SIZE = 256 };

/* ---------------------------------------------------------------- market.c
 * A private market: real processes in a folder below /tmp, reached over ipc with CURVE. */

struct market_wishes {
    uint32_t agents, slots; /* slots of each agent */
    const char *programs;   /* folder of bourse-broker and bourse-provider */
    bool keeps_logs;        /* else what the processes say is dropped */
    bool signs_each;        /* agents sign each result apart */
};

struct private_market {
    char folder[64];
    char file[ENDTOEND_PATH_SIZE + 32]; /* market.yaml */
    char key[ENDTOEND_PATH_SIZE + 32];  /* of an account that is consumer and operator */
    pid_t broker, agents[AGENTS_MAX];
    uint32_t agent_count;
};

/* Starts broker and agents. On failure, too, market_close ends what was started. */
bool market_open(const struct market_wishes *wishes, struct private_market *market,
                 struct problem *ret_problem);
/* Ends the agents, then the broker; false when one of them did not end well. */
bool market_stop(struct private_market *market);
/* Stops what still runs and removes the folder. */
void market_close(struct private_market *market);

/* ---------------------------------------------------------------- latency.c
 * From the journal of a market whose broker has ended: how long each accepted subtask of a job took
 * from dispatch to acceptance, both in log time. */

struct latency {
    size_t count;
    double p50_ms, p99_ms;
    /* The numbers count signed messages of results, and commits, that brought accepted results. */
    uint64_t signatures, commits;
};
bool latency_of(const char *folder, const struct id128 *jobs, size_t job_count,
                struct latency *ret_latency, struct problem *ret_problem);

/* ---------------------------------------------------------------- anchors.c
 * What this machine does at this moment, to divide by. 0: it could not be measured. */

double anchor_echoes_per_s(double seconds);                   /* CURVE, two messages each */
double anchor_rows_per_s(const char *folder, double seconds); /* SQLite, FULL, 1,000 a commit */
double anchor_verifies_per_s(double seconds);                 /* Ed25519, one thread */

#endif
