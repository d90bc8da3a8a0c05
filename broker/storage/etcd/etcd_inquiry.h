/* An inquiry asks an etcd cluster about the journal of one market, for the operator.
 *
 * It only reads, and no broker need run. What it finds may be out of date at once. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_INQUIRY_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_INQUIRY_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/etcd/etcd_config.h"
#include "broker/storage/etcd/etcd_message.h"
#include "broker/storage/journal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etcd_inquiry_member {
    const char *url; /* of the config */
    bool answers, leads;
    char version[ETCD_VERSION_SIZE];
    uint64_t database_bytes, live_bytes;
    uint64_t quota_bytes; /* 0: the member does not say; etcd says it from 3.6 on */
    uint64_t behind; /* entries of raft that another member has applied, and this one has not */
};

struct etcd_inquiry {
    uint64_t cluster; /* the id of the etcd cluster */
    size_t member_count;
    struct etcd_inquiry_member members[ETCD_MEMBERS_MAX];
    bool has_quorum;           /* a member knows a leader of etcd */
    bool no_space, is_corrupt; /* alarms of etcd */
    struct id128 journal;      /* id of the market's newest journal: a recovery makes a new one */
    bool has_journal;          /* that one; the fields below count only then */
    struct journal_leader leader;
    uint64_t base;       /* the entry before the first one that is surely there */
    uint64_t last;       /* the newest entry */
    int64_t last_log_ns; /* log time of its last command; 0: unknown */
    struct hash32 asked; /* chain hash of the entry that was asked for */
    bool has_asked;      /* etcd has that entry */
};

/* Asks for the newest journal of `market`, and for its entry `index`, from which the end is looked
 * for. Returns false with a problem when no member answers, or they do not tell of the journal.
 * What the members said of themselves is in *ret_inquiry all the same. */
bool etcd_inquire(const struct etcd_config *config, const struct id128 *market, uint64_t index,
                  struct etcd_inquiry *ret_inquiry, struct problem *ret_problem);

#endif
