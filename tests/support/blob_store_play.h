/* tests/support/blob_store_play.h is the fixture of tests about the broker's blob store: a store in
 * a folder below /tmp, which goes with the test. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_BLOB_STORE_PLAY_H
#define BOURSE_TESTS_SUPPORT_BLOB_STORE_PLAY_H

#include "base/sha256.h"
#include "base/text.h"
#include "broker/blob/blob_store.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALICE = 3, BOB = 4, LARGE = 200000 };

static char folder[64];
static struct blob_store *store;

static inline int64_t usage(uint32_t account)
{
    int64_t bytes = -1;
    ck_assert_int_eq(blob_store_usage(store, account, &bytes), BLOB_OK);
    return bytes;
}

static inline void reopen(int64_t quota)
{
    struct problem problem;
    struct blob_store_config config = {
        .folder = folder, .quota_bytes = quota, .size_bytes = 1 << 20};
    blob_store_close(&store);
    ck_assert_msg(blob_store_open(&config, &store, &problem), "%s", problem.text);
}

static inline void setup(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-blobs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    reopen(1 << 20);
}

static inline void teardown(void)
{
    blob_store_close(&store);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

static inline uint8_t *large_bytes(struct hash32 *ret_hash)
{
    static uint8_t bytes[LARGE];
    for (size_t i = 0; i < LARGE; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    }
    *ret_hash = sha256_of(bytes, LARGE);
    return bytes;
}

static inline enum blob_status put(uint32_t account, struct hash32 hash, const void *bytes,
                                   size_t size, size_t offset, size_t length, uint64_t *ret_stored,
                                   bool *ret_complete)
{
    struct blob_chunk chunk = {.account = account,
                               .hash = hash,
                               .size = size,
                               .offset = offset,
                               .data = (const uint8_t *)bytes + offset,
                               .length = length};
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    enum blob_status status = blob_store_put(store, &chunk, 0, ret_stored, ret_complete);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    return status;
}

/* The file of a blob whose hash has that first byte. */
static inline void path_of(const struct hash32 *hash, char ret_path[256])
{
    char hex[65];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(ret_path, 256, "%s/%.2s/%s", folder, hex, hex);
}

static inline void put_large(uint32_t account, const struct hash32 *hash, const uint8_t *bytes)
{
    uint64_t stored = 0;
    bool complete = false;
    ck_assert_int_eq(put(account, *hash, bytes, LARGE, 0, LARGE, &stored, &complete), BLOB_OK);
    ck_assert(complete);
}

/* The status of the read that ends the blob, in pieces of `piece` bytes. */
static inline enum blob_status read_all(const struct hash32 *hash, size_t piece)
{
    static uint8_t back[LARGE];
    enum blob_status status = BLOB_OK;
    uint64_t size = LARGE;
    size_t length = 0;
    for (uint64_t at = 0; status == BLOB_OK && at < size; at += piece) {
        status = blob_store_get(store, hash, at, piece, back, &length, &size);
    }
    return status;
}

static inline enum blob_status read_one(const struct hash32 *hash)
{
    uint8_t back[1];
    size_t length = 0;
    uint64_t size = 0;
    return blob_store_get(store, hash, 0, 1, back, &length, &size);
}

#endif
