#include "provider/work/holding.h"

#include "provider/executors/command.h"
#include "provider/executors/noop.h"
#include "provider/executors/tensor.h"
#include "runtime/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PREPARES_MAX = 4096, POLL_NS = 100000000 };

enum holding_state { HOLDING_NEW, HOLDING_LOADING, HOLDING_READY, HOLDING_FAILED };

struct holding {
    struct agent_grant grant;
    struct store *store;
    struct images *images;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum holding_state state;
    enum result_outcome outcome; /* set in state HOLDING_FAILED */
    struct problem problem;
    Bourse__V1__Manifest *manifest;
    struct image *image;
    uint32_t *prepares; /* subtasks to prepare once the manifest is there */
    size_t prepare_count;
};

struct holding *holding_create(const struct agent_grant *grant, struct store *store,
                               struct images *images)
{
    struct holding *holding = calloc(1, sizeof *holding);
    if (holding == NULL) {
        return NULL;
    }
    holding->grant = *grant;
    holding->store = store;
    holding->images = images;
    pthread_mutex_init(&holding->mutex, NULL);
    condition_init(&holding->changed);
    store_prefetch(store, &grant->manifest, &grant->job, LIMIT_MANIFEST_BYTES);
    return holding;
}

void holding_destroy(struct holding **self)
{
    struct holding *holding = *self;
    if (holding == NULL) {
        return;
    }
    codec_manifest_free(&holding->manifest);
    images_release(holding->images, &holding->image);
    free(holding->prepares);
    pthread_cond_destroy(&holding->changed);
    pthread_mutex_destroy(&holding->mutex);
    free(holding);
    *self = NULL;
}

const struct agent_grant *holding_grant(const struct holding *holding)
{
    return &holding->grant;
}

const Bourse__V1__Manifest *holding_manifest(const struct holding *holding)
{
    return holding->manifest;
}

const char *holding_image(const struct holding *holding)
{
    return holding->image == NULL ? NULL : image_folder(holding->image);
}

/* ---------------------------------------------------------------- loading */

static bool read_blob(const struct store_blob *blob, uint8_t **ret_bytes, struct problem *problem)
{
    uint8_t *bytes = malloc((size_t)blob->size + 1);
    for (size_t done = 0; bytes != NULL && done < (size_t)blob->size;) {
        ssize_t got = pread(blob->fd, bytes + done, (size_t)blob->size - done, (off_t)done);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            free(bytes);
            bytes = NULL;
        } else if (got > 0) {
            done += (size_t)got;
        }
    }
    if (bytes == NULL) {
        problem_set(problem, "the manifest could not be read");
        return false;
    }
    *ret_bytes = bytes;
    return true;
}

static enum result_outcome decode(const struct store_blob *blob,
                                  Bourse__V1__Manifest **ret_manifest, struct problem *problem)
{
    uint8_t *bytes = NULL;
    struct codec_error error = {.field = ""};
    if (!read_blob(blob, &bytes, problem)) {
        return OUTCOME_JAIL_FAILED;
    }
    Bourse__V1__Manifest *manifest = NULL;
    enum codec_status status = codec_decode_manifest(bytes, (size_t)blob->size, &manifest, &error);
    free(bytes);
    if (status == CODEC_OUT_OF_MEMORY) {
        problem_set(problem, "out of memory");
        return OUTCOME_JAIL_FAILED;
    }
    if (status != CODEC_OK) {
        problem_set(problem, "the manifest is malformed at \"%s\"", error.field);
        return OUTCOME_REFUSED;
    }
    *ret_manifest = manifest;
    bool good = noop_names(manifest)
                    ? noop_check(manifest, problem)
                    : command_check(manifest, problem) &&
                          (!tensor_names(manifest) || tensor_check(manifest, problem));
    return good ? OUTCOME_OK : OUTCOME_REFUSED;
}

static enum result_outcome outcome_of(enum store_status status, enum result_outcome missing)
{
    switch (status) {
    case STORE_OK:
        return OUTCOME_OK;
    case STORE_MISSING:
    case STORE_TOO_LARGE:
        return missing;
    case STORE_GIVEN_UP:
    case STORE_FULL: /* the work is given back: another provider may have room */
        return OUTCOME_CANCELLED;
    case STORE_FAILED:
        break;
    }
    return OUTCOME_JAIL_FAILED;
}

static enum result_outcome load_manifest(struct holding *holding, const atomic_bool *give_up,
                                         struct problem *problem)
{
    struct store_blob blob;
    enum store_status status =
        store_take(holding->store, &holding->grant.manifest, &holding->grant.job,
                   LIMIT_MANIFEST_BYTES, give_up, &blob, problem);
    if (status != STORE_OK) {
        return outcome_of(status, OUTCOME_INPUT_MISSING);
    }
    enum result_outcome outcome = decode(&blob, &holding->manifest, problem);
    store_release(holding->store, &blob);
    return outcome;
}

/* An unfit image is its job's own fault, like a program that fails. No other device would do
 * better, and no provider is blamed. */
static enum result_outcome outcome_of_image(enum image_status status)
{
    switch (status) {
    case IMAGE_OK:
        return OUTCOME_OK;
    case IMAGE_UNFIT:
        return OUTCOME_PROGRAM_FAILED;
    case IMAGE_TOO_LARGE:
        return OUTCOME_DISK_LIMIT;
    case IMAGE_NO_ROOM: /* the work is given back: another provider may have room */
        return OUTCOME_CANCELLED;
    case IMAGE_FAILED:
        break;
    }
    return OUTCOME_IMAGE_MISSING;
}

