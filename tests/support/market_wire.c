#include "tests/support/market_wire.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "broker/core/translate.h"
#include "protocol/codec.h"
#include "protocol/conditions.h"
#include "protocol/genesis.h"
#include "protocol/limits.h"
#include "protocol/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 8192, RESULTS_MAX = 16, PADDING_BYTES = 3, TOKEN_BYTES = 16 };

_Noreturn static void give_up(const char *what)
{
    (void)fprintf(stderr, "market_wire: %s\n", what);
    abort();
}

void market_wire_fini(struct market_wire *wire)
{
    for (size_t i = 0; i < sizeof wire->identities / sizeof wire->identities[0]; i++) {
        identity_destroy(&wire->identities[i]);
    }
}

static const struct identity *identity_of(struct market_wire *wire, const struct key32 *key)
{
    struct identity **slot = &wire->identities[key->bytes[0]];
    if (*slot == NULL) {
        uint8_t seed[32] = {key->bytes[0], 'w'};
        *slot = identity_create(seed);
    }
    if (*slot == NULL) {
        give_up("out of memory");
    }
    return *slot;
}

const struct identity *market_wire_sender(struct market_wire *wire,
                                          const struct exchange_command *command)
{
    struct key32 key = {{(uint8_t)command->account}};
    return identity_of(wire, command->type == EXCHANGE_JOIN ? &command->join.account : &key);
}

