/* The reader of a job takes YAML key by key and defines job_file_parse. job_check.c checks the
 * rules across keys. */
#include "formats/job.h"

#include "base/cleanup.h"
#include "formats/job_internal.h"
#include "formats/job_keys.h"
#include "formats/limits.h"
#include "formats/moment.h"
#include "formats/requirement.h"
#include "formats/units.h"
#include "formats/value.h"
#include "formats/yaml.h"

#include <stdlib.h>
#include <string.h>

static const char *const keys[] = {
    "name",
    "budget",
    "cap",
    "value",
    "needs",
    "slots",
    "at_most",
    "each",
    "array",
    "lines",
    "files",
    "image",
    "entrypoint",
    "directory",
    "executor",
    "run",
    "env",
    "stdin",
    "outputs",
    "checkpoint",
    "limit",
    "limits",
    "verify",
    "retries",
    "error_limit",
    "crash_limit",
    "good_till",
    "retain",
    "order",
    "interruptions",
    "expect",
    "term",
    "tasks",
    "after",
    "kernel",
    "deadline",
    "objective",
    "model",
    "inputs",
    "split",
    "parts",
    "stages",
    "generate",
    "train",
    /* Reserved for later versions; each is refused with a message of its own. */
    "matmul",
    "llm",
    "pipeline",
};
enum { KEYS = sizeof keys / sizeof keys[0], KEYS_AVAILABLE = 44 };

bool job_read_no_memory(struct yaml_value value)
{
    yaml_refuse(value, "out of memory");
    return false;
}

static void refuse_unavailable(struct yaml_value root)
{
    for (size_t i = KEYS_AVAILABLE; i < KEYS; i++) {
        struct yaml_value value = yaml_key(root, keys[i]);
        if (yaml_present(value)) {
            yaml_refuse(value,
                        "not available yet; this version runs one program per subtask (run:)");
        }
    }
}

void job_read_text(struct yaml_value value, size_t most_bytes, char **field)
{
    const char *text = yaml_text(value, most_bytes, NULL);
    if (text != NULL && !job_file_set(field, text)) {
        (void)job_read_no_memory(value);
    }
}

static void read_strings(struct yaml_value list, size_t most_items, size_t most_bytes,
                         struct job_strings *strings)
{
    if (!yaml_present(list) || !yaml_is_list(list, most_items)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(list); i++) {
        const char *text = yaml_text(yaml_item(list, i), most_bytes, NULL);
        if (text == NULL ||
            (!job_strings_add(strings, most_items, text) && !job_read_no_memory(list))) {
            return;
        }
    }
}

/* Reads a list, or one text that stands for a list of one. */
void job_read_names(struct yaml_value value, size_t most_items, struct job_strings *strings)
{
    if (yaml_kind(value) != YAML_KIND_TEXT) {
        read_strings(value, most_items, FORMAT_PATH_BYTES, strings);
        return;
    }
    const char *text = yaml_text(value, FORMAT_PATH_BYTES, NULL);
    if (text != NULL && !job_strings_add(strings, most_items, text)) {
        (void)job_read_no_memory(value);
    }
}

static void read_executor(struct yaml_value value, struct job_file *job)
{
    static const char *const names[] = {"command", "noop", "tensor", "plugin", "wasm", "onnx"};
    size_t which = (size_t)yaml_choice(value, names, sizeof names / sizeof names[0], 0);
    job->is_noop = which == 1;
    job->is_tensor = which == 2;
    job->is_plugin = which == 3;
    job->is_wasm = which == 4;
    job->is_onnx = which == 5;
}

void job_read_run(struct yaml_value value, struct job_strings *run)
{
    if (yaml_kind(value) == YAML_KIND_TEXT) {
        yaml_refuse(value,
                    "write a list, one argument each, as in [xz, -9, \"{in}\"]; no shell reads "
                    "it (for one, write [sh, -c, \"...\"])");
        return;
    }
    read_strings(value, FORMAT_ARGUMENTS, FORMAT_ARGUMENT_BYTES, run);
}

void job_read_environment(struct yaml_value map, struct job_variable **env, size_t *count)
{
    if (!yaml_present(map) || !yaml_is_map(map, FORMAT_VARIABLES)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(map); i++) {
        const char *value = yaml_text(yaml_entry(map, i), FORMAT_ARGUMENT_BYTES, NULL);
        if (value == NULL || (!job_variables_add(env, count, yaml_entry_key(map, i), value) &&
                              !job_read_no_memory(map))) {
            return;
        }
    }
}

