/* The file `journal.etcd` in a market's folder says on which etcd cluster the market's journal is,
 * under which id, and which record there is this broker's.
 *
 * A broker that would go on without it, or on another cluster, would begin a second history beside
 * the first. The file is no part of a backup. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_MARK_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_MARK_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/etcd/etcd_member.h"

#include <stdbool.h>
#include <stdint.h>

struct etcd_mark {
    uint64_t cluster;     /* id of the etcd cluster; 0: there is no file */
    struct id128 journal; /* that the keys of the journal have; zeros: the market's own id */
    char member[ETCD_MEMBER_ID_SIZE]; /* of this broker's record; "": it has none yet */
};

/* Reads the file; a cluster of 0 says that there is none. A file of an earlier release has neither
 * a journal nor a member. Returns false with a problem when the file cannot be read, or has other
 * content. */
bool etcd_mark_read(const char *folder, struct etcd_mark *ret_mark, struct problem *ret_problem);
bool etcd_mark_write(const char *folder, const struct etcd_mark *mark, struct problem *ret_problem);
/* Removes the file, if there is one. */
bool etcd_mark_remove(const char *folder, struct problem *ret_problem);
/* Checks a folder whose config names no etcd: it must not have been on one. `adopt` lets it go on
 * alone. Returns false with a problem. */
bool etcd_mark_check_alone(const char *folder, bool adopt, struct problem *ret_problem);
/* Returns the id that the keys of the journal have, for a market with this cluster id. */
const struct id128 *etcd_mark_journal(const struct etcd_mark *mark, const struct id128 *market);

#endif
