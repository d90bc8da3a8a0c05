/* The reader of `tasks:` makes three passes, because a task may name a later task. The passes read
 * the names, then the fields of each task, then the waits. A last step refuses circles of waits. */
#include "formats/job_keys.h"

#include "base/pattern.h"
#include "base/text.h"
#include "formats/job_internal.h"
#include "formats/limits.h"
#include "formats/requirement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CIRCLE_SHOWN = 8, SHOWN_SIZE = 48 };

static const char *const keys[] = {"name",    "run",     "after",  "from",      "needs", "slots",
                                   "at_most", "limit",   "term",   "expect",    "env",   "stdin",
                                   "files",   "outputs", "limits", "checkpoint"};

struct task_name {
    const char *name; /* borrowed from the task */
    uint32_t index;
};

struct tasks { /* state of one reading */
    struct yaml_value list;
    struct job_file *job;
    struct task_name *names; /* sorted by name */
    size_t wait_count;       /* waits of all tasks */
};

/* ---------------------------------------------------------------- names */

static int by_name(const void *a, const void *b)
{
    const struct task_name *left = a;
    const struct task_name *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

static void show(const char *text, char ret_text[SHOWN_SIZE])
{
    text_printable(text, strlen(text), ret_text, SHOWN_SIZE);
}

/* Returns true for a valid name. The name becomes a folder of the outputs. A name starts with a
 * letter, so that `bourse logs JOB NAME` cannot mean an index. */
static bool is_task_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return name[0] != '\0' && strchr(letters, name[0]) != NULL && name[strspn(name, rest)] == '\0';
}

static bool read_name(struct tasks *tasks, size_t index)
{
    struct yaml_value item = yaml_item(tasks->list, index);
    struct job_task *task = &tasks->job->tasks[index];
    yaml_known_keys(item, keys, sizeof keys / sizeof keys[0]);
    struct yaml_value value = yaml_required(item, "name");
    const char *name = yaml_text(value, FORMAT_NAME_BYTES, NULL);
    if (name == NULL) {
        return false; /* refused by yaml_text */
    }
    if (!is_task_name(name)) {
        char shown[SHOWN_SIZE];
        show(name, shown);
        yaml_refuse(value,
                    "\"%s\" cannot name a task; a task's name is a letter, then letters, digits, "
                    "\".\", \"_\" or \"-\"",
                    shown);
        return false;
    }
    task->line = yaml_line(item);
    return job_file_set(&task->name, name) || job_read_no_memory(value);
}

static bool read_all_names(struct tasks *tasks)
{
    size_t count = tasks->job->task_count;
    for (size_t i = 0; i < count; i++) {
        if (!read_name(tasks, i)) {
            return false;
        }
        tasks->names[i] = (struct task_name){tasks->job->tasks[i].name, (uint32_t)i};
    }
    qsort(tasks->names, count, sizeof *tasks->names, by_name);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(tasks->names[i - 1].name, tasks->names[i].name) == 0) {
            struct yaml_value again = yaml_item(tasks->list, tasks->names[i].index);
            yaml_refuse(yaml_key(again, "name"),
                        "line %u has a task \"%s\" already; give this task another name",
                        tasks->job->tasks[tasks->names[i - 1].index].line, tasks->names[i].name);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- fields of each task */

static void read_needs(struct yaml_value value, struct job_task *task)
{
    if (!yaml_present(value)) {
        return;
    }
    task->needs = malloc(sizeof *task->needs);
    if (task->needs == NULL) {
        (void)job_read_no_memory(value);
        return;
    }
    requirement_read(value, task->needs);
}

static void read_task(struct yaml_value item, const struct job_file *job, struct job_task *task)
{
    struct yaml_value outputs = yaml_key(item, "outputs");
    struct yaml_value limit = yaml_key(item, "limit");
    job_read_run(yaml_key(item, "run"), &task->run);
    job_read_environment(yaml_key(item, "env"), &task->env, &task->env_count);
    job_read_text(yaml_key(item, "stdin"), FORMAT_ARGUMENT_BYTES, &task->standard_input);
    task->has_outputs = yaml_present(outputs);
    job_read_names(outputs, FORMAT_OUTPUTS, &task->outputs);
    job_read_names(yaml_key(item, "files"), FORMAT_SHARED_FILES, &task->files);
    job_read_text(yaml_key(item, "checkpoint"), FORMAT_PATH_BYTES, &task->checkpoint);
    read_needs(yaml_key(item, "needs"), task);
    task->slots = (uint32_t)yaml_integer(yaml_key(item, "slots"), 1, FORMAT_SLOTS, job->slots);
    task->at_most =
        (uint32_t)yaml_integer(yaml_key(item, "at_most"), 1, FORMAT_SUBTASKS, job->at_most);
    task->limit_ms = yaml_duration_ms(limit, 1, FORMAT_TIME_MS, job->limit_ms);
    task->term_ms = yaml_duration_ms(yaml_key(item, "term"), 1, FORMAT_TIME_MS, job->term_ms);
    task->expect_ms = yaml_duration_ms(yaml_key(item, "expect"), 1, FORMAT_TIME_MS, job->expect_ms);
    task->limits = job->limits;
    job_read_limits(yaml_key(item, "limits"), &task->limits);
}

/* ---------------------------------------------------------------- waits */

static bool find_task(const struct tasks *tasks, struct yaml_value value, const char *name,
                      uint32_t *ret_task)
{
    size_t low = 0;
    size_t high = tasks->job->task_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, tasks->names[middle].name);
        if (order == 0) {
            *ret_task = tasks->names[middle].index;
            return true;
        }
        *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
    }
    char shown[SHOWN_SIZE];
    show(name, shown);
    const char **names = calloc(tasks->job->task_count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < tasks->job->task_count; i++) {
        names[i] = tasks->names[i].name;
    }
    const char *near = names == NULL ? NULL : text_nearest(name, names, tasks->job->task_count);
    if (near != NULL) {
        yaml_refuse(value, "no task \"%s\"; did you mean \"%s\"?", shown, near);
    } else {
        yaml_refuse(value, "no task \"%s\"", shown);
    }
    free(names);
    return false;
}

