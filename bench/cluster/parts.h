/* bench/cluster/parts.h declares the parts of bench/cluster.c. */
#ifndef BOURSE_BENCH_CLUSTER_PARTS_H
#define BOURSE_BENCH_CLUSTER_PARTS_H

#include "base/problem.h"
#include "bench/scale/parts.h"
#include "tests/support/etcd_cluster.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BROKERS_MAX = 4 }; /* three, and one that joins late */

/* ---------------------------------------------------------------- brokers.c
 * One broker on SQLite's journal, or three on etcd's: real processes, on loopback. */

struct broker_place {
    char folder[SCALE_PATH_SIZE];
    unsigned port; /* of the control port; the blob port is the next one */
    pid_t pid;
};

struct brokers {
    struct scale_market market; /* broker 0's folder is the market's */
    struct etcd_cluster etcd;
    bool is_cluster;
    uint32_t count;
    struct broker_place places[BROKERS_MAX];
};

/* Starts the brokers. `source` is the root of the sources, where the scripts for etcd's
 * certificates are. On failure, too, brokers_end ends what was started. */
bool brokers_start(struct brokers *brokers, bool is_cluster, const char *source,
                   struct problem *ret_problem);
/* Starts a broker of the cluster again, which then follows. */
bool brokers_restart(struct brokers *brokers, uint32_t number, struct problem *ret_problem);
/* Returns the broker that leads according to etcd, or -1. */
int brokers_leader(const struct brokers *brokers);
/* Waits until the broker's own ledger has all that etcd has. */
bool brokers_await(const struct brokers *brokers, uint32_t number, struct problem *ret_problem);
/* Writes a backup of broker 0, which runs. */
bool brokers_back_up(const struct brokers *brokers, struct problem *ret_problem);
/* Lets one more broker join from that backup, starts it, and waits until it has everything. */
bool brokers_join(struct brokers *brokers, double *ret_seconds, struct problem *ret_problem);
/* Ends the brokers; their folders stay. Returns false when one did not end well. */
bool brokers_stop(struct brokers *brokers);
/* Ends all that still runs, and removes the folder. */
void brokers_end(struct brokers *brokers);

/* ---------------------------------------------------------------- load.c
 * One client session that sends numbered commands, and records which were acknowledged. Command i
 * mints i + 1 millionths of a credit, so the ledger tells which of them it has. */

enum command_state { COMMAND_UNSENT, COMMAND_SENT, COMMAND_ACKNOWLEDGED, COMMAND_REFUSED };

struct load;
struct load *load_open(const struct brokers *brokers, struct problem *ret_problem);
void load_close(struct load **self);
/* Sends commands, at most `in_flight` at a time, until `most` more were sent or `until_ns`. */
void load_run(struct load *load, uint32_t in_flight, uint64_t most, int64_t until_ns);
/* Waits for the answers of all commands that were sent; false when they do not come. */
bool load_drain(struct load *load);
uint64_t load_sent(const struct load *load);
uint64_t load_acknowledged(const struct load *load);
uint64_t load_refused(const struct load *load);
/* Returns how often a connection became ready. */
uint64_t load_greeted(const struct load *load);
/* Returns when the first acknowledgement came on the present connection; 0: none yet. */
int64_t load_first_ns(const struct load *load);
/* Returns how long the command took whose acknowledgement is the newest. */
int64_t load_newest_took_ns(const struct load *load);
enum command_state load_state(const struct load *load, uint64_t number);

/* ---------------------------------------------------------------- verify.c */

struct verdict {
    uint64_t lost;       /* acknowledged, and not in the ledger */
    uint64_t duplicated; /* twice in the ledger; subtasks that were accepted or paid twice, too */
    uint64_t unanswered; /* in the ledger without an acknowledgement: allowed, and counted */
};

/* Compares the client's record with a broker's ledger, and runs the independent audit of it. The
 * brokers have ended. */
bool verify_ledger(const struct brokers *brokers, uint32_t number, const struct load *load,
                   struct verdict *ret_verdict, struct problem *ret_problem);

#endif
