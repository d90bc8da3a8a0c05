/* An etcd_member is the record that a broker has of itself on etcd, beside the journal.
 *
 *   /bourse/JOURNAL/brokers/ID   the record; it stays until `cluster leave` removes it
 *   /bourse/JOURNAL/alive/ID     empty, with a lease: it goes when the broker says nothing
 *
 *   record: "BJM2", u8 rank, u8 flags (1: the broker runs), u64 epoch, u64 index, i64 lag,
 *           i64 seen, u64 command and 32 hash of the newest state, u32 rules in force, u32 first
 *           and u32 last rules known, then u8 length and bytes of: broker, control, blobs,
 *           version
 *
 * No record is part of the fence of the journal: a record is for the operator to read. Two things
 * hang on records: a broker whose record was removed may not start, and the market takes new rules
 * once every record covers them. The code is pure. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_MEMBER_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_MEMBER_H

#include "base/id.h"
#include "broker/storage/etcd/etcd_message.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ETCD_MEMBER_ID_SIZE = 17, /* 16 hex digits */
    ETCD_MEMBER_TEXT_SIZE = 128,
    ETCD_MEMBER_VERSION_SIZE = 32,
    ETCD_MEMBER_BYTES_MAX = 512,
    ETCD_MEMBERS_KEPT_MAX = ETCD_PAIRS_MAX /* records of one market */
};

struct etcd_member {
    char id[ETCD_MEMBER_ID_SIZE]; /* of the key, not of the record */
    unsigned rank;
    bool runs;              /* false: it stopped properly */
    uint64_t epoch;         /* under which it leads; 0: it follows */
    uint64_t index;         /* newest entry that its disk has */
    int64_t lag_ms;         /* since it was at the end of the journal; -1: not since its start */
    int64_t seen_ms;        /* wall clock of its machine when it wrote the record */
    uint64_t state_command; /* newest command with a state hash in the log; 0: none yet */
    struct hash32 state;    /* before that command, as this broker has computed it */
    uint32_t rules;         /* in force where its disk ends; 0: none yet */
    uint32_t rules_first, rules_last;   /* that its program knows */
    char broker[ETCD_MEMBER_TEXT_SIZE]; /* name that it leads under */
    char control[ETCD_MEMBER_TEXT_SIZE], blobs[ETCD_MEMBER_TEXT_SIZE]; /* addresses of its ports */
    char version[ETCD_MEMBER_VERSION_SIZE];
};

/* Returns the length of the record, at most ETCD_MEMBER_BYTES_MAX. */
size_t etcd_member_write(const struct etcd_member *member,
                         uint8_t ret_bytes[ETCD_MEMBER_BYTES_MAX]);
/* Reads a record; the id stays empty. Returns false when the bytes are none of this release. */
bool etcd_member_read(struct etcd_bytes bytes, struct etcd_member *ret_member);
/* Returns true when the text is an id: 16 small hex digits, not all 0. */
bool etcd_member_is_id(const char *text);

#endif
