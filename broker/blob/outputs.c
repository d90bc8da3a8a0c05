#include "broker/blob/outputs.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "broker/blob/declared.h"
#include "broker/blob/given_blobs.h"
#include "broker/blob/needed.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, BUCKETS = 4096, BUSY_MS = 2000 };

/* The reach says who must be able to read a blob for it to count as stored. */
enum reach { REACH_OUTPUT, REACH_INPUT, REACHES };

struct manifest { /* of one or several leases */
    struct hash32 hash;
    uint32_t leases;           /* leases and looks under way */
    bool is_read;              /* guarded by `looking`, as are the next two */
    struct declared *declared; /* NULL: not read yet, or the manifest declares nothing */
    /* NULL: not read yet, or nothing is needed. A result that misses an input has it read. */
    struct needed *needed;
    struct manifest *next; /* the next manifest of the bucket */
};

struct lease {
    uint64_t lease;
    struct blob_holder holder;
    uint32_t owner;
    struct manifest *manifest;
    struct given_blobs *given; /* owned; NULL: none */
    struct lease *next;        /* in its bucket */
};

struct ungiven { /* a blob that the blob port could not give out */
    struct hash32 hash;
    int64_t until_ns;
};

struct outputs {
    pthread_mutex_t mutex;   /* of all but the next; held for a moment only */
    pthread_mutex_t looking; /* of the database, and of what was read of a manifest */
    char folder[PATH_SIZE - 128];
    sqlite3 *database; /* NULL: not opened yet */
    sqlite3_stmt *selects[REACHES];
    sqlite3_stmt *select; /* the one of them that was stepped last */
    struct lease *leases[BUCKETS];
    struct manifest *manifests[BUCKETS];
    struct ungiven ungiven[OUTPUTS_UNGIVEN_MAX];
};

struct outputs *outputs_open(const char *blobs)
{
    struct outputs *outputs = calloc(1, sizeof *outputs);
    if (outputs != NULL) {
        pthread_mutex_init(&outputs->mutex, NULL);
        pthread_mutex_init(&outputs->looking, NULL);
        (void)snprintf(outputs->folder, sizeof outputs->folder, "%s", blobs); /* as the store's */
    }
    return outputs;
}

static void manifest_destroy(struct manifest *manifest)
{
    declared_destroy(&manifest->declared);
    needed_destroy(&manifest->needed);
    free(manifest);
}

static void close_database(struct outputs *outputs)
{
    for (size_t i = 0; i < REACHES; i++) {
        (void)sqlite3_finalize(outputs->selects[i]); /* only read */
        outputs->selects[i] = NULL;
    }
    (void)sqlite3_close(outputs->database);
    outputs->select = NULL;
    outputs->database = NULL;
}

void outputs_close(struct outputs **self)
{
    struct outputs *outputs = *self;
    if (outputs == NULL) {
        return;
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct lease *lease = outputs->leases[i], *next; lease != NULL; lease = next) {
            next = lease->next;
            given_blobs_destroy(&lease->given);
            free(lease);
        }
        for (struct manifest *manifest = outputs->manifests[i], *next; manifest != NULL;
             manifest = next) {
            next = manifest->next;
            manifest_destroy(manifest);
        }
    }
    close_database(outputs);
    pthread_mutex_destroy(&outputs->mutex);
    pthread_mutex_destroy(&outputs->looking);
    free(outputs);
    *self = NULL;
}

/* ---------------------------------------------------------------- which lease is of which job */

static struct lease **lease_place(struct outputs *outputs, uint64_t lease)
{
    struct lease **at = &outputs->leases[lease % BUCKETS]; /* numbers rise one by one */
    while (*at != NULL && (*at)->lease != lease) {
        at = &(*at)->next;
    }
    return at;
}

