/* This file submits a job: it stores the blobs that the broker lacks, then places the job. */
#include "consumer/job/submit.h"
#include "consumer/client/client.h"
#include "consumer/job/bourse_job.h"
#include "consumer/job/quote/power_limits.h"
#include "consumer/job/result_checks.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "runtime/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PUT_BATCH = 128, /* files open at a time */
    /* A blob that the broker has stays for LIMIT_FORGET_GRACE_MS. A pass over all blobs that took
     * half of that leaves time to submit. */
    PUT_QUICK_MS = LIMIT_FORGET_GRACE_MS / 2,
    PUT_PASSES = 8,
};

/* ---------------------------------------------------------------- blobs */

struct put {
    struct bourse *client;
    struct blob_client *blobs;
    bourse_progress *progress;
    void *context;
    const struct blob_source *manifest; /* goes with the first batch; NULL: sent */
    uint64_t done, total;               /* bytes, over all batches */
    const struct hash32 *lost;          /* only these blobs; NULL: all */
    size_t lost_count;
    struct bourse_error *error;
};

static void put_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct put *put = context;
    (void)total_bytes; /* total of this batch alone */
    client_breathe(put->client);
    if (put->progress != NULL) {
        put->progress(put->context, put->done + done_bytes, put->total);
    }
}

/* `sources` has room for one more than a batch, the manifest. A small blob sent alone would cost a
 * question, an answer and a sync of its own. */