/* Adds a wait and takes over both of its texts, which are NULL when the task only waits. */
static bool add_wait(struct tasks *tasks, struct yaml_value value, struct job_task *task,
                     struct job_wait wait)
{
    void *waits = task->waits;
    bool is_full = tasks->wait_count >= FORMAT_WAITS;
    bool is_copied = (wait.output == NULL) == (wait.name == NULL); /* both copies succeeded */
    if (is_full) {
        yaml_refuse(value, "all tasks together wait for more than %d others", FORMAT_WAITS);
    } else if (!is_copied || !job_grow(&waits, task->wait_count, sizeof *task->waits)) {
        (void)job_read_no_memory(value);
    } else {
        task->waits = waits;
        task->waits[task->wait_count++] = wait;
        tasks->wait_count++;
        return true;
    }
    free(wait.output);
    free(wait.name);
    return false;
}

static void read_after(struct tasks *tasks, struct yaml_value value, struct job_task *task)
{
    bool is_list = yaml_kind(value) != YAML_KIND_TEXT;
    if (!yaml_present(value) || (is_list && !yaml_is_list(value, FORMAT_TASKS))) {
        return;
    }
    for (size_t i = 0; i < (is_list ? yaml_count(value) : 1); i++) {
        struct yaml_value item = is_list ? yaml_item(value, i) : value;
        const char *name = yaml_text(item, FORMAT_NAME_BYTES, NULL);
        uint32_t found = 0;
        if (name == NULL || !find_task(tasks, item, name, &found) ||
            !add_wait(tasks, item, task, (struct job_wait){.task = found})) {
            return;
        }
    }
}

/* Writes an output of a task with its placeholders filled in. Returns false when the output is
 * malformed; the checks report this case. */
static bool output_text(const struct job_file *job, const struct job_task *task, size_t index,
                        char ret_text[FORMAT_PATH_BYTES + 1])
{
    const struct template_values values = {.value = task->name};
    return template_expand(job_task_outputs(job, task)->items[index], &values, ret_text,
                           FORMAT_PATH_BYTES + 1, NULL) == TEMPLATE_OK;
}

static void refuse_output(struct yaml_value value, const struct job_file *job,
                          const struct job_task *task, const char *output)
{
    const char *names[FORMAT_OUTPUTS];
    char shown[SHOWN_SIZE];
    size_t count = job_task_outputs(job, task)->count;
    char(*texts)[FORMAT_PATH_BYTES + 1] = calloc(count + 1, sizeof *texts);
    size_t known = 0;
    for (size_t i = 0; texts != NULL && i < count; i++) {
        if (output_text(job, task, i, texts[known])) {
            names[known] = texts[known];
            known++;
        }
    }
    show(output, shown);
    const char *near = text_nearest(output, names, known);
    if (near != NULL) {
        yaml_refuse(value, "task \"%s\" has no output \"%s\"; did you mean \"%s\"?", task->name,
                    shown, near);
    } else {
        yaml_refuse(value,
                    "task \"%s\" has no output \"%s\"; its `outputs:` name what the task leaves",
                    task->name, shown);
    }
    free(texts);
}

