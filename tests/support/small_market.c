#include "tests/support/small_market_writer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/sha256.h"
#include "ledger/accounts.h"
#include "protocol/genesis.h"

static const int64_t price_micro = SMALL_MARKET_PRICE;
static const int64_t start_ns = 1700000000000000000;

static void add_mint(struct writer_state *state, uint32_t number, const struct identity *identity,
                     int64_t amount)
{
    struct ledger_record *record = writer_add_record(state, LEDGER_TRANSFER);
    record->owner = *identity_key(identity);
    record->debit = ACCOUNT_MINT;
    record->credit = number;
    record->amount_micro = amount;
}

static void add_hold_record(struct writer_state *state, enum ledger_kind kind, int64_t amount)
{
    struct ledger_record *record = writer_add_record(state, kind);
    record->job = state->market->job;
    record->debit = record->credit = SMALL_MARKET_OWNER;
    record->amount_micro = amount;
}

/* ---- the story */

static void found(struct writer_state *state)
{
    struct small_market *market = state->market;
    struct genesis genesis = {
        .cluster = market->cluster,
        .origin = SMALL_MARKET_ORIGIN,
        .log_key = *identity_key(market->log),
        .transport_key = *identity_transport(market->log),
        .fee_ppm = FEE_PPM,
        .price_band_micro = 10 * price_micro,
        .account_count = 1,
    };
    genesis.accounts[0] = (struct genesis_account){
        .key = *identity_key(market->owner),
        .roles = ROLE_CONSUMER | ROLE_OPERATOR,
        .credits_micro = 1000 * 1000000,
        .name = "owner",
    };
    uint8_t *payload = malloc(GENESIS_BYTES_MAX);
    size_t length = genesis_write(&genesis, payload, GENESIS_BYTES_MAX);
    ck_assert_uint_gt(length, 0);
    writer_add_command(state, ENTRY_GENESIS, UINT32_MAX, payload, length);
    writer_add_account(state, SMALL_MARKET_OWNER, market->owner, ROLE_CONSUMER | ROLE_OPERATOR,
                       "owner");
    add_mint(state, SMALL_MARKET_OWNER, market->owner, genesis.accounts[0].credits_micro);
    writer_commit(state);
}

static void invite(struct writer_state *state)
{
    struct small_market *market = state->market;
    const struct key32 *owner = identity_key(market->owner);
    Bourse__V1__Mint mint = BOURSE__V1__MINT__INIT;
    mint.account = writer_data(owner->bytes, 32);
    mint.amount_micro = 5000000;
    writer_add_message(state, MESSAGE_MINT, market->owner, SMALL_MARKET_OWNER, &mint.base);
    add_mint(state, SMALL_MARKET_OWNER, market->owner, mint.amount_micro);

    static const uint8_t token[16] = {7, 7, 7};
    struct hash32 token_hash = sha256_of(token, sizeof token);
    Bourse__V1__InviteCreate create = BOURSE__V1__INVITE_CREATE__INIT;
    create.token_hash = writer_data(token_hash.bytes, 32);
    create.roles = ROLE_PROVIDER;
    create.credits_micro = 7000000;
    create.expires_ms = state->now_ns / 1000000 + 3600000;
    writer_add_message(state, MESSAGE_INVITE_CREATE, market->owner, SMALL_MARKET_OWNER,
                       &create.base);

    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    join.account = writer_data(identity_key(market->provider)->bytes, 32);
    join.token = writer_data(token, sizeof token);
    writer_add_message(state, MESSAGE_JOIN, market->provider, UINT32_MAX, &join.base);
    writer_add_account(state, SMALL_MARKET_PROVIDER, market->provider, ROLE_PROVIDER, "");
    add_mint(state, SMALL_MARKET_PROVIDER, market->provider, create.credits_micro);
    writer_commit(state);
}

