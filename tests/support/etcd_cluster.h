/* An etcd_cluster is three real etcd members on loopback, for tests and for bench/journal.c.
 *
 * They speak TLS with certificates of their own, and end with the process that started them. */
#ifndef BOURSE_TESTS_SUPPORT_ETCD_CLUSTER_H
#define BOURSE_TESTS_SUPPORT_ETCD_CLUSTER_H

#include "broker/storage/etcd/etcd_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { ETCD_CLUSTER_MEMBERS = 3 };

struct etcd_cluster {
    char folder[512];
    struct etcd_config config;        /* for journal_etcd_open */
    pid_t pids[ETCD_CLUSTER_MEMBERS]; /* 0: the member does not run */
    unsigned client_ports[ETCD_CLUSTER_MEMBERS], peer_ports[ETCD_CLUSTER_MEMBERS];
    uint64_t quota_bytes;
};

/* Returns true when etcd and openssl are installed. */
bool etcd_cluster_is_possible(void);
/* Makes certificates in `folder`, which exists and is empty, and starts the members. `source` is
 * the root of the sources. Returns once all three know a leader; false when they do not in a
 * minute. */
bool etcd_cluster_start(struct etcd_cluster *cluster, const char *source, const char *folder,
                        uint64_t quota_bytes);
/* Sends a signal to a member; after SIGKILL waits for its end. */
void etcd_cluster_signal(struct etcd_cluster *cluster, unsigned member, int signal);
/* Starts a killed member again, on its data. */
bool etcd_cluster_restart(struct etcd_cluster *cluster, unsigned member);
/* Waits until all running members know a leader. */
bool etcd_cluster_await(const struct etcd_cluster *cluster);
/* Returns the member that leads, or -1. */
int etcd_cluster_leader(const struct etcd_cluster *cluster);
/* Kills all members. The folder stays. */
void etcd_cluster_end(struct etcd_cluster *cluster);

#endif
