/* The blob port takes the notes of the other threads here, and writes down what results named. */
#include "broker/blob/port/blobs_internal.h"

#include "base/array.h"
#include "base/text.h"
#include "broker/blob/port/forget_order.h"
#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <inttypes.h>

static void learn(struct blobs *blobs, const struct outgoing *note)
{
    const struct directory_account *owner;
    switch (note->kind) {
    case OUTGOING_ACCOUNT:
        if (!directory_put(blobs->config.directory, &note->opened)) {
            fatal("out of memory");
        }
        return;
    case OUTGOING_SERVE:
        owner = directory_key(blobs->config.directory, &note->owner);
        if (owner != NULL && !blob_access_add(blobs->config.access, note->lease, note->account,
                                              &note->job, owner->number, &note->manifest)) {
            fatal("out of memory");
        }
        return;
    case OUTGOING_GIVEN:
        if (!blob_access_give(blobs->config.access, note->lease, (const struct hash32 *)note->body,
                              note->length / sizeof(struct hash32))) {
            fatal("out of memory");
        }
        return;
    case OUTGOING_NAMED:
        return; /* kept by blobs_learn */
    case OUTGOING_FORGET:
        blobs->order = note->order; /* the keeper gives one at a time */
        return;
    case OUTGOING_UNSERVE:
        blob_access_end(blobs->config.access, note->lease, clock_monotonic_ns());
        return;
    case OUTGOING_REPLY:
    case OUTGOING_PUSH:
    case OUTGOING_EVENT:
    case OUTGOING_INDEX:
    case OUTGOING_DOUBT:
        return;
    }
}

static void keep_names(struct blobs *blobs, struct outgoing *note)
{
    struct outgoing **names = array_with_room(blobs->names, blobs->name_count,
                                              &blobs->name_capacity, sizeof(struct outgoing *));
    if (names == NULL) {
        fatal("out of memory");
    }
    blobs->names = names;
    blobs->names[blobs->name_count++] = note;
    blobs->named_hashes += note->length / sizeof(struct hash32);
}

static void name_all(struct blobs *blobs, const struct outgoing *note)
{
    const struct blob_holder holder = {.provider = note->account, .job = note->job};
    const struct hash32 *hashes = (const struct hash32 *)note->body;
    for (size_t i = 0; i < note->length / sizeof *hashes; i++) {
        if (blob_store_name(blobs->config.store, &holder, &hashes[i]) == BLOB_FAILED) {
            fatal("blobs.db cannot be written: %s", blob_store_error(blobs->config.store));
        }
    }
}

bool blobs_write_names(struct blobs *blobs)
{
    if (blobs->name_count == 0) {
        return true;
    }
    blobs_end_batch(blobs);
    blobs_begin_batch(blobs);
    for (size_t i = 0; i < blobs->name_count; i++) {
        name_all(blobs, blobs->names[i]);
    }
    blobs->in_batch = false;
    switch (blob_store_commit(blobs->config.store)) {
    case BLOB_OK:
        break;
    case BLOB_FAILED:
        fatal("blobs could not be committed: %s; stopped", blob_store_error(blobs->config.store));
    default:
        return false;
    }
    for (size_t i = 0; i < blobs->name_count; i++) {
        outgoing_destroy(&blobs->names[i]);
    }
    blobs->name_count = 0;
    blobs->named_hashes = 0;
    return true;
}

void blobs_do_order(struct blobs *blobs)
{
    struct forget_order *order = blobs->order;
    struct blob_store *store = blobs->config.store;
    if (order == NULL) {
        return;
    }
    (void)blobs_write_names(blobs); /* on a full disk a later call does it */
    blobs_end_batch(blobs);
    if (forget_order_do(order, store) == BLOB_FAILED) {
        fatal("blobs.db cannot be written: %s", blob_store_error(store));
    }
    blobs->order = NULL;
    watermark_raise(&order->done, 1);
}

void blobs_drop_unnamed(struct blobs *blobs, int64_t now_ns)
{
    struct blob_store *store = blobs->config.store;
    for (size_t i = blob_store_holdings(store); i-- > 0;) {
        const struct blob_holding held = blob_store_holding(store, i);
        if (blob_access_find(blobs->config.access, held.holder.provider, &held.holder.job,
                             now_ns) != NULL) {
            continue;
        }
        blobs_end_batch(blobs);
        blobs_begin_batch(blobs);
        const enum blob_status status = blob_store_drop(store, &held.holder, BLOBS_DROPPED_AT_ONCE);
        blobs->in_batch = false;
        if (status == BLOB_FAILED || blob_store_commit(store) == BLOB_FAILED) {
            fatal("blobs.db cannot be written: %s", blob_store_error(store));
        }
        log_debug("provider %" PRIu32 " had stored %" PRIu64 " blobs, %" PRIu64
                  " bytes, that no result named: they go",
                  held.holder.provider, held.count, held.bytes);
        return; /* one at a time: others wait for their answers */
    }
}

void blobs_sweep(struct blobs *blobs)
{
    size_t removed = 0;
    if (blobs->is_swept) {
        return;
    }
    blobs_end_batch(blobs);
    switch (blob_store_sweep(blobs->config.store, &removed)) {
    case BLOB_SWEEP_GOES_ON:
        return;
    case BLOB_SWEEP_ENDED:
        if (removed > 0) {
            log_info("%zu blob%s that a broker had left without a row %s removed", removed,
                     text_plural(removed), removed == 1 ? "is" : "are");
        }
        break;
    case BLOB_SWEEP_GAVE_UP:
        log_warning("the folder of the blobs holds files that blobs.db does not name; %zu were "
                    "removed, the rest stays. If blobs.db is of an old backup, stop the broker and "
                    "put back the one that belongs to these files",
                    removed);
        break;
    }
    blobs->is_swept = true;
}

void blobs_learn(struct blobs *blobs)
{
    for (struct queue_link *link; (link = queue_pop(blobs->config.notes, 0)) != NULL;) {
        struct outgoing *note = QUEUE_ELEMENT(link, struct outgoing, link);
        if (note->kind == OUTGOING_NAMED) {
            keep_names(blobs, note);
            continue;
        }
        learn(blobs, note);
        outgoing_destroy(&note);
    }
}
