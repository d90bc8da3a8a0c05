/* The blob port answers BlobGet here, with bytes or with a ticket for the file. */
#include "broker/blob/port/blobs_internal.h"

#include "broker/blob/blob_check.h"
#include "broker/blob/port/blob_slices.h"
#include "broker/blob/port/blob_ticket.h"
#include "broker/blob/port/turns.h"
#include "broker/core/outgoing.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <assert.h>

/* Reads at most `most` bytes of a blob straight into the message that carries them. Sends nothing
 * unless the status is OK and the peer has room. */
static enum blob_status send_data(struct blobs *blobs, const struct asked *asked,
                                  const struct hash32 *hash, uint64_t offset, size_t most,
                                  uint64_t *ret_size)
{
    struct blob_store *store = blobs->config.store;
    static const uint8_t hole;
    size_t length = 0;
    enum blob_status status = blob_store_get(store, hash, offset, 0, NULL, &length, ret_size);
    if (status != BLOB_OK) {
        return status;
    }
    uint64_t left = *ret_size - offset;
    Bourse__V1__BlobData answer = BOURSE__V1__BLOB_DATA__INIT;
    /* The bytes are only read. */
    answer.hash = (ProtobufCBinaryData){sizeof hash->bytes, (uint8_t *)(uintptr_t)hash->bytes};
    answer.offset = offset;
    answer.total = *ret_size;
    answer.data =
        (ProtobufCBinaryData){left < most ? (size_t)left : most, (uint8_t *)(uintptr_t)&hole};
    size_t body_length = protobuf_c_message_get_packed_size(&answer.base);
    struct envelope envelope =
        blobs_head(blobs, MESSAGE_BLOB_DATA, asked->envelope.session, &asked->envelope.id);
    envelope.body_length = (uint32_t)body_length;
    uint8_t *message =
        router_draft(blobs->config.router, &asked->message.client, envelope_size(&envelope));
    if (message == NULL) {
        return BLOB_OK; /* too much waits for the peer, who asks again */
    }
    envelope_write_head(&envelope, message);
    uint8_t *place = codec_encode_around(&answer.base, &hole, message + ENVELOPE_HEAD_BYTES);
    assert(place != NULL);
    status = blob_store_get(store, hash, offset, answer.data.len, place, &length, ret_size);
    if (status == BLOB_OK && length == answer.data.len) {
        /* A failure means that the peer is gone. */
        (void)router_send_draft(blobs->config.router, &asked->message.route);
    } else {
        router_drop_draft(blobs->config.router);
        status = status == BLOB_OK ? BLOB_FAILED : status;
    }
    return status;
}

/* Sends a ticket for the file instead of its first bytes, to a peer on this machine that can take
 * one. Returns false when the peer gets bytes: all of them fit this answer, or too many tickets are
 * open. */
static bool send_ticket(struct blobs *blobs, const struct asked *asked,
                        const Bourse__V1__BlobGet *body, size_t wanted, const struct hash32 *hash)
{
    size_t length = 0;
    uint64_t size = 0;
    if (!body->by_file || body->offset != 0 || !asked->is_local ||
        blob_store_get(blobs->config.store, hash, 0, 0, NULL, &length, &size) != BLOB_OK ||
        size <= BLOB_ROW_BYTES || size <= wanted) {
        return false;
    }
    struct id128 token = entropy_id();
    if (!blob_ticket_promise(&blobs->tickets, &token, asked->account->number, hash,
                             clock_monotonic_ns())) {
        return false;
    }
    Bourse__V1__BlobData answer = BOURSE__V1__BLOB_DATA__INIT;
    answer.hash = body->hash;
    answer.total = size;
    answer.has_ticket = 1;
    answer.ticket = (ProtobufCBinaryData){sizeof token.bytes, token.bytes};
    blobs_reply(blobs, asked, outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_DATA, &answer.base));
    return true;
}

/* Returns true when so much waits to leave for the sender that reading more would help nobody:
 * others would wait behind it, and a sender who does not read would have the broker read for
 * nothing. */