static ProtobufCBinaryData data(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

static ProtobufCBinaryData key_data(struct market_wire *wire, const struct key32 *key)
{
    return data(identity_key(identity_of(wire, key))->bytes, 32);
}

/* ---------------------------------------------------------------- bodies */

struct body {
    enum message_type type;
    uint8_t *bytes;
    size_t length;
};

static struct body encode(enum message_type type, const ProtobufCMessage *message)
{
    struct body body = {.type = type};
    body.bytes = codec_encode(message, &body.length);
    if (body.bytes == NULL) {
        give_up("out of memory");
    }
    return body;
}

static struct body of_join(struct market_wire *wire, const struct exchange_command *command)
{
    Bourse__V1__Join body = BOURSE__V1__JOIN__INIT;
    body.account = key_data(wire, &command->join.account);
    body.token = data(command->join.token_hash.bytes, TOKEN_BYTES);
    return encode(MESSAGE_JOIN, &body.base);
}

static struct body of_mint(struct market_wire *wire, const struct exchange_command *command)
{
    Bourse__V1__Mint body = BOURSE__V1__MINT__INIT;
    body.account = key_data(wire, &command->mint.account);
    body.amount_micro = command->mint.amount_micro;
    return encode(MESSAGE_MINT, &body.base);
}

static struct body of_invite(const struct exchange_command *command)
{
    Bourse__V1__InviteCreate body = BOURSE__V1__INVITE_CREATE__INIT;
    struct hash32 hash = sha256_of(command->invite.token_hash.bytes, TOKEN_BYTES);
    body.token_hash = data(hash.bytes, sizeof hash.bytes);
    body.roles = command->invite.roles;
    body.credits_micro = command->invite.credits_micro;
    body.expires_ms = command->invite.expires_ns / NS_PER_MS;
    return encode(MESSAGE_INVITE_CREATE, &body.base);
}

static struct body of_freeze(struct market_wire *wire, const struct exchange_command *command)
{
    Bourse__V1__Freeze body = BOURSE__V1__FREEZE__INIT;
    body.account = key_data(wire, &command->freeze.account);
    body.frozen = command->freeze.frozen;
    return encode(MESSAGE_FREEZE, &body.base);
}

static struct body of_bands(const struct exchange_command *command)
{
    Bourse__V1__SetBands body = BOURSE__V1__SET_BANDS__INIT;
    body.has_least_micro = command->bands.has_least;
    body.least_micro = command->bands.least_micro;
    body.has_most_micro = command->bands.has_most;
    body.most_micro = command->bands.most_micro;
    body.has_notional_micro = command->bands.has_notional;
    body.notional_micro = command->bands.notional_micro;
    return encode(MESSAGE_SET_BANDS, &body.base);
}

static struct body of_halt(const struct exchange_command *command)
{
    Bourse__V1__Halt body = BOURSE__V1__HALT__INIT;
    body.halted = command->halt.halted;
    return encode(MESSAGE_HALT, &body.base);
}

static struct body of_advertise(const struct exchange_command *command)
{
    enum { DEVICES_MAX = 8, ATTRIBUTES_MAX = 8 };
    static Bourse__V1__Attribute attributes[DEVICES_MAX][ATTRIBUTES_MAX];
    static Bourse__V1__Attribute *attribute_list[DEVICES_MAX][ATTRIBUTES_MAX];
    static Bourse__V1__Device devices[DEVICES_MAX];
    static Bourse__V1__Device *list[DEVICES_MAX];
    Bourse__V1__Advertise body = BOURSE__V1__ADVERTISE__INIT;
    for (size_t i = 0; i < command->advertise.count; i++) {
        const struct exchange_device *from = &command->advertise.devices[i];
        list[i] = &devices[i];
        bourse__v1__device__init(list[i]);
        devices[i].device = data(from->device.bytes, sizeof from->device.bytes);
        devices[i].instrument = (char *)(uintptr_t) "cpu.test";
        devices[i].slots = from->slots;
        devices[i].label = (char *)(uintptr_t)from->label;
        devices[i].n_attributes = from->attribute_count;
        devices[i].attributes = attribute_list[i];
        for (size_t k = 0; k < from->attribute_count; k++) {
            const struct attribute *attribute = &from->attributes[k];
            attribute_list[i][k] = &attributes[i][k];
            bourse__v1__attribute__init(attribute_list[i][k]);
            attributes[i][k].name = (char *)(uintptr_t)attribute->name;
            attributes[i][k].has_number = !attribute->is_text;
            attributes[i][k].number = attribute->number;
            attributes[i][k].text = attribute->is_text ? (char *)(uintptr_t)attribute->text : NULL;
        }
    }
    body.n_devices = command->advertise.count;
    body.devices = list;
    return encode(MESSAGE_ADVERTISE, &body.base);
}

static struct body of_ask(struct market_wire *wire, const struct exchange_command *command)
{
    Bourse__V1__AskPlace body = BOURSE__V1__ASK_PLACE__INIT;
    body.device = data(command->ask.device.bytes, sizeof command->ask.device.bytes);
    body.slots = command->ask.slots;
    body.price_micro = command->ask.price_micro;
    body.has_good_till_ms = command->ask.good_till_ns != 0;
    body.good_till_ms = command->ask.good_till_ns / NS_PER_MS;
    body.has_order_type = command->ask.type != EXCHANGE_LIMIT;
    body.order_type = command->ask.type;
    body.has_max_term_ms = command->ask.max_term_ns != 0;
    body.max_term_ms = command->ask.max_term_ns / NS_PER_MS;
    const char *to[LIMIT_ASK_ACCOUNTS];
    char keys[LIMIT_ASK_ACCOUNTS][65];
    for (size_t i = 0; i < command->ask.to_count; i++) {
        const struct exchange_ask_account *account = &command->ask.to[i];
        text_hex(identity_key(identity_of(wire, &account->key))->bytes, 32, keys[i]);
        to[i] = account->has_key ? keys[i] : account->name;
    }
    struct ask_conditions conditions;
    (void)conditions_to_wire(to, command->ask.to_count, &command->ask.hours,
                             command->ask.daily_ns / NS_PER_MS, &conditions, &body);
    body.has_interruptible = body.has_notice_ms = body.has_minimum_run_ms =
        command->ask.terms.is_interruptible;
    body.interruptible = command->ask.terms.is_interruptible;
    body.notice_ms = command->ask.terms.notice_ns / NS_PER_MS;
    body.minimum_run_ms = command->ask.terms.minimum_run_ns / NS_PER_MS;
    return encode(MESSAGE_ASK_PLACE, &body.base);
}

static struct body of_cancel_order(const struct exchange_command *command)
{
    Bourse__V1__OrderCancel body = BOURSE__V1__ORDER_CANCEL__INIT;
    body.order = data(command->cancel_order.order.bytes, sizeof command->cancel_order.order.bytes);
    return encode(MESSAGE_ORDER_CANCEL, &body.base);
}

/* Encodes a value, also one of a rate that does not exist. */
static Bourse__V1__Value *value_to_wire(int64_t micro, uint32_t rate, Bourse__V1__Value *value)
{
    bourse__v1__value__init(value);
    value->micro = micro;
    value->rate = rate;
    return rate == RATE_NONE ? NULL : value;
}

static struct body of_replace(const struct exchange_command *command)
{
    const struct exchange_replace *replace = &command->replace;
    Bourse__V1__OrderReplace body = BOURSE__V1__ORDER_REPLACE__INIT;
    body.order = data(replace->order.bytes, sizeof replace->order.bytes);
    body.has_part = replace->part != EXCHANGE_ANY_PART;
    body.part = replace->part;
    body.has_slots = replace->has_slots;
    body.slots = replace->slots;
    body.has_price_micro = replace->has_price && replace->rate == RATE_NONE;
    body.price_micro = replace->price_micro;
    Bourse__V1__Value value;
    body.value =
        replace->has_price ? value_to_wire(replace->price_micro, replace->rate, &value) : NULL;
    body.has_budget_micro = replace->has_budget;
    body.budget_micro = replace->budget_micro;
    return encode(MESSAGE_ORDER_REPLACE, &body.base);
}

static struct body of_cancel_job(const struct exchange_command *command)
{
    Bourse__V1__JobCancel body = BOURSE__V1__JOB_CANCEL__INIT;
    body.job = data(command->cancel_job.job.bytes, sizeof command->cancel_job.job.bytes);
    return encode(MESSAGE_JOB_CANCEL, &body.base);
}

static struct body of_statement(const struct exchange_command *command)
{
    static Bourse__V1__HeldWork work[PARTS_MAX];
    static Bourse__V1__HeldWork *work_list[PARTS_MAX];
    static Bourse__V1__HeldLease leases[PARTS_MAX];
    static Bourse__V1__HeldLease *list[PARTS_MAX];
    Bourse__V1__Statement body = BOURSE__V1__STATEMENT__INIT;
    for (size_t i = 0; i < command->statement.count; i++) {
        const struct exchange_held *held = &command->statement.held[i];
        work_list[i] = &work[i];
        list[i] = &leases[i];
        bourse__v1__held_work__init(work_list[i]);
        bourse__v1__held_lease__init(list[i]);
        work[i].index = held->index;
        work[i].attempt = held->attempt;
        leases[i].lease = held->lease;
        leases[i].n_work = held->attempt != 0;
        leases[i].work = &work_list[i];
    }
    body.n_leases = command->statement.count;
    body.has_as_of_ns = command->statement.as_of_ns != 0;
    body.as_of_ns = command->statement.as_of_ns;
    body.leases = list;
    return encode(MESSAGE_STATEMENT_HELD, &body.base);
}

static void encode_result(struct market_wire *wire, const struct exchange_result *from,
                          const struct key32 *provider, ProtobufCBinaryData *ret_encoded)
{
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = data(wire->cluster.bytes, sizeof wire->cluster.bytes);
    result.job = data(from->job.bytes, sizeof from->job.bytes);
    result.index = from->index;
    result.attempt = from->attempt;
    result.lease = from->lease;
    result.provider = data(provider->bytes, sizeof provider->bytes);
    result.device = data(from->device.bytes, sizeof from->device.bytes);
    result.manifest = data(from->manifest.bytes, sizeof from->manifest.bytes);
    result.outcome = from->outcome;
    result.busy_ns = from->busy_ns;
    result.has_verdict = from->verdict != 0;
    result.verdict = from->verdict;
    result.has_seed = !hash32_is_zero(&from->seed);
    result.seed = data(from->seed.bytes, sizeof from->seed.bytes);
    /* One file, whose hash begins with what the command says was saved. */
    uint8_t hash[32] = {0};
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *files = &file;
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    if (from->saved_length > 0 && from->saved_length <= sizeof hash) {
        memcpy(hash, from->saved, from->saved_length);
        file.name = (char *)(uintptr_t) "state";
        file.hash = data(hash, sizeof hash);
        saved.n_files = 1;
        saved.files = &files;
        result.saved = &saved;
    }
    ret_encoded->data = codec_encode(&result.base, &ret_encoded->len);
    if (ret_encoded->data == NULL) {
        give_up("out of memory");
    }
}

static struct body of_results(struct market_wire *wire, const struct exchange_command *command)
{
    const struct identity *provider = market_wire_sender(wire, command);
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    ProtobufCBinaryData encoded[RESULTS_MAX];
    struct hash32 leaves[RESULTS_MAX];
    size_t count = command->results.count;
    for (size_t i = 0; i < count; i++) {
        encode_result(wire, &command->results.results[i], identity_key(provider), &encoded[i]);
        leaves[i] = results_leaf(encoded[i].data, encoded[i].len);
    }
    struct hash32 root = results_root(leaves, count);
    struct signature64 signature = results_sign(provider, &wire->cluster, &root);
    body.signature = data(signature.bytes, sizeof signature.bytes);
    body.n_results = count;
    body.results = encoded;
    struct body made = encode(MESSAGE_RESULTS, &body.base);
    for (size_t i = 0; i < count; i++) {
        free(encoded[i].data);
    }
    return made;
}

static void part_to_wire(const struct exchange_part *from, Bourse__V1__Part *ret_part,
                         Bourse__V1__Value *ret_value)
{
    bourse__v1__part__init(ret_part);
    ret_part->subtasks = from->subtasks;
    ret_part->needs = codec_requirement_to_wire(from->needs);
    ret_part->slots = from->slots;
    ret_part->at_most = from->at_most;
    ret_part->limit_ms = from->limit_ns / NS_PER_MS;
    ret_part->term_ms = from->term_ns / NS_PER_MS;
    ret_part->has_cap_micro = from->cap_micro >= 0 && from->rate == RATE_NONE;
    ret_part->value = value_to_wire(from->cap_micro, from->rate, ret_value);
    ret_part->cap_micro = from->cap_micro;
    ret_part->has_expect_ns = from->expect_ns != 0;
    ret_part->expect_ns = from->expect_ns;
    if (ret_part->needs == NULL) {
        give_up("out of memory");
    }
}

/* protobuf-c does not write through the pointers when it packs. */
static void graph_to_wire(const struct exchange_graph *from, Bourse__V1__Graph *ret_graph)
{
    ret_graph->n_rank = from->rank_count;
    ret_graph->rank = (uint32_t *)(uintptr_t)from->rank;
    ret_graph->n_expect_ms = from->expect_count;
    ret_graph->expect_ms = (uint32_t *)(uintptr_t)from->expect_ms;
    ret_graph->n_after_count = from->after_count_count;
    ret_graph->after_count = (uint32_t *)(uintptr_t)from->after_count;
    ret_graph->n_after = from->after_length;
    ret_graph->after = (uint32_t *)(uintptr_t)from->after;
}

static struct body of_submit(const struct exchange_command *command)
{
    const struct exchange_submit *submit = &command->submit;
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    body.name = (char *)(uintptr_t)submit->name;
    body.manifest = data(submit->manifest.bytes, sizeof submit->manifest.bytes);
    body.subtasks = submit->subtasks;
    body.budget_micro = submit->budget_micro;
    Bourse__V1__Value value;
    body.has_cap_micro = submit->cap_micro >= 0 && submit->rate == RATE_NONE;
    body.value = value_to_wire(submit->cap_micro, submit->rate, &value);
    body.cap_micro = submit->cap_micro;
    body.needs = codec_requirement_to_wire(submit->needs);
    body.slots = submit->slots;
    body.at_most = submit->at_most;
    body.limit_ms = submit->limit_ns / NS_PER_MS;
    body.term_ms = submit->term_ns / NS_PER_MS;
    static const char *const levels[] = {[EXCHANGE_VERIFY_UNKNOWN] = "adaptive",
                                         [EXCHANGE_VERIFY_NONE] = "none",
                                         [EXCHANGE_VERIFY_CHEAP] = "cheap"};
    body.verify = (char *)(uintptr_t)levels[submit->verify];
    body.has_retries = true;
    body.retries = submit->retries;
    body.has_error_limit = submit->error_limit != UINT32_MAX;
    body.error_limit = submit->error_limit + 1;
    body.has_expect_ns = submit->expect_ns != 0;
    body.expect_ns = submit->expect_ns;
    body.has_crash_limit = submit->crash_limit != EXCHANGE_CRASH_LIMIT;
    body.crash_limit = submit->crash_limit;
    body.has_interruptions = submit->has_interruptions;
    body.interruptions = submit->interruptions;
    body.has_checkpoint = body.checkpoint = submit->has_checkpoints;
    body.has_good_till_ms = submit->good_till_ns != 0;
    body.good_till_ms = submit->good_till_ns / NS_PER_MS;
    body.has_order_type = submit->type != EXCHANGE_MARKET;
    body.order_type = submit->type;
    Bourse__V1__Part parts[LIMIT_PARTS];
    Bourse__V1__Part *pointers[LIMIT_PARTS];
    Bourse__V1__Value values[LIMIT_PARTS];
    body.n_parts = submit->part_count;
    body.parts = pointers;
    for (size_t i = 0; i < submit->part_count; i++) {
        pointers[i] = &parts[i];
        part_to_wire(&submit->parts[i], &parts[i], &values[i]);
    }
    Bourse__V1__Graph graph = BOURSE__V1__GRAPH__INIT;
    if (submit->graph != NULL) {
        graph_to_wire(submit->graph, &graph);
        body.graph = &graph;
    }
    if (body.needs == NULL) {
        give_up("out of memory");
    }
    struct body made = encode(MESSAGE_SUBMIT_JOB, &body.base);
    for (size_t i = 0; i < submit->part_count; i++) {
        codec_requirement_free(&parts[i].needs);
    }
    codec_requirement_free(&body.needs);
    return made;
}

/* ---------------------------------------------------------------- payloads */

/* A field that no schema has: number 1000, a varint. */
static void pad(struct body *body)
{
    static const uint8_t unknown[PADDING_BYTES] = {0xc0, 0x3e, 0x01};
    uint8_t *grown = realloc(body->bytes, body->length + sizeof unknown);
    if (grown == NULL) {
        give_up("out of memory");
    }
    memcpy(grown + body->length, unknown, sizeof unknown);
    body->bytes = grown;
    body->length += sizeof unknown;
}

static uint8_t *in_envelope(struct market_wire *wire, const struct exchange_command *command,
                            struct body *body, struct entry_command *ret_command)
{
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)body->type,
                                .session = 1,
                                .sequence = command->index,
                                .id = command->id,
                                .created_ms = command->created_ms,
                                .body = body->bytes,
                                .body_length = (uint32_t)body->length};
    size_t size = envelope_size(&envelope);
    uint8_t *bytes = malloc(size);
    if (bytes == NULL ||
        (message_must_be_signed(body->type) &&
         !identity_sign_envelope(market_wire_sender(wire, command), &wire->cluster, &envelope))) {
        give_up("out of memory");
    }
    envelope_write(&envelope, bytes, size);
    free(body->bytes);
    ret_command->kind = command->type == EXCHANGE_RESULTS ? ENTRY_RESULTS : ENTRY_MESSAGE;
    if (command->type == EXCHANGE_RESULTS) {
        ret_command->dice = command->results.dice;
    }
    ret_command->verdict = 1;
    ret_command->payload_length = (uint32_t)size;
    return bytes;
}

