#include "broker/copies/copy_change.h"

#include "base/cursor.h"

#include <assert.h>

static void write_key(struct writer *out, enum copy_kind kind, const struct copy_facts *facts)
{
    switch (kind) {
    case COPY_OWNER:
        writer_u32(out, facts->account);
        writer_bytes(out, facts->hash.bytes, sizeof facts->hash.bytes);
        return;
    case COPY_PENDING:
        writer_u32(out, facts->provider);
        writer_bytes(out, facts->job.bytes, sizeof facts->job.bytes);
        writer_bytes(out, facts->hash.bytes, sizeof facts->hash.bytes);
        return;
    case COPY_FORGOTTEN:
        writer_bytes(out, facts->job.bytes, sizeof facts->job.bytes);
        return;
    case COPY_REIGN:
        writer_u64(out, facts->epoch);
        return;
    }
}

static void write_value(struct writer *out, enum copy_kind kind, const struct copy_facts *facts)
{
    switch (kind) {
    case COPY_OWNER:
        writer_u64(out, facts->size);
        writer_u64(out, (uint64_t)facts->since_s);
        return;
    case COPY_PENDING:
        writer_u32(out, facts->account);
        writer_u64(out, facts->size);
        return;
    case COPY_FORGOTTEN:
        writer_u32(out, facts->account);
        writer_u64(out, (uint64_t)facts->at_ms);
        writer_u8(out, facts->reason);
        writer_u8(out, facts->state);
        return;
    case COPY_REIGN:
        writer_u64(out, facts->founded);
        return;
    }
}

struct copy_change copy_change_of(enum copy_kind kind, const struct copy_facts *facts)
{
    struct copy_change change = {.kind = kind};
    struct writer key = writer_over(change.key, sizeof change.key);
    struct writer value = writer_over(change.value, sizeof change.value);
    write_key(&key, kind, facts);
    if (!facts->is_gone) {
        write_value(&value, kind, facts);
    }
    assert(!key.failed);
    assert(!value.failed);
    change.key_length = key.position;
    change.value_length = value.position;
    return change;
}

static bool read_key(struct reader *in, enum copy_kind kind, struct copy_facts *facts)
{
    switch (kind) {
    case COPY_OWNER:
        facts->account = reader_u32(in);
        reader_bytes(in, facts->hash.bytes, sizeof facts->hash.bytes);
        return reader_finished(in);
    case COPY_PENDING:
        facts->provider = reader_u32(in);
        reader_bytes(in, facts->job.bytes, sizeof facts->job.bytes);
        reader_bytes(in, facts->hash.bytes, sizeof facts->hash.bytes);
        return reader_finished(in);
    case COPY_FORGOTTEN:
        reader_bytes(in, facts->job.bytes, sizeof facts->job.bytes);
        return reader_finished(in);
    case COPY_REIGN:
        facts->epoch = reader_u64(in);
        return reader_finished(in);
    }
    return false;
}

static bool read_value(struct reader *in, enum copy_kind kind, struct copy_facts *facts)
{
    switch (kind) {
    case COPY_OWNER:
        facts->size = reader_u64(in);
        facts->since_s = (int64_t)reader_u64(in);
        return reader_finished(in) && facts->size <= INT64_MAX && facts->since_s >= 0;
    case COPY_PENDING:
        facts->account = reader_u32(in);
        facts->size = reader_u64(in);
        return reader_finished(in) && facts->size <= INT64_MAX;
    case COPY_FORGOTTEN:
        facts->account = reader_u32(in);
        facts->at_ms = (int64_t)reader_u64(in);
        facts->reason = reader_u8(in);
        facts->state = reader_u8(in);
        return reader_finished(in);
    case COPY_REIGN:
        facts->founded = reader_u64(in);
        return reader_finished(in);
    }
    return false;
}

bool copy_change_read(const struct copy_change *change, struct copy_facts *ret_facts)
{
    struct copy_facts facts = {.is_gone = change->value_length == 0};
    struct reader key = reader_over(change->key, change->key_length);
    struct reader value = reader_over(change->value, change->value_length);
    if (!read_key(&key, change->kind, &facts) ||
        (!facts.is_gone && !read_value(&value, change->kind, &facts))) {
        return false;
    }
    *ret_facts = facts;
    return true;
}
