#include "protocol/codec.h"

#include "base/random.h"
#include "protocol/codec_check.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "protocol/reject.h"
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
    const int types[] = {0, 7, 15, 39, 127, 128, 65535, -1};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        ProtobufCMessage *body = NULL;
        ck_assert_int_eq(codec_decode((enum message_type)types[i], "", 0, &body, NULL),
                         CODEC_UNKNOWN_TYPE);
        ck_assert_str_eq(message_name((enum message_type)types[i]), "unknown");
        ck_assert_uint_eq(message_roles((enum message_type)types[i]), 0);
    }
}
END_TEST

/* ---- by hand, so that the table of rules is checked by something else ---- */

static enum codec_status decode_raw(enum message_type type, const void *bytes, size_t length,
                                    struct codec_error *ret_error)
{
    ProtobufCMessage *body = NULL;
    enum codec_status status = codec_decode(type, bytes, length, &body, ret_error);
    codec_free(&body);
    return status;
}

static enum codec_status decode_body(enum message_type type, const ProtobufCMessage *body,
                                     struct codec_error *ret_error)
{
    size_t length;
    uint8_t *bytes = codec_encode(body, &length);
    enum codec_status status = decode_raw(type, bytes, length, ret_error);
    free(bytes);
    return status;
}

static uint8_t filler[64];
static const ProtobufCBinaryData id = {16, filler};
static const ProtobufCBinaryData hash = {32, filler};

static Bourse__V1__SubmitJob job_example(Bourse__V1__Requirement *needs)
{
    bourse__v1__requirement__init(needs);
    Bourse__V1__SubmitJob job = BOURSE__V1__SUBMIT_JOB__INIT;
    job.name = "thumbnails";
    job.manifest = hash;
    job.subtasks = 200;
    job.budget_micro = 2000000;
    job.needs = needs;
    job.slots = 1;
    job.at_most = 0;
    job.limit_ms = 600000;
    job.term_ms = 60000;
    job.verify = "none";
    return job;
}

START_TEST(a_job_is_checked_field_by_field)
{
    Bourse__V1__Requirement needs;
    struct codec_error error;
    Bourse__V1__SubmitJob job = job_example(&needs);
    ck_assert_int_eq(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error), CODEC_OK);

    job.budget_micro = 0;
    ck_assert_int_eq(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error), CODEC_OK);
    job.budget_micro = -5;
    ck_assert_int_eq(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error), CODEC_MALFORMED);
    ck_assert_str_eq(error.field, "budget_micro");
    ck_assert_int_eq(error.limit, 0);
    ck_assert_int_eq(error.value, -5);
    job = job_example(&needs);
    job.subtasks = LIMIT_SUBTASKS + 1;
    ck_assert_int_eq(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error), CODEC_MALFORMED);
    ck_assert_int_eq(error.limit, LIMIT_SUBTASKS);
    job = job_example(&needs);
    job.slots = 0;
    ck_assert_int_eq(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error), CODEC_MALFORMED);
    job = job_example(&needs);
    job.term_ms = INT64_MAX; /* would wrap in nanoseconds */
    ck_assert_int_eq(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error), CODEC_MALFORMED);
    ck_assert_str_eq(error.field, "term_ms");
    job = job_example(&needs);
    job.has_cap_micro = 1;
    job.cap_micro = -1;
    ck_assert_int_eq(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error), CODEC_MALFORMED);
    job = job_example(&needs);
    job.manifest.len = 31;
    ck_assert_int_eq(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error), CODEC_MALFORMED);
    ck_assert_str_eq(error.field, "manifest");
}
END_TEST