static struct id128 place_ask(struct writer_state *state, const struct id128 *device)
{
    struct small_market *market = state->market;
    Bourse__V1__AskPlace place = BOURSE__V1__ASK_PLACE__INIT;
    place.device = writer_data(device->bytes, 16);
    place.slots = 2;
    place.price_micro = price_micro;
    struct id128 ask = writer_add_message(state, MESSAGE_ASK_PLACE, market->provider,
                                          SMALL_MARKET_PROVIDER, &place.base);
    struct ledger_record *record = writer_add_record(state, LEDGER_ASK);
    record->order = ask;
    record->owner = *identity_key(market->provider);
    record->device = *device;
    record->slots = 2;
    record->price_micro = price_micro;
    return ask;
}

/* Two devices of one cell at one price: the first ask is the better one. */
static void offer(struct writer_state *state)
{
    struct small_market *market = state->market;
    Bourse__V1__Device both[2] = {BOURSE__V1__DEVICE__INIT, BOURSE__V1__DEVICE__INIT};
    Bourse__V1__Device *devices[] = {&both[0], &both[1]};
    both[0].device = writer_data(state->device.bytes, 16);
    both[1].device = writer_data(market->other_device.bytes, 16);
    both[0].instrument = both[1].instrument = (char *)state->instrument;
    both[0].slots = both[1].slots = 2;
    Bourse__V1__Advertise advertise = BOURSE__V1__ADVERTISE__INIT;
    advertise.n_devices = 2;
    advertise.devices = devices;
    writer_add_message(state, MESSAGE_ADVERTISE, market->provider, SMALL_MARKET_PROVIDER,
                       &advertise.base);
    state->ask = place_ask(state, &state->device);
    market->other_ask = place_ask(state, &market->other_device);
    writer_commit(state);
}

static void add_job_records(struct writer_state *state, const Bourse__V1__SubmitJob *submit)
{
    struct small_market *market = state->market;
    struct ledger_record *record = writer_add_record(state, LEDGER_JOB);
    record->job = market->job;
    record->owner = *identity_key(market->owner);
    record->hash = state->manifest;
    record->subtasks = submit->subtasks;
    record->amount_micro = submit->budget_micro;
    snprintf(record->name, sizeof record->name, "%s", submit->name);
    record->price_micro = -1;
    record->width = 1;
    record->debit = record->credit = SMALL_MARKET_OWNER;
    add_hold_record(state, LEDGER_HOLD, submit->budget_micro);
    record = writer_add_record(state, LEDGER_BID);
    record->order = market->job;
    record->job = market->job;
    record->owner = *identity_key(market->owner);
    record->slots = UINT32_MAX;
    record->width = 1;
    record->price_micro = 2 * price_micro;
    record = writer_add_record(state, LEDGER_FILL);
    record->lease = 1;
    record->order = state->ask;
    record->bid = market->job;
    record->job = market->job;
    record->provider = *identity_key(market->provider);
    record->owner = *identity_key(market->owner);
    record->device = state->device;
    record->slots = 2;
    record->price_micro = price_micro;
    record->term_ns = INT64_C(60000000000);
    (void)snprintf(record->name, sizeof record->name, "%s", state->instrument);
}

static void submit(struct writer_state *state)
{
    struct small_market *market = state->market;
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    body.name = "three files";
    body.manifest = writer_data(state->manifest.bytes, 32);
    body.subtasks = 3;
    body.budget_micro = 200 * 1000000;
    body.needs = &needs;
    body.slots = 1;
    body.limit_ms = 10000;
    body.term_ms = 60000;
    body.verify = "none";
    market->job = writer_add_message(state, MESSAGE_SUBMIT_JOB, market->owner, SMALL_MARKET_OWNER,
                                     &body.base);
    add_job_records(state, &body);
    writer_commit(state);
    /* Time passes without a record. */
    writer_add_command(state, ENTRY_TICK, UINT32_MAX, NULL, 0);
    writer_commit(state);
}

