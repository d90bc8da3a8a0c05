#include "tests/support/checked_market.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/sha256.h"
#include "broker/core/translate.h"
#include "ledger/accounts.h"
#include "tests/support/small_market_writer.h"

enum { REFEREE = 5, SECOND = 6, CHECKED = 2, TERM_MS = 60000, RESULT_NS = 100000000 };

static const int64_t budget_micro = 100 * 1000000;

struct side { /* a lease, and who made it */
    uint64_t lease;
    uint32_t number;
    const struct identity *identity;
    struct id128 ask, device, bid;
    const char *instrument;
    int64_t paid_ns, charged_micro;
};

struct story {
    struct writer_state *state;
    struct checked_market *told;
    struct id128 job, device, ask;
    struct hash32 secret;
    struct side maker, checker, second;
    struct hash32 held[CHECKED], dice[CHECKED]; /* of the results that were held last */
    uint8_t *held_bytes[CHECKED];
    uint32_t held_length[CHECKED];
    uint64_t held_index[CHECKED];
    int64_t charged_micro;
};

/* ---- epochs and dice */

static void begin_epoch(struct writer_state *state, const struct hash32 *next,
                        const struct hash32 *shown)
{
    const struct exchange_epoch epoch = {.commitment = sha256_of(next->bytes, 32),
                                         .secret = *shown};
    uint8_t *payload = malloc(TRANSLATE_EPOCH_BYTES);
    translate_epoch(&epoch, payload);
    writer_add_command(state, ENTRY_EPOCH, UINT32_MAX, payload, TRANSLATE_EPOCH_BYTES);
    struct ledger_record *record = writer_add_record(state, LEDGER_EPOCH);
    record->hash = epoch.commitment;
    record->check = epoch.secret;
    writer_commit(state);
}

static uint64_t newest_command(const struct writer_state *state)
{
    return state->last.next_command + state->group.command_count - 1;
}

static struct hash32 dice_of(const struct story *story, uint64_t index)
{
    struct hash32 dice;
    uint8_t message[8];
    struct writer out = writer_over(message, sizeof message);
    writer_u64(&out, index);
    crypto_auth_hmacsha256(dice.bytes, message, sizeof message, story->secret.bytes);
    return dice;
}

static struct hash32 seed_of(const struct story *story, uint32_t about, uint32_t attempt)
{
    uint8_t bytes[16 + 32 + 32 + 8];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_bytes(&out, "bourse/check/v1", 16);
    writer_bytes(&out, story->dice[about].bytes, 32);
    writer_bytes(&out, story->held[about].bytes, 32);
    writer_u32(&out, CHECKED + about);
    writer_u32(&out, attempt);
    return sha256_of(bytes, sizeof bytes);
}

/* ---- who takes part */

static void invite(struct story *story, const struct identity *referee, uint32_t number)
{
    const uint8_t token[16] = {8, 8, (uint8_t)(3 + number)};
    struct writer_state *state = story->state;
    struct small_market *market = state->market;
    struct hash32 token_hash = sha256_of(token, sizeof token);
    Bourse__V1__InviteCreate create = BOURSE__V1__INVITE_CREATE__INIT;
    create.token_hash = writer_data(token_hash.bytes, 32);
    create.roles =
        story->told->lie == LIE_NO_REFEREE ? ROLE_PROVIDER : ROLE_PROVIDER | ROLE_REFEREE;
    create.expires_ms = state->now_ns / 1000000 + 3600000;
    writer_add_message(state, MESSAGE_INVITE_CREATE, market->owner, SMALL_MARKET_OWNER,
                       &create.base);
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    join.account = writer_data(identity_key(referee)->bytes, 32);
    join.token = writer_data(token, sizeof token);
    writer_add_message(state, MESSAGE_JOIN, referee, UINT32_MAX, &join.base);
    writer_add_account(state, number, referee, create.roles, "");
    writer_commit(state);
}

/* A referee's device is none of those that the provider has, though it has the same attributes. */
static const char *instrument_of(const struct checked_market *told)
{
    return told->lie == LIE_NO_REFEREE ? "cpu.x86_64.avx512" : "cpu.x86_64.avx2";
}