static uint8_t *of_genesis(struct market_wire *wire, const struct exchange_genesis *from,
                           struct entry_command *ret_command)
{
    struct genesis *genesis = calloc(1, sizeof *genesis);
    uint8_t *bytes = malloc(GENESIS_BYTES_MAX);
    if (genesis == NULL || bytes == NULL) {
        give_up("out of memory");
    }
    genesis->cluster = wire->cluster = from->cluster;
    strcpy(genesis->origin, "bourse.test/replay");
    genesis->log_key.bytes[0] = 1;
    genesis->transport_key.bytes[0] = 2;
    genesis->fee_ppm = from->fee_ppm;
    genesis->price_band_micro = from->price_band_micro;
    for (size_t i = 0; i < from->account_count; i++) {
        struct genesis_account *account = &genesis->accounts[genesis->account_count++];
        account->key = *identity_key(identity_of(wire, &from->accounts[i].key));
        account->roles = from->accounts[i].roles;
        account->credits_micro = from->accounts[i].credits_micro;
        strcpy(account->name, from->accounts[i].name);
    }
    ret_command->kind = ENTRY_GENESIS;
    ret_command->payload_length = (uint32_t)genesis_write(genesis, bytes, GENESIS_BYTES_MAX);
    free(genesis);
    return bytes;
}

