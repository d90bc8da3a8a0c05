#include "broker/core/translate.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "base/sha256.h"
#include "broker/core/translate_internal.h"
#include "protocol/genesis.h"
#include "protocol/limits.h"
#include "protocol/message.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Returns the SHA-256 of type and body, which D7 compares for "same id, other body". */
static struct hash32 body_hash(const struct envelope *envelope)
{
    uint8_t type[2];
    struct writer out = writer_over(type, sizeof type);
    writer_u16(&out, envelope->type);
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, type, sizeof type);
    sha256_add(&hash, envelope->body, envelope->body_length);
    return sha256_end(&hash);
}

void translate_presence(uint32_t account, uint8_t ret_payload[TRANSLATE_PRESENCE_BYTES])
{
    struct writer out = writer_over(ret_payload, TRANSLATE_PRESENCE_BYTES);
    writer_u32(&out, account);
}

/* ---------------------------------------------------------------- small parts */

enum reject_code translate_refuse(struct codec_error *error, enum reject_code code,
                                  const char *field, int64_t value, int64_t limit)
{
    *error = (struct codec_error){.value = value, .limit = limit};
    (void)snprintf(error->field, sizeof error->field, "%s", field); /* our own names fit */
    return code;
}

void translate_copy_name(char ret_name[EXCHANGE_NAME_SIZE], const char *wire)
{
    size_t length = wire == NULL ? 0 : strlen(wire);
    if (length >= EXCHANGE_NAME_SIZE) {
        length = EXCHANGE_NAME_SIZE - 1;
        while (length > 0 && ((unsigned char)wire[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    memset(ret_name, 0, EXCHANGE_NAME_SIZE); /* the state hash covers the whole field */
    if (length > 0) {
        memcpy(ret_name, wire, length);
    }
}

enum reject_code translate_bad_time(struct codec_error *error, const char *field, int64_t ms)
{
    return translate_refuse(error, REJECT_MALFORMED, field, ms, INT64_MAX / NS_PER_MS);
}

/* ---------------------------------------------------------------- entry points */

bool translate_is_command(enum message_type type)
{
    switch ((int)type) {
    case MESSAGE_JOIN:
    case MESSAGE_MINT:
    case MESSAGE_INVITE_CREATE:
    case MESSAGE_FREEZE:
    case MESSAGE_HALT:
    case MESSAGE_SET_BANDS:
    case MESSAGE_SET_OWNER:
    case MESSAGE_JUDGE_RESULT:
    case MESSAGE_ADVERTISE:
    case MESSAGE_ASK_PLACE:
    case MESSAGE_ORDER_CANCEL:
    case MESSAGE_ORDER_REPLACE:
    case MESSAGE_STATEMENT_HELD:
    case MESSAGE_RESULTS:
    case MESSAGE_SUBMIT_JOB:
    case MESSAGE_JOB_CANCEL:
        return true;
    default:
        return false; /* reads, session messages, and what only the broker sends */
    }
}

static enum reject_code command_from_body(enum message_type type, const struct id128 *cluster,
                                          struct translation *ret, struct codec_error *error)
{
    const void *body = ret->body;
    switch ((int)type) {
    case MESSAGE_JOIN:
        return translate_join(body, &ret->command);
    case MESSAGE_MINT:
        return translate_mint(body, &ret->command);
    case MESSAGE_INVITE_CREATE:
        return translate_invite(body, &ret->command, error);
    case MESSAGE_FREEZE:
        return translate_freeze(body, &ret->command);
    case MESSAGE_HALT:
        ret->command.type = EXCHANGE_HALT;
        ret->command.halt =
            (struct exchange_halt){.halted = ((const Bourse__V1__Halt *)body)->halted,
                                   .reason = ((const Bourse__V1__Halt *)body)->reason};
        return REJECT_NONE;
    case MESSAGE_SET_BANDS:
        return translate_bands(body, &ret->command);
    case MESSAGE_SET_OWNER:
        return translate_owner(body, ret);
    case MESSAGE_JUDGE_RESULT:
        return translate_judge(body, &ret->command);
    case MESSAGE_ADVERTISE:
        return translate_advertise(body, ret);
    case MESSAGE_ASK_PLACE:
        return translate_ask(body, ret, error);
    case MESSAGE_ORDER_CANCEL:
        ret->command.type = EXCHANGE_CANCEL_ORDER;
        ret->command.cancel_order.order = codec_id(((const Bourse__V1__OrderCancel *)body)->order);
        return REJECT_NONE;
    case MESSAGE_ORDER_REPLACE:
        return translate_replace(body, &ret->command, error);
    case MESSAGE_STATEMENT_HELD:
        return translate_statement(body, ret);
    case MESSAGE_RESULTS:
        return translate_results(body, cluster, ret, error);
    case MESSAGE_SUBMIT_JOB:
        return translate_submit(body, ret, error);
    case MESSAGE_JOB_CANCEL:
        ret->command.type = EXCHANGE_CANCEL_JOB;
        ret->command.cancel_job.job = codec_id(((const Bourse__V1__JobCancel *)body)->job);
        return REJECT_NONE;
    default:
        return REJECT_NONE; /* a read needs nothing but its body */
    }
}

enum reject_code translate_message(const struct envelope *envelope, const struct id128 *cluster,
                                   struct translation *ret, struct codec_error *ret_error)
{
    assert(ret->body == NULL);
    *ret_error = (struct codec_error){0};
    enum message_type type = (enum message_type)envelope->type;
    switch (codec_decode(type, envelope->body, envelope->body_length, &ret->body, ret_error)) {
    case CODEC_OK:
        break;
    case CODEC_UNKNOWN_TYPE:
        return REJECT_TYPE;
    case CODEC_TOO_LARGE:
        return REJECT_TOO_LARGE;
    case CODEC_MALFORMED:
        return REJECT_MALFORMED;
    case CODEC_OUT_OF_MEMORY:
        return REJECT_BUSY;
    }
    ret->command.id = envelope->id;
    ret->command.created_ms = envelope->created_ms;
    ret->command.body = body_hash(envelope);
    return command_from_body(type, cluster, ret, ret_error);
}

Bourse__V1__Given *translate_given(const struct exchange_given *given)
{
    return bourse__v1__given__unpack(NULL, given->length, given->bytes);
}

Bourse__V1__Saved *translate_saved(const struct exchange_given *saved)
{
    return bourse__v1__saved__unpack(NULL, saved->length, saved->bytes);
}

/* ---------------------------------------------------------------- from the journal */

static bool from_genesis(const struct entry_command *entry, struct translation *ret)
{
    struct genesis genesis;
    if (!genesis_read(entry->payload, entry->payload_length, &genesis)) {
        return false;
    }
    struct exchange_genesis_account *accounts =
        arena_take(&ret->arena, genesis.account_count, sizeof *accounts);
    if (accounts == NULL) {
        return false;
    }
    for (uint16_t i = 0; i < genesis.account_count; i++) {
        accounts[i].key = genesis.accounts[i].key;
        accounts[i].roles = genesis.accounts[i].roles;
        accounts[i].credits_micro = genesis.accounts[i].credits_micro;
        translate_copy_name(accounts[i].name, genesis.accounts[i].name);
    }
    ret->command.type = EXCHANGE_GENESIS;
    ret->command.genesis = (struct exchange_genesis){.cluster = genesis.cluster,
                                                     .fee_ppm = genesis.fee_ppm,
                                                     .price_band_micro = genesis.price_band_micro,
                                                     .accounts = accounts,
                                                     .account_count = genesis.account_count};
    return true;
}

static bool from_presence(const struct entry_command *entry, enum exchange_command_type type,
                          struct translation *ret)
{
    struct reader in = reader_over(entry->payload, entry->payload_length);
    ret->command.type = type;
    ret->command.provider = reader_u32(&in);
    return reader_finished(&in);
}

void translate_limits(const struct exchange_set_limits *set,
                      uint8_t ret_payload[TRANSLATE_LIMITS_BYTES])
{
    const struct exchange_limits *limits = &set->limits;
    const uint32_t numbers[] = {set->rules,
                                limits->accounts,
                                limits->invitations,
                                limits->jobs,
                                limits->jobs_per_account,
                                limits->asks,
                                limits->leases,
                                limits->attempts,
                                limits->ids_per_account,
                                limits->devices_per_provider,
                                limits->cells_per_account,
                                limits->classes_per_account};
    struct writer out = writer_over(ret_payload, TRANSLATE_LIMITS_BYTES);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        writer_u32(&out, numbers[i]);
    }
    writer_u64(&out, limits->subtasks);
    writer_u64(&out, limits->subtasks_per_account);
    assert(!out.failed && out.position == TRANSLATE_LIMITS_BYTES);
}

static bool from_limits(const struct entry_command *entry, struct translation *ret)
{
    struct exchange_limits *limits = &ret->command.set_limits.limits;
    uint32_t *const numbers[] = {&ret->command.set_limits.rules,
                                 &limits->accounts,
                                 &limits->invitations,
                                 &limits->jobs,
                                 &limits->jobs_per_account,
                                 &limits->asks,
                                 &limits->leases,
                                 &limits->attempts,
                                 &limits->ids_per_account,
                                 &limits->devices_per_provider,
                                 &limits->cells_per_account,
                                 &limits->classes_per_account};
    struct reader in = reader_over(entry->payload, entry->payload_length);
    bool good = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *numbers[i] = reader_u32(&in);
        good = good && *numbers[i] > 0;
    }
    limits->subtasks = reader_u64(&in);
    good = good && limits->subtasks > 0;
    /* Entries of earlier programs end here: they had no cap for each account. */
    limits->subtasks_per_account = 0;
    if (reader_left(&in) > 0) {
        limits->subtasks_per_account = reader_u64(&in);
        good = good && limits->subtasks_per_account > 0;
    }
    ret->command.type = EXCHANGE_LIMITS;
    return reader_finished(&in) && good;
}

void translate_epoch(const struct exchange_epoch *epoch, uint8_t ret_payload[TRANSLATE_EPOCH_BYTES])
{
    struct writer out = writer_over(ret_payload, TRANSLATE_EPOCH_BYTES);
    writer_bytes(&out, epoch->commitment.bytes, sizeof epoch->commitment.bytes);
    writer_bytes(&out, epoch->secret.bytes, sizeof epoch->secret.bytes);
    assert(!out.failed && out.position == TRANSLATE_EPOCH_BYTES);
}

static bool from_epoch(const struct entry_command *entry, struct translation *ret)
{
    struct reader in = reader_over(entry->payload, entry->payload_length);
    struct exchange_epoch *epoch = &ret->command.epoch;
    reader_bytes(&in, epoch->commitment.bytes, sizeof epoch->commitment.bytes);
    reader_bytes(&in, epoch->secret.bytes, sizeof epoch->secret.bytes);
    ret->command.type = EXCHANGE_EPOCH;
    return reader_finished(&in);
}

void translate_outage(int64_t outage_ns, uint8_t ret_payload[TRANSLATE_OUTAGE_BYTES])
{
    struct writer out = writer_over(ret_payload, TRANSLATE_OUTAGE_BYTES);
    writer_i64(&out, outage_ns);
    assert(!out.failed && out.position == TRANSLATE_OUTAGE_BYTES);
}

static bool from_outage(const struct entry_command *entry, struct translation *ret)
{
    struct reader in = reader_over(entry->payload, entry->payload_length);
    ret->command.type = EXCHANGE_OUTAGE;
    ret->command.outage_ns = reader_i64(&in);
    return reader_finished(&in) && ret->command.outage_ns > 0;
}

/* Dice come with results and with nothing else. */
static bool from_message(const struct entry_command *entry, const struct id128 *cluster,
                         struct translation *ret)
{
    struct envelope envelope;
    struct codec_error error;
    if (envelope_read(entry->payload, entry->payload_length, LIMIT_MESSAGE_BYTES, &envelope) !=
            ENVELOPE_OK ||
        !translate_is_command((enum message_type)envelope.type) ||
        translate_message(&envelope, cluster, ret, &error) != REJECT_NONE) {
        return false;
    }
    bool is_results = ret->command.type == EXCHANGE_RESULTS;
    if (is_results) {
        ret->command.results.dice = entry->dice;
        for (uint32_t i = 0; i < ret->results_count; i++) {
            ret->results[i].is_missing =
                (entry->verdict & ENTRY_MISSING) != 0 && entry_results_has(&entry->missing, i);
        }
    }
    return is_results == (entry->kind == ENTRY_RESULTS);
}

bool translate_entry(const struct entry_command *entry, uint64_t index, const struct id128 *cluster,
                     struct translation *ret)
{
    bool understood = false;
    switch (entry->kind) {
    case ENTRY_MESSAGE:
    case ENTRY_RESULTS:
        understood = from_message(entry, cluster, ret);
        break;
    case ENTRY_GENESIS:
        understood = from_genesis(entry, ret);
        break;
    case ENTRY_TICK:
        ret->command.type = EXCHANGE_TICK;
        understood = entry->payload_length == 0 || entry->payload_length == TRANSLATE_STATE_BYTES;
        break;
    case ENTRY_SUSPECT:
        understood = from_presence(entry, EXCHANGE_SUSPECT, ret);
        break;
    case ENTRY_RETURNED:
        understood = from_presence(entry, EXCHANGE_RETURNED, ret);
        break;
    case ENTRY_GOODBYE:
        understood = from_presence(entry, EXCHANGE_GOODBYE, ret);
        break;
    case ENTRY_LIMITS:
        understood = from_limits(entry, ret);
        break;
    case ENTRY_EPOCH:
        understood = from_epoch(entry, ret);
        break;
    case ENTRY_OUTAGE:
        understood = from_outage(entry, ret);
        break;
    }
    ret->command.index = index;
    ret->command.log_time_ns = entry->log_time_ns;
    ret->command.account = entry->account;
    return understood;
}
