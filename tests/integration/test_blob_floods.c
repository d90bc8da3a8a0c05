/* A flood of each type of message of the blob port, from one connection and from eight, by a member
 * who reads the answers or does not: what is left to an honest client of the control port, and to
 * honest uploads and downloads (P24).
 *
 * The blob port knows no sessions: a flooder has connections instead. CI floods shortly, as
 * test_wire_floods.c does; BOURSE_LONG=yes floods in every way and asks for the bounds of P24.
 * BOURSE_FLOOD names one type, and CK_RUN_CASE=commands or CK_RUN_CASE=transfers one of the two. */
#include "tests/support/arena.h"
#include "tests/support/flooders.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/blob/blob_client.h"
#include "runtime/clock.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    ROW_BYTES = 4000,       /* of a blob that is a row of the database */
    FILE_BYTES = 80 << 10,  /* of one that is a file of its own */
    PIECE_BYTES = 1 << 20,  /* of an upload, as bourse's own client sends them */
    LARGE_BYTES = 4 << 20,  /* of a blob that takes several answers */
    HONEST_BYTES = 1 << 19, /* of an honest upload, which is then fetched */
};

/* The disk of the machine bounds the floods of uploads. The honest client sends more commands in
 * the long form than an account may by default. */
static const char broker_yaml[] = "listen: tcp://127.0.0.1:*\nblob_listen: tcp://127.0.0.1:*\n"
                                  "limits: {blob_quota: 8GiB, ids_per_account: 4194304}\n";

/* ---------------------------------------------------------------- honest transfers */

struct transfers {
    struct blob_client *client;
    uint8_t *bytes;
    uint64_t number;
};

static struct blob_client *blobs_of(const struct arena *arena, const struct identity *key)
{
    struct blob_client *client;
    struct problem problem;
    ck_assert_msg(blob_client_open(zmq_ctx_new(), arena->broker.market.blobs,
                                   &arena->broker.market.server, key, &client, &problem),
                  "%s", problem.text);
    return client;
}

static struct hash32 store(struct blob_client *client, const uint8_t *bytes, size_t size)
{
    enum reject_code reject;
    struct problem problem;
    const struct blob_source source = {
        .hash = sha256_of(bytes, size), .size = size, .fd = -1, .bytes = bytes};
    ck_assert_msg(blob_client_put(client, &source, 1, NULL, NULL, NULL, &reject, NULL, &problem),
                  "%s", problem.text);
    return source.hash;
}

static void fetch(struct blob_client *client, const struct hash32 *hash)
{
    enum reject_code reject;
    struct problem problem;
    uint8_t *bytes = NULL;
    size_t length = 0;
    ck_assert_msg(
        blob_client_get_bytes(client, hash, NULL, HONEST_BYTES, &bytes, &length, &reject, &problem),
        "%s", problem.text);
    free(bytes);
}

/* Uploads of bytes that were never there, each fetched when it is stored. */
static unsigned transfer(void *context, int64_t window_ms, int64_t interval_ns,
                         struct honest_times *times)
{
    struct transfers *transfers = context;
    int64_t due_ns = clock_monotonic_ns();
    const int64_t end_ns = due_ns + window_ms * NS_PER_MS;
    unsigned done = 0;
    while (due_ns < end_ns && clock_monotonic_ns() < end_ns) {
        while (clock_monotonic_ns() < due_ns) {
            attack_pace();
        }
        transfers->number++;
        memcpy(transfers->bytes, &transfers->number, sizeof transfers->number);
        const struct hash32 hash = store(transfers->client, transfers->bytes, HONEST_BYTES);
        fetch(transfers->client, &hash);
        if (times->count < HONEST_TIMES_MOST) {
            times->items_ns[times->count++] = clock_monotonic_ns() - due_ns;
        }
        due_ns += interval_ns;
        done++;
    }
    return done;
}

/* ---------------------------------------------------------------- what is sent */

/* The data of an encoded BlobPut begins with a number, and its hash, if `is_right`, is theirs. The
 * hash is the first field, the data the last. */
static void vary_put(struct flood_body *body, uint64_t number, size_t data_bytes, bool is_right)
{
    uint8_t *data = body->bytes + body->length - data_bytes;
    memcpy(data, &number, sizeof number);
    struct hash32 hash = {{0}};
    if (is_right) {
        hash = sha256_of(data, data_bytes);
    } else {
        memcpy(hash.bytes, &number, sizeof number);
    }
    memcpy(body->bytes + 2, hash.bytes, sizeof hash.bytes);
}

