/* This file runs logs, which prints what the subtasks of a job wrote or why they failed. */
#include "base/array.h"
#include "base/cleanup.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/live.h"
#include "consumer/command/job/stream.h"
#include "consumer/command/notes.h"
#include "consumer/command/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The reason why a subtask failed; "" without one. */
struct cause {
    char text[BOURSE_TEXT_SIZE + 64];
};

struct log_item {
    uint32_t index, attempt;
    bool is_error; /* the stream is standard error */
    bool is_accepted;
    struct { /* stream to print; size 0: none */
        uint64_t size;
        char hash[BOURSE_HEX32_SIZE];
    } stream;
    struct notes_stream note;
    struct cause *cause;
};

struct log_list {
    struct log_item *items;
    size_t count, capacity;
    uint8_t *seen; /* one bit per subtask: printed, or about to be */
    uint32_t subtasks;
    bool standard_error; /* in place of the output */
    bool any;            /* something was printed */
    struct live *live;   /* NULL: nothing is printed live */
};

/* `cause` becomes the reason of the attempt's failure, or NULL. The last attempt decides. */
static bool take_cause(const struct bourse_outcome *outcome, struct cause **cause)
{
    free(*cause);
    *cause = NULL;
    if (outcome->outcome == 0) {
        return true;
    }
    *cause = malloc(sizeof **cause);
    if (*cause != NULL) {
        (void)snprintf((*cause)->text, sizeof(*cause)->text, "%s%s%s", outcome->outcome_text,
                       outcome->detail[0] != '\0' ? ": " : "", cell_sentence(outcome->detail));
    }
    return *cause != NULL;
}

/* An accepted attempt stands for the subtask, else the last attempt does (bourse_log). */
static void take_stream(const struct bourse_outcome *outcome, bool standard_error,
                        struct log_item *item)
{
    const bool has = standard_error ? outcome->has_standard_error : outcome->has_standard_output;
    const struct bourse_output *output =
        standard_error ? &outcome->standard_error : &outcome->standard_output;
    if (!item->is_accepted) {
        item->is_accepted = outcome->status == 0;
        item->attempt = outcome->attempt;
        item->stream.size = has ? output->size : 0;
        memcpy(item->stream.hash, output->hash, sizeof item->stream.hash);
        item->note = notes_stream_of(outcome, standard_error);
    }
}

static bool collect(void *context, const struct bourse_outcome *outcome)
{
    struct log_list *list = context;
    if (list->count > 0 && list->items[list->count - 1].index == outcome->index) {
        take_stream(outcome, list->standard_error, &list->items[list->count - 1]);
        return take_cause(outcome, &list->items[list->count - 1].cause);
    }
    if (outcome->index >= list->subtasks ||
        ((list->seen[outcome->index / 8] >> outcome->index % 8 & 1) != 0 &&
         !live_is_later(list->live, outcome->index, outcome->attempt))) {
        return true;
    }
    struct log_item *items =
        array_with_room(list->items, list->count, &list->capacity, sizeof *items);
    if (items == NULL) {
        return false;
    }
    list->items = items;
    list->seen[outcome->index / 8] |= (uint8_t)(1u << outcome->index % 8);
    struct log_item *item = &list->items[list->count++];
    *item = (struct log_item){.index = outcome->index};
    take_stream(outcome, list->standard_error, item);
    return take_cause(outcome, &item->cause);
}

static void forget_causes(struct log_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].cause);
    }
    list->count = 0;
}

struct log_request {
    struct invocation *invocation;
    const char *id;
    const struct bourse_tasks *tasks; /* NULL: subtasks have only numbers */
    bool standard_error;
    bool follows;
    bool headed; /* several subtasks: print a header for each */
    struct notes *notes;
};

/* Says on stderr why the subtask failed, which tells what is cut, too, or only what is cut. */
static bool print_end(const struct log_request *request, const struct log_item *item)
{
    if (item->cause != NULL && !request->invocation->quiet) {
        (void)fflush(stdout); /* the output comes before the reason of its end */
        (void)fprintf(stderr, "%s: %s\n", cell_subtask(request->tasks, item->index),
                      item->cause->text);
    } else {
        notes_say_cut(request->notes, item->index, &item->note, 1);
    }
    return true; /* there is nothing that could fail */
}

