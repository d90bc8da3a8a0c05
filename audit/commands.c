/* The audit decodes commands here, verifies their signatures, and keeps the facts that later rows
 * rely on. */
#include "audit/audit_internal.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "protocol/results.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    KIND_MESSAGE = 1,
    KIND_GENESIS = 2,
    KIND_SUSPECT = 4,
    KIND_GOODBYE = 6,
    KIND_LIMITS = 7,
    KIND_EPOCH = 8,
    KIND_RESULTS = 9,
    KIND_OUTAGE = 10,
    DICE_BYTES = 32,
    MISSING_BYTES = 32, /* one bit for each result */
    VERDICT_SIGNED = 1,
    VERDICT_MISSING = 2,
    /* Since these rules a result counts only if its outputs were stored. */
    RULES_OF_OUTPUTS = 18,
    RULES_OF_OUTAGES = 21, /* since these rules the journal says how long no broker ran */
    RULES_OF_STEPS = 23,   /* since these rules the rules rise by one at a time, and never fall */
};

static bool journal_finding(struct audit *audit, const struct audit_command *command,
                            const char *what)
{
    return audit_finding(audit, "journal", audit->report->journal_entries + 1,
                         "command %" PRIu64 ": %s", command->index, what);
}

bool audit_account_number(const struct audit *audit, const struct key32 *key, uint32_t *ret_number)
{
    struct hash32 name;
    memcpy(name.bytes, key->bytes, sizeof name.bytes);
    const uint32_t *number = audit_map_find(&audit->numbers, &name);
    if (number != NULL) {
        *ret_number = *number;
    }
    return number != NULL;
}

/* ---- signatures */

/* Returns the key that must have signed the command. A JOIN brings its own key. */
static const struct key32 *signer_of(const struct audit *audit, const struct audit_command *command,
                                     struct key32 *buffer)
{
    if (command->type == MESSAGE_JOIN) {
        *buffer = codec_key(((const Bourse__V1__Join *)command->body)->account);
        return buffer;
    }
    return command->account < audit->account_count ? &audit->accounts[command->account].key : NULL;
}

static bool check_envelope(struct audit *audit, struct audit_command *command)
{
    struct key32 buffer;
    const struct key32 *key = signer_of(audit, command, &buffer);
    if (key == NULL) {
        return journal_finding(audit, command, "the sender is not an account");
    }
    if (!message_must_be_signed(command->type)) {
        return true;
    }
    if (command->verdict != VERDICT_SIGNED || !command->envelope.is_signed ||
        !identity_verify_envelope(key, &audit->genesis.cluster, &command->envelope)) {
        return journal_finding(audit, command, "the signature is not the sender's");
    }
    audit->report->signatures++;
    return true;
}

static bool check_batch(struct audit *audit, struct audit_command *command)
{
    const Bourse__V1__Results *body = (const Bourse__V1__Results *)command->body;
    if (body->n_results == 0 || body->n_results > AUDIT_RESULTS_MAX ||
        body->n_results > LIMIT_RESULTS) {
        return journal_finding(audit, command, "the batch has no results, or too many");
    }
    for (size_t i = 0; i < body->n_results; i++) {
        ProtobufCBinaryData bytes = body->results[i];
        struct audit_sent *sent = &command->sent[i];
        sent->hash = sha256_of(bytes.data, bytes.len);
        sent->is_missing = (command->missing[i / 8] >> (i % 8) & 1) != 0;
        command->sent_leaves[i] = results_leaf(bytes.data, bytes.len);
        if (codec_decode_result(bytes.data, bytes.len, &sent->result, NULL) != CODEC_OK) {
            return journal_finding(audit, command, "a result does not decode");
        }
        command->sent_count++;
    }
    struct hash32 root = results_root(command->sent_leaves, command->sent_count);
    struct signature64 signature;
    memcpy(signature.bytes, body->signature.data, sizeof signature.bytes);
    if (!results_verify(&audit->accounts[command->account].key, &audit->genesis.cluster, &root,
                        &signature)) {
        return journal_finding(audit, command, "the batch of results is not signed by its sender");
    }
    audit->report->signatures++;
    return true;
}