static void vary_row(struct flood_body *body, uint64_t number)
{
    vary_put(body, number, ROW_BYTES, true);
}

static void vary_file(struct flood_body *body, uint64_t number)
{
    vary_put(body, number, FILE_BYTES, true);
}

static void vary_wrong_file(struct flood_body *body, uint64_t number)
{
    vary_put(body, number, FILE_BYTES, false);
}

static void vary_large(struct flood_body *body, uint64_t number)
{
    vary_put(body, number, PIECE_BYTES, true);
}

/* Each is the first piece of an upload that does not go on. */
static void vary_begun(struct flood_body *body, uint64_t number)
{
    vary_put(body, number, FILE_BYTES, false);
}

static struct flood *add_put(struct floods *floods, const char *name, const uint8_t *bytes,
                             size_t length, size_t size)
{
    const struct hash32 hash = sha256_of(bytes, length);
    Bourse__V1__BlobPut put = BOURSE__V1__BLOB_PUT__INIT;
    put.hash = arena_bytes(hash.bytes, sizeof hash.bytes);
    put.size = size;
    put.data = arena_bytes(bytes, length);
    return flood_add(floods, name, MESSAGE_BLOB_PUT, &put.base);
}

static struct flood *add_get(struct floods *floods, const char *name, const struct hash32 *hash,
                             bool check, bool by_file)
{
    Bourse__V1__BlobGet get = BOURSE__V1__BLOB_GET__INIT;
    get.hash = arena_bytes(hash->bytes, sizeof hash->bytes);
    get.length = LIMIT_BLOB_CHUNK_BYTES;
    get.has_check = get.check = check;
    get.has_by_file = get.by_file = by_file;
    return flood_add(floods, name, MESSAGE_BLOB_GET, &get.base);
}

static void add_all(struct floods *floods, const uint8_t *bytes, const struct hash32 *row,
                    const struct hash32 *large)
{
    static uint8_t unknown[LIMIT_BLOB_HASHES][32];
    static ProtobufCBinaryData hashes[LIMIT_BLOB_HASHES];
    for (size_t i = 0; i < LIMIT_BLOB_HASHES; i++) {
        memcpy(unknown[i], i % 2 == 0 ? row->bytes : (const uint8_t *)&i, i % 2 == 0 ? 32 : 8);
        hashes[i] = arena_bytes(unknown[i], 32);
    }
    const struct hash32 nothing = {{9}};
    Bourse__V1__BlobHave have = BOURSE__V1__BLOB_HAVE__INIT;
    have.n_hashes = 1;
    have.hashes = hashes;
    flood_add(floods, "blob-have", MESSAGE_BLOB_HAVE, &have.base);
    have.n_hashes = LIMIT_BLOB_HASHES;
    flood_add(floods, "blob-have of 4096", MESSAGE_BLOB_HAVE, &have.base);
    have.n_hashes = 0;
    have.has_lost = have.lost = true;
    flood_add(floods, "blob-have, lost", MESSAGE_BLOB_HAVE, &have.base);
    add_get(floods, "blob-get of nothing", &nothing, false, false)->refused = REJECT_NOT_FOUND;
    add_get(floods, "blob-get of a row", row, false, false);
    add_get(floods, "blob-get of 4 MiB", large, false, false)->answer_bytes =
        LIMIT_BLOB_ANSWER_BYTES;
    struct flood *checked = add_get(floods, "blob-get, checked", large, true, false);
    checked->answer_bytes = LIMIT_BLOB_ANSWER_BYTES;
    checked->refused = REJECT_BUSY;
    add_get(floods, "blob-get, by file", large, false, true)->answer_bytes =
        LIMIT_BLOB_ANSWER_BYTES;
    add_put(floods, "blob-put of what is there", bytes, ROW_BYTES, ROW_BYTES);
    add_put(floods, "blob-put of rows", bytes, ROW_BYTES, ROW_BYTES)->vary = vary_row;
    add_put(floods, "blob-put of files", bytes, FILE_BYTES, FILE_BYTES)->vary = vary_file;
    add_put(floods, "blob-put of 1 MiB", bytes, PIECE_BYTES, PIECE_BYTES)->vary = vary_large;
    struct flood *wrong = add_put(floods, "blob-put, wrong hash", bytes, FILE_BYTES, FILE_BYTES);
    wrong->vary = vary_wrong_file;
    wrong->refused = REJECT_BLOB_HASH;
    add_put(floods, "blob-put, begun", bytes, FILE_BYTES, LARGE_BYTES)->vary = vary_begun;
    Bourse__V1__BlobPut stream = BOURSE__V1__BLOB_PUT__INIT;
    stream.hash = arena_bytes(nothing.bytes, sizeof nothing.bytes);
    stream.size = LARGE_BYTES;
    stream.has_by_stream = stream.by_stream = true;
    flood_add(floods, "blob-put, by stream", MESSAGE_BLOB_PUT, &stream.base);
}

