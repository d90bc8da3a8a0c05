#include "protocol/codec.h"

#include "protocol/codec_check.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- a writer of protobuf bytes that can do wrong ---- */

struct bytes {
    uint8_t *data;
    size_t length;
    size_t capacity;
};

static void add(struct bytes *bytes, const void *data, size_t length)
{
    if (bytes->length + length > bytes->capacity) {
        bytes->capacity = 2 * (bytes->length + length) + 64;
        bytes->data = realloc(bytes->data, bytes->capacity);
    }
    if (length > 0) {
        memcpy(bytes->data + bytes->length, data, length);
        bytes->length += length;
    }
}

static void add_varint(struct bytes *bytes, uint64_t value)
{
    do {
        uint8_t byte = (uint8_t)(value & 0x7f);
        value >>= 7;
        byte |= value != 0 ? 0x80 : 0;
        add(bytes, &byte, 1);
    } while (value != 0);
}

static void add_tag(struct bytes *bytes, unsigned number, unsigned wire)
{
    add_varint(bytes, (uint64_t)number << 3 | wire);
}

static void add_block(struct bytes *bytes, unsigned number, const void *data, size_t length)
{
    add_tag(bytes, number, 2);
    add_varint(bytes, length);
    add(bytes, data, length);
}

static void free_bytes(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

/* ---- messages that follow the rules, but for one field ---- */

enum wrong {
    WRONG_NOTHING,
    WRONG_MISSING, /* a required field */
    WRONG_TWICE,   /* a singular one */
    WRONG_MANY,    /* a repeated one, once too often */
    WRONG_WIRE,    /* of another wire type */
    WRONG_SHORT,   /* a length or number below the least */
    WRONG_LONG,    /* or above the most */
    WRONG_ESCAPE,  /* a text with a control character */
    WRONG_NUL,     /* a text with a NUL */
    WRONG_UTF8,    /* a text that is none */
    WRONG_COUNT,
};

struct target { /* where, and how */
    const struct shape *shape;
    unsigned index;
    enum wrong wrong;
};

static bool is_text(enum rule_kind kind)
{
    return kind == RULE_NAME || kind == RULE_LINE || kind == RULE_TEXT;
}

static bool is_signed_type(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_SINT32 || type == PROTOBUF_C_TYPE_SINT64;
}

/* The valid message leaves these out: the second half of a one-of, and what an `and` node may not
 * have. */
static bool left_out(const struct shape *shape, unsigned index)
{
    if (shape->descriptor == &bourse__v1__attribute__descriptor) {
        return index == 2;
    }
    if (shape->descriptor == &bourse__v1__ask_account__descriptor) {
        return index == 0;
    }
    if (shape->descriptor == &bourse__v1__terminal_send__descriptor ||
        shape->descriptor == &bourse__v1__terminal_receive__descriptor) {
        return index == 1;
    }
    return shape->descriptor == &bourse__v1__requirement_node__descriptor && index >= 1 &&
           index <= 3;
}

static void build(struct bytes *bytes, const struct shape *shape, const struct target *target);

static void build_number(struct bytes *bytes, const struct rule *rule,
                         const ProtobufCFieldDescriptor *field, enum wrong wrong)
{
    int64_t value = rule->least == INT64_MIN ? 0 : rule->least;
    if (wrong == WRONG_SHORT) {
        value = rule->least - 1;
    } else if (wrong == WRONG_LONG) {
        bool is_narrow = rule->most >= UINT32_MAX && (field->type == PROTOBUF_C_TYPE_UINT32 ||
                                                      field->type == PROTOBUF_C_TYPE_SINT32);
        value = is_narrow ? INT64_C(1) << 33 : rule->most + 1;
    }
    if (wrong == WRONG_WIRE) {
        add_block(bytes, field->id, "", 0);
        return;
    }
    add_tag(bytes, field->id, 0);
    uint64_t zigzag = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
    add_varint(bytes, is_signed_type(field->type) ? zigzag : (uint64_t)value);
}

static void build_block(struct bytes *bytes, const struct rule *rule,
                        const ProtobufCFieldDescriptor *field, enum wrong wrong)
{
    size_t length =
        (size_t)rule->least + (is_text(rule->kind) && rule->least < 3 && rule->most >= 3 ? 3 : 0);
    length = wrong == WRONG_SHORT ? (size_t)rule->least - 1 : length;
    length = wrong == WRONG_LONG ? (size_t)rule->most + 1 : length;
    uint8_t *data = malloc(length + 1);
    memset(data, 'a', length + 1);
    if (wrong == WRONG_ESCAPE) {
        data[length - 1] = 0x1b;
    } else if (wrong == WRONG_NUL) {
        data[length - 1] = 0;
    } else if (wrong == WRONG_UTF8) {
        data[length - 1] = 0xc3; /* the second byte is missing */
    }
    if (rule->kind == RULE_ENDPOINT && length >= (size_t)rule->least) {
        memcpy(data, "tcp://", 6);
        memcpy(data + length - 2, ":1", 2);
    }
    if (wrong == WRONG_WIRE) {
        add_tag(bytes, field->id, 0);
        add_varint(bytes, 1);
    } else {
        add_block(bytes, field->id, data, length);
    }
    free(data);
}

/* One number, or what is wrong with it: one too many, one too large, or the field without its
 * packing. */
static void build_packed(struct bytes *bytes, const struct rule *rule,
                         const ProtobufCFieldDescriptor *field, enum wrong wrong)
{
    struct bytes numbers = {0};
    if (wrong == WRONG_WIRE) {
        add_tag(bytes, field->id, 0);
        add_varint(bytes, 0);
        return;
    }
    size_t count = wrong == WRONG_MANY ? (size_t)rule->count_max + 1 : 0;
    count = wrong == WRONG_LONG || wrong == WRONG_TWICE ? 1 : count;
    for (size_t i = 0; i < count; i++) {
        add_varint(&numbers, wrong == WRONG_LONG ? (uint64_t)rule->most + 1 : 0);
    }
    add_block(bytes, field->id, numbers.data, numbers.length);
    free_bytes(&numbers);
}

static void build_field(struct bytes *bytes, const struct shape *shape, unsigned index,
                        enum wrong wrong, const struct target *target)
{
    const struct rule *rule = &shape->rules[index];
    const ProtobufCFieldDescriptor *field = &shape->descriptor->fields[index];
    if (rule->kind == RULE_NUMBER) {
        build_number(bytes, rule, field, wrong);
    } else if (rule->kind == RULE_PACKED) {
        build_packed(bytes, rule, field, wrong);
    } else if (rule->kind != RULE_NESTED || wrong == WRONG_WIRE) {
        build_block(bytes, rule, field, wrong);
    } else {
        struct bytes inner = {0};
        build(&inner, rule->shape, target);
        add_block(bytes, field->id, inner.data, inner.length);
        free_bytes(&inner);
    }
}

static void build(struct bytes *bytes, const struct shape *shape, const struct target *target)
{
    for (unsigned i = 0; i < shape->rule_count; i++) {
        bool is_target = target != NULL && target->shape == shape && target->index == i;
        enum wrong wrong = is_target ? target->wrong : WRONG_NOTHING;
        if (left_out(shape, i) || wrong == WRONG_MISSING) {
            continue;
        }
        size_t copies = 1;
        copies = wrong == WRONG_TWICE ? 2 : copies;
        bool is_packed = shape->rules[i].kind == RULE_PACKED;
        copies = wrong == WRONG_MANY && !is_packed ? (size_t)shape->rules[i].count_max + 1 : copies;
        for (size_t copy = 0; copy < copies; copy++) {
            build_field(bytes, shape, i, wrong, target);
        }
    }
}

/* Returns true when the field can be wrong in this way at all. */
static bool applies(const struct target *target)
{
    const struct rule *rule = &target->shape->rules[target->index];
    const ProtobufCFieldDescriptor *field = &target->shape->descriptor->fields[target->index];
    bool is_packed = rule->kind == RULE_PACKED;
    bool is_block = rule->kind != RULE_NUMBER && rule->kind != RULE_NESTED && !is_packed;
    bool is_narrow = field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_SINT32;
    bool has_room = is_text(rule->kind) && rule->most >= 3;
    switch (target->wrong) {
    case WRONG_MISSING:
        return field->label == PROTOBUF_C_LABEL_REQUIRED;
    case WRONG_TWICE:
        return rule->count_max == 0 || is_packed;
    case WRONG_MANY:
        return rule->count_max > 0 && (rule->count_max <= LIMIT_HELD || is_packed);
    case WRONG_WIRE:
        return true;
    case WRONG_SHORT:
        return is_block ? rule->least > 0
                        : rule->kind == RULE_NUMBER && rule->least > INT64_MIN &&
                              (rule->least > 0 || is_signed_type(field->type));
    case WRONG_LONG:
        return is_block || is_packed ||
               (rule->kind == RULE_NUMBER && (rule->most < INT64_MAX || is_narrow));
    case WRONG_ESCAPE:
    case WRONG_NUL:
    case WRONG_UTF8:
        return has_room;
    case WRONG_NOTHING:
    case WRONG_COUNT:
        break;
    }
    return false;
}

struct subject { /* a top-level shape and how it is decoded */
    const struct shape *shape;
    enum message_type type; /* 0: result or manifest */
    size_t cap;
};

static enum codec_status decode(const struct subject *subject, const struct bytes *bytes,
                                struct codec_error *ret_error)
{
    enum codec_status status;
    if (subject->type != 0) {
        ProtobufCMessage *body = NULL;
        status = codec_decode(subject->type, bytes->data, bytes->length, &body, ret_error);
        codec_free(&body);
    } else if (subject->shape == &codec_result_shape) {
        Bourse__V1__Result *result = NULL;
        status = codec_decode_result(bytes->data, bytes->length, &result, ret_error);
        codec_result_free(&result);
    } else {
        Bourse__V1__Manifest *manifest = NULL;
        status = codec_decode_manifest(bytes->data, bytes->length, &manifest, ret_error);
        codec_manifest_free(&manifest);
    }
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void check_wrong(const struct subject *subject, const struct target *target)
{
    struct bytes bytes = {0};
    build(&bytes, subject->shape, target);
    struct codec_error error;
    enum codec_status status = decode(subject, &bytes, &error);
    const char *field = target->shape->descriptor->fields[target->index].name;
    enum codec_status expected = bytes.length > subject->cap ? CODEC_TOO_LARGE : CODEC_MALFORMED;
    ck_assert_msg(status == expected, "%s %s.%s wrong in way %d: %d",
                  subject->shape->descriptor->short_name, target->shape->descriptor->short_name,
                  field, (int)target->wrong, (int)status);
    if (status == CODEC_MALFORMED && target->wrong != WRONG_WIRE) {
        ck_assert_msg(ends_with(error.field, field), "%s instead of %s", error.field, field);
    }
    free_bytes(&bytes);
}

/* Every field of `shape`, and of the shapes in it, in every way. */
static unsigned check_shape(const struct subject *subject, const struct shape *shape)
{
    unsigned checks = 0;
    for (unsigned index = 0; index < shape->rule_count; index++) {
        if (left_out(shape, index)) {
            continue;
        }
        for (int wrong = WRONG_MISSING; wrong < WRONG_COUNT; wrong++) {
            struct target target = {shape, index, (enum wrong)wrong};
            if (applies(&target)) {
                check_wrong(subject, &target);
                checks++;
            }
        }
        if (shape->rules[index].kind == RULE_NESTED) {
            checks += check_shape(subject, shape->rules[index].shape);
        }
    }
    return checks;
}

static void check_subject(const struct subject *subject)
{
    struct bytes bytes = {0};
    struct codec_error error;
    build(&bytes, subject->shape, NULL);
    ck_assert_msg(decode(subject, &bytes, &error) == CODEC_OK, "%s: %s",
                  subject->shape->descriptor->short_name, error.field);
    free_bytes(&bytes);
    ck_assert(codec_shape_agrees(subject->shape));
    ck_assert(check_shape(subject, subject->shape) > 0 || subject->shape->rule_count == 0);
}

START_TEST(every_field_of_every_message_has_its_caps)
{
    const struct message_row *row = codec_row((enum message_type)_i);
    if (row != NULL) {
        check_subject(&(struct subject){row->shape, (enum message_type)_i, row->body_cap});
    }
}
END_TEST

START_TEST(results_and_manifests_have_their_caps)
{
    check_subject(&(struct subject){&codec_result_shape, 0, LIMIT_RESULT_BYTES});
    check_subject(&(struct subject){&codec_manifest_shape, 0, LIMIT_MANIFEST_BYTES});
}
END_TEST

START_TEST(a_body_above_its_cap_is_not_looked_at)
{
    for (int type = 0; type < MESSAGE_TYPE_END; type++) {
        const struct message_row *row = codec_row((enum message_type)type);
        if (row == NULL) {
            continue;
        }
        uint8_t *bytes = calloc(1, (size_t)row->body_cap + 1);
        ProtobufCMessage *body = NULL;
        struct codec_error error;
        ck_assert_int_eq(
            codec_decode((enum message_type)type, bytes, (size_t)row->body_cap + 1, &body, &error),
            CODEC_TOO_LARGE);
        ck_assert_int_eq(error.limit, row->body_cap);
        free(bytes);
    }
}
END_TEST

START_TEST(data_may_be_written_where_it_leaves_from)
{
    static const uint8_t hole;
    uint8_t data[300];
    memset(data, 7, sizeof data);
    Bourse__V1__BlobPut put = BOURSE__V1__BLOB_PUT__INIT;
    put.hash = (ProtobufCBinaryData){32, data};
    put.size = 1000;
    put.offset = 10;
    put.has_job = 1;
    put.job = (ProtobufCBinaryData){16, data}; /* fields before and after the data */
    put.data = (ProtobufCBinaryData){sizeof data, data};
    size_t length;
    uint8_t *copied = codec_encode(&put.base, &length);
    uint8_t *made = calloc(1, length);
    put.data.data = (uint8_t *)(uintptr_t)&hole;
    uint8_t *place = codec_encode_around(&put.base, &hole, made);
    ck_assert_ptr_nonnull(place);
    ck_assert_mem_ne(made, copied, length);
    memset(place, 7, sizeof data);
    ck_assert_mem_eq(made, copied, length);
    put.data = (ProtobufCBinaryData){sizeof data, data};
    ck_assert_ptr_null(codec_encode_around(&put.base, &hole, made));
    ck_assert_mem_eq(made, copied, length);
    free(made);
    free(copied);
}
END_TEST

START_TEST(unknown_types_are_refused)
{
    const int types[] = {0, 7, 15, 39, 119, 128, 65535, -1};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        ProtobufCMessage *body = NULL;
        ck_assert_int_eq(codec_decode((enum message_type)types[i], "", 0, &body, NULL),
                         CODEC_UNKNOWN_TYPE);
        ck_assert_str_eq(message_name((enum message_type)types[i]), "unknown");
        ck_assert_uint_eq(message_roles((enum message_type)types[i]), 0);
    }
}
END_TEST

/* ---- who may say what ---- */

struct permission {
    enum message_type type;
    unsigned roles;
    bool is_signed;
    enum message_type answer;
};

enum {
    ANY_MEMBER =
        ROLE_CONSUMER | ROLE_PROVIDER | ROLE_AUDITOR | ROLE_REPLICA | ROLE_RISK | ROLE_OPERATOR
};

static const struct permission permissions[] = {
    {MESSAGE_HELLO, ROLE_ANYONE, false, MESSAGE_WELCOME},
    {MESSAGE_HEARTBEAT, ROLE_ANYONE, false, 0},
    {MESSAGE_GOODBYE, ROLE_ANYONE, false, 0},
    {MESSAGE_JOIN, ROLE_ANYONE, true, MESSAGE_ACCEPTED},
    {MESSAGE_CHECKPOINT_REQUEST, ROLE_ANYONE, false, MESSAGE_CHECKPOINT_REPLY},
    {MESSAGE_MINT, ROLE_OPERATOR, true, MESSAGE_ACCEPTED},
    {MESSAGE_INVITE_CREATE, ROLE_OPERATOR, true, MESSAGE_ACCEPTED},
    {MESSAGE_ACCOUNTS_REQUEST, ROLE_OPERATOR, false, MESSAGE_ACCOUNTS_REPLY},
    {MESSAGE_FREEZE, ROLE_OPERATOR | ROLE_RISK, true, MESSAGE_ACCEPTED},
    {MESSAGE_HALT, ROLE_OPERATOR | ROLE_RISK, true, MESSAGE_ACCEPTED},
    {MESSAGE_SET_BANDS, ROLE_OPERATOR | ROLE_RISK, true, MESSAGE_ACCEPTED},
    {MESSAGE_SET_OWNER, ROLE_OPERATOR, true, MESSAGE_ACCEPTED},
    {MESSAGE_JUDGE_RESULT, ROLE_CONSUMER, true, MESSAGE_ACCEPTED},
    {MESSAGE_DISPUTES_REQUEST, ROLE_CONSUMER, false, MESSAGE_DISPUTES_REPLY},
    {MESSAGE_ADVERTISE, ROLE_PROVIDER, true, MESSAGE_ACCEPTED},
    {MESSAGE_ASK_PLACE, ROLE_PROVIDER, true, MESSAGE_ACCEPTED},
    {MESSAGE_ORDER_CANCEL, ROLE_PROVIDER, true, MESSAGE_ACCEPTED},
    {MESSAGE_ORDER_REPLACE, ROLE_CONSUMER | ROLE_PROVIDER, true, MESSAGE_ACCEPTED},
    {MESSAGE_STATEMENT_HELD, ROLE_PROVIDER, true, MESSAGE_ACCEPTED},
    {MESSAGE_RESULTS, ROLE_PROVIDER, false, MESSAGE_ACCEPTED},
    {MESSAGE_OUTPUT_POST, ROLE_PROVIDER, false, MESSAGE_OUTPUT_WANTED},
    {MESSAGE_FIGURES_POST, ROLE_PROVIDER, false, MESSAGE_FIGURES_TAKEN},
    {MESSAGE_OUTPUT_REQUEST, ROLE_CONSUMER, false, MESSAGE_OUTPUT_REPLY},
    {MESSAGE_CHALLENGE_READY, ROLE_PROVIDER, false, MESSAGE_CHALLENGE},
    {MESSAGE_TERMINAL_SEND, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_TERMINAL_TAKEN},
    {MESSAGE_TERMINAL_RECEIVE, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_TERMINAL_BYTES},
    {MESSAGE_WHY_REQUEST, ROLE_PROVIDER, false, MESSAGE_WHY_REPLY},
    {MESSAGE_SUBMIT_JOB, ROLE_CONSUMER, true, MESSAGE_ACCEPTED},
    {MESSAGE_JOB_CANCEL, ROLE_CONSUMER, true, MESSAGE_ACCEPTED},
    {MESSAGE_QUOTE_REQUEST, ROLE_CONSUMER, false, MESSAGE_QUOTE_REPLY},
    {MESSAGE_EXPLAIN_REQUEST, ROLE_CONSUMER, false, MESSAGE_EXPLAIN_REPLY},
    {MESSAGE_JOBS_REQUEST, ROLE_CONSUMER, false, MESSAGE_JOBS_REPLY},
    {MESSAGE_OUTCOMES_REQUEST, ROLE_CONSUMER, false, MESSAGE_OUTCOMES_REPLY},
    {MESSAGE_STORAGE_REQUEST, ROLE_CONSUMER, false, MESSAGE_STORAGE_REPLY},
    {MESSAGE_FORGET_REQUEST, ROLE_CONSUMER, false, MESSAGE_FORGET_REPLY},
    {MESSAGE_RECEIPT_REQUEST, ROLE_CONSUMER, false, MESSAGE_RECEIPT_REPLY},
    {MESSAGE_RECEIPTS_REQUEST, ROLE_CONSUMER, false, MESSAGE_RECEIPTS_REPLY},
    {MESSAGE_BALANCE_REQUEST, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_BALANCE_REPLY},
    {MESSAGE_STATEMENT_REQUEST, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_STATEMENT_REPLY},
    {MESSAGE_BOOK_REQUEST, ANY_MEMBER, false, MESSAGE_BOOK_REPLY},
    {MESSAGE_TRADES_REQUEST, ANY_MEMBER, false, MESSAGE_TRADES_REPLY},
    {MESSAGE_MARKET_REQUEST, ANY_MEMBER, false, MESSAGE_MARKET_REPLY},
    {MESSAGE_PRICES_REQUEST, ANY_MEMBER, false, MESSAGE_PRICES_REPLY},
    {MESSAGE_HISTORY_REQUEST, ANY_MEMBER, false, MESSAGE_HISTORY_REPLY},
    {MESSAGE_PROVIDERS_REQUEST, ANY_MEMBER, false, MESSAGE_PROVIDERS_REPLY},
    {MESSAGE_ORDERS_REQUEST, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_ORDERS_REPLY},
    {MESSAGE_DONATIONS_REQUEST, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_DONATIONS_REPLY},
    {MESSAGE_DEVICES_REQUEST, ANY_MEMBER, false, MESSAGE_DEVICES_REPLY},
    {MESSAGE_BLOB_HAVE, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_BLOB_MISSING},
    {MESSAGE_BLOB_PUT, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_BLOB_STORED},
    {MESSAGE_BLOB_GET, ROLE_CONSUMER | ROLE_PROVIDER, false, MESSAGE_BLOB_DATA},
    {MESSAGE_BLOB_FEED, 0, false, MESSAGE_BLOB_CHANGES},
};
enum { PERMISSION_COUNT = sizeof permissions / sizeof permissions[0] };

START_TEST(denied_unless_listed)
{
    for (int type = 0; type < MESSAGE_TYPE_END; type++) {
        struct permission expected = {.type = (enum message_type)type};
        for (size_t i = 0; i < PERMISSION_COUNT; i++) {
            expected = permissions[i].type == (enum message_type)type ? permissions[i] : expected;
        }
        ck_assert_msg(message_roles(expected.type) == expected.roles, "roles of type %d", type);
        ck_assert_msg(message_must_be_signed(expected.type) == expected.is_signed,
                      "signature of type %d", type);
        ck_assert_msg(message_answer(expected.type) == expected.answer, "answer to type %d", type);
        ck_assert((codec_row(expected.type) != NULL) == (message_body_cap(expected.type) > 0));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codec");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, every_field_of_every_message_has_its_caps, 0, MESSAGE_TYPE_END);
    tcase_add_test(tests, results_and_manifests_have_their_caps);
    tcase_add_test(tests, a_body_above_its_cap_is_not_looked_at);
    tcase_add_test(tests, data_may_be_written_where_it_leaves_from);
    tcase_add_test(tests, unknown_types_are_refused);
    tcase_add_test(tests, denied_unless_listed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