static struct id128 offer(struct story *story, const struct identity *referee, uint32_t number,
                          struct id128 device)
{
    struct writer_state *state = story->state;
    Bourse__V1__Device one = BOURSE__V1__DEVICE__INIT;
    Bourse__V1__Device *devices[] = {&one};
    one.device = writer_data(device.bytes, 16);
    one.instrument = (char *)(uintptr_t)instrument_of(story->told);
    one.slots = 2;
    Bourse__V1__Advertise advertise = BOURSE__V1__ADVERTISE__INIT;
    advertise.n_devices = 1;
    advertise.devices = devices;
    writer_add_message(state, MESSAGE_ADVERTISE, referee, number, &advertise.base);
    Bourse__V1__AskPlace place = BOURSE__V1__ASK_PLACE__INIT;
    place.device = writer_data(device.bytes, 16);
    place.slots = 2;
    place.price_micro = SMALL_MARKET_PRICE;
    const struct id128 ask =
        writer_add_message(state, MESSAGE_ASK_PLACE, referee, number, &place.base);
    struct ledger_record *record = writer_add_record(state, LEDGER_ASK);
    record->order = ask;
    record->owner = *identity_key(referee);
    record->device = device;
    record->slots = 2;
    record->price_micro = SMALL_MARKET_PRICE;
    writer_commit(state);
    return ask;
}

/* Adds the broker's own command that says by which rules the broker computes from here on. */
static void set_rules(struct writer_state *state, uint32_t rules)
{
    const struct exchange_set_limits set = {.rules = rules, .limits = exchange_limits_default()};
    uint8_t *payload = malloc(TRANSLATE_LIMITS_BYTES);
    translate_limits(&set, payload);
    writer_add_command(state, ENTRY_LIMITS, UINT32_MAX, payload, TRANSLATE_LIMITS_BYTES);
    writer_commit(state);
}

static void make_one_owner(struct story *story)
{
    struct writer_state *state = story->state;
    const struct small_market *market = state->market;
    ProtobufCBinaryData accounts[] = {writer_data(identity_key(story->told->referee)->bytes, 32),
                                      writer_data(identity_key(story->told->second)->bytes, 32)};
    Bourse__V1__SetOwner body = BOURSE__V1__SET_OWNER__INIT;
    body.n_accounts = 2;
    body.accounts = accounts;
    body.name = "lab";
    writer_add_message(state, MESSAGE_SET_OWNER, market->owner, SMALL_MARKET_OWNER, &body.base);
    struct ledger_record *record = writer_add_record(state, LEDGER_FLAG);
    record->owner = *identity_key(market->owner);
    record->debit = record->credit = SMALL_MARKET_OWNER;
    (void)snprintf(record->name, sizeof record->name, "owner");
    writer_commit(state);
}

/* ---- the job */

static struct id128 part_bid(const struct id128 *job, uint32_t number)
{
    uint8_t bytes[15 + 16 + 4];
    struct id128 id;
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_bytes(&out, "bourse/part/v1", 15);
    writer_bytes(&out, job->bytes, 16);
    writer_u32(&out, number);
    struct hash32 hash = sha256_of(bytes, sizeof bytes);
    memcpy(id.bytes, hash.bytes, sizeof id.bytes);
    return id;
}

static void add_money(struct story *story, enum ledger_kind kind, int64_t amount)
{
    struct ledger_record *record = writer_add_record(story->state, kind);
    record->job = story->job;
    record->debit = record->credit = SMALL_MARKET_OWNER;
    record->amount_micro = amount;
}

static void add_bid(struct story *story, const struct id128 *bid)
{
    struct ledger_record *record = writer_add_record(story->state, LEDGER_BID);
    record->order = *bid;
    record->job = story->job;
    record->owner = *identity_key(story->state->market->owner);
    record->slots = UINT32_MAX;
    record->width = 1;
    record->price_micro = 2 * SMALL_MARKET_PRICE;
}

static void add_fill(struct story *story, const struct side *side)
{
    struct ledger_record *record = writer_add_record(story->state, LEDGER_FILL);
    record->lease = side->lease;
    record->order = side->ask;
    record->bid = side->bid;
    record->job = story->job;
    record->provider = *identity_key(side->identity);
    record->owner = *identity_key(story->state->market->owner);
    record->device = side->device;
    record->slots = 1;
    record->price_micro = SMALL_MARKET_PRICE;
    record->term_ns = TERM_MS * NS_PER_MS;
    (void)snprintf(record->name, sizeof record->name, "%s", side->instrument);
}

