/* An etcd_roster is a connection to etcd for the records of a market's brokers (etcd_member.h).
 *
 * It is apart from the journal's connection, so a slow answer holds no entry. One thread uses it.
 * Every call ends within ETCD_ROSTER_MS for each member of etcd. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_ROSTER_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_ROSTER_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/etcd/etcd_config.h"
#include "broker/storage/etcd/etcd_member.h"
#include "broker/storage/etcd/etcd_values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ETCD_ROSTER_MS = 1000,     /* one member's answer */
    ETCD_ROSTER_REFRESH_S = 5, /* between two records of a broker that runs */
    ETCD_ROSTER_LEASE_S = 30,  /* without a record for so long, a broker counts as gone */
    ETCD_ROSTER_LEASE_USES = 3 /* records under one lease: the last one lasts 20 s */
};

enum etcd_roster_status {
    ETCD_ROSTER_OK,
    ETCD_ROSTER_GONE, /* the record is not there: its broker left, or was removed */
    ETCD_ROSTER_HELD, /* the transaction was refused for what it found on etcd */
    ETCD_ROSTER_AWAY  /* etcd does not say; a problem has the reason */
};

struct etcd_roster;

/* `cluster` is the id of the etcd cluster that must answer; 0: any. Returns NULL when memory is
 * short, or libcurl lacks HTTP/2. */
struct etcd_roster *etcd_roster_create(const struct etcd_config *config, uint64_t cluster,
                                       const struct id128 *journal);
void etcd_roster_destroy(struct etcd_roster **self);

/* Writes a broker's first record; one that is there is replaced. */
enum etcd_roster_status etcd_roster_enter(struct etcd_roster *roster,
                                          const struct etcd_member *member,
                                          struct problem *ret_problem);
/* Writes a record again, and shows that its broker runs, if it says so. GONE: there is none. */
enum etcd_roster_status etcd_roster_refresh(struct etcd_roster *roster,
                                            const struct etcd_member *member,
                                            struct problem *ret_problem);
/* Removes a record, if the record of `other` is there and stays. HELD: it is not. */
enum etcd_roster_status etcd_roster_remove(struct etcd_roster *roster, const char *id,
                                           const char *other, struct problem *ret_problem);

struct etcd_roster_list {
    size_t count;
    struct {
        struct etcd_member member; /* of one that is not readable: the id alone */
        bool is_readable;          /* false: another release wrote the record */
        bool is_alive;             /* its lease has not ended */
    } brokers[ETCD_MEMBERS_KEPT_MAX];
};
/* Reads all records. What is read may be out of date at once. */
enum etcd_roster_status etcd_roster_read(struct etcd_roster *roster,
                                         struct etcd_roster_list *ret_list,
                                         struct problem *ret_problem);

/* Says whether an etcd has a market, and which. */
struct etcd_roster_found {
    bool has_market; /* some market has a key there */
    char market[33]; /* the cluster id of one, in hex */
};
enum etcd_roster_status etcd_roster_look(struct etcd_roster *roster,
                                         struct etcd_roster_found *ret_found,
                                         struct problem *ret_problem);

/* Reads from where the roster's journal goes on, where a recovery made it. GONE: none did, or an
 * earlier release. */
enum etcd_roster_status etcd_roster_source(struct etcd_roster *roster,
                                           struct etcd_source *ret_source,
                                           struct problem *ret_problem);

/* Says which journal goes on instead of one that ends, and from where. */
struct etcd_roster_successor {
    struct id128 journal;
    struct etcd_source source;
};
/* Ends the market's newest journal for good, and names the one that goes on. The records of its
 * brokers go with it. `market` and `present` are the ids of the first journal, by which the newest
 * one is found, and of the newest one; both may be the same. HELD: another program was faster. */
enum etcd_roster_status etcd_roster_end_journal(struct etcd_roster *roster,
                                                const struct id128 *market,
                                                const struct id128 *present,
                                                const struct etcd_roster_successor *successor,
                                                struct problem *ret_problem);

/* A member of etcd, as etcd names it. */
struct etcd_roster_host {
    uint64_t id;
    char name[64], url[ETCD_URL_SIZE];
};
/* Reads the members of etcd. *ret_count is at most ETCD_PAIRS_MAX. */
enum etcd_roster_status etcd_roster_hosts(struct etcd_roster *roster,
                                          struct etcd_roster_host ret_hosts[ETCD_PAIRS_MAX],
                                          size_t *ret_count, struct problem *ret_problem);

#endif
