/* A put asks the broker which blobs the broker lacks, then sends those in a window of chunks. After
 * a lost connection the put asks again. A partly stored blob continues where BLOB_OFFSET says.
 * Large blobs go through a stream where the broker offers one (blob_stream.c), and are not sent
 * here. */
#include "base/sha256.h"
#include "base/text.h"
#include "protocol/limits.h"
#include "runtime/blob/sending.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rewinds of one blob, and rounds of a put. A broker that causes more does not get on. */
enum { REWINDS_MAX = 64 };

enum { HASH_TEXT_SIZE = 2 * sizeof(struct hash32) + 1 };

static const char *hash_text(const struct hash32 *hash, char ret_text[HASH_TEXT_SIZE])
{
    text_hex(hash->bytes, sizeof hash->bytes, ret_text);
    return ret_text;
}

void sending_finish(struct put *put, size_t index)
{
    struct item *item = &put->items[index];
    if (!item->is_done) {
        item->is_done = true;
        put->done_bytes += put->sources[index].size;
        if (put->progress != NULL) {
            put->progress(put->context, put->done_bytes, put->total_bytes);
        }
    }
}

void sending_set_job(const struct put *put, protobuf_c_boolean *ret_has,
                     ProtobufCBinaryData *ret_job)
{
    *ret_has = put->job != NULL;
    if (put->job != NULL) {
        /* The bytes are only read. */
        *ret_job = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)put->job->bytes};
    }
}

/* ---- missing blobs ---- */

