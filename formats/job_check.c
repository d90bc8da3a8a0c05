/* The rules across the fields of a job and of its tasks are checked here. */
#include "formats/job_internal.h"

#include "base/text.h"
#include "formats/limits.h"
#include "formats/tensor_op.h"
#include "formats/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAULT(fault, name, index, ...)                                                             \
    ((fault)->field = (name), (fault)->item = (index), problem_set(&(fault)->what, __VA_ARGS__),   \
     false)

bool job_text_fits(const char *field, size_t item, const char *text, size_t most,
                   struct job_fault *fault)
{
    size_t length = strlen(text);
    if (length > most) {
        return FAULT(fault, field, item, "%zu bytes; at most %zu are taken", length, most);
    }
    const size_t good = text_utf8_length(text, length);
    if (good == length) {
        return true;
    }
    const unsigned byte = (uint8_t)text[good];
    return strcmp(field, "run") == 0 && item > 0
               ? FAULT(fault, field, item,
                       "argument %zu has byte %zu, 0x%02x, which is not UTF-8: put the bytes into "
                       "an input file",
                       item, good + 1, byte)
               : FAULT(fault, field, item, "not UTF-8 text: byte %zu is 0x%02x", good + 1, byte);
}

bool job_template_fits(const struct job_file *job, const char *field, size_t item, const char *text,
                       struct job_fault *fault)
{
    struct problem problem;
    if (!job_text_fits(field, item, text, FORMAT_ARGUMENT_BYTES, fault)) {
        return false;
    }
    if (!template_check(text, job->source, &problem)) {
        return FAULT(fault, field, item, "%s", problem.text);
    }
    return true;
}

static bool strings_fit(const char *field, const struct job_strings *strings, size_t most_items,
                        struct job_fault *fault)
{
    if (strings->count > most_items) {
        return FAULT(fault, field, 0, "%zu items; at most %zu are taken", strings->count,
                     most_items);
    }
    for (size_t i = 0; i < strings->count; i++) {
        if (strings->items[i][0] == '\0') {
            return FAULT(fault, field, i, "an empty name");
        }
        if (!job_text_fits(field, i, strings->items[i], FORMAT_PATH_BYTES, fault)) {
            return false;
        }
    }
    return true;
}

/* A no-op executes and writes nothing, so a field for a program is a mistake. */
static bool check_noop(const struct job_file *job, struct job_fault *fault)
{
    const struct {
        const char *field;
        bool is_given;
    } fields[] = {
        {"each", job->each.count > 0},
        {"lines", job->lines != NULL},
        {"files", job->files.count > 0},
        {"image", job->image != NULL},
        {"run", job->run.count > 0},
        {"env", job->env_count > 0},
        {"stdin", job->standard_input != NULL},
        {"outputs", job->outputs.count > 0},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].is_given) {
            return FAULT(fault, fields[i].field, 0,
                         "a no-op has no program and no files; only array goes with it");
        }
    }
    return true;
}

static bool words_fit(const struct job_file *job, struct job_fault *fault)
{
    bool fit = true;
    for (size_t i = 0; fit && i < job->run.count; i++) {
        fit = job_template_fits(job, "run", i, job->run.items[i], fault);
    }
    return fit;
}

/* A matrix operation uses the executor's own program. */
static bool check_operation(const struct job_file *job, struct job_fault *fault)
{
    const char *field = job->image != NULL            ? "image"
                        : job->env_count > 0          ? "env"
                        : job->standard_input != NULL ? "stdin"
                                                      : NULL;
    if (field != NULL) {
        return FAULT(fault, field, 0,
                     "a tensor operation takes no env, stdin and image, only files");
    }
    struct tensor_op operation;
    struct problem problem;
    if (!tensor_op_read((const char *const *)job->run.items, job->run.count, true, &operation,
                        &problem)) {
        return FAULT(fault, "run", 0, "%s", problem.text);
    }
    if (operation.result != NULL && job->outputs.count == 0) {
        return FAULT(fault, "run", 0, "the result is not kept; add outputs: [\"%.80s\"]",
                     operation.result);
    }
    return words_fit(job, fault);
}

