/* A membership is this broker's place among the brokers that share a journal on etcd.
 *
 * The broker has a record on etcd (etcd_member.h). A thread of its own writes the record again
 * every ETCD_ROSTER_REFRESH_S seconds, over its own connection, so no entry of the journal waits
 * for it. An etcd that is away is tried again. A broker whose record was removed has left: it may
 * not start, and one that follows ends. One that leads goes on until it hands over, because its
 * clients need it, and says so in its log. */
#ifndef BOURSE_BROKER_CLUSTER_MEMBERSHIP_H
#define BOURSE_BROKER_CLUSTER_MEMBERSHIP_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/storage/etcd/etcd_roster.h"
#include "broker/storage/storage.h"

struct membership;

struct membership_config {
    const struct broker_config *config; /* this and the store outlive the membership */
    struct storage *store;
    const char *control, *blobs; /* addresses of the ports, for others */
};

/* Writes this broker's record, and starts the thread. A folder without a record gets one. Comes
 * after the journal on etcd was opened. Returns NULL with a problem: etcd does not answer, too many
 * brokers have a record, or this broker left. */
struct membership *membership_enter(const struct membership_config *config,
                                    struct problem *ret_problem);
/* Writes the record again at once, since something in it changed. Does nothing for NULL. */
void membership_tell(struct membership *membership);
/* Ends the thread, and writes that the broker stopped, if etcd answers. */
void membership_stop(struct membership **self);

/* Returns the newest rules that all brokers of the list know; 0: there are none, or a record cannot
 * be read. A broker that is away counts, too: it may come back. */
uint32_t membership_rules_of_all(const struct etcd_roster_list *list);

/* Checks, before anything is made, that a broker with an empty folder may found a market: its etcd
 * has none yet. Otherwise the node has lost its folder, or never joined. `adopt` allows one more
 * market on this etcd. Returns false with a problem. */
bool membership_check_new(const char *folder, const struct broker_config *config, bool adopt,
                          struct problem *ret_problem);

#endif
