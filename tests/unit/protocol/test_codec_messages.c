/* These tests write messages by hand, so that not only the table of rules checks the rules. */
#include "base/random.h"
#include "protocol/codec.h"
#include "protocol/codec_check.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

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

/* Returns the field that a manifest is refused for, or "" when it is taken. */
static const char *refused_field(const Bourse__V1__Manifest *manifest)
{
    static struct codec_error error;
    size_t length;
    Bourse__V1__Manifest *decoded = NULL;
    uint8_t *bytes = codec_encode(&manifest->base, &length);
    ck_assert_ptr_nonnull(bytes);
    error = (struct codec_error){.field = ""};
    const bool is_taken = codec_decode_manifest(bytes, length, &decoded, &error) == CODEC_OK;
    codec_manifest_free(&decoded);
    free(bytes);
    return is_taken ? "" : error.field;
}

START_TEST(what_an_image_says_needs_the_image)
{
    uint8_t image[32] = {1};
    char directory[] = "/app";
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = "command";
    manifest.name = "x";
    manifest.subtask_count = 1;
    ck_assert_str_eq(refused_field(&manifest), "");
    manifest.directory = directory;
    ck_assert_str_eq(refused_field(&manifest), "directory");
    manifest.directory = NULL;
    manifest.has_user = 1;
    manifest.user = 7;
    ck_assert_str_eq(refused_field(&manifest), "user");
    manifest.directory = directory;
    manifest.has_image = 1;
    manifest.image = (ProtobufCBinaryData){.data = image, .len = sizeof image};
    ck_assert_str_eq(refused_field(&manifest), "");
    manifest.has_group = 1;
    ck_assert_str_eq(refused_field(&manifest), "");
    manifest.has_user = 0;
    ck_assert_str_eq(refused_field(&manifest), "group");
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
    Suite *suite = suite_create("codec_messages");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_job_is_checked_field_by_field);
    tcase_add_test(tests, names_hold_no_surprises);
    tcase_add_test(tests, arguments_may_hold_newlines_and_tabs_but_no_escapes);
    tcase_add_test(tests, as_many_tasks_as_a_job_may_have_fit_however_little_they_say);
    tcase_add_test(tests, a_manifest_lists_all_subtasks_or_none);
    tcase_add_test(tests, a_graph_lists_as_many_edges_as_it_counts);
    tcase_add_test(tests, an_attribute_is_a_number_or_a_text);
    tcase_add_test(tests, what_a_newer_peer_adds_is_let_through);
    tcase_add_test(tests, numbers_wider_than_their_field_are_refused);
    tcase_add_test(tests, a_small_body_cannot_take_much_memory);
    tcase_add_test(tests, the_largest_honest_messages_fit);
    tcase_add_test(tests, who_waits_for_all_others_of_its_job_can_be_told_what_they_left);
    tcase_add_test(tests, requirements_travel_unchanged);
    tcase_add_test(tests, a_tree_that_does_not_close_is_refused);
    tcase_add_test(tests, what_an_image_says_needs_the_image);
    tcase_add_test(tests, random_bytes_never_do_harm);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