static bool decode(struct audit *audit, struct audit_command *command)
{
    if (!audit->has_genesis) {
        return journal_finding(audit, command, "the command stands before the genesis");
    }
    const bool has_missing = (command->verdict & VERDICT_MISSING) != 0;
    const uint32_t dice = command->kind == KIND_RESULTS ? DICE_BYTES : 0;
    const uint32_t before = dice + (has_missing ? MISSING_BYTES : 0);
    if (has_missing && (command->kind != KIND_RESULTS || audit->rules < RULES_OF_OUTPUTS)) {
        return journal_finding(audit, command,
                               "the broker's verdict on the command has no known kind");
    }
    if (command->payload_length < before ||
        envelope_read(command->payload + before, command->payload_length - before,
                      LIMIT_MESSAGE_BYTES, &command->envelope) != ENVELOPE_OK) {
        return journal_finding(audit, command, "the envelope is not well formed");
    }
    memcpy(command->dice.bytes, command->payload, dice);
    if (has_missing) {
        memcpy(command->missing, command->payload + dice, sizeof command->missing);
    }
    command->type = (enum message_type)command->envelope.type;
    if ((command->type == MESSAGE_RESULTS) != (command->kind == KIND_RESULTS)) {
        return journal_finding(audit, command, "results, and nothing else, come with dice");
    }
    if (codec_decode(command->type, command->envelope.body, command->envelope.body_length,
                     &command->body, NULL) != CODEC_OK) {
        return journal_finding(audit, command, "the body does not decode");
    }
    return check_envelope(audit, command) &&
           (command->type != MESSAGE_RESULTS ||
            (check_batch(audit, command) && audit_dice(audit, command)));
}

/* ---- facts for later rows */

static bool is_operator(const struct audit *audit, const struct audit_command *command)
{
    return command->account < audit->account_count &&
           (audit->accounts[command->account].roles & ROLE_OPERATOR) != 0;
}

static bool note_invitation(struct audit *audit, const struct audit_command *command)
{
    const Bourse__V1__InviteCreate *body = (const Bourse__V1__InviteCreate *)command->body;
    struct hash32 token = codec_hash(body->token_hash);
    struct audit_invitation *invitation = audit_map_find(&audit->invitations, &token);
    if (!is_operator(audit, command)) {
        return true; /* refused, so nothing may rely on it */
    }
    /* The first invitation stands while it can be redeemed. */
    if (invitation != NULL && !invitation->is_used &&
        invitation->expires_ms * 1000000 > command->log_time_ns) {
        return true;
    }
    if (invitation == NULL) {
        invitation = audit_map_add(&audit->invitations, &token, sizeof *invitation);
    }
    if (invitation == NULL) {
        return audit_out_of_memory(audit);
    }
    *invitation = (struct audit_invitation){
        .roles = body->roles, .credits = body->credits_micro, .expires_ms = body->expires_ms};
    audit_cut_name(invitation->name, body->name);
    return true;
}

static int compare_attributes(const void *a, const void *b)
{
    return memcmp(((const struct hash32 *)a)->bytes, ((const struct hash32 *)b)->bytes,
                  sizeof(struct hash32));
}

/* Devices with the same set of attributes share a cell. The roles of referee and operator count as
 * attributes. */
static bool cell_of(const Bourse__V1__Device *device, uint32_t roles, struct hash32 *ret_cell)
{
    const uint8_t trusted = (uint8_t)(roles & (ROLE_REFEREE | ROLE_OPERATOR));
    struct hash32 parts[LIMIT_ATTRIBUTES + 2];
    size_t count = 0;
    if (device->n_attributes > LIMIT_ATTRIBUTES) {
        return false;
    }
    for (size_t i = 0; i < device->n_attributes; i++) {
        size_t length;
        uint8_t *bytes = codec_encode(&device->attributes[i]->base, &length);
        if (bytes == NULL) {
            return false;
        }
        parts[count++] = sha256_of(bytes, length);
        free(bytes);
    }
    parts[count++] = sha256_of(device->instrument, strlen(device->instrument));
    parts[count++] = sha256_of(&trusted, sizeof trusted);
    qsort(parts, count, sizeof parts[0], compare_attributes);
    *ret_cell = sha256_of(parts, count * sizeof parts[0]);
    return true;
}

/* Keeps the least of several figures of a rate. */
static void rates_of(const Bourse__V1__Device *device, int64_t ret_rates[AUDIT_RATES])
{
    memset(ret_rates, 0, AUDIT_RATES * sizeof *ret_rates);
    for (size_t i = 0; i < device->n_attributes; i++) {
        const Bourse__V1__Attribute *has = device->attributes[i];
        const uint32_t rate = audit_worth_rate(has->name);
        if (rate != AUDIT_RATE_NONE && has->has_number && has->number > 0 &&
            (ret_rates[rate] == 0 || has->number < ret_rates[rate])) {
            ret_rates[rate] = has->number;
        }
    }
}

