/* A folder copy says where one folder's journal ends, for the operator's commands. They read the
 * folder beside a running broker. */
#ifndef BOURSE_BROKER_CLUSTER_FOLDER_COPY_H
#define BOURSE_BROKER_CLUSTER_FOLDER_COPY_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/config.h"

#include <stdbool.h>
#include <stdint.h>

struct folder_copy {
    struct id128 market;
    uint64_t last;
    struct hash32 chain;
    int64_t log_ns; /* of the last command */
};

/* Reads the end of the folder's journal. Returns false with a problem. */
bool folder_copy_end(const char *folder, struct folder_copy *ret_copy, struct problem *ret_problem);
/* Reads the chain hash of one entry of the folder or backup. Returns false when it has no such
 * entry. */
bool folder_copy_chain(const char *folder, uint64_t index, struct hash32 *ret_chain);
/* Reads the folder's config. Returns false with a problem, also when it names no etcd. */
bool folder_copy_config(const char *folder, struct broker_config *ret_config,
                        struct problem *ret_problem);
/* Reads what the folder says of itself and of its etcd. Returns false with a problem, also when its
 * config names no etcd. */
bool folder_copy_read(const char *folder, struct broker_config *ret_config,
                      struct folder_copy *ret_copy, struct problem *ret_problem);
/* Returns true while a broker holds the folder's lock. */
bool folder_copy_is_served(const char *folder);
/* Returns the text, or "?" when it would need escapes in JSON. What etcd has comes from the holders
 * of its certificates alone. */
const char *folder_copy_plain(const char *text);

#endif
