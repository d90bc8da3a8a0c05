/* The blob port sends its answers here; answers to puts wait for the commit of their batch. */
#include "broker/blob/port/blobs_internal.h"

#include "broker/blob/port/turns.h"
#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "protocol/limits.h"

#include <assert.h>

struct envelope blobs_head(const struct blobs *blobs, enum message_type type, uint64_t session,
                           const struct id128 *id)
{
    return (struct envelope){.version = ENVELOPE_VERSION,
                             .type = (uint16_t)type,
                             .session = session,
                             .id = *id,
                             .created_ms = logtime_now(blobs->config.clock) / NS_PER_MS};
}

static void send(struct blobs *blobs, const struct route *route, const struct key32 *client,
                 uint64_t session, const struct outgoing *outgoing)
{
    struct envelope envelope = blobs_head(blobs, outgoing->type, session, &outgoing->id);
    envelope.body = outgoing->body;
    envelope.body_length = (uint32_t)outgoing->length;
    size_t size = envelope_size(&envelope);
    assert(size <= LIMIT_BLOB_MESSAGE_BYTES); /* a chunk and its head */
    envelope_write(&envelope, blobs->buffer, LIMIT_BLOB_MESSAGE_BYTES);
    /* A peer that is gone or does not read will ask again. */
    (void)router_send(blobs->config.router, route, client, blobs->buffer, size);
}

struct outgoing *blobs_checked(struct outgoing *outgoing)
{
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    return outgoing;
}

void blobs_send_to(struct blobs *blobs, const struct claim *to, struct outgoing *outgoing)
{
    outgoing = blobs_checked(outgoing);
    outgoing->id = to->id;
    send(blobs, &to->route, &to->client, to->session, outgoing);
    outgoing_destroy(&outgoing);
}

void blobs_reply(struct blobs *blobs, const struct asked *asked, struct outgoing *outgoing)
{
    outgoing = blobs_checked(outgoing);
    outgoing->id = asked->envelope.id;
    send(blobs, &asked->message.route, &asked->message.client, asked->envelope.session, outgoing);
    outgoing_destroy(&outgoing);
}

void blobs_note_refused(struct blobs *blobs, const struct asked *asked, enum reject_code code)
{
    if (asked->account != NULL && !blobs_is_peer(blobs, asked->account)) {
        refusals_note(blobs->config.refusals, asked->account->number, code,
                      (enum message_type)asked->envelope.type);
    }
}

void blobs_refuse(struct blobs *blobs, const struct asked *asked, enum reject_code code,
                  const char *field, int64_t value, int64_t limit)
{
    blobs_note_refused(blobs, asked, code);
    blobs_reply(blobs, asked, outgoing_reject(0, &asked->envelope.id, code, field, value, limit));
}

void blobs_refuse_frozen(struct blobs *blobs, const struct asked *asked)
{
    blobs_note_refused(blobs, asked, REJECT_FROZEN);
    blobs_reply(blobs, asked,
                outgoing_reject_reason(0, &asked->envelope.id, REJECT_FROZEN, "account",
                                       asked->account->frozen_why));
}

void blobs_end_batch(struct blobs *blobs)
{
    if (!blobs->in_batch) {
        return;
    }
    enum blob_status status = blob_store_commit(blobs->config.store);
    if (status == BLOB_FAILED) {
        fatal("blobs could not be committed: %s; stopped", blob_store_error(blobs->config.store));
    }
    const bool are_copied = blobs_are_copied(blobs);
    for (size_t i = 0; i < blobs->answer_count; i++) {
        struct answer *answer = &blobs->answers[i];
        if (status == BLOB_OK && answer->is_promise && !are_copied) {
            const struct claim to = {.route = answer->route,
                                     .client = answer->client,
                                     .session = answer->session,
                                     .id = answer->outgoing->id};
            blobs_promise(blobs, &to, answer->outgoing);
            continue;
        }
        if (status != BLOB_OK) {
            struct id128 id = answer->outgoing->id;
            outgoing_destroy(&answer->outgoing);
            answer->outgoing =
                blobs_checked(outgoing_reject(0, &id, REJECT_STORAGE_FULL, "", 0, 0));
        }
        send(blobs, &answer->route, &answer->client, answer->session, answer->outgoing);
        outgoing_destroy(&answer->outgoing);
    }
    blobs->answer_count = 0;
    blobs->in_batch = false;
}

void blobs_begin_batch(struct blobs *blobs)
{
    if (!blobs->in_batch && blob_store_begin(blobs->config.store) != BLOB_OK) {
        fatal("blobs.db cannot be written: %s", blob_store_error(blobs->config.store));
    }
    blobs->in_batch = true;
}

void blobs_hold_answer(struct blobs *blobs, const struct claim *to, struct outgoing *outgoing)
{
    assert(blobs->answer_count < BATCH_MESSAGES);
    outgoing = blobs_checked(outgoing);
    outgoing->id = to->id;
    blobs->answers[blobs->answer_count++] = (struct answer){
        .route = to->route, .client = to->client, .session = to->session, .outgoing = outgoing};
}

void blobs_make_promise(struct blobs *blobs)
{
    assert(blobs->answer_count > 0);
    struct answer *answer = &blobs->answers[blobs->answer_count - 1];
    answer->is_promise =
        blobs->config.self == NULL || !key32_equal(&answer->client, blobs->config.self);
}

struct claim blobs_claim_of(const struct asked *asked)
{
    return (struct claim){.is_made = true,
                          .route = asked->message.route,
                          .client = asked->message.client,
                          .session = asked->envelope.session,
                          .id = asked->envelope.id};
}

void blobs_hold_back(struct blobs *blobs, const struct asked *asked, struct outgoing *outgoing)
{
    const struct claim to = blobs_claim_of(asked);
    blobs_hold_answer(blobs, &to, outgoing);
}

bool blobs_others_ask(const struct blobs *blobs, uint32_t account, int64_t now_ns)
{
    return turns_are_contended(&blobs->turns, account, now_ns - BLOBS_OTHERS_MS * NS_PER_MS);
}
