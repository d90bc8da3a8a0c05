/* The audit against a market in which attempts were preempted: of a job with checkpoints each is paid for what was saved, and
 * for nothing else. */
#include "base/sha256.h"
#include "broker/audit/audit.h"
#include "ledger/accounts.h"
#include "protocol/message.h"
#include "tests/support/small_market_writer.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET INT64_C(10000000)
#define LEASE 2
#define BUSY_NS INT64_C(1000000)

/* One after the other, each paid or not. */
struct attempt {
    const char *saved; /* what is in the one file of its checkpoint; NULL: it left none */
    uint8_t outcome, status;
};
struct story {
    bool has_checkpoints;
    struct attempt attempts[4];
};
static struct id128 job;

static void submit_and_fill(struct writer_state *state, struct story *story)
{
    struct small_market *market = state->market;
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    body.name = "saves";
    body.manifest = writer_data(state->manifest.bytes, 32);
    body.subtasks = 3;
    body.budget_micro = BUDGET;
    body.has_cap_micro = true;
    body.cap_micro = SMALL_MARKET_PRICE;
    body.needs = &needs;
    body.slots = 1;
    body.limit_ms = body.term_ms = 1000;
    body.verify = "none";
    body.has_checkpoint = body.checkpoint = story->has_checkpoints;
    job = writer_add_message(state, MESSAGE_SUBMIT_JOB, market->owner, SMALL_MARKET_OWNER,
                             &body.base);
    struct ledger_record *record = writer_add_record(state, LEDGER_JOB);
    record->job = job;
    record->owner = *identity_key(market->owner);
    record->hash = state->manifest;
    record->subtasks = 3;
    record->amount_micro = BUDGET;
    (void)snprintf(record->name, sizeof record->name, "saves");
    record->price_micro = SMALL_MARKET_PRICE;
    record->width = 1;
    record->debit = record->credit = SMALL_MARKET_OWNER;
    record = writer_add_record(state, LEDGER_HOLD);
    record->job = job;
    record->debit = record->credit = SMALL_MARKET_OWNER;
    record->amount_micro = BUDGET;
    record = writer_add_record(state, LEDGER_BID);
    record->order = record->job = job;
    record->owner = *identity_key(market->owner);
    record->slots = UINT32_MAX;
    record->width = 1;
    record->price_micro = SMALL_MARKET_PRICE;
    record = writer_add_record(state, LEDGER_FILL);
    record->lease = LEASE;
    record->order = market->other_ask;
    record->bid = record->job = job;
    record->provider = *identity_key(market->provider);
    record->owner = *identity_key(market->owner);
    record->device = market->other_device;
    record->slots = 1;
    record->price_micro = SMALL_MARKET_PRICE;
    record->term_ns = INT64_C(1000000000);
    (void)snprintf(record->name, sizeof record->name, "cpu.x86_64.avx2");
    writer_commit(state);
}

static uint8_t *result_of(const struct writer_state *state, const struct story *story,
                          uint32_t number, size_t *ret_length)
{
    const struct small_market *market = state->market;
    const struct attempt *attempt = &story->attempts[number - 1];
    const struct hash32 hash =
        sha256_of(attempt->saved, attempt->saved == NULL ? 0 : strlen(attempt->saved));
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *files = &file;
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = writer_data(market->cluster.bytes, 16);
    result.job = writer_data(job.bytes, 16);
    result.attempt = number;
    result.lease = LEASE;
    result.provider = writer_data(identity_key(market->provider)->bytes, 32);
    result.device = writer_data(market->other_device.bytes, 16);
    result.manifest = writer_data(state->manifest.bytes, 32);
    result.outcome = attempt->outcome;
    result.started_ms = 1700000000000;
    result.busy_ns = BUSY_NS;
    if (attempt->saved != NULL) {
        file.name = "n";
        file.hash = writer_data(hash.bytes, 32);
        file.size = strlen(attempt->saved);
        saved.n_files = 1;
        saved.files = &files;
        result.saved = &saved;
    }
    return codec_encode(&result.base, ret_length);
}

static void pay(struct writer_state *state, const struct ledger_record *result,
                enum ledger_kind kind, uint32_t credit, int64_t amount_micro)
{
    if (amount_micro > 0) {
        struct ledger_record *record = writer_add_record(state, kind);
        record->job = result->job;
        record->lease = result->lease;
        record->attempt = result->attempt;
        record->debit = SMALL_MARKET_OWNER;
        record->credit = credit;
        record->amount_micro = amount_micro;
    }
}

