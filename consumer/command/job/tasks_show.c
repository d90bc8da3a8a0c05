/* This file shows jobs that are graphs of programs, by the names of their tasks. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "formats/limits.h"
#include "formats/units.h"
#include "protocol/message.h"

#include <stdlib.h>
#include <string.h>

bool tasks_are_named(const struct bourse_tasks *tasks)
{
    return bourse_task_name(tasks, bourse_tasks_count(tasks) - 1) != NULL;
}

struct bourse_tasks *tasks_load(struct invocation *invocation, const char *id)
{
    struct bourse_error error; /* names are optional, so a failure is ignored */
    struct bourse_tasks *tasks = NULL;
    if (!bourse_tasks(invocation->bourse, id, &tasks, &error)) {
        return NULL;
    }
    if (!tasks_are_named(tasks) && !bourse_tasks_are_numbered(tasks) &&
        !bourse_tasks_continues(tasks, (char[BOURSE_ID_SIZE]){""})) {
        bourse_tasks_destroy(&tasks);
    }
    return tasks;
}

/* ---------------------------------------------------------------- which one is meant */

enum { TASKS_NAMED = 8 };

/* Writes the first few names, and the number of the rest. */
static void name_tasks(const struct bourse_tasks *tasks, char ret_text[BOURSE_TEXT_SIZE])
{
    size_t used = 0;
    const uint32_t count = bourse_tasks_count(tasks);
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < count && i <= TASKS_NAMED; i++) {
        const char *name = bourse_task_name(tasks, i);
        if (i == TASKS_NAMED || name == NULL) {
            (void)snprintf(ret_text + used, BOURSE_TEXT_SIZE - used, " and %u more", count - i);
            return;
        }
        used += (size_t)snprintf(ret_text + used, BOURSE_TEXT_SIZE - used, "%s%.32s",
                                 i > 0 ? ", " : "", name);
    }
}

const char *tasks_take_word(struct invocation *invocation)
{
    if (invocation->word_count > 1) {
        return invocation->words[1];
    }
    char *stroke = strchr(invocation->words[0], '/');
    if (stroke == NULL || stroke[1] == '\0') {
        return NULL;
    }
    *stroke = '\0';
    return stroke + 1;
}

