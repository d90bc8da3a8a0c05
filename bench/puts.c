/* bench/puts.c measures how long files take to be stored: until the broker has acknowledged them.
 * The program prints one JSON object.
 *
 *     puts MARKET KEY COUNT BYTES ROUNDS
 *
 * Each round stores COUNT new files of BYTES bytes through the blob port of the market (its
 * market.yaml), for the account of the key file. The figures are milliseconds of a round. */
#include "base/checked.h"
#include "base/sha256.h"
#include "runtime/blob/blob_client.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { ROUNDS_MOST = 1000 };

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static void give_up(const char *text)
{
    (void)fprintf(stderr, "puts: %s\n", text);
    exit(EXIT_FAILURE);
}

/* Fills the files with bytes that nobody has stored before. */
static void renew(struct blob_source *sources, uint8_t *bytes, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t *file = bytes + i * size;
        const struct id128 id = entropy_id();
        memcpy(file, id.bytes, size < sizeof id.bytes ? size : sizeof id.bytes);
        sources[i] = (struct blob_source){
            .hash = sha256_of(file, size), .size = size, .fd = -1, .bytes = file};
    }
}

static double round_ms(struct blob_client *client, const struct blob_source *sources, size_t count)
{
    enum reject_code reject = REJECT_NONE;
    bool is_unread = false;
    struct problem problem;
    const int64_t since_ns = clock_monotonic_ns();
    if (!blob_client_put(client, sources, count, NULL, NULL, NULL, &reject, &is_unread, &problem)) {
        give_up(problem.text);
    }
    return (double)(clock_monotonic_ns() - since_ns) / (double)NS_PER_MS;
}

int main(int argc, char **argv)
{
    struct market market;
    struct identity *identity = NULL;
    struct blob_client *client = NULL;
    struct problem problem;
    double took_ms[ROUNDS_MOST];
    if (argc != 6) {
        give_up("usage: puts MARKET KEY COUNT BYTES ROUNDS");
    }
    const size_t count = strtoull(argv[3], NULL, 10);
    const size_t size = strtoull(argv[4], NULL, 10);
    const size_t rounds = strtoull(argv[5], NULL, 10);
    struct blob_source *sources = calloc(count, sizeof *sources);
    uint8_t *bytes = calloc(count, size);
    void *context = zmq_ctx_new();
    if (rounds == 0 || rounds > ROUNDS_MOST || sources == NULL || bytes == NULL ||
        context == NULL) {
        give_up("the numbers do not fit");
    }
    if (!market_read(argv[1], &market, &problem) || !keyfile_load(argv[2], &identity, &problem) ||
        !blob_client_open(context, market.blobs, &market.server, identity, &client, &problem)) {
        give_up(problem.text);
    }
    for (size_t i = 0; i < rounds; i++) {
        renew(sources, bytes, count, size);
        took_ms[i] = round_ms(client, sources, count);
    }
    qsort(took_ms, rounds, sizeof took_ms[0], compare);
    printf("{\"files\":%zu,\"bytes\":%zu,\"rounds\":%zu,\"median_ms\":%.2f,\"least_ms\":%.2f,"
           "\"most_ms\":%.2f}\n",
           count, size, rounds, took_ms[rounds / 2], took_ms[0], took_ms[rounds - 1]);
    blob_client_close(&client);
    identity_destroy(&identity);
    (void)zmq_ctx_term(context); /* its sockets are closed */
    free(sources);
    free(bytes);
    return EXIT_SUCCESS;
}