static void read_source(struct yaml_value root, struct job_file *job)
{
    struct yaml_value each = yaml_key(root, "each");
    struct yaml_value array = yaml_key(root, "array");
    struct yaml_value lines = yaml_key(root, "lines");
    int given = yaml_present(each) + yaml_present(array) + yaml_present(lines);
    if (given > 1) {
        yaml_refuse(yaml_present(lines) ? lines : array,
                    "only one of each, array and lines may stand in a job");
        return;
    }
    job->source = yaml_present(each)    ? TEMPLATE_EACH
                  : yaml_present(array) ? TEMPLATE_ARRAY
                  : yaml_present(lines) ? TEMPLATE_LINES
                                        : TEMPLATE_ONE;
    job->source_line = yaml_line(yaml_present(lines) ? lines : each);
    job_read_names(each, FORMAT_PATTERNS, &job->each);
    job_read_text(lines, FORMAT_PATH_BYTES, &job->lines);
    const char *range = yaml_text(array, FORMAT_PATH_BYTES, NULL);
    struct problem problem;
    if (range != NULL && !range_parse(range, &job->array, &problem)) {
        yaml_refuse(array, "%s", problem.text);
    }
}

void job_read_limits(struct yaml_value map, struct job_limits *limits)
{
    static const char *const names[] = {"cpu", "memory", "disk", "processes", "output"};
    yaml_known_keys(map, names, sizeof names / sizeof names[0]);
    limits->cpu_ms = yaml_duration_ms(yaml_key(map, "cpu"), 1, FORMAT_TIME_MS, limits->cpu_ms);
    limits->memory_bytes = yaml_bytes(yaml_key(map, "memory"), 1, INT64_MAX, limits->memory_bytes);
    limits->disk_bytes = yaml_bytes(yaml_key(map, "disk"), 1, INT64_MAX, limits->disk_bytes);
    limits->output_bytes = yaml_bytes(yaml_key(map, "output"), 1, INT64_MAX, limits->output_bytes);
    limits->processes =
        (uint32_t)yaml_integer(yaml_key(map, "processes"), 1, FORMAT_PROCESSES, limits->processes);
}

static void read_value(struct yaml_value text, struct value *value)
{
    struct problem problem;
    const char *given = yaml_text(text, FORMAT_VALUE_BYTES, NULL);
    if (given != NULL && !value_parse(given, value, &problem)) {
        yaml_refuse(text, "%s", problem.text);
    }
}

/* Reads a time from the submission, or a moment. Leaves both 0 without the key. */
static void read_end(struct yaml_value value, int64_t *ret_for_ms, int64_t *ret_at_ms)
{
    const char *text = yaml_text(value, FORMAT_VALUE_BYTES, "");
    int64_t ns = 0;
    if (moment_is_meant(text)) {
        if (!moment_read(text, ret_at_ms)) {
            yaml_refuse(value, "'%s' is no moment; " MOMENT_HELP, text);
        }
    } else if (text[0] != '\0' && units_duration(text, &ns) == UNITS_MALFORMED) {
        yaml_refuse(
            value,
            "'%s' is neither a time from the submission, as in 2h, nor a moment; " MOMENT_HELP,
            text);
    } else {
        *ret_for_ms = yaml_duration_ms(value, 1, FORMAT_GOOD_TILL_MS, 0);
    }
}