static void settle(struct writer_state *state, struct story *story, uint32_t number)
{
    const struct small_market *market = state->market;
    const struct attempt *attempt = &story->attempts[number - 1];
    struct batch *batch = &state->batch;
    batch->bytes[0] = result_of(state, story, number, &batch->lengths[0]);
    batch->leaves[0] = results_leaf(batch->bytes[0], batch->lengths[0]);
    batch->count = 1;
    const struct hash32 root = results_root(batch->leaves, 1);
    batch->signature = results_sign(market->provider, &market->cluster, &root);
    ProtobufCBinaryData encoded = writer_data(batch->bytes[0], batch->lengths[0]);
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    body.signature = writer_data(batch->signature.bytes, 64);
    body.n_results = 1;
    body.results = &encoded;
    writer_add_message(state, MESSAGE_RESULTS, NULL, SMALL_MARKET_PROVIDER, &body.base);

    const bool is_paid = attempt->status == ATTEMPT_FAILED_PAID;
    const int64_t charge_micro = is_paid ? BUSY_NS / 1000 : 0;
    const int64_t fee_micro = charge_micro * FEE_PPM / 1000000;
    struct ledger_record *record = writer_add_record(state, LEDGER_RESULT);
    record->job = job;
    record->attempt = number;
    record->lease = LEASE;
    record->provider = *identity_key(market->provider);
    record->owner = *identity_key(market->owner);
    record->device = market->other_device;
    record->hash = sha256_of(batch->bytes[0], batch->lengths[0]);
    record->outcome = attempt->outcome;
    record->status = attempt->status;
    record->price_micro = SMALL_MARKET_PRICE;
    record->paid_ns = is_paid ? BUSY_NS : 0;
    record->charge_micro = charge_micro;
    record->result = batch->bytes[0];
    record->result_length = (uint32_t)batch->lengths[0];
    record->batch_index = record->log_index;
    const struct ledger_record result = *record;
    pay(state, &result, LEDGER_CAPTURE, SMALL_MARKET_PROVIDER, charge_micro - fee_micro);
    pay(state, &result, LEDGER_FEE, ACCOUNT_FEES, fee_micro);
    writer_commit(state);
}

static void tell(struct writer_state *state, void *context)
{
    struct story *story = context;
    submit_and_fill(state, story);
    for (uint32_t number = 1; number <= 4 && story->attempts[number - 1].outcome != 0; number++) {
        settle(state, story, number);
    }
}

#define SAID OUTCOME_PREEMPTED
static const struct {
    struct story story;
    const char *words; /* of the finding; NULL: it is as it should be */
} cases[] = {
    {{true, {{"at 3", SAID, ATTEMPT_FAILED_PAID}, {"at 6", SAID, ATTEMPT_FAILED_PAID}}}, NULL},
    {{true, {{NULL, SAID, ATTEMPT_FAILED_UNPAID}, {"at 3", SAID, ATTEMPT_FAILED_PAID}}}, NULL},
    {{true,
      {{"at 3", SAID, ATTEMPT_FAILED_PAID},
       {NULL, OUTCOME_PROGRAM_FAILED, ATTEMPT_FAILED_PAID},
       {"at 3", SAID, ATTEMPT_FAILED_PAID}}},
     NULL}, /* it was given up, and saved again */
    {{true, {{"at 3", SAID, ATTEMPT_FAILED_PAID}, {"at 3", SAID, ATTEMPT_FAILED_UNPAID}}}, NULL},
    {{false, {{NULL, SAID, ATTEMPT_FAILED_PAID}}}, NULL},
    {{true, {{NULL, SAID, ATTEMPT_FAILED_PAID}}},
     "what was preempted is paid where it left a checkpoint"},
    {{true, {{"at 3", SAID, ATTEMPT_FAILED_PAID}, {"at 3", SAID, ATTEMPT_FAILED_PAID}}},
     "what was preempted is paid where its checkpoint is new"},
    {{true,
      {{"at 3", SAID, ATTEMPT_FAILED_PAID},
       {NULL, OUTCOME_PROGRAM_FAILED, ATTEMPT_LATE},
       {"at 3", SAID, ATTEMPT_FAILED_PAID}}},
     "what was preempted is paid where its checkpoint is new"}, /* what is late gives nothing up */
};
enum { CASES = sizeof cases / sizeof cases[0] };

START_TEST(what_was_preempted_is_paid_for_what_was_saved)
{
    struct small_market market;
    struct audit_report report;
    struct story story = cases[_i].story;
    small_market_create_more(&market, NULL, tell, &story);
    audit_run(market.folder, &report);
    small_market_destroy(&market);
    if (cases[_i].words == NULL) {
        ck_assert_msg(report.verdict == AUDIT_OK, "%s %lu: %s (%s, %s)", report.table,
                      (unsigned long)report.entry, report.what, report.expected, report.found);
    } else {
        ck_assert_int_eq(report.verdict, AUDIT_FINDING);
        ck_assert_str_eq(report.table, "results");
        ck_assert_str_eq(report.what, cases[_i].words);
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("audit of checkpoints");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, what_was_preempted_is_paid_for_what_was_saved, 0, CASES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