bool tasks_resolve(struct invocation *invocation, const char *id, const struct bourse_tasks *tasks,
                   const char *text, uint32_t *ret_index, int *ret_status)
{
    int64_t index = 0;
    if (tasks != NULL && bourse_task_find(tasks, text, ret_index)) {
        return true;
    }
    const bool is_number = units_count(text, &index) == UNITS_OK;
    const bool is_named = tasks != NULL && tasks_are_named(tasks);
    if (!is_number && is_named && bourse_task_name(tasks, 0) != NULL) {
        char names[BOURSE_TEXT_SIZE];
        name_tasks(tasks, names);
        *ret_status =
            complain(invocation, BOURSE_NOT_FOUND, "no task '%.64s'; there are %s", text, names);
        return false;
    }
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_jobs(invocation->bourse, id, &jobs, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    const uint32_t last = bourse_jobs_row(jobs, 0)->subtasks - 1;
    const bool is_numbered = tasks != NULL && bourse_tasks_are_numbered(tasks);
    if (!is_number || is_numbered || index > last) {
        *ret_status = complain(
            invocation, BOURSE_NOT_FOUND, "'%.64s' is no subtask of job %.8s; its %s %s%s%s", text,
            id, last == 0 ? "only subtask is" : "subtasks are", cell_number(tasks, 0),
            last == 0 ? "" : " to ", last == 0 ? "" : cell_number(tasks, last));
        return false;
    }
    *ret_index = (uint32_t)index;
    return true;
}

/* ---------------------------------------------------------------- how far each is */

struct progress_of_task {
    enum bourse_subtask_state state;
    uint32_t tries;
    bool has_result, is_checked;
    int outcome; /* outcome of its result; 0 is good */
    int status;
    int64_t busy_ns;
    const char *verdict; /* verdict of a check, else NULL */
    char why[BOURSE_WHY_SIZE];
};

struct seen_tasks {
    struct progress_of_task *items;
    uint32_t count;
    uint32_t checks; /* the last `checks` items are checks */
};

enum { STATUS_ACCEPTED = 0, STATUS_PAID = 1, STATUS_REFUTED = 4 };

static bool see(void *context, const struct bourse_outcome *outcome)
{
    struct seen_tasks *seen = context;
    if (outcome->index >= seen->count) {
        return true;
    }
    struct progress_of_task *item = &seen->items[outcome->index];
    item->has_result = true;
    item->is_checked = outcome->checked;
    item->outcome = outcome->outcome;
    item->status = outcome->status;
    item->tries = outcome->attempt;
    item->busy_ns = outcome->busy_ns;
    item->verdict = outcome->verdict_text;
    item->state = outcome->status == STATUS_ACCEPTED      ? BOURSE_SUBTASK_ACCEPTED
                  : outcome->outcome == OUTCOME_CANCELLED ? BOURSE_SUBTASK_CANCELLED
                                                          : BOURSE_SUBTASK_FAILED;
    failures_why(outcome, item->why);
    return true;
}

static bool is_check(const struct seen_tasks *seen, uint32_t index)
{
    return index >= seen->count - seen->checks;
}

/* Returns the check of the subtask, or NULL. */
static const struct progress_of_task *check_of(const struct seen_tasks *seen, uint32_t index)
{
    return seen->checks == 0 || is_check(seen, index) ? NULL : &seen->items[seen->checks + index];
}

/* Writes why the last result does not count, or another fact about it. */
static void explain_result(struct seen_tasks *seen, uint32_t index)
{
    struct progress_of_task *item = &seen->items[index];
    const struct progress_of_task *check = check_of(seen, index);
    const char *text = item->why;
    if (item->status == STATUS_REFUTED) {
        text = check != NULL && check->has_result && check->outcome != 0
                   ? "not paid: what it claims to have left was not there"
                   : "not paid: found wrong by a referee";
    } else if (item->outcome == 0 && item->status == STATUS_PAID && item->verdict != NULL) {
        text = strcmp(item->verdict, "reject") == 0   ? "found it wrong"
               : strcmp(item->verdict, "unsure") == 0 ? "came to no verdict"
                                                      : "";
    } else if (item->outcome == 0 && item->status == STATUS_PAID) {
        text = item->is_checked ? "paid: its checks came to no verdict, nobody is accused"
                                : "paid: its check failed, nobody is accused";
    } else if (item->status == STATUS_ACCEPTED) {
        text = check != NULL && !item->is_checked ? "paid and taken unchecked: the job ended first"
                                                  : "";
    }
    if (text != item->why) {
        (void)snprintf(item->why, sizeof item->why, "%s", text);
    }
}

static struct seen_tasks look(struct invocation *invocation, const struct bourse_job_row *row,
                              const struct bourse_tasks *tasks)
{
    struct bourse_error error; /* an unknown state is not shown */
    struct bourse_subtask *now = NULL;
    uint32_t now_count = 0;
    struct seen_tasks seen = {.count = bourse_tasks_count(tasks),
                              .checks = bourse_tasks_checks(tasks)};
    seen.items = calloc(seen.count, sizeof *seen.items);
    if (seen.items == NULL) {
        seen.count = seen.checks = 0;
        return seen;
    }
    for (uint32_t i = 0; row->state != BOURSE_OPEN && i < seen.count; i++) {
        seen.items[i].state = BOURSE_SUBTASK_CANCELLED; /* a subtask without a result */
    }
    (void)bourse_outcomes(invocation->bourse, row->id, 0, see, &seen, &error);
    for (uint32_t i = 0; i < seen.count; i++) {
        if (seen.items[i].has_result) {
            explain_result(&seen, i);
        }
    }
    if (row->state == BOURSE_OPEN &&
        bourse_subtasks(invocation->bourse, row->id, &now, &now_count, &error)) {
        for (uint32_t i = 0; now_count == seen.count && i < seen.count; i++) {
            seen.items[i].state = now[i].state;
            seen.items[i].tries = now[i].tries;
        }
        bourse_free(now);
    }
    return seen;
}

#define NOBODY UINT32_MAX
/* Returns the first task that subtask `index` waits for, or NOBODY. A check waits only for a
 * result, which need not be accepted. */
static uint32_t waits_for(const struct bourse_tasks *tasks, const struct seen_tasks *seen,
                          uint32_t index)
{
    for (size_t i = 0; i < bourse_task_waits(tasks, index); i++) {
        uint32_t before = bourse_task_wait(tasks, index, i);
        if (before >= seen->count) {
            continue;
        }
        const enum bourse_subtask_state state = seen->items[before].state;
        if (state != BOURSE_SUBTASK_ACCEPTED &&
            !(state == BOURSE_SUBTASK_CHECKING && is_check(seen, index))) {
            return before;
        }
    }
    return NOBODY;
}

static const char *state_of(const struct bourse_tasks *tasks, const struct seen_tasks *seen,
                            uint32_t index)
{
    const struct progress_of_task *item = &seen->items[index];
    switch (item->state) {
    case BOURSE_SUBTASK_WAITING:
        return waits_for(tasks, seen, index) != NOBODY ? "waiting"
               : item->tries > 0                       ? "tried"
                                                       : "ready";
    case BOURSE_SUBTASK_RUNNING:
        return "running";
    case BOURSE_SUBTASK_QUEUED:
        return "queued";
    case BOURSE_SUBTASK_CHECKING:
        return "checking";
    case BOURSE_SUBTASK_ACCEPTED:
        return "done";
    case BOURSE_SUBTASK_FAILED:
        return "failed";
    case BOURSE_SUBTASK_CANCELLED:
        return "cancelled";
    }
    return "unknown";
}

static const char *why_of(const struct bourse_tasks *tasks, const struct seen_tasks *seen,
                          uint32_t index, char ret_text[CELL_SIZE])
{
    const struct progress_of_task *item = &seen->items[index];
    const struct progress_of_task *check = check_of(seen, index);
    if (item->state == BOURSE_SUBTASK_CHECKING && check != NULL) {
        return check->state == BOURSE_SUBTASK_RUNNING ? "a referee checks its result"
                                                      : "its result waits for a referee";
    }
    if (item->state == BOURSE_SUBTASK_QUEUED) {
        return "next on its device";
    }
    if (item->state != BOURSE_SUBTASK_WAITING) {
        return item->why;
    }
    uint32_t before = waits_for(tasks, seen, index);
    if (before == NOBODY) {
        return item->why;
    }
    const char *name = bourse_task_name(tasks, before);
    if (name != NULL) {
        (void)snprintf(ret_text, CELL_SIZE, "after %.140s", name);
    } else {
        (void)snprintf(ret_text, CELL_SIZE, "after %s", cell_subtask(tasks, before));
    }
    return ret_text;
}

void tasks_print(struct invocation *invocation, const struct bourse_job_row *row,
                 const struct bourse_tasks *tasks)
{
    static const char *const titles[] = {"TASK", "STATE", "TRIES", "TIME", "WHY"};
    char id[BOURSE_ID_SIZE];
    if (bourse_tasks_continues(tasks, id)) {
        (void)printf("continues job %s\n", cell_short_id(id));
    }
    if (!tasks_are_named(tasks)) {
        return;
    }
    struct seen_tasks seen = look(invocation, row, tasks);
    CLEANUP(grid_fini) struct grid table = grid_of(5, titles, "llrrl");
    for (uint32_t i = 0; i < seen.count; i++) {
        char text[CELL_SIZE];
        const char *name = bourse_task_name(tasks, i);
        const struct progress_of_task *item = &seen.items[i];
        const char *cells[] = {name != NULL ? name : cell_subtask(tasks, i),
                               state_of(tasks, &seen, i), cell_count(item->tries),
                               item->has_result ? cell_duration(item->busy_ns / 1000000) : "",
                               why_of(tasks, &seen, i, text)};
        grid_add(&table, cells);
    }
    (void)putchar('\n');
    grid_print(&table, stdout, invocation->color);
    free(seen.items);
}

json_t *tasks_json(struct invocation *invocation, const struct bourse_job_row *row,
                   const struct bourse_tasks *tasks)
{
    struct seen_tasks seen = look(invocation, row, tasks);
    json_t *list = json_array();
    for (uint32_t i = 0; i < seen.count; i++) {
        const char *name = bourse_task_name(tasks, i);
        json_t *after = json_array();
        for (size_t k = 0; k < bourse_task_waits(tasks, i); k++) {
            (void)json_array_append_new(after,
                                        json_integer((json_int_t)bourse_task_wait(tasks, i, k)));
        }
        char text[CELL_SIZE];
        json_t *item = json_pack("{s:i, s:s, s:i, s:I, s:s, s:o}", "index", (int)i, "state",
                                 state_of(tasks, &seen, i), "tries", (int)seen.items[i].tries,
                                 "busy_ns", (json_int_t)seen.items[i].busy_ns, "why",
                                 cell_plain(why_of(tasks, &seen, i, text)), "after", after);
        if (name != NULL) {
            (void)json_object_set_new(item, "name", json_string(cell_plain(name)));
        }
        (void)json_array_append_new(list, item);
    }
    free(seen.items);
    return list;
}

/* ---------------------------------------------------------------- why each is not done */

enum { NAMES_SHOWN = 8, WAITS_SHOWN = 8 };

struct telling {
    const struct bourse_tasks *tasks;   /* NULL: no names */
    const struct bourse_tasks *numbers; /* NULL: subtasks have only indices */
    struct seen_tasks seen;
};

static bool is_done(const struct telling *telling, uint32_t index)
{
    return index < telling->seen.count &&
           telling->seen.items[index].state == BOURSE_SUBTASK_ACCEPTED;
}

static bool may_run(const struct telling *telling, uint32_t index)
{
    return index < telling->seen.count &&
           (telling->seen.items[index].state == BOURSE_SUBTASK_WAITING ||
            telling->seen.items[index].state == BOURSE_SUBTASK_RUNNING);
}

static const char *name_of(const struct telling *telling, uint32_t index)
{
    const char *name = telling->tasks != NULL ? bourse_task_name(telling->tasks, index) : NULL;
    return name != NULL ? cell_plain(name) : cell_number(telling->numbers, index);
}

static uint32_t waits_on(const struct telling *telling, uint32_t index)
{
    return telling->tasks != NULL ? waits_for(telling->tasks, &telling->seen, index) : NOBODY;
}

/* Prints the subtasks of a part that run or wait for a device only: "left, right and 3 more". */
static uint32_t print_startable(const struct telling *telling,
                                const struct bourse_explanation *part)
{
    uint32_t count = 0;
    for (uint32_t i = part->first; i < part->first + part->subtasks; i++) {
        if (!may_run(telling, i) || waits_on(telling, i) != NOBODY) {
            continue;
        }
        if (count < NAMES_SHOWN) {
            (void)printf("%s%s", count > 0 ? ", " : "", name_of(telling, i));
        }
        count++;
    }
    if (count > NAMES_SHOWN) {
        (void)printf(" and %u more", count - NAMES_SHOWN);
    }
    return count;
}

static void print_waits(const struct telling *telling, const struct bourse_explanation *part)
{
    uint32_t count = 0;
    for (uint32_t i = part->first; i < part->first + part->subtasks; i++) {
        uint32_t before = is_done(telling, i) ? NOBODY : waits_on(telling, i);
        if (before == NOBODY) {
            continue;
        }
        if (count < WAITS_SHOWN) {
            (void)printf("%s: ", name_of(telling, i));
            (void)printf("after %s\n", name_of(telling, before));
        }
        count++;
    }
    if (count > WAITS_SHOWN) {
        (void)printf("%u more wait for others\n", count - WAITS_SHOWN);
    }
}

/* A part without names shows the numbers of all its subtasks. */
static void print_part(const struct telling *telling, const struct bourse_explanation *part)
{
    bool is_named = telling->tasks != NULL && bourse_task_name(telling->tasks, part->first) != NULL;
    uint32_t startable = 0;
    if (is_named) {
        startable = print_startable(telling, part);
    } else if (part->waiting > 0 || part->running > 0) {
        startable = printf("subtasks %s to %s", cell_number(telling->numbers, part->first),
                           cell_number(telling->numbers, part->first + part->subtasks - 1)) > 0;
    }
    if (startable > 0) {
        const uint32_t running = part->running - part->queued;
        (void)printf(": %u wait%s for a device, %u run%s", part->waiting,
                     part->waiting == 1 ? "s" : "", running, running == 1 ? "s" : "");
        (void)(part->queued > 0 ? printf(", %u queued there\n", part->queued) : putchar('\n'));
    }
    if (part->waiting > 0) {
        jobs_print_explanation(stdout, part);
    }
    if (is_named) {
        print_waits(telling, part);
    }
}

static json_t *json_part(const struct telling *telling, const struct bourse_explanation *part)
{
    json_t *value = json_explanation(part);
    json_t *names = json_array();
    for (uint32_t i = part->first; telling->tasks != NULL && i < part->first + part->subtasks;
         i++) {
        (void)json_array_append_new(names, json_string(name_of(telling, i)));
    }
    (void)json_object_set_new(value, "part", json_integer(part->part));
    (void)json_object_set_new(value, "first", json_integer(part->first));
    (void)json_object_set_new(value, "subtasks", json_integer(part->subtasks));
    (void)json_object_set_new(value, "waiting", json_integer(part->waiting));
    (void)json_object_set_new(value, "running", json_integer(part->running - part->queued));
    (void)json_object_set_new(value, "queued", json_integer(part->queued));
    (void)json_object_set_new(value, "names", names);
    return value;
}

/* Explains part by part; `list` is NULL when the parts are printed. */
static bool tell_parts(struct invocation *invocation, const char *id, uint32_t count,
                       const struct telling *telling, json_t *list, struct bourse_error *ret_error)
{
    for (uint32_t i = 0; i < count; i++) {
        struct bourse_explanation part;
        if (!bourse_explain_part(invocation->bourse, id, i, &part, ret_error)) {
            return false;
        }
        if (list != NULL) {
            (void)json_array_append_new(list, json_part(telling, &part));
        } else {
            print_part(telling, &part);
        }
    }
    return true;
}

int tasks_explain_parts(struct invocation *invocation, const char *id,
                        const struct bourse_tasks *tasks, const struct bourse_explanation *tightest)
{
    struct bourse_error error;
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(invocation->bourse, id, &jobs, &error)) {
        return complain_with(invocation, &error);
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    const bool is_graph = tasks != NULL && tasks_are_named(tasks);
    struct telling telling = {.tasks = is_graph ? tasks : NULL, .numbers = tasks};
    if (is_graph) {
        telling.seen = look(invocation, row, tasks);
    }
    json_t *parts = invocation->json ? json_array() : NULL;
    int status = BOURSE_OK;
    if (!tell_parts(invocation, id, tightest->parts, &telling, parts, &error)) {
        json_decref(parts);
        status = complain_with(invocation, &error);
    } else if (invocation->json) {
        json_t *value = json_explanation(tightest);
        (void)json_object_set_new(value, "job", json_string(id));
        (void)json_object_set_new(value, "parts", parts);
        if (is_graph) {
            (void)json_object_set_new(value, "tasks", tasks_json(invocation, row, tasks));
        }
        json_set_forecast(value, row);
        status = json_print(value, BOURSE_OK);
    } else {
        jobs_print_forecast(invocation, stdout, row, NULL);
    }
    free(telling.seen.items);
    return status;
}

bool tasks_is_single(struct invocation *invocation, const char *id, int *ret_status)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_jobs(invocation->bourse, id, &jobs, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    const uint32_t subtasks = bourse_jobs_row(jobs, 0)->subtasks;
    if (subtasks != 1) {
        *ret_status = complain(invocation, BOURSE_USAGE,
                               "the job has %u subtasks: give one's INDEX or name, or --all",
                               (unsigned)subtasks);
    }
    return subtasks == 1;
}
