/* A job in memory is created, filled, checked and freed here; job_read.c reads one from YAML. */
#include "formats/job.h"

#include "base/text.h"
#include "formats/job_internal.h"
#include "formats/limits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job_file *job_file_create(void)
{
    struct job_file *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    job->budget_micro = LIMIT_NONE;
    job->cap_micro = LIMIT_NONE;
    job->slots = 1;
    job->source = TEMPLATE_ONE;
    job->order = JOB_ORDER_MARKET;
    job->limit_ms = JOB_LIMIT_MS_NONE;
    job->expect_ms = JOB_ABSENT;
    job->retain_ms = JOB_ABSENT;
    job->retries = JOB_RETRIES_DEFAULT;
    job->error_limit = JOB_ABSENT;
    job->crash_limit = JOB_ABSENT;
    job->interruptions = JOB_ABSENT;
    if (!job_file_set(&job->verify, "none")) {
        job_file_destroy(&job);
    }
    return job;
}

static void variables_destroy(struct job_variable *variables, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(variables[i].name);
        free(variables[i].value);
    }
    free(variables);
}

void job_strings_fini(struct job_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++) {
        free(strings->items[i]);
    }
    free(strings->items);
    *strings = (struct job_strings){.items = NULL};
}

static void task_fini(struct job_task *task)
{
    job_strings_fini(&task->run);
    job_strings_fini(&task->outputs);
    job_strings_fini(&task->files);
    variables_destroy(task->env, task->env_count);
    for (size_t i = 0; i < task->wait_count; i++) {
        free(task->waits[i].output);
        free(task->waits[i].name);
    }
    free(task->waits);
    free(task->needs);
    free(task->standard_input);
    free(task->checkpoint);
    free(task->name);
}

void job_file_destroy(struct job_file **self)
{
    struct job_file *job = *self;
    if (job == NULL) {
        return;
    }
    job_strings_fini(&job->each);
    job_strings_fini(&job->files);
    job_strings_fini(&job->run);
    job_strings_fini(&job->outputs);
    job_strings_fini(&job->entrypoint);
    job_strings_fini(&job->after);
    variables_destroy(job->env, job->env_count);
    for (size_t i = 0; i < job->task_count; i++) {
        task_fini(&job->tasks[i]);
    }
    free(job->tasks);
    free(job->choices);
    free(job->name);
    free(job->lines);
    free(job->image);
    free(job->workdir);
    free(job->directory);
    free(job->standard_input);
    free(job->checkpoint);
    free(job->verify);
    free(job);
    *self = NULL;
}

void job_file_choose(struct job_file *job, size_t choice)
{
    assert(choice < job->choice_count);
    job->needs = job->choices[choice];
    job->choice = choice;
}

const struct job_strings *job_task_run(const struct job_file *job, const struct job_task *task)
{
    return task->run.count > 0 ? &task->run : &job->run;
}

const struct job_strings *job_task_outputs(const struct job_file *job, const struct job_task *task)
{
    return task->has_outputs ? &task->outputs : &job->outputs;
}

const struct requirement *job_task_needs(const struct job_file *job, const struct job_task *task)
{
    return task->needs != NULL ? task->needs : &job->needs;
}

bool job_file_has_checkpoints(const struct job_file *job)
{
    return job->checkpoint != NULL || (job->task_count > 0 && job->tasks[0].checkpoint != NULL);
}

char *job_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *own = malloc(size);
    if (own != NULL) {
        memcpy(own, text, size);
    }
    return own;
}

bool job_file_set(char **field, const char *text)
{
    char *own = job_copy(text);
    if (own == NULL) {
        return false;
    }
    free(*field);
    *field = own;
    return true;
}

bool job_grow(void **elements, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) {
        return true;
    }
    size_t capacity = count == 0 ? 1 : 2 * count;
    void *grown = realloc(*elements, capacity * size);
    if (grown == NULL) {
        return false;
    }
    *elements = grown;
    return true;
}

bool job_strings_add(struct job_strings *strings, size_t most, const char *text)
{
    if (strings->count >= most) {
        return false;
    }
    char *own = job_copy(text);
    void *items = strings->items;
    if (own == NULL || !job_grow(&items, strings->count, sizeof *strings->items)) {
        free(own);
        return false;
    }
    strings->items = items;
    strings->items[strings->count++] = own;
    return true;
}

bool job_strings_add_once(struct job_strings *strings, size_t most, const char *text)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (strcmp(strings->items[i], text) == 0) {
            return true;
        }
    }
    return job_strings_add(strings, most, text);
}

bool job_variables_add(struct job_variable **variables, size_t *count, const char *name,
                       const char *value)
{
    if (*count >= FORMAT_VARIABLES) {
        return false;
    }
    struct job_variable variable = {job_copy(name), job_copy(value)};
    void *grown = *variables;
    if (variable.name == NULL || variable.value == NULL ||
        !job_grow(&grown, *count, sizeof **variables)) {
        free(variable.name);
        free(variable.value);
        return false;
    }
    *variables = grown;
    (*variables)[(*count)++] = variable;
    return true;
}

