#include "provider/work/lease_context.h"

#include "base/array.h"
#include "provider/executors/kernel.h"
#include "provider/executors/noop.h"
#include "provider/executors/onnx.h"
#include "provider/executors/plugin.h"
#include "provider/executors/program.h"
#include "provider/executors/tensor.h"
#include "provider/executors/wasm.h"
#include "runtime/condition.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PREPARES_MAX = 4096, POLL_NS = 100000000 };

enum lease_context_state {
    LEASE_CONTEXT_NEW,
    LEASE_CONTEXT_LOADING,
    LEASE_CONTEXT_READY,
    LEASE_CONTEXT_FAILED
};

struct lease_context {
    struct agent_grant grant;
    struct store *store;
    struct images *images;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum lease_context_state state;
    enum result_outcome outcome; /* set in state LEASE_CONTEXT_FAILED */
    struct problem problem;
    Bourse__V1__Manifest *manifest;
    struct image *image;
    uint32_t *prepares; /* subtasks to prepare once the manifest is there */
    size_t prepare_count, prepare_capacity;
};

struct lease_context *lease_context_create(const struct agent_grant *grant, struct store *store,
                                           struct images *images)
{
    struct lease_context *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return NULL;
    }
    context->grant = *grant;
    context->store = store;
    context->images = images;
    pthread_mutex_init(&context->mutex, NULL);
    condition_init(&context->changed);
    store_prefetch(store, &grant->manifest, &grant->job, LIMIT_MANIFEST_BYTES);
    return context;
}

void lease_context_destroy(struct lease_context **self)
{
    struct lease_context *context = *self;
    if (context == NULL) {
        return;
    }
    codec_manifest_free(&context->manifest);
    images_release(context->images, &context->image);
    free(context->prepares);
    pthread_cond_destroy(&context->changed);
    pthread_mutex_destroy(&context->mutex);
    free(context);
    *self = NULL;
}

const struct agent_grant *lease_context_grant(const struct lease_context *context)
{
    return &context->grant;
}

const Bourse__V1__Manifest *lease_context_manifest(const struct lease_context *context)
{
    return context->manifest;
}

const char *lease_context_image(const struct lease_context *context)
{
    return context->image == NULL ? NULL : image_folder(context->image);
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
                    : program_check(manifest, problem) &&
                          (!tensor_names(manifest) || tensor_check(manifest, problem)) &&
                          (!kernel_names(manifest) || kernel_check(manifest, problem)) &&
                          (!plugin_names(manifest) || plugin_check(manifest, problem)) &&
                          (!wasm_names(manifest) || wasm_check(manifest, problem)) &&
                          (!onnx_names(manifest) || onnx_check(manifest, problem));
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
    case STORE_NO_FOLDER:
        return OUTCOME_CANCELLED;
    case STORE_FAILED:
        break;
    }
    return OUTCOME_JAIL_FAILED;
}

static enum result_outcome load_manifest(struct lease_context *context, const atomic_bool *give_up,
                                         struct problem *problem)
{
    struct store_blob blob;
    enum store_status status =
        store_take(context->store, &context->grant.manifest, &context->grant.job,
                   LIMIT_MANIFEST_BYTES, give_up, &blob, problem);
    if (status != STORE_OK) {
        return outcome_of(status, OUTCOME_INPUT_MISSING);
    }
    enum result_outcome outcome = decode(&blob, &context->manifest, problem);
    store_release(context->store, &blob);
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
    case IMAGE_GIVEN_UP:
    case IMAGE_NO_ROOM: /* the work is given back: another provider may have room */
        return OUTCOME_CANCELLED;
    case IMAGE_FAILED:
        break;
    }
    return OUTCOME_IMAGE_MISSING;
}

static enum result_outcome load_image(struct lease_context *context, const atomic_bool *give_up,
                                      struct problem *problem)
{
    if (!context->manifest->has_image) {
        return OUTCOME_OK;
    }
    struct store_blob blob;
    struct hash32 hash = codec_hash(context->manifest->image);
    enum store_status status =
        store_take(context->store, &hash, &context->grant.job, UINT64_MAX, give_up, &blob, problem);
    if (status != STORE_OK) {
        return outcome_of(status, OUTCOME_IMAGE_MISSING);
    }
    enum image_status unpacked =
        images_take(context->images, &hash, blob.fd, blob.size, give_up, &context->image, problem);
    store_release(context->store, &blob);
    return outcome_of_image(unpacked);
}

/* ---------------------------------------------------------------- shared */

static void want_inputs(struct lease_context *context, uint32_t index)
{
    for (size_t i = 0; i < program_input_count(context->manifest, index); i++) {
        const Bourse__V1__ManifestInput *input = program_input(context->manifest, index, i);
        struct hash32 hash = codec_hash(input->hash);
        if (tensor_reads_once(context->manifest, input->size)) {
            store_prefetch_lent(context->store, &hash, &context->grant.job, UINT64_MAX);
        } else {
            store_prefetch(context->store, &hash, &context->grant.job, UINT64_MAX);
        }
    }
}