static void read_numbers(struct yaml_value root, struct job_file *job)
{
    job->budget_micro = yaml_money(yaml_key(root, "budget"), 0, INT64_MAX, LIMIT_NONE);
    job->cap_micro = yaml_money(yaml_key(root, "cap"), 0, INT64_MAX, LIMIT_NONE);
    read_value(yaml_key(root, "value"), &job->value);
    job->slots = (uint32_t)yaml_integer(yaml_key(root, "slots"), 1, FORMAT_SLOTS, 1);
    job->at_most = (uint32_t)yaml_integer(yaml_key(root, "at_most"), 1, FORMAT_SUBTASKS, 0);
    job->limit_ms = yaml_duration_ms(yaml_key(root, "limit"), 1, FORMAT_TIME_MS, JOB_LIMIT_MS_NONE);
    job->term_ms = yaml_duration_ms(yaml_key(root, "term"), 1, FORMAT_TIME_MS, 0);
    job->expect_ms = yaml_duration_ms(yaml_key(root, "expect"), 1, FORMAT_TIME_MS, JOB_ABSENT);
    job->retain_ms = yaml_duration_ms(yaml_key(root, "retain"), 0, FORMAT_RETAIN_MS, JOB_ABSENT);
    job->retries =
        (uint32_t)yaml_integer(yaml_key(root, "retries"), 0, FORMAT_RETRIES, JOB_RETRIES_DEFAULT);
    job->error_limit = yaml_integer(yaml_key(root, "error_limit"), 1, FORMAT_SUBTASKS, JOB_ABSENT);
    read_end(yaml_key(root, "good_till"), &job->good_till_ms, &job->good_till_at_ms);
    read_end(yaml_key(root, "deadline"), &job->deadline_ms, &job->deadline_at_ms);
    job->crash_limit = yaml_integer(yaml_key(root, "crash_limit"), 0, FORMAT_RETRIES, JOB_ABSENT);
    job->interruptions =
        yaml_integer(yaml_key(root, "interruptions"), 0, FORMAT_INTERRUPTIONS, JOB_ABSENT);
}

static void read_order(struct yaml_value value, struct job_file *job)
{
    job->order = (enum job_order)yaml_choice(value, job_order_names, JOB_ORDERS, JOB_ORDER_MARKET);
}

static void read_objective(struct yaml_value value, struct job_file *job)
{
    job->objective = (enum job_objective)yaml_choice(value, job_objective_names, JOB_OBJECTIVES,
                                                     JOB_OBJECTIVE_TIME);
}

static void read_verify(struct yaml_value value, struct job_file *job)
{
    static const char *const names[] = {"none", "cheap"};
    size_t level = yaml_choice(value, names, sizeof names / sizeof names[0], 0);
    if (!job_file_set(&job->verify, names[level])) {
        (void)job_read_no_memory(value);
    }
}

/* A kernel stands in the place of a program, whose words it makes. */
static void read_kernel(struct yaml_value root, struct yaml_value kernel, struct job_file *job)
{
    static const char *const others[] = {"run", "executor", "tasks"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct yaml_value other = yaml_key(root, others[i]);
        if (yaml_present(other)) {
            yaml_refuse(other, "does not go with kernel: a job runs a kernel or programs");
            return;
        }
    }
    job_kernel_read(kernel, job);
}

/* A model stands in the place of a program, likewise. */
static void read_model(struct yaml_value root, struct job_file *job)
{
    static const char *const others[] = {"run", "executor", "tasks", "kernel"};
    static const char *const own[] = {"inputs", "split", "parts", "stages", "generate", "train"};
    const bool has_model = yaml_present(yaml_key(root, "model"));
    for (size_t i = 0; has_model && i < sizeof others / sizeof others[0]; i++) {
        struct yaml_value other = yaml_key(root, others[i]);
        if (yaml_present(other)) {
            yaml_refuse(other, "does not go with model: a job runs a model or programs");
            return;
        }
    }
    for (size_t i = 0; !has_model && i < sizeof own / sizeof own[0]; i++) {
        struct yaml_value key = yaml_key(root, own[i]);
        if (yaml_present(key)) {
            yaml_refuse(key, "needs a model beside it (model: m.onnx)");
            return;
        }
    }
    if (has_model) {
        job_onnx_read(root, job);
    }
}

/* A list has the needs of which the market is to give the first that can be had. */
static void read_needs(struct yaml_value value, struct job_file *job)
{
    if (yaml_kind(value) != YAML_KIND_LIST) {
        requirement_read(value, &job->needs);
        return;
    }
    const size_t count = yaml_is_list(value, FORMAT_CHOICES) ? yaml_count(value) : 0;
    if (count == 0) {
        yaml_refuse(value, "the list is empty; it takes 1 to %d needs, the best one first",
                    FORMAT_CHOICES);
        return;
    }
    job->choices = calloc(count, sizeof *job->choices);
    if (job->choices == NULL) {
        (void)job_read_no_memory(value);
        return;
    }
    job->choice_count = count;
    for (size_t i = 0; i < count; i++) {
        requirement_read(yaml_item(value, i), &job->choices[i]);
    }
    job_file_choose(job, 0);
}