static void submit(struct story *story)
{
    struct writer_state *state = story->state;
    struct small_market *market = state->market;
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__Part checks = BOURSE__V1__PART__INIT;
    Bourse__V1__Part *parts[] = {&checks};
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    checks.subtasks = CHECKED;
    checks.needs = &needs;
    checks.slots = 1;
    checks.limit_ms = 10000;
    checks.term_ms = TERM_MS;
    body.name = "checked";
    body.manifest = writer_data(state->manifest.bytes, 32);
    body.subtasks = 2 * CHECKED;
    body.budget_micro = budget_micro;
    body.needs = &needs;
    body.slots = 1;
    body.limit_ms = 10000;
    body.term_ms = TERM_MS;
    body.verify = "cheap";
    body.n_parts = 1;
    body.parts = parts;
    story->job = writer_add_message(state, MESSAGE_SUBMIT_JOB, market->owner, SMALL_MARKET_OWNER,
                                    &body.base);
    story->told->job = story->job;
    struct ledger_record *record = writer_add_record(state, LEDGER_JOB);
    record->job = story->job;
    record->owner = *identity_key(market->owner);
    record->hash = state->manifest;
    record->subtasks = 2 * CHECKED;
    record->amount_micro = budget_micro;
    (void)snprintf(record->name, sizeof record->name, "checked");
    record->price_micro = -1;
    record->width = 1;
    record->debit = record->credit = SMALL_MARKET_OWNER;
    add_money(story, LEDGER_HOLD, budget_micro);
    story->maker.bid = story->job;
    story->checker.bid = story->second.bid = part_bid(&story->job, 1);
    add_bid(story, &story->maker.bid);
    add_bid(story, &story->checker.bid);
    add_fill(story, &story->maker);
    add_fill(story, &story->checker);
    if (story->told->of_two) {
        add_fill(story, &story->second);
    }
    writer_commit(state);
}

/* ---- results */

static void add_result(struct story *story, const struct side *side, uint32_t index,
                       uint32_t attempt, uint32_t verdict, const struct hash32 *seed)
{
    struct batch *batch = &story->state->batch;
    const struct small_market *market = story->state->market;
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = writer_data(market->cluster.bytes, 16);
    result.job = writer_data(story->job.bytes, 16);
    result.index = index;
    result.attempt = attempt;
    result.lease = side->lease;
    result.provider = writer_data(identity_key(side->identity)->bytes, 32);
    result.device = writer_data(side->device.bytes, 16);
    result.manifest = writer_data(story->state->manifest.bytes, 32);
    result.outcome = OUTCOME_OK;
    result.started_ms = 1700000000000;
    result.busy_ns = RESULT_NS;
    if (seed != NULL && verdict == VERDICT_NONE) {
        result.outcome = OUTCOME_INPUT_MISSING;
        batch->misses_input = true;
        result.has_lacks_factor = result.lacks_factor = story->told->loss == LOSS_FACTOR;
    } else if (seed != NULL) {
        result.has_verdict = true;
        result.verdict = verdict;
        result.has_seed = true;
        result.seed = writer_data(seed->bytes, 32);
    }
    size_t at = batch->count++;
    batch->bytes[at] = codec_encode(&result.base, &batch->lengths[at]);
    batch->leaves[at] = results_leaf(batch->bytes[at], batch->lengths[at]);
}

/* Adds the batch as one command, with the dice of its number. */
static void send_results(struct story *story, const struct side *side)
{
    struct writer_state *state = story->state;
    struct batch *batch = &state->batch;
    struct hash32 root = results_root(batch->leaves, batch->count);
    batch->signature = results_sign(side->identity, &state->market->cluster, &root);
    ProtobufCBinaryData encoded[BATCH_MAX];
    for (size_t i = 0; i < batch->count; i++) {
        encoded[i] = writer_data(batch->bytes[i], batch->lengths[i]);
    }
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    body.signature = writer_data(batch->signature.bytes, 64);
    body.n_results = batch->count;
    body.results = encoded;
    writer_add_message(state, MESSAGE_RESULTS, NULL, side->number, &body.base);
    struct entry_command *command = &state->group.commands[state->group.command_count - 1];
    command->dice = dice_of(story, newest_command(state));
    if (story->told->lie == LIE_DICE) {
        command->dice.bytes[0] ^= 1;
    }
    const bool misses_input = batch->misses_input;
    batch->misses_input = false; /* for the next batch */
    if (misses_input && story->told->of_two && !story->told->is_unproved) {
        command->verdict |= ENTRY_MISSING;
        entry_results_set(&command->missing, 0);
    }
}