static struct manifest **manifest_place(struct outputs *outputs, const struct hash32 *hash)
{
    const size_t bucket = ((size_t)hash->bytes[0] << 8 | hash->bytes[1]) % BUCKETS;
    struct manifest **at = &outputs->manifests[bucket];
    while (*at != NULL && !hash32_equal(&(*at)->hash, hash)) {
        at = &(*at)->next;
    }
    return at;
}

static bool add_lease(struct outputs *outputs, struct lease **place,
                      const struct outputs_lease *served)
{
    struct manifest **at = manifest_place(outputs, &served->manifest);
    struct lease *lease = calloc(1, sizeof *lease);
    if (lease != NULL && *at == NULL && (*at = calloc(1, sizeof **at)) != NULL) {
        (*at)->hash = served->manifest;
    }
    if (lease == NULL || *at == NULL) {
        free(lease);
        return false;
    }
    (*at)->leases++;
    *lease = (struct lease){
        .lease = served->lease, .holder = served->holder, .owner = served->owner, .manifest = *at};
    *place = lease;
    return true;
}

bool outputs_serve(struct outputs *outputs, const struct outputs_lease *lease)
{
    pthread_mutex_lock(&outputs->mutex);
    struct lease **place = lease_place(outputs, lease->lease);
    const bool good = *place != NULL || add_lease(outputs, place, lease);
    pthread_mutex_unlock(&outputs->mutex);
    return good;
}

/* A lease has ended, or a look at the manifest. */
static void let_go(struct outputs *outputs, struct manifest *manifest)
{
    if (--manifest->leases == 0) {
        struct manifest **at = manifest_place(outputs, &manifest->hash);
        *at = manifest->next;
        manifest_destroy(manifest);
    }
}

void outputs_end(struct outputs *outputs, uint64_t lease)
{
    pthread_mutex_lock(&outputs->mutex);
    struct lease **place = lease_place(outputs, lease);
    struct lease *ended = *place;
    if (ended != NULL) {
        *place = ended->next;
        let_go(outputs, ended->manifest);
        given_blobs_destroy(&ended->given);
        free(ended);
    }
    pthread_mutex_unlock(&outputs->mutex);
}

bool outputs_give(struct outputs *outputs, uint64_t lease, uint32_t index,
                  const struct hash32 *hashes, size_t count)
{
    pthread_mutex_lock(&outputs->mutex);
    struct lease *to = *lease_place(outputs, lease);
    const bool good = to == NULL || given_blobs_add(&to->given, index, hashes, count);
    pthread_mutex_unlock(&outputs->mutex);
    return good;
}

/* ---------------------------------------------------------------- what was not given out */

void outputs_ungiven(struct outputs *outputs, const struct hash32 *hash)
{
    pthread_mutex_lock(&outputs->mutex);
    struct ungiven *place = &outputs->ungiven[0];
    for (size_t i = 0; i < OUTPUTS_UNGIVEN_MAX; i++) {
        struct ungiven *at = &outputs->ungiven[i];
        const bool is_it = hash32_equal(&at->hash, hash);
        if (is_it || at->until_ns < place->until_ns) {
            place = at;
        }
        if (is_it) {
            break;
        }
    }
    *place = (struct ungiven){.hash = *hash,
                              .until_ns = clock_monotonic_ns() + OUTPUTS_UNGIVEN_S * NS_PER_S};
    pthread_mutex_unlock(&outputs->mutex);
}

static bool is_ungiven(struct outputs *outputs, const struct hash32 *hash)
{
    const int64_t now_ns = clock_monotonic_ns();
    bool found = false;
    pthread_mutex_lock(&outputs->mutex);
    for (size_t i = 0; i < OUTPUTS_UNGIVEN_MAX && !found; i++) {
        const struct ungiven *at = &outputs->ungiven[i];
        found = at->until_ns > now_ns && hash32_equal(&at->hash, hash);
    }
    pthread_mutex_unlock(&outputs->mutex);
    return found;
}

/* ---------------------------------------------------------------- what is stored */