static void add_result(struct writer_state *state, uint32_t index, uint32_t attempt,
                       uint32_t outcome, int64_t busy_ns)
{
    struct small_market *market = state->market;
    struct batch *batch = &state->batch;
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = writer_data(market->cluster.bytes, 16);
    result.job = writer_data(market->job.bytes, 16);
    result.index = index;
    result.attempt = attempt;
    result.lease = 1;
    result.provider = writer_data(identity_key(market->provider)->bytes, 32);
    result.device = writer_data(state->device.bytes, 16);
    result.manifest = writer_data(state->manifest.bytes, 32);
    result.outcome = outcome;
    result.started_ms = 1700000000000;
    result.busy_ns = busy_ns;
    result.has_simulated = result.simulated = state->is_said_simulated;
    batch->bytes[batch->count] = codec_encode(&result.base, &batch->lengths[batch->count]);
    batch->leaves[batch->count] =
        results_leaf(batch->bytes[batch->count], batch->lengths[batch->count]);
    batch->count++;
}

static void send_results(struct writer_state *state)
{
    struct small_market *market = state->market;
    struct batch *batch = &state->batch;
    struct hash32 root = results_root(batch->leaves, batch->count);
    batch->signature = results_sign(market->provider, &market->cluster, &root);
    ProtobufCBinaryData encoded[BATCH_MAX];
    for (size_t i = 0; i < batch->count; i++) {
        encoded[i] = writer_data(batch->bytes[i], batch->lengths[i]);
    }
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    body.signature = writer_data(batch->signature.bytes, 64);
    body.n_results = batch->count;
    body.results = encoded;
    writer_add_message(state, MESSAGE_RESULTS, NULL, SMALL_MARKET_PROVIDER, &body.base);
}

static void add_payment(struct writer_state *state, const struct ledger_record *result,
                        enum ledger_kind kind, uint32_t credit, int64_t amount)
{
    if (amount > 0) {
        struct ledger_record *record = writer_add_record(state, kind);
        record->job = state->market->job;
        record->lease = 1;
        record->index = result->index;
        record->attempt = result->attempt;
        record->debit = SMALL_MARKET_OWNER;
        record->credit = credit;
        record->amount_micro = amount;
    }
}

static void settle_result(struct writer_state *state, uint32_t position, uint32_t index,
                          uint32_t attempt, uint8_t outcome, uint8_t status, int64_t paid_ns)
{
    struct small_market *market = state->market;
    state->lease_paid_ns += paid_ns;
    int64_t total = (int64_t)((int128)price_micro * state->lease_paid_ns / NS_PER_HOUR);
    int64_t charge = total - state->lease_charged_micro;
    int64_t fee = charge * FEE_PPM / 1000000;
    state->lease_charged_micro = total;
    struct ledger_record *record = writer_add_record(state, LEDGER_RESULT);
    record->job = market->job;
    record->index = index;
    record->attempt = attempt;
    record->lease = 1;
    record->provider = *identity_key(market->provider);
    record->owner = *identity_key(market->owner);
    record->device = state->device;
    record->hash = sha256_of(state->batch.bytes[position], state->batch.lengths[position]);
    record->outcome = outcome;
    record->status = status;
    record->price_micro = price_micro;
    record->paid_ns = paid_ns;
    record->charge_micro = charge;
    record->result = state->batch.bytes[position];
    record->result_length = (uint32_t)state->batch.lengths[position];
    record->position = position;
    record->batch_index = record->log_index;
    struct ledger_record result = *record;
    add_payment(state, &result, LEDGER_CAPTURE, SMALL_MARKET_PROVIDER, charge - fee);
    add_payment(state, &result, LEDGER_FEE, ACCOUNT_FEES, fee);
}

