/* This part of etcd_log.h cuts the beginning of the log, and reads. */
#include "broker/storage/etcd/etcd_log_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct etcd_operation get(const struct etcd_key *key)
{
    return (struct etcd_operation){.kind = ETCD_GET, .key = etcd_key_bytes(key)};
}

static struct etcd_compare has_value(const struct etcd_key *key, struct etcd_bytes value)
{
    return (struct etcd_compare){
        .condition = ETCD_HAS_VALUE, .key = etcd_key_bytes(key), .value = value};
}

/* ---- cutting */

/* The comparison with the old base keeps a late copy from moving the base back. */
static void send_base(struct etcd_log *log)
{
    uint8_t old[ETCD_BASE_BYTES];
    uint8_t now[ETCD_BASE_BYTES];
    log->cut_next = log->cut_to;
    if (log->cut_to.index - log->base.index > ETCD_LOG_CUT_STEP) {
        log->cut_next =
            (struct journal_base){.index = log->base.index + ETCD_LOG_CUT_STEP}; /* on the way */
    }
    etcd_base_write(&log->base, old);
    etcd_base_write(&log->cut_next, now);
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 2,
        .compares = {has_value(&log->leader_key, etcd_leader_bytes(&log->leader)),
                     has_value(&log->base_key, (struct etcd_bytes){old, sizeof old})},
        .then_count = 1,
        .then = {{.kind = ETCD_PUT,
                  .key = etcd_key_bytes(&log->base_key),
                  .value = {now, sizeof now}}},
        .otherwise_count = 2,
        .otherwise = {get(&log->leader_key), get(&log->base_key)},
    };
    log->operation = ETCD_LOG_CUTTING_BASE;
    etcd_log_set_request(log, &request);
}

/* Deletes from the first key on: a truncation that ended half way may have left some. */
static void send_keys(struct etcd_log *log)
{
    const struct etcd_key first = etcd_key_entry(&log->cluster, 0);
    const struct etcd_key end = etcd_key_entry(&log->cluster, log->base.index);
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 1,
        .compares = {has_value(&log->leader_key, etcd_leader_bytes(&log->leader))},
        .then_count = 1,
        .then = {{.kind = ETCD_DELETE, .key = etcd_key_bytes(&first), .end = etcd_key_bytes(&end)}},
        .otherwise_count = 1,
        .otherwise = {get(&log->leader_key)},
    };
    log->operation = ETCD_LOG_CUTTING_KEYS;
    etcd_log_set_request(log, &request);
}

static bool go_on(struct etcd_log *log)
{
    if (log->base.index >= log->cut_to.index) {
        return etcd_log_end(log, JOURNAL_OK);
    }
    send_base(log);
    return true;
}

enum journal_status etcd_log_truncate(struct etcd_log *log, uint64_t epoch,
                                      const struct journal_base *base)
{
    if (log->epoch == 0 || epoch != log->epoch) {
        return JOURNAL_DEPOSED;
    }
    assert(base->index <= log->last); /* the newest entry always stays */
    log->cut_to = *base;
    if (base->index <= log->base.index) {
        log->cut_to = log->base;
        send_keys(log); /* what an earlier truncation may have left */
        return JOURNAL_OK;
    }
    send_base(log);
    return JOURNAL_OK;
}

static bool is_deposed(struct etcd_log *log, const struct etcd_answer *answer)
{
    log->epoch = 0;
    return etcd_log_end(log, etcd_log_note(log, answer) ? JOURNAL_DEPOSED : JOURNAL_CORRUPT);
}

bool etcd_log_take_base(struct etcd_log *log, const struct etcd_answer *answer)
{
    const uint64_t before = log->base.index;
    if (answer->succeeded) {
        log->base = log->cut_next;
    } else if (!etcd_log_same_leader(log, answer)) {
        return is_deposed(log, answer);
    } else if (!etcd_log_note(log, answer) || log->base.index <= before) {
        return etcd_log_end(log, JOURNAL_CORRUPT); /* only an earlier copy of ours moves it on */
    }
    send_keys(log);
    return true;
}

/* The history before the deletion of one step earlier goes: a follower that reads slowly still
 * finds what it asked for. */
bool etcd_log_take_keys(struct etcd_log *log, const struct etcd_answer *answer)
{
    if (!answer->succeeded) {
        return is_deposed(log, answer);
    }
    const uint64_t before = log->cut_revision;
    log->cut_revision = answer->revision;
    if (before == 0) {
        return go_on(log);
    }
    log->operation = ETCD_LOG_CUTTING_HISTORY;
    etcd_log_set_request(log, &(struct etcd_request){.method = ETCD_COMPACT, .revision = before});
    return true;
}

bool etcd_log_take_history(struct etcd_log *log)
{
    return go_on(log);
}

/* ---- reading */

