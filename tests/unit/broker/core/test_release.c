/* Effects as messages: what an agent gets must be something that it can read. */
#include "broker/core/release.h"

#include "base/checked.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct outgoing *released;

static void keep(void *context, struct outgoing *outgoing)
{
    (void)context;
    if (outgoing->kind == OUTGOING_PUSH || outgoing->refused != REJECT_NONE) {
        outgoing_destroy(&released);
        released = outgoing;
    } else {
        outgoing_destroy(&outgoing);
    }
}

static void learn(void *context, struct outgoing *outgoing)
{
    ck_assert_int_eq(outgoing->kind, OUTGOING_ACCOUNT);
    ck_assert(directory_put(context, &outgoing->opened));
    outgoing_destroy(&outgoing);
}

static int64_t term_ms_told(int64_t term_ns)
{
    struct exchange_effect effect = {
        .type = EFFECT_LEASE_GRANT,
        .account = 4,
        .grant = {.lease = 7,
                  .job = {{1}},
                  .device = {{2}},
                  .ask = {{3}},
                  .owner = {{4}},
                  .slots = 2,
                  .width = 1,
                  .term_ns = term_ns,
                  .limit_ns = NS_PER_S,
                  .manifest = {{5}}},
    };
    const struct exchange_effects effects = {.items = &effect, .count = 1, .capacity = 1};
    ProtobufCMessage *body = NULL;
    ck_assert(release_effects(&effects, keep, NULL));
    ck_assert_int_eq(
        codec_decode(MESSAGE_LEASE_GRANT, released->body, released->length, &body, NULL), CODEC_OK);
    int64_t term_ms = ((const Bourse__V1__LeaseGrant *)(const void *)body)->term_ms;
    codec_free(&body);
    outgoing_destroy(&released);
    return term_ms;
}

START_TEST(a_term_is_told_in_milliseconds_rounded_down)
{
    ck_assert_int_eq(term_ms_told(2 * NS_PER_S), 2000);
    ck_assert_int_eq(term_ms_told(2 * NS_PER_MS - 1), 1);
}
END_TEST

/* An agent that restarted within the grace of a lease is told of it again: the term is over by
 * then, but a message that it cannot read would cost it its session, again and again. */
START_TEST(a_lease_that_is_all_but_over_can_still_be_read)
{
    ck_assert_int_eq(term_ms_told(1), 1);
    ck_assert_int_eq(term_ms_told(0), 1);
}
END_TEST

/* The blob port, too, knows the reason of a freeze. */
START_TEST(the_reason_of_a_freeze_goes_with_the_account)
{
    struct exchange_effect effect = {.type = EFFECT_ACCOUNT,
                                     .account = 3,
                                     .reason = "unpaid bills",
                                     .opened = {.key = {{7}}, .frozen = true, .name = "zoe"}};
    const struct exchange_effects effects = {.items = &effect, .count = 1, .capacity = 1};
    struct directory *directory = directory_create();
    ck_assert_ptr_nonnull(directory);
    for (int i = 0; i < 2; i++) { /* a freeze, and its end */
        ck_assert(release_effects(&effects, learn, directory));
        const struct directory_account *account = directory_number(directory, 3);
        ck_assert_ptr_nonnull(account);
        ck_assert(account->frozen == (i == 0));
        if (i == 0) {
            ck_assert_str_eq(account->frozen_why, "unpaid bills");
        } else {
            ck_assert_ptr_null(account->frozen_why);
        }
        effect.reason = NULL;
        effect.opened.frozen = false;
    }
    directory_destroy(&directory);
}
END_TEST

static void check_frozen(const char *reason, const char *wanted)
{
    static const struct id128 id;
    ProtobufCMessage *body = NULL;
    struct outgoing *outgoing = outgoing_reject_reason(0, &id, REJECT_FROZEN, "account", reason);
    ck_assert_ptr_nonnull(outgoing);
    ck_assert_int_eq(codec_decode(MESSAGE_REJECT, outgoing->body, outgoing->length, &body, NULL),
                     CODEC_OK);
    ck_assert_str_eq(((const Bourse__V1__Reject *)(const void *)body)->text, wanted);
    codec_free(&body);
    outgoing_destroy(&outgoing);
}

/* A refusal without a reason says where the state of the account is told. */
START_TEST(a_frozen_account_is_told_why_or_where_to_look)
{
    check_frozen("unpaid bills",
                 "account: the operator froze it: \"unpaid bills\". Ask the operator "
                 "to end the freeze.");
    check_frozen(NULL, "account: `bourse status` gives the operator's reason; ask the operator to "
                       "end it.");
}
END_TEST