static bool stays_behind(const struct blobs *blobs, struct asked *asked, size_t waiting,
                         int64_t now_ns)
{
    const bool is_shared = blobs_others_ask(blobs, asked->account->number, now_ns);
    if (waiting <= (is_shared ? BLOBS_SEND_SHARED_BYTES : BLOBS_SEND_ALONE_BYTES)) {
        return false;
    }
    asked->behind_ns = asked->behind_ns == 0 ? now_ns : asked->behind_ns;
    return now_ns - asked->behind_ns < BLOBS_BEHIND_MS * NS_PER_MS;
}

bool blobs_get(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobGet *body)
{
    uint32_t owner;
    struct blob_access_job *served;
    struct hash32 hash = codec_hash(body->hash);
    const int64_t now_ns = clock_monotonic_ns();
    size_t wanted = body->length < LIMIT_BLOB_ANSWER_BYTES ? body->length : LIMIT_BLOB_ANSWER_BYTES;
    size_t waiting = router_waiting_key(blobs->config.router, &asked->message.client);
    if (waiting > 0 && waiting + wanted > BLOBS_SEND_KEY_BYTES - LIMIT_BLOB_CHUNK_BYTES) {
        /* The refusal comes before any look-up. The rest of the room is for refusals. */
        blobs_refuse(blobs, asked, REJECT_BUSY, "waiting_bytes", (int64_t)waiting,
                     BLOBS_SEND_KEY_BYTES - LIMIT_BLOB_CHUNK_BYTES);
        return true;
    }
    if (stays_behind(blobs, asked, waiting + wanted, now_ns)) {
        turns_put_off(&blobs->turns, asked->account->number, now_ns + NS_PER_MS);
        return false;
    }
    blobs->steps += 3 * BLOBS_LOOK_STEPS;
    enum blob_status readable = BLOB_NOT_FOUND;
    if (blobs_owner_of(blobs, asked, body->has_job, body->job, &owner, &served)) {
        readable = blobs_may_read(blobs, asked, owner, served, &hash);
    }
    if (readable == BLOB_NOT_FOUND && blobs_copies_may_bring(blobs, asked, &hash, false)) {
        blobs_refuse(blobs, asked, REJECT_UNAVAILABLE, "", 0, 0);
        return true;
    }
    if (readable == BLOB_NOT_FOUND) {
        blobs_refuse(blobs, asked, REJECT_NOT_FOUND, "hash", 0, 0);
        return true;
    }
    if (readable != BLOB_OK) {
        blobs_refuse_unread(blobs, asked, readable, owner, &hash);
        return true;
    }
    if (body->has_check && body->check && blobs_recheck(blobs, &hash)) {
        blobs_refuse(blobs, asked, REJECT_BUSY, "checks", BLOB_CHECKS_MAX, BLOB_CHECKS_MAX);
        return true;
    }
    if (send_ticket(blobs, asked, body, wanted, &hash)) {
        return true;
    }
    uint64_t size = 0;
    enum blob_status status = send_data(blobs, asked, &hash, body->offset, wanted, &size);
    const uint64_t left = size > body->offset ? size - body->offset : 0;
    const size_t sent = left < wanted ? (size_t)left : wanted;
    blobs->steps += sent / BLOBS_BYTES_PER_STEP;
    turns_pace(&blobs->turns, asked->account->number, (int64_t)sent * BLOBS_READ_NS, now_ns);
    if (sent > BLOB_SLICE_BYTES) { /* The thread that seals has to be free in between. */
        turns_leave_time(&blobs->turns, asked->account->number, now_ns - BLOBS_NEAR_MS * NS_PER_MS,
                         now_ns + (int64_t)sent * BLOBS_READ_SHARED_NS);
    }
    if (status == BLOB_WRONG_OFFSET) {
        blobs_refuse(blobs, asked, REJECT_BLOB_OFFSET, "offset", 0, (int64_t)size);
    } else if (status == BLOB_UNCHECKED && blobs_check_file(blobs, &hash)) {
        blobs_refuse(blobs, asked, REJECT_BUSY, "checks", BLOB_CHECKS_MAX, BLOB_CHECKS_MAX);
    } else if (status != BLOB_OK) {
        blobs_refuse_unread(blobs, asked, status, owner, &hash);
    }
    return true;
}