static void hold(struct story *story, uint32_t position, uint32_t index, uint32_t attempt)
{
    struct writer_state *state = story->state;
    const struct side *side = &story->maker;
    struct ledger_record *record = writer_add_record(state, LEDGER_HELD);
    record->job = story->job;
    record->index = index;
    record->attempt = attempt;
    record->lease = side->lease;
    record->provider = *identity_key(side->identity);
    record->owner = *identity_key(state->market->owner);
    record->hash = sha256_of(state->batch.bytes[position], state->batch.lengths[position]);
    record->position = position;
    record->batch_index = record->log_index;
    free(story->held_bytes[index]);
    story->held_bytes[index] = malloc(state->batch.lengths[position]);
    memcpy(story->held_bytes[index], state->batch.bytes[position], state->batch.lengths[position]);
    story->held_length[index] = (uint32_t)state->batch.lengths[position];
    story->held[index] = record->hash;
    story->held_index[index] = record->log_index;
    story->dice[index] = state->group.commands[state->group.command_count - 1].dice;
}

static struct ledger_record *settle(struct story *story, struct side *side, uint32_t index,
                                    uint32_t attempt, uint8_t status)
{
    struct writer_state *state = story->state;
    bool is_paid = status == ATTEMPT_ACCEPTED || status == ATTEMPT_FAILED_PAID;
    side->paid_ns += is_paid ? RESULT_NS : 0;
    int64_t total = (int64_t)((int128)SMALL_MARKET_PRICE * side->paid_ns / NS_PER_HOUR);
    int64_t charge = total - side->charged_micro;
    side->charged_micro = total;
    story->charged_micro += charge;
    struct ledger_record *record = writer_add_record(state, LEDGER_RESULT);
    record->job = story->job;
    record->index = index;
    record->attempt = attempt;
    record->lease = side->lease;
    record->provider = *identity_key(side->identity);
    record->owner = *identity_key(state->market->owner);
    record->status = status;
    record->outcome = OUTCOME_OK;
    record->price_micro = SMALL_MARKET_PRICE;
    record->paid_ns = is_paid ? RESULT_NS : 0;
    record->charge_micro = charge;
    for (int fee = 0; charge > 0 && fee < 2; fee++) {
        int64_t fee_micro = charge * FEE_PPM / 1000000;
        struct ledger_record *paid = writer_add_record(state, fee ? LEDGER_FEE : LEDGER_CAPTURE);
        paid->job = story->job;
        paid->lease = side->lease;
        paid->index = index;
        paid->attempt = attempt;
        paid->debit = SMALL_MARKET_OWNER;
        paid->credit = fee ? ACCOUNT_FEES : side->number;
        paid->amount_micro = fee ? fee_micro : charge - fee_micro;
    }
    return record;
}

/* Sends one check and its own result. Without a verdict, the check found no bytes. */
static struct hash32 say(struct story *story, struct side *by, uint32_t about, uint32_t attempt,
                         uint32_t verdict)
{
    struct writer_state *state = story->state;
    struct hash32 seed = seed_of(story, about, attempt);
    if (story->told->lie == LIE_SEED && about == 1) {
        seed.bytes[31] ^= 1;
    }
    add_result(story, by, CHECKED + about, attempt, verdict, &seed);
    send_results(story, by);
    struct ledger_record *record = settle(story, by, CHECKED + about, attempt,
                                          verdict == VERDICT_ACCEPT ? ATTEMPT_ACCEPTED
                                          : verdict == VERDICT_NONE ? ATTEMPT_FAILED_UNPAID
                                                                    : ATTEMPT_FAILED_PAID);
    record->outcome = verdict == VERDICT_NONE ? OUTCOME_INPUT_MISSING : OUTCOME_OK;
    record->hash = sha256_of(state->batch.bytes[0], state->batch.lengths[0]);
    record->result = state->batch.bytes[0];
    record->result_length = (uint32_t)state->batch.lengths[0];
    record->batch_index = record->log_index;
    return record->hash;
}

/* Makes one check by the referee, and what the check decides. */
static void check(struct story *story, struct side *by, uint32_t about, uint32_t attempt,
                  uint32_t about_attempt, uint32_t verdict)
{
    const struct hash32 hash = say(story, by, about, attempt, verdict);
    const uint8_t status = verdict == VERDICT_ACCEPT ? ATTEMPT_ACCEPTED
                           : story->told->loss == LOSS_PAID || story->told->loss == LOSS_FACTOR
                               ? ATTEMPT_FAILED_PAID
                               : ATTEMPT_REFUTED;
    struct ledger_record *record = settle(story, &story->maker, about, about_attempt, status);
    record->hash = story->held[about];
    record->result = story->held_bytes[about];
    record->result_length = story->held_length[about];
    record->position = about_attempt == 1 ? about : 0;
    record->batch_index = story->held_index[about];
    record->level = CHECK_CHEAP;
    record->check = hash;
    story->told->check = hash;
}

