/* broker/storage/etcd/etcd_message.h writes the requests that the journal sends to etcd, and reads
 * the answers.
 *
 * The numbers of methods, messages and fields are those of etcd's own definition (rpc.proto and
 * kv.proto of etcd 3). Only what the journal uses is here. The code is pure. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_MESSAGE_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ETCD_COMPARES_MAX = 3,
    ETCD_OPERATIONS_MAX = 5,
    ETCD_PAIRS_MAX = 16,
    ETCD_VERSION_SIZE = 32
};

struct etcd_bytes {
    const uint8_t *bytes;
    size_t length;
};
bool etcd_bytes_equal(struct etcd_bytes one, struct etcd_bytes other);

enum etcd_method {
    ETCD_TXN,
    ETCD_COMPACT,
    ETCD_STATUS,
    ETCD_ALARMS,
    ETCD_LEASE_GRANT,
    ETCD_MEMBER_LIST
};
/* Returns the path that gRPC calls the method by. */
const char *etcd_method_path(enum etcd_method method);

enum etcd_condition { ETCD_HAS_VALUE, ETCD_IS_ABSENT, ETCD_IS_PRESENT };
struct etcd_compare {
    enum etcd_condition condition;
    struct etcd_bytes key, value; /* `value` with HAS_VALUE */
};

enum etcd_operation_kind { ETCD_GET, ETCD_PUT, ETCD_DELETE };
struct etcd_operation {
    enum etcd_operation_kind kind;
    /* GET and DELETE: all keys from `key` to one before `end`; without `end` the key alone. */
    struct etcd_bytes key, end;
    struct etcd_bytes value; /* PUT */
    int64_t lease;           /* PUT: the key goes when this lease ends; 0: it stays */
    uint32_t limit;          /* GET: the most pairs in the answer; 0: all */
};

struct etcd_request {
    enum etcd_method method;
    /* TXN: `then` when all comparisons hold, `otherwise` when one does not. */
    size_t compare_count, then_count, otherwise_count;
    struct etcd_compare compares[ETCD_COMPARES_MAX];
    struct etcd_operation then[ETCD_OPERATIONS_MAX], otherwise[ETCD_OPERATIONS_MAX];
    uint64_t revision; /* COMPACT: the history before it goes */
    int64_t lease_s;   /* LEASE_GRANT: for how long */
};
/* Returns the length of the written request. Sets *ret_fits to false when `capacity` is too
 * small. */
size_t etcd_request_write(const struct etcd_request *request, uint8_t *ret_bytes, size_t capacity,
                          bool *ret_fits);

struct etcd_pair {
    struct etcd_bytes key, value; /* borrowed from the answer's bytes */
};

struct etcd_answer {
    uint64_t cluster;  /* the id that etcd gives its cluster; 0: the answer has none */
    uint64_t member;   /* the id of the member that answered */
    uint64_t revision; /* of the whole store, when it answered */
    bool succeeded;    /* TXN: all comparisons held */
    /* TXN: of all GETs of the branch that was executed. MEMBER_LIST: one for each member of etcd,
     * with its name and the first address for clients; `ids` has its id. */
    size_t pair_count;
    struct etcd_pair pairs[ETCD_PAIRS_MAX];
    uint64_t ids[ETCD_PAIRS_MAX];
    char version[ETCD_VERSION_SIZE]; /* STATUS: such as "3.4.23" */
    uint64_t database_bytes, leader; /* STATUS; leader 0: the member knows none */
    /* STATUS: what of the database is live, and how far the member has applied the log of raft. The
     * quota is known from etcd 3.6 on; 0: the member does not say. */
    uint64_t live_bytes, quota_bytes, applied;
    bool alarm_no_space, alarm_is_corrupt; /* ALARMS */
    int64_t lease;                         /* LEASE_GRANT: its id */
};
/* Reads an answer to `method`. Returns false when the bytes are none, or have more pairs than
 * ETCD_PAIRS_MAX. */
bool etcd_answer_read(enum etcd_method method, const void *bytes, size_t length,
                      struct etcd_answer *ret_answer);
/* Returns the value of `key`, or bytes NULL when the answer has no such key. */
struct etcd_bytes etcd_answer_value(const struct etcd_answer *answer, struct etcd_bytes key);

#endif