static void work(struct writer_state *state)
{
    struct small_market *market = state->market;
    add_result(state, 0, 1, OUTCOME_OK, 333333333);
    add_result(state, 1, 1, OUTCOME_PROGRAM_FAILED, 100000001);
    market->results[0] = sha256_of(state->batch.bytes[0], state->batch.lengths[0]);
    market->results[1] = sha256_of(state->batch.bytes[1], state->batch.lengths[1]);
    send_results(state);
    settle_result(state, 0, 0, 1, OUTCOME_OK, ATTEMPT_ACCEPTED, 333333333);
    settle_result(state, 1, 1, 1, OUTCOME_PROGRAM_FAILED, ATTEMPT_FAILED_PAID, 100000001);
    writer_commit(state);

    /* The second batch repeats a result that was decided. The result leaves no record, but stands
     * in the batch. */
    add_result(state, 0, 1, OUTCOME_OK, 333333333);
    add_result(state, 1, 2, OUTCOME_OK, 700000000);
    add_result(state, 2, 1, OUTCOME_OK, 900000000);
    market->results[2] = sha256_of(state->batch.bytes[1], state->batch.lengths[1]);
    market->results[3] = sha256_of(state->batch.bytes[2], state->batch.lengths[2]);
    send_results(state);
    settle_result(state, 1, 1, 2, OUTCOME_OK, ATTEMPT_ACCEPTED, 666666667);
    settle_result(state, 2, 2, 1, OUTCOME_OK, ATTEMPT_ACCEPTED, 888888889);
    struct ledger_record *record = writer_add_record(state, LEDGER_CANCEL);
    record->order = market->job;
    record->status = 5;
    int64_t left = 200 * 1000000 - state->lease_charged_micro;
    add_hold_record(state, LEDGER_RELEASE, left);
    record = writer_add_record(state, LEDGER_SETTLED);
    record->job = market->job;
    record->debit = record->credit = SMALL_MARKET_OWNER;
    record->status = JOB_DONE;
    record->accepted = 3;
    record->charge_micro = state->lease_charged_micro;
    record->amount_micro = left;
    writer_commit(state);
}

/* ---- life and end */

static void open_files(struct writer_state *state)
{
    struct small_market *market = state->market;
    struct problem problem;
    struct head head = {0};
    ck_assert_int_eq(ledger_store_open(market->database, &state->store), LEDGER_STORE_OK);
    ck_assert_int_eq(head_create(market->head, &head, &state->head, &problem), HEAD_OK);
    struct journal_sqlite_start start = {.head = &head};
    ck_assert_msg(journal_sqlite_open(ledger_store_database(state->store), &start, &state->journal,
                                      &state->last, &problem) == JOURNAL_OK,
                  "%s", problem.text);
    struct journal_leader me = {.broker = "small"};
    ck_assert_int_eq(journal_lead(state->journal, 0, &me, &state->epoch), JOURNAL_OK);
}

void small_market_create(struct small_market *self, small_market_bend *bend, void *context)
{
    small_market_create_more(self, bend, NULL, context);
}

