#include "broker/storage/etcd/etcd_log.h"

#include "base/sha256.h"
#include "broker/storage/etcd/etcd_log_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST_BYTES_MAX = ETCD_LOG_GROUP_BYTES + 4096 };
static_assert((int)ETCD_LOG_GROUP_MAX <= (int)ETCD_OPERATIONS_MAX, "a group fits in a transaction");

struct etcd_log *etcd_log_create(const struct id128 *cluster)
{
    struct etcd_log *log = calloc(1, sizeof *log);
    if (log == NULL) {
        return NULL;
    }
    log->out = malloc(REQUEST_BYTES_MAX);
    if (log->out == NULL) {
        free(log);
        return NULL;
    }
    log->cluster = *cluster;
    log->leader_key = etcd_key_leader(cluster);
    log->base_key = etcd_key_base(cluster);
    return log;
}

void etcd_log_destroy(struct etcd_log **self)
{
    struct etcd_log *log = *self;
    if (log != NULL) {
        free(log->out);
        free(log->read_bytes);
        free(log);
        *self = NULL;
    }
}

/* ---- shared by all operations */

void etcd_log_set_request(struct etcd_log *log, const struct etcd_request *request)
{
    bool fits;
    log->method = request->method;
    log->out_length = etcd_request_write(request, log->out, REQUEST_BYTES_MAX, &fits);
    log->may_be_in = false;
    log->is_no_space = false;
    assert(fits); /* what grows, the group, has its own bound */
}

bool etcd_log_end(struct etcd_log *log, enum journal_status status)
{
    log->operation = ETCD_LOG_IDLE;
    log->status = status;
    return false;
}

bool etcd_log_note(struct etcd_log *log, const struct etcd_answer *answer)
{
    const struct etcd_bytes leader = etcd_answer_value(answer, etcd_key_bytes(&log->leader_key));
    const struct etcd_bytes base = etcd_answer_value(answer, etcd_key_bytes(&log->base_key));
    return (leader.bytes == NULL || etcd_leader_read(leader, &log->leader, &log->leader_is)) &&
           (base.bytes == NULL || etcd_base_read(base, &log->base));
}

bool etcd_log_note_end(struct etcd_log *log, const struct etcd_answer *answer)
{
    const struct etcd_bytes leader = etcd_answer_value(answer, etcd_key_bytes(&log->leader_key));
    log->has_ended = leader.bytes != NULL && etcd_ended_read(leader, &log->successor);
    return log->has_ended;
}

bool etcd_log_same_leader(const struct etcd_log *log, const struct etcd_answer *answer)
{
    return etcd_bytes_equal(etcd_answer_value(answer, etcd_key_bytes(&log->leader_key)),
                            etcd_leader_bytes(&log->leader));
}

static struct etcd_operation get(const struct etcd_key *key)
{
    return (struct etcd_operation){.kind = ETCD_GET, .key = etcd_key_bytes(key)};
}

static struct etcd_operation put(const struct etcd_key *key, struct etcd_bytes value)
{
    return (struct etcd_operation){.kind = ETCD_PUT, .key = etcd_key_bytes(key), .value = value};
}

static struct etcd_compare leader_is(const struct etcd_log *log)
{
    return (struct etcd_compare){.condition = ETCD_HAS_VALUE,
                                 .key = etcd_key_bytes(&log->leader_key),
                                 .value = etcd_leader_bytes(&log->leader)};
}

static struct etcd_compare key_is(enum etcd_condition condition, const struct etcd_key *key)
{
    return (struct etcd_compare){.condition = condition, .key = etcd_key_bytes(key)};
}

/* ---- opening */

void etcd_log_open(struct etcd_log *log, const struct journal_base *last,
                   const struct journal_entry *entry)
{
    static const struct journal_leader nobody = {.epoch = 0};
    const struct etcd_leader first = etcd_leader_of(&nobody, 0);
    const struct etcd_key entry_key = etcd_key_entry(&log->cluster, last->index);
    uint8_t base[ETCD_BASE_BYTES];
    etcd_base_write(last, base);
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 1,
        .compares = {key_is(ETCD_IS_ABSENT, &log->leader_key)},
        .then_count = 3,
        .then = {put(&log->leader_key, etcd_leader_bytes(&first)),
                 put(&log->base_key, (struct etcd_bytes){base, sizeof base}),
                 put(&entry_key, (struct etcd_bytes){entry->bytes, entry->length})},
        .otherwise_count = 3,
        .otherwise = {get(&log->leader_key), get(&log->base_key), get(&entry_key)},
    };
    log->operation = ETCD_LOG_OPENING;
    log->leader = first;
    log->leader_is = nobody;
    log->base = *last;
    etcd_log_keep_one(log, last->index, (struct etcd_bytes){entry->bytes, entry->length});
    log->opened_count = log->read_count;
    log->read_count = 0; /* etcd does not have it yet */
    etcd_log_set_request(log, &request);
}