/* Prints the rest of an output that was printed live. */
static bool finish_item(const struct log_request *request, struct live *live,
                        const struct log_item *item, struct live_printed *ret_printed,
                        struct bourse_error *error)
{
    struct bourse_output output = {.size = item->stream.size};
    memcpy(output.hash, item->stream.hash, sizeof output.hash);
    const bool ok = live_finish(live, item->index, item->attempt, request->standard_error, &output,
                                ret_printed, error);
    live_is_over(live, item->index, item->attempt);
    return ok;
}

/* Prints one of several outputs, found by its hash from the list of results, or the rest of an
 * output that was printed live. */
static bool print_item(const struct log_request *request, struct live *live, struct log_item *item,
                       struct bourse_error *error)
{
    struct live_printed printed;
    if (!finish_item(request, live, item, &printed, error)) {
        return false;
    }
    item->note.printed = printed.bytes;
    if (printed.is_any) {
        return print_end(request, item);
    }
    const struct stream_item stream = {.job = request->id,
                                       .subtask = cell_subtask(request->tasks, item->index),
                                       .is_standard_error = request->standard_error,
                                       .hash = item->stream.hash,
                                       .size = item->stream.size};
    if (request->headed && !request->invocation->quiet) {
        (void)printf("==> %s <==\n", stream.subtask);
    }
    return stream_item(request->invocation, &stream, error) && print_end(request, item);
}

static bool keep_one(void *context, const struct bourse_outcome *outcome)
{
    struct log_item *item = context;
    if (outcome->index != item->index) {
        return false;
    }
    take_stream(outcome, item->is_error, item);
    return take_cause(outcome, &item->cause);
}

/* Prints the output of one subtask and, on stderr, the reason of its failure. */
static bool print_one(const struct log_request *request, uint32_t index, struct bourse_error *error)
{
    struct log_item item = {.index = index, .is_error = request->standard_error};
    bool ok =
        stream_log(request->invocation, request->id, index, request->standard_error, error) &&
        bourse_outcomes(request->invocation->bourse, request->id, index, keep_one, &item, error);
    if (ok) {
        print_end(request, &item);
    }
    free(item.cause);
    return ok;
}

static bool print_new(const struct log_request *request, struct log_list *list,
                      struct bourse_error *error)
{
    bool ok = bourse_outcomes(request->invocation->bourse, request->id, 0, collect, list, error);
    list->any = list->any || list->count > 0;
    for (size_t i = 0; ok && i < list->count; i++) {
        ok = print_item(request, list->live, &list->items[i], error);
    }
    forget_causes(list);
    return ok;
}

struct change {
    uint32_t results;
    bool first;
};

/* The wait ends at the first row, and later at each row with more results. */
static bool until_more(void *context, const struct bourse_job_row *row)
{
    struct change *change = context;
    if (row == NULL || row->accepted + row->failed == change->results) {
        return true;
    }
    change->results = row->accepted + row->failed;
    return false;
}

/* Begins to print the output of the job, or of the subtask `one` (NULL: all), while it comes. */
static struct live *follow_live(const struct log_request *request, const struct bourse_job_row *row,
                                const uint32_t *one, struct bourse_error *error)
{
    const struct live_options options = {.invocation = request->invocation,
                                         .id = request->id,
                                         .tasks = request->tasks,
                                         .subtasks = row->subtasks,
                                         .shows_output = !request->standard_error,
                                         .shows_error = request->standard_error,
                                         .is_past = row->state != BOURSE_OPEN || !request->follows,
                                         .is_one = one != NULL,
                                         .index = one != NULL ? *one : 0,
                                         .has_prefix = request->headed};
    return live_begin(&options, error);
}

