/* This file runs ps, logs, fetch, judge, cancel and explain, the commands on submitted jobs. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/stream.h"
#include "consumer/command/job/watch.h"
#include "consumer/command/show.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/job/replan.h"
#include "formats/requirement.h"
#include "formats/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- ps */

static void add_job(struct grid *table, const struct bourse_job_row *row)
{
    char done[64];
    (void)snprintf(done, sizeof done, "%u/%u", row->accepted, row->subtasks);
    bool busy = row->state == BOURSE_OPEN && row->running > 0;
    const char *cells[] = {cell_short_id(row->id),
                           row->name,
                           busy                        ? "running"
                           : row->state != BOURSE_OPEN ? row->state_text
                           : row->checking > 0         ? "checking"
                                                       : "waiting",
                           done,
                           cell_count(row->failed),
                           cell_count(row->running - row->queued),
                           cell_money(row->charged_micro),
                           cell_money(row->budget_micro),
                           cell_time(row->submitted_ms),
                           busy || row->state == BOURSE_DONE ? ""
                           : row->accused > 0
                               ? "a referee rejects what is held; see `bourse explain`"
                               : row->reason_text};
    grid_add(table, cells);
}

static void print_jobs(const struct bourse_jobs *jobs, bool color)
{
    static const char *const titles[] = {"JOB",     "NAME", "STATE",  "DONE",      "FAILED",
                                         "RUNNING", "COST", "BUDGET", "SUBMITTED", "WHY"};
    CLEANUP(grid_fini) struct grid table = grid_of(10, titles, "lllrrrrrll");
    for (size_t i = 0; i < bourse_jobs_count(jobs); i++) {
        add_job(&table, bourse_jobs_row(jobs, i));
    }
    grid_print(&table, stdout, color);
}

void jobs_print_leases(FILE *to, const struct bourse_job_row *row, bool also_ended, bool color)
{
    static const char *const titles[] = {"LEASE", "PROVIDER", "DEVICE", "STATE",
                                         "SLOTS", "PRICE",    "DONE",   "COST"};
    CLEANUP(grid_fini) struct grid table = grid_of(8, titles, "rlllrrrr");
    for (size_t i = 0; i < row->lease_count; i++) {
        const struct bourse_lease *lease = &row->leases[i];
        if (!also_ended && strcmp(lease->state, "ended") == 0) {
            continue;
        }
        char device[CELL_SIZE];
        char state[CELL_SIZE];
        (void)snprintf(device, sizeof device, "%s%s", lease->simulated ? "SIM " : "",
                       lease->device);
        (void)snprintf(state, sizeof state, "%s%s", lease->state, lease->taken ? ", taken" : "");
        const char *cells[] = {cell_count(lease->lease),
                               lease->provider,
                               device,
                               state,
                               cell_count(lease->slots),
                               cell_money(lease->price_micro),
                               cell_count(lease->accepted),
                               cell_money(lease->charged_micro)};
        grid_add(&table, cells);
    }
    if (table.rows > 0) {
        (void)fputc('\n', to);
        grid_print(&table, to, color);
    }
}

static void add_tasks(struct invocation *invocation, const struct bourse_job_row *row,
                      json_t *value)
{
    char id[BOURSE_ID_SIZE];
    CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, row->id);
    if (tasks != NULL && tasks_are_named(tasks)) {
        (void)json_object_set_new(value, "tasks", tasks_json(invocation, row, tasks));
    } else {
        uint32_t more = 0;
        (void)json_object_set_new(value, "failures", failures_json(invocation, row, &more));
        (void)json_object_set_new(value, "failures_left_out", json_integer((json_int_t)more));
    }
    if (tasks != NULL && bourse_tasks_continues(tasks, id)) {
        (void)json_object_set_new(value, "continues", json_string(id));
    }
}

/* The drift of an open job comes from a comparison with its plan. */
static int64_t drift_of(struct invocation *invocation, const struct bourse_job_row *row)
{
    int64_t percent = 0;
    return replan_drifts(invocation->bourse, row, &percent) ? percent : 0;
}

