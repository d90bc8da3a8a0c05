/* tests/sim/cluster/seat.h - a seat is one of the three brokers: a process, its port, and a disk
 * that outlives it.
 *
 * In the process run the production start, follower, standby, journal on etcd, gateway, signature
 * worker, core, committer and ledger's follower, as fibres. What is the world's: the members of
 * etcd behind the calls, the disk behind broker/storage/storage.h, locks, queues, clocks, the port,
 * and the restart of whoever has ended. */
#ifndef BOURSE_TESTS_SIM_CLUSTER_SEAT_H
#define BOURSE_TESTS_SIM_CLUSTER_SEAT_H

#include "broker/broker_internal.h"
#include "broker/storage/epoch.h"
#include "tests/sim/net.h"
#include "tests/sim/port.h"

enum { SEATS = 3 };

struct seat_entry {
    uint8_t *bytes;
    size_t length;
    struct hash32 chain;
};

struct seat_disk {
    struct seat_entry *entries; /* entry 1 + i */
    uint64_t count, capacity;
    uint64_t next_command;
    uint64_t epoch;      /* of the folder's own journal */
    int64_t last_run_ns; /* wall clock of its last write */
    uint64_t etcd_cluster;
    struct epoch_secrets secrets;
};

struct seat {
    struct process process;
    struct host host;
    unsigned number;
    struct seat_disk disk;
    struct identity *audit_key;
    int64_t disk_least_ns, disk_most_ns; /* of one commit */
    uint32_t disk_slow;                  /* commits that take seconds, in 10,000 */
    uint32_t cuts;                       /* entries after which etcd's log is cut, in 10,000 */
    struct router port;
    /* Lost in a crash. */
    struct broker *broker;
    bool is_open, serves;
};
extern struct seat seats[SEATS];

/* Makes the seats; none runs. The last draws of the profile. */
void seats_make(uint32_t disk_slow, uint32_t cuts);
void seat_start(struct seat *seat);
/* Makes the folder anew from that of the seat that is furthest, as `cluster join` does. */
void seat_join(struct seat *seat);
uint64_t seats_joined(void); /* so often, after the start */
/* Ends at once, as by SIGKILL, and starts again after at least `away_ns`. */
void seat_crash(struct seat *seat, int64_t away_ns);
/* The seat whose code runs. */
struct seat *seat_present(void);

/* The disk has the group, and everybody may see what this broker is. seat_storage.c */
void seat_disk_copy(struct seat_disk *to, const struct seat_disk *from);
struct journal *seat_disk_open(struct seat *seat);

#endif
