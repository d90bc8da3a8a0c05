/* This file finds files of a resumed job that the broker lost; those that are still here are sent
 * again. */
#include "consumer/client/client.h"
#include "consumer/job/bourse_job.h"
#include "consumer/job/image/image_use.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "protocol/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct wanted {
    const char *name; /* name in the manifest; NULL: the image */
    struct hash32 hash;
    uint64_t size;
};

struct search {
    struct bourse_job *job;
    const char *folder, *image;
    bourse_absent_visitor *visitor;
    void *context;
};

static void add_inputs(Bourse__V1__ManifestInput *const *inputs, size_t count,
                       struct wanted *wanted, size_t *at)
{
    for (size_t i = 0; i < count; i++) {
        if (inputs[i]->size > 0) { /* an empty file needs no sending */
            wanted[(*at)++] = (struct wanted){.name = inputs[i]->name,
                                              .hash = codec_hash(inputs[i]->hash),
                                              .size = inputs[i]->size};
        }
    }
}

static int by_hash(const void *a, const void *b)
{
    const struct wanted *left = a;
    const struct wanted *right = b;
    return memcmp(left->hash.bytes, right->hash.bytes, sizeof left->hash.bytes);
}

/* Returns every blob that the manifest names, once, or NULL when memory is short. */
static struct wanted *collect(const Bourse__V1__Manifest *manifest, size_t *ret_count)
{
    size_t most = 2 + manifest->n_shared;
    size_t count = 0;
    size_t kept = 0;
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        most += manifest->subtasks[i]->n_inputs;
    }
    struct wanted *wanted = calloc(most, sizeof *wanted);
    if (wanted == NULL) {
        return NULL;
    }
    if (manifest->has_image) {
        wanted[count++] =
            (struct wanted){.hash = codec_hash(manifest->image), .size = manifest->image_size};
    }
    add_inputs(manifest->shared, manifest->n_shared, wanted, &count);
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        add_inputs(manifest->subtasks[i]->inputs, manifest->subtasks[i]->n_inputs, wanted, &count);
    }
    qsort(wanted, count, sizeof *wanted, by_hash);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || by_hash(&wanted[kept - 1], &wanted[i]) != 0) {
            wanted[kept++] = wanted[i];
        }
    }
    *ret_count = kept;
    return wanted;
}

/* Returns true when the last file of the list has these bytes. A file of another length is not
 * read. */
static bool is_the_one(struct input_list *list, const struct wanted *wanted,
                       struct problem *problem)
{
    struct input_file *file = &list->items[list->count - 1];
    uint64_t size = 0;
    int fd = input_file_open(file, &size, problem);
    if (fd < 0) {
        return false;
    }
    (void)close(fd); /* read only: nothing to lose */
    if (size == wanted->size && !input_list_hash(list, list->count - 1, problem)) {
        return false;
    }
    if (size != wanted->size || !hash32_equal(&file->hash, &wanted->hash)) {
        problem_set(problem, "%s: is another file than the job had", file->path);
        return false;
    }
    return true;
}

/* Returns false and the problem when the file is not here. */
static bool find(const struct search *search, const struct wanted *wanted, struct problem *problem)
{
    struct input_list *found = &search->job->found;
    const bool is_image = wanted->name == NULL;
    if (is_image && search->image == NULL) {
        problem_set(problem, "the job does not say which file it was");
        return false;
    }
    const size_t before = found->count;
    bool good = (is_image ? image_use_archive(".", search->image, &search->job->parts[0].needs,
                                              found, problem)
                          : input_list_add_file(search->folder, wanted->name, found, problem)) &&
                is_the_one(found, wanted, problem);
    while (!good && found->count > before) {
        input_list_drop_last(found);
    }
    return good;
}

static void look_for(const struct search *search, const struct wanted *wanted)
{
    struct problem problem = {.text = ""};
    if (find(search, wanted, &problem)) {
        return;
    }
    struct bourse_absent absent = {.is_image = wanted->name == NULL,
                                   .name = wanted->name == NULL ? "" : wanted->name,
                                   .size = wanted->size,
                                   .why = problem.text};
    text_hex(wanted->hash.bytes, sizeof wanted->hash.bytes, absent.hash);
    search->visitor(search->context, &absent);
}

/* Asks which blobs the broker lacks. Returns NULL and fills the error on failure. */
static bool *ask(struct bourse *bourse, const struct wanted *wanted, size_t count,
                 struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    struct hash32 *hashes = calloc(count + 1, sizeof *hashes);
    bool *lacks = calloc(count + 1, sizeof *lacks);
    struct blob_client *blobs = client_blobs_begin(bourse, error);
    bool good = hashes != NULL && lacks != NULL && blobs != NULL;
    if (blobs != NULL && !good) {
        (void)client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    for (size_t i = 0; good && i < count; i++) {
        hashes[i] = wanted[i].hash;
    }
    if (good && !blob_client_lacks(blobs, hashes, count, lacks, &problem)) {
        good = client_fail(error, BOURSE_UNREACHABLE, "%s", problem.text);
    }
    client_blobs_end(bourse);
    free(hashes);
    if (!good) {
        free(lacks);
        return NULL;
    }
    return lacks;
}

bool bourse_job_look_for_files(struct bourse *bourse, struct bourse_job *job, const char *folder,
                               const char *image, bourse_absent_visitor *visitor, void *context,
                               struct bourse_error *error)
{
    const struct search search = {
        .job = job, .folder = folder, .image = image, .visitor = visitor, .context = context};
    CLEANUP(codec_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    size_t count = 0;
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "out of memory"); /* it was encoded here */
    }
    struct wanted *wanted = collect(manifest, &count);
    if (wanted == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    bool *lacks = ask(bourse, wanted, count, error);
    for (size_t i = 0; lacks != NULL && i < count; i++) {
        if (lacks[i]) {
            look_for(&search, &wanted[i]);
        }
    }
    const bool good = lacks != NULL;
    free(lacks);
    free(wanted);
    return good;
}
