/* A snapshot is the whole state as bytes, and the state hash is the sum of its records' hashes.
 *
 * Every entity is one record, written by the cursor. The sum of the records' SHA-256 (four lanes of
 * 64 bits, modulo 2^64) does not depend on order, so it is updated record by record.
 *
 *     snapshot: "BS12", u32 record count, then records: u8 type, u32 length, fields
 *
 * Handles, lists, lanes and timers are left out: loading rebuilds them. */
#include "exchange/snapshot/snapshot.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "exchange/lifecycle.h"
#include "exchange/snapshot/snapshot_put.h"
#include "exchange/state/held.h"
#include "exchange/state/job_records.h"
#include "exchange/state/tracking.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SNAPSHOT_HEAD_BYTES = 8, RECORD_HEAD_BYTES = 5 };

/* ---------------------------------------------------------------- walking all records */

typedef void on_record(void *context, const struct tracked *tracked);

static void walk_members(const struct exchange *exchange, on_record *action, void *context)
{
    action(context, &exchange->tracked);
    if (exchange->rules != 0) {
        action(context, &exchange->limits_tracked);
    }
    for (uint32_t i = 0; i < book_cell_bound(exchange->book); i++) {
        if (exchange->cells[i].tracked.type != 0) {
            action(context, &exchange->cells[i].tracked);
        }
    }
    for (uint32_t i = 0; i < book_class_bound(exchange->book); i++) {
        if (exchange->classes[i].tracked.type != 0) {
            action(context, &exchange->classes[i].tracked);
        }
    }
    for (uint32_t i = 0; i < exchange->member_count; i++) {
        action(context, &exchange->members[i]->tracked);
    }
    for (uint32_t i = 0; i < exchange->member_count; i++) {
        if (exchange->members[i]->standing != NULL) {
            action(context, &exchange->members[i]->standing->tracked);
        }
    }
    for (struct list_link *at = exchange->invitation_list.next; at != &exchange->invitation_list;
         at = at->next) {
        action(context, &LIST_ELEMENT(at, struct invitation, all)->tracked);
    }
    for (struct list_link *at = exchange->id_ages.next; at != &exchange->id_ages; at = at->next) {
        action(context, &LIST_ELEMENT(at, struct id_entry, age)->tracked);
    }
}

static void walk_providers(const struct exchange *exchange, on_record *action, void *context)
{
    for (struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        action(context, &provider->tracked);
        for (struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            struct device *device = LIST_ELEMENT(link, struct device, of_provider);
            action(context, &device->tracked);
            if (device->ask != NULL) {
                action(context, &device->ask->tracked);
            }
        }
    }
}

static void walk_jobs(const struct exchange *exchange, on_record *action, void *context)
{
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        action(context, &job->tracked);
        if (job->graph != NULL) {
            action(context, &job->graph->tracked);
        }
        for (uint32_t i = 0; job->graph != NULL && i < job->subtasks; i++) {
            if (job->graph->given[i] != NULL) {
                action(context, &job->graph->given[i]->tracked);
            }
        }
        uint32_t pages =
            job->pages == NULL ? 0 : (job->subtasks + PAGE_SUBTASKS - 1) / PAGE_SUBTASKS;
        for (uint32_t i = 0; i < pages; i++) {
            if (job->pages[i] != NULL) {
                action(context, &job->pages[i]->tracked);
            }
        }
        for (uint32_t i = 0; job->saved != NULL && i < job->subtasks; i++) {
            if (job->saved[i] != NULL) {
                action(context, &job->saved[i]->tracked);
            }
        }
        for (struct list_link *link = job->leases.next; link != &job->leases; link = link->next) {
            action(context, &LIST_ELEMENT(link, struct lease, of_job)->tracked);
        }
        for (uint32_t i = 0; held_for_check(job, i); i++) {
            const struct held *held = job->checks->held[i];
            if (held != NULL) {
                action(context, &held->tracked);
            }
            if (held != NULL && held->accusation.tracked.type != 0) {
                action(context, &held->accusation.tracked);
            }
        }
        for (struct list_link *link = job_has_juries(job) ? job->checks->all_juries.next : NULL;
             link != NULL && link != &job->checks->all_juries; link = link->next) {
            action(context, &LIST_ELEMENT(link, struct jury, all)->tracked);
        }
    }
}

static void walk_all(const struct exchange *exchange, on_record *action, void *context)
{
    walk_members(exchange, action, context);
    walk_providers(exchange, action, context);
    walk_jobs(exchange, action, context);
}

/* ---------------------------------------------------------------- the hash */

static void put_record(struct writer *out, const struct exchange *exchange,
                       const struct tracked *tracked)
{
    writer_u8(out, tracked->type);
    snapshot_put_entity(out, exchange, tracked);
}

/* Hashes one record, its type in front. Most records fit the stack; a lease with much in flight
 * does not. */
