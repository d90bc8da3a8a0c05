/* The broker is asked here which blobs it has lost and wants again, and which it lacks. */
#include "runtime/blob/blob_client.h"

#include "protocol/limits.h"
#include "runtime/blob/flight.h"

#include <string.h>

static size_t take_hashes(const Bourse__V1__BlobMissing *missing, struct hash32 *ret_hashes,
                          size_t limit)
{
    size_t count = missing->n_hashes < limit ? missing->n_hashes : limit;
    for (size_t i = 0; i < count; i++) {
        ret_hashes[i] = codec_hash(missing->hashes[i]);
    }
    return count;
}

/* Asks one question, and repeats it until there is an answer. The caller frees the answer with
 * codec_free. Returns NULL when there is no useful answer. */
static ProtobufCMessage *ask(struct blob_client *client, const Bourse__V1__BlobHave *have,
                             struct problem *ret_problem)
{
    struct flights flights = {.count = 0};
    for (unsigned i = 0; i < FLIGHT_TRIES;) {
        struct flight_answer answer;
        (void)flight_send(client, &flights, &(struct flight){0}, MESSAGE_BLOB_HAVE, &have->base);
        switch (flight_await(client, &flights, MESSAGE_BLOB_MISSING, &answer, ret_problem)) {
        case FLIGHT_ROOM:
            i++;
            continue;
        case FLIGHT_LOST:
        case FLIGHT_ENDED:
            problem_set(ret_problem, "the broker's blob port does not answer");
            return NULL;
        case FLIGHT_ANSWERED:
            break;
        }
        if (answer.type == MESSAGE_BLOB_MISSING) {
            return answer.body;
        }
        const bool is_passing =
            answer.type == MESSAGE_REJECT && flight_is_passing(client, (const void *)answer.body);
        codec_free(&answer.body);
        if (!is_passing) {
            break;
        }
    }
    problem_set(ret_problem, "the broker did not say which blobs it lost");
    return NULL;
}

bool blob_client_lost(struct blob_client *client, const struct id128 *job,
                      struct hash32 *ret_hashes, size_t limit, size_t *ret_count,
                      struct problem *ret_problem)
{
    Bourse__V1__BlobHave have = BOURSE__V1__BLOB_HAVE__INIT;
    have.has_lost = have.lost = true;
    if (job != NULL) {
        have.has_job = true;
        have.job = (ProtobufCBinaryData){sizeof job->bytes, (uint8_t *)(uintptr_t)job->bytes};
    }
    *ret_count = 0;
    ProtobufCMessage *missing = ask(client, &have, ret_problem);
    if (missing != NULL) {
        *ret_count = take_hashes((const void *)missing, ret_hashes, limit);
        codec_free(&missing);
        return true;
    }
    return false;
}

static bool is_among(const Bourse__V1__BlobMissing *missing, const struct hash32 *hash)
{
    for (size_t i = 0; i < missing->n_hashes; i++) {
        const struct hash32 listed = codec_hash(missing->hashes[i]);
        if (hash32_equal(&listed, hash)) {
            return true;
        }
    }
    return false;
}

/* Asks about at most LIMIT_BLOB_HASHES blobs. */
static bool ask_of(struct blob_client *client, const struct hash32 *hashes, size_t count,
                   bool *ret_lacks, struct problem *ret_problem)
{
    ProtobufCBinaryData asked[LIMIT_BLOB_HASHES];
    Bourse__V1__BlobHave have = BOURSE__V1__BLOB_HAVE__INIT;
    for (size_t i = 0; i < count; i++) {
        asked[i] =
            (ProtobufCBinaryData){sizeof hashes[i].bytes, (uint8_t *)(uintptr_t)hashes[i].bytes};
    }
    have.n_hashes = count;
    have.hashes = asked;
    ProtobufCMessage *missing = ask(client, &have, ret_problem);
    if (missing == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        ret_lacks[i] = is_among((const void *)missing, &hashes[i]);
    }
    codec_free(&missing);
    return true;
}

bool blob_client_lacks(struct blob_client *client, const struct hash32 *hashes, size_t count,
                       bool *ret_lacks, struct problem *ret_problem)
{
    bool good = true;
    for (size_t from = 0; good && from < count; from += LIMIT_BLOB_HASHES) {
        const size_t left = count - from;
        good = ask_of(client, hashes + from, left < LIMIT_BLOB_HASHES ? left : LIMIT_BLOB_HASHES,
                      ret_lacks + from, ret_problem);
    }
    return good;
}
