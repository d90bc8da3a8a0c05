/* tests/sim/cluster/etcd.h - three members of etcd, as the journal of the brokers sees them.
 *
 * One order of transactions is the truth. What a majority has agreed on stays, and every member
 * executes it in that order. A member may be behind, so a read may show any earlier state. Each
 * copy of a request is executed at most once. It may arrive long after its sender gave up, and its
 * answer may get lost. Without a majority nothing is decided. Which member leads is drawn, for the
 * protocol between the members is not here.
 *
 * The model watches what it is given: who appends under which epoch, without a gap, and nothing
 * twice. It shares no code with what writes the requests, but for the reader of protobuf. */
#ifndef BOURSE_TESTS_SIM_CLUSTER_ETCD_H
#define BOURSE_TESTS_SIM_CLUSTER_ETCD_H

#include "broker/storage/etcd/grpc.h"
#include "broker/storage/journal.h"
#include "tests/sim/world.h"

enum { ETCD_MEMBERS = 3, ETCD_BROKERS = 3 };

struct etcd_faults {      /* chances in 10,000 requests */
    uint32_t late;        /* it waits on its way, up to `late_most_ns` */
    uint32_t answer_lost; /* it was executed, and nobody hears of it */
    uint32_t repeated;    /* a second copy arrives later */
    uint32_t stale;       /* a read shows what its member has at the moment */
    int64_t late_most_ns;
    int64_t decide_most_ns; /* until a majority has a transaction on its disks */
    int64_t behind_most_ns; /* until a member that does not lead has executed it */
};

void etcd_start(const struct etcd_faults *faults);
void etcd_set_faults(const struct etcd_faults *faults);
/* All members run, all links stand, and nothing more gets lost. */
void etcd_become_calm(void);

/* A member ends, and comes back after a while without what its disk did not have yet. */
void etcd_crash_member(void);
void etcd_stop_member(void);
/* A member executes nothing for a while, and answers reads from what it has. */
void etcd_delay_member(void);
/* Two members no longer hear each other, or one the other. The third may still hear both. */
void etcd_cut_members(void);
/* A broker no longer reaches one member or all, or is not reached. */
void etcd_cut_broker(void);
/* A broker ends, or stands still, this very moment: what it has just sent may arrive much later. */
void etcd_lose_broker(unsigned broker);
/* The quota is reached for a while: what puts is refused. */
void etcd_fill(void);

/* Asks a member. The present fibre waits. Returns the outcome, and an answer that lives until the
 * broker's next call. */
struct etcd_asked {
    enum grpc_outcome outcome;
    uint8_t *answer; /* ANSWERED: of sim_alloc, the caller's */
    size_t length;
};
struct etcd_asked etcd_ask(unsigned broker, unsigned member, const char *path, const uint8_t *bytes,
                           size_t length, int64_t timeout_ns);

/* Returns the newest entry of the log. */
uint64_t etcd_last(void);
/* Gets an entry, also one that was cut away. UNAVAILABLE: there never was one. */
enum journal_status etcd_entry(uint64_t index, struct journal_entry *ret_entry);

struct etcd_counts {
    uint64_t takeovers, refused, late, lost, stale, elections;
};
struct etcd_counts etcd_counts(void);

#endif