/* The audit log says of each refusal what was refused. */
START_TEST(a_refusal_names_the_message_that_was_refused)
{
    static const struct {
        enum exchange_command_type command;
        enum message_type message;
    } pairs[] = {{EXCHANGE_JOIN, MESSAGE_JOIN},
                 {EXCHANGE_MINT, MESSAGE_MINT},
                 {EXCHANGE_INVITE, MESSAGE_INVITE_CREATE},
                 {EXCHANGE_FREEZE, MESSAGE_FREEZE},
                 {EXCHANGE_HALT, MESSAGE_HALT},
                 {EXCHANGE_BANDS, MESSAGE_SET_BANDS},
                 {EXCHANGE_ADVERTISE, MESSAGE_ADVERTISE},
                 {EXCHANGE_ASK, MESSAGE_ASK_PLACE},
                 {EXCHANGE_CANCEL_ORDER, MESSAGE_ORDER_CANCEL},
                 {EXCHANGE_REPLACE, MESSAGE_ORDER_REPLACE},
                 {EXCHANGE_STATEMENT, MESSAGE_STATEMENT_HELD},
                 {EXCHANGE_RESULTS, MESSAGE_RESULTS},
                 {EXCHANGE_SUBMIT, MESSAGE_SUBMIT_JOB},
                 {EXCHANGE_CANCEL_JOB, MESSAGE_JOB_CANCEL}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct exchange_effect effect = {.type = EFFECT_REJECT,
                                         .account = 3,
                                         .refused = pairs[i].command,
                                         .reject = {.code = REJECT_ROLE}};
        const struct exchange_effects effects = {.items = &effect, .count = 1, .capacity = 1};
        ck_assert(release_effects(&effects, keep, NULL));
        ck_assert_int_eq(released->refused, REJECT_ROLE);
        ck_assert_int_eq(released->refused_type, pairs[i].message);
        outgoing_destroy(&released);
    }
}
END_TEST

/* A price for so much work is told as one, beside the price that it would have traded at. */
START_TEST(a_refused_limit_by_value_is_told_in_its_unit)
{
    struct exchange_effect effect = {.type = EFFECT_REJECT,
                                     .account = 3,
                                     .refused = EXCHANGE_SUBMIT,
                                     .rate = RATE_FP32,
                                     .reject = {.code = REJECT_WOULD_TRADE,
                                                .field = "cap_micro",
                                                .value = 600 * MICRO_PER_CREDIT,
                                                .limit = MICRO_PER_CREDIT / 10}};
    const struct exchange_effects effects = {.items = &effect, .count = 1, .capacity = 1};
    static const struct {
        const char *field, *said, *text;
    } rows[] = {{"cap_micro", "value.micro",
                 "value: 0.60 per fp32 TFLOP-hour, limit 0.10 credits per slot-hour: "},
                {"parts.cap_micro", "parts.value.micro",
                 "parts.value: 0.60 per fp32 TFLOP-hour, limit 0.10 credits per slot-hour: "}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ProtobufCMessage *body = NULL;
        (void)snprintf(effect.reject.field, sizeof effect.reject.field, "%s", rows[i].field);
        ck_assert(release_effects(&effects, keep, NULL));
        ck_assert_int_eq(
            codec_decode(MESSAGE_REJECT, released->body, released->length, &body, NULL), CODEC_OK);
        const Bourse__V1__Reject *reject = (const void *)body;
        ck_assert_str_eq(reject->field, rows[i].said);
        ck_assert_mem_eq(reject->text, rows[i].text, strlen(rows[i].text));
        codec_free(&body);
        outgoing_destroy(&released);
    }
}
END_TEST

/* ---------------------------------------------------------------- work with what it is given */

enum { PUSHES_MAX = 64 };
static struct outgoing *notes[PUSHES_MAX];
static size_t note_count;

static void keep_all(void *context, struct outgoing *outgoing)
{
    (void)context;
    ck_assert_uint_lt(note_count, PUSHES_MAX);
    notes[note_count++] = outgoing;
}

/* A Given of subtask `index` with one output of that name. */
static uint8_t *left_by(uint32_t index, const char *name, uint32_t *ret_length)
{
    static const uint8_t hash[32] = {0x55};
    Bourse__V1__Output output = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *outputs[] = {&output};
    Bourse__V1__Given given = BOURSE__V1__GIVEN__INIT;
    size_t length;
    output.name = (char *)(uintptr_t)name;
    output.hash = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)hash, .len = sizeof hash};
    output.size = 9;
    given.index = index;
    given.n_outputs = 1;
    given.outputs = outputs;
    uint8_t *bytes = codec_encode(&given.base, &length);
    ck_assert_ptr_nonnull(bytes);
    *ret_length = (uint32_t)length;
    return bytes;
}

static void forget_notes(void)
{
    for (size_t i = 0; i < note_count; i++) {
        outgoing_destroy(&notes[i]);
    }
    note_count = 0;
}

