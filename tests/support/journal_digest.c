#include "tests/support/journal_digest.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "base/text.h"
#include "broker/storage/entry.h"
#include "broker/storage/replay.h"
#include "ledger/merkle.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "tests/support/member_entry.h"
#include "tests/support/model_limits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct replay {
    struct exchange *exchange;
    struct merkle tree;
    struct sha256 effects;
    struct journal_digest digest;
};

/* ---------------------------------------------------------------- effects, as bytes */

static void put_id(struct writer *out, const struct id128 *id)
{
    writer_bytes(out, id->bytes, sizeof id->bytes);
}

static void put_key(struct writer *out, const struct key32 *key)
{
    writer_bytes(out, key->bytes, sizeof key->bytes);
}

static void put_hash(struct writer *out, const struct hash32 *hash)
{
    writer_bytes(out, hash->bytes, sizeof hash->bytes);
}

static void put_record(struct writer *out, const struct ledger_record *record)
{
    writer_u8(out, (uint8_t)record->kind);
    writer_u64(out, record->log_index);
    writer_i64(out, record->log_time_ns);
    writer_u32(out, record->debit);
    writer_u32(out, record->credit);
    writer_i64(out, record->amount_micro);
    put_id(out, &record->job);
    put_id(out, &record->order);
    put_id(out, &record->bid);
    writer_u64(out, record->lease);
    writer_u32(out, record->index);
    writer_u32(out, record->attempt);
    put_key(out, &record->owner);
    put_key(out, &record->provider);
    put_id(out, &record->device);
    put_hash(out, &record->hash);
    writer_u32(out, record->slots);
    writer_u32(out, record->width);
    writer_u32(out, record->subtasks);
    writer_u32(out, record->accepted);
    writer_u32(out, record->failed);
    writer_u32(out, record->cancelled);
    writer_u32(out, record->roles);
    writer_i64(out, record->price_micro);
    writer_i64(out, record->term_ns);
    writer_i64(out, record->paid_ns);
    writer_i64(out, record->charge_micro);
    writer_u8(out, record->outcome);
    writer_u8(out, record->status);
    writer_bytes(out, record->name, sizeof record->name);
    writer_u32(out, record->result_length);
    writer_u32(out, record->position);
}

static void put_grant(struct writer *out, const struct exchange_grant *grant)
{
    writer_u64(out, grant->lease);
    put_id(out, &grant->job);
    put_id(out, &grant->device);
    put_id(out, &grant->ask);
    put_key(out, &grant->owner);
    writer_u32(out, grant->slots);
    writer_u32(out, grant->width);
    writer_i64(out, grant->price_micro);
    writer_i64(out, grant->term_ns);
    writer_i64(out, grant->limit_ns);
    put_hash(out, &grant->manifest);
}

static void put_effect(struct writer *out, const struct exchange_effect *effect)
{
    writer_u8(out, (uint8_t)effect->type);
    writer_u32(out, effect->account);
    put_id(out, &effect->id);
    writer_u8(out, effect->repeated);
    writer_u64(out, effect->index);
    switch (effect->type) {
    case EFFECT_ACCEPT:
    case EFFECT_JOB:
        break;
    case EFFECT_ASK:
        put_id(out, &effect->ask.device);
        put_id(out, &effect->ask.order);
        writer_u8(out, effect->ask.stands);
        break;
    case EFFECT_REJECT:
        writer_u32(out, effect->reject.code);
        writer_bytes(out, effect->reject.field, strlen(effect->reject.field));
        writer_i64(out, effect->reject.value);
        writer_i64(out, effect->reject.limit);
        break;
    case EFFECT_LEDGER:
        put_record(out, &effect->ledger);
        break;
    case EFFECT_ACCOUNT:
        put_key(out, &effect->opened.key);
        writer_u32(out, effect->opened.roles);
        writer_u8(out, effect->opened.frozen);
        writer_bytes(out, effect->opened.name, sizeof effect->opened.name);
        break;
    case EFFECT_LEASE_GRANT:
        put_grant(out, &effect->grant);
        break;
    case EFFECT_LEASE_RENEW:
    case EFFECT_LEASE_END:
    case EFFECT_LEASE_NOTICE:
        writer_u64(out, effect->lease.lease);
        writer_i64(out, effect->lease.term_ns);
        writer_u32(out, effect->lease.reason);
        put_id(out, &effect->lease.job);
        break;
    case EFFECT_DISPATCH:
    case EFFECT_WITHDRAW:
        writer_u64(out, effect->work.lease);
        writer_u32(out, effect->work.index);
        writer_u32(out, effect->work.attempt);
        writer_u32(out, effect->work.lane);
        break;
    }
}