static bool open_database(struct outputs *outputs)
{
    /* An output is stored by its own provider for its own job. An input may come from any provider
     * of the owner's jobs, as the blob port gives it out (blob_store_may_read). */
    static const char *const selects[REACHES] = {
        [REACH_OUTPUT] =
            "SELECT size, bytes, EXISTS (SELECT 1 FROM lost WHERE hash = ?2) FROM blob "
            "WHERE hash = ?2 AND (EXISTS (SELECT 1 FROM owner WHERE account = ?1 AND hash = ?2) OR "
            "EXISTS (SELECT 1 FROM pending WHERE provider = ?3 AND job = ?4 AND hash = ?2))",
        [REACH_INPUT] =
            "SELECT size, bytes, EXISTS (SELECT 1 FROM lost WHERE hash = ?2) FROM blob "
            "WHERE hash = ?2 AND (EXISTS (SELECT 1 FROM owner WHERE account = ?1 AND hash = ?2) OR "
            "EXISTS (SELECT 1 FROM pending WHERE account = ?1 AND hash = ?2))",
    };
    char path[PATH_SIZE];
    if (outputs->database != NULL) {
        return true;
    }
    (void)snprintf(path, sizeof path, "%s/blobs.db", outputs->folder); /* fits: folder */
    bool good =
        sqlite3_open_v2(path, &outputs->database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(outputs->database, BUSY_MS) == SQLITE_OK;
    for (size_t i = 0; good && i < REACHES; i++) {
        good = sqlite3_prepare_v2(outputs->database, selects[i], -1, &outputs->selects[i], NULL) ==
               SQLITE_OK;
    }
    if (good) {
        return true;
    }
    log_error("%s cannot be read: %s", path, sqlite3_errmsg(outputs->database));
    close_database(outputs);
    return false;
}

/* The row of a blob that the lease's job has, at which the statement stands; the caller resets. */
static enum outputs_verdict find_blob(struct outputs *outputs, const struct lease *lease,
                                      enum reach reach, const struct hash32 *hash)
{
    if (!open_database(outputs)) {
        return OUTPUTS_UNREAD;
    }
    const struct blob_holder *holder = &lease->holder;
    outputs->select = outputs->selects[reach];
    (void)sqlite3_bind_int64(outputs->select, 1, lease->owner);
    (void)sqlite3_bind_blob(outputs->select, 2, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
    if (reach == REACH_OUTPUT) {
        (void)sqlite3_bind_int64(outputs->select, 3, holder->provider);
        (void)sqlite3_bind_blob(outputs->select, 4, holder->job.bytes, sizeof holder->job.bytes,
                                SQLITE_STATIC);
    }
    switch (sqlite3_step(outputs->select)) {
    case SQLITE_ROW:
        return OUTPUTS_STORED;
    case SQLITE_DONE:
        return OUTPUTS_MISSING;
    default:
        log_error("%s/blobs.db cannot be read: %s", outputs->folder,
                  sqlite3_errmsg(outputs->database));
        return OUTPUTS_UNREAD;
    }
}

static void file_path(const struct outputs *outputs, const struct hash32 *hash,
                      char ret_path[PATH_SIZE])
{
    char hex[2 * sizeof hash->bytes + 1];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(ret_path, PATH_SIZE, "%s/%.2s/%s", outputs->folder, hex, hex); /* it fits */
}

/* Returns true when the statement's row is marked as lost, or has lost its file. A file
 * that the disk does not show now counts as there: nobody knows. */
static bool is_lost(const struct outputs *outputs, const struct hash32 *hash)
{
    char path[PATH_SIZE];
    struct stat file;
    if (sqlite3_column_int64(outputs->select, 2) != 0) {
        return true;
    }
    if (sqlite3_column_type(outputs->select, 1) != SQLITE_NULL) {
        return false;
    }
    file_path(outputs, hash, path);
    return stat(path, &file) == 0
               ? (sqlite3_int64)file.st_size != sqlite3_column_int64(outputs->select, 0)
               : errno == ENOENT;
}

static enum outputs_verdict file_is_stored(struct outputs *outputs, const struct lease *lease,
                                           const Bourse__V1__Output *file)
{
    const struct hash32 hash = codec_hash(file->hash);
    const struct hash32 of_nothing = sha256_of("", 0);
    if (file->size == 0 && hash32_equal(&hash, &of_nothing)) {
        return OUTPUTS_STORED; /* nobody sends that */
    }
    enum outputs_verdict verdict = find_blob(outputs, lease, REACH_OUTPUT, &hash);
    if (verdict == OUTPUTS_MISSING) {
        verdict = OUTPUTS_UNSTORED;
    } else if (verdict == OUTPUTS_STORED &&
               (uint64_t)sqlite3_column_int64(outputs->select, 0) != file->size) {
        verdict = OUTPUTS_MISSING;
    } else if (verdict == OUTPUTS_STORED && is_lost(outputs, &hash)) {
        verdict = OUTPUTS_UNSTORED;
    }
    (void)sqlite3_reset(outputs->select); /* repeats the step's code */
    return verdict;
}

static enum outputs_verdict files_are_stored(struct outputs *outputs, const struct lease *lease,
                                             Bourse__V1__Output *const *files, size_t count)
{
    enum outputs_verdict verdict = OUTPUTS_STORED;
    for (size_t i = 0; i < count && verdict == OUTPUTS_STORED; i++) {
        verdict = file_is_stored(outputs, lease, files[i]);
    }
    return verdict;
}

/* ---------------------------------------------------------------- what is declared */

static uint8_t *read_file(const struct outputs *outputs, const struct hash32 *hash, size_t size)
{
    char path[PATH_SIZE];
    file_path(outputs, hash, path);
    uint8_t *bytes = malloc(size + 1);
    int fd = bytes == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t done = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && done < size) {
        got = read(fd, bytes + done, size - done);
        got = got < 0 && errno == EINTR ? 1 : got;
        done += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (done < size) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* STORED with the bytes of the manifest, for the caller to free. MISSING: nobody has stored it.
 * UNREAD: it was stored, and cannot be read now. */
static enum outputs_verdict read_bytes(struct outputs *outputs, const struct lease *lease,
                                       uint8_t **ret_bytes, size_t *ret_size)
{
    const struct hash32 *hash = &lease->manifest->hash;
    enum outputs_verdict verdict = find_blob(outputs, lease, REACH_OUTPUT, hash);
    if (verdict == OUTPUTS_STORED) {
        const sqlite3_int64 size = sqlite3_column_int64(outputs->select, 0);
        const void *row = sqlite3_column_blob(outputs->select, 1);
        if (size <= 0 || size > LIMIT_MANIFEST_BYTES) {
            verdict = OUTPUTS_MISSING; /* no agent takes it for a manifest */
        } else if (is_lost(outputs, hash)) {
            verdict = OUTPUTS_UNREAD;
        } else {
            *ret_size = (size_t)size;
            *ret_bytes = row == NULL ? read_file(outputs, hash, *ret_size) : malloc(*ret_size);
            if (row != NULL && *ret_bytes != NULL) {
                memcpy(*ret_bytes, row, *ret_size);
            }
            verdict = *ret_bytes == NULL ? OUTPUTS_UNREAD : OUTPUTS_STORED;
        }
    }
    (void)sqlite3_reset(outputs->select); /* repeats the step's code */
    return verdict;
}

/* A manifest that is not there declares nothing yet: no agent can have run it. One that says
 * nothing declares nothing for good. Bytes that are not the manifest's are read again later. */
static enum outputs_verdict read_declared(struct outputs *outputs, const struct lease *lease)
{
    struct manifest *known = lease->manifest;
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum outputs_verdict verdict = read_bytes(outputs, lease, &bytes, &size);
    if (verdict != OUTPUTS_STORED) {
        return verdict == OUTPUTS_MISSING ? OUTPUTS_STORED : verdict;
    }
    Bourse__V1__Manifest *manifest = NULL;
    const struct hash32 hash = sha256_of(bytes, size);
    if (!hash32_equal(&hash, &known->hash)) {
        verdict = OUTPUTS_UNREAD;
    } else if (codec_decode_manifest(bytes, size, &manifest, NULL) == CODEC_OK) {
        known->declared = declared_of(manifest);
        verdict = known->declared == NULL ? OUTPUTS_UNREAD : OUTPUTS_STORED;
        codec_manifest_free(&manifest);
    }
    known->is_read = verdict == OUTPUTS_STORED;
    free(bytes);
    return verdict;
}

static bool names(const Bourse__V1__Result *result, const char *output)
{
    for (size_t i = 0; i < result->n_outputs; i++) {
        if (strcmp(result->outputs[i]->name, output) == 0) {
            return true;
        }
    }
    return false;
}

static bool names_all(const struct declared *declared, const Bourse__V1__Result *result)
{
    const uint32_t count = declared_count(declared, result->index);
    bool all = count <= result->n_outputs;
    for (uint32_t i = 0; all && i < count; i++) {
        char *output = declared_name(declared, result->index, i);
        all = output != NULL && names(result, output);
        free(output);
    }
    return all;
}

static enum outputs_verdict look_at_outputs(struct outputs *outputs, const struct lease *lease,
                                            const Bourse__V1__Result *result)
{
    enum outputs_verdict verdict = OUTPUTS_STORED;
    if (!lease->manifest->is_read) {
        verdict = read_declared(outputs, lease);
    }
    const struct declared *declared = lease->manifest->declared;
    if (verdict == OUTPUTS_UNREAD || (declared != NULL && !names_all(declared, result))) {
        return verdict == OUTPUTS_UNREAD ? verdict : OUTPUTS_MISSING;
    }
    Bourse__V1__Output *const streams[] = {result->standard_output, result->standard_error};
    verdict = files_are_stored(outputs, lease, result->outputs, result->n_outputs);
    for (size_t i = 0; i < 2 && verdict == OUTPUTS_STORED; i++) {
        verdict = files_are_stored(outputs, lease, &streams[i], streams[i] != NULL);
    }
    return verdict;
}

/* ---------------------------------------------------------------- what is said to be missing */

static enum outputs_verdict input_is_stored(struct outputs *outputs, const struct lease *lease,
                                            const struct hash32 *hash)
{
    const struct hash32 of_nothing = sha256_of("", 0);
    if (hash32_equal(hash, &of_nothing)) {
        return OUTPUTS_STORED; /* nobody sends that */
    }
    enum outputs_verdict verdict = find_blob(outputs, lease, REACH_INPUT, hash);
    if (verdict == OUTPUTS_STORED && (is_lost(outputs, hash) || is_ungiven(outputs, hash))) {
        verdict = OUTPUTS_MISSING;
    }
    (void)sqlite3_reset(outputs->select); /* repeats the step's code */
    return verdict;
}

/* The manifest is read once. MISSING: no agent can read the manifest either. A manifest that says
 * nothing names nothing. */
static enum outputs_verdict read_needed(struct outputs *outputs, const struct lease *lease)
{
    struct manifest *known = lease->manifest;
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum outputs_verdict verdict = input_is_stored(outputs, lease, &known->hash);
    if (verdict != OUTPUTS_STORED || known->needed != NULL) {
        return verdict;
    }
    verdict = read_bytes(outputs, lease, &bytes, &size);
    if (verdict != OUTPUTS_STORED) {
        return OUTPUTS_MISSING;
    }
    Bourse__V1__Manifest *manifest = NULL;
    const struct hash32 hash = sha256_of(bytes, size);
    if (!hash32_equal(&hash, &known->hash)) {
        verdict = OUTPUTS_MISSING;
    } else if (codec_decode_manifest(bytes, size, &manifest, NULL) == CODEC_OK) {
        known->needed = needed_of(manifest);
        verdict = known->needed == NULL ? OUTPUTS_UNREAD : OUTPUTS_STORED;
        codec_manifest_free(&manifest);
    }
    free(bytes);
    return verdict;
}

/* The subtasks of a lease that has ended since are taken away, so what they were given is no
 * matter. */
static bool copy_given(struct outputs *outputs, uint64_t number, uint32_t index,
                       struct hash32 **ret_hashes, size_t *ret_count)
{
    pthread_mutex_lock(&outputs->mutex);
    const struct lease *lease = *lease_place(outputs, number);
    const bool good =
        given_blobs_of(lease == NULL ? NULL : lease->given, index, ret_hashes, ret_count);
    pthread_mutex_unlock(&outputs->mutex);
    return good;
}

/* Returns STORED when the store has all that the subtask needs. */
static enum outputs_verdict look_at_inputs(struct outputs *outputs, const struct lease *lease,
                                           uint32_t index, uint64_t *looks)
{
    struct hash32 *given = NULL;
    size_t given_count = 0;
    enum outputs_verdict verdict = read_needed(outputs, lease);
    const struct needed *needed = lease->manifest->needed;
    const size_t count = needed == NULL ? 0 : needed_count(needed, index);
    for (size_t i = 0; verdict == OUTPUTS_STORED && i < count; i++) {
        verdict = input_is_stored(outputs, lease, needed_hash(needed, index, i));
    }
    if (verdict == OUTPUTS_STORED &&
        !copy_given(outputs, lease->lease, index, &given, &given_count)) {
        verdict = OUTPUTS_UNREAD;
    }
    for (size_t i = 0; verdict == OUTPUTS_STORED && i < given_count; i++) {
        verdict = input_is_stored(outputs, lease, &given[i]);
    }
    free(given);
    *looks += 1 + count + given_count; /* at most: the manifest, and each blob */
    return verdict;
}

/* ---------------------------------------------------------------- a look */

/* Copies the lease; its manifest stays until let_go. Returns false for a lease of others. */
static bool take_lease(struct outputs *outputs, uint64_t number, uint32_t sender,
                       struct lease *ret_lease)
{
    pthread_mutex_lock(&outputs->mutex);
    const struct lease *lease = *lease_place(outputs, number);
    const bool is_theirs = lease != NULL && lease->holder.provider == sender;
    if (is_theirs) {
        *ret_lease = *lease;
        lease->manifest->leases++;
    }
    pthread_mutex_unlock(&outputs->mutex);
    return is_theirs;
}

enum outputs_verdict outputs_look(void *context, uint32_t sender, const Bourse__V1__Result *result,
                                  uint64_t *looks)
{
    struct outputs *outputs = context;
    const bool has_saved = result->saved != NULL && result->saved->n_files > 0;
    const bool is_saved = result->outcome == OUTCOME_PREEMPTED && has_saved;
    const bool misses =
        result->outcome == OUTCOME_INPUT_MISSING || result->outcome == OUTCOME_IMAGE_MISSING;
    struct lease lease;
    if (result->outcome != OUTCOME_OK && !is_saved && !misses) {
        return OUTPUTS_STORED; /* it has nothing to leave */
    }
    if (!take_lease(outputs, result->lease, sender, &lease)) {
        return OUTPUTS_MISSING;
    }
    pthread_mutex_lock(&outputs->looking);
    const enum outputs_verdict verdict =
        misses     ? look_at_inputs(outputs, &lease, result->index, looks)
        : is_saved ? files_are_stored(outputs, &lease, result->saved->files, result->saved->n_files)
                   : look_at_outputs(outputs, &lease, result);
    pthread_mutex_unlock(&outputs->looking);
    pthread_mutex_lock(&outputs->mutex);
    let_go(outputs, lease.manifest);
    pthread_mutex_unlock(&outputs->mutex);
    return verdict;
}
