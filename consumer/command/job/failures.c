/* This file lists which subtasks of a job without names failed, and why. The table has only the
 * first ones, because there may be a million. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "protocol/message.h"

#include <string.h>

enum { FAILURES_SHOWN = 32 };

struct failure {
    uint32_t index, tries;
    int64_t busy_ns;
    bool is_of_image;
    bool is_cancelled; /* the job was cancelled, which ended the attempt */
    char why[BOURSE_WHY_SIZE];
};

struct failures {
    struct failure items[FAILURES_SHOWN];
    uint32_t count;
    uint32_t failed;      /* those that were not cancelled */
    bool shows_cancelled; /* the job was cancelled */
};

enum { UNPAID = 2 }; /* status of a result that is not paid, by its provider's fault */

void failures_why(const struct bourse_outcome *outcome, char ret_text[BOURSE_WHY_SIZE])
{
    if (outcome->outcome == 0 && outcome->status == UNPAID) {
        (void)snprintf(ret_text, BOURSE_WHY_SIZE, "%s",
                       "not paid: its provider did not store all that the subtask has to leave");
        return;
    }
    /* The program succeeded, but its result is not accepted. */
    if (outcome->outcome == 0 && outcome->status != 0) {
        (void)snprintf(ret_text, BOURSE_WHY_SIZE, "its result was not taken: %s",
                       outcome->status_text);
        return;
    }
    (void)snprintf(ret_text, BOURSE_WHY_SIZE, "%s%s%s", outcome->outcome_text,
                   outcome->detail[0] != '\0' ? ": " : "", outcome->detail);
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* An agent that cannot use an image begins the detail of the result so (provider/jail/image.c). */
static bool is_of_image(const struct bourse_outcome *outcome)
{
    return (outcome->outcome == OUTCOME_PROGRAM_FAILED &&
            begins_with(outcome->detail, "the image is unfit")) ||
           (outcome->outcome == OUTCOME_DISK_LIMIT &&
            begins_with(outcome->detail, "the image is above the limits"));
}

static bool take_failure(void *context, const struct bourse_outcome *outcome)
{
    struct failures *failures = context;
    const bool is_cancelled = outcome->outcome == OUTCOME_CANCELLED;
    if (outcome->status == 0 || (is_cancelled && !failures->shows_cancelled)) {
        return true;
    }
    struct failure *item = &failures->items[failures->count++];
    failures->failed += !is_cancelled;
    item->is_cancelled = is_cancelled;
    item->index = outcome->index;
    item->tries = outcome->attempt;
    item->busy_ns = outcome->busy_ns;
    item->is_of_image = is_of_image(outcome);
    failures_why(outcome, item->why);
    return failures->count < FAILURES_SHOWN;
}

/* Collects the failures of a job that has ended undone. Returns false when there are none. In an
 * open job, a subtask that is tried again has not failed. */
static bool look(struct invocation *invocation, const struct bourse_job_row *row,
                 struct failures *ret_failures)
{
    struct bourse_error error; /* an unknown reason is not shown */
    const bool is_over = row->state != BOURSE_OPEN && row->state != BOURSE_DONE;
    ret_failures->count = 0;
    ret_failures->failed = 0;
    ret_failures->shows_cancelled = row->state == BOURSE_WAS_CANCELLED;
    return is_over &&
           bourse_outcomes(invocation->bourse, row->id, 0, take_failure, ret_failures, &error) &&
           ret_failures->count > 0;
}

bool failures_are_of_image(struct invocation *invocation, const struct bourse_job_row *row)
{
    static struct failures failures; /* too large for the stack */
    bool is_found = false;
    if (look(invocation, row, &failures)) {
        for (uint32_t i = 0; i < failures.count; i++) {
            is_found = is_found || failures.items[i].is_of_image;
        }
    }
    return is_found;
}

static const char *state_of(const struct failure *item)
{
    return item->is_cancelled ? "cancelled" : "failed";
}

static uint32_t left_out(const struct bourse_job_row *row, const struct failures *failures)
{
    return row->failed > failures->failed ? row->failed - failures->failed : 0;
}

void failures_print(struct invocation *invocation, const struct bourse_job_row *row,
                    const struct bourse_tasks *tasks)
{
    static const char *const titles[] = {"SUBTASK", "STATE", "TRIES", "TIME", "WHY"};
    static struct failures failures; /* too large for the stack */
    if (!look(invocation, row, &failures)) {
        return;
    }
    CLEANUP(grid_fini) struct grid table = grid_of(5, titles, "rlrrl");
    for (uint32_t i = 0; i < failures.count; i++) {
        const struct failure *item = &failures.items[i];
        const char *cells[] = {cell_number(tasks, item->index), state_of(item),
                               cell_count(item->tries), cell_duration(item->busy_ns / 1000000),
                               item->why};
        grid_add(&table, cells);
    }
    (void)putchar('\n');
    grid_print(&table, stdout, invocation->color);
    const uint32_t more = left_out(row, &failures);
    if (more > 0) {
        (void)printf("%u more failed; `bourse logs %s` says why\n", more, cell_short_id(row->id));
    }
    const uint32_t listed = failures.count - failures.failed;
    if (failures.shows_cancelled && row->cancelled > listed) {
        const uint32_t others = row->cancelled - listed;
        (void)printf("%u more w%s cancelled\n", others, others == 1 ? "as" : "ere");
    }
}

json_t *failures_json(struct invocation *invocation, const struct bourse_job_row *row,
                      const struct bourse_tasks *tasks, uint32_t *ret_more)
{
    static struct failures failures; /* too large for the stack */
    json_t *list = json_array();
    (void)look(invocation, row, &failures); /* no failure gives an empty list */
    for (uint32_t i = 0; i < failures.count; i++) {
        const struct failure *item = &failures.items[i];
        (void)json_array_append_new(
            list, json_pack("{s:I, s:s, s:I, s:I, s:s, s:s}", "index", (json_int_t)item->index,
                            "state", state_of(item), "tries", (json_int_t)item->tries, "busy_ns",
                            (json_int_t)item->busy_ns, "why", cell_sentence(item->why), "subtask",
                            cell_word(tasks, item->index)));
    }
    *ret_more = left_out(row, &failures);
    return list;
}

/* ---------------------------------------------------------------- one of them */

struct search {
    uint32_t index;
    bool is_found;
    struct bourse_outcome found;
};

static bool find(void *context, const struct bourse_outcome *outcome)
{
    struct search *search = context;
    if (outcome->index == search->index) {
        search->is_found = true;
        search->found = *outcome;
    }
    return false; /* rows come by index, so the first row is the one, or there is none */
}

bool failures_find_end(struct invocation *invocation, const char *id,
                       const struct bourse_tasks *tasks, uint32_t index,
                       struct subtask_end *ret_end, struct bourse_error *ret_error)
{
    static struct search search; /* too large for the stack */
    search.index = index;
    search.is_found = false;
    if (!bourse_outcomes(invocation->bourse, id, index, find, &search, ret_error)) {
        return false;
    }
    *ret_end = (struct subtask_end){.state = "cancelled"};
    if (!search.is_found) {
        (void)snprintf(ret_end->text, sizeof ret_end->text,
                       "the job has ended before %s had a result", cell_subtask(tasks, index));
        return true;
    }
    ret_end->tries = search.found.attempt;
    if (search.found.status == 0) {
        ret_end->state = "accepted";
        (void)snprintf(ret_end->text, sizeof ret_end->text, "the job has ended: %s was accepted",
                       cell_subtask(tasks, index));
        return true;
    }
    failures_why(&search.found, ret_end->why);
    if (search.found.outcome == OUTCOME_CANCELLED) {
        (void)snprintf(ret_end->text, sizeof ret_end->text,
                       "the job has ended: %s was cancelled, at try %u: %s",
                       cell_subtask(tasks, index), ret_end->tries, search.found.detail);
        return true;
    }
    ret_end->state = "failed";
    (void)snprintf(ret_end->text, sizeof ret_end->text,
                   "the job has ended: %s failed, at try %u: %.*s", cell_subtask(tasks, index),
                   ret_end->tries, BOURSE_WHY_SIZE, ret_end->why);
    return true;
}
