/* This file makes the manifest of a prepared job. */
#include "consumer/job/manifest.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/job/input/job_inputs.h"
#include "consumer/job/manifest_refusal.h"
#include "consumer/job/manifest_subtasks.h"
#include "consumer/job/result_checks.h"
#include "formats/template.h"
#include "protocol/codec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- terms */

/* These terms are SubmitJob's fields without prices. A job that continues this job needs them. */
struct terms {
    Bourse__V1__ManifestTerms wire;
    Bourse__V1__ManifestPart parts[ORDER_PARTS_MAX];
    Bourse__V1__ManifestPart *part_pointers[ORDER_PARTS_MAX];
};

static void terms_fini(struct terms *terms)
{
    for (size_t i = 0; i < terms->wire.n_parts; i++) {
        codec_requirement_free(&terms->parts[i].needs);
    }
}

static bool terms_make(const struct bourse_job *job, struct terms *terms)
{
    bourse__v1__manifest_terms__init(&terms->wire);
    terms->wire.verify = job->file->verify;
    terms->wire.retries = job->file->retries;
    terms->wire.has_error_limit = job->file->error_limit != JOB_ABSENT;
    terms->wire.error_limit = terms->wire.has_error_limit ? (uint32_t)job->file->error_limit : 0;
    terms->wire.has_crash_limit = job->file->crash_limit != JOB_ABSENT;
    terms->wire.crash_limit = terms->wire.has_crash_limit ? (uint32_t)job->file->crash_limit : 0;
    terms->wire.has_interruptions = job->file->interruptions != JOB_ABSENT;
    terms->wire.interruptions =
        terms->wire.has_interruptions ? (uint32_t)job->file->interruptions : 0;
    terms->wire.has_good_till_ms = job->file->good_till_at_ms > 0;
    terms->wire.good_till_ms = job->file->good_till_at_ms;
    terms->wire.has_good_for_ms = job->file->good_till_ms > 0;
    terms->wire.good_for_ms = job->file->good_till_ms;
    terms->wire.has_objective = job->file->objective != JOB_OBJECTIVE_TIME;
    terms->wire.objective = (uint32_t)job->file->objective;
    terms->wire.capped = limit_is_set(job->file->cap_micro) || job->file->value.rate != RATE_NONE;
    terms->wire.parts = terms->part_pointers;
    for (size_t i = 0; i < job->part_count; i++) {
        const struct order_part *part = &job->parts[i];
        Bourse__V1__ManifestPart *wire = &terms->parts[i];
        bourse__v1__manifest_part__init(wire);
        wire->subtasks = part->subtasks;
        wire->slots = part->slots;
        wire->at_most = part->at_most;
        wire->limit_ms = part->limit_ms;
        wire->term_ms = part->term_ms;
        wire->expect_ns = part->expect_ns;
        wire->needs = codec_requirement_to_wire(&part->needs);
        if (wire->needs == NULL) {
            return false;
        }
        terms->part_pointers[terms->wire.n_parts++] = wire;
    }
    return true;
}

/* ---------------------------------------------------------------- what goes in */

static int64_t added_bytes(int64_t sum, uint64_t more)
{
    int64_t result;
    const int64_t bounded = more > INT64_MAX ? INT64_MAX : (int64_t)more;
    return checked_add(sum, bounded, &result) ? result : INT64_MAX;
}

static int64_t files_bytes(const Bourse__V1__Manifest *manifest)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < manifest->n_shared; i++) {
        bytes = added_bytes(bytes, manifest->shared[i]->size);
    }
    return bytes;
}

int64_t manifest_shared_bytes(const Bourse__V1__Manifest *manifest)
{
    return added_bytes(files_bytes(manifest), manifest->has_image_size ? manifest->image_size : 0);
}

int64_t manifest_own_bytes(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    int64_t bytes = 0;
    for (size_t i = 0; index < manifest->n_subtasks && i < manifest->subtasks[index]->n_inputs;
         i++) {
        bytes = added_bytes(bytes, manifest->subtasks[index]->inputs[i]->size);
    }
    return bytes;
}

/* ---------------------------------------------------------------- encoding */