static uint8_t *of_broker(const struct exchange_command *command, enum entry_command_kind kind,
                          struct entry_command *ret_command)
{
    uint8_t *bytes = malloc(TRANSLATE_EPOCH_BYTES); /* the longest */
    if (bytes == NULL) {
        give_up("out of memory");
    }
    ret_command->kind = kind;
    if (kind == ENTRY_EPOCH) {
        translate_epoch(&command->epoch, bytes);
        ret_command->payload_length = TRANSLATE_EPOCH_BYTES;
    } else if (kind == ENTRY_OUTAGE) {
        translate_outage(command->outage_ns, bytes);
        ret_command->payload_length = TRANSLATE_OUTAGE_BYTES;
    } else if (kind != ENTRY_TICK) {
        translate_presence(command->provider, bytes);
        ret_command->payload_length = TRANSLATE_PRESENCE_BYTES;
    }
    return bytes;
}

static struct body of_owner(struct market_wire *wire, const struct exchange_command *command)
{
    Bourse__V1__SetOwner body = BOURSE__V1__SET_OWNER__INIT;
    ProtobufCBinaryData accounts[EXCHANGE_OWNER_MOST];
    if (command->owner.count > EXCHANGE_OWNER_MOST) {
        give_up("an owner of too many accounts");
    }
    for (size_t i = 0; i < command->owner.count; i++) {
        accounts[i] = key_data(wire, &command->owner.accounts[i]);
    }
    body.n_accounts = command->owner.count;
    body.accounts = accounts;
    body.name = (char *)(uintptr_t)command->owner.name; /* the message is packed only */
    return encode(MESSAGE_SET_OWNER, &body.base);
}

