/* This file makes a job of the rest of an ended one. The manifest stays the same without the
 * accepted subtasks, whose outputs become inputs by their hashes. */
#include "consumer/client/client.h"
#include "consumer/job/job_build.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/manifest.h"
#include "consumer/job/result_checks.h"
#include "consumer/job/tasks.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/limit.h"
#include "base/text.h"
#include "protocol/subtask.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TAKEN UINT32_MAX /* place of an accepted subtask */

struct left_file { /* an output of an accepted subtask */
    uint32_t index;
    struct bourse_output output;
    bool is_executable;
};

struct resume {
    const Bourse__V1__Manifest *manifest;
    uint32_t *place;         /* by subtask: its place in the new job, or TAKEN */
    uint32_t count;          /* number of remaining subtasks */
    struct order_part check; /* terms of the checks; slots 0: no checks */
    struct left_file *files; /* by index, then in the order of arrival */
    size_t file_count, file_capacity;
    bool failed;                       /* memory was short */
    int64_t good_till_ms, good_for_ms; /* of the new job; 0: for ever */
    int64_t deadline_ms;               /* of the new job, a moment; 0: none */
    /* The new manifest points to these values. */
    Bourse__V1__ManifestSubtask *subtasks;
    Bourse__V1__ManifestSubtask **subtask_pointers;
    Bourse__V1__ManifestTask *tasks;
    Bourse__V1__ManifestInput *inputs; /* outputs of accepted subtasks */
    Bourse__V1__ManifestInput **input_pointers;
    struct hash32 *hashes;
    Bourse__V1__ManifestFrom *from;
    Bourse__V1__ManifestFrom **from_pointers;
    size_t taken, own, waits; /* used numbers of inputs, input_pointers and from */
};

static void resume_fini(struct resume *resume)
{
    free(resume->place);
    free(resume->files);
    free(resume->subtasks);
    free(resume->subtask_pointers);
    free(resume->tasks);
    free(resume->inputs);
    free(resume->input_pointers);
    free(resume->hashes);
    free(resume->from);
    free(resume->from_pointers);
}

/* ---------------------------------------------------------------- what was done */

static bool keep_file(struct resume *resume, const struct bourse_outcome *outcome, size_t i)
{
    struct left_file *files =
        array_with_room(resume->files, resume->file_count, &resume->file_capacity, sizeof *files);
    if (files == NULL) {
        resume->failed = true;
        return false;
    }
    resume->files = files;
    files[resume->file_count++] =
        (struct left_file){.index = outcome->index,
                           .output = outcome->outputs[i],
                           .is_executable = (outcome->executable >> i & 1) != 0};
    return true;
}

static bool see_outcome(void *context, const struct bourse_outcome *outcome)
{
    struct resume *resume = context;
    if (outcome->status != ATTEMPT_ACCEPTED || outcome->index >= resume->manifest->subtask_count) {
        return true;
    }
    resume->place[outcome->index] = TAKEN;
    bool has_tasks = outcome->index < resume->manifest->n_subtasks &&
                     resume->manifest->subtasks[outcome->index]->task != NULL;
    for (size_t i = 0; has_tasks && i < outcome->output_count; i++) {
        if (!keep_file(resume, outcome, i)) {
            return false;
        }
    }
    return true;
}

