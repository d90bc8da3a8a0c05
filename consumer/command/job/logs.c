/* This file runs logs, which prints what the subtasks of a job wrote or why they failed. */
#include "base/array.h"
#include "base/cleanup.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/stream.h"
#include "consumer/command/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The reason why a subtask failed; "" without one. */
struct cause {
    char text[BOURSE_TEXT_SIZE + 64];
};

struct log_item {
    uint32_t index;
    bool is_accepted;
    struct { /* stream to print; size 0: none */
        uint64_t size;
        char hash[BOURSE_HEX32_SIZE];
    } stream;
    struct cause *cause;
};

struct log_list {
    struct log_item *items;
    size_t count, capacity;
    uint8_t *seen; /* one bit per subtask: printed, or about to be */
    uint32_t subtasks;
    bool standard_error; /* in place of the output */
    bool any;            /* something was printed */
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
                       outcome->detail[0] != '\0' ? ": " : "", cell_plain(outcome->detail));
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
        item->stream.size = has ? output->size : 0;
        memcpy(item->stream.hash, output->hash, sizeof item->stream.hash);
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
        (list->seen[outcome->index / 8] >> outcome->index % 8 & 1) != 0) {
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
    bool headed; /* several subtasks: print a header for each */
};

static bool print_cause(const struct log_request *request, const struct log_item *item)
{
    if (item->cause != NULL && !request->invocation->quiet) {
        (void)fflush(stdout); /* the output comes before the reason of its end */
        (void)fprintf(stderr, "%s: %s\n", cell_subtask(request->tasks, item->index),
                      item->cause->text);
    }
    return true; /* there is nothing that could fail */
}

/* Prints one of several outputs, found by its hash from the list of results. */
static bool print_item(const struct log_request *request, const struct log_item *item,
                       struct bourse_error *error)
{
    const struct stream_item stream = {.job = request->id,
                                       .subtask = cell_subtask(request->tasks, item->index),
                                       .is_standard_error = request->standard_error,
                                       .hash = item->stream.hash,
                                       .size = item->stream.size};
    if (request->headed && !request->invocation->quiet) {
        (void)printf("==> %s <==\n", stream.subtask);
    }
    return stream_item(request->invocation, &stream, error) && print_cause(request, item);
}

static bool keep_one(void *context, const struct bourse_outcome *outcome)
{
    struct log_item *item = context;
    return outcome->index == item->index && take_cause(outcome, &item->cause);
}

/* Prints the output of one subtask and, on stderr, the reason of its failure. */
static bool print_one(const struct log_request *request, uint32_t index, struct bourse_error *error)
{
    struct log_item item = {.index = index};
    bool ok =
        stream_log(request->invocation, request->id, index, request->standard_error, error) &&
        bourse_outcomes(request->invocation->bourse, request->id, index, keep_one, &item, error);
    if (ok) {
        print_cause(request, &item);
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
        ok = print_item(request, &list->items[i], error);
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
    while (ok && follow && row.state == BOURSE_OPEN) {
        ok = bourse_wait(request->invocation->bourse, request->id, 0, until_more, &change, &row,
                         error) &&
             print_new(&all, &list, error);
    }
    if (ok && !list.any && !request->invocation->quiet) {
        (void)fprintf(stderr, "no subtask of job %.8s has a result%s; `bourse ps %.8s` says why\n",
                      row.id, row.state == BOURSE_OPEN ? " yet" : "", row.id);
    }
    free(list.seen);
    free(list.items);
    return ok;
}

static bool print_followed(const struct log_request *request, uint32_t index,
                           struct bourse_error *error)
{
    struct bourse_job_row row = {.state = BOURSE_OPEN};
    struct change change = {.results = UINT32_MAX};
    for (;;) {
        if (print_one(request, index, error)) {
            return true;
        }
        if (error->status != BOURSE_NOT_FOUND || row.state != BOURSE_OPEN ||
            !bourse_wait(request->invocation->bourse, request->id, 0, until_more, &change, &row,
                         error)) {
            return false;
        }
    }
}

static json_t *read_log(struct invocation *invocation, const char *id, uint32_t index,
                        bool standard_error, int *ret_status)
{
    FILE *file = tmpfile();
    json_t *text = NULL;
    struct bourse_error error;
    if (file == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL,
                               "no temporary file can be made for the log: %s", strerror(errno));
    } else if (!bourse_log(invocation->bourse, id, index, standard_error, fileno(file), &error)) {
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
                                   "the log of subtask %u cannot be read back, or does not fit in "
                                   "memory",
                                   index);
        }
    }
    if (file != NULL) {
        (void)fclose(file); /* a temporary file */
    }
    return text;
}

static bool add_outcome(void *context, const struct bourse_outcome *outcome)
{
    return json_array_append_new(context, json_outcome(outcome)) == 0;
}

/* --json gives every outcome, and with an INDEX the text. */
static int logs_json(struct invocation *invocation, const char *id, bool one, uint32_t index,
                     bool standard_error)
{
    struct bourse_error error;
    json_t *list = json_array();
    if (!bourse_outcomes(invocation->bourse, id, 0, add_outcome, list, &error)) {
        json_decref(list);
        return complain_with(invocation, &error);
    }
    json_t *value = json_pack("{s:s, s:o}", "job", id, "outcomes", list);
    if (one) {
        int status;
        json_t *text = read_log(invocation, id, index, standard_error, &status);
        if (text == NULL) {
            json_decref(value);
            return status;
        }
        (void)json_object_set_new(value, standard_error ? "stderr" : "stdout", text);
    }
    return json_print(value, BOURSE_OK);
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
    struct log_request request = {.invocation = invocation,
                                  .id = id,
                                  .tasks = tasks,
                                  .standard_error = option_given(invocation, "stderr")};
    if (invocation->json) {
        return logs_json(invocation, id, one, index, request.standard_error);
    }
    struct bourse_error error;
    bool ok = !one      ? print_all(&request, follow, &error)
              : !follow ? print_one(&request, index, &error)
                        : print_followed(&request, index, &error);
    return ok ? BOURSE_OK : complain_with(invocation, &error);
}
