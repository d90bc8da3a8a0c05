/* Random markets over the wire, through the workers' checks, into a journal: its replay is the market that
 * wrote it, wherever a snapshot lies in between.
 *
 * `prop_replay --record FILE` writes the journal of one such market, for tests/golden. */
#include "broker/verify.h"
#include "tests/support/journal_digest.h"
#include "tests/support/market_model.h"
#include "tests/support/market_wire.h"
#include "tests/support/model_limits.h"

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
    struct entry_head head;
    struct entry_command commands[GROUP_MAX];
    uint8_t *payloads[GROUP_MAX];
    size_t length;
    uint8_t journal[JOURNAL_BYTES];
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

/* What a signature worker says of the message in `entry`. */
static bool passes(struct recording *recording, const struct entry_command *entry)
{
    if (!entry_is_message(entry)) {
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
    if (recording->head.count == GROUP_MAX || random_below(&model->random, 3) == 0) {
        write_entry(recording);
    }
}

static struct recording *market_of(uint64_t seed, int commands)
{
    struct recording *recording = calloc(1, sizeof *recording);
    assert(recording != NULL);
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

static int write_recording(const char *path)
{
    struct recording *recording = market_of(RECORD_SEED, COMMANDS);
    FILE *file = fopen(path, "wb");
    bool written =
        file != NULL && fwrite(recording->journal, 1, recording->length, file) == recording->length;
    written = file != NULL && fclose(file) == 0 && written;
    (void)fprintf(stderr, "%s: %zu bytes, %llu commands, %llu refused before the log\n", path,
                  recording->length, (unsigned long long)exchange_index(recording->model.exchange),
                  (unsigned long long)recording->refused);
    recording_free(recording);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    if (argc == 3 && strcmp(argv[1], "--record") == 0) {
        return write_recording(argv[2]);
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
