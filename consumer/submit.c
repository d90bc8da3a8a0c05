/* Quotes, and submission: what the broker lacks is stored first, then the job is placed. */
#include "consumer/client.h"
#include "consumer/prepare.h"
#include "consumer/rows.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PUT_BATCH = 128,           /* files open at a time */
    PUT_MADE_BYTES = 32 << 20, /* in memory at a time, but for a single larger blob */
};

/* The default order is "market price, with a cap": a market order that must wait would otherwise rest
 * at all that its budget allows, and the next ask to arrive would fill at that. */
static int64_t limit_of(const struct job_file *file, int64_t subtasks,
                        const struct bourse_quote *quote)
{
    if (file->cap_micro != JOB_ABSENT) {
        return file->cap_micro;
    }
    int64_t wanted = file->at_most != 0 ? file->at_most : INT64_MAX;
    if (subtasks < wanted / file->slots) {
        wanted = subtasks * file->slots;
    }
    int64_t dearest_micro = -1;
    for (uint32_t i = 0; i < quote->level_count && wanted > 0; i++) {
        dearest_micro = quote->levels[i].price_micro;
        wanted -= quote->levels[i].slots;
    }
    if (dearest_micro <= 0 || dearest_micro > INT64_MAX / 2) {
        return -1; /* nothing on offer, or only donations */
    }
    return dearest_micro + dearest_micro / 2;
}

bool bourse_quote(struct bourse *bourse, const struct bourse_job *job,
                  struct bourse_quote *ret_quote, struct bourse_error *ret_error)
{
    CLEANUP(codec_requirement_free)
    Bourse__V1__Requirement *needs = codec_requirement_to_wire(&job->needs);
    if (needs == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    Bourse__V1__QuoteRequest body = BOURSE__V1__QUOTE_REQUEST__INIT;
    body.needs = needs;
    body.subtasks = (uint32_t)job->subtasks;
    body.slots = job->file->slots;
    body.at_most = job->file->at_most;
    body.has_cap_micro = job->file->cap_micro != JOB_ABSENT;
    body.cap_micro = body.has_cap_micro ? job->file->cap_micro : 0;
    body.limit_ms = job->file->limit_ms;
    body.term_ms = job->file->term_ms;
    body.expect_ms = job->expect_ms;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_QUOTE_REQUEST, &body.base, MESSAGE_QUOTE_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    rows_quote((const void *)answer, ret_quote);
    ret_quote->limit_micro = limit_of(job->file, (int64_t)job->subtasks, ret_quote);
    return true;
}

/* ---------------------------------------------------------------- blobs */

struct put {
    struct bourse *client;
    struct blob_client *blobs;
    bourse_progress *progress;
    void *context;
    uint64_t done, total; /* bytes, over all batches */
    struct bourse_error *error;
};

static void put_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct put *put = context;
    (void)total_bytes; /* of this batch alone */
    client_breathe(put->client);
    if (put->progress != NULL) {
        put->progress(put->context, put->done + done_bytes, put->total);
    }
}

static bool put_sources(struct put *put, const struct blob_source *sources, size_t count)
{
    struct problem problem = {.text = ""};
    enum reject_code reject = REJECT_NONE;
    if (!blob_client_put(put->blobs, sources, count, NULL, put_progress, put, &reject, &problem)) {
        return client_blob_failed(put->client, put->error, reject, &problem);
    }
    for (size_t i = 0; i < count; i++) {
        put->done += sources[i].size;
    }
    client_breathe(put->client);
    if (put->progress != NULL) {
        put->progress(put->context, put->done, put->total);
    }
    return true;
}

static bool put_batch(struct put *put, struct input_file *const *files, size_t count)
{
    struct blob_source sources[PUT_BATCH];
    size_t opened = 0;
    bool ok = true;
    while (ok && opened < count) {
        struct problem problem = {.text = ""};
        uint64_t size = 0;
        int fd = input_open(files[opened]->path, &size, &problem);
        if (fd < 0) {
            ok = client_fail(put->error, BOURSE_LOCAL, "%s", problem.text);
            break;
        }
        sources[opened] = (struct blob_source){
            .hash = files[opened]->hash, .size = files[opened]->size, .fd = fd};
        opened++;
        if (size != files[opened - 1]->size) {
            ok = client_fail(put->error, BOURSE_LOCAL,
                             "%s changed while the job was prepared; try again",
                             files[opened - 1]->path);
        }
    }
    ok = ok && put_sources(put, sources, opened);
    for (size_t i = 0; i < opened; i++) {
        (void)close(sources[i].fd); /* read only: nothing to lose */
    }
    return ok;
}

static int by_hash(const void *a, const void *b)
{
    return memcmp((*(struct input_file *const *)a)->hash.bytes,
                  (*(struct input_file *const *)b)->hash.bytes, sizeof(struct hash32));
}

