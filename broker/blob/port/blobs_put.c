/* The blob port answers BlobHave and BlobPut here, pieces and streams alike. */
#include "broker/blob/port/blobs_internal.h"

#include "broker/blob/port/blob_slices.h"
#include "broker/blob/port/blob_ticket.h"
#include "broker/blob/port/upload_stream.h"
#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "protocol/codec.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <stdlib.h>

bool blobs_have(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobHave *body)
{
    uint32_t owner;
    struct blob_access_job *served;
    if (!blobs_owner_of(blobs, asked, body->has_job, body->job, &owner, &served)) {
        blobs_refuse(blobs, asked, REJECT_NOT_FOUND, "job", 0, 0);
        return true;
    }
    struct blob_lease bounds;
    /* The bounds depend on what the manifest names. */
    const struct blob_lease *lease = blobs_lease_of(blobs, asked, served, &bounds);
    if (body->has_lost && body->lost) {
        blobs->steps += 2 * UNREAD_TOLD * BLOBS_LOOK_STEPS;
        blobs_tell_lost(blobs, asked, owner, served);
        return true;
    }
    blobs_end_batch(blobs); /* "have" promises that the blob is durable */
    if (asked->missing == NULL) {
        asked->missing = calloc(body->n_hashes + 1, sizeof *asked->missing);
        if (asked->missing == NULL) {
            fatal("out of memory");
        }
    }
    for (size_t i = 0; i < BLOBS_SLICE_HASHES && asked->looked_up < body->n_hashes; i++) {
        const ProtobufCBinaryData asked_for = body->hashes[asked->looked_up++];
        struct hash32 hash = codec_hash(asked_for);
        enum blob_status status = blob_store_has(blobs->config.store, owner, lease, &hash);
        blobs->steps += BLOBS_LOOK_STEPS;
        if (status == BLOB_LOST) {
            blobs_log_unread(blobs, &hash); /* found only now */
        }
        if (status == BLOB_NOT_FOUND || status == BLOB_LOST) {
            asked->missing[asked->missing_count++] = asked_for;
        } else if (status != BLOB_OK) {
            blobs_refuse_unread(blobs, asked, status, owner, &hash);
            return true;
        }
    }
    if (asked->looked_up < body->n_hashes) {
        return false;
    }
    Bourse__V1__BlobMissing answer = BOURSE__V1__BLOB_MISSING__INIT;
    answer.n_hashes = asked->missing_count;
    answer.hashes = asked->missing;
    struct outgoing *reply = outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_MISSING, &answer.base);
    const struct claim to = blobs_claim_of(asked);
    if (answer.n_hashes == body->n_hashes || blobs_is_peer(blobs, asked->account) ||
        blobs_are_copied(blobs)) {
        blobs_send_to(blobs, &to, reply);
    } else {
        blobs_promise(blobs, &to, reply); /* the others may be on this disk alone */
    }
    return true;
}

/* Says how much the account would store. A provider learns nothing of its consumer's blobs. */
static struct outgoing *over_quota(const struct blobs *blobs, const struct asked *asked,
                                   const struct blob_lease *lease, uint64_t size)
{
    int64_t stored = 0;
    const bool is_own =
        lease == NULL &&
        blob_store_usage(blobs->config.store, asked->account->number, &stored) == BLOB_OK;
    return outgoing_reject(0, &asked->envelope.id, REJECT_BLOB_QUOTA, is_own ? "stored" : "size",
                           stored + (int64_t)size, blobs->config.quota_bytes);
}

