/* tests/sim/broker.h - a broker of the simulated world: the production gateway, signature worker,
 * core and committer, as fibres, over a journal in memory that two brokers may share.
 *
 * What is the world's, not production's: the queues between the threads (broker/core/queue.h), the
 * port (runtime/router.h), clocks and entropy (runtime/clock.h), log lines, the commit to the
 * journal and the disk of snapshots, and who tries to lead. A fatal error ends the process, as it
 * would. */
#ifndef BOURSE_TESTS_SIM_BROKER_H
#define BOURSE_TESTS_SIM_BROKER_H

#include "broker/core/queue.h"
#include "broker/storage/epoch.h"
#include "broker/storage/journal_memory.h"
#include "exchange/exchange.h"
#include "protocol/genesis.h"
#include "tests/sim/net.h"
#include "tests/sim/world.h"

struct fibre;
struct inner; /* everything that is lost in a crash */

struct broker {
    struct process process;
    struct host host;
    const struct genesis *genesis;
    const struct exchange_limits *limits;
    struct journal_log *log;
    unsigned rank;       /* who waits how long before it takes over */
    uint64_t mark_every; /* commands between two snapshots */
    int64_t commit_least_ns, commit_most_ns;
    struct inner *inner;
    bool serves;        /* leads, and its port is open */
    bool wants_to_lead; /* whatever the other does: a takeover without need */
    struct {            /* its disk: the newest snapshot */
        uint8_t *bytes;
        size_t length;
        uint64_t entry;
        struct hash32 chain;
    } snapshot;
    struct epoch_secrets secrets; /* on its disk too */
    uint64_t started, deposed, fatal;
};

void broker_start(struct broker *broker);
/* Ends at once, as by SIGKILL; its journal and snapshot stay. */
void broker_crash(struct broker *broker);
/* Says where the broker stands, and its state there. Returns false while the broker starts, or has
 * applied commands that are not committed. Another may have taken over while it was stopped, and
 * written something else there. */
bool broker_state(struct broker *broker, uint64_t *ret_command, struct hash32 *ret_state);
/* Its disk is gone too. */
void broker_forget(struct broker *broker);

#endif
