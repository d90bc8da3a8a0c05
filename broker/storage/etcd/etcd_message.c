#include "broker/storage/etcd/etcd_message.h"

#include "broker/storage/etcd/proto.h"

#include <string.h>

/* Numbers of fields, and of words, as in etcd's definition. */
enum {
    COMPARE_RESULT = 1,
    COMPARE_TARGET = 2,
    COMPARE_KEY = 3,
    COMPARE_VERSION = 4,
    COMPARE_VALUE = 7,
    RESULT_EQUAL = 0,
    RESULT_GREATER = 1,
    TARGET_VERSION = 0,
    TARGET_VALUE = 3,

    OPERATION_RANGE = 1,
    OPERATION_PUT = 2,
    OPERATION_DELETE = 3,
    RANGE_KEY = 1,
    RANGE_END = 2,
    RANGE_LIMIT = 3,
    PUT_KEY = 1,
    PUT_VALUE = 2,
    PUT_LEASE = 3,

    TXN_COMPARE = 1,
    TXN_THEN = 2,
    TXN_OTHERWISE = 3,
    COMPACT_REVISION = 1,
    GRANT_SECONDS = 1,

    ANSWER_HEADER = 1,
    HEADER_CLUSTER = 1,
    HEADER_MEMBER = 2,
    HEADER_REVISION = 3,
    TXN_SUCCEEDED = 2,
    TXN_RESPONSE = 3,
    RESPONSE_RANGE = 1,
    RANGE_PAIRS = 2,
    PAIR_KEY = 1,
    PAIR_VALUE = 5,
    STATUS_VERSION = 2,
    STATUS_DATABASE = 3,
    STATUS_LEADER = 4,
    STATUS_APPLIED = 7,
    STATUS_LIVE = 9,
    STATUS_QUOTA = 12,
    ALARMS_ALARM = 2,
    ALARM_KIND = 2,
    ALARM_NO_SPACE = 1,
    ALARM_CORRUPT = 2,
    GRANTED_ID = 2,
    MEMBERS_MEMBER = 2,
    MEMBER_ID = 1,
    MEMBER_NAME = 2,
    MEMBER_CLIENTS = 4
};

bool etcd_bytes_equal(struct etcd_bytes one, struct etcd_bytes other)
{
    return one.length == other.length &&
           (one.length == 0 || memcmp(one.bytes, other.bytes, one.length) == 0);
}

const char *etcd_method_path(enum etcd_method method)
{
    switch (method) {
    case ETCD_TXN:
        return "/etcdserverpb.KV/Txn";
    case ETCD_COMPACT:
        return "/etcdserverpb.KV/Compact";
    case ETCD_STATUS:
        return "/etcdserverpb.Maintenance/Status";
    case ETCD_ALARMS:
        return "/etcdserverpb.Maintenance/Alarm";
    case ETCD_LEASE_GRANT:
        return "/etcdserverpb.Lease/LeaseGrant";
    case ETCD_MEMBER_LIST:
        return "/etcdserverpb.Cluster/MemberList";
    }
    return "";
}

/* ---- requests */

static void add_text(struct proto_writer *out, unsigned field, struct etcd_bytes text)
{
    if (text.length > 0) {
        proto_bytes(out, field, text.bytes, text.length);
    }
}

static void add_compare(struct proto_writer *out, const struct etcd_compare *compare)
{
    const size_t mark = proto_begin(out, TXN_COMPARE);
    proto_varint(out, COMPARE_RESULT,
                 compare->condition == ETCD_IS_PRESENT ? RESULT_GREATER : RESULT_EQUAL);
    proto_varint(out, COMPARE_TARGET,
                 compare->condition == ETCD_HAS_VALUE ? TARGET_VALUE : TARGET_VERSION);
    proto_bytes(out, COMPARE_KEY, compare->key.bytes, compare->key.length);
    if (compare->condition == ETCD_HAS_VALUE) {
        proto_bytes(out, COMPARE_VALUE, compare->value.bytes, compare->value.length);
    } else {
        proto_varint(out, COMPARE_VERSION, 0);
    }
    proto_end(out, mark);
}