static bool see_outcomes(struct bourse *bourse, const char *id, struct resume *resume,
                         struct bourse_error *error)
{
    uint32_t count = resume->manifest->subtask_count;
    resume->place = calloc(count, sizeof *resume->place);
    if (resume->place == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (!bourse_outcomes(bourse, id, 0, see_outcome, resume, error)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (resume->place[i] != TAKEN) {
            resume->place[i] = resume->count++;
        }
    }
    return !resume->failed || client_fail(error, BOURSE_LOCAL, "out of memory");
}

/* ---------------------------------------------------------------- what is left */

static bool allocate(struct resume *resume)
{
    size_t inputs = 0;
    size_t waits = 0;
    for (size_t i = 0; i < resume->manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestSubtask *subtask = resume->manifest->subtasks[i];
        if (resume->place[i] != TAKEN && subtask->task != NULL) {
            inputs += subtask->n_inputs;
            waits += subtask->task->n_from;
        }
    }
    resume->subtasks = calloc(resume->count, sizeof *resume->subtasks);
    resume->subtask_pointers = calloc(resume->count, sizeof(void *));
    resume->tasks = calloc(resume->count, sizeof *resume->tasks);
    resume->inputs = calloc(waits + 1, sizeof *resume->inputs);
    resume->hashes = calloc(waits + 1, sizeof *resume->hashes);
    resume->input_pointers = calloc(inputs + waits + 1, sizeof(void *));
    resume->from = calloc(waits + 1, sizeof *resume->from);
    resume->from_pointers = calloc(waits + 1, sizeof(void *));
    return resume->subtasks != NULL && resume->subtask_pointers != NULL && resume->tasks != NULL &&
           resume->inputs != NULL && resume->hashes != NULL && resume->input_pointers != NULL &&
           resume->from != NULL && resume->from_pointers != NULL;
}

static const struct left_file *find_file(const struct resume *resume, uint32_t index,
                                         const char *name)
{
    size_t low = 0; /* becomes the subtask's first file; files come by index */
    for (size_t high = resume->file_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (resume->files[middle].index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < resume->file_count && resume->files[low].index == index; low++) {
        if (strcmp(resume->files[low].output.name, name) == 0) {
            return &resume->files[low];
        }
    }
    return NULL;
}

/* An output of an accepted subtask becomes an input. */
static bool take_file(struct resume *resume, const Bourse__V1__ManifestFrom *from,
                      struct bourse_error *error)
{
    const struct left_file *file = find_file(resume, from->task, from->output);
    struct hash32 *hash = &resume->hashes[resume->taken];
    if (file == NULL || !text_unhex(file->output.hash, hash->bytes, sizeof hash->bytes)) {
        return client_fail(error, BOURSE_UNVERIFIED,
                           "subtask %u was accepted without its output '%s'", from->task,
                           from->output);
    }
    Bourse__V1__ManifestInput *input = &resume->inputs[resume->taken++];
    bourse__v1__manifest_input__init(input);
    input->name = from->name;
    input->hash = client_bytes(hash->bytes, sizeof hash->bytes);
    input->size = file->output.size;
    input->has_executable = input->executable = file->is_executable;
    resume->input_pointers[resume->own++] = input;
    return true;
}

/* Sets the tasks that a task still waits for, and the inputs from finished ones. */
static bool continue_task(struct resume *resume, const Bourse__V1__ManifestSubtask *old,
                          Bourse__V1__ManifestSubtask *subtask, struct bourse_error *error)
{
    Bourse__V1__ManifestTask *task = &resume->tasks[subtask - resume->subtasks];
    *task = *old->task;
    task->n_from = 0;
    task->from = &resume->from_pointers[resume->waits];
    subtask->task = task;
    subtask->inputs = &resume->input_pointers[resume->own];
    size_t first = resume->own;
    for (size_t i = 0; i < old->n_inputs; i++) {
        resume->input_pointers[resume->own++] = old->inputs[i];
    }
    for (size_t i = 0; i < old->task->n_from; i++) {
        const Bourse__V1__ManifestFrom *from = old->task->from[i];
        uint32_t place = resume->place[from->task];
        if (place == TAKEN && from->output != NULL && !take_file(resume, from, error)) {
            return false;
        }
        if (place != TAKEN) {
            resume->from[resume->waits] = *from;
            resume->from[resume->waits].task = place;
            resume->from_pointers[resume->waits] = &resume->from[resume->waits];
            resume->waits++;
            task->n_from++;
        }
    }
    subtask->n_inputs = resume->own - first;
    return true;
}

/* Each subtask keeps its number, which names its outputs. A job of one subtask has no numbers. */
static bool continue_subtasks(struct resume *resume, struct bourse_error *error)
{
    const Bourse__V1__Manifest *manifest = resume->manifest;
    bool is_listed = manifest->n_subtasks > 0;
    for (uint32_t i = 0; i < manifest->subtask_count; i++) {
        if (resume->place[i] == TAKEN) {
            continue;
        }
        Bourse__V1__ManifestSubtask *subtask = &resume->subtasks[resume->place[i]];
        bourse__v1__manifest_subtask__init(subtask);
        if (is_listed) {
            *subtask = *manifest->subtasks[i];
        }
        if (!subtask->has_number && manifest->subtask_count > 1) {
            subtask->has_number = 1;
            subtask->number = i;
        }
        resume->subtask_pointers[resume->place[i]] = subtask;
        if (subtask->task != NULL &&
            !continue_task(resume, manifest->subtasks[i], subtask, error)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the job */

/* Keeps the parts, each with its remaining subtasks. */
static bool continue_parts(const struct resume *resume, struct bourse_job *job)
{
    const Bourse__V1__ManifestTerms *terms = resume->manifest->terms;
    uint32_t index = 0;
    for (size_t i = 0; i < terms->n_parts; i++) {
        const Bourse__V1__ManifestPart *wire = terms->parts[i];
        struct order_part *part = &job->parts[job->part_count];
        uint32_t left = 0;
        if (job->part_count == ORDER_PARTS_MAX ||
            wire->subtasks > resume->manifest->subtask_count - index) {
            return false;
        }
        for (uint32_t k = 0; k < wire->subtasks; k++) {
            left += resume->place[index++] != TAKEN;
        }
        *part = (struct order_part){.subtasks = left,
                                    .slots = wire->slots,
                                    .at_most = wire->at_most,
                                    .limit_ms = wire->limit_ms,
                                    .term_ms = wire->term_ms,
                                    .expect_ns = wire->expect_ns};
        if (!codec_requirement_from_wire(wire->needs, &part->needs)) {
            return false;
        }
        job->part_count += left > 0;
    }
    return index == resume->manifest->subtask_count;
}

/* Returns true for a time that is only the default and was not stated by the job. */
static bool is_guess(const Bourse__V1__Manifest *manifest, int64_t expect_ns, int64_t limit_ms)
{
    return !manifest->has_expect_ns && expect_ns == order_expect_ns(JOB_ABSENT, limit_ms);
}

/* Sets the expected time of each remaining subtask when they differ: tasks, and work on files of
 * unlike size. Returns false when memory is short. */
static bool expect_apart(const struct resume *resume, struct bourse_job *job)
{
    bool is_apart = false;
    int64_t *expect_ns = calloc(resume->count, sizeof *expect_ns);
    if (expect_ns == NULL) {
        return false;
    }
    for (uint32_t i = 0, part = 0, end = 0; i < resume->count; i++) {
        end = i == 0 ? job->parts[0].subtasks : end;
        if (i == end) {
            end += job->parts[++part].subtasks;
        }
        const Bourse__V1__ManifestSubtask *subtask = &resume->subtasks[i];
        is_apart = is_apart || subtask->has_expect_ns || subtask->task != NULL;
        expect_ns[i] = subtask->has_expect_ns ? subtask->expect_ns : job->parts[part].expect_ns;
    }
    if (!is_apart) {
        free(expect_ns);
        expect_ns = NULL;
    }
    job->expect_ns = expect_ns;
    return true;
}

static bool make_graph(const struct resume *resume, struct bourse_job *job)
{
    if (resume->manifest->n_subtasks == 0 || resume->manifest->subtasks[0]->task == NULL) {
        return true;
    }
    struct order_graph *graph = &job->graph;
    const int64_t *expect_ns = job->expect_ns;
    graph->rank = calloc(resume->count, sizeof *graph->rank);
    graph->expect_ms = calloc(resume->count, sizeof *graph->expect_ms);
    graph->after_count = calloc(resume->count, sizeof *graph->after_count);
    graph->after = calloc(resume->waits + 1, sizeof *graph->after);
    bool good = graph->rank != NULL && graph->expect_ms != NULL && graph->after_count != NULL &&
                graph->after != NULL;
    for (uint32_t i = 0, part = 0, end = 0; good && i < resume->count; i++) {
        end = i == 0 ? job->parts[0].subtasks : end;
        if (i == end) {
            end += job->parts[++part].subtasks;
        }
        const Bourse__V1__ManifestTask *task = resume->subtasks[i].task;
        graph->expect_ms[i] = is_guess(resume->manifest, expect_ns[i], job->parts[part].limit_ms)
                                  ? 0
                                  : order_known_ms(expect_ns[i]);
        uint32_t *after = graph->after + graph->edge_count;
        for (size_t k = 0; task != NULL && k < task->n_from; k++) {
            after[k] = task->from[k]->task;
        }
        graph->after_count[i] = order_unique(after, task == NULL ? 0 : task->n_from);
        graph->edge_count += graph->after_count[i];
    }
    if (good) {
        graph->count = resume->count;
        order_rank(graph, expect_ns);
    }
    return good;
}

/* Makes the fields of a job file that the quote, the plan and SubmitJob need. */
static struct job_file *file_of(const struct resume *resume, int64_t cap_micro,
                                const struct value *value, const struct order_part *part)
{
    const Bourse__V1__Manifest *manifest = resume->manifest;
    CLEANUP(job_file_destroy) struct job_file *file = job_file_create();
    if (file == NULL || !job_file_set(&file->name, manifest->name) ||
        !job_file_set(&file->verify, manifest->terms->verify)) {
        return NULL;
    }
    for (size_t i = 0; i < manifest->n_arguments; i++) {
        if (!job_strings_add(&file->run, manifest->n_arguments, manifest->arguments[i])) {
            return NULL;
        }
    }
    file->is_noop = strcmp(manifest->executor, "noop") == 0;
    file->is_tensor = strcmp(manifest->executor, "tensor") == 0;
    file->is_kernel = strcmp(manifest->executor, "kernel") == 0;
    file->is_plugin = strcmp(manifest->executor, "plugin") == 0;
    file->is_wasm = strcmp(manifest->executor, "wasm") == 0;
    file->is_onnx = strcmp(manifest->executor, "onnx") == 0;
    file->retries = manifest->terms->retries;
    file->error_limit =
        manifest->terms->has_error_limit ? (int64_t)manifest->terms->error_limit : JOB_ABSENT;
    file->crash_limit =
        manifest->terms->has_crash_limit ? (int64_t)manifest->terms->crash_limit : JOB_ABSENT;
    file->interruptions =
        manifest->terms->has_interruptions ? (int64_t)manifest->terms->interruptions : JOB_ABSENT;
    file->retain_ms = manifest->has_retain_ms ? manifest->retain_ms : JOB_ABSENT;
    file->good_till_at_ms = resume->good_till_ms;
    file->good_till_ms = resume->good_for_ms;
    file->deadline_at_ms = resume->deadline_ms;
    file->objective = manifest->terms->has_objective && manifest->terms->objective < JOB_OBJECTIVES
                          ? (enum job_objective)manifest->terms->objective
                          : JOB_OBJECTIVE_TIME;
    const char *checkpoint = subtask_terms(manifest, 0).checkpoint; /* all have one, or none */
    if (checkpoint != NULL && !job_file_set(&file->checkpoint, checkpoint)) {
        return NULL;
    }
    file->cap_micro = cap_micro;
    file->value = *value;
    file->slots = part->slots;
    file->at_most = part->at_most;
    file->limit_ms = part->limit_ms;
    file->term_ms = part->term_ms;
    if (manifest->has_expect_ns) { /* else the parts have the foreseen times */
        file->expect_ms = (manifest->expect_ns + NS_PER_MS - 1) / NS_PER_MS;
    }
    struct job_file *made = file;
    file = NULL;
    return made;
}

static bool make_manifest(const struct resume *resume, struct bourse_job *job,
                          struct bourse_error *error)
{
    Bourse__V1__Manifest manifest = *resume->manifest;
    manifest.subtask_count = resume->count;
    manifest.n_subtasks = job->file->is_noop && manifest.n_subtasks == 0 ? 0 : resume->count;
    manifest.subtasks = resume->subtask_pointers;
    manifest.has_continues = 1;
    manifest.continues = client_bytes(job->continued.bytes, sizeof job->continued.bytes);
    return manifest_finish(job, &manifest, error);
}

static bool make_job(const struct resume *resume, const struct id128 *continued, int64_t cap_micro,
                     const struct value *value, struct bourse_job **ret_job,
                     struct bourse_error *error)
{
    CLEANUP(bourse_job_destroy) struct bourse_job *job = job_build_begin(NULL);
    if (job == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    job->continues = true;
    job->continued = *continued;
    job->subtasks = resume->count;
    job->check = resume->check;
    if (!continue_parts(resume, job)) {
        return client_fail(error, BOURSE_UNVERIFIED, "the job's manifest contradicts itself");
    }
    job->file = file_of(resume, cap_micro, value, &job->parts[0]);
    if (job->file == NULL || !expect_apart(resume, job) || !make_graph(resume, job)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (!make_manifest(resume, job, error)) {
        return false;
    }
    *ret_job = job;
    job = NULL;
    return true;
}

static bool check_state(struct bourse *bourse, const char *id, int64_t *ret_submitted_ms,
                        int64_t *ret_deadline_ms, struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(bourse, id, &jobs, error)) {
        return false;
    }
    if (bourse_jobs_row(jobs, 0)->state == BOURSE_OPEN) {
        return client_fail(error, BOURSE_USAGE,
                           "the job has not ended; wait for it, or `bourse cancel %.8s` first", id);
    }
    *ret_submitted_ms = bourse_jobs_row(jobs, 0)->submitted_ms;
    *ret_deadline_ms = bourse_jobs_row(jobs, 0)->deadline_ms;
    return true;
}

/* The rest of a job keeps the job's end. Returns false when that moment has passed. */
static bool find_good_till(const Bourse__V1__ManifestTerms *terms, int64_t submitted_ms,
                           int64_t now_ms, int64_t *ret_good_till_ms, struct bourse_error *error)
{
    int64_t till_ms = terms->has_good_till_ms ? terms->good_till_ms : 0;
    if (terms->has_good_for_ms && terms->good_for_ms < INT64_MAX - submitted_ms) {
        till_ms = submitted_ms + terms->good_for_ms;
    }
    if (till_ms > 0 && till_ms <= now_ms) {
        if (error != NULL) {
            client_copy(error->field, sizeof error->field, "good_till");
        }
        return client_fail(error, BOURSE_USAGE,
                           "the moment that the job was good till has passed; say how long what is "
                           "left of it is good for, as in --good-till 2h");
    }
    *ret_good_till_ms = till_ms;
    return true;
}

static bool has_terms(const Bourse__V1__Manifest *manifest, struct bourse_error *error)
{
    return (manifest->terms != NULL && tasks_well_formed(manifest)) ||
           client_fail(error, BOURSE_USAGE,
                       "the job's manifest does not say what its devices must be; submit its "
                       "file again");
}

static bool check_terms(const Bourse__V1__Manifest *manifest, int64_t cap_micro,
                        const struct value *value, struct bourse_error *error)
{
    if (!has_terms(manifest, error)) {
        return false;
    }
    if (manifest->terms->capped && !limit_is_set(cap_micro) && value->rate == RATE_NONE) {
        return client_fail(error, BOURSE_USAGE,
                           "the job had a cap or a value, which only its file says; give it again "
                           "with --cap or --value");
    }
    if (value->rate != RATE_NONE && limit_is_set(cap_micro)) {
        return client_fail(error, BOURSE_USAGE, "a cap and a value; a limit is one or the other");
    }
    if (value->rate != RATE_NONE && strcmp(manifest->terms->verify, "cheap") == 0) {
        return client_fail(error, BOURSE_USAGE,
                           "checks are bought by the slot-hour; give a cap instead of a value");
    }
    return true;
}

/* Makes the rest of a job after all input is known. `resume` has the manifest and the end of the
 * new job. */
static bool make_rest(struct bourse *bourse, const char *id, Bourse__V1__Manifest *manifest,
                      struct resume *resume, const struct id128 *continued, int64_t cap_micro,
                      const struct value *value, struct bourse_job **ret_job,
                      struct bourse_error *error)
{
    if (result_checks_count(manifest) > 0 && !result_checks_remove(manifest, &resume->check)) {
        return client_fail(error, BOURSE_UNVERIFIED, "the job's manifest contradicts itself");
    }
    if (!see_outcomes(bourse, id, resume, error)) {
        return false;
    }
    if (resume->count == 0) {
        return client_fail(error, BOURSE_NOT_FOUND,
                           "nothing is left of the job %.8s: all of its subtasks are done", id);
    }
    if (!allocate(resume)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    return continue_subtasks(resume, error) &&
           make_job(resume, continued, cap_micro, value, ret_job, error);
}

bool resume_to_plan(struct bourse *bourse, const char *id, struct bourse_job **ret_job,
                    struct bourse_error *error)
{
    const struct value value = {0};
    struct id128 continued;
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (!client_id_read(id, &continued, error) || !client_manifest(bourse, id, &manifest, error) ||
        !has_terms(manifest, error)) {
        return false;
    }
    CLEANUP(resume_fini) struct resume resume = {.manifest = manifest};
    return make_rest(bourse, id, manifest, &resume, &continued, LIMIT_NONE, &value, ret_job, error);
}

bool bourse_job_resume(struct bourse *bourse, const char *id, int64_t cap_micro,
                       const char *value_given, int64_t good_for_ms, struct bourse_job **ret_job,
                       struct bourse_error *ret_error)
{
    struct value value = {0};
    int64_t submitted_ms = 0;
    int64_t good_till_ms = 0;
    int64_t deadline_ms = 0;
    if (!client_value(value_given, &value, ret_error)) {
        return false;
    }
    struct id128 continued;
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (!client_id_read(id, &continued, ret_error) ||
        !check_state(bourse, id, &submitted_ms, &deadline_ms, ret_error) ||
        !client_manifest(bourse, id, &manifest, ret_error) ||
        !check_terms(manifest, cap_micro, &value, ret_error)) {
        return false;
    }
    if (manifest->terminal != NULL) {
        return client_fail(ret_error, BOURSE_USAGE,
                           "job %.8s was a shell, and its terminal is gone; start another with "
                           "`bourse shell`",
                           id);
    }
    const int64_t now_ms = consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
    if (good_for_ms == 0 &&
        !find_good_till(manifest->terms, submitted_ms, now_ms, &good_till_ms, ret_error)) {
        return false;
    }
    CLEANUP(resume_fini)
    struct resume resume = {.manifest = manifest,
                            .good_till_ms = good_till_ms,
                            .good_for_ms = good_for_ms,
                            .deadline_ms = deadline_ms > now_ms ? deadline_ms : 0};
    return make_rest(bourse, id, manifest, &resume, &continued, cap_micro, &value, ret_job,
                     ret_error);
}
