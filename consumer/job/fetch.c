/* This file fetches the outputs of a job into a folder. */
#include "consumer/client/client.h"
#include "consumer/client/rows.h"
#include "consumer/job/input_list.h"
#include "consumer/job/output/fetch_blob.h"
#include "consumer/job/output/folder_unpack.h"
#include "consumer/job/output/output_pattern.h"
#include "consumer/job/place.h"
#include "consumer/job/result_checks.h"
#include "consumer/job/tasks.h"
#include "consumer/model/model_join.h"
#include "consumer/model/model_staged.h"
#include "consumer/train/train_place.h"

#include "base/cleanup.h"
#include "base/pattern.h"
#include "base/sha256.h"
#include "base/text.h"
#include "formats/output/result_note.h"
#include "formats/staging/staged_link.h"
#include "formats/template.h"
#include "protocol/limits.h"
#include "protocol/subtask.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void client_manifest_free(Bourse__V1__Manifest **self)
{
    ProtobufCMessage *message = *self != NULL ? &(*self)->base : NULL;
    codec_free(&message);
    *self = NULL;
}

/* ---------------------------------------------------------------- a folder of outputs */

struct fetch {
    struct bourse *client;
    const char *job;
    const Bourse__V1__Manifest *manifest;
    bool is_array;          /* of the manifest */
    const uint32_t *wanted; /* indices of the subtasks to fetch, rising; NULL: all */
    size_t wanted_count;
    size_t next; /* first of `wanted` that was not seen yet */
    const char *folder;
    struct place_folder *places; /* NULL until the first output arrives */
    /* Tree of the written paths, by their hash. Two subtasks must not share a path. */
    void *taken;
    bourse_fetch_progress *progress;
    void *context;
    struct bourse_fetched *done;
    struct bourse_error *error;
    bool failed;
    /* Declared output that is missing in the result of subtask `missing_index`; NULL: none. */
    const char *missing;
    uint32_t missing_index;
};

/* A written path. The hash of the path comes first, because the tree is sorted by it. */
struct taken {
    struct hash32 path;
    struct hash32 content;
    uint32_t index; /* the subtask whose output is there */
};

static int by_path(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hash32));
}

/* Remembers a path. Returns false with the error when another file has it, or memory is short. Sets
 * *ret_is_again when two patterns of the subtask match the same file. */