static void add_operation(struct proto_writer *out, unsigned branch,
                          const struct etcd_operation *operation)
{
    static const unsigned kinds[] = {
        [ETCD_GET] = OPERATION_RANGE, [ETCD_PUT] = OPERATION_PUT, [ETCD_DELETE] = OPERATION_DELETE};
    const size_t outer = proto_begin(out, branch);
    const size_t inner = proto_begin(out, kinds[operation->kind]);
    if (operation->kind == ETCD_PUT) {
        proto_bytes(out, PUT_KEY, operation->key.bytes, operation->key.length);
        proto_bytes(out, PUT_VALUE, operation->value.bytes, operation->value.length);
        if (operation->lease != 0) {
            proto_varint(out, PUT_LEASE, (uint64_t)operation->lease);
        }
    } else {
        proto_bytes(out, RANGE_KEY, operation->key.bytes, operation->key.length);
        add_text(out, RANGE_END, operation->end);
    }
    if (operation->kind == ETCD_GET && operation->limit > 0) {
        proto_varint(out, RANGE_LIMIT, operation->limit);
    }
    proto_end(out, inner);
    proto_end(out, outer);
}

size_t etcd_request_write(const struct etcd_request *request, uint8_t *ret_bytes, size_t capacity,
                          bool *ret_fits)
{
    struct proto_writer out = {.bytes = ret_bytes, .capacity = capacity};
    for (size_t i = 0; i < request->compare_count; i++) {
        add_compare(&out, &request->compares[i]);
    }
    for (size_t i = 0; i < request->then_count; i++) {
        add_operation(&out, TXN_THEN, &request->then[i]);
    }
    for (size_t i = 0; i < request->otherwise_count; i++) {
        add_operation(&out, TXN_OTHERWISE, &request->otherwise[i]);
    }
    if (request->method == ETCD_COMPACT) {
        proto_varint(&out, COMPACT_REVISION, request->revision);
    }
    if (request->method == ETCD_LEASE_GRANT) {
        proto_varint(&out, GRANT_SECONDS, (uint64_t)request->lease_s);
    }
    *ret_fits = !out.is_full;
    return out.length;
}

/* ---- answers */

/* Opens the message that a field holds. Returns false, and breaks `in`, when the field is no
 * message. */
static bool open_inner(struct proto_reader *in, const struct proto_field *field,
                       struct proto_reader *ret_inner)
{
    if (field->kind != PROTO_BYTES) {
        in->is_broken = true;
        return false;
    }
    *ret_inner = proto_over(field->bytes, field->length);
    return true;
}

static void read_header(struct proto_reader in, struct etcd_answer *answer, bool *is_broken)
{
    struct proto_field field;
    while (proto_next(&in, &field)) {
        if (field.kind == PROTO_VARINT && field.number == HEADER_CLUSTER) {
            answer->cluster = field.value;
        } else if (field.kind == PROTO_VARINT && field.number == HEADER_MEMBER) {
            answer->member = field.value;
        } else if (field.kind == PROTO_VARINT && field.number == HEADER_REVISION) {
            answer->revision = field.value;
        }
    }
    *is_broken = *is_broken || in.is_broken;
}

static void read_pair(struct proto_reader in, struct etcd_answer *answer, bool *is_broken)
{
    struct etcd_pair pair = {.key = {.length = 0}};
    struct proto_field field;
    while (proto_next(&in, &field)) {
        const struct etcd_bytes bytes = {.bytes = field.bytes, .length = field.length};
        if (field.kind == PROTO_BYTES && field.number == PAIR_KEY) {
            pair.key = bytes;
        } else if (field.kind == PROTO_BYTES && field.number == PAIR_VALUE) {
            pair.value = bytes;
        }
    }
    if (in.is_broken || answer->pair_count == ETCD_PAIRS_MAX) {
        *is_broken = true;
        return;
    }
    answer->pairs[answer->pair_count++] = pair;
}

static void read_range(struct proto_reader in, struct etcd_answer *answer, bool *is_broken)
{
    struct proto_field field;
    struct proto_reader pair;
    while (!*is_broken && proto_next(&in, &field)) {
        if (field.number == RANGE_PAIRS && open_inner(&in, &field, &pair)) {
            read_pair(pair, answer, is_broken);
        }
    }
    *is_broken = *is_broken || in.is_broken;
}

static void read_response(struct proto_reader in, struct etcd_answer *answer, bool *is_broken)
{
    struct proto_field field;
    struct proto_reader range;
    while (!*is_broken && proto_next(&in, &field)) {
        if (field.number == RESPONSE_RANGE && open_inner(&in, &field, &range)) {
            read_range(range, answer, is_broken);
        }
    }
    *is_broken = *is_broken || in.is_broken;
}

static void read_alarm(struct proto_reader in, struct etcd_answer *answer, bool *is_broken)
{
    struct proto_field field;
    while (proto_next(&in, &field)) {
        if (field.kind == PROTO_VARINT && field.number == ALARM_KIND) {
            answer->alarm_no_space = answer->alarm_no_space || field.value == ALARM_NO_SPACE;
            answer->alarm_is_corrupt = answer->alarm_is_corrupt || field.value == ALARM_CORRUPT;
        }
    }
    *is_broken = *is_broken || in.is_broken;
}