static enum result_outcome load_image(struct holding *holding, const atomic_bool *give_up,
                                      struct problem *problem)
{
    if (!holding->manifest->has_image) {
        return OUTCOME_OK;
    }
    struct store_blob blob;
    struct hash32 hash = codec_hash(holding->manifest->image);
    enum store_status status =
        store_take(holding->store, &hash, &holding->grant.job, UINT64_MAX, give_up, &blob, problem);
    if (status != STORE_OK) {
        return outcome_of(status, OUTCOME_IMAGE_MISSING);
    }
    enum image_status unpacked =
        images_take(holding->images, &hash, blob.fd, blob.size, &holding->image, problem);
    store_release(holding->store, &blob);
    return outcome_of_image(unpacked);
}

/* ---------------------------------------------------------------- shared */

static void want_inputs(struct holding *holding, uint32_t index)
{
    for (size_t i = 0; i < command_input_count(holding->manifest, index); i++) {
        const Bourse__V1__ManifestInput *input = command_input(holding->manifest, index, i);
        struct hash32 hash = codec_hash(input->hash);
        if (tensor_reads_once(holding->manifest, input->size)) {
            store_prefetch_lent(holding->store, &hash, &holding->grant.job, UINT64_MAX);
        } else {
            store_prefetch(holding->store, &hash, &holding->grant.job, UINT64_MAX);
        }
    }
}

static void want_output(struct holding *holding, const Bourse__V1__Given *given,
                        const Bourse__V1__ManifestFrom *from)
{
    for (size_t i = 0; i < given->n_outputs; i++) {
        if (strcmp(given->outputs[i]->name, from->output) == 0) {
            struct hash32 hash = codec_hash(given->outputs[i]->hash);
            store_prefetch(holding->store, &hash, &holding->grant.job, UINT64_MAX);
        }
    }
}

static void want_given(struct holding *holding, uint32_t index, const Bourse__V1__Work *work)
{
    size_t count = work == NULL ? 0 : command_taken_count(holding->manifest, index);
    for (size_t i = 0; i < count; i++) {
        const Bourse__V1__ManifestFrom *from = command_taken(holding->manifest, index, i);
        for (size_t k = 0; k < work->n_given; k++) {
            if (work->given[k]->index == from->task) {
                want_output(holding, work->given[k], from);
            }
        }
    }
}

static void want_saved(struct holding *holding, const Bourse__V1__Work *work)
{
    const Bourse__V1__Saved *saved = work == NULL ? NULL : work->saved;
    for (size_t i = 0; saved != NULL && i < saved->n_files; i++) {
        struct hash32 hash = codec_hash(saved->files[i]->hash);
        store_prefetch(holding->store, &hash, &holding->grant.job, UINT64_MAX);
    }
}

void holding_prepare(struct holding *holding, uint32_t index, const Bourse__V1__Work *given)
{
    pthread_mutex_lock(&holding->mutex);
    if (holding->state == HOLDING_READY) {
        want_inputs(holding, index);
        want_given(holding, index, given);
        want_saved(holding, given);
    } else if (holding->prepare_count < PREPARES_MAX) {
        uint32_t *grown = realloc(holding->prepares, (holding->prepare_count + 1) * sizeof *grown);
        if (grown != NULL) { /* without memory only a hint is lost */
            grown[holding->prepare_count++] = index;
            holding->prepares = grown;
        }
    }
    pthread_mutex_unlock(&holding->mutex);
}

static void settle(struct holding *holding, enum result_outcome outcome,
                   const struct problem *problem)
{
    if (outcome == OUTCOME_CANCELLED) {
        holding->state = HOLDING_NEW; /* another lane may still want it */
    } else if (outcome == OUTCOME_OK) {
        holding->state = HOLDING_READY;
        for (size_t i = 0; i < holding->prepare_count; i++) {
            want_inputs(holding, holding->prepares[i]);
        }
        holding->prepare_count = 0;
    } else {
        holding->state = HOLDING_FAILED;
        holding->outcome = outcome;
        holding->problem = *problem;
    }
    pthread_cond_broadcast(&holding->changed);
}

static void wait_changed(struct holding *holding)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until); /* the condition's clock */
    until.tv_nsec += POLL_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&holding->changed, &holding->mutex, &until);
}

/* The mutex is held at entry and exit, and released while loading. */
static enum result_outcome load(struct holding *holding, const atomic_bool *give_up,
                                struct problem *problem)
{
    holding->state = HOLDING_LOADING;
    pthread_mutex_unlock(&holding->mutex);
    enum result_outcome outcome = OUTCOME_OK;
    if (holding->manifest == NULL) { /* present after a load that was given up at the image */
        outcome = load_manifest(holding, give_up, problem);
    }
    if (outcome == OUTCOME_OK) {
        outcome = load_image(holding, give_up, problem);
    }
    pthread_mutex_lock(&holding->mutex);
    settle(holding, outcome, problem);
    return outcome;
}

bool holding_load(struct holding *holding, const atomic_bool *give_up,
                  enum result_outcome *ret_outcome, struct problem *ret_problem)
{
    enum result_outcome outcome = OUTCOME_OK;
    pthread_mutex_lock(&holding->mutex);
    for (;;) {
        if (holding->state == HOLDING_READY) {
            break;
        }
        if (holding->state == HOLDING_FAILED) {
            outcome = holding->outcome;
            *ret_problem = holding->problem;
            break;
        }
        if (atomic_load(give_up)) {
            outcome = OUTCOME_CANCELLED;
            break;
        }
        if (holding->state == HOLDING_LOADING) {
            wait_changed(holding);
            continue;
        }
        outcome = load(holding, give_up, ret_problem);
        if (outcome == OUTCOME_CANCELLED) {
            break;
        }
    }
    pthread_mutex_unlock(&holding->mutex);
    *ret_outcome = outcome;
    return outcome == OUTCOME_OK;
}