START_TEST(names_hold_no_surprises)
{
    static const char *const wrong[] = {"\x1b[31mred",
                                        "two\nlines",
                                        "tab\t",
                                        "bell\a",
                                        "\x7f",
                                        "\xc2\x85" /* next line */,
                                        ("\xe2\x80\xae"
                                         "evil") /* right-to-left override */,
                                        "\xe2\x81\xa6" /* isolate */,
                                        "\xe2\x80\xa8" /* line separator */,
                                        "\xc0\xaf" /* overlong */,
                                        "\xed\xa0\x80" /* surrogate */,
                                        "\xf4\x90\x80\x80" /* above 10ffff */,
                                        "\x80",
                                        "\xe2\x82",
                                        "\xf8\x88\x80\x80\x80"};
    static const char *const right[] = {"plain",
                                        "with space",
                                        "\xc3\xa9t\xc3\xa9",
                                        "\xe6\xbc\xa2\xe5\xad\x97",
                                        "\xf0\x9f\x8c\x8d",
                                        "a/b:c;d\"e'f\\g"};
    Bourse__V1__Requirement needs;
    Bourse__V1__SubmitJob job = job_example(&needs);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        job.name = (char *)(uintptr_t)wrong[i];
        struct codec_error error;
        ck_assert_msg(decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error) == CODEC_MALFORMED,
                      "name %zu", i);
        ck_assert_str_eq(error.field, "name");
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        job.name = (char *)(uintptr_t)right[i];
        ck_assert_msg(decode_body(MESSAGE_SUBMIT_JOB, &job.base, NULL) == CODEC_OK, "name %zu", i);
    }
}
END_TEST

START_TEST(arguments_may_hold_newlines_and_tabs_but_no_escapes)
{
    char *arguments[] = {"a\tb\nc"};
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = "command";
    manifest.name = "x";
    manifest.n_arguments = 1;
    manifest.arguments = arguments;
    manifest.subtask_count = 3;
    size_t length;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    Bourse__V1__Manifest *decoded;
    ck_assert_int_eq(codec_decode_manifest(bytes, length, &decoded, NULL), CODEC_OK);
    ck_assert_str_eq(decoded->arguments[0], "a\tb\nc");
    codec_manifest_free(&decoded);
    ck_assert_ptr_null(decoded);
    free(bytes);

    arguments[0] = "\x1b]0;title\a";
    struct codec_error error;
    bytes = codec_encode(&manifest.base, &length);
    ck_assert_int_eq(codec_decode_manifest(bytes, length, &decoded, &error), CODEC_MALFORMED);
    ck_assert_str_eq(error.field, "arguments");
    free(bytes);
}
END_TEST

static void check_tasks_fit(const char *name)
{
    enum { TASKS = LIMIT_GRAPH_SUBTASKS };
    Bourse__V1__ManifestTask task = BOURSE__V1__MANIFEST_TASK__INIT;
    task.name = (char *)(uintptr_t)name;
    Bourse__V1__ManifestSubtask subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    subtask.task = name == NULL ? NULL : &task;
    Bourse__V1__ManifestSubtask **subtasks = malloc(TASKS * sizeof(Bourse__V1__ManifestSubtask *));
    for (size_t i = 0; i < TASKS; i++) {
        subtasks[i] = &subtask;
    }
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = "noop";
    manifest.name = "x";
    manifest.n_subtasks = manifest.subtask_count = TASKS;
    manifest.subtasks = subtasks;
    size_t length;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    Bourse__V1__Manifest *decoded = NULL;
    struct codec_error error = {0};
    const enum codec_status status = codec_decode_manifest(bytes, length, &decoded, &error);
    ck_assert_msg(status == CODEC_OK, "%zu bytes: %d (%lld of %lld)", length, (int)status,
                  (long long)error.value, (long long)error.limit);
    codec_manifest_free(&decoded);
    free(bytes);
    free(subtasks);
}

START_TEST(as_many_tasks_as_a_job_may_have_fit_however_little_they_say)
{
    check_tasks_fit(NULL);
    check_tasks_fit("t");
    check_tasks_fit("t1");
    check_tasks_fit("build-the-tests");
}
END_TEST

START_TEST(a_manifest_lists_all_subtasks_or_none)
{
    Bourse__V1__ManifestSubtask subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&subtask, &subtask};
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = "command";
    manifest.name = "x";
    manifest.n_subtasks = 2;
    manifest.subtasks = subtasks;
    for (uint32_t count = 1; count <= 3; count++) {
        manifest.subtask_count = count;
        size_t length;
        uint8_t *bytes = codec_encode(&manifest.base, &length);
        Bourse__V1__Manifest *decoded = NULL;
        enum codec_status status = codec_decode_manifest(bytes, length, &decoded, NULL);
        ck_assert_int_eq(status, count == 2 ? CODEC_OK : CODEC_MALFORMED);
        codec_manifest_free(&decoded);
        free(bytes);
    }
}
END_TEST