static struct outgoing *put_refusal(const struct blobs *blobs, const struct asked *asked,
                                    const struct blob_lease *lease, enum blob_status status,
                                    uint64_t stored, const Bourse__V1__BlobPut *body)
{
    const struct id128 *id = &asked->envelope.id;
    switch (status) {
    case BLOB_WRONG_HASH:
        return outgoing_reject(0, id, REJECT_BLOB_HASH, "hash", 0, 0);
    case BLOB_TOO_LARGE:
        return outgoing_reject(0, id, REJECT_TOO_LARGE, "size", (int64_t)body->size,
                               blobs->config.size_bytes);
    case BLOB_OVER_QUOTA:
        return over_quota(blobs, asked, lease, body->size);
    case BLOB_OVER_LEASE:
        return outgoing_reject(0, id, REJECT_BLOB_QUOTA, "lease", (int64_t)body->size,
                               lease == NULL ? 0 : (int64_t)lease->bytes_most);
    case BLOB_WRONG_OFFSET:
        return outgoing_reject(0, id, REJECT_BLOB_OFFSET, "offset", (int64_t)stored,
                               (int64_t)body->size);
    case BLOB_TOO_MANY:
        return outgoing_reject(0, id, REJECT_BUSY, "uploads", BLOB_PARTIALS_PER_ACCOUNT,
                               BLOB_PARTIALS_PER_ACCOUNT);
    case BLOB_DISK_FULL:
        return outgoing_reject(0, id, REJECT_STORAGE_FULL, "", 0, 0);
    case BLOB_OK:
    case BLOB_NOT_FOUND:
    case BLOB_MALFORMED:
    case BLOB_LOST:
    case BLOB_UNCHECKED:
    case BLOB_FAILED:
        break;
    }
    return outgoing_reject(0, id, REJECT_MALFORMED, "offset", 0, 0);
}

static struct outgoing *stored_answer(const struct hash32 *hash, uint64_t stored, bool is_complete,
                                      struct id128 *ticket)
{
    Bourse__V1__BlobStored answer = BOURSE__V1__BLOB_STORED__INIT;
    /* The bytes are only read. */
    answer.hash = (ProtobufCBinaryData){sizeof hash->bytes, (uint8_t *)(uintptr_t)hash->bytes};
    answer.stored = stored;
    answer.complete = is_complete;
    answer.has_ticket = ticket != NULL;
    if (ticket != NULL) {
        answer.ticket = (ProtobufCBinaryData){sizeof ticket->bytes, ticket->bytes};
    }
    return outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_STORED, &answer.base);
}

/* Opens a stream for the blob. Returns false when no stream is free; the blob then comes in
 * pieces. */
static bool open_stream(struct blobs *blobs, const struct asked *asked, uint32_t owner,
                        const struct blob_lease *lease, const struct hash32 *hash, uint64_t size,
                        struct id128 *ret_token)
{
    struct blob_store *store = blobs->config.store;
    struct upload_stream_facts facts = {
        .token = entropy_id(), .account = asked->account->number, .hash = *hash, .size = size};
    int end;
    if (!asked->is_local || size <= BLOB_ROW_BYTES ||
        !upload_streams_have_room(blobs->streams, facts.account) ||
        blob_store_lend(store, owner, lease, hash, size, &facts.upload, &facts.fd) != BLOB_OK) {
        return false;
    }
    if (!upload_streams_begin(blobs->streams, &facts, &end)) {
        (void)blob_store_take_back(store, facts.upload, false); /* the upload is dropped */
        return false;
    }
    blobs->claims[upload_streams_find(blobs->streams, facts.account, &facts.token)] =
        (struct claim){.is_made = false};
    *ret_token = facts.token;
    /* The stream ends at once when it has no ticket. */
    return blob_ticket_promise_end(&blobs->tickets, &facts.token, facts.account, end,
                                   clock_monotonic_ns());
}

/* Answers a put without data, from a peer that asks for a stream or has sent all through one.
 * Returns false for any other put, and when the blob is here already. */
static bool put_by_stream(struct blobs *blobs, const struct asked *asked,
                          const Bourse__V1__BlobPut *body, uint32_t owner,
                          const struct blob_lease *lease)
{
    struct hash32 hash = codec_hash(body->hash);
    bool asks = body->has_by_stream && body->by_stream;
    if ((!asks && !body->has_ticket) || body->data.len > 0) {
        return false;
    }
    const enum blob_status status = blob_store_has(blobs->config.store, owner, lease, &hash);
    if (status != BLOB_NOT_FOUND && status != BLOB_LOST) {
        return false; /* the answer of an ordinary put says why it cannot be looked up now */
    }
    if (body->has_ticket) {
        struct id128 token = codec_id(body->ticket);
        int place = upload_streams_find(blobs->streams, asked->account->number, &token);
        if (place >= 0) {
            blobs->claims[place] = blobs_claim_of(asked);
        } else { /* the stream failed: pieces follow, whose answers say why */
            blobs_hold_back(blobs, asked,
                            put_refusal(blobs, asked, lease, BLOB_WRONG_OFFSET, 0, body));
        }
        return true;
    }
    struct id128 token;
    bool is_open = open_stream(blobs, asked, owner, lease, &hash, body->size, &token);
    blobs->steps += is_open ? BLOB_UPLOAD_STEPS + BLOB_FILE_STEPS : 0;
    blobs_hold_back(blobs, asked, stored_answer(&hash, 0, false, is_open ? &token : NULL));
    return true;
}

