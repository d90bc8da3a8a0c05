/* small_market_writer.c makes commands and records, and writes a group of them: a journal entry,
 * the rows of the ledger, a checkpoint and HEAD. */
#include "tests/support/small_market_writer.h"

#include "base/sha256.h"
#include "ledger/checkpoint.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- commands */

void writer_add_command(struct writer_state *state, enum entry_command_kind kind, uint32_t account,
                        uint8_t *payload, size_t length)
{
    struct group *group = &state->group;
    ck_assert_uint_lt(group->command_count, COMMANDS_MAX);
    state->now_ns += 1000000;
    group->owned[group->command_count] = payload;
    group->commands[group->command_count++] = (struct entry_command){
        .log_time_ns = state->now_ns,
        .account = account,
        .kind = kind,
        .verdict = kind == ENTRY_MESSAGE || kind == ENTRY_RESULTS ? 1 : 0,
        .payload = payload,
        .payload_length = (uint32_t)length,
    };
}

struct id128 writer_add_message(struct writer_state *state, enum message_type type,
                                const struct identity *signer, uint32_t account,
                                const ProtobufCMessage *body)
{
    size_t body_length;
    uint8_t *body_bytes = codec_encode(body, &body_length);
    ck_assert_ptr_nonnull(body_bytes);
    struct envelope envelope = {
        .version = ENVELOPE_VERSION,
        .type = (uint16_t)type,
        .session = 1,
        .sequence = ++state->ids,
        .created_ms = state->now_ns / 1000000,
        .body = body_bytes,
        .body_length = (uint32_t)body_length,
    };
    memset(envelope.id.bytes, 0x1d, sizeof envelope.id.bytes);
    envelope.id.bytes[0] = (uint8_t)state->ids;
    if (signer != NULL) {
        identity_sign_envelope(signer, &state->market->cluster, &envelope);
    }
    size_t length = envelope_size(&envelope);
    uint8_t *message = malloc(length);
    envelope_write(&envelope, message, length);
    free(body_bytes);
    writer_add_command(state, type == MESSAGE_RESULTS ? ENTRY_RESULTS : ENTRY_MESSAGE, account,
                       message, length);
    return envelope.id;
}

ProtobufCBinaryData writer_data(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

/* ---- records, each of the newest command */

struct ledger_record *writer_add_record(struct writer_state *state, enum ledger_kind kind)
{
    struct group *group = &state->group;
    ck_assert_uint_lt(group->record_count, RECORDS_MAX);
    struct ledger_record *record = &group->records[group->record_count++];
    *record = (struct ledger_record){
        .kind = kind,
        .log_index = state->last.next_command + group->command_count - 1,
        .log_time_ns = state->now_ns,
    };
    return record;
}

void writer_add_account(struct writer_state *state, uint32_t number,
                        const struct identity *identity, uint32_t roles, const char *name)
{
    struct ledger_record *record = writer_add_record(state, LEDGER_ACCOUNT);
    record->owner = *identity_key(identity);
    record->debit = record->credit = number;
    record->roles = roles;
    snprintf(record->name, sizeof record->name, "%s", name);
}

/* ---- groups */

static struct signature64 sign_note(void *context, const void *text, size_t length)
{
    return identity_sign(context, text, length);
}

static void append_entry(struct writer_state *state, struct head *ret_head)
{
    struct group *group = &state->group;
    struct entry_head head = {
        .count = group->command_count,
        .index = state->last.index + 1,
        .epoch = state->epoch,
        .previous = state->last.chain,
        .first_command = state->last.next_command,
    };
    static uint8_t bytes[1 << 16];
    size_t length = entry_write(&head, group->commands, bytes, sizeof bytes);
    ck_assert_uint_gt(length, 0);
    struct journal_entry entry = {.index = head.index, .bytes = bytes, .length = length};
    ck_assert_int_eq(journal_append(state->journal, state->epoch, &entry, 1), JOURNAL_OK);
    state->last = (struct journal_last){.index = head.index,
                                        .chain = sha256_of(bytes, length),
                                        .next_command = head.first_command + head.count};
    *ret_head = (struct head){.index = head.index, .chain = state->last.chain};
}

static void append_records(struct writer_state *state)
{
    struct ledger_batch batch = {.signature = state->batch.signature,
                                 .leaves = state->batch.leaves,
                                 .count = (uint32_t)state->batch.count};
    for (uint32_t i = 0; i < state->group.record_count; i++) {
        struct ledger_record *record = &state->group.records[i];
        state->record_number++;
        if (state->bend != NULL && !state->bend(state->context, state->record_number, record)) {
            continue;
        }
        bool in_batch = record->kind == LEDGER_HELD ||
                        (record->kind == LEDGER_RESULT && record->batch_index == record->log_index);
        ck_assert_msg(ledger_store_append(state->store, record, in_batch ? &batch : NULL) ==
                          LEDGER_STORE_OK,
                      "%s", ledger_store_error(state->store));
    }
}

void writer_commit(struct writer_state *state)
{
    struct head head;
    ck_assert_int_eq(ledger_store_begin(state->store), LEDGER_STORE_OK);
    append_entry(state, &head);
    append_records(state);
    const struct merkle *tree = ledger_store_tree(state->store);
    struct checkpoint checkpoint = {
        .origin = SMALL_MARKET_ORIGIN, .size = tree->size, .root = merkle_root(tree)};
    char note[CHECKPOINT_TEXT_SIZE];
    size_t length = checkpoint_write(&checkpoint, identity_key(state->market->log), sign_note,
                                     state->market->log, note);
    ck_assert_int_eq(ledger_store_set_checkpoint(state->store, note, length, tree->size),
                     LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_store_commit(state->store), LEDGER_STORE_OK);
    head.tree_size = tree->size;
    ck_assert_int_eq(head_write(state->head, &head), HEAD_OK);
    for (uint32_t i = 0; i < state->group.command_count; i++) {
        free(state->group.owned[i]);
    }
    for (size_t i = 0; i < state->batch.count; i++) {
        free(state->batch.bytes[i]);
    }
    state->group = (struct group){0};
    state->batch = (struct batch){0};
}

struct identity *writer_identity(uint8_t seed_byte)
{
    uint8_t seed[32];
    memset(seed, seed_byte, sizeof seed);
    struct identity *identity = identity_create(seed);
    ck_assert_ptr_nonnull(identity);
    return identity;
}
