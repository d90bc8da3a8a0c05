/* Random markets over the wire, through the workers' checks, into a journal: its replay is the
 * market that wrote it, wherever a snapshot lies in between.
 *
 * `prop_replay --record FILE [SEED]` writes the journal of one such market, for tests/golden;
 * `prop_replay --corpus FOLDER SEED` what fuzzing begins with, for tests/fuzz:
 * FOLDER/command/drawn-N holds its first N commands in the form of fuzz_command,
 * FOLDER/snapshot/drawn-N the state after them, and FOLDER/body/drawn-TYPE a message of the type.
 */
#include "broker/core/translate.h"
#include "broker/gateway/verify.h"
#include "tests/support/journal_digest.h"
#include "tests/support/market_model.h"
#include "tests/support/market_wire.h"
#include "tests/support/member_entry.h"
#include "tests/support/model_limits.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "base/sha256.h"

#include <assert.h>
#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 12,
    COMMANDS = 700,
    CORPUS_COMMANDS = 450, /* of which some never reach the log */
    RECORD_SEED = 11,
    GROUP_MAX = 6,
    JOURNAL_BYTES = 4 << 20,
    ENTRY_BYTES = 1 << 19
};

struct recording {
    struct model model;
    struct market_wire wire;
    struct translation translation; /* of the last command: the model may still look at it */
    struct exchange_command sent;   /* that command, in the model's own words */
    bool padded;
    uint64_t refused; /* before they reached the log */
    uint64_t noticed; /* leases at work that others took */
    struct entry_head head;
    struct entry_command commands[GROUP_MAX];
    uint8_t *payloads[GROUP_MAX];
    size_t length;
    uint8_t journal[JOURNAL_BYTES];
    const char *corpus; /* a folder; NULL: none is written */
    struct writer fuzzed;
    int64_t fuzzed_ns; /* log time of the last in it */
};

static void write_entry(struct recording *recording)
{
    static uint8_t bytes[ENTRY_BYTES];
    struct entry_head *head = &recording->head;
    if (head->count == 0) {
        return;
    }
    head->index++;
    head->epoch = 1;
    head->batch = model_id(&recording->model);
    size_t length = entry_write(head, recording->commands, bytes, sizeof bytes);
    assert(length > 0);
    struct writer out = writer_over(recording->journal + recording->length,
                                    sizeof recording->journal - recording->length);
    writer_u32(&out, (uint32_t)length);
    writer_bytes(&out, bytes, length);
    assert(!out.failed);
    recording->length += out.position;
    head->previous = sha256_of(bytes, length);
    head->first_command += head->count;
    for (uint32_t i = 0; i < head->count; i++) {
        free(recording->payloads[i]);
    }
    head->count = 0;
}

/* Returns what a signature worker says of the message in `entry`. */
static bool passes(struct recording *recording, const struct entry_command *entry)
{
    if (!member_entry(entry)) {
        return true;
    }
    const struct identity *sender = market_wire_sender(&recording->wire, &recording->model.command);
    struct request *request = request_create();
    struct codec_error error;
    request->key = *identity_key(sender);
    request->transport = *identity_transport(sender);
    assert(envelope_read(entry->payload, entry->payload_length, UINT32_MAX, &request->envelope) ==
           ENVELOPE_OK);
    enum reject_code code = verify_request(request, &recording->wire.cluster, &error);
    assert(code != REJECT_BAD_SIGNATURE);
    request_destroy(&request);
    return code == REJECT_NONE;
}

static bool write_file(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wbe");
    bool written = file != NULL && fwrite(bytes, 1, length, file) == length;
    return file != NULL && fclose(file) == 0 && written;
}

static void write_corpus(const struct recording *recording, const char *target, const char *name,
                         const void *bytes, size_t length)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s/drawn-%s", recording->corpus, target, name);
    assert(write_file(path, bytes, length));
}