void blobs_end_streams(struct blobs *blobs)
{
    struct blob_store *store = blobs->config.store;
    struct upload_stream_end end;
    while (upload_streams_take_ended(blobs->streams, &end)) {
        blobs_begin_batch(blobs);
        enum blob_status status =
            blob_store_take_back(store, end.upload, end.status == UPLOAD_STREAM_WHOLE);
        if (status == BLOB_FAILED || end.status == UPLOAD_STREAM_UNSYNCED) {
            fatal("a blob could not be stored: %s; stopped",
                  status == BLOB_FAILED ? blob_store_error(store) : "the disk failed");
        }
        struct claim *claim = &blobs->claims[end.place];
        if (claim->is_made) {
            bool is_stored = status == BLOB_OK;
            blobs_hold_answer(blobs, claim,
                              is_stored ? stored_answer(&end.hash, end.size, true, NULL)
                                        : outgoing_reject(0, &claim->id, REJECT_BLOB_OFFSET,
                                                          "offset", 0, (int64_t)end.size));
        }
        if (claim->is_made && status == BLOB_OK) {
            blobs_make_promise(blobs);
        }
        claim->is_made = false;
    }
    blobs_end_batch(blobs);
}

bool blobs_put(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobPut *body)
{
    uint32_t owner;
    struct blob_access_job *served;
    const struct hash32 hash = codec_hash(body->hash);
    if (!blobs_owner_of(blobs, asked, body->has_job, body->job, &owner, &served)) {
        blobs_refuse(blobs, asked, REJECT_NOT_FOUND, "job", 0, 0);
        return true;
    }
    if (blobs_is_peer(blobs, asked->account) &&
        blob_store_find(blobs->config.store, &hash) == BLOB_NOT_FOUND) {
        /* Another broker brings back what is lost, and nothing else. */
        blobs_refuse(blobs, asked, REJECT_NOT_FOUND, "hash", 0, 0);
        return true;
    }
    if (disk_reserve_state(blobs->config.reserve) != DISK_RESERVE_UNUSED) {
        /* The reserve is not for blobs. */
        blobs_refuse(blobs, asked, REJECT_STORAGE_FULL, "", 0, 0);
        return true;
    }
    struct blob_lease bounds;
    const struct blob_lease *lease = blobs_lease_of(blobs, asked, served, &bounds);
    blobs_begin_batch(blobs);
    blobs->steps += 3 * BLOBS_LOOK_STEPS;
    if (put_by_stream(blobs, asked, body, owner, lease)) {
        return true;
    }
    const struct blob_chunk chunk = blob_slice_chunk(body, owner, lease);
    const int64_t now_ns = clock_monotonic_ns();
    const bool is_shared = blobs_others_ask(blobs, asked->account->number, now_ns);
    const struct blob_chunk slice = blob_slice(&chunk, asked->stored_bytes, is_shared);
    uint64_t stored = 0;
    bool is_complete = false;
    enum blob_status status =
        blob_store_put(blobs->config.store, &slice, now_ns, &stored, &is_complete);
    if (status == BLOB_FAILED) {
        fatal("a blob could not be stored: %s; stopped", blob_store_error(blobs->config.store));
    }
    if (status == BLOB_WRONG_HASH || (status == BLOB_OK && slice.size <= BLOB_ROW_BYTES)) {
        turns_pace(&blobs->turns, asked->account->number,
                   status == BLOB_OK ? BLOBS_ROW_NS : BLOBS_WRONG_NS, now_ns);
    }
    if (status != BLOB_OK) {
        struct outgoing *refusal =
            blobs_checked(put_refusal(blobs, asked, lease, status, stored, body));
        blobs_note_refused(blobs, asked, refusal->refused);
        blobs_hold_back(blobs, asked, refusal);
        return true;
    }
    blobs->steps += blob_slice_steps(&slice, is_complete);
    asked->stored_bytes += slice.length;
    if (!is_complete && asked->stored_bytes < chunk.length) {
        return false;
    }
    blobs_hold_back(blobs, asked, stored_answer(&chunk.hash, stored, is_complete, NULL));
    if (is_complete) {
        blobs_make_promise(blobs);
    }
    return true;
}