/* Every file of the job once by content, sorted by hash; NULL when out of memory. */
static struct input_file **unique_files(const struct bourse_job *job, size_t *ret_count)
{
    const struct input_list *lists[] = {&job->own, &job->shared, &job->image};
    size_t count = 0;
    struct input_file **files =
        calloc(lists[0]->count + lists[1]->count + lists[2]->count + 1, sizeof *files);
    if (files == NULL) {
        return NULL;
    }
    for (size_t l = 0; l < 3; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            files[count++] = &lists[l]->items[i];
        }
    }
    qsort(files, count, sizeof *files, by_hash);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || by_hash(&files[kept - 1], &files[i]) != 0) {
            files[kept++] = files[i];
        }
    }
    *ret_count = kept;
    return files;
}

static bool put_files(struct put *put, struct input_file *const *files, size_t count)
{
    for (size_t i = 0; i < count; i += PUT_BATCH) {
        size_t batch = count - i < PUT_BATCH ? count - i : PUT_BATCH;
        if (!put_batch(put, files + i, batch)) {
            return false;
        }
    }
    return true;
}

/* Made a few at a time: many small ones in one go, and never more than memory for a large one. */
static bool put_made(struct put *put, const struct made_blobs *made)
{
    struct problem problem = {.text = ""};
    for (size_t i = 0; i < made->count;) {
        struct blob_source sources[PUT_BATCH];
        size_t count = 0;
        uint64_t bytes = 0;
        while (count < PUT_BATCH && i + count < made->count &&
               (count == 0 || bytes + made->items[i + count].size <= PUT_MADE_BYTES)) {
            bytes += made->items[i + count++].size;
        }
        uint8_t *memory = malloc((size_t)bytes);
        if (memory == NULL) {
            return client_fail(put->error, BOURSE_LOCAL, "out of memory");
        }
        bool ok = true;
        for (size_t k = 0, at = 0; ok && k < count; at += (size_t)made->items[i + k].size, k++) {
            sources[k] = (struct blob_source){.hash = made->items[i + k].hash,
                                              .size = made->items[i + k].size,
                                              .fd = -1,
                                              .bytes = memory + at};
            ok = made->fill(made->context, i + k, memory + at, &problem) ||
                 client_fail(put->error, BOURSE_LOCAL, "%s", problem.text);
        }
        ok = ok && put_sources(put, sources, count);
        free(memory);
        if (!ok) {
            return false;
        }
        i += count;
    }
    return true;
}

static bool put_everything(struct bourse *client, const struct bourse_job *job,
                           bourse_progress *progress, void *context, struct bourse_error *error)
{
    size_t count = 0;
    struct input_file **files = unique_files(job, &count);
    if (files == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    struct put put = {.client = client, .progress = progress, .context = context, .error = error};
    put.blobs = client_blobs_begin(client, error);
    put.total = job->manifest_length;
    for (size_t i = 0; i < count; i++) {
        put.total += files[i]->size;
    }
    for (size_t i = 0; i < job->made.count; i++) {
        put.total += job->made.items[i].size;
    }
    const struct blob_source manifest = {
        .hash = job->manifest_hash, .size = job->manifest_length, .fd = -1, .bytes = job->manifest};
    bool ok = put.blobs != NULL && put_files(&put, files, count) && put_made(&put, &job->made) &&
              put_sources(&put, &manifest, 1);
    client_blobs_end(client);
    free(files);
    return ok;
}

/* ---------------------------------------------------------------- submit */

bool bourse_submit(struct bourse *bourse, struct bourse_job *job, int64_t budget_micro,
                   int64_t limit_micro, bourse_progress *progress, void *context,
                   char ret_id[BOURSE_ID_SIZE], struct bourse_error *ret_error)
{
    if (!client_ready(bourse, ret_error) ||
        !put_everything(bourse, job, progress, context, ret_error)) {
        return false;
    }
    CLEANUP(codec_requirement_free)
    Bourse__V1__Requirement *needs = codec_requirement_to_wire(&job->needs);
    if (needs == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    const struct job_file *file = job->file;
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    body.name = file->name;
    body.manifest = client_bytes(job->manifest_hash.bytes, sizeof job->manifest_hash.bytes);
    body.subtasks = (uint32_t)job->subtasks;
    body.budget_micro = budget_micro;
    body.has_cap_micro = limit_micro >= 0;
    body.cap_micro = body.has_cap_micro ? limit_micro : 0;
    body.needs = needs;
    body.slots = file->slots;
    body.at_most = file->at_most;
    body.limit_ms = file->limit_ms;
    body.term_ms = file->term_ms;
    body.verify = file->verify;
    body.has_retries = 1;
    body.retries = file->retries;
    body.has_error_limit = file->error_limit != JOB_ABSENT;
    body.error_limit = body.has_error_limit ? (uint32_t)file->error_limit : 0;
    body.has_expect_ms = 1;
    body.expect_ms = job->expect_ms;
    if (!client_call_as(bourse, &job->id, MESSAGE_SUBMIT_JOB, &body.base, 0, NULL, ret_error)) {
        return false;
    }
    text_hex(job->id.bytes, sizeof job->id.bytes, ret_id);
    return true;
}