static int show_jobs(struct invocation *invocation, const struct bourse_jobs *jobs, bool one)
{
    size_t count = bourse_jobs_count(jobs);
    if (invocation->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++) {
            (void)json_array_append_new(list, json_job(bourse_jobs_row(jobs, i)));
        }
        if (one) {
            const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
            add_tasks(invocation, row, json_array_get(list, 0));
            json_set_drifts(json_array_get(list, 0), drift_of(invocation, row) != 0);
        }
        return json_print(json_pack("{s:o}", "jobs", list), BOURSE_OK);
    }
    if (invocation->quiet) {
        for (size_t i = 0; i < count; i++) {
            (void)puts(bourse_jobs_row(jobs, i)->id);
        }
        return BOURSE_OK;
    }
    print_jobs(jobs, invocation->color);
    if (one) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
        CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, row->id);
        if (tasks != NULL) {
            tasks_print(invocation, row, tasks);
        }
        if (tasks == NULL || !tasks_are_named(tasks)) {
            failures_print(invocation, row);
        }
        jobs_print_leases(stdout, row, true, invocation->color);
        char left[CELL_SIZE];
        progress_time_remaining(row, drift_of(invocation, row), left);
        if (left[0] != '\0') {
            (void)printf("\n%s\n", left);
        }
        if (row->saved > 0) {
            (void)printf("\n%u subtask%s a checkpoint, from which the next attempt goes on\n",
                         row->saved, row->saved == 1 ? " has" : "s have");
        }
    }
    return BOURSE_OK;
}

int command_ps(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    bool one = invocation->word_count > 0;
    if (!command_connect(invocation, &status) ||
        (one && !command_resolve_job(invocation, invocation->words[0], id, &status))) {
        return status;
    }
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_jobs(invocation->bourse, one ? id : NULL, &jobs, &error)) {
        return complain_with(invocation, &error);
    }
    return show_jobs(invocation, jobs, one);
}

/* ---------------------------------------------------------------- logs */

struct log_item {
    uint32_t index;
    bool is_accepted;
    struct { /* stream to print; size 0: none */
        uint64_t size;
        char hash[BOURSE_HEX32_SIZE];
    } stream;
    struct cause {
        char text[BOURSE_TEXT_SIZE + 64]; /* reason of a failure; "" without one */
    } * cause;
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
        *ret_status =
            complain(invocation, BOURSE_LOCAL, "a temporary file for it: %s", strerror(errno));
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
                                   "it cannot be read back, or does not "
                                   "fit in memory");
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

/* ---------------------------------------------------------------- fetch */

static void on_fetched(void *context, const struct bourse_fetched *fetched)
{
    progress_text(context, false, "fetched %llu file%s, %s", (unsigned long long)fetched->files,
                  text_plural(fetched->files), cell_bytes(fetched->bytes));
}

bool jobs_fetch_into(struct invocation *invocation, const char *id, const char *folder,
                     struct bourse_fetched *ret_fetched, struct bourse_error *ret_error)
{
    struct progress progress = progress_start(invocation);
    mode_t before = umask((mode_t)invocation->umask); /* outputs are the user's own files */
    bool ok =
        bourse_fetch(invocation->bourse, id, folder, on_fetched, &progress, ret_fetched, ret_error);
    (void)umask(before);
    progress_end(&progress);
    return ok;
}

/* Adds up the subtasks that left no declared outputs, because they are not accepted, and fills in
 * the job's row. A job that is done lacks none, whatever became of its checks. */
static bool count_missing(struct invocation *invocation, const char *id,
                          const struct bourse_fetched *fetched, struct bourse_job_row *ret_row,
                          uint32_t *ret_missing, struct bourse_error *ret_error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(invocation->bourse, id, &jobs, ret_error)) {
        return false;
    }
    if (bourse_jobs_count(jobs) > 0) {
        *ret_row = *bourse_jobs_row(jobs, 0);
        ret_row->leases = NULL;
        const bool lacks = fetched->declares_outputs && ret_row->state != BOURSE_DONE;
        *ret_missing = lacks ? ret_row->subtasks - ret_row->accepted : 0;
    }
    return true;
}