static void read_job(struct yaml_value root, struct job_file *job)
{
    yaml_known_keys(root, keys, KEYS);
    refuse_unavailable(root);
    job_read_text(yaml_key(root, "name"), FORMAT_NAME_BYTES, &job->name);
    read_needs(yaml_key(root, "needs"), job);
    read_numbers(root, job);
    read_source(root, job);
    job_read_names(yaml_key(root, "files"), FORMAT_SHARED_FILES, &job->files);
    job->files_line = yaml_line(yaml_key(root, "files"));
    job_read_text(yaml_key(root, "image"), FORMAT_PATH_BYTES, &job->image);
    job->image_line = yaml_line(yaml_key(root, "image"));
    struct yaml_value entrypoint = yaml_key(root, "entrypoint");
    job->has_entrypoint = yaml_present(entrypoint);
    job_read_run(entrypoint, &job->entrypoint);
    job_read_text(yaml_key(root, "directory"), FORMAT_PATH_BYTES, &job->directory);
    read_executor(yaml_key(root, "executor"), job);
    struct yaml_value tasks = yaml_key(root, "tasks");
    struct yaml_value kernel = yaml_key(root, "kernel");
    /* A task may define `run` itself, and an image says a command. */
    bool is_open = job->is_noop || yaml_present(tasks) || job->image != NULL ||
                   yaml_present(kernel) || yaml_present(yaml_key(root, "model"));
    job_read_run(is_open ? yaml_key(root, "run") : yaml_required(root, "run"), &job->run);
    job->run_line = yaml_line(yaml_key(root, "run"));
    job_read_environment(yaml_key(root, "env"), &job->env, &job->env_count);
    job_read_text(yaml_key(root, "stdin"), FORMAT_ARGUMENT_BYTES, &job->standard_input);
    if (!yaml_present(yaml_key(root, "model"))) { /* a model's are read with it */
        job_read_names(yaml_key(root, "outputs"), FORMAT_OUTPUTS, &job->outputs);
    }
    job_read_text(yaml_key(root, "checkpoint"), FORMAT_PATH_BYTES, &job->checkpoint);
    job_read_names(yaml_key(root, "after"), FORMAT_AFTER, &job->after);
    job_read_limits(yaml_key(root, "limits"), &job->limits);
    read_verify(yaml_key(root, "verify"), job);
    read_order(yaml_key(root, "order"), job);
    read_objective(yaml_key(root, "objective"), job);
    if (yaml_present(kernel)) {
        read_kernel(root, kernel, job);
    }
    read_model(root, job);
    job_read_tasks(tasks, job); /* last, because tasks inherit the job's values */
}

/* Reports a fault at the line of the faulty item. */
static void refuse_fault(struct yaml_value root, const struct job_file *job,
                         const struct job_fault *fault)
{
    bool of_task = fault->task != JOB_NO_TASK;
    root = of_task ? yaml_item(yaml_key(root, "tasks"), fault->task) : root;
    struct yaml_value value = yaml_key(root, fault->field);
    if (!yaml_present(value)) {
        yaml_refuse(root, "%s%s%s: %s", of_task ? job->tasks[fault->task].name : "",
                    of_task ? ": " : "", fault->field, fault->what.text);
        return;
    }
    enum yaml_kind kind = yaml_kind(value);
    if (kind == YAML_KIND_LIST && fault->item < yaml_count(value)) {
        value = yaml_item(value, fault->item);
    } else if (kind == YAML_KIND_MAP && fault->item < yaml_count(value)) {
        value = yaml_entry(value, fault->item);
    }
    yaml_refuse(value, "%s", fault->what.text);
}

struct job_file *job_file_parse(const char *text, size_t length, const char *file_name,
                                struct problem *ret_problem)
{
    CLEANUP(yaml_close) struct yaml_file *file = yaml_open(text, length, file_name, ret_problem);
    if (file == NULL) {
        return NULL;
    }
    struct job_file *job = job_file_create();
    struct yaml_value root = yaml_root(file);
    if (job == NULL) {
        problem_set(ret_problem, "%s: out of memory", file_name);
        return NULL;
    }
    read_job(root, job);
    struct job_fault fault;
    if (yaml_finished(file, NULL) && !job_find_fault(job, &fault)) {
        refuse_fault(root, job, &fault);
    }
    if (yaml_finished(file, NULL) && !job_complete(job)) {
        (void)job_read_no_memory(root);
    }
    if (!yaml_finished(file, ret_problem)) {
        job_file_destroy(&job);
    }
    return job;
}
