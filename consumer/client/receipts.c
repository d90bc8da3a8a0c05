/* This file holds the calls of libbourse that fetch one receipt, or the receipts of a whole job. */
#include "consumer/client/client.h"

#include "base/cleanup.h"
#include "consumer/job/tasks.h"
#include "ledger/receipt.h"
#include "protocol/reject.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool client_copy_text(ProtobufCBinaryData from, char **ret_text, struct bourse_error *error)
{
    char *text = malloc(from.len + 1);
    if (text == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (from.len > 0) {
        memcpy(text, from.data, from.len);
    }
    text[from.len] = '\0';
    *ret_text = text;
    return true;
}

/* The check uses the market's own log key, so that nobody keeps a receipt without value. */
static bool check_receipt(struct bourse *bourse, const char *id, uint32_t index, const char *text,
                          size_t length, struct bourse_error *error)
{
    char verifier[CHECKPOINT_TEXT_SIZE];
    struct bourse_verified verified;
    struct bourse_error why = {.status = BOURSE_OK};
    checkpoint_verifier(bourse->market.origin, &bourse->market.log_key, verifier);
    if (!bourse_verify(text, length, verifier, &verified, &why)) {
        char label[TASKS_LABEL_SIZE];
        tasks_label_of(bourse, id, index, label);
        return client_fail(error, why.status,
                           "the broker's receipt of %s proves nothing: %s; nothing was written. "
                           "The answer or the broker's ledger is damaged: ask again, then tell "
                           "the operator, whose `bourse-broker audit` finds out",
                           label, why.text);
    }
    if (strcasecmp(verified.job, id) != 0 || verified.index != index) {
        return client_fail(error, BOURSE_UNVERIFIED,
                           "the broker's receipt is of subtask %" PRIu32
                           " of job %.8s, not of what was asked for; nothing was written",
                           verified.index, verified.job);
    }
    return true;
}

bool bourse_receipt(struct bourse *bourse, const char *id, uint32_t index, char **ret_text,
                    size_t *ret_length, struct bourse_error *ret_error)
{
    struct id128 job;
    if (!client_id_read(id, &job, ret_error)) {
        return false;
    }
    Bourse__V1__ReceiptRequest body = BOURSE__V1__RECEIPT_REQUEST__INIT;
    body.job = client_bytes(job.bytes, sizeof job.bytes);
    body.index = index;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    struct bourse_error error;
    if (!client_call(bourse, MESSAGE_RECEIPT_REQUEST, &body.base, MESSAGE_RECEIPT_REPLY, &answer,
                     &error)) {
        if (error.reject == REJECT_NOT_FOUND) {
            return client_no_result(bourse, id, index, ret_error);
        }
        if (ret_error != NULL) {
            *ret_error = error;
        }
        return false;
    }
    const Bourse__V1__ReceiptReply *reply = (const void *)answer;
    if (!check_receipt(bourse, id, index, (const char *)reply->receipt.data, reply->receipt.len,
                       ret_error) ||
        !client_copy_text(reply->receipt, ret_text, ret_error)) {
        return false;
    }
    *ret_length = reply->receipt.len;
    return true;
}

/* ---------------------------------------------------------------- many receipts */

struct fetching {
    struct bourse *bourse;
    const char *id;
    struct id128 job;
    const uint32_t *indices; /* ascending */
    size_t count;
    bool *is_done; /* by place in `indices` */
    bourse_receipt_visitor *visitor;
    void *context;
    bool is_stopped; /* by the visitor */
    struct receipt_known known;
    struct receipt receipt; /* of the row before, until the next is read */
    char text[RECEIPT_TEXT_MAX];
};

static int by_index(const void *wanted, const void *item)
{
    const uint32_t a = *(const uint32_t *)wanted;
    const uint32_t b = *(const uint32_t *)item;
    return (a > b) - (a < b);
}

/* Puts the row's own hashes before those that the row before shares. Returns false when the row
 * names more hashes than there are. */
static bool join_path(struct hash32 *path, size_t *length, size_t most, ProtobufCBinaryData own,
                      uint32_t shared)
{
    const size_t count = own.len / sizeof path[0];
    if (own.len % sizeof path[0] != 0 || shared > *length || count + shared > most) {
        return false;
    }
    memmove(&path[count], &path[*length - shared], shared * sizeof path[0]);
    if (count > 0) {
        memcpy(path, own.data, own.len);
    }
    *length = count + shared;
    return true;
}

/* Reads a row over the receipt of the row before, which it builds on. */
static bool read_receipt_row(const Bourse__V1__ReceiptRow *row, struct receipt *receipt)
{
    size_t batch_length = receipt->batch_path_length;
    if (!record_read_result(row->leaf.data, row->leaf.len, &receipt->leaf) ||
        !join_path(receipt->batch_path, &batch_length, RECEIPT_BATCH_PATH_MAX, row->batch_path,
                   row->batch_shared) ||
        !join_path(receipt->path, &receipt->path_length, MERKLE_LEVELS_MAX, row->path,
                   row->shared) ||
        row->batch_sides >> batch_length != 0 || row->result.len > RECEIPT_RESULT_MAX) {
        return false;
    }
    receipt->batch_path_length = (uint8_t)batch_length;
    receipt->batch_sides = (uint8_t)row->batch_sides;
    receipt->leaf_index = row->leaf_index;
    receipt->result = row->result.data;
    receipt->result_length = row->result.len;
    if (row->has_signature) {
        memcpy(receipt->signature.bytes, row->signature.data, sizeof receipt->signature.bytes);
    }
    return true;
}

static bool deliver_row(struct fetching *fetching, const Bourse__V1__ReceiptRow *row,
                        struct bourse_error *error)
{
    struct receipt *receipt = &fetching->receipt;
    const struct market *market = &fetching->bourse->market;
    enum receipt_status status = RECEIPT_MALFORMED;
    if (read_receipt_row(row, receipt)) {
        status = receipt_check(receipt, market->origin, &market->log_key, &fetching->known);
    }
    if (status == RECEIPT_OK && !client_receipt_agrees(receipt)) {
        status = RECEIPT_WRONG_RESULT;
    }
    if (status != RECEIPT_OK) {
        return client_fail(error, BOURSE_UNVERIFIED,
                           "a receipt of job %.8s from the broker proves nothing: %s; it was not "
                           "written. The answer or the broker's ledger is damaged: ask again, then "
                           "tell the operator, whose `bourse-broker audit` finds out",
                           fetching->id, receipt_status_text(status));
    }
    if (!id128_equal(&receipt->leaf.job, &fetching->job)) {
        return client_fail(error, BOURSE_UNVERIFIED,
                           "the broker sent a receipt of another job than %.8s, which was asked "
                           "for; it was not written",
                           fetching->id);
    }
    const uint32_t *wanted = bsearch(&receipt->leaf.index, fetching->indices, fetching->count,
                                     sizeof *fetching->indices, by_index);
    if (wanted == NULL || fetching->is_done[wanted - fetching->indices]) {
        return true;
    }
    const size_t length = receipt_write(receipt, fetching->text, sizeof fetching->text);
    if (length == 0) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    fetching->is_done[wanted - fetching->indices] = true;
    fetching->is_stopped = !fetching->visitor(fetching->context, *wanted, fetching->text, length);
    return true;
}

/* Fetches pages until the last subtask that is wanted. Returns false with reject TYPE when the
 * broker does not know the request. */
static bool fetch_pages(struct fetching *fetching, struct bourse_error *error)
{
    const uint32_t last = fetching->indices[fetching->count - 1];
    uint32_t from = fetching->indices[0];
    for (bool more = true; more && !fetching->is_stopped;) {
        Bourse__V1__ReceiptsRequest body = BOURSE__V1__RECEIPTS_REQUEST__INIT;
        body.job = client_bytes(fetching->job.bytes, sizeof fetching->job.bytes);
        body.has_from = from > 0;
        body.from = from;
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(fetching->bourse, MESSAGE_RECEIPTS_REQUEST, &body.base,
                         MESSAGE_RECEIPTS_REPLY, &answer, error)) {
            return false;
        }
        const Bourse__V1__ReceiptsReply *reply = (const void *)answer;
        char note[CHECKPOINT_TEXT_SIZE];
        if (reply->note.len >= sizeof note) {
            return client_fail(error, BOURSE_UNVERIFIED,
                               "the broker's checkpoint has %zu bytes, at most %d are possible",
                               reply->note.len, CHECKPOINT_TEXT_SIZE - 1);
        }
        memcpy(note, reply->note.data, reply->note.len);
        note[reply->note.len] = '\0';
        fetching->receipt =
            (struct receipt){.cluster = fetching->bourse->market.cluster, .checkpoint = note};
        for (size_t i = 0; i < reply->n_rows && !fetching->is_stopped; i++) {
            if (!deliver_row(fetching, reply->rows[i], error)) {
                return false;
            }
        }
        more = reply->has_next && reply->next > from && reply->next <= last;
        from = reply->next;
    }
    return true;
}