int command_fetch(struct invocation *invocation)
{
    int status = 0;
    uint32_t missing = 0;
    struct bourse_job_row row;
    char id[BOURSE_ID_SIZE];
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    char named[64];
    (void)snprintf(named, sizeof named, "bourse-%.8s", id);
    const char *folder = option_text(invocation, "output", named);
    struct bourse_fetched fetched;
    struct bourse_error error;
    if (!jobs_fetch_into(invocation, id, folder, &fetched, &error) ||
        !count_missing(invocation, id, &fetched, &row, &missing, &error)) {
        return complain_with(invocation, &error);
    }
    status = missing == 0 ? BOURSE_OK : BOURSE_JOB_FAILED;
    if (invocation->json) {
        return json_print(
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "job", id, "folder", folder,
                      "subtasks", (json_int_t)fetched.subtasks, "simulated",
                      (json_int_t)fetched.simulated, "files", (json_int_t)fetched.files, "written",
                      (json_int_t)fetched.written, "present", (json_int_t)fetched.present, "bytes",
                      (json_int_t)fetched.bytes, "missing", (json_int_t)missing),
            status);
    }
    if (!invocation->quiet && fetched.files == 0) {
        (void)fprintf(stderr,
                      "no files: the %llu accepted subtask%s of job %.8s left none; `bourse logs "
                      "%.8s` prints what they wrote\n",
                      (unsigned long long)fetched.subtasks, text_plural(fetched.subtasks), id, id);
    } else if (!invocation->quiet) {
        (void)fprintf(
            stderr, "%llu file%s of %llu subtask%s in %s (%llu fetched, %llu there already)\n",
            (unsigned long long)fetched.files, text_plural(fetched.files),
            (unsigned long long)fetched.subtasks, text_plural(fetched.subtasks), cell_plain(folder),
            (unsigned long long)fetched.written, (unsigned long long)fetched.present);
    }
    if (!invocation->quiet && fetched.simulated > 0) {
        (void)fprintf(stderr, "SIMULATED: %llu of %llu results are of simulated devices\n",
                      (unsigned long long)fetched.simulated, (unsigned long long)fetched.subtasks);
    }
    if (missing > 0) {
        (void)fprintf(stderr,
                      "%" PRIu32 " of %" PRIu32 " subtasks of job %.8s left no outputs: %" PRIu32
                      " failed, %" PRIu32 " cancelled, %" PRIu32
                      " not done yet; `bourse ps %.8s` shows them\n",
                      missing, row.subtasks, id, row.failed, row.cancelled,
                      missing - row.failed - row.cancelled, id);
    }
    return status;
}

/* ---------------------------------------------------------------- judge */

int command_judge(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    struct bourse_error error;
    struct bourse_judged judged;
    if (!bourse_judge(invocation->bourse, id, &judged, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:I, s:I, s:I, s:I}", "job", id, "accepted",
                                    (json_int_t)judged.accepted, "rejected",
                                    (json_int_t)judged.rejected, "unsure",
                                    (json_int_t)judged.unsure, "left", (json_int_t)judged.left),
                          BOURSE_OK);
    }
    if (!invocation->quiet) {
        (void)printf("%u accepted, %u rejected, %u unsure; %u left to another referee\n",
                     judged.accepted, judged.rejected, judged.unsure, judged.left);
    }
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- cancel, explain */

/* A job that cannot be cancelled has ended, and its owner wants to know how. */
static void say_how_ended(struct invocation *invocation, const char *id, struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(invocation->bourse, id, &jobs, NULL)) {
        return;
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    if (row->state != BOURSE_OPEN) {
        (void)snprintf(error->text, sizeof error->text,
                       "job %.8s has ended: it is %s since %s, %u of %u subtask%s accepted", id,
                       row->state_text, cell_time(row->ended_ms), row->accepted, row->subtasks,
                       text_plural(row->subtasks));
    }
}

int command_cancel(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    struct bourse_error error;
    if (!bourse_cancel(invocation->bourse, id, &error)) {
        if (strcmp(error.name, "STATE") == 0) {
            say_how_ended(invocation, id, &error);
        }
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:b}", "job", id, "cancelled", 1), BOURSE_OK);
    }
    (void)puts(invocation->quiet ? id : cell_short_id(id));
    return BOURSE_OK;
}

static const char *best_text(const struct bourse_predicate *predicate)
{
    static char text[UNITS_TEXT_SIZE];
    char name[ATTRIBUTE_NAME_SIZE];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(predicate->text, " "), predicate->text);
    requirement_figure(name, predicate->best, text);
    return text;
}

