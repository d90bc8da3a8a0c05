/* The anchors say what bounds a market here and now: an encrypted echo, a durable row, a verified
 * signature. */
#include "bench/endtoend/parts.h"

#include "protocol/identity.h"
#include "runtime/clock.h"

#include <pthread.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { ECHO_BYTES = 256, ECHO_IN_FLIGHT = 64, ROWS_PER_COMMIT = 1000 };

static double rate(uint64_t count, int64_t since_ns)
{
    return (double)count * 1e9 / (double)(clock_monotonic_ns() - since_ns);
}

/* ---------------------------------------------------------------- echo */

struct echo {
    void *context;
    char server_public[41], server_secret[41], client_public[41], client_secret[41];
    char endpoint[64];
    atomic_bool is_over;
};

static void *serve(void *argument)
{
    struct echo *echo = argument;
    int one = 1;
    int wait_ms = 100;
    int linger = 0;
    void *router = zmq_socket(echo->context, ZMQ_ROUTER);
    (void)zmq_setsockopt(router, ZMQ_CURVE_SERVER, &one, sizeof one);
    (void)zmq_setsockopt(router, ZMQ_CURVE_SECRETKEY, echo->server_secret, 41);
    (void)zmq_setsockopt(router, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    (void)zmq_setsockopt(router, ZMQ_LINGER, &linger, sizeof linger);
    if (zmq_bind(router, echo->endpoint) == 0) {
        while (!atomic_load(&echo->is_over)) {
            char id[64];
            char bytes[ECHO_BYTES];
            int id_length = zmq_recv(router, id, sizeof id, 0);
            if (id_length > 0) {
                int length = zmq_recv(router, bytes, sizeof bytes, 0);
                (void)zmq_send(router, id, (size_t)id_length, ZMQ_SNDMORE);
                (void)zmq_send(router, bytes, length > 0 ? (size_t)length : 0, 0);
            }
        }
    }
    (void)zmq_close(router);
    return NULL;
}

static double echo_rate(struct echo *echo, double seconds)
{
    char bytes[ECHO_BYTES] = {0};
    int wait_ms = 2000;
    int linger = 0;
    uint64_t count = 0;
    void *dealer = zmq_socket(echo->context, ZMQ_DEALER);
    (void)zmq_setsockopt(dealer, ZMQ_CURVE_SERVERKEY, echo->server_public, 41);
    (void)zmq_setsockopt(dealer, ZMQ_CURVE_PUBLICKEY, echo->client_public, 41);
    (void)zmq_setsockopt(dealer, ZMQ_CURVE_SECRETKEY, echo->client_secret, 41);
    (void)zmq_setsockopt(dealer, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    (void)zmq_setsockopt(dealer, ZMQ_LINGER, &linger, sizeof linger);
    (void)zmq_connect(dealer, echo->endpoint);
    for (int i = 0; i < ECHO_IN_FLIGHT; i++) {
        (void)zmq_send(dealer, bytes, sizeof bytes, 0);
    }
    bool alive = zmq_recv(dealer, bytes, sizeof bytes, 0) > 0; /* the handshake is not counted */
    int64_t start_ns = clock_monotonic_ns();
    while (alive && clock_monotonic_ns() - start_ns < (int64_t)(seconds * 1e9)) {
        (void)zmq_send(dealer, bytes, sizeof bytes, 0);
        alive = zmq_recv(dealer, bytes, sizeof bytes, 0) > 0;
        count++;
    }
    (void)zmq_close(dealer);
    return alive ? rate(count, start_ns) : 0;
}

double anchor_echoes_per_s(double seconds)
{
    struct echo echo = {.context = zmq_ctx_new()};
    pthread_t server;
    (void)snprintf(echo.endpoint, sizeof echo.endpoint, "ipc://@bourse-endtoend-%d", (int)getpid());
    (void)zmq_curve_keypair(echo.server_public, echo.server_secret);
    (void)zmq_curve_keypair(echo.client_public, echo.client_secret);
    if (pthread_create(&server, NULL, serve, &echo) != 0) {
        (void)zmq_ctx_term(echo.context);
        return 0;
    }
    double echoes = echo_rate(&echo, seconds);
    atomic_store(&echo.is_over, true);
    (void)pthread_join(server, NULL);
    (void)zmq_ctx_term(echo.context);
    return echoes;
}

/* ---------------------------------------------------------------- rows */

static bool commit_rows(sqlite3 *database, sqlite3_stmt *insert, uint64_t from)
{
    bool good = sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
    uint8_t hash[32] = {0};
    for (uint64_t i = from; good && i < from + ROWS_PER_COMMIT; i++) {
        memcpy(hash, &i, sizeof i);
        (void)sqlite3_bind_int64(insert, 1, (sqlite3_int64)i);
        (void)sqlite3_bind_int64(insert, 2, 100);
        (void)sqlite3_bind_blob(insert, 3, hash, 16, SQLITE_STATIC);
        (void)sqlite3_bind_blob(insert, 4, hash, 32, SQLITE_STATIC);
        good = sqlite3_step(insert) == SQLITE_DONE;
        (void)sqlite3_reset(insert); /* repeats the step's code */
    }
    return good && sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}

double anchor_rows_per_s(const char *folder, double seconds)
{
    char path[ENDTOEND_PATH_SIZE + 32];
    sqlite3 *database = NULL;
    sqlite3_stmt *insert = NULL;
    uint64_t count = 0;
    (void)snprintf(path, sizeof path, "%s/anchor.db", folder);
    bool good = sqlite3_open(path, &database) == SQLITE_OK &&
                sqlite3_exec(database,
                             "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                             "CREATE TABLE IF NOT EXISTS rows(entry INTEGER PRIMARY KEY, amount "
                             "INTEGER, job BLOB, hash BLOB) STRICT; DELETE FROM rows",
                             NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(database, "INSERT INTO rows VALUES(?1, ?2, ?3, ?4)", -1, &insert,
                                   NULL) == SQLITE_OK;
    int64_t start_ns = clock_monotonic_ns();
    while (good && clock_monotonic_ns() - start_ns < (int64_t)(seconds * 1e9)) {
        good = commit_rows(database, insert, count);
        count += ROWS_PER_COMMIT;
    }
    double rows = good ? rate(count, start_ns) : 0;
    (void)sqlite3_finalize(insert);
    (void)sqlite3_close(database); /* removed with its folder */
    return rows;
}

/* ---------------------------------------------------------------- signatures */

double anchor_verifies_per_s(double seconds)
{
    uint8_t seed[crypto_sign_SEEDBYTES] = {1};
    uint8_t key[crypto_sign_PUBLICKEYBYTES];
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    uint8_t signature[crypto_sign_BYTES];
    uint8_t message[128] = {0};
    uint64_t count = 0;
    bool good = crypto_sign_seed_keypair(key, secret, seed) == 0 &&
                crypto_sign_detached(signature, NULL, message, sizeof message, secret) == 0;
    int64_t start_ns = clock_monotonic_ns();
    while (good && clock_monotonic_ns() - start_ns < (int64_t)(seconds * 1e9)) {
        good = crypto_sign_verify_detached(signature, message, sizeof message, key) == 0;
        count++;
    }
    return good ? rate(count, start_ns) : 0;
}