static void work(struct story *story)
{
    struct writer_state *state = story->state;
    add_result(story, &story->maker, 0, 1, 0, NULL);
    add_result(story, &story->maker, 1, 1, 0, NULL);
    send_results(story, &story->maker);
    hold(story, 0, 0, 1);
    hold(story, 1, 1, 1);
    writer_commit(state);
    check(story, &story->checker, 0, 1, 1, VERDICT_ACCEPT);
    writer_commit(state);
    const bool is_lost = story->told->loss != LOSS_NONE;
    const bool confirms = (story->told->of_two || is_lost) && story->told->lie != LIE_ALONE;
    const uint32_t no = is_lost ? VERDICT_NONE : VERDICT_REJECT;
    if (confirms) {
        (void)say(story, &story->checker, 1, 1, no);
        writer_commit(state);
    }
    check(story, confirms && story->told->of_two ? &story->second : &story->checker, 1,
          confirms ? 2 : 1, 1, no);
    writer_commit(state);
    add_result(story, &story->maker, 1, 2, 0, NULL);
    send_results(story, &story->maker);
    hold(story, 0, 1, 2);
    writer_commit(state);
    check(story, &story->checker, 1, confirms ? 3 : 2, 2, VERDICT_ACCEPT);
    const struct id128 *bids[] = {&story->maker.bid, &story->checker.bid};
    for (size_t i = 0; i < 2; i++) {
        struct ledger_record *record = writer_add_record(state, LEDGER_CANCEL);
        record->order = *bids[i];
        record->status = 5;
    }
    add_money(story, LEDGER_RELEASE, budget_micro - story->charged_micro);
    struct ledger_record *record = writer_add_record(state, LEDGER_SETTLED);
    record->job = story->job;
    record->debit = record->credit = SMALL_MARKET_OWNER;
    record->status = JOB_DONE;
    record->accepted = 2 * CHECKED;
    record->charge_micro = story->charged_micro;
    record->amount_micro = budget_micro - story->charged_micro;
    writer_commit(state);
}

/* ---- life and end */

static void go_on(struct writer_state *state, void *context)
{
    static const struct hash32 none;
    struct story story = {.state = state, .told = context, .secret = {{5, 3}}};
    const struct hash32 next = {{7, 7}};
    struct id128 second_device;
    memset(story.device.bytes, 0xd5, sizeof story.device.bytes);
    memset(second_device.bytes, 0xd6, sizeof second_device.bytes);
    if (story.told->of_two) {
        set_rules(state, story.told->rules == 0 ? 18 : story.told->rules);
    }
    begin_epoch(state, &story.secret, &none);
    invite(&story, story.told->referee, REFEREE);
    story.ask = offer(&story, story.told->referee, REFEREE, story.device);
    if (story.told->of_two) {
        invite(&story, story.told->second, SECOND);
        story.second =
            (struct side){.lease = 4,
                          .number = SECOND,
                          .identity = story.told->second,
                          .ask = offer(&story, story.told->second, SECOND, second_device),
                          .device = second_device,
                          .instrument = instrument_of(story.told)};
    }
    if (story.told->lie == LIE_ONE_OWNER) {
        make_one_owner(&story);
    }
    const struct side maker = {.lease = 2,
                               .number = SMALL_MARKET_PROVIDER,
                               .identity = state->market->provider,
                               .ask = state->ask,
                               .device = state->device,
                               .instrument = "cpu.x86_64.avx2"};
    const struct side referee = {.lease = 3,
                                 .number = REFEREE,
                                 .identity = story.told->referee,
                                 .ask = story.ask,
                                 .device = story.device,
                                 .instrument = instrument_of(story.told)};
    story.checker = referee;
    story.maker = story.told->lie == LIE_OWN_CHECK ? referee : maker;
    story.maker.lease = 2;
    submit(&story);
    work(&story);
    struct hash32 shown = story.secret;
    shown.bytes[0] ^= story.told->lie == LIE_SECRET;
    begin_epoch(state, &next, &shown);
    for (size_t i = 0; i < CHECKED; i++) {
        free(story.held_bytes[i]);
    }
}

static bool bend(void *context, uint64_t number, struct ledger_record *record)
{
    const struct checked_market *self = context;
    return self->bend == NULL || self->bend(self->context, number, record);
}

void checked_market_create(struct checked_market *self)
{
    self->referee = writer_identity(4);
    self->second = writer_identity(5);
    small_market_create_more(&self->market, bend, go_on, self);
}

void checked_market_destroy(struct checked_market *self)
{
    small_market_destroy(&self->market);
    identity_destroy(&self->referee);
    identity_destroy(&self->second);
}