static void print_changes(FILE *to, const struct bourse_explanation *explanation)
{
    for (uint32_t i = 0; i < explanation->change_count; i++) {
        (void)fprintf(to, "  %-14s%s\n", i == 0 ? "it fills now" : "  and",
                      cell_plain(explanation->changes[i].text));
    }
    if (explanation->change_count > 0) {
        (void)fprintf(to, "                at %s credits per slot-hour\n",
                      cell_money(explanation->changed_price_micro));
    }
    if (explanation->changed_needs[0] != '\0') {
        (void)fprintf(to, "  needs         %s\n", explanation->changed_needs);
    }
}

void jobs_print_explanation(FILE *to, const struct bourse_explanation *explanation)
{
    char text[BOURSE_TEXT_SIZE];
    bourse_printable(explanation->text, text, sizeof text);
    (void)fprintf(to, "%s\n", text);
    (void)fprintf(
        to,
        "  %u device%s on the market, %u fit, %u of those on offer, %u within the limit, %u free\n",
        explanation->devices, text_plural(explanation->devices), explanation->fitting,
        explanation->asking, explanation->affordable, explanation->free);
    for (uint32_t i = 0; i < explanation->predicate_count; i++) {
        const struct bourse_predicate *predicate = &explanation->predicates[i];
        if (predicate->failing == 0) {
            continue;
        }
        (void)fprintf(to, "  %u fail on %s", predicate->failing, cell_plain(predicate->text));
        if (predicate->has_best) {
            (void)fprintf(to, " (best on the market: %s)", best_text(predicate));
        }
        (void)fputc('\n', to);
    }
    if (explanation->ahead >= 0) {
        (void)fprintf(to, "  %s%lld waiting bid%s before it\n",
                      explanation->ahead_partial ? "at least " : "", (long long)explanation->ahead,
                      explanation->ahead == 1 ? " comes" : "s come");
    }
    if (explanation->has_fills_at && explanation->starts_at_micro < 0 &&
        explanation->change_count == 0) {
        bool is_by_value = explanation->rate != NULL && explanation->rate[0] != '\0';
        (void)fprintf(to, "  it would be filled now with a %s of %s%s\n",
                      is_by_value ? "value" : "limit",
                      cell_limit(explanation->fills_at_micro, explanation->rate),
                      is_by_value ? "" : " credits per slot-hour");
    }
    print_changes(to, explanation);
}

static int explain_file(struct invocation *invocation, const char *path)
{
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct bourse_error error;
    struct bourse_quote quote;
    if (!bourse_job_load(path, &job, &error) ||
        !bourse_quote(invocation->bourse, job, &quote, &error)) {
        return complain_with(invocation, &error);
    }
    bool fits = quote.explanation.starts_at_micro >= 0;
    int status = fits ? BOURSE_OK : BOURSE_NO_MATCH;
    if (invocation->json) {
        return json_print(quote.has_explanation
                              ? json_explanation(&quote.explanation)
                              : json_pack("{s:s}", "text", fits ? "it would start now" : ""),
                          status);
    }
    if (quote.has_explanation) {
        jobs_print_explanation(stdout, &quote.explanation);
    } else {
        (void)printf("%s\n", fits ? "it would start now" : "nothing on the market fits now");
    }
    return status;
}

/* The word names no standing order and no job of this account, which may be no consumer. */
static int explain_nothing(struct invocation *invocation, const char *word,
                           struct bourse_error *error)
{
    if (strcmp(error->name, "ROLE") == 0) {
        error->status = BOURSE_NOT_FOUND;
        (void)snprintf(error->name, sizeof error->name, "NOT_FOUND");
        (void)snprintf(
            error->text, sizeof error->text,
            "order: no order of this account that stands begins with %.40s; it has ended, "
            "or never was: `bourse order list` has those that stand",
            word);
    }
    return complain_with(invocation, error);
}