/* Finds the output that `text` names: TASK/OUTPUT, or TASK alone when the task has exactly one
 * output. */
static bool find_output(struct tasks *tasks, struct yaml_value value, const char *text,
                        uint32_t *ret_task, char ret_output[FORMAT_PATH_BYTES + 1])
{
    char name[FORMAT_NAME_BYTES + 1];
    size_t length = strcspn(text, "/");
    (void)snprintf(name, sizeof name, "%.*s",
                   (int)(length < sizeof name ? length : sizeof name - 1), text);
    if (!find_task(tasks, value, name, ret_task)) {
        return false;
    }
    const struct job_task *task = &tasks->job->tasks[*ret_task];
    size_t count = job_task_outputs(tasks->job, task)->count;
    if (text[length] == '\0') {
        if (count == 1) {
            return output_text(tasks->job, task, 0, ret_output);
        }
        if (count == 0) {
            yaml_refuse(value, "task \"%s\" has no outputs to take; name some in its `outputs:`",
                        name);
        } else {
            yaml_refuse(value, "task \"%s\" has %zu outputs; write which one, as in %s/NAME", name,
                        count, name);
        }
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (output_text(tasks->job, task, i, ret_output) &&
            strcmp(ret_output, text + length + 1) == 0) {
            return true;
        }
    }
    refuse_output(value, tasks->job, task, text + length + 1);
    return false;
}