struct hash32 audit_instrument(uint32_t account, const struct id128 *device, const char *name)
{
    uint8_t bytes[4 + sizeof device->bytes + AUDIT_NAME_SIZE] = {0};
    for (size_t i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(account >> (8 * i));
    }
    memcpy(bytes + 4, device->bytes, sizeof device->bytes);
    memcpy(bytes + 4 + sizeof device->bytes, name, strnlen(name, AUDIT_NAME_SIZE));
    return sha256_of(bytes, sizeof bytes);
}

static bool note_instrument(struct audit *audit, uint32_t account, const struct id128 *device,
                            const char *name)
{
    struct hash32 key = audit_instrument(account, device, name);
    return audit_map_find(&audit->instruments, &key) != NULL ||
           audit_map_add(&audit->instruments, &key, 1) != NULL || audit_out_of_memory(audit);
}

/* The instrument may also stand among the attributes, and counts then. A number there is no
 * name. */
static bool note_instruments(struct audit *audit, uint32_t account, const struct id128 *device,
                             const Bourse__V1__Device *body)
{
    bool noted = note_instrument(audit, account, device, body->instrument);
    for (size_t i = 0; noted && i < body->n_attributes; i++) {
        const Bourse__V1__Attribute *attribute = body->attributes[i];
        if (strcmp(attribute->name, "instrument") == 0) {
            noted = note_instrument(audit, account, device,
                                    attribute->text != NULL ? attribute->text : "");
        }
    }
    return noted;
}

/* A second advertisement, on any terms, makes the account's asks useless as witnesses of
 * priority. */
static bool taint(struct audit *audit, uint32_t account)
{
    struct hash32 name = audit_number(account);
    if (audit_map_find(&audit->tainted, &name) == NULL &&
        audit_map_add(&audit->tainted, &name, 1) == NULL) {
        return audit_out_of_memory(audit);
    }
    return true;
}

static bool note_devices(struct audit *audit, const struct audit_command *command)
{
    const Bourse__V1__Advertise *body = (const Bourse__V1__Advertise *)command->body;
    const uint32_t roles = audit->accounts[command->account].roles;
    for (size_t i = 0; i < body->n_devices; i++) {
        struct id128 id = codec_id(body->devices[i]->device);
        struct hash32 name = audit_id(&id);
        struct audit_device *device = audit_map_find(&audit->devices, &name);
        if (device != NULL && !taint(audit, command->account)) {
            return false;
        }
        if (device == NULL) {
            device = audit_map_add(&audit->devices, &name, sizeof *device);
        }
        if (device == NULL || !cell_of(body->devices[i], roles, &device->cell)) {
            return audit_out_of_memory(audit);
        }
        rates_of(body->devices[i], device->rates);
        device->slots = body->devices[i]->slots;
        device->owner_number = command->account;
        if (!note_instruments(audit, command->account, &id, body->devices[i])) {
            return false;
        }
    }
    return true;
}

static bool note_message(struct audit *audit, const struct audit_command *command)
{
    if (command->type == MESSAGE_INVITE_CREATE) {
        return note_invitation(audit, command);
    }
    if (command->type == MESSAGE_ADVERTISE) {
        return note_devices(audit, command);
    }
    return true;
}

static bool note_genesis(struct audit *audit, const struct audit_command *command)
{
    if (command->index != 1 ||
        !genesis_read(command->payload, command->payload_length, &audit->genesis)) {
        return journal_finding(audit, command,
                               "the genesis is not well formed, or not the first command");
    }
    audit->has_genesis = true;
    audit->bands.most_micro = audit->genesis.price_band_micro;
    memcpy(audit->report->origin, audit->genesis.origin, sizeof audit->report->origin);
    return true;
}