/* The transaction puts on one branch, so all members agree on what it shows. A read would not say
 * for certain that the caller's newest entry is gone. */
static bool take_open(struct etcd_log *log, const struct etcd_answer *answer)
{
    if (!answer->succeeded && etcd_log_note_end(log, answer)) {
        return etcd_log_end(log, JOURNAL_DEPOSED);
    }
    const struct etcd_key entry_key = etcd_key_entry(&log->cluster, log->read_first);
    const struct etcd_bytes entry = etcd_answer_value(answer, etcd_key_bytes(&entry_key));
    const bool has_head =
        etcd_answer_value(answer, etcd_key_bytes(&log->leader_key)).bytes != NULL &&
        etcd_answer_value(answer, etcd_key_bytes(&log->base_key)).bytes != NULL;
    if (answer->succeeded) {
        log->read_count = log->opened_count;
    } else if (entry.bytes != NULL) {
        etcd_log_keep_one(log, log->read_first, entry);
    }
    const bool is_known = answer->succeeded || (has_head && etcd_log_note(log, answer));
    return etcd_log_end(log, is_known ? JOURNAL_OK : JOURNAL_CORRUPT);
}

/* ---- leading */

/* The entry `last` must be there. A broker that a truncation left behind would win otherwise, since
 * the key after its last entry is absent, too. */
static void send_claim(struct etcd_log *log)
{
    struct journal_leader claim = log->me;
    const struct etcd_key last_key = etcd_key_entry(&log->cluster, log->last);
    const struct etcd_key next_key = etcd_key_entry(&log->cluster, log->last + 1);
    if (claim.epoch <= log->leader_is.epoch) {
        claim.epoch = log->leader_is.epoch + 1;
    }
    log->claim = etcd_leader_of(&claim, log->mark);
    struct etcd_operation next = get(&next_key);
    next.limit = 1;
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 3,
        .compares = {leader_is(log), key_is(ETCD_IS_PRESENT, &last_key),
                     key_is(ETCD_IS_ABSENT, &next_key)},
        .then_count = 1,
        .then = {put(&log->leader_key, etcd_leader_bytes(&log->claim))},
        .otherwise_count = 3,
        .otherwise = {get(&log->leader_key), get(&log->base_key), next},
    };
    etcd_log_set_request(log, &request);
}

void etcd_log_lead(struct etcd_log *log, uint64_t last_index, const struct journal_leader *me,
                   uint64_t mark)
{
    log->operation = ETCD_LOG_LEADING;
    log->epoch = 0;
    log->last = last_index;
    log->me = *me;
    log->mark = mark;
    log->frozen.is_set = false;
    send_claim(log);
}

static bool has_the_lead(struct etcd_log *log)
{
    const bool is_read =
        etcd_leader_read(etcd_leader_bytes(&log->claim), &log->leader, &log->leader_is);
    assert(is_read); /* we wrote it */
    log->epoch = log->leader_is.epoch;
    return etcd_log_end(log, JOURNAL_OK);
}

static bool take_lead(struct etcd_log *log, const struct etcd_answer *answer)
{
    const struct etcd_key next_key = etcd_key_entry(&log->cluster, log->last + 1);
    const struct etcd_bytes leader = etcd_answer_value(answer, etcd_key_bytes(&log->leader_key));
    if (answer->succeeded || etcd_bytes_equal(leader, etcd_leader_bytes(&log->claim))) {
        return has_the_lead(log); /* or an earlier copy had been executed */
    }
    const bool was_known = etcd_log_same_leader(log, answer);
    if (leader.bytes == NULL || !etcd_log_note(log, answer)) {
        return etcd_log_end(log, JOURNAL_CORRUPT);
    }
    if (etcd_answer_value(answer, etcd_key_bytes(&next_key)).bytes != NULL ||
        log->base.index > log->last) {
        return etcd_log_end(log, JOURNAL_BEHIND);
    }
    /* The log ends before our last entry, or another broker took over and wrote nothing yet. Who
     * was silent for long was the leader before. */
    return etcd_log_end(log, was_known ? JOURNAL_CORRUPT : JOURNAL_DEPOSED);
}