/* Explains how an ended job ended, and what its owner can do. */
static int explain_end(struct invocation *invocation, const char *id)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_jobs(invocation->bourse, id, &jobs, &error)) {
        return complain_with(invocation, &error);
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    const bool is_done = row->state == BOURSE_DONE;
    char text[BOURSE_TEXT_SIZE];
    const bool has_reason = row->state == BOURSE_FAILED && row->reason_text[0] != '\0';
    (void)snprintf(text, sizeof text, "the job has ended: %s%s%s; %u of %u subtask%s accepted",
                   row->state_text, has_reason ? ", " : "", has_reason ? row->reason_text : "",
                   row->accepted, row->subtasks, text_plural(row->subtasks));
    if (invocation->json) {
        json_t *value = json_pack("{s:s, s:s, s:s, s:s}", "job", id, "state", row->state_text,
                                  "reason", row->reason_text, "text", text);
        return json_print(value, BOURSE_OK);
    }
    (void)printf("%s\n", text);
    if (row->accepted > 0) {
        (void)printf("  `bourse fetch %.8s` brings what was accepted\n", id);
    }
    if (!is_done) {
        (void)printf("  `bourse ps %.8s` says of each subtask why it is not; `bourse resume %.8s` "
                     "runs what is left\n",
                     id, id);
    }
    return BOURSE_OK;
}

/* Prints the command that fills the job, when only its bid must change. */
static void print_replace(struct invocation *invocation, FILE *to, const char *id,
                          const struct bourse_explanation *explanation)
{
    struct bourse_balance balance = {.available_micro = 0};
    struct bourse_error error; /* the command is printed without a balance too */
    int64_t more_micro = 0;
    char options[2 * CELL_SIZE] = "";
    size_t used = 0;
    const bool is_by_value = explanation->rate != NULL && explanation->rate[0] != '\0';
    if (explanation->has_fills_at && explanation->starts_at_micro < 0 &&
        explanation->change_count == 0 && !is_by_value) {
        used = (size_t)snprintf(options, sizeof options, " --cap %s",
                                cell_money(explanation->fills_at_micro));
    }
    for (uint32_t i = 0; i < explanation->change_count; i++) {
        const struct bourse_change *change = &explanation->changes[i];
        const bool is_money =
            strcmp(change->field, "budget") == 0 || strcmp(change->field, "cap") == 0;
        if (!is_money || !change->has_figures || is_by_value || used >= CELL_SIZE) {
            return;
        }
        used += (size_t)snprintf(options + used, sizeof options - used, " --%s %s", change->field,
                                 cell_money(change->to));
        more_micro = strcmp(change->field, "budget") == 0 ? change->to - change->from : more_micro;
    }
    const bool is_short = more_micro > 0 && bourse_balance(invocation->bourse, &balance, &error) &&
                          balance.available_micro < more_micro;
    if (used > 0 && is_short) {
        (void)fprintf(to,
                      "  `bourse order replace %.8s%s` does that, once the account has %s credits "
                      "more: it has %s\n",
                      id, options, cell_money(more_micro - balance.available_micro),
                      cell_money(balance.available_micro));
    } else if (used > 0) {
        (void)fprintf(to, "  `bourse order replace %.8s%s` does that\n", id, options);
    }
}

int command_explain(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    const char *word = invocation->words[0];
    bool is_file = strchr(word, '/') != NULL || strchr(word, '.') != NULL;
    if (!command_connect(invocation, &status)) {
        return status;
    }
    if (is_file && explain_subtask(invocation, word, &status)) {
        return status;
    }
    if (is_file) {
        return explain_file(invocation, word);
    }
    struct bourse_explanation explanation;
    struct bourse_error error;
    const bool is_job = bourse_find_job(invocation->bourse, word, id, &error);
    const bool is_sure = is_job && strlen(word) < BOURSE_ID_SIZE - 1; /* a full id: unchecked */
    if (!is_sure && explain_order(invocation, word, &status)) {
        return status;
    }
    if (!is_job || !bourse_explain(invocation->bourse, id, &explanation, &error)) {
        return explain_nothing(invocation, word, &error);
    }
    bool is_open = strcmp(explanation.state, "open") == 0;
    CLEANUP(bourse_tasks_destroy)
    struct bourse_tasks *tasks = is_open ? tasks_load(invocation, id) : NULL;
    if (is_open && (explanation.parts > 1 || tasks != NULL)) {
        return tasks_explain_parts(invocation, id, tasks, &explanation);
    }
    if (!is_open) {
        return explain_end(invocation, id);
    }
    if (invocation->json) {
        json_t *value = json_explanation(&explanation);
        (void)json_object_set_new(value, "job", json_string(id));
        return json_print(value, BOURSE_OK);
    }
    jobs_print_explanation(stdout, &explanation);
    print_replace(invocation, stdout, id, &explanation);
    return BOURSE_OK;
}