static bool record_hash(const struct exchange *exchange, const struct tracked *tracked,
                        struct hash32 *ret_hash)
{
    uint8_t small[4096];
    struct writer out = writer_over(small, sizeof small);
    put_record(&out, exchange, tracked);
    if (!out.failed) {
        *ret_hash = sha256_of(small, out.position);
        return true;
    }
    struct writer count = writer_counting();
    put_record(&count, exchange, tracked);
    uint8_t *bytes = malloc(count.position);
    if (bytes == NULL) {
        return false;
    }
    out = writer_over(bytes, count.position);
    put_record(&out, exchange, tracked);
    assert(!out.failed);
    *ret_hash = sha256_of(bytes, out.position);
    free(bytes);
    return true;
}

static struct hash32 total_as_hash(const uint64_t total[4])
{
    struct hash32 hash;
    struct writer out = writer_over(hash.bytes, sizeof hash.bytes);
    for (size_t i = 0; i < 4; i++) {
        writer_u64(&out, total[i]);
    }
    return hash;
}

struct hash32 exchange_state_hash(struct exchange *exchange)
{
    while (!list_empty(&exchange->dirty)) {
        struct tracked *tracked = LIST_ELEMENT(exchange->dirty.next, struct tracked, dirty);
        list_remove(&tracked->dirty);
        tracked->is_dirty = false;
        if (tracked->is_counted) {
            tracking_total_change(exchange->total, &tracked->hash, false);
        }
        tracked->is_counted = record_hash(exchange, tracked, &tracked->hash);
        if (tracked->is_counted) {
            tracking_total_change(exchange->total, &tracked->hash, true);
        } else {
            exchange->is_out_of_memory = true;
        }
    }
    return total_as_hash(exchange->total);
}

struct walk_sum {
    const struct exchange *exchange;
    uint64_t total[4];
};

static void add_record(void *context, const struct tracked *tracked)
{
    struct walk_sum *sum = context;
    struct hash32 hash;
    if (record_hash(sum->exchange, tracked, &hash)) {
        tracking_total_change(sum->total, &hash, true);
    }
}

struct hash32 exchange_state_hash_walk(const struct exchange *exchange)
{
    struct walk_sum sum = {.exchange = exchange};
    walk_all(exchange, add_record, &sum);
    return total_as_hash(sum.total);
}

/* ---------------------------------------------------------------- saving */

struct saving {
    const struct exchange *exchange;
    struct writer out;
    uint32_t count;
};

static void save_record(void *context, const struct tracked *tracked)
{
    struct saving *saving = context;
    struct writer size = writer_counting();
    snapshot_put_entity(&size, saving->exchange, tracked);
    writer_u8(&saving->out, tracked->type);
    writer_u32(&saving->out, (uint32_t)size.position);
    snapshot_put_entity(&saving->out, saving->exchange, tracked);
    saving->count++;
}

uint8_t *exchange_save(const struct exchange *exchange, size_t *ret_length)
{
    struct saving measure = {.exchange = exchange, .out = writer_counting()};
    walk_all(exchange, save_record, &measure);
    size_t length = SNAPSHOT_HEAD_BYTES + measure.out.position;
    uint8_t *bytes = malloc(length);
    if (bytes == NULL) {
        return NULL;
    }
    struct saving saving = {.exchange = exchange, .out = writer_over(bytes, length)};
    writer_bytes(&saving.out, SNAPSHOT_MAGIC, 4);
    writer_u32(&saving.out, measure.count);
    walk_all(exchange, save_record, &saving);
    assert(!saving.out.failed && saving.out.position == length);
    *ret_length = length;
    return bytes;
}

struct comparing {
    const struct exchange *exchange;
    struct reader in;
    bool same;
};

static void compare_record(void *context, const struct tracked *tracked)
{
    struct comparing *comparing = context;
    if (!comparing->same) {
        return;
    }
    struct writer size = writer_counting();
    snapshot_put_entity(&size, comparing->exchange, tracked);
    bool is_alike =
        reader_u8(&comparing->in) == tracked->type && reader_u32(&comparing->in) == size.position;
    const uint8_t *expected = is_alike ? reader_view(&comparing->in, size.position) : NULL;
    uint8_t *bytes = expected == NULL ? NULL : malloc(size.position + 1);
    comparing->same = bytes != NULL;
    if (bytes != NULL) {
        struct writer out = writer_over(bytes, size.position);
        snapshot_put_entity(&out, comparing->exchange, tracked);
        comparing->same = memcmp(bytes, expected, size.position) == 0;
    }
    free(bytes);
}

bool exchange_saves_as(const struct exchange *exchange, const uint8_t *bytes, size_t length)
{
    struct comparing comparing = {
        .exchange = exchange, .in = reader_over(bytes, length), .same = true};
    (void)reader_view(&comparing.in, SNAPSHOT_HEAD_BYTES);
    walk_all(exchange, compare_record, &comparing);
    return comparing.same && reader_finished(&comparing.in);
}