static bool note_presence(struct audit *audit, const struct audit_command *command)
{
    if (command->payload_length != 4) {
        return journal_finding(audit, command, "the command does not name an account");
    }
    const uint8_t *bytes = command->payload;
    return taint(audit, (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                            (uint32_t)bytes[3] << 24);
}

/* ---- rows of a command */

static bool check_place(struct audit *audit, const struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    if (row->log_index < command->index) {
        return audit_expect_i64(audit, "log indices never go back", (int64_t)command->index,
                                (int64_t)row->log_index);
    }
    return audit_expect_i64(audit, "the row's time is its command's", command->log_time_ns,
                            row->log_time_ns);
}

static bool check_one(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    if (row->table != AUDIT_TRANSFERS && !audit_nothing_due(audit)) {
        return false;
    }
    switch (row->table) {
    case AUDIT_ACCOUNTS:
        return audit_account_row(audit, command);
    case AUDIT_TRANSFERS:
        return audit_transfer_row(audit, command);
    case AUDIT_JOBS:
        return audit_job_row(audit, command);
    case AUDIT_ASKS:
        return audit_ask_row(audit, command);
    case AUDIT_BIDS:
        return audit_bid_row(audit, command);
    case AUDIT_CANCELS:
        return audit_cancel_row(audit, command);
    case AUDIT_FILLS:
        return audit_fill_row(audit, command);
    case AUDIT_RESULTS:
        return audit_result_row(audit, command);
    case AUDIT_SETTLEMENTS:
        return audit_settlement_row(audit, command);
    case AUDIT_FLAGS:
        return audit_flag_row(audit, command);
    case AUDIT_HELD:
        return audit_held_row(audit, command);
    case AUDIT_EPOCHS:
        return audit_epoch_row(audit, command);
    case AUDIT_TABLES:
        break;
    }
    return false;
}

static bool check_rows(struct audit *audit, struct audit_command *command)
{
    while (!audit->rows.is_at_end && audit->rows.row.log_index <= command->index) {
        if (!check_place(audit, command) || !check_one(audit, command) ||
            (audit->rows.row.has_leaf && !audit_tree_add(audit, &audit->rows.row)) ||
            !audit_rows_next(audit)) {
            return false;
        }
    }
    return audit_nothing_due(audit);
}

/* The rules in the command apply to it and to later commands, up to the next limits. */
static bool note_limits(struct audit *audit, const struct audit_command *command)
{
    const bool is_change = audit->has_limits;
    struct reader in = reader_over(command->payload, command->payload_length);
    const uint32_t rules = reader_u32(&in);
    if (in.failed || rules == 0) {
        return journal_finding(audit, command, "the command does not name the rules");
    }
    if (audit->rules >= RULES_OF_STEPS && rules != audit->rules && rules != audit->rules + 1) {
        return journal_finding(audit, command, "the rules fall, or one number is skipped");
    }
    audit->rules = rules;
    audit->report->rules = rules;
    audit->has_limits = true;
    return !is_change || audit_owe(audit, AUDIT_ACT_LIMITS, command->index - 1);
}

/* Nobody can check how long the outage was. Earlier rules knew no outages. */
static bool check_outage(struct audit *audit, const struct audit_command *command)
{
    struct reader in = reader_over(command->payload, command->payload_length);
    const int64_t outage_ns = reader_i64(&in);
    if (!reader_finished(&in) || outage_ns <= 0 || audit->rules < RULES_OF_OUTAGES) {
        return journal_finding(audit, command,
                               "the outage names no time, or stands under rules without outages");
    }
    return true;
}

bool audit_command_check(struct audit *audit, struct audit_command *command)
{
    switch (command->kind) {
    case KIND_MESSAGE:
    case KIND_RESULTS:
        if (!decode(audit, command) || !note_message(audit, command)) {
            return false;
        }
        break;
    case KIND_GENESIS:
        if (!note_genesis(audit, command)) {
            return false;
        }
        break;
    default:
        if (command->kind > KIND_OUTAGE || command->kind == 0 || !audit->has_genesis) {
            return journal_finding(audit, command,
                                   "the command has no known kind, or stands before the genesis");
        }
        if (command->kind >= KIND_SUSPECT && command->kind <= KIND_GOODBYE &&
            !note_presence(audit, command)) {
            return false;
        }
        if (command->kind == KIND_LIMITS && !note_limits(audit, command)) {
            return false;
        }
        if (command->kind == KIND_OUTAGE && !check_outage(audit, command)) {
            return false;
        }
        break;
    }
    return check_rows(audit, command) && audit_epoch_command(audit, command);
}

void audit_command_fini(struct audit_command *command)
{
    for (size_t i = 0; i < command->sent_count; i++) {
        codec_result_free(&command->sent[i].result);
    }
    codec_free(&command->body);
}