/* ---- resigning */

enum journal_status etcd_log_resign(struct etcd_log *log, uint64_t epoch,
                                    const struct journal_leader *as)
{
    if (log->epoch == 0 || epoch != log->epoch) {
        return JOURNAL_DEPOSED;
    }
    assert(as->epoch == epoch);
    log->claim = etcd_leader_of(as, 0);
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 1,
        .compares = {leader_is(log)},
        .then_count = 1,
        .then = {put(&log->leader_key, etcd_leader_bytes(&log->claim))},
        .otherwise_count = 1,
        .otherwise = {get(&log->leader_key)},
    };
    log->operation = ETCD_LOG_RESIGNING;
    etcd_log_set_request(log, &request);
    return JOURNAL_OK;
}

/* The own last word is there after the first copy, or after an earlier one. */
static bool take_resign(struct etcd_log *log, const struct etcd_answer *answer)
{
    const struct etcd_bytes leader = etcd_answer_value(answer, etcd_key_bytes(&log->leader_key));
    log->epoch = 0;
    log->frozen.is_set = false;
    if (answer->succeeded || etcd_bytes_equal(leader, etcd_leader_bytes(&log->claim))) {
        return etcd_log_end(log, JOURNAL_OK);
    }
    return etcd_log_end(log, etcd_log_note(log, answer) ? JOURNAL_DEPOSED : JOURNAL_CORRUPT);
}

/* ---- appending */

static struct etcd_log_frozen freeze(const struct journal_entry *entries, size_t count)
{
    struct sha256 all;
    sha256_start(&all);
    for (size_t i = 0; i < count; i++) {
        const uint64_t length = entries[i].length;
        sha256_add(&all, &length, sizeof length);
        sha256_add(&all, entries[i].bytes, entries[i].length);
    }
    return (struct etcd_log_frozen){.is_set = true,
                                    .first = entries[0].index,
                                    .count = count,
                                    .hash = sha256_end(&all),
                                    .first_hash = sha256_of(entries[0].bytes, entries[0].length)};
}

static bool fits(const struct etcd_log *log, const struct journal_entry *entries, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        assert(entries[i].index == entries[0].index + i);
        if (entries[i].length > ETCD_LOG_GROUP_BYTES - bytes) {
            return false;
        }
        bytes += entries[i].length;
    }
    assert(entries[0].index == log->last + 1);
    return count <= ETCD_LOG_GROUP_MAX;
}

static void send_append(struct etcd_log *log, const struct journal_entry *entries, size_t count)
{
    struct etcd_key keys[ETCD_LOG_GROUP_MAX];
    const struct etcd_key before = etcd_key_entry(&log->cluster, log->last);
    struct etcd_request request = {.method = ETCD_TXN, .compare_count = 3, .otherwise_count = 2};
    for (size_t i = 0; i < count; i++) {
        keys[i] = etcd_key_entry(&log->cluster, entries[i].index);
        request.then[request.then_count++] =
            put(&keys[i], (struct etcd_bytes){entries[i].bytes, entries[i].length});
    }
    request.compares[0] = leader_is(log);
    request.compares[1] = key_is(ETCD_IS_PRESENT, &before);
    request.compares[2] = key_is(ETCD_IS_ABSENT, &keys[0]);
    request.otherwise[0] = get(&log->leader_key);
    request.otherwise[1] = get(&keys[0]);
    etcd_log_set_request(log, &request);
}

enum journal_status etcd_log_append(struct etcd_log *log, uint64_t epoch,
                                    const struct journal_entry *entries, size_t count)
{
    assert(count > 0);
    if (log->epoch == 0 || epoch != log->epoch) {
        return JOURNAL_DEPOSED;
    }
    if (!fits(log, entries, count)) {
        return JOURNAL_TOO_LARGE;
    }
    const struct etcd_log_frozen now = freeze(entries, count);
    const bool is_again = log->frozen.is_set;
    if (is_again && (now.first != log->frozen.first || now.count != log->frozen.count ||
                     !hash32_equal(&now.hash, &log->frozen.hash))) {
        return JOURNAL_CORRUPT;
    }
    log->operation = ETCD_LOG_APPENDING;
    log->frozen = now;
    send_append(log, entries, count);
    log->may_be_in = is_again;
    return JOURNAL_OK;
}

static bool is_in(struct etcd_log *log)
{
    log->last = log->frozen.first + log->frozen.count - 1;
    log->frozen.is_set = false;
    return etcd_log_end(log, JOURNAL_OK);
}