static void want_output(struct lease_context *context, const Bourse__V1__Given *given,
                        const Bourse__V1__ManifestFrom *from)
{
    for (size_t i = 0; i < given->n_outputs; i++) {
        if (strcmp(given->outputs[i]->name, from->output) == 0) {
            struct hash32 hash = codec_hash(given->outputs[i]->hash);
            store_prefetch(context->store, &hash, &context->grant.job, UINT64_MAX);
        }
    }
}

static void want_dispatch(struct lease_context *context, uint32_t index,
                          const Bourse__V1__Work *work)
{
    size_t count = work == NULL ? 0 : program_taken_count(context->manifest, index);
    for (size_t i = 0; i < count; i++) {
        const Bourse__V1__ManifestFrom *from = program_taken(context->manifest, index, i);
        for (size_t k = 0; k < work->n_given; k++) {
            if (work->given[k]->index == from->task) {
                want_output(context, work->given[k], from);
            }
        }
    }
}

static void want_checkpoint(struct lease_context *context, const Bourse__V1__Work *work)
{
    const Bourse__V1__Saved *saved = work == NULL ? NULL : work->saved;
    for (size_t i = 0; saved != NULL && i < saved->n_files; i++) {
        struct hash32 hash = codec_hash(saved->files[i]->hash);
        store_prefetch(context->store, &hash, &context->grant.job, UINT64_MAX);
    }
}

void lease_context_prepare(struct lease_context *context, uint32_t index,
                           const Bourse__V1__Work *inputs)
{
    pthread_mutex_lock(&context->mutex);
    if (context->state == LEASE_CONTEXT_READY) {
        want_inputs(context, index);
        want_dispatch(context, index, inputs);
        want_checkpoint(context, inputs);
    } else if (context->prepare_count < PREPARES_MAX) {
        uint32_t *grown = array_with_room(context->prepares, context->prepare_count,
                                          &context->prepare_capacity, sizeof *grown);
        if (grown != NULL) { /* without memory only a hint is lost */
            grown[context->prepare_count++] = index;
            context->prepares = grown;
        }
    }
    pthread_mutex_unlock(&context->mutex);
}

static void settle(struct lease_context *context, enum result_outcome outcome,
                   const struct problem *problem)
{
    if (outcome == OUTCOME_CANCELLED) {
        context->state = LEASE_CONTEXT_NEW; /* another lane may still want it */
    } else if (outcome == OUTCOME_OK) {
        context->state = LEASE_CONTEXT_READY;
        for (size_t i = 0; i < context->prepare_count; i++) {
            want_inputs(context, context->prepares[i]);
        }
        context->prepare_count = 0;
    } else {
        context->state = LEASE_CONTEXT_FAILED;
        context->outcome = outcome;
        context->problem = *problem;
    }
    pthread_cond_broadcast(&context->changed);
}

/* The mutex is held at entry and exit, and released while loading. */
static enum result_outcome load(struct lease_context *context, const atomic_bool *give_up,
                                struct problem *problem)
{
    context->state = LEASE_CONTEXT_LOADING;
    pthread_mutex_unlock(&context->mutex);
    enum result_outcome outcome = OUTCOME_OK;
    if (context->manifest == NULL) { /* present after a load that was given up at the image */
        outcome = load_manifest(context, give_up, problem);
    }
    if (outcome == OUTCOME_OK) {
        outcome = load_image(context, give_up, problem);
    }
    pthread_mutex_lock(&context->mutex);
    settle(context, outcome, problem);
    return outcome;
}

bool lease_context_load(struct lease_context *context, const atomic_bool *give_up,
                        enum result_outcome *ret_outcome, struct problem *ret_problem)
{
    enum result_outcome outcome = OUTCOME_OK;
    pthread_mutex_lock(&context->mutex);
    for (;;) {
        if (context->state == LEASE_CONTEXT_READY) {
            break;
        }
        if (context->state == LEASE_CONTEXT_FAILED) {
            outcome = context->outcome;
            *ret_problem = context->problem;
            break;
        }
        if (atomic_load(give_up)) {
            outcome = OUTCOME_CANCELLED;
            break;
        }
        if (context->state == LEASE_CONTEXT_LOADING) {
            condition_wait(&context->changed, &context->mutex, POLL_NS);
            continue;
        }
        outcome = load(context, give_up, ret_problem);
        if (outcome == OUTCOME_CANCELLED) {
            break;
        }
    }
    pthread_mutex_unlock(&context->mutex);
    *ret_outcome = outcome;
    return outcome == OUTCOME_OK;
}
