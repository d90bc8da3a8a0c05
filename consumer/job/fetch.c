/* This file fetches results. Outputs go into a folder, standard output and error to a
 * descriptor. */
#include "consumer/client/client.h"
#include "consumer/client/rows.h"
#include "consumer/job/place.h"
#include "consumer/job/result_checks.h"
#include "consumer/job/tasks.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "formats/template.h"
#include "protocol/limits.h"
#include "protocol/subtask.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 16 };

void client_manifest_free(Bourse__V1__Manifest **self)
{
    ProtobufCMessage *message = *self != NULL ? &(*self)->base : NULL;
    codec_free(&message);
    *self = NULL;
}

/* ---------------------------------------------------------------- one blob */

struct filling {
    struct bourse *client;
    struct hash32 hash;
    uint64_t size;
    struct bourse_error *error;
};

static bool fill_from_broker(void *context, int fd)
{
    struct filling *filling = context;
    if (filling->size == 0) {
        return true; /* the caller checks the hash, as for any file */
    }
    struct blob_client *blobs = client_blobs_begin(filling->client, filling->error);
    if (blobs == NULL) {
        return false;
    }
    struct problem problem = {.text = ""};
    enum reject_code reject = REJECT_NONE;
    uint64_t size = 0;
    int unwritten = 0;
    bool ok = blob_client_get(blobs, &filling->hash, NULL, filling->size, fd, &size, &reject,
                              &unwritten, &problem);
    client_blobs_end(filling->client);
    if (!ok && unwritten != 0) {
        return client_fail(filling->error, BOURSE_LOCAL, "%s", problem.text);
    }
    if (!ok) {
        return client_blob_failed(filling->client, filling->error, reject, &problem);
    }
    client_breathe(filling->client);
    return true;
}

static bool filling_of(struct bourse *client, const struct bourse_output *output,
                       struct filling *ret_filling, struct bourse_error *error)
{
    *ret_filling = (struct filling){.client = client, .size = output->size, .error = error};
    return text_unhex(output->hash, ret_filling->hash.bytes, sizeof ret_filling->hash.bytes)
               ? true
               : client_fail(error, BOURSE_UNVERIFIED,
                             "the broker sent an output without its hash");
}

enum { WHAT_SIZE = 160 + LIMIT_PATH_BYTES };

static void name_output(const char *name, uint32_t index, const char *job, char ret_what[WHAT_SIZE])
{
    (void)snprintf(ret_what, WHAT_SIZE, "the %s of subtask %" PRIu32 " of job %s", name, index,
                   job);
}

/* ---------------------------------------------------------------- a folder of outputs */

struct fetch {
    struct bourse *client;
    const char *job;
    const Bourse__V1__Manifest *manifest;
    const char *folder;
    struct place_folder *places; /* NULL until the first output arrives */
    /* Tree of the written paths, by their hash. Two subtasks must not share a path. */
    void *taken;
    bourse_fetch_progress *progress;
    void *context;
    struct bourse_fetched *done;
    struct bourse_error *error;
    bool failed;
    /* Declared output that is missing in the result of subtask `left_out_index`; NULL: none. */
    const char *left_out;
    uint32_t left_out_index;
};

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hash32));
}

/* Remembers a path. Returns false when another subtask has it or memory is short. */
static bool take(struct fetch *fetch, const char *path)
{
    struct hash32 *key = malloc(sizeof *key);
    if (key == NULL) {
        return client_fail(fetch->error, BOURSE_LOCAL, "out of memory");
    }
    *key = sha256_of(path, strlen(path));
    void *node = tsearch(key, &fetch->taken, by_bytes);
    if (node == NULL || *(struct hash32 **)node != key) {
        free(key);
        return client_fail(
            fetch->error, BOURSE_LOCAL,
            "two subtasks have an output at %s; give each its own name, with {out} or {in} in "
            "`outputs:`",
            path);
    }
    return true;
}

