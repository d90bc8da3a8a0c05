/* What the broker has lost of the sender's own blobs, and is asked for. */
#include "runtime/blob/blob_client.h"

#include "runtime/blob/blob_client_internal.h"

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

bool blob_client_lost(struct blob_client *client, struct hash32 *ret_hashes, size_t limit,
                      size_t *ret_count, struct problem *ret_problem)
{
    struct flights flights = {.count = 0};
    struct flight_answer answer;
    enum flight_status status = FLIGHT_ROOM;
    Bourse__V1__BlobHave have = BOURSE__V1__BLOB_HAVE__INIT;
    have.has_lost = have.lost = true;
    *ret_count = 0;
    for (unsigned i = 0; i < FLIGHT_TRIES && status == FLIGHT_ROOM; i++) {
        (void)flight_send(client, &flights, &(struct flight){0}, MESSAGE_BLOB_HAVE, &have.base);
        status = flight_await(client, &flights, MESSAGE_BLOB_MISSING, &answer, ret_problem);
    }
    if (status != FLIGHT_ANSWERED) {
        problem_set(ret_problem, "the broker's blob port does not answer");
        return false;
    }
    const bool is_told = answer.type == MESSAGE_BLOB_MISSING;
    if (is_told) {
        *ret_count = take_hashes((const void *)answer.body, ret_hashes, limit);
    } else {
        problem_set(ret_problem, "the broker does not say what it lost");
    }
    codec_free(&answer.body);
    return is_told;
}
