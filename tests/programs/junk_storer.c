/* tests/programs/junk_storer.c - a provider that stores blobs for a job which no result names.
 *
 *     junk-storer MARKET KEY JOB COUNT BYTES
 *         Stores COUNT blobs of BYTES bytes each for the job, under the provider's key, and prints
 *         how many were taken and the code of the refusal that ended it (0: none).
 *
 *     junk-storer MARKET KEY JOB lost
 *         Asks which blobs of the job are lost, or with JOB "-" which of the key's own. Prints one
 *         hash a line, or "refused".
 *
 *     junk-storer MARKET KEY - feed
 *         Asks for the changes of the broker's blobs, as only brokers may that follow, and names
 *         itself a copy of all of them. Prints "answered", or the refusal.
 */
#include "base/sha256.h"
#include "base/text.h"
#include "runtime/blob/blob_client.h"
#include "runtime/blob/blob_feed.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static int fail(const char *what, const struct problem *problem)
{
    (void)fprintf(stderr, "junk-storer: %s: %s\n", what, problem->text);
    return 1;
}

static int store(struct blob_client *client, const struct id128 *job, unsigned long count,
                 unsigned long size)
{
    struct problem problem = {.text = ""};
    enum reject_code reject = REJECT_NONE;
    unsigned long taken = 0;
    uint8_t *bytes = calloc(size + sizeof taken, 1);
    for (; bytes != NULL && taken < count && reject == REJECT_NONE; taken++) {
        memcpy(bytes, &taken, sizeof taken);
        const struct blob_source source = {
            .hash = sha256_of(bytes, size), .size = size, .fd = -1, .bytes = bytes};
        if (!blob_client_put(client, &source, 1, job, NULL, NULL, &reject, NULL, &problem)) {
            if (reject == REJECT_NONE) {
                free(bytes);
                return fail("put", &problem);
            }
            break;
        }
    }
    free(bytes);
    (void)printf("%lu %u\n", taken, (unsigned)reject);
    return 0;
}

static int ask_lost(struct blob_client *client, const struct id128 *job)
{
    struct problem problem = {.text = ""};
    struct hash32 lost[BLOB_LOST_MAX];
    size_t count = 0;
    if (!blob_client_lost(client, job, lost, BLOB_LOST_MAX, &count, &problem)) {
        (void)puts("refused");
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        char hex[65];
        text_hex(lost[i].bytes, sizeof lost[i].bytes, hex);
        (void)puts(hex);
    }
    return 0;
}

static int ask_feed(struct blob_client *client)
{
    struct problem problem = {.text = ""};
    Bourse__V1__BlobFeed feed = BOURSE__V1__BLOB_FEED__INIT;
    Bourse__V1__BlobChanges *changes = NULL;
    feed.broker = (char *)(uintptr_t) "rank 7, tcp://127.0.0.1:1"; /* only read */
    feed.position = INT64_MAX;                                     /* it has all blobs */
    const bool is_answered = blob_feed_ask(client, &feed, &changes, &problem);
    (void)puts(is_answered ? "answered" : problem.text);
    return 0;
}

int main(int argc, char **argv)
{
    struct problem problem = {.text = ""};
    struct market market;
    struct identity *identity = NULL;
    struct blob_client *client = NULL;
    struct id128 job;
    const bool feeds = argc == 5 && strcmp(argv[4], "feed") == 0;
    const bool asks = argc == 5 && (feeds || strcmp(argv[4], "lost") == 0);
    const bool has_job = argc > 3 && strcmp(argv[3], "-") != 0;
    if ((!asks && argc != 6) || (!asks && !has_job) ||
        (has_job && !text_unhex(argv[3], job.bytes, sizeof job.bytes))) {
        (void)fputs("usage: junk-storer MARKET KEY JOB COUNT BYTES | MARKET KEY JOB|- lost | "
                    "MARKET KEY - feed\n",
                    stderr);
        return 2;
    }
    if (sodium_init() < 0) {
        return 1;
    }
    if (!market_read(argv[1], &market, &problem) || !keyfile_load(argv[2], &identity, &problem)) {
        return fail(argv[1], &problem);
    }
    void *zmq = zmq_ctx_new();
    int status = 0;
    if (!blob_client_open(zmq, market.blobs, &market.server, identity, &client, &problem)) {
        status = fail(market.blobs, &problem);
    } else if (feeds) {
        status = ask_feed(client);
    } else if (asks) {
        status = ask_lost(client, has_job ? &job : NULL);
    } else {
        status = store(client, &job, strtoul(argv[4], NULL, 10), strtoul(argv[5], NULL, 10));
    }
    blob_client_close(&client);
    (void)zmq_ctx_term(zmq);
    identity_destroy(&identity);
    return status;
}