START_TEST(a_graph_lists_as_many_edges_as_it_counts)
{
    uint32_t after_counts[] = {0, 1, 2};
    uint32_t after[] = {0, 0, 1, 1};
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__Graph graph = BOURSE__V1__GRAPH__INIT;
    Bourse__V1__SubmitJob job = job_example(&needs);
    graph.n_after_count = 3;
    graph.after_count = after_counts;
    graph.after = after;
    job.graph = &graph;
    for (size_t edges = 2; edges <= 4; edges++) {
        struct codec_error error;
        graph.n_after = edges;
        enum codec_status status = decode_body(MESSAGE_SUBMIT_JOB, &job.base, &error);
        ck_assert_int_eq(status, edges == 3 ? CODEC_OK : CODEC_MALFORMED);
        ck_assert(edges == 3 || strcmp(error.field, "graph.after") == 0);
    }
}
END_TEST

START_TEST(an_attribute_is_a_number_or_a_text)
{
    for (int both = 0; both < 4; both++) {
        Bourse__V1__Attribute attribute = BOURSE__V1__ATTRIBUTE__INIT;
        attribute.name = "memory";
        attribute.has_number = both & 1;
        attribute.text = (both & 2) != 0 ? "text" : NULL;
        Bourse__V1__Attribute *attributes[] = {&attribute};
        Bourse__V1__Device device = BOURSE__V1__DEVICE__INIT;
        device.device = id;
        device.instrument = "cpu.x86_64";
        device.slots = 1;
        device.n_attributes = 1;
        device.attributes = attributes;
        Bourse__V1__Device *devices[] = {&device};
        Bourse__V1__Advertise advertise = BOURSE__V1__ADVERTISE__INIT;
        advertise.n_devices = 1;
        advertise.devices = devices;
        struct codec_error error;
        bool is_good = both == 1 || both == 2;
        ck_assert_int_eq(decode_body(MESSAGE_ADVERTISE, &advertise.base, &error),
                         is_good ? CODEC_OK : CODEC_MALFORMED);
        if (!is_good) {
            ck_assert_str_eq(error.field, "devices.attributes.number");
        }
    }
}
END_TEST

START_TEST(what_a_newer_peer_adds_is_let_through)
{
    static const uint8_t body[] = {0x08, 1,                      /* sequence 1 */
                                   0xf8, 0x01, 5,                /* field 31, a number */
                                   0xfa, 0x01, 2, 0xff, 0xff,    /* field 31, bytes */
                                   0xfd, 0x01, 1, 2,    3,    4, /* field 31, 32 bits */
                                   0xf9, 0x01, 1, 2,    3,    4, 5, 6, 7, 8,
                                   /* field 31, 64 bits */};
    ck_assert_int_eq(decode_raw(MESSAGE_HEARTBEAT, body, sizeof body, NULL), CODEC_OK);
    for (size_t cut = 1; cut < sizeof body; cut++) {
        bool is_whole = cut == 2 || cut == 5 || cut == 10 || cut == 16;
        ck_assert_int_eq(decode_raw(MESSAGE_HEARTBEAT, body, cut, NULL),
                         is_whole ? CODEC_OK : CODEC_MALFORMED);
    }
}
END_TEST