static bool put_sources(struct put *put, struct blob_source *sources, size_t count)
{
    if (put->manifest != NULL) {
        sources[count++] = *put->manifest;
        put->manifest = NULL;
    }
    struct problem problem = {.text = ""};
    enum reject_code reject = REJECT_NONE;
    bool is_unread = false;
    if (!blob_client_put(put->blobs, sources, count, NULL, put_progress, put, &reject, &is_unread,
                         &problem)) {
        if (is_unread) {
            return client_fail(put->error, BOURSE_LOCAL, "%s; nothing was submitted", problem.text);
        }
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
    struct blob_source sources[PUT_BATCH + 1];
    size_t opened = 0;
    bool ok = true;
    while (ok && opened < count) {
        struct problem problem = {.text = ""};
        uint64_t size = 0;
        int fd = input_file_open(files[opened], &size, &problem);
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

/* Returns every file of the job once by content, sorted by hash, without those that are made.
 * Returns NULL when memory is short. */
static struct input_file **unique_files(const struct bourse_job *job, size_t *ret_count)
{
    const struct input_list *lists[] = {&job->own, &job->shared, &job->image, &job->found};
    const size_t list_count = sizeof lists / sizeof lists[0];
    size_t count = 0;
    for (size_t l = 0; l < list_count; l++) {
        count += lists[l]->count;
    }
    struct input_file **files = calloc(count + 1, sizeof *files);
    if (files == NULL) {
        return NULL;
    }
    count = 0;
    for (size_t l = 0; l < list_count; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            if (!lists[l]->items[i].is_made) {
                files[count++] = &lists[l]->items[i];
            }
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

static bool put_made(struct put *put, const struct made_blobs *made)
{
    for (size_t i = 0; i < made->count;) {
        struct blob_source sources[PUT_BATCH + 1];
        size_t count = 0;
        for (; count < PUT_BATCH && i < made->count; i++) {
            sources[count++] = (struct blob_source){.hash = made->items[i].hash,
                                                    .size = made->items[i].size,
                                                    .fd = -1,
                                                    .read = made->read,
                                                    .locate = made->locate,
                                                    .context = made->context,
                                                    .index = i};
        }
        if (!put_sources(put, sources, count)) {
            return false;
        }
    }
    return true;
}

static bool is_wanted(const struct put *put, const struct hash32 *hash)
{
    bool wanted = put->lost == NULL;
    for (size_t i = 0; i < put->lost_count && !wanted; i++) {
        wanted = hash32_equal(&put->lost[i], hash);
    }
    return wanted;
}

static size_t keep_wanted(const struct put *put, struct input_file **files, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(put, &files[i]->hash)) {
            files[kept++] = files[i];
        }
    }
    return kept;
}

static bool wants_made(const struct put *put, const struct made_blobs *made)
{
    bool wants = false;
    for (size_t i = 0; i < made->count && !wants; i++) {
        wants = is_wanted(put, &made->items[i].hash);
    }
    return wants;
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
    put.manifest = &manifest;
    bool ok = put.blobs != NULL && put_files(&put, files, count) && put_made(&put, &job->made);
    if (ok && put.manifest != NULL) { /* the job has no files */
        struct blob_source alone[1];
        ok = put_sources(&put, alone, 0);
    }
    client_blobs_end(client);
    free(files);
    return ok;
}

/* Stores all blobs. During a long upload, a file that the broker had at first may be forgotten and
 * removed. So the broker is asked again until the answers are new, and what is gone is sent. */
static bool put_until_new(struct bourse *client, const struct bourse_job *job,
                          bourse_progress *progress, void *context, struct bourse_error *error)
{
    for (int pass = 0; pass < PUT_PASSES; pass++) {
        const int64_t began_ns = clock_monotonic_ns();
        if (!put_everything(client, job, pass == 0 ? progress : NULL, context, error)) {
            return false;
        }
        if (clock_monotonic_ns() - began_ns < PUT_QUICK_MS * NS_PER_MS) {
            return true;
        }
    }
    return true; /* a link so slow that no pass is quick: the agents say what is missing */
}

/* ---------------------------------------------------------------- submit */

/* SubmitJob points to these values. */
struct message {
    Bourse__V1__SubmitJob body;
    Bourse__V1__Part parts[ORDER_PARTS_MAX];
    Bourse__V1__Part *part_pointers[ORDER_PARTS_MAX];
    Bourse__V1__Graph graph;
    Bourse__V1__Value value;
};

static void message_free(struct message **self)
{
    struct message *message = *self;
    if (message != NULL) {
        for (size_t i = 0; i < message->body.n_parts; i++) {
            codec_requirement_free(&message->parts[i].needs);
        }
        codec_requirement_free(&message->body.needs);
        free(message);
        *self = NULL;
    }
}

bool submit_is_checks(const struct bourse_job *job, size_t part)
{
    return job->checks > 0 && part + 1 == job->part_count;
}

Bourse__V1__Value *submit_value(const struct job_file *file, Bourse__V1__Value *ret_wire)
{
    bourse__v1__value__init(ret_wire);
    ret_wire->micro = file->value.micro;
    ret_wire->rate = file->value.rate;
    return file->value.rate == RATE_NONE ? NULL : ret_wire;
}

Bourse__V1__Requirement *submit_needs(const struct bourse_job *job, size_t part,
                                      struct bourse_error *error)
{
    struct requirement needs = job->parts[part].needs;
    if (part == 0 && !power_limits_add_needs(&job->power_limits, &needs)) {
        (void)client_fail(error, BOURSE_USAGE,
                          "needs: too many terms to ask for the devices of least energy");
        return NULL;
    }
    if (job->spares_referee && !submit_is_checks(job, part) &&
        !result_checks_need_no_referee(&needs)) {
        (void)client_fail(error, BOURSE_USAGE,
                          "needs: too many terms to keep the only referee for the checks");
        return NULL;
    }
    Bourse__V1__Requirement *wire = codec_requirement_to_wire(&needs);
    if (wire == NULL) {
        (void)client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    return wire;
}

/* The first part is in the message itself. */
static bool add_parts(struct message *message, const struct bourse_job *job, const int64_t *limits,
                      struct bourse_error *error)
{
    for (size_t i = 1; i < job->part_count; i++) {
        const struct order_part *part = &job->parts[i];
        Bourse__V1__Part *wire = &message->parts[i - 1];
        bourse__v1__part__init(wire);
        wire->subtasks = part->subtasks;
        wire->slots = part->slots;
        wire->at_most = part->at_most;
        wire->limit_ms = part->limit_ms;
        wire->term_ms = part->term_ms;
        wire->has_expect_ns = 1;
        wire->expect_ns = part->expect_ns;
        wire->has_cap_micro = limit_is_set(limits[i]);
        wire->cap_micro = wire->has_cap_micro ? limits[i] : 0;
        wire->value = message->body.value;
        wire->needs = submit_needs(job, i, error);
        if (wire->needs == NULL) {
            return false;
        }
        message->part_pointers[message->body.n_parts++] = wire;
    }
    message->body.parts = message->part_pointers;
    return true;
}

static void add_graph(struct message *message, const struct order_graph *graph)
{
    if (graph->count == 0) {
        return;
    }
    bourse__v1__graph__init(&message->graph);
    message->graph.n_rank = graph->count;
    message->graph.rank = graph->rank;
    message->graph.n_expect_ms = graph->expect_ms != NULL ? graph->count : 0;
    message->graph.expect_ms = graph->expect_ms;
    message->graph.n_after_count = graph->edge_count > 0 ? graph->count : 0;
    message->graph.after_count = graph->after_count;
    message->graph.n_after = graph->edge_count;
    message->graph.after = graph->after;
    message->body.graph = &message->graph;
}

static_assert((int)JOB_ORDER_IOC == ORDER_IOC && (int)JOB_ORDER_FOK == ORDER_FOK &&
                  (int)JOB_ORDER_POST_ONLY == ORDER_POST_ONLY &&
                  (int)JOB_ORDER_ALL_OR_NONE == ORDER_ALL_OR_NONE &&
                  (int)JOB_ORDER_MARKET == ORDER_MARKET,
              "a file's order is the wire's");

/* Returns NULL and fills the error on failure. */
static struct message *message_of(struct bourse_job *job, int64_t budget_micro,
                                  const int64_t *limits, struct bourse_error *error)
{
    const struct job_file *file = job->file;
    const struct order_part *part = &job->parts[0];
    CLEANUP(message_free) struct message *message = calloc(1, sizeof *message);
    if (message == NULL) {
        (void)client_fail(error, BOURSE_LOCAL, "out of memory");
        return NULL;
    }
    Bourse__V1__SubmitJob *body = &message->body;
    bourse__v1__submit_job__init(body);
    body->name = file->name;
    body->manifest = client_bytes(job->manifest_hash.bytes, sizeof job->manifest_hash.bytes);
    body->subtasks = (uint32_t)job->subtasks;
    body->budget_micro = budget_micro;
    body->value = submit_value(file, &message->value);
    body->has_cap_micro = limit_is_set(limits[0]);
    body->cap_micro = body->has_cap_micro ? limits[0] : 0;
    body->slots = part->slots;
    body->at_most = part->at_most;
    body->limit_ms = part->limit_ms;
    body->term_ms = part->term_ms;
    body->verify = file->verify;
    body->has_retries = 1;
    body->retries = file->retries;
    body->has_error_limit = file->error_limit != JOB_ABSENT;
    body->error_limit = body->has_error_limit ? (uint32_t)file->error_limit : 0;
    body->has_crash_limit = file->crash_limit != JOB_ABSENT;
    body->crash_limit = body->has_crash_limit ? (uint32_t)file->crash_limit : 0;
    body->has_interruptions = file->interruptions != JOB_ABSENT;
    body->interruptions = body->has_interruptions ? (uint32_t)file->interruptions : 0;
    body->has_checkpoint = body->checkpoint = job_file_has_checkpoints(file);
    body->has_order_type = true;
    body->order_type = (uint32_t)file->order;
    body->has_expect_ns = 1;
    body->expect_ns = part->expect_ns;
    body->needs = submit_needs(job, 0, error);
    if (body->needs == NULL || !add_parts(message, job, limits, error)) {
        return NULL;
    }
    add_graph(message, &job->graph);
    struct message *made = message;
    message = NULL;
    return made;
}

/* ---------------------------------------------------------------- what the broker lost */

void submit_keep(struct bourse *bourse, const struct bourse_job *job)
{
    /* A continued job counts the files that were found for it. */
    const bool has_files = job != NULL && job->own.count + job->shared.count + job->image.count +
                                                  job->found.count + job->made.count >
                                              0;
    bourse->kept = has_files ? job : NULL;
}

/* A file that changed since the submission is not the lost one; the error says so. */
static bool send_these(struct bourse *bourse, const struct bourse_job *job,
                       const struct hash32 *lost, size_t lost_count, struct bourse_error *error)
{
    size_t count = 0;
    struct put put = {.client = bourse,
                      .blobs = client_blobs_begin(bourse, error),
                      .error = error,
                      .lost = lost,
                      .lost_count = lost_count};
    struct input_file **files = unique_files(job, &count);
    if (files == NULL || put.blobs == NULL) {
        client_blobs_end(bourse);
        free(files);
        return false;
    }
    count = keep_wanted(&put, files, count);
    const bool has_made = wants_made(&put, &job->made);
    const struct blob_source manifest = {
        .hash = job->manifest_hash, .size = job->manifest_length, .fd = -1, .bytes = job->manifest};
    const bool has_manifest = is_wanted(&put, &manifest.hash);
    put.manifest = has_manifest ? &manifest : NULL;
    bool ok = put_files(&put, files, count) && (!has_made || put_made(&put, &job->made));
    if (ok && put.manifest != NULL) {
        struct blob_source alone[1];
        ok = put_sources(&put, alone, 0);
    }
    client_blobs_end(bourse);
    free(files);
    return ok && (count > 0 || has_made || has_manifest);
}

bool submit_send_lost(struct bourse *bourse, const struct bourse_job *job,
                      struct bourse_error *error)
{
    struct hash32 lost[BLOB_LOST_MAX];
    size_t count = 0;
    struct problem problem = {.text = ""};
    struct blob_client *blobs = client_blobs_begin(bourse, error);
    const bool is_told =
        blobs != NULL && blob_client_lost(blobs, NULL, lost, BLOB_LOST_MAX, &count, &problem);
    client_blobs_end(bourse);
    if (!is_told) {
        return client_fail(error, BOURSE_UNREACHABLE, "%s", problem.text);
    }
    return count > 0 && send_these(bourse, job, lost, count, error);
}

/* Returns true when the job file states what a subtask takes, and this is what the market is told.
 * A time that the market measured is a mean, which says nothing about the quickest device. */
static bool states_expectations(const struct bourse_job *job)
{
    const struct job_file *file = job->file;
    bool is_stated = file->expect_ms != JOB_ABSENT;
    for (size_t i = 0; i < file->task_count; i++) {
        is_stated = is_stated || file->tasks[i].expect_ms != JOB_ABSENT;
    }
    return is_stated && job->learned.subtasks == 0;
}

int64_t submit_deadline_ms(const struct bourse *bourse, const struct bourse_job *job)
{
    const struct job_file *file = job->file;
    return file->deadline_ms > 0
               ? consumer_session_log_time_ms(bourse->session, clock_monotonic_ns()) +
                     file->deadline_ms
               : file->deadline_at_ms;
}

bool submit_job(struct bourse *bourse, struct bourse_job *job, int64_t budget_micro,
                const int64_t limits[ORDER_PARTS_MAX], bourse_progress *progress, void *context,
                char ret_id[BOURSE_ID_SIZE], struct bourse_error *error)
{
    if (job->file->after.count > 0) {
        return client_fail(error, BOURSE_USAGE,
                           "after: the job follows %zu others, and a submission waits for none; "
                           "wait for them, and leave the key out, or use `bourse submit`",
                           job->file->after.count);
    }
    if (!client_ready(bourse, error) || !put_until_new(bourse, job, progress, context, error)) {
        return false;
    }
    CLEANUP(message_free) struct message *message = message_of(job, budget_micro, limits, error);
    if (message == NULL) {
        return false;
    }
    if (job->file->good_till_at_ms > 0) {
        message->body.has_good_till_ms = 1;
        message->body.good_till_ms = job->file->good_till_at_ms;
    }
    if (job->file->good_till_ms > 0) {
        message->body.has_good_till_ms = 1;
        message->body.good_till_ms =
            consumer_session_log_time_ms(bourse->session, clock_monotonic_ns()) +
            job->file->good_till_ms;
    }
    const int64_t deadline_ms = submit_deadline_ms(bourse, job);
    message->body.has_deadline_ms = deadline_ms > 0;
    message->body.deadline_ms = deadline_ms;
    message->body.has_expect_stated = message->body.expect_stated =
        deadline_ms > 0 && states_expectations(job);
    if (!client_call_as(bourse, &job->id, MESSAGE_SUBMIT_JOB, &message->body.base, 0, NULL,
                        error)) {
        return false;
    }
    text_hex(job->id.bytes, sizeof job->id.bytes, ret_id);
    return true;
}

bool bourse_submit(struct bourse *bourse, struct bourse_job *job, int64_t budget_micro,
                   int64_t limit_micro, bourse_progress *progress, void *context,
                   char ret_id[BOURSE_ID_SIZE], struct bourse_error *ret_error)
{
    int64_t limits[ORDER_PARTS_MAX];
    for (size_t i = 0; i < ORDER_PARTS_MAX; i++) {
        limits[i] = job->file->value.rate == RATE_NONE ? limit_micro : LIMIT_NONE;
    }
    return submit_job(bourse, job, budget_micro, limits, progress, context, ret_id, ret_error);
}