static bool placed(struct fetch *fetch, enum place_status status, uint64_t size,
                   const struct problem *problem)
{
    switch (status) {
    case PLACE_WRITTEN:
        fetch->done->written++;
        fetch->done->bytes += size;
        return true;
    case PLACE_PRESENT:
        fetch->done->present++;
        return true;
    case PLACE_UNFILLED:
        return false; /* the error is filled */
    case PLACE_WRONG:
        return client_fail(fetch->error, BOURSE_UNVERIFIED, "%s", problem->text);
    case PLACE_OCCUPIED:
    case PLACE_FAILED:
        return client_fail(fetch->error, BOURSE_LOCAL, "%s", problem->text);
    }
    return false;
}

/* Returns the file of `each:`. The blocks of a product's tiles have the same names in all tiles, so
 * they do not count. */
static const char *input_of(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const Bourse__V1__ManifestSubtask *subtask =
        index < manifest->n_subtasks ? manifest->subtasks[index] : NULL;
    if (subtask == NULL || subtask->n_inputs == 0) {
        return NULL;
    }
    const char *name = subtask->inputs[0]->name;
    return subtask->value == NULL || strcmp(subtask->value, name) == 0 ? name : NULL;
}

/* Returns the subtask's number in the first job, so that outputs of a continued job go to the same
 * places. */
static uint32_t number_of(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    bool has_number = index < manifest->n_subtasks && manifest->subtasks[index]->has_number;
    return has_number ? manifest->subtasks[index]->number : index;
}

static bool path_of(const Bourse__V1__Manifest *manifest, uint32_t index,
                    const struct bourse_output *output, char ret_path[PLACE_PATH_SIZE])
{
    const char *task = tasks_name(manifest, index);
    bool numbered = index < manifest->n_subtasks && manifest->subtasks[index]->has_number;
    if (task != NULL) {
        return place_path_of_task(task, output->name, ret_path);
    }
    uint32_t count = manifest->subtask_count - result_checks_count(manifest);
    return place_path(input_of(manifest, index), count == 1 && !numbered,
                      number_of(manifest, index), output->name, ret_path);
}

static bool fetch_output(struct fetch *fetch, uint32_t index, const struct bourse_output *output)
{
    char path[PLACE_PATH_SIZE];
    if (!path_of(fetch->manifest, index, output, path)) {
        return client_fail(
            fetch->error, BOURSE_UNVERIFIED,
            "subtask %u has an output whose name is no plain relative path, or misnames "
            "its file with a mark that cannot be seen: '%s'",
            index, output->name);
    }
    struct filling filling;
    if (!take(fetch, path) || !filling_of(fetch->client, output, &filling, fetch->error)) {
        return false;
    }
    struct problem problem = {.text = ""};
    if (fetch->places == NULL) {
        fetch->places = place_folder_open(fetch->folder, &problem);
    }
    if (fetch->places == NULL) {
        return client_fail(fetch->error, BOURSE_LOCAL, "%s", problem.text);
    }
    enum place_status status = place_file(fetch->places, path, &filling.hash, filling.size,
                                          fill_from_broker, &filling, &problem);
    fetch->done->files++;
    if (status == PLACE_UNFILLED) {
        char name[64 + LIMIT_PATH_BYTES];
        char what[WHAT_SIZE];
        (void)snprintf(name, sizeof name, "output '%s'", output->name);
        name_output(name, index, fetch->job, what);
        return client_blob_named(fetch->error, &filling.hash, what);
    }
    return placed(fetch, status, filling.size, &problem);
}