static bool take_effects(void *context, const struct translation *said,
                         const struct exchange_effects *effects)
{
    (void)said; /* the journal's own hash covers what was said */
    struct replay *replay = context;
    for (size_t i = 0; i < effects->count; i++) {
        const struct exchange_effect *effect = &effects->items[i];
        uint8_t bytes[1024];
        struct writer out = writer_over(bytes, sizeof bytes);
        put_effect(&out, effect);
        if (out.failed) {
            return false;
        }
        sha256_add(&replay->effects, bytes, out.position);
        if (effect->type == EFFECT_LEDGER && record_is_logged(&effect->ledger)) {
            uint8_t leaf[RECORD_LEAF_MAX];
            struct hash32 hash = merkle_leaf_hash(leaf, record_leaf(&effect->ledger, leaf));
            merkle_append(&replay->tree, &hash, NULL, NULL);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the replay */

static void count_commands(struct journal_digest *digest, const uint8_t *bytes, size_t length)
{
    struct entry_command command;
    size_t position = 0;
    while (entry_next(bytes, length, &position, &command)) {
        struct envelope envelope;
        digest->commands++;
        if (!member_entry(&command)) {
            digest->others[command.kind]++;
        } else if (envelope_read(command.payload, command.payload_length, UINT32_MAX, &envelope) ==
                       ENVELOPE_OK &&
                   envelope.type < DIGEST_TYPES) {
            digest->messages[envelope.type]++;
        }
    }
}

static uint8_t *save(const struct exchange *exchange, size_t *ret_length,
                     struct problem *ret_problem)
{
    uint8_t *bytes = exchange_save(exchange, ret_length);
    if (bytes == NULL) {
        problem_set(ret_problem, "out of memory for a snapshot");
    }
    return bytes;
}

static bool save_and_load(struct replay *replay, struct problem *ret_problem)
{
    const struct exchange_limits limits = model_limits();
    size_t length = 0;
    uint8_t *bytes = save(replay->exchange, &length, ret_problem);
    if (bytes == NULL) {
        return false;
    }
    exchange_destroy(&replay->exchange);
    replay->exchange = exchange_load(&limits, bytes, length);
    free(bytes);
    if (replay->exchange == NULL) {
        problem_set(ret_problem, "the snapshot after entry %" PRIu64 " does not load",
                    replay->digest.entries);
        return false;
    }
    return true;
}

static bool replay_all(struct replay *replay, const uint8_t *journal, size_t length, uint64_t cut,
                       struct problem *ret_problem)
{
    struct reader in = reader_over(journal, length);
    while (reader_left(&in) > 0) {
        uint32_t entry_length = reader_u32(&in);
        const uint8_t *entry = reader_view(&in, entry_length);
        if (entry == NULL) {
            problem_set(ret_problem, "the recorded journal ends within an entry");
            return false;
        }
        if (replay_entry(replay->exchange, entry, entry_length, take_effects, replay,
                         ret_problem) != REPLAY_OK) {
            return false;
        }
        replay->digest.entries++;
        replay->digest.journal = sha256_of(entry, entry_length);
        count_commands(&replay->digest, entry, entry_length);
        if (replay->digest.entries == cut && !save_and_load(replay, ret_problem)) {
            return false;
        }
    }
    return true;
}

static bool finish(struct replay *replay, struct problem *ret_problem)
{
    struct journal_digest *digest = &replay->digest;
    digest->state = exchange_state_hash(replay->exchange);
    struct hash32 walked = exchange_state_hash_walk(replay->exchange);
    if (!hash32_equal(&digest->state, &walked)) {
        problem_set(ret_problem, "the state hash that was kept differs from a full walk");
        return false;
    }
    uint8_t *bytes = save(replay->exchange, &digest->snapshot_length, ret_problem);
    if (bytes == NULL) {
        return false;
    }
    digest->snapshot = sha256_of(bytes, digest->snapshot_length);
    free(bytes);
    digest->effects = sha256_end(&replay->effects);
    digest->tree_size = replay->tree.size;
    digest->tree = merkle_root(&replay->tree);
    return true;
}

bool journal_digest(const uint8_t *journal, size_t length, uint64_t cut,
                    struct journal_digest *ret_digest, struct problem *ret_problem)
{
    const struct exchange_limits limits = model_limits();
    struct replay *replay = calloc(1, sizeof *replay);
    if (replay == NULL || (replay->exchange = exchange_create(&limits)) == NULL) {
        problem_set(ret_problem, "out of memory");
        free(replay);
        return false;
    }
    sha256_start(&replay->effects);
    bool good =
        replay_all(replay, journal, length, cut, ret_problem) && finish(replay, ret_problem);
    if (good) {
        *ret_digest = replay->digest;
    }
    exchange_destroy(&replay->exchange);
    free(replay);
    return good;
}

/* ---------------------------------------------------------------- as text */

__attribute__((format(printf, 2, 3))) static void line(char text[DIGEST_TEXT_SIZE],
                                                       const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    /* The text fits. */
    (void)vsnprintf(text + length, DIGEST_TEXT_SIZE - length, format, arguments);
    va_end(arguments);
}

static void hash_line(char text[DIGEST_TEXT_SIZE], const char *name, const struct hash32 *hash)
{
    char hex[65];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    line(text, "%s %s\n", name, hex);
}

void journal_digest_text(const struct journal_digest *digest, char ret_text[DIGEST_TEXT_SIZE])
{
    static const char *const kinds[] = {
        [ENTRY_GENESIS] = "genesis",   [ENTRY_TICK] = "tick",       [ENTRY_SUSPECT] = "suspect",
        [ENTRY_RETURNED] = "returned", [ENTRY_GOODBYE] = "goodbye", [ENTRY_EPOCH] = "epoch"};
    ret_text[0] = '\0';
    line(ret_text, "entries %" PRIu64 "\ncommands %" PRIu64 "\n", digest->entries,
         digest->commands);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i] != NULL) {
            line(ret_text, "command %s %" PRIu64 "\n", kinds[i], digest->others[i]);
        }
    }
    for (int type = 0; type < DIGEST_TYPES; type++) {
        if (digest->messages[type] > 0) {
            line(ret_text, "command %s %" PRIu64 "\n", message_name((enum message_type)type),
                 digest->messages[type]);
        }
    }
    hash_line(ret_text, "journal", &digest->journal);
    hash_line(ret_text, "effects", &digest->effects);
    hash_line(ret_text, "state", &digest->state);
    line(ret_text, "tree-size %" PRIu64 "\n", digest->tree_size);
    hash_line(ret_text, "tree", &digest->tree);
    line(ret_text, "snapshot-bytes %zu\n", digest->snapshot_length);
    hash_line(ret_text, "snapshot", &digest->snapshot);
}