/* Keeps the longest body of each type among those that are short: it covers most. */
static void keep_body(const struct recording *recording, const struct entry_command *entry)
{
    enum { BODY_MOST = 400 };
    static size_t kept[DIGEST_TYPES];
    uint8_t bytes[1 + BODY_MOST];
    struct envelope envelope;
    if (!member_entry(entry) ||
        envelope_read(entry->payload, entry->payload_length, UINT32_MAX, &envelope) !=
            ENVELOPE_OK ||
        envelope.type >= DIGEST_TYPES || envelope.body_length > BODY_MOST ||
        envelope.body_length <= kept[envelope.type]) {
        return;
    }
    kept[envelope.type] = envelope.body_length;
    bytes[0] = (uint8_t)envelope.type; /* as fuzz_body has it */
    memcpy(bytes + 1, envelope.body, envelope.body_length);
    write_corpus(recording, "body", message_name((enum message_type)envelope.type), bytes,
                 1 + (size_t)envelope.body_length);
}

/* Early, so that inputs stay small. */
static void add_to_corpus(struct recording *recording, const struct entry_command *entry)
{
    static const uint64_t at[] = {60, 150, 400};
    struct writer *out = &recording->fuzzed;
    const uint64_t index = exchange_index(recording->model.exchange);
    const int64_t passed_ns = entry->log_time_ns - recording->fuzzed_ns;
    writer_u8(out, entry->account == EXCHANGE_NO_ACCOUNT ? UINT8_MAX : (uint8_t)entry->account);
    writer_u8(out, (uint8_t)entry->kind);
    writer_u16(out, (uint16_t)entry->payload_length);
    writer_u32(out, recording->fuzzed_ns == 0 ? 0 : (uint32_t)(passed_ns / NS_PER_MS));
    writer_bytes(out, entry->payload, entry->payload_length);
    recording->fuzzed_ns = entry->log_time_ns;
    keep_body(recording, entry);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        char name[16];
        if (index != at[i]) {
            continue;
        }
        size_t length;
        uint8_t *state = exchange_save(recording->model.exchange, &length);
        assert(state != NULL && !out->failed);
        (void)snprintf(name, sizeof name, "%u", (unsigned)index);
        write_corpus(recording, "snapshot", name, state, length);
        write_corpus(recording, "command", name, out->bytes, out->position);
        free(state);
    }
}

/* The model's command over the wire and into the log, as the broker would have it. */
static void record(struct recording *recording)
{
    struct model *model = &recording->model;
    const struct exchange_command command = model->command;
    bool is_again = id128_equal(&command.id, &recording->sent.id);
    recording->padded =
        is_again && recording->padded != (command.body.bytes[0] != recording->sent.body.bytes[0]);
    struct entry_command entry;
    uint8_t *payload = market_wire_payload(&recording->wire, &command, recording->padded, &entry);
    entry.payload = payload;
    entry.log_time_ns = command.log_time_ns;
    recording->sent = command;
    if (!passes(recording, &entry)) {
        recording->refused++;
        free(payload);
        return;
    }
    uint32_t at = recording->head.count++;
    recording->commands[at] = entry;
    recording->payloads[at] = payload;
    translation_fini(&recording->translation);
    memset(&recording->translation, 0, sizeof recording->translation);
    assert(
        translate_entry(&entry, command.index, &recording->wire.cluster, &recording->translation));
    model->command = recording->translation.command;
    assert(model_apply(model) == EXCHANGE_OK);
    model->command = command;
    for (size_t i = 0; i < model->effects.count; i++) {
        recording->noticed += model->effects.items[i].type == EFFECT_LEASE_NOTICE;
    }
    if (recording->corpus != NULL) {
        add_to_corpus(recording, &entry);
    }
    if (recording->head.count == GROUP_MAX || random_below(&model->random, 3) == 0) {
        write_entry(recording);
    }
}

static struct recording *market_into(uint64_t seed, int commands, const char *corpus)
{
    static uint8_t fuzzed[1 << 18];
    struct recording *recording = calloc(1, sizeof *recording);
    assert(recording != NULL);
    recording->corpus = corpus;
    recording->fuzzed = writer_over(fuzzed, sizeof fuzzed);
    struct model *model = &recording->model;
    recording->head.first_command = 1;
    model_init(model, seed);
    /* The genesis once more, over the wire like everything else. */
    exchange_destroy(&model->exchange);
    model->exchange = exchange_create(&model->limits);
    model->command.index = 1;
    model->index = 0;
    record(recording);
    for (int i = 0; i < commands; i++) {
        model_next(model);
        record(recording);
    }
    write_entry(recording);
    return recording;
}