static struct writer_state *state_create(struct small_market *self)
{
    memset(self, 0, sizeof *self);
    snprintf(self->folder, sizeof self->folder, "/tmp/bourse-market-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(self->folder));
    snprintf(self->database, sizeof self->database, "%s/ledger.db", self->folder);
    snprintf(self->head, sizeof self->head, "%s/HEAD", self->folder);
    self->log = writer_identity(1);
    self->owner = writer_identity(2);
    self->provider = writer_identity(3);
    memset(self->cluster.bytes, 0xc1, sizeof self->cluster.bytes);
    struct writer_state *state = calloc(1, sizeof *state);
    state->market = self;
    state->instrument = "cpu.x86_64.avx2";
    state->now_ns = start_ns;
    memset(state->device.bytes, 0xde, sizeof state->device.bytes);
    memset(self->other_device.bytes, 0xdf, sizeof self->other_device.bytes);
    state->manifest = small_market_manifest(NULL, NULL);
    return state;
}

static void tell(struct writer_state *state, small_market_more *more)
{
    open_files(state);
    found(state);
    invite(state);
    offer(state);
    submit(state);
    work(state);
    ck_assert_uint_eq(state->last.index, SMALL_MARKET_ENTRIES);
    if (more != NULL) {
        more(state, state->context);
    }
    journal_destroy(&state->journal);
    ledger_store_close(&state->store);
    head_close(&state->head);
    free(state);
}

void small_market_create_more(struct small_market *self, small_market_bend *bend,
                              small_market_more *more, void *context)
{
    struct writer_state *state = state_create(self);
    state->bend = bend;
    state->context = context;
    tell(state, more);
}

void small_market_create_on(struct small_market *self, const char *instrument,
                            bool is_said_simulated)
{
    struct writer_state *state = state_create(self);
    state->instrument = instrument;
    state->is_said_simulated = is_said_simulated;
    tell(state, NULL);
}

struct hash32 small_market_manifest(uint8_t **ret_bytes, size_t *ret_length)
{
    static char executor[] = "command";
    static char name[] = "three";
    static char program[] = "xz";
    static char input[] = "{in}";
    char *arguments[] = {program, input};
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = executor;
    manifest.name = name;
    manifest.n_arguments = 2;
    manifest.arguments = arguments;
    manifest.subtask_count = 3;
    size_t length = 0;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    ck_assert_ptr_nonnull(bytes);
    const struct hash32 hash = sha256_of(bytes, length);
    if (ret_bytes != NULL) {
        *ret_bytes = bytes;
        *ret_length = length;
    } else {
        free(bytes);
    }
    return hash;
}

void small_market_destroy(struct small_market *self)
{
    static const char *const names[] = {"ledger.db",      "ledger.db-wal",     "ledger.db-shm",
                                        "ledger.db-lock", "ledger.db-history", "HEAD"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", self->folder, names[i]);
        (void)unlink(path);
    }
    ck_assert_int_eq(rmdir(self->folder), 0);
    identity_destroy(&self->log);
    identity_destroy(&self->owner);
    identity_destroy(&self->provider);
}

void small_market_sql(const struct small_market *self, const char *sql)
{
    sqlite3 *database;
    char *text = NULL;
    ck_assert_int_eq(sqlite3_open_v2(self->database, &database, SQLITE_OPEN_READWRITE, NULL),
                     SQLITE_OK);
    int code = sqlite3_exec(database, sql, NULL, NULL, &text);
    ck_assert_msg(code == SQLITE_OK, "%s", text);
    sqlite3_close(database);
}

uint64_t small_market_go_on(const struct small_market *self, const struct entry_command *commands,
                            uint32_t count)
{
    uint8_t bytes[1024];
    struct problem problem = {.text = ""};
    sqlite3 *database;
    struct journal *journal;
    struct journal_last last;
    struct entry_head head = {.count = count};
    const struct journal_sqlite_start start = {.tree_size = UINT64_MAX, .adopt = true};
    const struct journal_leader me = {.epoch = 0};
    ck_assert_int_eq(sqlite3_open(self->database, &database), SQLITE_OK);
    ck_assert_msg(journal_sqlite_open(database, &start, &journal, &last, &problem) == JOURNAL_OK,
                  "%s", problem.text);
    ck_assert_int_eq(journal_lead(journal, last.index, &me, &head.epoch), JOURNAL_OK);
    head.index = last.index + 1;
    head.previous = last.chain;
    head.first_command = last.next_command;
    const struct journal_entry entry = {.index = head.index,
                                        .bytes = bytes,
                                        .length =
                                            entry_write(&head, commands, bytes, sizeof bytes)};
    ck_assert_int_eq(journal_append(journal, head.epoch, &entry, 1), JOURNAL_OK);
    journal_destroy(&journal);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    return head.first_command + count - 1;
}