/* Fetches one by one what no page had: all from an older broker, and what no checkpoint covered
 * when its page was made. */
static bool fetch_rest(struct fetching *fetching, struct bourse_error *error)
{
    for (size_t i = 0; i < fetching->count && !fetching->is_stopped; i++) {
        char *text = NULL;
        size_t length = 0;
        if (fetching->is_done[i]) {
            continue;
        }
        if (!bourse_receipt(fetching->bourse, fetching->id, fetching->indices[i], &text, &length,
                            error)) {
            return false;
        }
        fetching->is_stopped =
            !fetching->visitor(fetching->context, fetching->indices[i], text, length);
        free(text);
    }
    return true;
}

bool bourse_receipts(struct bourse *bourse, const char *id, const uint32_t *indices, size_t count,
                     bourse_receipt_visitor *visitor, void *context, struct bourse_error *ret_error)
{
    struct id128 job;
    struct bourse_error error = {.status = BOURSE_OK};
    if (!client_id_read(id, &job, ret_error) || count == 0) {
        return count == 0;
    }
    for (size_t i = 1; i < count; i++) {
        if (indices[i - 1] >= indices[i]) {
            return client_fail(ret_error, BOURSE_USAGE,
                               "the subtasks %" PRIu32 " and %" PRIu32 " of job %.8s are not in "
                               "ascending order",
                               indices[i - 1], indices[i], id);
        }
    }
    struct fetching *fetching = calloc(1, sizeof *fetching);
    bool *is_done = calloc(count, sizeof *is_done);
    if (fetching == NULL || is_done == NULL) {
        free(fetching);
        free(is_done);
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    *fetching = (struct fetching){.bourse = bourse,
                                  .id = id,
                                  .job = job,
                                  .indices = indices,
                                  .count = count,
                                  .is_done = is_done,
                                  .visitor = visitor,
                                  .context = context};
    bool ok = count == 1 || fetch_pages(fetching, &error); /* a page has hundreds */
    const bool goes_on = ok || error.reject == REJECT_TYPE || error.reject == REJECT_NOT_FOUND;
    ok = goes_on && fetch_rest(fetching, &error);
    if (!ok && ret_error != NULL) {
        *ret_error = error;
    }
    free(is_done);
    free(fetching);
    return ok;
}