static bool print_all(const struct log_request *request, bool follow, struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(request->invocation->bourse, request->id, &jobs, error)) {
        return false;
    }
    struct log_list list = {.subtasks = bourse_jobs_row(jobs, 0)->subtasks,
                            .standard_error = request->standard_error};
    struct bourse_job_row row = *bourse_jobs_row(jobs, 0);
    struct change change = {.results = row.accepted + row.failed};
    list.seen = calloc(list.subtasks / 8 + 1, 1);
    struct log_request all = *request;
    all.headed = list.subtasks > 1;
    bool ok = list.seen != NULL && print_new(&all, &list, error);
    if (ok && follow && row.state == BOURSE_OPEN) {
        list.live = follow_live(&all, &row, NULL, error);
        ok = list.live != NULL;
    }
    while (ok && follow && row.state == BOURSE_OPEN) {
        ok = bourse_wait(request->invocation->bourse, request->id, 0, until_more, &change, &row,
                         error) &&
             print_new(&all, &list, error);
    }
    ok = live_could_write(list.live, error) && ok;
    if (ok && !list.any && !request->invocation->quiet) {
        (void)fprintf(stderr, "no subtask of job %.8s has a result%s; `bourse ps %.8s` says why\n",
                      row.id, row.state == BOURSE_OPEN ? " yet" : "", row.id);
    }
    live_end(&list.live);
    free(list.seen);
    free(list.items);
    return ok;
}

/* The struct holds what the wait for one subtask has seen. */
struct followed {
    struct log_item item;
    bool has_ended;
};

static bool take_followed(void *context, const struct bourse_outcome *outcome)
{
    struct followed *followed = context;
    if (outcome->index != followed->item.index) {
        return false;
    }
    followed->has_ended = true;
    take_stream(outcome, followed->item.is_error, &followed->item);
    return take_cause(outcome, &followed->item.cause);
}

/* Prints one subtask live, then the rest out of its result. */
static bool print_followed(const struct log_request *request, uint32_t index,
                           struct bourse_error *error)
{
    struct bourse *bourse = request->invocation->bourse;
    struct bourse_job_row row = {.state = BOURSE_OPEN};
    struct change change = {.results = UINT32_MAX};
    struct followed followed = {.item = {.index = index, .is_error = request->standard_error}};
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (print_one(request, index, error)) {
        return true;
    }
    if (error->status != BOURSE_NOT_FOUND || !bourse_jobs(bourse, request->id, &jobs, error)) {
        return false;
    }
    CLEANUP(live_end)
    struct live *live = follow_live(request, bourse_jobs_row(jobs, 0), &index, error);
    bool ok = live != NULL;
    while (ok && !followed.has_ended) {
        ok = bourse_outcomes(bourse, request->id, index, take_followed, &followed, error);
        if (ok && !followed.has_ended && row.state != BOURSE_OPEN) {
            return print_one(request, index, error); /* it says that there is no result */
        }
        ok = ok && (followed.has_ended ||
                    bourse_wait(bourse, request->id, 0, until_more, &change, &row, error));
    }
    ok = live_could_write(live, error) && ok && print_item(request, live, &followed.item, error);
    free(followed.item.cause);
    return ok;
}

static json_t *read_log(const struct log_request *request, uint32_t index, int *ret_status)
{
    struct invocation *invocation = request->invocation;
    FILE *file = tmpfile();
    json_t *text = NULL;
    struct bourse_error error;
    if (file == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL,
                               "no temporary file can be made for the log: %s", strerror(errno));
    } else if (!bourse_log(invocation->bourse, request->id, index, request->standard_error,
                           fileno(file), &error)) {
        *ret_status = complain_with(invocation, &error);
    } else {
        long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
        char *bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;
        rewind(file);
        if (bytes != NULL && fread(bytes, 1, (size_t)size, file) == (size_t)size) {
            text = json_stringn(bytes, (size_t)size);
            if (text == NULL) { /* not UTF-8 */
                for (long i = 0; i < size; i++) {
                    bytes[i] = (unsigned char)bytes[i] < 0x80 ? bytes[i] : '?';
                }
                text = json_stringn(bytes, (size_t)size);
            }
        }
        free(bytes);
        if (text == NULL) {
            *ret_status = complain(invocation, BOURSE_LOCAL,
                                   "the log of %s cannot be read back, or does not fit in memory",
                                   cell_subtask(request->tasks, index));
        }
    }
    if (file != NULL) {
        (void)fclose(file); /* a temporary file */
    }
    return text;
}

struct outcome_list {
    json_t *items;
    const struct bourse_tasks *tasks;
    bool is_one; /* only those of the subtask `index` */
    uint32_t index;
};