static struct body of_judge(const struct exchange_command *command)
{
    Bourse__V1__JudgeResult body = BOURSE__V1__JUDGE_RESULT__INIT;
    struct exchange_judge judge = command->judge;
    body.job = data(judge.job.bytes, sizeof judge.job.bytes);
    body.index = judge.index;
    body.attempt = judge.attempt;
    body.result = data(judge.result.bytes, sizeof judge.result.bytes);
    body.seed = data(judge.seed.bytes, sizeof judge.seed.bytes);
    body.verdict = judge.verdict;
    return encode(MESSAGE_JUDGE_RESULT, &body.base);
}

static struct body body_of(struct market_wire *wire, const struct exchange_command *command)
{
    switch (command->type) {
    case EXCHANGE_JOIN:
        return of_join(wire, command);
    case EXCHANGE_MINT:
        return of_mint(wire, command);
    case EXCHANGE_INVITE:
        return of_invite(command);
    case EXCHANGE_FREEZE:
        return of_freeze(wire, command);
    case EXCHANGE_HALT:
        return of_halt(command);
    case EXCHANGE_BANDS:
        return of_bands(command);
    case EXCHANGE_OWNER:
        return of_owner(wire, command);
    case EXCHANGE_JUDGE:
        return of_judge(command);
    case EXCHANGE_ADVERTISE:
        return of_advertise(command);
    case EXCHANGE_ASK:
        return of_ask(wire, command);
    case EXCHANGE_CANCEL_ORDER:
        return of_cancel_order(command);
    case EXCHANGE_REPLACE:
        return of_replace(command);
    case EXCHANGE_STATEMENT:
        return of_statement(command);
    case EXCHANGE_RESULTS:
        return of_results(wire, command);
    case EXCHANGE_SUBMIT:
        return of_submit(command);
    case EXCHANGE_CANCEL_JOB:
        return of_cancel_job(command);
    case EXCHANGE_GENESIS:
    case EXCHANGE_TICK:
    case EXCHANGE_SUSPECT:
    case EXCHANGE_RETURNED:
    case EXCHANGE_GOODBYE:
    case EXCHANGE_LIMITS:
    case EXCHANGE_EPOCH:
    case EXCHANGE_OUTAGE:
        break;
    }
    give_up("a command that nobody sends");
}