static bool take(struct fetch *fetch, uint32_t index, const char *path,
                 const struct hash32 *content, bool *ret_is_again)
{
    struct taken *key = malloc(sizeof *key);
    if (key == NULL) {
        return client_fail(fetch->error, BOURSE_LOCAL, "out of memory");
    }
    *key =
        (struct taken){.path = sha256_of(path, strlen(path)), .content = *content, .index = index};
    void *node = tsearch(key, &fetch->taken, by_path);
    if (node == NULL) {
        free(key);
        return client_fail(fetch->error, BOURSE_LOCAL, "out of memory");
    }
    const struct taken *first = *(struct taken **)node;
    if (first == key) {
        *ret_is_again = false;
        return true;
    }
    free(key);
    *ret_is_again = first->index == index && hash32_equal(&first->content, content);
    return *ret_is_again ||
           client_fail(fetch->error, BOURSE_LOCAL,
                       first->index != index
                           ? "two subtasks have an output at %s; give each its own name, with "
                             "{out} or {in} in `outputs:`"
                           : "two outputs of a subtask are at %s; give each its own name",
                       path);
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

/* Returns the number of an array. For other subtasks, returns the number in the first job, so that
 * outputs of a continued job go to the same places. */
static uint64_t number_of(const struct fetch *fetch, uint32_t index)
{
    return fetch->is_array ? subtask_number(fetch->manifest, true, index)
                           : subtask_terms(fetch->manifest, index).number;
}

static bool path_of(const struct fetch *fetch, uint32_t index, const struct bourse_output *output,
                    char ret_path[PLACE_PATH_SIZE])
{
    const Bourse__V1__Manifest *manifest = fetch->manifest;
    const char *task = tasks_name(manifest, index);
    bool numbered = index < manifest->n_subtasks && manifest->subtasks[index]->has_number;
    uint32_t part = 0;
    uint32_t parts = 0;
    if (model_staged_part(manifest, index, &part, &parts)) { /* as without stages */
        return place_path(NULL, parts == 1, part, output->name, ret_path);
    }
    if (task != NULL) {
        return place_path_of_task(task, output->name, ret_path);
    }
    uint32_t count = manifest->subtask_count - result_checks_count(manifest);
    return place_path(input_of(manifest, index), count == 1 && !numbered, number_of(fetch, index),
                      output->name, ret_path);
}

static bool open_places(struct fetch *fetch)
{
    struct problem problem = {.text = ""};
    if (fetch->places == NULL) {
        fetch->places = place_folder_open(fetch->folder, &problem);
    }
    return fetch->places != NULL || client_fail(fetch->error, BOURSE_LOCAL, "%s", problem.text);
}

static bool unfetched(struct fetch *fetch, uint32_t index, const struct bourse_output *output,
                      const struct hash32 *hash)
{
    char label[TASKS_LABEL_SIZE];
    char name[64 + LIMIT_PATH_BYTES];
    char what[FETCH_WHAT_SIZE];
    (void)snprintf(name, sizeof name, "output '%s'", output->name);
    tasks_label(fetch->manifest, index, label);
    fetch_blob_name(name, label, fetch->job, what);
    return client_blob_named(fetch->error, hash, what);
}

/* Finds the path that the output's name gives a file. Returns false with the error for a name that
 * cannot be one. */
static bool find_path(struct fetch *fetch, uint32_t index, const struct bourse_output *output,
                      char ret_path[PLACE_PATH_SIZE])
{
    char label[TASKS_LABEL_SIZE];
    if (path_of(fetch, index, output, ret_path)) {
        return true;
    }
    tasks_label(fetch->manifest, index, label);
    return client_fail(
        fetch->error, BOURSE_UNVERIFIED,
        "%s has an output whose name is no plain relative path, or misnames its file with a "
        "mark that cannot be seen: '%s'",
        label, output->name);
}

/* Places a file under the path that the output's name gives it. `fill` has reported its own
 * failures, with *ret_unfilled. */
static bool place_output(struct fetch *fetch, uint32_t index, const struct bourse_output *output,
                         const struct place_content *content, place_fill *fill, void *context,
                         bool *ret_unfilled)
{
    char path[PLACE_PATH_SIZE];
    struct problem problem = {.text = ""};
    bool is_again = false;
    if (!find_path(fetch, index, output, path) ||
        !take(fetch, index, path, &content->hash, &is_again) || !open_places(fetch)) {
        return false;
    }
    if (is_again) {
        return true; /* the file has been placed */
    }
    enum place_status status = place_file(fetch->places, path, content, fill, context, &problem);
    fetch->done->files++;
    *ret_unfilled = status == PLACE_UNFILLED;
    return placed(fetch, status, output->size, &problem);
}

static bool fetch_file(struct fetch *fetch, uint32_t index, const struct bourse_output *output,
                       bool is_executable)
{
    struct fetch_blob blob;
    bool is_unfilled = false;
    if (!fetch_blob_of(fetch->client, output, &blob, fetch->error)) {
        return false;
    }
    const struct place_content content = {
        .hash = blob.hash, .size = output->size, .is_executable = is_executable};
    const bool good =
        place_output(fetch, index, output, &content, fetch_blob_fill, &blob, &is_unfilled);
    return is_unfilled ? unfetched(fetch, index, output, &blob.hash) : good;
}

/* The folder of a subtask whose files are placed. */
struct unpacking {
    struct fetch *fetch;
    uint32_t index;
    const char *folder;  /* where the files lie in the work folder; "" or with a slash at its end */
    const char *pattern; /* of the names below the folder; NULL: every name is good */
    const struct folder_file *file;
};

static bool fill_from_archive(void *context, int fd)
{
    const struct unpacking *unpacking = context;
    return folder_file_copy(unpacking->file, fd) ||
           client_fail(unpacking->fetch->error, BOURSE_LOCAL, "%s: %s", unpacking->file->name,
                       strerror(errno));
}

/* Leaves a link out that would lead out of the output folder here, where fewer folders are above it
 * than in the work folder. */
static bool leave_out(struct fetch *fetch, uint32_t index, const char *path, const char *why)
{
    struct bourse_fetched *done = fetch->done;
    if (done->left_out++ == 0) {
        done->left_out_index = index;
        (void)snprintf(done->left_out_text, sizeof done->left_out_text,
                       "left out of the output folder: %.100s, which %s", path, why);
    }
    return true;
}

/* Places an empty folder or a link. */
static bool place_bare(struct fetch *fetch, uint32_t index, const struct bourse_output *output,
                       const struct folder_file *file)
{
    char path[PLACE_PATH_SIZE];
    struct problem problem = {.text = ""};
    bool is_again = false;
    if (!find_path(fetch, index, output, path) || !open_places(fetch)) {
        return false;
    }
    if (file->is_folder) {
        const enum place_status made = place_empty_folder(fetch->places, path, &problem);
        return made == PLACE_WRITTEN || made == PLACE_PRESENT || placed(fetch, made, 0, &problem);
    }
    const struct hash32 target = sha256_of(file->link, strlen(file->link));
    const char *why = staged_link_problem(path, file->link);
    if (why != NULL) {
        return leave_out(fetch, index, path, why);
    }
    if (!take(fetch, index, path, &target, &is_again) || is_again) {
        return is_again;
    }
    fetch->done->files++;
    return placed(fetch, place_link(fetch->places, path, file->link, &problem), 0, &problem);
}

static bool place_entry(void *context, const struct folder_file *file)
{
    struct unpacking *unpacking = context;
    struct fetch *fetch = unpacking->fetch;
    struct bourse_output output = {.size = file->size};
    bool is_unfilled = false;
    if (client_interrupted(fetch->client)) {
        return client_fail(fetch->error, BOURSE_INTERRUPTED, "interrupted");
    }
    if (unpacking->pattern != NULL &&
        pattern_reach(unpacking->pattern, file->name, file->is_folder) != PATTERN_MATCHES) {
        return client_fail(fetch->error, BOURSE_UNVERIFIED,
                           "the archive of a pattern has a file that the pattern does not match");
    }
    if (strlen(unpacking->folder) + strlen(file->name) >= sizeof output.name) {
        return client_fail(fetch->error, BOURSE_UNVERIFIED,
                           "the folder %.64s has a file whose name is too long", unpacking->folder);
    }
    (void)snprintf(output.name, sizeof output.name, "%s%s", unpacking->folder, file->name);
    unpacking->file = file;
    client_breathe(fetch->client);
    if (file->is_folder || file->link != NULL) {
        return place_bare(fetch, unpacking->index, &output, file);
    }
    const struct place_content content = {
        .hash = file->hash, .size = file->size, .is_executable = file->is_executable};
    return place_output(fetch, unpacking->index, &output, &content, fill_from_archive, unpacking,
                        &is_unfilled);
}

/* Makes a file without a name on the disk of the output folder, or elsewhere where that disk cannot
 * have one. Returns -1 with the error. */
static int open_archive(struct fetch *fetch)
{
    struct problem problem = {.text = ""};
    int fd = open(fetch->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    fd = fd < 0 ? input_temporary(&problem) : fd;
    if (fd < 0) {
        (void)client_fail(fetch->error, BOURSE_LOCAL, "%s", problem.text);
    }
    return fd;
}

/* Fetches the archive of a folder, or of the files of a pattern, and places the files. */
static bool fetch_archive(struct fetch *fetch, uint32_t index, const struct bourse_output *output,
                          const struct output_pattern *pattern)
{
    struct fetch_blob blob;
    struct problem problem = {.text = ""};
    if (!fetch_blob_of(fetch->client, output, &blob, fetch->error) || !open_places(fetch)) {
        return false;
    }
    const int fd = open_archive(fetch);
    if (fd < 0) {
        return false;
    }
    if (!fetch_blob_fill(&blob, fd)) {
        (void)close(fd); /* the file has no name and ends here */
        return unfetched(fetch, index, output, &blob.hash);
    }
    struct unpacking unpacking = {.fetch = fetch,
                                  .index = index,
                                  .folder =
                                      pattern->folder == NULL ? output->name : pattern->folder,
                                  .pattern = pattern->rest};
    const enum folder_status status =
        folder_unpack(fd, output->size, fetch->manifest->has_trees && fetch->manifest->trees,
                      place_entry, &unpacking, &problem);
    (void)close(fd);
    char label[TASKS_LABEL_SIZE];
    tasks_label(fetch->manifest, index, label);
    switch (status) {
    case FOLDER_OK:
        return true;
    case FOLDER_ENDED:
        return false; /* the error is filled */
    case FOLDER_UNFIT:
        return client_fail(fetch->error, BOURSE_UNVERIFIED,
                           "the archive of output '%s' of %s is not one of a folder: %s",
                           output->name, label, problem.text);
    case FOLDER_FAILED:
        break;
    }
    return client_fail(fetch->error, BOURSE_LOCAL, "the archive of output '%s' of %s: %s",
                       output->name, label, problem.text);
}

static bool fetch_output(struct fetch *fetch, const struct bourse_outcome *outcome, size_t i)
{
    const struct bourse_output *output = &outcome->outputs[i];
    if (model_staged_is_between(fetch->manifest, outcome->index, output->name) ||
        (fetch->wanted == NULL && train_place_is_between(fetch->manifest, outcome->index))) {
        return true;
    }
    CLEANUP(output_pattern_fini) struct output_pattern pattern = {.text = NULL};
    if (!output_pattern_find(fetch->manifest, outcome->index, output->name, &pattern)) {
        return client_fail(fetch->error, BOURSE_LOCAL, "out of memory");
    }
    return pattern.text != NULL || template_is_folder(output->name)
               ? fetch_archive(fetch, outcome->index, output, &pattern)
               : fetch_file(fetch, outcome->index, output, (outcome->executable >> i & 1) != 0);
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
static void note_missing(struct fetch *fetch, const struct bourse_outcome *outcome)
{
    const struct subtask_terms terms = subtask_terms(fetch->manifest, outcome->index);
    const struct template_values values = {
        .in = terms.input, .value = terms.value, .index = terms.number};
    for (size_t i = 0; i < terms.output_count && fetch->missing == NULL; i++) {
        char *name = template_filled(terms.outputs[i], &values, LIMIT_PATH_BYTES, NULL);
        if (name == NULL || !has_output(outcome, name)) {
            fetch->missing_index = outcome->index;
            fetch->missing = terms.outputs[i];
        }
        free(name);
    }
}

static void note_left_out(struct bourse_fetched *done, const struct bourse_outcome *outcome)
{
    char text[sizeof done->left_out_text];
    if (result_note_left_out(outcome->detail, text, sizeof text) && done->left_out++ == 0) {
        done->left_out_index = outcome->index;
        memcpy(done->left_out_text, text, sizeof text);
    }
}

/* Returns true for a wanted subtask. Outcomes come by index, and so do the wanted ones. */
static bool is_wanted(struct fetch *fetch, uint32_t index)
{
    while (fetch->next < fetch->wanted_count && fetch->wanted[fetch->next] < index) {
        fetch->next++;
    }
    return fetch->wanted == NULL ||
           (fetch->next < fetch->wanted_count && fetch->wanted[fetch->next] == index);
}

static bool fetch_outcome(void *context, const struct bourse_outcome *outcome)
{
    struct fetch *fetch = context;
    if (!is_wanted(fetch, outcome->index)) {
        return fetch->next < fetch->wanted_count; /* the others are not looked at */
    }
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
            fetch->failed = !fetch_output(fetch, outcome, i);
        }
        if (fetch->failed) {
            return false;
        }
    }
    if (fetch->progress != NULL) {
        fetch->progress(fetch->context, fetch->done);
    }
    note_missing(fetch, outcome);
    note_left_out(fetch->done, outcome);
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
               client_blob_named(error, &hash, what) || bourse_say_forgotten(client, id, error);
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
    return bourse_fetch_some(bourse, id, NULL, 0, folder, progress, context, ret_fetched,
                             ret_error);
}

bool bourse_fetch_some(struct bourse *bourse, const char *id, const uint32_t *indices, size_t count,
                       const char *folder, bourse_fetch_progress *progress, void *context,
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
                          .is_array = subtask_is_array(manifest),
                          .wanted = indices,
                          .wanted_count = count,
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
    const uint32_t first = count > 0 ? indices[0] : 0;
    bool listed = bourse_outcomes(bourse, id, first, fetch_outcome, &fetch, ret_error);
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
    if (listed && !fetch.failed && fetch.missing != NULL) {
        char label[TASKS_LABEL_SIZE];
        tasks_label(manifest, fetch.missing_index, label);
        return client_fail(
            ret_error, BOURSE_UNVERIFIED,
            "%s has left out its output '%s', and was accepted all the same, by a market of "
            "earlier rules: submit the job again to have it",
            label, fetch.missing);
    }
    if (listed && !fetch.failed && indices == NULL) {
        size_t joined = 0;
        const bool is_joined = model_join(manifest, folder, &joined, &problem);
        ret_fetched->files += joined;
        return is_joined || client_fail(ret_error, BOURSE_LOCAL, "%s", problem.text);
    }
    return (listed && !fetch.failed) || bourse_say_forgotten(bourse, id, ret_error);
}
