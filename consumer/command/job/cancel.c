/* This file runs cancel, which ends jobs of this account. */
#include "consumer/command/job/job_words.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

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
                       "job %.8s has ended: %s at %s, %u of %u subtask%s accepted", id,
                       row->state_text, cell_time(row->ended_ms), row->accepted, row->subtasks,
                       text_plural(row->subtasks));
    }
}

static bool cancel_one(struct invocation *invocation, const char *id, struct bourse_error *error)
{
    if (bourse_cancel(invocation->bourse, id, error)) {
        return true;
    }
    if (strcmp(error->name, "STATE") == 0) {
        say_how_ended(invocation, id, error);
    }
    return false;
}

/* Cancels a job that stands alone on the command line. */
static int cancel_alone(struct invocation *invocation, const char *id)
{
    struct bourse_error error;
    if (!cancel_one(invocation, id, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:b}", "job", id, "cancelled", 1), BOURSE_OK);
    }
    (void)puts(invocation->quiet ? id : cell_short_id(id));
    return BOURSE_OK;
}

/* Cancels one job after the other. A refusal is told, and the others are cancelled all the same.
 * Without a broker, the command ends. */
static int cancel_each(struct invocation *invocation, char (*ids)[BOURSE_ID_SIZE], size_t count)
{
    int status = BOURSE_OK;
    json_t *list = invocation->json ? json_array() : NULL;
    for (size_t i = 0; i < count; i++) {
        struct bourse_error error;
        const char *id = ids[i];
        const bool is_cancelled = cancel_one(invocation, id, &error);
        if (!is_cancelled && (error.reject == 0 || list == NULL)) {
            const int failed = complain_with(invocation, &error);
            status = status == BOURSE_OK ? failed : status;
        }
        if (!is_cancelled && error.reject == 0) {
            json_decref(list);
            return status;
        }
        if (list != NULL) {
            json_t *item = json_pack("{s:s, s:b}", "job", id, "cancelled", is_cancelled);
            if (!is_cancelled) {
                (void)json_object_set_new(item, "text", json_string(error.text));
                status = status == BOURSE_OK ? bourse_exit_status(error.status) : status;
            }
            (void)json_array_append_new(list, item);
        } else if (is_cancelled) {
            (void)puts(invocation->quiet ? id : cell_short_id(id));
        }
    }
    return list != NULL ? json_print(json_pack("{s:o}", "jobs", list), status) : status;
}

/* The open jobs of an account may be more than the words of a command line name. */
struct open_jobs {
    char (*ids)[BOURSE_ID_SIZE]; /* owned */
    size_t count;
};

static void open_jobs_fini(struct open_jobs *open)
{
    free(open->ids);
}

/* Fills in every open job of this account. Returns false and the exit status after a message. */
static bool find_open(struct invocation *invocation, struct open_jobs *ret_open, int *ret_status)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_all_jobs(invocation->bourse, BOURSE_JOBS_MOST, &jobs, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    const size_t count = bourse_jobs_count(jobs);
    ret_open->ids = calloc(count + 1, sizeof *ret_open->ids);
    if (ret_open->ids == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, i);
        if (row->state == BOURSE_OPEN) {
            memcpy(ret_open->ids[ret_open->count++], row->id, BOURSE_ID_SIZE);
        }
    }
    if (count == BOURSE_JOBS_MOST && !invocation->quiet) {
        (void)fprintf(stderr, "bourse: --all looks at the newest %d jobs; give older ones by id\n",
                      BOURSE_JOBS_MOST);
    }
    return true;
}

/* Asks before all open jobs are cancelled. Returns false and the exit status when the answer is
 * no. */
static bool agree(struct invocation *invocation, size_t count, int *ret_status)
{
    if (count == 0 || option_given(invocation, "yes")) {
        return true;
    }
    char question[96];
    (void)snprintf(question, sizeof question, "Cancel %zu open job%s?", count, text_plural(count));
    char unasked[160];
    (void)snprintf(unasked, sizeof unasked,
                   "%zu open job%s would be cancelled, and there is no terminal to ask on; say -y "
                   "to agree",
                   count, text_plural(count));
    return command_agrees(invocation, question, unasked, "no job was cancelled", ret_status);
}

static int cancel_all(struct invocation *invocation)
{
    int status = 0;
    CLEANUP(open_jobs_fini) struct open_jobs open = {.count = 0};
    if (!find_open(invocation, &open, &status) || !agree(invocation, open.count, &status)) {
        return status;
    }
    if (open.count == 0 && !invocation->quiet && !invocation->json) {
        (void)fputs("bourse: no job of this account is open\n", stderr);
    }
    return cancel_each(invocation, open.ids, open.count);
}

static int cancel_named(struct invocation *invocation)
{
    int status = 0;
    struct job_ids *ids = calloc(1, sizeof *ids);
    if (ids == NULL) {
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    if (job_words_resolve(invocation, ids, &status)) {
        status = ids->count == 1 && invocation->word_count == 1
                     ? cancel_alone(invocation, ids->items[0])
                     : cancel_each(invocation, ids->items, ids->count);
    }
    free(ids);
    return status;
}

int command_cancel(struct invocation *invocation)
{
    int status = 0;
    const bool all = option_given(invocation, "all");
    if (all == (invocation->word_count > 0)) {
        return complain(invocation, BOURSE_USAGE, "give one JOB or more, or --all");
    }
    if (!command_connect(invocation, &status)) {
        return status;
    }
    return all ? cancel_all(invocation) : cancel_named(invocation);
}