bool manifest_encode(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                     struct bourse_error *error)
{
    /* The size is checked before any allocation, because a job can far exceed a manifest's
     * limit. */
    size_t size = protobuf_c_message_get_packed_size(&manifest->base);
    if (size > LIMIT_MANIFEST_BYTES) {
        return client_fail(
            error, BOURSE_USAGE,
            "the list of subtasks takes %zu bytes, and a manifest at most %d; split the job", size,
            LIMIT_MANIFEST_BYTES);
    }
    job->manifest = codec_encode(&manifest->base, &job->manifest_length);
    if (job->manifest == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    job->manifest_hash = sha256_of(job->manifest, job->manifest_length);
    return true;
}

/* Decodes the manifest as the agents will. Here a fault shows before anything is paid. */
static bool check_manifest(const struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                           struct bourse_error *error)
{
    Bourse__V1__Manifest *decoded = NULL;
    struct codec_error refused = {.field = ""};
    enum codec_status status =
        codec_decode_manifest(job->manifest, job->manifest_length, &decoded, &refused);
    if (status == CODEC_OK) {
        ProtobufCMessage *message = &decoded->base;
        codec_free(&message);
        return true;
    }
    if (status == CODEC_OUT_OF_MEMORY) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    char text[BOURSE_TEXT_SIZE];
    manifest_refusal_text(manifest, &refused, text, sizeof text);
    return client_fail(error, BOURSE_USAGE, "%s", text);
}

/* Every slot has at least this much disk space (provider/config.h). Jobs ask for multiples of this
 * step. */
#define ROOM_STEP_BYTES (INT64_C(1) << 20)

/* Returns true when the needs already ask for at least so much. The needs of a continued job do. */
static bool has_least(const struct requirement *needs, const char *name, int64_t least)
{
    for (uint32_t i = needs->count;
         i >= 2 && needs->nodes[i - 1].op == REQUIREMENT_AND && needs->nodes[i - 1].arity == 2 &&
         needs->nodes[i - 2].op == REQUIREMENT_GE;
         i -= 2) {
        const struct attribute *of = &needs->nodes[i - 2].attribute;
        if (strcmp(of->name, name) == 0 && of->number >= least) {
            return true;
        }
    }
    return false;
}

/* Adds the need for disk space for the inputs. The size of files between tasks is not known yet. */
static bool need_disk(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                      struct bourse_error *error)
{
    const int64_t shared_bytes = added_bytes(files_bytes(manifest), job->packed.more_bytes);
    uint32_t index = 0;
    for (size_t i = 0; i < job->part_count; i++) {
        struct order_part *part = &job->parts[i];
        int64_t most_bytes = 0;
        for (uint32_t end = index + part->subtasks; index < end; index++) {
            const int64_t own_bytes = manifest_own_bytes(manifest, index);
            most_bytes = own_bytes > most_bytes ? own_bytes : most_bytes;
        }
        const int64_t step_bytes = ROOM_STEP_BYTES * part->slots;
        const int64_t bytes = added_bytes(shared_bytes, (uint64_t)most_bytes);
        const int64_t steps = bytes / step_bytes + (bytes % step_bytes > 0);
        const int64_t least_bytes = steps > 1 ? steps * ROOM_STEP_BYTES : 0;
        if (least_bytes > 0 && !has_least(&part->needs, "disk", least_bytes) &&
            !order_add_least(&part->needs, "disk", least_bytes)) {
            return client_fail(error, BOURSE_USAGE,
                               "needs: too many conditions; at most %d may stand beside the disk "
                               "space for the job's files",
                               REQUIREMENT_NODES_MAX - 2);
        }
    }
    return true;
}

/* Adds the need that a device can unpack the image. */
static bool need_image(struct bourse_job *job, struct bourse_error *error)
{
    bool good = true;
    for (size_t i = 0; i < job->part_count && good; i++) {
        good = order_add_image(&job->parts[i].needs, job->image_has.entries, job->image_has.bytes);
    }
    return good || client_fail(error, BOURSE_USAGE,
                               "needs: too many conditions; at most %d may stand beside the space "
                               "for the job's image",
                               REQUIREMENT_NODES_MAX - 6);
}

/* The attribute `folders` says which of these an agent knows. */
enum { FOLDERS_ALONE = 1, FOLDERS_WITH_PATTERNS = 2, FOLDERS_AS_TREES = 3 };

static bool has_any(char *const *names, size_t count, bool is_wanted(const char *name))
{
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        found = is_wanted(names[i]);
    }
    return found;
}

/* Returns true when an output of the job, or of one of its tasks, is wanted. */
static bool has_output(const Bourse__V1__Manifest *manifest, bool is_wanted(const char *name))
{
    bool found = has_any(manifest->outputs, manifest->n_outputs, is_wanted);
    for (size_t i = 0; i < manifest->n_subtasks && !found; i++) {
        const Bourse__V1__ManifestTask *task = manifest->subtasks[i]->task;
        found = task != NULL && has_any(task->outputs, task->n_outputs, is_wanted);
    }
    return found;
}