START_TEST(numbers_wider_than_their_field_are_refused)
{
    static const uint8_t wide[] = {0x08, 0x81, 0x80, 0x80,
                                   0x80, 0x10, 0x12, 0x00}; /* version 2^32 + 1 */
    struct codec_error error;
    ck_assert_int_eq(decode_raw(MESSAGE_HELLO, wide, sizeof wide, &error), CODEC_MALFORMED);
    ck_assert_str_eq(error.field, "version");
    static const uint8_t eleven[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    ck_assert_int_eq(decode_raw(MESSAGE_HEARTBEAT, eleven, sizeof eleven, &error), CODEC_MALFORMED);
    static const uint8_t overflow[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0xff, 0x02};
    ck_assert_int_eq(decode_raw(MESSAGE_HEARTBEAT, overflow, sizeof overflow, &error),
                     CODEC_MALFORMED);
    static const uint8_t not_a_bool[] = {0x08, 0x02};
    ck_assert_int_eq(decode_raw(MESSAGE_HALT, not_a_bool, sizeof not_a_bool, &error),
                     CODEC_MALFORMED);
    static const uint8_t group[] = {0xfb, 0x01, 0xfc, 0x01};
    ck_assert_int_eq(decode_raw(MESSAGE_HEARTBEAT, group, sizeof group, &error), CODEC_MALFORMED);
    static const uint8_t field_zero[] = {0x00, 0x01};
    ck_assert_int_eq(decode_raw(MESSAGE_HEARTBEAT, field_zero, sizeof field_zero, &error),
                     CODEC_MALFORMED);
}
END_TEST

START_TEST(a_small_body_cannot_take_much_memory)
{
    /* Half a million unknown fields of two bytes: protobuf-c keeps each in a struct of its own. */
    size_t length = LIMIT_LARGE_BODY_BYTES & ~1U;
    uint8_t *bytes = malloc(length);
    for (size_t i = 0; i < length; i += 2) {
        bytes[i] = 15 << 3; /* field 15, a number */
        bytes[i + 1] = 1;
    }
    struct codec_error error;
    ck_assert_int_eq(decode_raw(MESSAGE_ADVERTISE, bytes, length, &error), CODEC_TOO_LARGE);
    ck_assert_int_eq(error.limit,
                     LIMIT_DECODED_FLOOR_BYTES + (int64_t)length * LIMIT_DECODED_FACTOR);
    free(bytes);
}
END_TEST

START_TEST(the_largest_honest_messages_fit)
{
    static Bourse__V1__HeldWork work[LIMIT_HELD];
    static Bourse__V1__HeldWork *pointers[LIMIT_HELD];
    for (uint32_t i = 0; i < LIMIT_HELD; i++) {
        bourse__v1__held_work__init(&work[i]);
        work[i].index = LIMIT_SUBTASKS - 1 - i;
        work[i].attempt = 3;
        pointers[i] = &work[i];
    }
    Bourse__V1__HeldLease lease = BOURSE__V1__HELD_LEASE__INIT;
    lease.lease = INT64_MAX;
    lease.n_work = LIMIT_HELD;
    lease.work = pointers;
    Bourse__V1__HeldLease *leases[] = {&lease};
    Bourse__V1__Statement statement = BOURSE__V1__STATEMENT__INIT;
    statement.n_leases = 1;
    statement.leases = leases;
    struct codec_error error;
    ck_assert_int_eq(decode_body(MESSAGE_STATEMENT_HELD, &statement.base, &error), CODEC_OK);

    uint8_t *chunk = calloc(1, LIMIT_BLOB_CHUNK_BYTES);
    Bourse__V1__BlobPut put = BOURSE__V1__BLOB_PUT__INIT;
    put.hash = hash;
    put.size = LIMIT_BLOB_CHUNK_BYTES;
    put.data = (ProtobufCBinaryData){LIMIT_BLOB_CHUNK_BYTES, chunk};
    put.has_job = 1;
    put.job = id;
    ck_assert_int_eq(decode_body(MESSAGE_BLOB_PUT, &put.base, &error), CODEC_OK);
    free(chunk);
}
END_TEST

/* Works that are each given what `givers` others left: nothing, or one file of the shortest
 * name. */
static void check_given_fits(size_t works, uint32_t givers, size_t files)
{
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *outputs[] = {&file};
    file.name = "f";
    file.hash = hash;
    Bourse__V1__Given *given = malloc(givers * sizeof *given);
    Bourse__V1__Given **pointers = malloc(givers * sizeof(Bourse__V1__Given *));
    for (uint32_t i = 0; i < givers; i++) {
        bourse__v1__given__init(&given[i]);
        given[i].index = i;
        given[i].n_outputs = files;
        given[i].outputs = outputs;
        pointers[i] = &given[i];
    }
    Bourse__V1__Work work = BOURSE__V1__WORK__INIT;
    Bourse__V1__Work *list[LIMIT_DISPATCH];
    work.index = givers;
    work.attempt = 1;
    work.n_given = givers;
    work.given = pointers;
    for (size_t i = 0; i < works; i++) {
        list[i] = &work;
    }
    Bourse__V1__Dispatch dispatch = BOURSE__V1__DISPATCH__INIT;
    dispatch.lease = 1;
    dispatch.n_work = works;
    dispatch.work = list;
    struct codec_error error = {0};
    const enum codec_status status = decode_body(MESSAGE_DISPATCH, &dispatch.base, &error);
    ck_assert_msg(status == CODEC_OK, "%zu works, each given by %u: %d (%lld of %lld)", works,
                  givers, (int)status, (long long)error.value, (long long)error.limit);
    free(pointers);
    free(given);
}

/* The memory that unpacking takes grows by leaps, at 16 fields less than a power of two. */
START_TEST(who_waits_for_all_others_of_its_job_can_be_told_what_they_left)
{
    enum { WITH_FILES = 16000 }; /* about as many as LIMIT_GIVEN_WORK_BYTES lets through */
    const size_t lane_counts[] = {1, 2, 16, LIMIT_DISPATCH};
    for (size_t i = 0; i < sizeof lane_counts / sizeof lane_counts[0]; i++) {
        const uint32_t most = (LIMIT_GRAPH_EDGES - LIMIT_DISPATCH) / (uint32_t)lane_counts[i];
        for (uint32_t leap = 32; leap - 20 <= most && leap <= LIMIT_GRAPH_SUBTASKS; leap *= 2) {
            for (uint32_t givers = leap - 20; givers <= leap - 10 && givers <= most; givers++) {
                check_given_fits(lane_counts[i], givers, 0);
            }
        }
    }
    check_given_fits(1, LIMIT_GRAPH_SUBTASKS - 1, 0);
    check_given_fits(1, WITH_FILES, 1);
    check_given_fits(LIMIT_DISPATCH, WITH_FILES / LIMIT_DISPATCH, 1);
}
END_TEST

/* ---- requirements ---- */

static struct requirement_node predicate(enum requirement_op op, const char *name, const char *text,
                                         int64_t number)
{
    struct requirement_node node = {.op = op,
                                    .attribute = {.is_text = text != NULL, .number = number}};
    strcpy(node.attribute.name, name);
    if (text != NULL) {
        strcpy(node.attribute.text, text);
    }
    return node;
}

static bool round_trip(const struct requirement *requirement, struct requirement *ret_requirement)
{
    Bourse__V1__Requirement *wire = codec_requirement_to_wire(requirement);
    Bourse__V1__QuoteRequest quote = BOURSE__V1__QUOTE_REQUEST__INIT;
    quote.needs = wire;
    quote.subtasks = 1;
    quote.slots = 1;
    quote.limit_ms = quote.term_ms = quote.expect_ns = 1;
    size_t length;
    uint8_t *bytes = codec_encode(&quote.base, &length);
    ProtobufCMessage *body;
    ck_assert_int_eq(codec_decode(MESSAGE_QUOTE_REQUEST, bytes, length, &body, NULL), CODEC_OK);
    bool good = codec_requirement_from_wire(((Bourse__V1__QuoteRequest *)(void *)body)->needs,
                                            ret_requirement);
    codec_free(&body);
    codec_requirement_free(&wire);
    free(bytes);
    return good;
}

START_TEST(requirements_travel_unchanged)
{
    struct requirement requirement = {.count = 5};
    requirement.nodes[0] = predicate(REQUIREMENT_GE, "memory", NULL, INT64_C(1) << 31);
    requirement.nodes[1] = predicate(REQUIREMENT_EQ, "kind", "cpu", 0);
    requirement.nodes[2] = (struct requirement_node){.op = REQUIREMENT_NOT};
    requirement.nodes[3] = predicate(REQUIREMENT_LT, "latency", NULL, -1);
    requirement.nodes[4] = (struct requirement_node){.op = REQUIREMENT_AND, .arity = 3};
    struct requirement again;
    ck_assert(round_trip(&requirement, &again));
    ck_assert_uint_eq(again.count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_int_eq(again.nodes[i].op, requirement.nodes[i].op);
        ck_assert_uint_eq(again.nodes[i].arity, requirement.nodes[i].arity);
        ck_assert_str_eq(again.nodes[i].attribute.name, requirement.nodes[i].attribute.name);
        ck_assert_str_eq(again.nodes[i].attribute.text, requirement.nodes[i].attribute.text);
        ck_assert_int_eq(again.nodes[i].attribute.number, requirement.nodes[i].attribute.number);
        ck_assert(again.nodes[i].attribute.is_text == requirement.nodes[i].attribute.is_text);
    }
    struct requirement nothing = {0};
    ck_assert(round_trip(&nothing, &again));
    ck_assert_uint_eq(again.count, 0);
}
END_TEST

START_TEST(a_tree_that_does_not_close_is_refused)
{
    struct requirement again = {.count = 99};
    struct requirement two = {.count = 2};
    two.nodes[0] = predicate(REQUIREMENT_EQ, "a", "x", 0);
    two.nodes[1] = predicate(REQUIREMENT_EQ, "b", "y", 0);
    ck_assert(!round_trip(&two, &again)); /* two trees */
    struct requirement short_of = {.count = 2};
    short_of.nodes[0] = two.nodes[0];
    short_of.nodes[1] = (struct requirement_node){.op = REQUIREMENT_OR, .arity = 2};
    ck_assert(!round_trip(&short_of, &again)); /* an operand is missing */
    struct requirement lonely = {.count = 1};
    lonely.nodes[0] = (struct requirement_node){.op = REQUIREMENT_NOT};
    ck_assert(!round_trip(&lonely, &again));
    ck_assert_uint_eq(again.count, 99);
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
    {MESSAGE_WHY_REQUEST, ROLE_PROVIDER, false, MESSAGE_WHY_REPLY},
    {MESSAGE_SUBMIT_JOB, ROLE_CONSUMER, true, MESSAGE_ACCEPTED},
    {MESSAGE_JOB_CANCEL, ROLE_CONSUMER, true, MESSAGE_ACCEPTED},
    {MESSAGE_QUOTE_REQUEST, ROLE_CONSUMER, false, MESSAGE_QUOTE_REPLY},
    {MESSAGE_EXPLAIN_REQUEST, ROLE_CONSUMER, false, MESSAGE_EXPLAIN_REPLY},
    {MESSAGE_JOBS_REQUEST, ROLE_CONSUMER, false, MESSAGE_JOBS_REPLY},
    {MESSAGE_OUTCOMES_REQUEST, ROLE_CONSUMER, false, MESSAGE_OUTCOMES_REPLY},
    {MESSAGE_RECEIPT_REQUEST, ROLE_CONSUMER, false, MESSAGE_RECEIPT_REPLY},
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

START_TEST(random_bytes_never_do_harm)
{
    struct random random = random_seeded(20261120);
    uint8_t bytes[200];
    for (int round = 0; round < 20000; round++) {
        size_t length = random_below(&random, sizeof bytes);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = (uint8_t)random_below(&random, i % 3 == 0 ? 40 : 256);
        }
        enum message_type type = (enum message_type)random_below(&random, MESSAGE_TYPE_END);
        (void)decode_raw(type, bytes, length, NULL);
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
    tcase_add_test(tests, a_job_is_checked_field_by_field);
    tcase_add_test(tests, names_hold_no_surprises);
    tcase_add_test(tests, arguments_may_hold_newlines_and_tabs_but_no_escapes);
    tcase_add_test(tests, as_many_tasks_as_a_job_may_have_fit_however_little_they_say);
    tcase_add_test(tests, a_manifest_lists_all_subtasks_or_none);
    tcase_add_test(tests, an_attribute_is_a_number_or_a_text);
    tcase_add_test(tests, what_a_newer_peer_adds_is_let_through);
    tcase_add_test(tests, numbers_wider_than_their_field_are_refused);
    tcase_add_test(tests, a_small_body_cannot_take_much_memory);
    tcase_add_test(tests, the_largest_honest_messages_fit);
    tcase_add_test(tests, who_waits_for_all_others_of_its_job_can_be_told_what_they_left);
    tcase_add_test(tests, requirements_travel_unchanged);
    tcase_add_test(tests, a_graph_lists_as_many_edges_as_it_counts);
    tcase_add_test(tests, a_tree_that_does_not_close_is_refused);
    tcase_add_test(tests, denied_unless_listed);
    tcase_add_test(tests, random_bytes_never_do_harm);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