static bool is_listed(const Bourse__V1__BlobMissing *missing, const struct hash32 *hash)
{
    for (size_t i = 0; i < missing->n_hashes; i++) {
        if (memcmp(missing->hashes[i].data, hash->bytes, sizeof hash->bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns true when an earlier source of the batch has the same bytes; one upload stores both. */
static bool is_repeated(const struct put *put, size_t from, size_t index)
{
    for (size_t i = from; i < index; i++) {
        if (hash32_equal(&put->sources[i].hash, &put->sources[index].hash)) {
            return true;
        }
    }
    return false;
}

static void mark_wanted(struct put *put, size_t from, size_t to,
                        const Bourse__V1__BlobMissing *missing)
{
    for (size_t i = from; i < to; i++) {
        const struct blob_source *source = &put->sources[i];
        bool is_wanted =
            source->size > 0 && is_listed(missing, &source->hash) && !is_repeated(put, from, i);
        if (!is_wanted) {
            sending_finish(put, i);
        }
    }
}

static bool ask_about(struct put *put, size_t from, size_t to)
{
    ProtobufCBinaryData hashes[LIMIT_BLOB_HASHES];
    Bourse__V1__BlobHave have = BOURSE__V1__BLOB_HAVE__INIT;
    have.hashes = hashes;
    for (size_t i = from; i < to; i++) {
        hashes[have.n_hashes++] =
            (ProtobufCBinaryData){32, (uint8_t *)(uintptr_t)put->sources[i].hash.bytes};
    }
    sending_set_job(put, &have.has_job, &have.job);
    return flight_send(put->client, &put->flights, &(struct flight){0}, MESSAGE_BLOB_HAVE,
                       &have.base);
}

enum step { STEP_GOOD, STEP_AGAIN, STEP_FAILED };

/* Asks about one batch, and asks again until there is an answer. */
static enum step learn_batch(struct put *put, size_t from, size_t to, enum reject_code *ret_reject,
                             struct problem *ret_problem)
{
    (void)ask_about(put, from, to); /* on failure the next call waits for room */
    struct flight_answer answer;
    switch (flight_await(put->client, &put->flights, MESSAGE_BLOB_MISSING, &answer, ret_problem)) {
    case FLIGHT_ROOM:
    case FLIGHT_LOST:
        return STEP_AGAIN;
    case FLIGHT_ENDED:
        return STEP_FAILED;
    case FLIGHT_ANSWERED:
        break;
    }
    enum step step = STEP_GOOD;
    if (answer.type == MESSAGE_REJECT) {
        const Bourse__V1__Reject *reject = (const Bourse__V1__Reject *)(const void *)answer.body;
        step = flight_is_passing(put->client, reject) ? STEP_AGAIN : STEP_FAILED;
        if (step == STEP_FAILED) {
            (void)flight_refused(reject, ret_reject, ret_problem);
        }
    } else {
        mark_wanted(put, from, to, (const Bourse__V1__BlobMissing *)(const void *)answer.body);
    }
    codec_free(&answer.body);
    return step;
}

static bool learn_missing(struct put *put, enum reject_code *ret_reject,
                          struct problem *ret_problem)
{
    size_t from = 0;
    while (from < put->count) {
        size_t left = put->count - from;
        size_t to = from + (left < LIMIT_BLOB_HASHES ? left : LIMIT_BLOB_HASHES);
        switch (learn_batch(put, from, to, ret_reject, ret_problem)) {
        case STEP_GOOD:
            from = to;
            break;
        case STEP_AGAIN:
            break;
        case STEP_FAILED:
            return false;
        }
    }
    return true;
}

/* ---- sending ---- */

bool sending_read(const struct blob_source *source, uint64_t offset, size_t length,
                  uint8_t *ret_chunk, struct problem *ret_problem)
{
    if (source->fd < 0 && source->bytes == NULL) {
        return source->read(source->context, source->index, offset, length, ret_chunk, ret_problem);
    }
    if (source->fd < 0) {
        memcpy(ret_chunk, source->bytes + offset, length);
        return true;
    }
    size_t done = 0;
    char text[HASH_TEXT_SIZE];
    while (done < length) {
        ssize_t got = pread(source->fd, ret_chunk + done, length - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            problem_set(ret_problem, "the file with the hash %s cannot be read: %s",
                        hash_text(&source->hash, text), strerror(errno));
            return false;
        }
        if (got == 0) {
            problem_set(ret_problem,
                        "the file with the hash %s became shorter while it was sent: from %" PRIu64
                        " to %" PRIu64 " bytes",
                        hash_text(&source->hash, text), source->size, offset + done);
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/* Skips sources that need no sending. Returns false when nothing is left to send. */
static bool next_to_send(struct put *put)
{
    for (; put->cursor < put->count; put->cursor++) {
        const struct item *item = &put->items[put->cursor];
        if (!item->is_done && item->sent < put->sources[put->cursor].size) {
            return true;
        }
    }
    return false;
}

/* Sends one chunk of the item at the cursor. STEP_AGAIN: the connection takes nothing now. */
static enum step send_chunk(struct put *put, struct problem *ret_problem)
{
    const struct blob_source *source = &put->sources[put->cursor];
    struct item *item = &put->items[put->cursor];
    uint64_t left = source->size - item->sent;
    size_t length = left < FLIGHT_CHUNK_BYTES ? (size_t)left : FLIGHT_CHUNK_BYTES;
    static const uint8_t hole; /* the data is read straight into the message */
    Bourse__V1__BlobPut body = BOURSE__V1__BLOB_PUT__INIT;
    /* The bytes are only read. */
    body.hash = (ProtobufCBinaryData){32, (uint8_t *)(uintptr_t)source->hash.bytes};
    body.size = source->size;
    body.offset = item->sent;
    body.data = (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)&hole};
    sending_set_job(put, &body.has_job, &body.job);
    struct flight flight = {
        .source = put->cursor, .offset = item->sent, .length = (uint32_t)length};
    uint8_t *place = flight_draft(put->client, &flight, MESSAGE_BLOB_PUT, &body.base, &hole);
    if (place == NULL) {
        return STEP_AGAIN;
    }
    if (!sending_read(source, item->sent, length, place, ret_problem)) {
        put->is_unread = true;
        return STEP_FAILED;
    }
    if (!flight_leave(put->client, &put->flights, &flight)) {
        return STEP_AGAIN;
    }
    item->sent += length;
    return STEP_GOOD;
}

static bool fill_window(struct put *put, struct problem *ret_problem)
{
    while (put->flights.count < FLIGHT_MAX && next_to_send(put)) {
        switch (send_chunk(put, ret_problem)) {
        case STEP_GOOD:
            break;
        case STEP_AGAIN:
            return true;
        case STEP_FAILED:
            return false;
        }
    }
    return true;
}

/* Continues a blob from `offset`; answers to the chunks already sent no longer matter. */
static bool rewind_to(struct put *put, size_t index, uint64_t offset, struct problem *ret_problem)
{
    struct item *item = &put->items[index];
    if (offset > put->sources[index].size || ++item->rewinds > REWINDS_MAX) {
        char text[HASH_TEXT_SIZE];
        problem_set(ret_problem,
                    "the broker cannot say where the blob %s of %" PRIu64
                    " bytes continues: it named byte %" PRIu64 " in rewind %u",
                    hash_text(&put->sources[index].hash, text), put->sources[index].size, offset,
                    item->rewinds);
        return false;
    }
    for (size_t i = 0; i < put->flights.count; i++) {
        put->flights.list[i].is_stale =
            put->flights.list[i].is_stale || put->flights.list[i].source == index;
    }
    item->sent = offset;
    if (offset == put->sources[index].size) {
        sending_finish(put, index); /* another sender stored it meanwhile */
    } else if (index < put->cursor) {
        put->cursor = index;
    }
    return true;
}

static bool take_refusal(struct put *put, const struct flight *flight,
                         const Bourse__V1__Reject *reject, enum reject_code *ret_reject,
                         struct problem *ret_problem)
{
    if (reject->code == REJECT_BLOB_OFFSET && reject->has_value && reject->value >= 0) {
        return rewind_to(put, flight->source, (uint64_t)reject->value, ret_problem);
    }
    if (flight_is_passing(put->client, reject)) {
        put->items[flight->source].rewinds = 0; /* a busy broker may still get on */
        return rewind_to(put, flight->source, flight->offset, ret_problem);
    }
    return flight_refused(reject, ret_reject, ret_problem);
}

static bool take_answer(struct put *put, struct flight_answer *answer, enum reject_code *ret_reject,
                        struct problem *ret_problem)
{
    const struct flight *flight = &answer->flight;
    bool good = true;
    if (answer->type == MESSAGE_REJECT) {
        const Bourse__V1__Reject *reject = (const Bourse__V1__Reject *)(const void *)answer->body;
        good = flight->is_stale || put->items[flight->source].is_done ||
               take_refusal(put, flight, reject, ret_reject, ret_problem);
    } else {
        const Bourse__V1__BlobStored *stored =
            (const Bourse__V1__BlobStored *)(const void *)answer->body;
        if (stored->complete &&
            memcmp(stored->hash.data, put->sources[flight->source].hash.bytes, 32) == 0) {
            sending_finish(put, flight->source);
        }
    }
    codec_free(&answer->body);
    return good;
}

static bool all_done(const struct put *put)
{
    for (size_t i = 0; i < put->count; i++) {
        if (!put->items[i].is_done) {
            return false;
        }
    }
    return true;
}

/* Sends the wanted blobs. STEP_AGAIN: the connection was lost, or the broker took all chunks
 * without storing some blob. The caller asks again then. */
static enum step send_wanted(struct put *put, enum reject_code *ret_reject,
                             struct problem *ret_problem)
{
    for (;;) {
        if (!fill_window(put, ret_problem)) {
            return STEP_FAILED;
        }
        if (put->flights.count == 0 && !next_to_send(put)) {
            return all_done(put) ? STEP_GOOD : STEP_AGAIN;
        }
        struct flight_answer answer;
        switch (
            flight_await(put->client, &put->flights, MESSAGE_BLOB_STORED, &answer, ret_problem)) {
        case FLIGHT_ANSWERED:
            if (!take_answer(put, &answer, ret_reject, ret_problem)) {
                return STEP_FAILED;
            }
            break;
        case FLIGHT_ROOM:
            break;
        case FLIGHT_LOST:
            return STEP_AGAIN;
        case FLIGHT_ENDED:
            return STEP_FAILED;
        }
    }
}

static bool run(struct put *put, enum reject_code *ret_reject, struct problem *ret_problem)
{
    for (unsigned round = 0; round < REWINDS_MAX; round++) {
        put->cursor = 0;
        for (size_t i = 0; i < put->count; i++) {
            put->items[i].sent = 0;
        }
        if (!learn_missing(put, ret_reject, ret_problem)) {
            return false;
        }
        if (!sending_by_stream(put, ret_problem)) {
            return false;
        }
        switch (send_wanted(put, ret_reject, ret_problem)) {
        case STEP_GOOD:
            return true;
        case STEP_AGAIN:
            break;
        case STEP_FAILED:
            return false;
        }
    }
    problem_set(ret_problem, "the broker has not stored every blob after %d rounds of sending",
                REWINDS_MAX);
    return false;
}

bool blob_client_put(struct blob_client *client, const struct blob_source *sources, size_t count,
                     const struct id128 *job, blob_progress *progress, void *context,
                     enum reject_code *ret_reject, bool *ret_unread, struct problem *ret_problem)
{
    *ret_reject = REJECT_NONE;
    struct put put = {.client = client,
                      .sources = sources,
                      .count = count,
                      .job = job,
                      .progress = progress,
                      .context = context};
    put.items = calloc(count == 0 ? 1 : count, sizeof *put.items);
    bool good = put.items != NULL;
    if (good) {
        for (size_t i = 0; i < count; i++) {
            put.total_bytes += sources[i].size;
        }
        good = run(&put, ret_reject, ret_problem);
    } else {
        problem_set(ret_problem, "out of memory for sending files");
    }
    if (ret_unread != NULL) {
        *ret_unread = put.is_unread;
    }
    free(put.items);
    return good;
}