static bool has_output(const struct bourse_outcome *outcome, const char *name)
{
    for (size_t i = 0; i < outcome->output_count; i++) {
        if (strcmp(outcome->outputs[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Markets of earlier rules accepted results without a declared output. The existing outputs are
 * fetched all the same. */
static void note_left_out(struct fetch *fetch, const struct bourse_outcome *outcome)
{
    const struct subtask_terms terms = subtask_terms(fetch->manifest, outcome->index);
    const struct template_values values = {
        .in = terms.input, .value = terms.value, .index = terms.number};
    for (size_t i = 0; i < terms.output_count && fetch->left_out == NULL; i++) {
        char *name = template_filled(terms.outputs[i], &values, LIMIT_PATH_BYTES, NULL);
        if (name == NULL || !has_output(outcome, name)) {
            fetch->left_out_index = outcome->index;
            fetch->left_out = terms.outputs[i];
        }
        free(name);
    }
}

static bool fetch_outcome(void *context, const struct bourse_outcome *outcome)
{
    struct fetch *fetch = context;
    const Bourse__V1__Manifest *manifest = fetch->manifest;
    bool is_check = outcome->index >= manifest->subtask_count - result_checks_count(manifest);
    if (outcome->status != ATTEMPT_ACCEPTED || is_check) {
        return true;
    }
    fetch->done->subtasks++;
    fetch->done->simulated += outcome->simulated;
    for (size_t i = 0; i < outcome->output_count; i++) {
        if (client_interrupted(fetch->client)) {
            fetch->failed = !client_fail(fetch->error, BOURSE_INTERRUPTED, "interrupted");
        } else {
            fetch->failed = !fetch_output(fetch, outcome->index, &outcome->outputs[i]);
        }
        if (fetch->failed) {
            return false;
        }
    }
    if (fetch->progress != NULL) {
        fetch->progress(fetch->context, fetch->done);
    }
    note_left_out(fetch, outcome);
    return true;
}

bool client_manifest(struct bourse *client, const char *id, Bourse__V1__Manifest **ret_manifest,
                     struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct hash32 hash;
    if (!bourse_jobs(client, id, &jobs, error)) {
        return false;
    }
    if (!text_unhex(bourse_jobs_row(jobs, 0)->manifest, hash.bytes, sizeof hash.bytes)) {
        return client_fail(error, BOURSE_UNVERIFIED,
                           "the broker sent job %.8s without the hash of its manifest", id);
    }
    struct blob_client *blobs = client_blobs_begin(client, error);
    if (blobs == NULL) {
        return false;
    }
    struct problem problem = {.text = ""};
    enum reject_code reject = REJECT_NONE;
    uint8_t *bytes = NULL;
    size_t length = 0;
    bool ok = blob_client_get_bytes(blobs, &hash, NULL, LIMIT_MANIFEST_BYTES, &bytes, &length,
                                    &reject, &problem);
    client_blobs_end(client);
    if (!ok) {
        char what[64];
        (void)snprintf(what, sizeof what, "the manifest of job %s", id);
        return client_blob_failed(client, error, reject, &problem) ||
               client_blob_named(error, &hash, what);
    }
    enum codec_status status = codec_decode_manifest(bytes, length, ret_manifest, NULL);
    free(bytes);
    return status == CODEC_OK
               ? true
               : client_fail(error, BOURSE_UNVERIFIED, "the job's manifest does not decode");
}

bool bourse_fetch(struct bourse *bourse, const char *id, const char *folder,
                  bourse_fetch_progress *progress, void *context,
                  struct bourse_fetched *ret_fetched, struct bourse_error *ret_error)
{
    *ret_fetched = (struct bourse_fetched){.files = 0};
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (!client_manifest(bourse, id, &manifest, ret_error)) {
        return false;
    }
    struct problem problem = {.text = ""};
    struct fetch fetch = {.client = bourse,
                          .job = id,
                          .manifest = manifest,
                          .folder = folder,
                          .progress = progress,
                          .context = context,
                          .done = ret_fetched,
                          .error = ret_error};
    ret_fetched->declares_outputs = manifest->n_outputs > 0;
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestTask *task = manifest->subtasks[i]->task;
        ret_fetched->declares_outputs |= task != NULL && task->n_outputs > 0;
    }
    bool listed = bourse_outcomes(bourse, id, 0, fetch_outcome, &fetch, ret_error);
    tdestroy(fetch.taken, free);
    /* Whole files stay, whatever ended the rest. */
    const bool settled =
        fetch.places == NULL || place_folder_settle(fetch.places, &problem) == PLACE_WRITTEN;
    if (fetch.places != NULL) {
        place_folder_close(&fetch.places);
    }
    if (listed && !fetch.failed && !settled) {
        return client_fail(ret_error, BOURSE_LOCAL, "%s", problem.text);
    }
    if (listed && !fetch.failed && fetch.left_out != NULL) {
        return client_fail(
            ret_error, BOURSE_UNVERIFIED,
            "subtask %" PRIu32 " has left out its output '%s', and was accepted all "
            "the same, by a market of earlier rules: submit the job again to have it",
            fetch.left_out_index, fetch.left_out);
    }
    return listed && !fetch.failed;
}

/* ---------------------------------------------------------------- standard output and errors */

struct wanted {
    uint32_t index;
    bool standard_error;
    bool found; /* the subtask has a result */
    bool has;   /* the result has the wanted stream */
    bool accepted;
    struct bourse_output output;
};

static bool find_stream(void *context, const struct bourse_outcome *outcome)
{
    struct wanted *wanted = context;
    if (outcome->index != wanted->index) {
        return outcome->index < wanted->index;
    }
    if (wanted->accepted) {
        return true; /* an accepted attempt decides, whatever came later */
    }
    wanted->found = true;
    wanted->accepted = outcome->status == ATTEMPT_ACCEPTED;
    wanted->has =
        wanted->standard_error ? outcome->has_standard_error : outcome->has_standard_output;
    wanted->output = wanted->standard_error ? outcome->standard_error : outcome->standard_output;
    return true;
}

static bool copy_to(int from, uint64_t size, int to, struct bourse_error *error)
{
    uint8_t buffer[COPY_BYTES];
    uint64_t done = 0;
    while (done < size) {
        ssize_t got = pread(from, buffer, sizeof buffer, (off_t)done);
        if (got <= 0) {
            return client_fail(error, BOURSE_LOCAL, "the fetched output cannot be read back: %s",
                               strerror(errno));
        }
        for (ssize_t sent = 0; sent < got;) {
            ssize_t wrote = write(to, buffer + sent, (size_t)(got - sent));
            if (wrote < 0 && errno != EINTR) {
                return client_fail(error, BOURSE_LOCAL, "the output cannot be written: %s",
                                   strerror(errno));
            }
            sent += wrote > 0 ? wrote : 0;
        }
        done += (uint64_t)got;
    }
    return true;
}

bool bourse_copy_output(struct bourse *bourse, const struct bourse_output *output, const char *what,
                        int fd, struct bourse_error *ret_error)
{
    if (output->size == 0) {
        return true;
    }
    struct filling filling;
    if (!filling_of(bourse, output, &filling, ret_error)) {
        return false;
    }
    int memory = memfd_create("bourse-log", MFD_CLOEXEC);
    if (memory < 0) {
        return client_fail(ret_error, BOURSE_LOCAL, "%s", strerror(errno));
    }
    /* The blob client verifies the hash before it reports success, so nothing unverified reaches
     * `fd`. */
    bool ok = fill_from_broker(&filling, memory)
                  ? copy_to(memory, output->size, fd, ret_error)
                  : client_blob_named(ret_error, &filling.hash, what);
    (void)close(memory); /* a memory file has nothing to lose */
    return ok;
}

bool bourse_log(struct bourse *bourse, const char *id, uint32_t index, bool standard_error, int fd,
                struct bourse_error *ret_error)
{
    struct wanted wanted = {.index = index, .standard_error = standard_error};
    /* Two rows suffice: a row of the next subtask shows that no other attempt of this one
     * follows. */
    if (!client_outcomes(bourse, id, index, 2, find_stream, &wanted, ret_error)) {
        return false;
    }
    if (!wanted.found) {
        return client_no_result(bourse, id, index, ret_error);
    }
    char what[WHAT_SIZE];
    name_output(standard_error ? "standard error" : "standard output", index, id, what);
    return !wanted.has || bourse_copy_output(bourse, &wanted.output, what, fd, ret_error);
}