/* ---------------------------------------------------------------- tests */

enum { FLOODS = 15 }; /* as add_all makes them */

struct flooded {
    struct arena arena;
    struct floods floods;
    uint8_t *bytes;
};

static void open_flooded(struct flooded *flooded)
{
    arena_open(&flooded->arena, broker_yaml);
    flooded->bytes = malloc(LARGE_BYTES);
    ck_assert_ptr_nonnull(flooded->bytes);
    randombytes_buf(flooded->bytes, LARGE_BYTES);
    struct blob_client *client = blobs_of(&flooded->arena, flooded->arena.enemy_key);
    const struct hash32 row = store(client, flooded->bytes, ROW_BYTES);
    const struct hash32 large = store(client, flooded->bytes, LARGE_BYTES);
    blob_client_close(&client);
    add_all(&flooded->floods, flooded->bytes, &row, &large);
    ck_assert_uint_eq(flooded->floods.count, FLOODS);
    floods_check_types(&flooded->floods, true);
    floods_check_answers(&flooded->floods, &flooded->arena, flooded->arena.enemy_key);
}

/* Runs all floods in one market, or in the long form the flood of that number alone: a market with
 * the uploads of all floods would fill the disk. */
static void run_floods(struct flooded *flooded, size_t number, const struct flood_victim *victim)
{
    floods_run(&flooded->floods, honest_is_long() ? number : 0, honest_is_long() ? 1 : FLOODS,
               victim, flooded->arena.enemy_key);
}

static void close_flooded(struct flooded *flooded)
{
    floods_free(&flooded->floods);
    free(flooded->bytes);
    arena_close(&flooded->arena);
}

START_TEST(no_message_about_blobs_slows_commands)
{
    static struct flooded flooded;
    open_flooded(&flooded);
    const struct flood_victim victim = flood_commands(&flooded.arena);
    run_floods(&flooded, (size_t)_i, &victim);
    close_flooded(&flooded);
}
END_TEST

START_TEST(no_message_about_blobs_slows_transfers)
{
    static struct flooded flooded;
    open_flooded(&flooded);
    struct transfers transfers = {.client = blobs_of(&flooded.arena, flooded.arena.broker.owner),
                                  .bytes = malloc(HONEST_BYTES)};
    ck_assert_ptr_nonnull(transfers.bytes);
    randombytes_buf(transfers.bytes, HONEST_BYTES);
    struct flood_victim victim = {.arena = &flooded.arena,
                                  .work = transfer,
                                  .context = &transfers,
                                  .window_ms = 3 * HONEST_WINDOW_MS};
    flood_pace_alone(&victim);
    run_floods(&flooded, (size_t)_i, &victim);
    blob_client_close(&transfers.client);
    free(transfers.bytes);
    close_flooded(&flooded);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blob floods");
    TCase *commands = tcase_create("commands");
    TCase *transfers = tcase_create("transfers");
    tcase_set_timeout(commands, 1800);
    tcase_set_timeout(transfers, 1800);
    if (sodium_init() < 0 ||
        setenv("ASAN_OPTIONS", "quarantine_size_mb=8:handle_sigill=1", 1) != 0) {
        return EXIT_FAILURE;
    }
    const int markets = honest_is_long() ? FLOODS : 1;
    tcase_add_loop_test(commands, no_message_about_blobs_slows_commands, 0, markets);
    tcase_add_loop_test(transfers, no_message_about_blobs_slows_transfers, 0, markets);
    suite_add_tcase(suite, commands);
    suite_add_tcase(suite, transfers);
    return suite_run(suite);
}