START_TEST(the_right_to_read_what_is_given_goes_before_the_work)
{
    uint32_t length;
    uint8_t *bytes = left_by(3, "part.npy", &length);
    const struct exchange_given given = {.bytes = bytes, .length = length};
    struct exchange_effect effects[] = {
        {.type = EFFECT_DISPATCH,
         .account = 4,
         .work = {.lease = 7, .index = 5, .attempt = 1, .given = &given, .given_count = 1}},
        {.type = EFFECT_DISPATCH,
         .account = 4,
         .work = {.lease = 7, .index = 6, .attempt = 1, .seed = {{3, 1}}}},
    };
    const struct exchange_effects all = {.items = effects, .count = 2, .capacity = 2};
    ck_assert(release_effects(&all, keep_all, NULL));
    ck_assert_uint_eq(note_count, 2);
    ck_assert_int_eq(notes[0]->kind, OUTGOING_GIVEN);
    ck_assert_uint_eq(notes[0]->lease, 7);
    ck_assert_uint_eq(notes[0]->length, sizeof(struct hash32));
    ck_assert_uint_eq(notes[0]->body[0], 0x55);
    ProtobufCMessage *body = NULL;
    ck_assert_int_eq(codec_decode(MESSAGE_DISPATCH, notes[1]->body, notes[1]->length, &body, NULL),
                     CODEC_OK);
    const Bourse__V1__Dispatch *dispatch = (const void *)body;
    ck_assert_uint_eq(dispatch->n_work, 2);
    ck_assert_uint_eq(dispatch->work[0]->n_given, 1);
    ck_assert_uint_eq(dispatch->work[0]->given[0]->index, 3);
    ck_assert_str_eq(dispatch->work[0]->given[0]->outputs[0]->name, "part.npy");
    ck_assert_uint_eq(dispatch->work[1]->n_given, 0);
    ck_assert(!dispatch->work[0]->has_seed); /* only checks have one */
    ck_assert(dispatch->work[1]->has_seed);
    ck_assert_uint_eq(dispatch->work[1]->seed.len, sizeof(struct hash32));
    ck_assert_uint_eq(dispatch->work[1]->seed.data[0], 3);
    codec_free(&body);
    forget_notes();
    free(bytes);
}
END_TEST

/* Neighbours travel together as far as a message holds them; every one can be read. */
START_TEST(work_with_much_to_be_given_takes_several_messages)
{
    enum { WORKS = 20, EACH = 15 };
    static char name[LIMIT_PATH_BYTES];
    static struct exchange_given given[EACH];
    static struct exchange_effect effects[WORKS];
    uint32_t length;
    memset(name, 'n', sizeof name - 1);
    uint8_t *bytes = left_by(1, name, &length);
    uint8_t *large = malloc(LIMIT_GIVEN_BYTES);
    uint32_t filled = 0;
    while (filled + length <= LIMIT_GIVEN_BYTES) { /* outputs add up when one follows another */
        memcpy(large + filled, bytes, length);
        filled += length;
    }
    for (size_t i = 0; i < EACH; i++) {
        given[i] = (struct exchange_given){.bytes = large, .length = filled};
    }
    for (uint32_t i = 0; i < WORKS; i++) {
        effects[i] = (struct exchange_effect){
            .type = EFFECT_DISPATCH,
            .account = 4,
            .work = {.lease = 7, .index = i, .attempt = 1, .given = given, .given_count = EACH}};
    }
    const struct exchange_effects all = {.items = effects, .count = WORKS, .capacity = WORKS};
    ck_assert(release_effects(&all, keep_all, NULL));
    size_t works = 0;
    size_t messages = 0;
    for (size_t i = 0; i < note_count; i++) {
        if (notes[i]->kind != OUTGOING_PUSH) {
            continue;
        }
        ProtobufCMessage *body = NULL;
        ck_assert_int_eq(
            codec_decode(MESSAGE_DISPATCH, notes[i]->body, notes[i]->length, &body, NULL),
            CODEC_OK);
        works += ((const Bourse__V1__Dispatch *)(const void *)body)->n_work;
        messages++;
        codec_free(&body);
    }
    ck_assert_uint_eq(works, WORKS);
    ck_assert_uint_gt(messages, 1);
    ck_assert_uint_lt(messages, WORKS);
    forget_notes();
    free(large);
    free(bytes);
}
END_TEST

SUITE("release", NULL, NULL, TEST(a_term_is_told_in_milliseconds_rounded_down),
      TEST(a_lease_that_is_all_but_over_can_still_be_read),
      TEST(the_reason_of_a_freeze_goes_with_the_account),
      TEST(a_frozen_account_is_told_why_or_where_to_look),
      TEST(a_refusal_names_the_message_that_was_refused),
      TEST(a_refused_limit_by_value_is_told_in_its_unit),
      TEST(the_right_to_read_what_is_given_goes_before_the_work),
      TEST(work_with_much_to_be_given_takes_several_messages))
