/* The file `journal.etcd` in a market's folder says on which etcd cluster the market's journal is.
 *
 * A broker that would go on without it, or on another cluster, would begin a second history beside
 * the first. The file is no part of a backup. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_MARK_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_MARK_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads the id of the etcd cluster; 0 when there is no file. Returns false with a problem when the
 * file cannot be read, or has other content. */
bool etcd_mark_read(const char *folder, uint64_t *ret_cluster, struct problem *ret_problem);
bool etcd_mark_write(const char *folder, uint64_t cluster, struct problem *ret_problem);
/* Removes the file, if there is one. */
bool etcd_mark_remove(const char *folder, struct problem *ret_problem);

#endif
