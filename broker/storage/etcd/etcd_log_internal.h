/* `struct etcd_log` is the state behind etcd_log.h, which the units etcd_log*.c share. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_LOG_INTERNAL_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_LOG_INTERNAL_H

#include "broker/storage/etcd/etcd_log.h"
#include "broker/storage/etcd/etcd_values.h"

enum etcd_log_operation {
    ETCD_LOG_IDLE,
    ETCD_LOG_OPENING,
    ETCD_LOG_LEADING,
    ETCD_LOG_RESIGNING,
    ETCD_LOG_APPENDING,
    ETCD_LOG_CUTTING_BASE,    /* the new base is put */
    ETCD_LOG_CUTTING_KEYS,    /* entries before it are deleted */
    ETCD_LOG_CUTTING_HISTORY, /* what etcd remembers of deleted entries goes */
    ETCD_LOG_READING,
    ETCD_LOG_LOOKING
};

/* An append without an answer: nothing but its bytes may be appended. */
struct etcd_log_frozen {
    bool is_set;
    uint64_t first, count;
    struct hash32 hash, first_hash; /* of all bytes, and of the first entry's */
};

struct etcd_log {
    struct id128 cluster;
    struct etcd_key leader_key, base_key;

    enum etcd_log_operation operation;
    enum journal_status status;
    /* The present request. */
    enum etcd_method method;
    uint8_t *out;
    size_t out_length;
    bool may_be_in;   /* a copy of the request may be executed, now or later */
    bool is_no_space; /* the last reply said that the quota is reached */

    struct etcd_leader leader; /* value of the leader's key, as seen last */
    struct journal_leader leader_is;
    struct journal_base base;
    uint64_t epoch; /* under which this process leads; 0: it does not */
    uint64_t last;  /* newest entry, while leading */

    /* Leading, and resigning. */
    struct etcd_leader claim;
    struct journal_leader me;
    uint64_t mark;

    struct etcd_log_frozen frozen;

    bool has_ended; /* the leader's key says that another log goes on */
    struct id128 successor;

    /* Truncating. */
    struct journal_base cut_to;   /* the whole way */
    struct journal_base cut_next; /* this step */
    uint64_t cut_revision;        /* of the deletion before: its history is not needed any more */

    /* Reading. */
    uint64_t read_first, read_count;
    bool is_at_end;        /* the last read reached the end of the log */
    uint64_t opened_count; /* entries that are kept once etcd has taken the first transaction */
    uint8_t *read_bytes;
    size_t read_capacity;
    struct {
        size_t offset, length;
    } read_entries[ETCD_LOG_READ_MAX];
};

/* Makes `request` the present one; no copy of it was sent yet. */
void etcd_log_set_request(struct etcd_log *log, const struct etcd_request *request);
/* Ends the operation with a result. Returns false, for etcd_log_take(). */
bool etcd_log_end(struct etcd_log *log, enum journal_status status);
/* Keeps the leader and the base that an answer shows. Returns false when one of them is no value of
 * ours. */
bool etcd_log_note(struct etcd_log *log, const struct etcd_answer *answer);
/* Notes the end of the log, where the answer shows one. Returns true when it does. */
bool etcd_log_note_end(struct etcd_log *log, const struct etcd_answer *answer);
/* Keeps one entry as if a read had brought it; keeps none when memory is short. */
void etcd_log_keep_one(struct etcd_log *log, uint64_t index, struct etcd_bytes value);
/* Returns true when the answer shows the leader whose value is known. */
bool etcd_log_same_leader(const struct etcd_log *log, const struct etcd_answer *answer);

/* The parts of etcd_log_take(), one for each operation. */
bool etcd_log_take_base(struct etcd_log *log, const struct etcd_answer *answer);
bool etcd_log_take_keys(struct etcd_log *log, const struct etcd_answer *answer);
bool etcd_log_take_history(struct etcd_log *log);
bool etcd_log_take_read(struct etcd_log *log, const struct etcd_answer *answer);
bool etcd_log_take_look(struct etcd_log *log, const struct etcd_answer *answer);

#endif
