/* broker/storage/etcd/etcd_values.h has the keys and values that the journal puts into etcd.
 *
 *   /bourse/CLUSTER/leader      who may append: the fence compares the whole value
 *   /bourse/CLUSTER/base        the entry before the first one that is surely there
 *   /bourse/CLUSTER/log/INDEX   one entry (broker/storage/entry.h); INDEX is 16 hex digits
 *
 *   /bourse/CLUSTER/source      of the journal of a recovered market: from where it goes on
 *   /bourse/CLUSTER/brokers/ID  the record of one broker (etcd_member.h)
 *   /bourse/CLUSTER/alive/ID    there while that broker says that it runs
 *
 *   leader: "BJL1", u64 epoch, u64 mark of this start, u8 length and broker, u8 length and address
 *           or, in a journal that has ended: "BJR1", 16 id of the journal that goes on
 *   base:   "BJB1", u64 index, 32 chain hash, 32 state hash (zeros: not recorded)
 *   source: "BJS1", u64 index, 32 chain hash: of the last entry of the folder or backup
 *
 * CLUSTER is the market's cluster id in hex, so several markets may share one etcd. The journal of
 * a market that was recovered has a fresh id instead, and the one before has ended. Before entry 1
 * the log has entry 0 without bytes, so that every entry has a predecessor. The code is pure. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_VALUES_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_VALUES_H

#include "base/id.h"
#include "broker/storage/etcd/etcd_message.h"
#include "broker/storage/journal.h"

#include <stdbool.h>

enum {
    ETCD_KEY_SIZE = 72,
    ETCD_LEADER_BYTES_MAX = 256,
    ETCD_BASE_BYTES = 76,
    ETCD_ENDED_BYTES = 20,
    ETCD_SOURCE_BYTES = 44
};

struct etcd_key {
    char text[ETCD_KEY_SIZE];
};
struct etcd_key etcd_key_leader(const struct id128 *cluster);
struct etcd_key etcd_key_base(const struct id128 *cluster);
struct etcd_key etcd_key_source(const struct id128 *cluster);
struct etcd_key etcd_key_entry(const struct id128 *cluster, uint64_t index);
/* `id` is that of etcd_member.h. "" gives the first key of all brokers; etcd_key_end gives the
 * end. */
struct etcd_key etcd_key_broker(const struct id128 *cluster, const char *id);
struct etcd_key etcd_key_alive(const struct id128 *cluster, const char *id);
/* Returns the key that follows all keys that begin with `key`. */
struct etcd_key etcd_key_end(const struct etcd_key *key);
/* Returns the first key of all markets. */
struct etcd_key etcd_key_markets(void);
/* Returns the bytes of a key, borrowed. */
struct etcd_bytes etcd_key_bytes(const struct etcd_key *key);

/* A leader value, as it is compared. */
struct etcd_leader {
    uint8_t bytes[ETCD_LEADER_BYTES_MAX];
    size_t length;
};
/* `mark` tells apart two starts of one broker under one epoch. */
struct etcd_leader etcd_leader_of(const struct journal_leader *leader, uint64_t mark);
struct etcd_bytes etcd_leader_bytes(const struct etcd_leader *leader);
/* Returns false when the bytes are no leader value. */
bool etcd_leader_read(struct etcd_bytes bytes, struct etcd_leader *ret_value,
                      struct journal_leader *ret_leader);

/* The value of the leader's key once a journal has ended. No release takes it for a leader. */
void etcd_ended_write(const struct id128 *successor, uint8_t ret_bytes[ETCD_ENDED_BYTES]);
bool etcd_ended_read(struct etcd_bytes bytes, struct id128 *ret_successor);

/* The last entry of the folder or backup that a market was recovered from. */
struct etcd_source {
    uint64_t index;
    struct hash32 chain;
};
void etcd_source_write(const struct etcd_source *source, uint8_t ret_bytes[ETCD_SOURCE_BYTES]);
bool etcd_source_read(struct etcd_bytes bytes, struct etcd_source *ret_source);

void etcd_base_write(const struct journal_base *base, uint8_t ret_bytes[ETCD_BASE_BYTES]);
bool etcd_base_read(struct etcd_bytes bytes, struct journal_base *ret_base);

#endif
