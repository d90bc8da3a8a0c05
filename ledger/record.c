#include "ledger/record.h"

#include <assert.h>
#include <string.h>

#include "base/cursor.h"
#include "ledger/accounts.h"

static const char leaf_domain[] = "bourse/leaf/v1"; /* written with its NUL */

bool record_is_logged(const struct ledger_record *record)
{
    switch (record->kind) {
    case LEDGER_ACCOUNT:
    case LEDGER_JOB:
    case LEDGER_ASK:
    case LEDGER_BID:
    case LEDGER_CANCEL:
    case LEDGER_FILL:
    case LEDGER_RESULT:
    case LEDGER_SETTLED:
    case LEDGER_HELD:
    case LEDGER_EPOCH:
        return true;
    case LEDGER_TRANSFER:
        return record->debit == ACCOUNT_MINT;
    case LEDGER_HOLD:
    case LEDGER_CAPTURE:
    case LEDGER_RELEASE:
    case LEDGER_EXPIRE:
    case LEDGER_FEE:
    case LEDGER_FLAG:
        return false;
    }
    return false;
}

static void write_id(struct writer *out, const struct id128 *id)
{
    writer_bytes(out, id->bytes, sizeof id->bytes);
}

static void write_key(struct writer *out, const struct key32 *key)
{
    writer_bytes(out, key->bytes, sizeof key->bytes);
}

static void write_hash(struct writer *out, const struct hash32 *hash)
{
    writer_bytes(out, hash->bytes, sizeof hash->bytes);
}

static void write_job(struct writer *out, const struct ledger_record *record)
{
    write_id(out, &record->job);
    write_key(out, &record->owner);
    write_hash(out, &record->hash);
    writer_u32(out, record->subtasks);
    writer_i64(out, record->amount_micro);
    writer_i64(out, record->price_micro);
    writer_u32(out, record->width);
}

static void write_ask(struct writer *out, const struct ledger_record *record)
{
    write_id(out, &record->order);
    write_key(out, &record->owner);
    write_id(out, &record->device);
    writer_u32(out, record->slots);
    writer_i64(out, record->price_micro);
}

static void write_bid(struct writer *out, const struct ledger_record *record)
{
    write_id(out, &record->order);
    write_key(out, &record->owner);
    write_id(out, &record->job);
    writer_u32(out, record->slots);
    writer_u32(out, record->width);
    writer_i64(out, record->price_micro);
}

static void write_fill(struct writer *out, const struct ledger_record *record)
{
    writer_u64(out, record->lease);
    write_id(out, &record->order);
    write_id(out, &record->bid);
    write_id(out, &record->job);
    write_key(out, &record->provider);
    write_key(out, &record->owner);
    write_id(out, &record->device);
    writer_u32(out, record->slots);
    writer_i64(out, record->price_micro);
    writer_i64(out, record->term_ns);
}

static void write_held(struct writer *out, const struct ledger_record *record)
{
    write_id(out, &record->job);
    writer_u32(out, record->index);
    writer_u32(out, record->attempt);
    writer_u64(out, record->lease);
    write_key(out, &record->provider);
    write_key(out, &record->owner);
    write_hash(out, &record->hash);
}

static void write_result(struct writer *out, const struct ledger_record *record)
{
    write_held(out, record); /* a RESULT begins like a HELD */
    writer_u8(out, record->outcome);
    writer_u8(out, record->status);
    writer_i64(out, record->price_micro);
    writer_i64(out, record->paid_ns);
    writer_i64(out, record->charge_micro);
    writer_u64(out, record->batch_index);
    writer_u8(out, record->level);
    write_hash(out, &record->check);
}

static void write_settled(struct writer *out, const struct ledger_record *record)
{
    write_id(out, &record->job);
    writer_u8(out, record->status);
    writer_u32(out, record->accepted);
    writer_u32(out, record->failed);
    writer_u32(out, record->cancelled);
    writer_i64(out, record->charge_micro);
    writer_i64(out, record->amount_micro);
}

static void write_body(struct writer *out, const struct ledger_record *record)
{
    switch (record->kind) {
    case LEDGER_JOB:
        write_job(out, record);
        return;
    case LEDGER_ASK:
        write_ask(out, record);
        return;
    case LEDGER_BID:
        write_bid(out, record);
        return;
    case LEDGER_CANCEL:
        write_id(out, &record->order);
        writer_u8(out, record->status);
        return;
    case LEDGER_FILL:
        write_fill(out, record);
        return;
    case LEDGER_RESULT:
        write_result(out, record);
        return;
    case LEDGER_SETTLED:
        write_settled(out, record);
        return;
    case LEDGER_HELD:
        write_held(out, record);
        return;
    case LEDGER_EPOCH:
        write_hash(out, &record->hash);
        write_hash(out, &record->check);
        return;
    case LEDGER_ACCOUNT:
        write_key(out, &record->owner);
        writer_u32(out, record->credit);
        writer_u32(out, record->roles);
        return;
    case LEDGER_TRANSFER:
        write_key(out, &record->owner);
        writer_i64(out, record->amount_micro);
        return;
    case LEDGER_HOLD:
    case LEDGER_CAPTURE:
    case LEDGER_RELEASE:
    case LEDGER_EXPIRE:
    case LEDGER_FEE:
    case LEDGER_FLAG:
        return; /* not logged */
    }
}

size_t record_leaf(const struct ledger_record *record, uint8_t ret_bytes[RECORD_LEAF_MAX])
{
    assert(record_is_logged(record));
    struct writer out = writer_over(ret_bytes, RECORD_LEAF_MAX);
    writer_bytes(&out, leaf_domain, sizeof leaf_domain);
    writer_u8(&out, (uint8_t)record->kind);
    writer_u64(&out, record->log_index);
    writer_i64(&out, record->log_time_ns);
    write_body(&out, record);
    assert(!out.failed);
    return out.position;
}

static struct id128 read_id(struct reader *in)
{
    struct id128 id;
    reader_bytes(in, id.bytes, sizeof id.bytes);
    return id;
}

static struct key32 read_key(struct reader *in)
{
    struct key32 key;
    reader_bytes(in, key.bytes, sizeof key.bytes);
    return key;
}

bool record_read_result(const void *bytes, size_t length, struct ledger_record *ret_record)
{
    struct reader in = reader_over(bytes, length);
    struct ledger_record record = {0};
    const uint8_t *domain = reader_view(&in, sizeof leaf_domain);
    if (domain == NULL || memcmp(domain, leaf_domain, sizeof leaf_domain) != 0 ||
        reader_u8(&in) != LEDGER_RESULT) {
        return false;
    }
    record.kind = LEDGER_RESULT;
    record.log_index = reader_u64(&in);
    record.log_time_ns = reader_i64(&in);
    record.job = read_id(&in);
    record.index = reader_u32(&in);
    record.attempt = reader_u32(&in);
    record.lease = reader_u64(&in);
    record.provider = read_key(&in);
    record.owner = read_key(&in);
    reader_bytes(&in, record.hash.bytes, sizeof record.hash.bytes);
    record.outcome = reader_u8(&in);
    record.status = reader_u8(&in);
    record.price_micro = reader_i64(&in);
    record.paid_ns = reader_i64(&in);
    record.charge_micro = reader_i64(&in);
    record.batch_index = reader_u64(&in);
    record.level = reader_u8(&in);
    reader_bytes(&in, record.check.bytes, sizeof record.check.bytes);
    if (!reader_finished(&in)) {
        return false;
    }
    *ret_record = record;
    return true;
}
