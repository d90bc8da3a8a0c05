/* The config is read from broker.yaml and holds everything that an operator can set.
 * docs/operator.md lists the keys.
 *
 * Every key is optional except `genesis.accounts` of a new market: without an operator nobody could
 * be invited. `genesis` counts only once, for the first entry of the journal. */
#ifndef BOURSE_BROKER_CONFIG_H
#define BOURSE_BROKER_CONFIG_H

#include "base/problem.h"
#include "broker/storage/etcd/etcd_config.h"
#include "exchange/exchange.h"
#include "protocol/genesis.h"
#include "protocol/route/contacts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONFIG_ENDPOINT_SIZE = 256, CONFIG_BYTES_MAX = 1 << 20, CONFIG_COPIES_MAX = 5 };

struct broker_config {
    char origin[GENESIS_ORIGIN_SIZE];       /* of the Merkle log; "": made from the cluster id */
    char listen[CONFIG_ENDPOINT_SIZE];      /* tcp endpoint of the control port; "": ipc only */
    char blob_listen[CONFIG_ENDPOINT_SIZE]; /* of the blob port */
    char advertise[CONFIG_ENDPOINT_SIZE];   /* endpoint that others connect to; "": `listen` */
    char blob_advertise[CONFIG_ENDPOINT_SIZE];
    /* All brokers of the market, this one too if the operator lists it. */
    struct contact addresses[CONTACTS_MAX];
    size_t address_count;
    int64_t heartbeat_ms;
    int64_t challenge_ms; /* time between two challenges of a device, on average; 0: none */
    uint32_t rate, rate_anonymous; /* messages per second and session */
    uint32_t steps;                /* per second and session (broker/gateway/budget.h) */
    unsigned workers;              /* signature workers */
    uint64_t snapshot_every;       /* commands */
    int64_t reserve_bytes;    /* kept for a full disk (broker/storage/disk_reserve.h); 0: nothing */
    int64_t blob_quota_bytes; /* per account */
    int64_t blob_size_bytes;  /* of one blob */
    /* The blobs of a job are kept so long after it ended, by default and at most. */
    int64_t blob_retain_ms, blob_retain_most_ms, blob_retain_least_ms;
    int64_t forget_grace_ms; /* forgotten blobs stay on the disk for so long */
    struct etcd_config etcd;
    /* Among the brokers of one journal on etcd: 0 takes over first. */
    unsigned cluster_rank;
    char cluster_address[CONFIG_ENDPOINT_SIZE]; /* where clients find this leader; "": advertise */
    unsigned cluster_copies; /* brokers that have a file before it counts as stored */
    struct exchange_limits limits;
    struct genesis genesis; /* cluster, origin and keys are not set here */
};

/* Sets all defaults, and a fresh key for the hash tables of the exchange. */
void config_default(struct broker_config *ret_config);
/* Parses the text of broker.yaml; `file_name` stands in messages. `is_new`: the market does not
 * exist yet, so its genesis accounts are checked for faults that nobody could mend later. The
 * accounts of an existing market no longer count. Returns false with a problem. */
bool config_parse(const char *text, size_t length, const char *file_name, bool is_new,
                  struct broker_config *ret_config, struct problem *ret_problem);
/* Copies the listed addresses but for the one whose control port is `own` to ret_others, and
 * returns how many there are: at most CONTACTS_MAX - 1. */
size_t config_others(const struct broker_config *config, const char *own,
                     struct contact ret_others[CONTACTS_MAX - 1]);
/* Writes the caps that differ, for people, as "jobs 10 -> 20, asks 5 -> 6"; cut to `size`. */
void config_limits_text(const struct exchange_limits *old, const struct exchange_limits *now,
                        char *ret_text, size_t size);
/* Reads DIR/broker.yaml; a missing file means all defaults. `may_be_new`: the market does not exist
 * yet when HEAD has seen no entry. It is false for a reader, and for an adoption, which has no
 * HEAD. Returns false with a problem. */
bool config_load(const char *folder, bool may_be_new, struct broker_config *ret_config,
                 struct problem *ret_problem);

#endif