static bool has_input(Bourse__V1__ManifestInput *const *inputs, size_t count, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        found = strcmp(inputs[i]->name, name) == 0;
    }
    return found;
}

/* Returns true when an input of the job, or of one of its tasks, is the listing of a folder. */
static bool has_listing(const Bourse__V1__Manifest *manifest)
{
    bool found = has_input(manifest->shared, manifest->n_shared, INPUT_LIST_LISTING);
    for (size_t i = 0; i < manifest->n_subtasks && !found; i++) {
        const Bourse__V1__ManifestSubtask *subtask = manifest->subtasks[i];
        found = subtask->task != NULL &&
                has_input(subtask->inputs, subtask->n_inputs, INPUT_LIST_LISTING);
    }
    return found;
}

/* Returns true when inputs or outputs of the job are folders, which travel as archives. */
static bool has_folders(const Bourse__V1__Manifest *manifest)
{
    bool found = has_output(manifest, template_is_folder);
    for (size_t i = 0; i < manifest->n_shared && !found; i++) {
        found = template_is_folder(manifest->shared[i]->name);
    }
    return found;
}

/* Returns the least that `folders` must be on a device for this job. */
static int64_t least_folders(const Bourse__V1__Manifest *manifest)
{
    if ((manifest->has_trees && manifest->trees) || has_listing(manifest)) {
        return FOLDERS_AS_TREES;
    }
    return manifest->has_patterns && manifest->patterns ? FOLDERS_WITH_PATTERNS
           : has_folders(manifest)                      ? FOLDERS_ALONE
                                                        : 0;
}

/* Agents of earlier versions know no archives, no patterns or no trees, so the job asks for devices
 * that do. */
static bool need_folders(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                         struct bourse_error *error)
{
    bool good = true;
    const int64_t least = least_folders(manifest);
    if (least == 0) {
        return true;
    }
    for (size_t i = 0; i < job->part_count && good; i++) {
        struct requirement *needs = &job->parts[i].needs;
        good = has_least(needs, "folders", least) || order_add_least(needs, "folders", least);
    }
    return good || client_fail(error, BOURSE_USAGE,
                               "needs: too many conditions; at most %d may stand beside the need "
                               "for devices that take folders",
                               REQUIREMENT_NODES_MAX - 2);
}