static struct recording *market_of(uint64_t seed, int commands)
{
    return market_into(seed, commands, NULL);
}

static void recording_free(struct recording *recording)
{
    translation_fini(&recording->translation);
    market_wire_fini(&recording->wire);
    model_fini(&recording->model);
    free(recording);
}

/* ---------------------------------------------------------------- the property */

static void expect_same(const struct journal_digest *a, const struct journal_digest *b,
                        uint64_t cut)
{
    char expected[DIGEST_TEXT_SIZE];
    char found[DIGEST_TEXT_SIZE];
    journal_digest_text(a, expected);
    journal_digest_text(b, found);
    ck_assert_msg(strcmp(expected, found) == 0,
                  "with a snapshot after entry %llu the replay differs: %s\nnot\n%s",
                  (unsigned long long)cut, found, expected);
}

START_TEST(a_replayed_journal_is_the_market_that_wrote_it)
{
    uint64_t seed = 1 + (uint64_t)_i;
    printf("seed %llu\n", (unsigned long long)seed);
    struct recording *recording = market_of(seed, COMMANDS);
    struct journal_digest whole;
    struct problem problem = {.text = ""};
    ck_assert_msg(journal_digest(recording->journal, recording->length, 0, &whole, &problem), "%s",
                  problem.text);
    struct hash32 live = exchange_state_hash(recording->model.exchange);
    ck_assert_mem_eq(live.bytes, whole.state.bytes, sizeof live.bytes);
    ck_assert_uint_eq(whole.commands, exchange_index(recording->model.exchange));
    for (uint64_t cut = 1 + seed; cut < whole.entries; cut += whole.entries / 5) {
        struct journal_digest parted;
        ck_assert_msg(journal_digest(recording->journal, recording->length, cut, &parted, &problem),
                      "%s", problem.text);
        expect_same(&whole, &parted, cut);
    }
    recording_free(recording);
}
END_TEST

START_TEST(one_changed_bit_of_a_command_changes_the_hashes)
{
    struct recording *recording = market_of(3, 200);
    struct journal_digest whole;
    struct journal_digest bent;
    struct problem problem;
    ck_assert(journal_digest(recording->journal, recording->length, 0, &whole, &problem));
    /* The log time of the first command after the genesis. */
    size_t first = 4 + reader_u32(&(struct reader){.bytes = recording->journal, .length = 4});
    recording->journal[first + 4 + ENTRY_HEAD_BYTES + 4] ^= 1;
    ck_assert(journal_digest(recording->journal, recording->length, 0, &bent, &problem));
    ck_assert_mem_ne(whole.state.bytes, bent.state.bytes, sizeof whole.state.bytes);
    ck_assert_mem_ne(whole.effects.bytes, bent.effects.bytes, sizeof whole.effects.bytes);
    recording_free(recording);
}
END_TEST

static int write_recording(const char *path, uint64_t seed)
{
    struct recording *recording = market_of(seed, COMMANDS);
    bool written = write_file(path, recording->journal, recording->length);
    (void)fprintf(
        stderr, "%s: %zu bytes, %llu commands, %llu refused before the log, %llu leases taken\n",
        path, recording->length, (unsigned long long)exchange_index(recording->model.exchange),
        (unsigned long long)recording->refused, (unsigned long long)recording->noticed);
    recording_free(recording);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    if ((argc == 3 || argc == 4) && strcmp(argv[1], "--record") == 0) {
        return write_recording(argv[2], argc == 4 ? strtoull(argv[3], NULL, 10) : RECORD_SEED);
    }
    if (argc == 4 && strcmp(argv[1], "--corpus") == 0) {
        recording_free(market_into(strtoull(argv[3], NULL, 10), CORPUS_COMMANDS, argv[2]));
        return EXIT_SUCCESS;
    }
    Suite *suite = suite_create("replay");
    TCase *tests = tcase_create("recorded markets");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_replayed_journal_is_the_market_that_wrote_it, 0, SEEDS);
    tcase_add_test(tests, one_changed_bit_of_a_command_changes_the_hashes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