/* A member that has not started yet has no address for clients. */
static void read_member(struct proto_reader in, struct etcd_answer *answer, bool *is_broken)
{
    struct etcd_pair pair = {.key = {.length = 0}};
    struct proto_field field;
    uint64_t id = 0;
    while (proto_next(&in, &field)) {
        const struct etcd_bytes bytes = {.bytes = field.bytes, .length = field.length};
        if (field.kind == PROTO_VARINT && field.number == MEMBER_ID) {
            id = field.value;
        } else if (field.kind == PROTO_BYTES && field.number == MEMBER_NAME) {
            pair.key = bytes;
        } else if (field.kind == PROTO_BYTES && field.number == MEMBER_CLIENTS &&
                   pair.value.length == 0) {
            pair.value = bytes;
        }
    }
    if (in.is_broken || answer->pair_count == ETCD_PAIRS_MAX) {
        *is_broken = true;
        return;
    }
    answer->ids[answer->pair_count] = id;
    answer->pairs[answer->pair_count++] = pair;
}

static void read_txn(struct proto_reader *in, const struct proto_field *field,
                     struct etcd_answer *answer, bool *is_broken)
{
    struct proto_reader response;
    if (field->number == TXN_SUCCEEDED && field->kind == PROTO_VARINT) {
        answer->succeeded = field->value != 0;
    } else if (field->number == TXN_RESPONSE && open_inner(in, field, &response)) {
        read_response(response, answer, is_broken);
    }
}

static void read_status_number(const struct proto_field *field, struct etcd_answer *answer)
{
    switch (field->number) {
    case STATUS_DATABASE:
        answer->database_bytes = field->value;
        break;
    case STATUS_LEADER:
        answer->leader = field->value;
        break;
    case STATUS_APPLIED:
        answer->applied = field->value;
        break;
    case STATUS_LIVE:
        answer->live_bytes = field->value;
        break;
    case STATUS_QUOTA:
        answer->quota_bytes = field->value;
        break;
    default: /* of no use here */
        break;
    }
}

static void read_status(const struct proto_field *field, struct etcd_answer *answer,
                        bool *is_broken)
{
    if (field->kind == PROTO_VARINT) {
        read_status_number(field, answer);
    } else if (field->kind == PROTO_BYTES && field->number == STATUS_VERSION) {
        if (field->length >= ETCD_VERSION_SIZE) {
            *is_broken = true;
            return;
        }
        memset(answer->version, 0, sizeof answer->version);
        memcpy(answer->version, field->bytes, field->length);
    }
}

bool etcd_answer_read(enum etcd_method method, const void *bytes, size_t length,
                      struct etcd_answer *ret_answer)
{
    struct proto_reader in = proto_over(bytes, length);
    struct proto_reader inner;
    struct proto_field field;
    bool is_broken = false;
    *ret_answer = (struct etcd_answer){.cluster = 0};
    while (!is_broken && proto_next(&in, &field)) {
        if (field.number == ANSWER_HEADER) {
            if (open_inner(&in, &field, &inner)) {
                read_header(inner, ret_answer, &is_broken);
            }
        } else if (method == ETCD_TXN) {
            read_txn(&in, &field, ret_answer, &is_broken);
        } else if (method == ETCD_STATUS) {
            read_status(&field, ret_answer, &is_broken);
        } else if (method == ETCD_ALARMS && field.number == ALARMS_ALARM &&
                   open_inner(&in, &field, &inner)) {
            read_alarm(inner, ret_answer, &is_broken);
        } else if (method == ETCD_LEASE_GRANT && field.number == GRANTED_ID &&
                   field.kind == PROTO_VARINT) {
            ret_answer->lease = (int64_t)field.value;
        } else if (method == ETCD_MEMBER_LIST && field.number == MEMBERS_MEMBER &&
                   open_inner(&in, &field, &inner)) {
            read_member(inner, ret_answer, &is_broken);
        }
    }
    return !is_broken && !in.is_broken;
}

struct etcd_bytes etcd_answer_value(const struct etcd_answer *answer, struct etcd_bytes key)
{
    static const uint8_t empty[1] = {0};
    for (size_t i = 0; i < answer->pair_count; i++) {
        if (etcd_bytes_equal(answer->pairs[i].key, key)) {
            const struct etcd_bytes value = answer->pairs[i].value;
            return value.bytes != NULL ? value : (struct etcd_bytes){.bytes = empty};
        }
    }
    return (struct etcd_bytes){.bytes = NULL};
}