bool manifest_finish(struct bourse_job *job, Bourse__V1__Manifest *manifest,
                     struct bourse_error *error)
{
    CLEANUP(result_checks_destroy) struct result_checks *checks = NULL;
    if (!result_checks_add(job, manifest, &checks, error) || !need_image(job, error) ||
        !need_disk(job, manifest, error) || !need_folders(job, manifest, error)) {
        return false;
    }
    struct terms *terms = calloc(1, sizeof *terms);
    if (terms == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    bool good = terms_make(job, terms) || client_fail(error, BOURSE_LOCAL, "out of memory");
    manifest->terms = &terms->wire;
    good = good && manifest_encode(job, manifest, error) && check_manifest(job, manifest, error);
    manifest->terms = NULL;
    terms_fini(terms);
    free(terms);
    return good;
}

/* ---------------------------------------------------------------- what tasks take */

bool manifest_takes_files(const Bourse__V1__Manifest *manifest, uint32_t index)
{
    const Bourse__V1__ManifestTask *task =
        index < manifest->n_subtasks ? manifest->subtasks[index]->task : NULL;
    for (size_t i = 0; task != NULL && i < task->n_from; i++) {
        if (task->from[i]->output != NULL) {
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- the whole manifest */

/* These are the lists of a manifest whose length has a small bound. */
struct lists {
    Bourse__V1__ManifestVariable variables[LIMIT_VARIABLES];
    Bourse__V1__ManifestVariable *variable_pointers[LIMIT_VARIABLES];
    Bourse__V1__ManifestInput shared[LIMIT_INPUTS];
    Bourse__V1__ManifestInput *shared_pointers[LIMIT_INPUTS];
    Bourse__V1__ManifestLimits limits;
};

static bool fill_lists(struct bourse_job *job, struct lists *lists, Bourse__V1__Manifest *manifest,
                       struct bourse_error *error)
{
    const struct job_file *file = job->file;
    if (file->env_count > LIMIT_VARIABLES || job->shared.count >= LIMIT_INPUTS) {
        return client_fail(error, BOURSE_USAGE,
                           "the job has %zu environment variables and %zu shared files; at most %d "
                           "and %d are possible",
                           file->env_count, job->shared.count, LIMIT_VARIABLES, LIMIT_INPUTS - 1);
    }
    manifest_variables_to_wire(file->env, file->env_count, lists->variables,
                               lists->variable_pointers);
    for (size_t i = 0; i < job->shared.count; i++) {
        manifest_input_to_wire(&job->shared.items[i], &lists->shared[i]);
        lists->shared_pointers[i] = &lists->shared[i];
    }
    manifest_limits_to_wire(file->limit_ms, &file->limits, &lists->limits);
    manifest->n_environment = file->env_count;
    manifest->environment = lists->variable_pointers;
    manifest->n_shared = job->shared.count;
    manifest->shared = lists->shared_pointers;
    manifest->limits = &lists->limits;
    return true;
}

bool manifest_make_of(struct bourse_job *job, Bourse__V1__ManifestSubtask **items, size_t count,
                      struct bourse_error *error)
{
    static char command_executor[] = "command";
    static char noop_executor[] = "noop";
    static char tensor_executor[] = "tensor";
    static char kernel_executor[] = "kernel";
    static char plugin_executor[] = "plugin";
    static char wasm_executor[] = "wasm";
    static char onnx_executor[] = "onnx";
    struct job_file *file = job->file;
    struct lists *lists = calloc(1, sizeof *lists);
    if (lists == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (file->task_count == 0) {
        job->parts[0].subtasks = (uint32_t)job->subtasks;
    }
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = file->is_noop     ? noop_executor
                        : file->is_tensor ? tensor_executor
                        : file->is_kernel ? kernel_executor
                        : file->is_plugin ? plugin_executor
                        : file->is_wasm   ? wasm_executor
                        : file->is_onnx   ? onnx_executor
                                          : command_executor;
    manifest.name = file->name;
    manifest.n_arguments = file->run.count;
    manifest.arguments = file->run.items;
    manifest.standard_input = file->standard_input;
    manifest.checkpoint = file->checkpoint;
    manifest.has_retain_ms = file->retain_ms != JOB_ABSENT;
    manifest.retain_ms = file->retain_ms;
    if (file->task_count == 0) { /* a task has its own outputs */
        manifest.n_outputs = file->outputs.count;
        manifest.outputs = file->outputs.items;
    }
    if (job->image.count == 1) {
        struct input_file *image = &job->image.items[0];
        manifest.has_image = 1;
        manifest.image = client_bytes(image->hash.bytes, sizeof image->hash.bytes);
        manifest.has_image_size = 1;
        manifest.image_size = image->size;
        manifest.directory = job->start.directory;
        manifest.has_user = job->start.has_user;
        manifest.user = job->start.user;
        manifest.has_group = job->start.has_user;
        manifest.group = job->start.group;
    }
    Bourse__V1__ManifestTerminal terminal = BOURSE__V1__MANIFEST_TERMINAL__INIT;
    terminal.columns = file->terminal.columns;
    terminal.rows = file->terminal.rows;
    terminal.has_plain = terminal.plain = file->terminal.is_plain;
    manifest.terminal = file->terminal.columns != 0 ? &terminal : NULL;
    manifest.n_subtasks = count;
    manifest.subtasks = items;
    manifest.subtask_count = (uint32_t)job->subtasks;
    manifest.has_expect_ns = file->expect_ms != JOB_ABSENT;
    manifest.expect_ns =
        manifest.has_expect_ns ? order_expect_ns(file->expect_ms, file->limit_ms) : 0;
    manifest.has_patterns = manifest.patterns = has_output(&manifest, template_is_pattern);
    manifest.has_trees = manifest.trees =
        job_inputs_have_trees(file) &&
        (manifest.patterns || has_output(&manifest, template_is_folder));
    bool ok = fill_lists(job, lists, &manifest, error) && manifest_finish(job, &manifest, error);
    free(lists);
    return ok;
}

bool manifest_make(struct bourse_job *job, const char *folder, struct bourse_error *error)
{
    CLEANUP(manifest_subtasks_fini) struct manifest_subtasks subtasks = {.items = NULL};
    if (!manifest_subtasks_make(job, folder, &subtasks, error)) {
        return false;
    }
    if (job_file_has_checkpoints(job->file) && job->subtasks > LIMIT_GRAPH_SUBTASKS) {
        return client_fail(error, BOURSE_USAGE,
                           "checkpoint: the job has %" PRIu64
                           " subtasks; a job with checkpoints has at most %d",
                           job->subtasks, LIMIT_GRAPH_SUBTASKS);
    }
    return manifest_make_of(job, subtasks.pointers, subtasks.count, error);
}