/* Another leader's value ends the lead, whatever stands at the index: who follows the log learns
 * that there. */
static bool take_append(struct etcd_log *log, const struct etcd_answer *answer)
{
    const struct etcd_key key = etcd_key_entry(&log->cluster, log->frozen.first);
    if (answer->succeeded) {
        return is_in(log);
    }
    if (!etcd_log_same_leader(log, answer)) {
        log->epoch = 0;
        log->frozen.is_set = false;
        return etcd_log_end(log, etcd_log_note_end(log, answer) || etcd_log_note(log, answer)
                                     ? JOURNAL_DEPOSED
                                     : JOURNAL_CORRUPT);
    }
    const struct etcd_bytes there = etcd_answer_value(answer, etcd_key_bytes(&key));
    const struct hash32 hash =
        sha256_of(there.bytes != NULL ? there.bytes : log->out, there.length);
    if (there.bytes != NULL && hash32_equal(&hash, &log->frozen.first_hash)) {
        return is_in(log); /* an earlier copy was executed */
    }
    return etcd_log_end(log, JOURNAL_CORRUPT);
}

/* ---- the loop */

const uint8_t *etcd_log_request(const struct etcd_log *log, enum etcd_method *ret_method,
                                size_t *ret_length)
{
    assert(log->operation != ETCD_LOG_IDLE);
    *ret_method = log->method;
    *ret_length = log->out_length;
    return log->out;
}

static bool take_answer(struct etcd_log *log, const struct etcd_answer *answer)
{
    switch (log->operation) {
    case ETCD_LOG_OPENING:
        return take_open(log, answer);
    case ETCD_LOG_LEADING:
        return take_lead(log, answer);
    case ETCD_LOG_RESIGNING:
        return take_resign(log, answer);
    case ETCD_LOG_APPENDING:
        return take_append(log, answer);
    case ETCD_LOG_CUTTING_BASE:
        return etcd_log_take_base(log, answer);
    case ETCD_LOG_CUTTING_KEYS:
        return etcd_log_take_keys(log, answer);
    case ETCD_LOG_CUTTING_HISTORY:
        return etcd_log_take_history(log);
    case ETCD_LOG_READING:
        return etcd_log_take_read(log, answer);
    case ETCD_LOG_LOOKING:
        return etcd_log_take_look(log, answer);
    case ETCD_LOG_IDLE:
        break;
    }
    assert(log->operation != ETCD_LOG_IDLE);
    return false;
}

bool etcd_log_take(struct etcd_log *log, enum grpc_outcome outcome,
                   const struct etcd_answer *answer)
{
    log->is_no_space = outcome == GRPC_NO_SPACE;
    switch (outcome) {
    case GRPC_ANSWERED:
        return take_answer(log, answer);
    case GRPC_LOST:
        log->may_be_in = true;
        return true;
    case GRPC_TOO_LARGE:
        if (log->may_be_in) {
            return true; /* an earlier copy was not refused for that */
        }
        log->frozen.is_set = false;
        return etcd_log_end(log, JOURNAL_TOO_LARGE);
    case GRPC_REFUSED:
        if (log->operation == ETCD_LOG_CUTTING_HISTORY) {
            return etcd_log_take_history(log); /* it is gone already */
        }
        return true;
    case GRPC_UNSENT:
    case GRPC_NO_SPACE:
    case GRPC_OTHER:
        return true;
    }
    return true;
}

enum journal_status etcd_log_status(const struct etcd_log *log)
{
    return log->status;
}

enum journal_status etcd_log_give_up(struct etcd_log *log)
{
    const bool is_read = log->operation == ETCD_LOG_READING || log->operation == ETCD_LOG_LOOKING;
    const bool is_append = log->operation == ETCD_LOG_APPENDING;
    enum journal_status status = JOURNAL_UNAVAILABLE;
    if (log->is_no_space) {
        status = JOURNAL_FULL;
    } else if (log->may_be_in || is_read) {
        status = JOURNAL_UNKNOWN;
    }
    if (is_append && !log->may_be_in) {
        log->frozen.is_set = false;
    }
    (void)etcd_log_end(log, status);
    return status;
}

uint64_t etcd_log_epoch(const struct etcd_log *log)
{
    return log->epoch;
}

const struct journal_leader *etcd_log_leader(const struct etcd_log *log)
{
    return &log->leader_is;
}

const struct journal_base *etcd_log_base(const struct etcd_log *log)
{
    return &log->base;
}