static bool is_taken(const struct job_task *task, const char *name)
{
    for (size_t i = 0; i < task->wait_count; i++) {
        if (task->waits[i].name != NULL && strcmp(task->waits[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns true when the task takes the files of this pattern into this folder already. Each file
 * would be there twice. */
static bool is_pattern_taken(const struct job_task *task, const struct job_wait *wanted)
{
    for (size_t i = 0; i < task->wait_count; i++) {
        const struct job_wait *wait = &task->waits[i];
        if (wait->output != NULL && wait->task == wanted->task &&
            strcmp(wait->output, wanted->output) == 0 && strcmp(wait->name, wanted->name) == 0) {
            return true;
        }
    }
    return false;
}

/* Reads one output that the task takes over as a file. The file gets `name`, or the output's own
 * name when `name` is NULL. The files of a pattern go into a folder, which may be the work
 * folder. */
static bool read_from_one(struct tasks *tasks, struct yaml_value value, struct job_task *task,
                          const char *name)
{
    char output[FORMAT_PATH_BYTES + 1];
    char folder[FORMAT_PATH_BYTES + 3];
    uint32_t found = 0;
    const char *text = yaml_text(value, FORMAT_NAME_BYTES + 1 + FORMAT_PATH_BYTES, NULL);
    if (text == NULL || !find_output(tasks, value, text, &found, output)) {
        return false;
    }
    /* The name of a task is never special, so the output's pattern is as its template's. */
    const bool is_pattern = pattern_is_special(output, strlen(output));
    const bool is_folder = is_pattern || template_is_folder(output);
    const char *rest;
    pattern_split(output, folder, &rest);
    name = name != NULL ? name : is_pattern ? folder : output;
    if (is_folder != template_is_folder(name)) {
        yaml_refuse(value, "%s is a %s: give it a name that %s with a slash", text,
                    is_pattern  ? "pattern"
                    : is_folder ? "folder"
                                : "file",
                    is_folder ? "ends" : "does not end");
        return false;
    }
    if (!template_output_safe(name) && !(is_pattern && strcmp(name, "./") == 0)) {
        char shown[SHOWN_SIZE];
        show(name, shown);
        yaml_refuse(value, "\"%s\" must be a path inside the work folder: relative, without \"..\"",
                    shown);
        return false;
    }
    if (!is_pattern && is_taken(task, name)) {
        yaml_refuse(value,
                    "the task takes two files as \"%s\"; give one another name, as in {other: %s}",
                    name, text);
        return false;
    }
    const struct job_wait wanted = {.task = found, .output = output, .name = (char *)name};
    if (is_pattern && is_pattern_taken(task, &wanted)) {
        yaml_refuse(value, "the task takes the files of %s twice; name the pattern once", text);
        return false;
    }
    return add_wait(
        tasks, value, task,
        (struct job_wait){.task = found, .output = job_copy(output), .name = job_copy(name)});
}

/* Reads TASK/OUTPUT, a list of them, or a map {NAME: TASK/OUTPUT}. */
static void read_from(struct tasks *tasks, struct yaml_value value, struct job_task *task)
{
    if (!yaml_present(value)) {
        return;
    }
    if (yaml_kind(value) == YAML_KIND_TEXT) {
        (void)read_from_one(tasks, value, task, NULL);
        return;
    }
    bool is_map = yaml_kind(value) == YAML_KIND_MAP;
    if (is_map ? !yaml_is_map(value, FORMAT_SHARED_FILES)
               : !yaml_is_list(value, FORMAT_SHARED_FILES)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(value); i++) {
        if (!read_from_one(tasks, is_map ? yaml_entry(value, i) : yaml_item(value, i), task,
                           is_map ? yaml_entry_key(value, i) : NULL)) {
            return;
        }
    }
}

/* ---------------------------------------------------------------- circles */

/* The walk over the waits goes depth first without recursion, because a chain of waits may be as
 * long as the list. */
struct walk {
    uint32_t *path; /* the tasks on the path; each waits for the next */
    size_t *at;     /* for each task on the path: index of its next wait */
    uint8_t *seen;  /* for each task: 0, ON_PATH or DONE */
    size_t depth;
};
enum { ON_PATH = 1, DONE = 2 };

static void refuse_circle(const struct tasks *tasks, const struct walk *walk, uint32_t task)
{
    const struct job_task *all = tasks->job->tasks;
    char text[320] = "";
    size_t from = 0;
    while (walk->path[from] != task) {
        from++;
    }
    size_t length = 0;
    size_t shown = 0;
    for (; from + shown < walk->depth && shown < CIRCLE_SHOWN; shown++) {
        char name[SHOWN_SIZE];
        show(all[walk->path[from + shown]].name, name);
        length += (size_t)snprintf(text + length, sizeof text - length, "%.30s after ", name);
    }
    if (from + shown < walk->depth) {
        (void)snprintf(text + length, sizeof text - length, "... after ");
    }
    struct yaml_value item = yaml_item(tasks->list, task);
    yaml_refuse(yaml_key(item, "name"), "the tasks wait in a circle: %s%s", text, all[task].name);
}

static bool walk_from(const struct tasks *tasks, struct walk *walk, uint32_t start)
{
    const struct job_task *all = tasks->job->tasks;
    walk->path[0] = start;
    walk->at[0] = 0;
    walk->depth = 1;
    walk->seen[start] = ON_PATH;
    while (walk->depth > 0) {
        uint32_t task = walk->path[walk->depth - 1];
        size_t at = walk->at[walk->depth - 1]++;
        if (at == all[task].wait_count) {
            walk->seen[task] = DONE;
            walk->depth--;
            continue;
        }
        uint32_t next = all[task].waits[at].task;
        if (walk->seen[next] == ON_PATH) {
            refuse_circle(tasks, walk, next);
            return false;
        }
        if (walk->seen[next] == 0) {
            walk->seen[next] = ON_PATH;
            walk->at[walk->depth] = 0;
            walk->path[walk->depth++] = next;
        }
    }
    return true;
}

static void refuse_circles(const struct tasks *tasks)
{
    size_t count = tasks->job->task_count;
    struct walk walk = {.path = calloc(count, sizeof *walk.path),
                        .at = calloc(count, sizeof *walk.at),
                        .seen = calloc(count, sizeof *walk.seen)};
    if (walk.path == NULL || walk.at == NULL || walk.seen == NULL) {
        (void)job_read_no_memory(tasks->list);
    } else {
        for (size_t i = 0; i < count; i++) {
            if (walk.seen[i] == 0 && !walk_from(tasks, &walk, (uint32_t)i)) {
                break;
            }
        }
    }
    free(walk.path);
    free(walk.at);
    free(walk.seen);
}

/* ---------------------------------------------------------------- the whole list */

void job_read_tasks(struct yaml_value list, struct job_file *job)
{
    if (!yaml_present(list) || !yaml_is_list(list, FORMAT_TASKS)) {
        return;
    }
    size_t count = yaml_count(list);
    if (count == 0) {
        yaml_refuse(list, "the list needs at least one task");
        return;
    }
    struct tasks tasks = {.list = list, .job = job, .names = calloc(count, sizeof *tasks.names)};
    job->tasks = calloc(count, sizeof *job->tasks);
    if (tasks.names == NULL || job->tasks == NULL) {
        (void)job_read_no_memory(list);
        free(tasks.names);
        return;
    }
    job->task_count = count;
    if (read_all_names(&tasks)) {
        for (size_t i = 0; i < count; i++) {
            read_task(yaml_item(list, i), job, &job->tasks[i]);
        }
        for (size_t i = 0; i < count; i++) {
            struct yaml_value item = yaml_item(list, i);
            read_after(&tasks, yaml_key(item, "after"), &job->tasks[i]);
            read_from(&tasks, yaml_key(item, "from"), &job->tasks[i]);
        }
        refuse_circles(&tasks);
    }
    free(tasks.names);
}