static bool add_outcome(void *context, const struct bourse_outcome *outcome)
{
    const struct outcome_list *list = context;
    return (list->is_one && outcome->index != list->index) ||
           json_array_append_new(list->items, json_outcome(outcome, list->tasks)) == 0;
}

/* --json gives every outcome; with an INDEX those of the subtask, and the text. */
static int logs_json(const struct log_request *request, bool one, uint32_t index)
{
    struct invocation *invocation = request->invocation;
    const char *id = request->id;
    const bool standard_error = request->standard_error;
    struct bourse_error error;
    struct outcome_list list = {
        .items = json_array(), .tasks = request->tasks, .is_one = one, .index = index};
    if (!bourse_outcomes(invocation->bourse, id, index, add_outcome, &list, &error)) {
        json_decref(list.items);
        return complain_with(invocation, &error);
    }
    json_t *value = json_pack("{s:s, s:o}", "job", id, "outcomes", list.items);
    if (one) {
        int status;
        json_t *text = read_log(request, index, &status);
        if (text == NULL) {
            json_decref(value);
            return status;
        }
        (void)json_object_set_new(value, standard_error ? "stderr" : "stdout", text);
    }
    return json_print(value, BOURSE_OK);
}

/* Prints one JSON value for each line: those of the results that are there and, when the command
 * follows, those that come until the job or the subtask has ended. */
static bool print_lines_json(const struct log_request *request, const uint32_t *one,
                             struct bourse_error *error)
{
    struct bourse *bourse = request->invocation->bourse;
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(bourse, request->id, &jobs, error)) {
        return false;
    }
    struct bourse_job_row row = *bourse_jobs_row(jobs, 0);
    struct change change = {.results = UINT32_MAX};
    struct log_list list = {.subtasks = row.subtasks, .standard_error = request->standard_error};
    list.seen = calloc(list.subtasks / 8 + 1, 1);
    list.live = follow_live(request, &row, one, error);
    bool ok = list.seen != NULL && list.live != NULL;
    bool has_ended = row.state != BOURSE_OPEN || !request->follows;
    bool is_first = has_ended;
    while (ok && (!has_ended || is_first)) {
        ok = (is_first || bourse_wait(bourse, request->id, 0, until_more, &change, &row, error)) &&
             bourse_outcomes(bourse, request->id, 0, collect, &list, error);
        is_first = false;
        has_ended = row.state != BOURSE_OPEN || !request->follows;
        for (size_t i = 0; ok && i < list.count; i++) {
            has_ended = has_ended || (one != NULL && list.items[i].index == *one);
            ok = finish_item(request, list.live, &list.items[i], &(struct live_printed){.bytes = 0},
                             error);
        }
        forget_causes(&list);
    }
    ok = live_could_write(list.live, error) && ok;
    live_end(&list.live);
    free(list.seen);
    free(list.items);
    return ok;
}

int command_logs(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    uint32_t index = 0;
    const char *const subtask = tasks_take_word(invocation);
    const bool one = subtask != NULL;
    bool follow = option_given(invocation, "follow");
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, id);
    if (one && !tasks_resolve(invocation, id, tasks, subtask, &index, &status)) {
        return status;
    }
    struct notes notes = {.tasks = tasks};
    struct log_request request = {.invocation = invocation,
                                  .id = id,
                                  .tasks = tasks,
                                  .standard_error = option_given(invocation, "stderr"),
                                  .follows = follow,
                                  .notes = &notes};
    struct bourse_error error;
    if (invocation->json) {
        /* The text of one subtask is in the last value. */
        const bool has_lines = follow || (!one && !invocation->quiet);
        return !has_lines || print_lines_json(&request, one ? &index : NULL, &error) ||
                       error.status == BOURSE_NOT_FOUND /* they are forgotten */
                   ? logs_json(&request, one, index)
                   : complain_with(invocation, &error);
    }
    bool ok = !one      ? print_all(&request, follow, &error)
              : !follow ? print_one(&request, index, &error)
                        : print_followed(&request, index, &error);
    notes_end(&notes);
    return ok || command_reader_is_gone() ? BOURSE_OK : complain_with(invocation, &error);
}