bool job_file_add_variable(struct job_file *job, const char *name, const char *value)
{
    return job_variables_add(&job->env, &job->env_count, name, value);
}

/* Names the job after the program without its folders, cut to the longest name. The name is
 * "job" where the program is an input. */
static bool name_from_program(struct job_file *job)
{
    const char *program = job->is_noop ? "noop" : job->task_count > 0 ? "tasks" : job->run.items[0];
    const char *slash = strrchr(program, '/');
    const char *base = slash != NULL ? slash + 1 : program;
    char name[FORMAT_NAME_BYTES + 1];
    text_printable(base, strlen(base), name, sizeof name);
    return job_file_set(&job->name, name[0] != '\0' && strchr(name, '{') == NULL ? name : "job");
}

/* Returns twice the limit, but at least a minute, so that at worst every other subtask renews
 * the lease. A subtask without a limit has its lease renewed while it runs. */
static int64_t default_term_ms(int64_t limit_ms)
{
    if (limit_ms == JOB_LIMIT_MS_NONE) {
        return JOB_TERM_MS_UNLIMITED;
    }
    int64_t term_ms = 2 * limit_ms;
    term_ms = term_ms < JOB_TERM_MS_LEAST ? JOB_TERM_MS_LEAST : term_ms;
    return term_ms < FORMAT_TIME_MS ? term_ms : FORMAT_TIME_MS;
}

bool job_complete(struct job_file *job)
{
    for (size_t i = 0; i < job->task_count; i++) {
        struct job_task *task = &job->tasks[i];
        if (task->term_ms == 0) {
            task->term_ms = default_term_ms(task->limit_ms);
        }
    }
    if (job->term_ms == 0) {
        job->term_ms = default_term_ms(job->limit_ms);
    }
    /* The command of an image is not known yet, and so no name either. */
    const bool has_program = job->is_noop || job->task_count > 0 || job->run.count > 0;
    return job->name != NULL || !has_program || name_from_program(job);
}

static bool refuse(struct job_fault *fault, const char *field, size_t item, const char *what)
{
    fault->field = field;
    fault->item = item;
    problem_set(&fault->what, "%s", what);
    return false;
}

/* Returns true for an absolute path of plain text without the part "..". */
static bool is_directory(const char *path)
{
    if (path[0] != '/' || strlen(path) > FORMAT_PATH_BYTES || !text_is_plain(path, strlen(path))) {
        return false;
    }
    while (path[0] != '\0') {
        path += strspn(path, "/");
        const size_t length = strcspn(path, "/");
        if (length == 2 && strncmp(path, "..", 2) == 0) {
            return false;
        }
        path += length;
    }
    return true;
}

bool job_check_image(const struct job_file *job, struct job_fault *fault)
{
    if (job->image == NULL && (job->has_entrypoint || job->directory != NULL)) {
        return refuse(fault, job->has_entrypoint ? "entrypoint" : "directory", 0,
                      "goes with an image only");
    }
    if (job->image != NULL && job->image[0] == '\0') {
        return refuse(fault, "image", 0, "an empty name");
    }
    for (size_t i = 0; i < job->entrypoint.count; i++) {
        const char *word = job->entrypoint.items[i];
        if (strlen(word) > FORMAT_ARGUMENT_BYTES || (i == 0 && word[0] == '\0')) {
            return refuse(fault, "entrypoint", i,
                          "an empty program, or a word of more than 32768 "
                          "bytes");
        }
    }
    return job->directory == NULL || is_directory(job->directory) ||
           refuse(fault, "directory", 0,
                  "not an absolute path of plain text without \"..\", as in /work");
}

const char *const job_objective_names[JOB_OBJECTIVES] = {"time", "price", "energy"};

bool job_check_objective(const struct job_file *job, struct job_fault *fault)
{
    const bool is_whole = job->order == JOB_ORDER_FOK || job->order == JOB_ORDER_ALL_OR_NONE;
    const char *name = job_objective_names[job->objective];
    struct problem what;
    if (job->objective == JOB_OBJECTIVE_TIME) {
        return true;
    }
    if (is_whole) {
        problem_set(&what, "%s chooses which slots to buy, and this type of order wants all", name);
        return refuse(fault, "objective", 0, what.text);
    }
    problem_set(&what, "%s does not go with verify: cheap", name);
    return strcmp(job->verify, "cheap") != 0 || refuse(fault, "objective", 0, what.text);
}

bool job_file_check(struct job_file *job, struct problem *ret_problem)
{
    struct job_fault fault;
    if (!job_find_fault(job, &fault)) {
        bool of_task = fault.task != JOB_NO_TASK;
        problem_set(ret_problem, "%s%s%s: %s", of_task ? job->tasks[fault.task].name : "",
                    of_task ? ": " : "", fault.field, fault.what.text);
        return false;
    }
    if (!job_complete(job)) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    return true;
}