void etcd_log_read(struct etcd_log *log, uint64_t index)
{
    const struct etcd_key first = etcd_key_entry(&log->cluster, index);
    const struct etcd_key end = etcd_key_entry(&log->cluster, index + ETCD_LOG_READ_MAX);
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .then_count = 3,
        .then = {get(&log->leader_key),
                 get(&log->base_key),
                 {.kind = ETCD_GET,
                  .key = etcd_key_bytes(&first),
                  .end = etcd_key_bytes(&end),
                  .limit = ETCD_LOG_READ_MAX}},
    };
    log->operation = ETCD_LOG_READING;
    log->read_first = index;
    log->read_count = 0;
    etcd_log_set_request(log, &request);
}

static bool keep_entry(struct etcd_log *log, struct etcd_bytes value, size_t *used)
{
    if (value.length > log->read_capacity - *used) {
        const size_t capacity = 2 * (*used + value.length);
        uint8_t *bytes = realloc(log->read_bytes, capacity);
        if (bytes == NULL) {
            return false;
        }
        log->read_bytes = bytes;
        log->read_capacity = capacity;
    }
    if (value.length > 0) {
        memcpy(log->read_bytes + *used, value.bytes, value.length);
    }
    log->read_entries[log->read_count].offset = *used;
    log->read_entries[log->read_count].length = value.length;
    log->read_count++;
    *used += value.length;
    return true;
}

void etcd_log_keep_one(struct etcd_log *log, uint64_t index, struct etcd_bytes value)
{
    size_t used = 0;
    log->read_first = index;
    log->read_count = 0;
    if (value.bytes != NULL) {
        (void)keep_entry(log, value, &used); /* without memory, a read brings it */
    }
}

bool etcd_log_take_read(struct etcd_log *log, const struct etcd_answer *answer)
{
    size_t used = 0;
    const bool is_leading = log->epoch != 0;
    if (etcd_log_note_end(log, answer)) {
        return etcd_log_end(log, JOURNAL_DEPOSED);
    }
    const struct journal_base before = log->base;
    /* A read may be out of date, so a leader keeps what its transactions told. */
    if (!is_leading && !etcd_log_note(log, answer)) {
        return etcd_log_end(log, JOURNAL_CORRUPT);
    }
    if (log->base.index < before.index) {
        log->base = before; /* a log's beginning only moves forward */
    }
    while (log->read_count < ETCD_LOG_READ_MAX) {
        const struct etcd_key key =
            etcd_key_entry(&log->cluster, log->read_first + log->read_count);
        const struct etcd_bytes value = etcd_answer_value(answer, etcd_key_bytes(&key));
        if (value.bytes == NULL || !keep_entry(log, value, &used)) {
            break;
        }
    }
    log->is_at_end = log->read_count < ETCD_LOG_READ_MAX && log->base.index < log->read_first;
    if (log->read_count > 0) {
        return etcd_log_end(log, JOURNAL_OK);
    }
    return etcd_log_end(log,
                        log->base.index >= log->read_first ? JOURNAL_BEHIND : JOURNAL_UNAVAILABLE);
}

void etcd_log_look(struct etcd_log *log)
{
    const struct etcd_request request = {
        .method = ETCD_TXN, .then_count = 1, .then = {get(&log->leader_key)}};
    log->operation = ETCD_LOG_LOOKING;
    etcd_log_set_request(log, &request);
}

bool etcd_log_take_look(struct etcd_log *log, const struct etcd_answer *answer)
{
    struct etcd_leader value;
    struct journal_leader leader;
    const struct etcd_bytes bytes = etcd_answer_value(answer, etcd_key_bytes(&log->leader_key));
    if (bytes.bytes == NULL || etcd_log_note_end(log, answer) ||
        !etcd_leader_read(bytes, &value, &leader)) {
        return etcd_log_end(log, JOURNAL_UNAVAILABLE);
    }
    if (log->epoch != 0 && leader.epoch > log->epoch) {
        log->epoch = 0;
        log->leader_is = leader;
        log->leader = value;
        return etcd_log_end(log, JOURNAL_DEPOSED);
    }
    if (log->epoch == 0) {
        log->leader_is = leader;
        log->leader = value;
    }
    return etcd_log_end(log, JOURNAL_OK);
}

bool etcd_log_successor(const struct etcd_log *log, struct id128 *ret_successor)
{
    *ret_successor = log->successor;
    return log->has_ended;
}

bool etcd_log_is_at_end(const struct etcd_log *log)
{
    return log->is_at_end;
}

bool etcd_log_entry(const struct etcd_log *log, uint64_t index, struct journal_entry *ret_entry)
{
    if (index < log->read_first || index - log->read_first >= log->read_count) {
        return false;
    }
    const uint64_t position = index - log->read_first;
    *ret_entry = (struct journal_entry){
        .index = index,
        .bytes = log->read_bytes + log->read_entries[position].offset,
        .length = log->read_entries[position].length,
    };
    return true;
}