uint8_t *market_wire_payload(struct market_wire *wire, const struct exchange_command *command,
                             bool padded, struct entry_command *ret_command)
{
    *ret_command = (struct entry_command){.account = command->account};
    switch (command->type) {
    case EXCHANGE_GENESIS:
        return of_genesis(wire, &command->genesis, ret_command);
    case EXCHANGE_TICK:
        return of_broker(command, ENTRY_TICK, ret_command);
    case EXCHANGE_SUSPECT:
        return of_broker(command, ENTRY_SUSPECT, ret_command);
    case EXCHANGE_RETURNED:
        return of_broker(command, ENTRY_RETURNED, ret_command);
    case EXCHANGE_GOODBYE:
        return of_broker(command, ENTRY_GOODBYE, ret_command);
    case EXCHANGE_EPOCH:
        return of_broker(command, ENTRY_EPOCH, ret_command);
    case EXCHANGE_OUTAGE:
        return of_broker(command, ENTRY_OUTAGE, ret_command);
    case EXCHANGE_LIMITS:
        give_up("limits are written by the broker alone");
    case EXCHANGE_JOIN:
    case EXCHANGE_MINT:
    case EXCHANGE_INVITE:
    case EXCHANGE_FREEZE:
    case EXCHANGE_HALT:
    case EXCHANGE_BANDS:
    case EXCHANGE_OWNER:
    case EXCHANGE_JUDGE:
    case EXCHANGE_ADVERTISE:
    case EXCHANGE_ASK:
    case EXCHANGE_CANCEL_ORDER:
    case EXCHANGE_REPLACE:
    case EXCHANGE_STATEMENT:
    case EXCHANGE_RESULTS:
    case EXCHANGE_SUBMIT:
    case EXCHANGE_CANCEL_JOB:
        break;
    }
    struct body body = body_of(wire, command);
    if (padded) {
        pad(&body);
    }
    return in_envelope(wire, command, &body, ret_command);
}