static bool check_program(const struct job_file *job, struct job_fault *fault)
{
    const struct job_strings *run = &job->run;
    if (job->is_noop) {
        return check_noop(job, fault);
    }
    if (job->is_kernel) {
        return job_kernel_check(job, fault);
    }
    if (job->is_onnx) {
        return job_onnx_check(job, fault) && words_fit(job, fault);
    }
    if (run->count > 0 && (!job_plugin_check(job, fault) || !job_wasm_check(job, fault))) {
        return false;
    }
    if (job->is_tensor && job->run.count > 0) {
        return check_operation(job, fault);
    }
    if (run->count == 0 && job->image == NULL) {
        return FAULT(fault, "run", 0, "the program is missing, as in run: [xz, -9, \"{in}\"]");
    }
    if (run->count > FORMAT_ARGUMENTS) {
        return FAULT(fault, "run", 0, "%zu arguments; at most %d are taken", run->count,
                     FORMAT_ARGUMENTS);
    }
    const bool may_have_holes = job->image != NULL || job->is_wasm;
    if (run->count > 0 &&
        (run->items[0][0] == '\0' || (!may_have_holes && strpbrk(run->items[0], "{}") != NULL))) {
        return FAULT(fault, "run", 0,
                     "a host program must be a plain name; an input runs as the "
                     "program only inside an image");
    }
    return words_fit(job, fault) &&
           (job->standard_input == NULL ||
            job_template_fits(job, "stdin", 0, job->standard_input, fault));
}

static bool is_variable_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t length = strspn(name, letters);
    return length > 0 && length <= FORMAT_NAME_BYTES && name[length] == '\0' &&
           !(name[0] >= '0' && name[0] <= '9');
}

static bool check_environment(const struct job_file *job, struct job_fault *fault)
{
    for (size_t i = 0; i < job->env_count; i++) {
        const char *name = job->env[i].name;
        if (!is_variable_name(name)) {
            char shown[48];
            text_printable(name, strlen(name), shown, sizeof shown);
            return FAULT(fault, "env", i,
                         "\"%s\" is not the name of a variable: letters, digits and _, at most %d",
                         shown, FORMAT_NAME_BYTES);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(job->env[k].name, name) == 0) {
                return FAULT(fault, "env", i, "\"%s\" is given twice", name);
            }
        }
        if (!job_template_fits(job, "env", i, job->env[i].value, fault)) {
            return false;
        }
    }
    return true;
}

static bool check_source(const struct job_file *job, struct job_fault *fault)
{
    bool each = job->each.count > 0;
    bool lines = job->lines != NULL;
    if (each != (job->source == TEMPLATE_EACH)) {
        return FAULT(fault, "each", 0,
                     each ? "only one of each, array and lines may stand in a job"
                          : "at least one pattern is needed");
    }
    if (lines != (job->source == TEMPLATE_LINES)) {
        return FAULT(fault, "lines", 0,
                     lines ? "only one of each, array and lines may stand in a job"
                           : "the name of a file is needed");
    }
    if (lines && (job->lines[0] == '\0' ||
                  !job_text_fits("lines", 0, job->lines, FORMAT_PATH_BYTES, fault))) {
        return job->lines[0] == '\0' ? FAULT(fault, "lines", 0, "an empty name") : false;
    }
    const struct range *array = &job->array;
    if (job->source == TEMPLATE_ARRAY &&
        (array->first < 0 || array->last < array->first || array->step < 1 ||
         (array->last - array->first) / array->step >= FORMAT_SUBTASKS)) {
        return FAULT(fault, "array", 0, "not a range of 1 to %d numbers", FORMAT_SUBTASKS);
    }
    return strings_fit("each", &job->each, FORMAT_PATTERNS, fault) &&
           strings_fit("files", &job->files, FORMAT_SHARED_FILES, fault) &&
           strings_fit("after", &job->after, FORMAT_AFTER, fault);
}

/* Returns true when a check for the operation's result exists. Factors that are templates are
 * checked when they are filled in. */
static bool is_checkable(const struct job_strings *run)
{
    struct tensor_op operation;
    return tensor_op_read((const char *const *)run->items, run->count, true, &operation, NULL) &&
           operation.verb != TENSOR_FREIVALDS && operation.compute == TENSOR_FP32;
}

