/* tests/programs/junk_storer.c - a provider that stores blobs for a job which no result names.
 *
 *     junk-storer MARKET KEY JOB COUNT BYTES
 *         Stores COUNT blobs of BYTES bytes each for the job, under the provider's key, and prints
 *         how many were taken and the code of the refusal that ended it (0: none).
 */
#include "base/sha256.h"
#include "base/text.h"
#include "runtime/blob/blob_client.h"
#include "runtime/files.h"
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

int main(int argc, char **argv)
{
    struct problem problem = {.text = ""};
    struct market market;
    struct identity *identity = NULL;
    struct blob_client *client = NULL;
    struct id128 job;
    if (argc != 6 || !text_unhex(argv[3], job.bytes, sizeof job.bytes)) {
        (void)fputs("usage: junk-storer MARKET KEY JOB COUNT BYTES\n", stderr);
        return 2;
    }
    if (sodium_init() < 0) {
        return 1;
    }
    if (!market_read(argv[1], &market, &problem) || !keyfile_load(argv[2], &identity, &problem)) {
        return fail(argv[1], &problem);
    }
    void *zmq = zmq_ctx_new();
    int status = blob_client_open(zmq, market.blobs, &market.server, identity, &client, &problem)
                     ? store(client, &job, strtoul(argv[4], NULL, 10), strtoul(argv[5], NULL, 10))
                     : fail(market.blobs, &problem);
    blob_client_close(&client);
    (void)zmq_ctx_term(zmq);
    identity_destroy(&identity);
    return status;
}