static bool rounds_to(const struct job_strings *run, enum tensor_compute compute)
{
    struct tensor_op operation;
    return tensor_op_read((const char *const *)run->items, run->count, true, &operation, NULL) &&
           operation.compute == compute;
}

bool job_rounds_to(const struct job_file *job, enum tensor_compute compute)
{
    bool rounds = job->is_tensor && rounds_to(&job->run, compute);
    for (size_t i = 0; job->is_tensor && i < job->task_count; i++) {
        rounds = rounds || rounds_to(job_task_run(job, &job->tasks[i]), compute);
    }
    return rounds;
}

static bool check_verify(const struct job_file *job, struct job_fault *fault)
{
    if (strcmp(job->verify, "none") == 0) {
        return true;
    }
    if (strcmp(job->verify, "cheap") != 0) {
        return FAULT(fault, "verify", 0, "there are none and cheap");
    }
    bool checkable = job->is_tensor && (job->run.count == 0 || is_checkable(&job->run));
    for (size_t i = 0; checkable && i < job->task_count; i++) {
        checkable = is_checkable(job_task_run(job, &job->tasks[i]));
    }
    return checkable || FAULT(fault, "verify", 0,
                              "cheap checks exist for matrix products: executor: tensor, with "
                              "matmul, or gemm with --alpha 1 --beta 0, and without --compute");
}

const char *const job_order_names[JOB_ORDERS] = {
    [JOB_ORDER_LIMIT] = "limit",
    [JOB_ORDER_IOC] = "ioc",
    [JOB_ORDER_FOK] = "fok",
    [JOB_ORDER_POST_ONLY] = "post-only",
    [JOB_ORDER_ALL_OR_NONE] = "all-or-none",
    [JOB_ORDER_MARKET] = "market",
};

/* An order that must fill at once cannot wait for another task. A maker's order names its price. */
static bool check_order(const struct job_file *job, struct job_fault *fault)
{
    const char *order = job_order_names[job->order];
    const bool is_maker = job->order == JOB_ORDER_LIMIT || job->order == JOB_ORDER_POST_ONLY;
    if (is_maker && !limit_is_set(job->cap_micro) && job->value.rate == RATE_NONE) {
        return FAULT(fault, "order", 0,
                     "%s needs a cap, the price that the job is ready to pay; give cap:, or leave "
                     "order: out",
                     order);
    }
    if (job->order != JOB_ORDER_LIMIT && job->order != JOB_ORDER_MARKET &&
        strcmp(job->verify, "none") != 0) {
        return FAULT(fault, "order", 0, "%s does not go with verify: %s", order, job->verify);
    }
    if (job->order == JOB_ORDER_ALL_OR_NONE && job->value.rate != 0) {
        return FAULT(fault, "order", 0, "%s does not go with value", order);
    }
    for (size_t i = 0; i < job->task_count; i++) {
        if (!is_maker && job->order != JOB_ORDER_MARKET && job->tasks[i].wait_count > 0) {
            return FAULT(fault, "order", 0,
                         "%s asks for everything at once, and the task %s waits for another", order,
                         job->tasks[i].name);
        }
    }
    return true;
}

static bool check_amounts(const struct job_file *job, struct job_fault *fault)
{
    if (job->budget_micro < LIMIT_NONE || job->cap_micro < LIMIT_NONE) {
        const char *field = job->budget_micro < LIMIT_NONE ? "budget" : "cap";
        return FAULT(fault, field, 0, "must not be negative");
    }
    if (job->value.rate != RATE_NONE && limit_is_set(job->cap_micro)) {
        return FAULT(fault, "value", 0, "there is a cap too; a limit is one or the other");
    }
    if (job->value.rate != RATE_NONE && strcmp(job->verify, "cheap") == 0) {
        return FAULT(fault, "value", 0,
                     "checks are bought by the slot-hour; with `verify: cheap` give a cap instead");
    }
    if (job->slots < 1 || job->slots > FORMAT_SLOTS) {
        return FAULT(fault, "slots", 0, "%" PRIu32 " is not between 1 and %d", job->slots,
                     FORMAT_SLOTS);
    }
    if (job->at_most % job->slots != 0) {
        return FAULT(fault, "at_most", 0,
                     "%" PRIu32 " is not a multiple of slots, %" PRIu32
                     ": every subtask takes that many",
                     job->at_most, job->slots);
    }
    if (job->retries > FORMAT_RETRIES) {
        return FAULT(fault, "retries", 0, "%" PRIu32 " is too large; the most is %d", job->retries,
                     FORMAT_RETRIES);
    }
    if (job->error_limit != JOB_ABSENT &&
        (job->error_limit < 1 || job->error_limit > FORMAT_SUBTASKS)) {
        return FAULT(fault, "error_limit", 0, "not between 1 and %d", FORMAT_SUBTASKS);
    }
    if (job->crash_limit != JOB_ABSENT &&
        (job->crash_limit < 0 || job->crash_limit > FORMAT_RETRIES)) {
        return FAULT(fault, "crash_limit", 0, "not between 0 and %d", FORMAT_RETRIES);
    }
    if (job->interruptions != JOB_ABSENT &&
        (job->interruptions < 0 || job->interruptions > FORMAT_INTERRUPTIONS)) {
        return FAULT(fault, "interruptions", 0, "not between 0 and %d", FORMAT_INTERRUPTIONS);
    }
    const bool is_till_wrong = job->good_till_ms < 0 || job->good_till_ms > FORMAT_GOOD_TILL_MS;
    if (is_till_wrong || job->deadline_ms < 0 || job->deadline_ms > FORMAT_GOOD_TILL_MS) {
        return FAULT(fault, is_till_wrong ? "good_till" : "deadline", 0, "at most 366d");
    }
    if ((job->good_till_ms != 0 || job->good_till_at_ms != 0) && strcmp(job->verify, "none") != 0) {
        return FAULT(fault, "good_till", 0, "does not go with verify: %s", job->verify);
    }
    return check_verify(job, fault) && check_order(job, fault) && job_check_objective(job, fault);
}

static bool check_times(const struct job_file *job, struct job_fault *fault)
{
    char limit[UNITS_TEXT_SIZE];
    char other[UNITS_TEXT_SIZE];
    if (job->limit_ms < 1 || job->limit_ms > FORMAT_TIME_MS) {
        return FAULT(fault, "limit", 0, "not between 1ms and 7d");
    }
    units_duration_text(job->limit_ms * 1000000, limit);
    const int64_t least_ms = job->limit_ms == JOB_LIMIT_MS_NONE ? 1 : job->limit_ms;
    if (job->term_ms != 0 && (job->term_ms < least_ms || job->term_ms > FORMAT_TIME_MS)) {
        if (job->term_ms < 0 || job->term_ms > FORMAT_TIME_MS) {
            return FAULT(fault, "term", 0, "not between 1ms and 7d");
        }
        units_duration_text(job->term_ms * 1000000, other);
        return FAULT(fault, "term", 0, "%s is shorter than the limit of one subtask, %s", other,
                     limit);
    }
    if (job->expect_ms != JOB_ABSENT && job->expect_ms < 1) {
        return FAULT(fault, "expect", 0, "must be at least 1ms");
    }
    if (job->expect_ms > job->limit_ms) {
        return FAULT(fault, "expect", 0, "longer than the limit of one subtask, %s", limit);
    }
    const struct job_limits *limits = &job->limits;
    if (limits->cpu_ms < 0 || limits->memory_bytes < 0 || limits->disk_bytes < 0 ||
        limits->output_bytes < 0 || limits->processes > FORMAT_PROCESSES) {
        return FAULT(fault, "limits", 0, "a negative limit, or more than %d processes",
                     FORMAT_PROCESSES);
    }
    return true;
}

static bool check_names(const struct job_file *job, struct job_fault *fault)
{
    char shown[FORMAT_NAME_BYTES + 1];
    if (job->name != NULL) {
        if (job->name[0] == '\0') {
            return FAULT(fault, "name", 0, "an empty name");
        }
        if (!job_text_fits("name", 0, job->name, FORMAT_NAME_BYTES, fault)) {
            return false;
        }
        text_printable(job->name, strlen(job->name), shown, sizeof shown);
        if (strcmp(shown, job->name) != 0) {
            return FAULT(fault, "name", 0,
                         "a name has no control characters and no bidirectional marks");
        }
    }
    return job_check_image(job, fault) &&
           (job->image == NULL || job_text_fits("image", 0, job->image, FORMAT_PATH_BYTES, fault));
}

static bool find_fault(const struct job_file *job, struct job_fault *fault)
{
    return check_source(job, fault) && check_program(job, fault) && check_environment(job, fault) &&
           job_check_outputs(job, fault) && job_check_checkpoint(job, fault) &&
           check_amounts(job, fault) && check_times(job, fault) && check_names(job, fault);
}

/* ---------------------------------------------------------------- tasks */

static bool check_counts(const struct job_file *job, const struct job_task *task,
                         struct job_fault *fault)
{
    size_t files = job->files.count + task->files.count;
    for (size_t i = 0; i < task->wait_count; i++) {
        files += task->waits[i].output != NULL;
    }
    if (files > FORMAT_SHARED_FILES) {
        return FAULT(fault, "files", 0, "%zu inputs with those of the job; at most %d are taken",
                     files, FORMAT_SHARED_FILES);
    }
    if (job->env_count + task->env_count > FORMAT_VARIABLES) {
        return FAULT(fault, "env", 0, "%zu variables with those of the job; at most %d are taken",
                     job->env_count + task->env_count, FORMAT_VARIABLES);
    }
    if (job->is_noop && files > 0) {
        return FAULT(fault, "from", 0,
                     "a no-op takes and leaves no files; after says what it waits for");
    }
    return true;
}

/* A task obeys the rules of a job with one subtask. */
static bool check_task(const struct job_file *job, size_t index, struct job_fault *fault)
{
    const struct job_task *task = &job->tasks[index];
    struct job_file view = *job;
    view.tasks = NULL;
    view.task_count = 0;
    view.name = task->name;
    view.run = *job_task_run(job, task);
    view.env = task->env;
    view.env_count = task->env_count;
    view.standard_input = task->standard_input != NULL ? task->standard_input : job->standard_input;
    view.outputs = *job_task_outputs(job, task);
    view.files = task->files;
    view.slots = task->slots;
    view.at_most = task->at_most;
    view.limit_ms = task->limit_ms;
    view.term_ms = task->term_ms;
    view.expect_ms = task->expect_ms;
    view.limits = task->limits;
    view.checkpoint = task->checkpoint != NULL ? task->checkpoint : job->checkpoint;
    fault->task = index;
    if (job_file_has_checkpoints(job) && view.checkpoint == NULL) {
        return FAULT(fault, "checkpoint", 0, "other tasks have one: all save their state, or none");
    }
    for (size_t i = 0; view.checkpoint != NULL && i < task->wait_count; i++) {
        const char *name = task->waits[i].name;
        if (name != NULL && template_paths_meet(view.checkpoint, name)) {
            return FAULT(fault, "checkpoint", 0,
                         "a file that it takes from another lies there too");
        }
    }
    return check_counts(job, task, fault) && find_fault(&view, fault);
}

static bool check_tasks(const struct job_file *job, struct job_fault *fault)
{
    if (job->source != TEMPLATE_ONE) {
        return FAULT(fault, "tasks", 0,
                     "each task is one subtask; each, array and lines do not go with tasks");
    }
    if (job->task_count > FORMAT_TASKS) {
        return FAULT(fault, "tasks", 0, "%zu items; at most %d are taken", job->task_count,
                     FORMAT_TASKS);
    }
    if (!check_source(job, fault) || !check_environment(job, fault) || !check_amounts(job, fault) ||
        !check_times(job, fault) || !check_names(job, fault)) {
        return false;
    }
    for (size_t i = 0; i < job->task_count; i++) {
        if (!check_task(job, i, fault)) {
            return false;
        }
    }
    return true;
}

bool job_find_fault(const struct job_file *job, struct job_fault *ret_fault)
{
    ret_fault->task = JOB_NO_TASK;
    return job->task_count > 0 ? check_tasks(job, ret_fault) : find_fault(job, ret_fault);
}
