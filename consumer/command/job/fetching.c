/* This file runs fetch, which downloads the outputs of a job or of some of its subtasks. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/notes.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* This struct has the subtasks that the command line names. */
struct chosen {
    uint32_t *items; /* indices, rising; owned */
    size_t count;    /* 0: all subtasks */
};

static void chosen_fini(struct chosen *chosen)
{
    free(chosen->items);
}

static void on_fetched(void *context, const struct bourse_fetched *fetched)
{
    progress_text(context, false, "fetched %llu file%s, %s", (unsigned long long)fetched->files,
                  text_plural(fetched->files), cell_bytes(fetched->bytes));
}

static bool fetch_into(struct invocation *invocation, const char *id, const struct chosen *chosen,
                       const char *folder, struct bourse_fetched *ret_fetched,
                       struct bourse_error *ret_error)
{
    struct progress progress = progress_start(invocation);
    mode_t before = umask((mode_t)invocation->umask); /* outputs are the user's own files */
    bool ok = chosen->count == 0
                  ? bourse_fetch(invocation->bourse, id, folder, on_fetched, &progress, ret_fetched,
                                 ret_error)
                  : bourse_fetch_some(invocation->bourse, id, chosen->items, chosen->count, folder,
                                      on_fetched, &progress, ret_fetched, ret_error);
    (void)umask(before);
    progress_end(&progress);
    return ok;
}

bool fetching_all(struct invocation *invocation, const char *id, const char *folder,
                  struct bourse_fetched *ret_fetched, struct bourse_error *ret_error)
{
    const struct chosen all = {.count = 0};
    return fetch_into(invocation, id, &all, folder, ret_fetched, ret_error);
}

/* ---------------------------------------------------------------- which subtasks */

static int by_number(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a;
    const uint32_t right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Cuts a word JOB/SUBTASK at its slash and returns the subtask, or NULL without one. A word after
 * the first may be a subtask alone. */
static const char *take_subtask(char *word, bool is_first)
{
    char *stroke = strchr(word, '/');
    if (stroke == NULL) {
        return is_first ? NULL : word;
    }
    *stroke = '\0';
    return stroke + 1;
}

/* A word after the first may repeat the job, but cannot name another one. */
static bool is_same_job(struct invocation *invocation, const char *word, const char *id,
                        int *ret_status)
{
    char other[BOURSE_ID_SIZE];
    if (!command_resolve_job(invocation, word, other, ret_status)) {
        return false;
    }
    if (strcmp(other, id) != 0) {
        *ret_status = complain(invocation, BOURSE_USAGE,
                               "fetch takes subtasks of one job, and '%.40s' is another job than "
                               "%.8s; fetch its subtasks by another command",
                               word, id);
        return false;
    }
    return true;
}

/* Reads the words of the command line. Returns false and the exit status after a message. */
static bool choose(struct invocation *invocation, char ret_id[BOURSE_ID_SIZE],
                   struct chosen *ret_chosen, int *ret_status)
{
    CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = NULL;
    *ret_chosen =
        (struct chosen){.items = calloc((size_t)invocation->word_count, sizeof *ret_chosen->items)};
    if (ret_chosen->items == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    for (int i = 0; i < invocation->word_count; i++) {
        char *word = invocation->words[i];
        const char *subtask = take_subtask(word, i == 0);
        if (i == 0 && !command_resolve_job(invocation, word, ret_id, ret_status)) {
            return false;
        }
        if (i > 0 && subtask != word && !is_same_job(invocation, word, ret_id, ret_status)) {
            return false;
        }
        if (subtask == NULL) {
            continue;
        }
        tasks = tasks == NULL ? tasks_load(invocation, ret_id) : tasks;
        if (!tasks_resolve(invocation, ret_id, tasks, subtask,
                           &ret_chosen->items[ret_chosen->count], ret_status)) {
            return false;
        }
        ret_chosen->count++;
    }
    qsort(ret_chosen->items, ret_chosen->count, sizeof *ret_chosen->items, by_number);
    size_t kept = 0;
    for (size_t i = 0; i < ret_chosen->count; i++) {
        if (i == 0 || ret_chosen->items[i] != ret_chosen->items[i - 1]) {
            ret_chosen->items[kept++] = ret_chosen->items[i];
        }
    }
    ret_chosen->count = kept;
    return true;
}

/* ---------------------------------------------------------------- the command */

/* Adds up the subtasks that left no outputs, because they are not accepted, and fills in the job's
 * row. A job that is done lacks none, whatever became of its checks. A subtask that the user names
 * is missed even where the job declares no outputs. */
static bool count_missing(struct invocation *invocation, const char *id,
                          const struct chosen *chosen, const struct bourse_fetched *fetched,
                          struct bourse_job_row *ret_row, uint32_t *ret_missing,
                          struct bourse_error *ret_error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(invocation->bourse, id, &jobs, ret_error)) {
        return false;
    }
    if (bourse_jobs_count(jobs) > 0) {
        *ret_row = *bourse_jobs_row(jobs, 0);
        ret_row->leases = NULL;
        const bool lacks =
            (fetched->declares_outputs || chosen->count > 0) && ret_row->state != BOURSE_DONE;
        const uint32_t asked = chosen->count > 0 ? (uint32_t)chosen->count : ret_row->subtasks;
        const uint32_t has = chosen->count > 0 ? (uint32_t)fetched->subtasks : ret_row->accepted;
        *ret_missing = lacks ? asked - has : 0;
    }
    return true;
}

static void say_missing(struct invocation *invocation, const char *id, const struct chosen *chosen,
                        const struct bourse_job_row *row, uint32_t missing)
{
    if (chosen->count == 1) {
        CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, id);
        (void)fprintf(stderr, "nothing to fetch: %s of job %.8s is not accepted; ",
                      cell_subtask(tasks, chosen->items[0]), id);
        (void)fprintf(stderr, "`bourse explain %.8s/%s` says why\n", id,
                      cell_word(tasks, chosen->items[0]));
        return;
    }
    if (chosen->count > 0) {
        (void)fprintf(stderr,
                      "%" PRIu32
                      " of the %zu subtask%s of job %.8s that you named left no outputs, "
                      "because they are not accepted; `bourse explain %.8s/INDEX` says why\n",
                      missing, chosen->count, text_plural(chosen->count), id, id);
        return;
    }
    (void)fprintf(stderr,
                  "%" PRIu32 " of %" PRIu32 " subtasks of job %.8s left no outputs: %" PRIu32
                  " failed, %" PRIu32 " cancelled, %" PRIu32
                  " not done yet; `bourse ps %.8s` shows them\n",
                  missing, row->subtasks, id, row->failed, row->cancelled,
                  missing - row->failed - row->cancelled, id);
}

static void say_fetched(const struct bourse_fetched *fetched, const char *id, const char *folder)
{
    if (fetched->files == 0 && fetched->subtasks == 0) {
        (void)fprintf(stderr, "no files: no subtask of job %.8s is accepted\n", id);
    } else if (fetched->files == 0) {
        (void)fprintf(stderr,
                      "no files: the %llu accepted subtask%s of job %.8s left none; `bourse logs "
                      "%.8s` prints what they wrote\n",
                      (unsigned long long)fetched->subtasks, text_plural(fetched->subtasks), id,
                      id);
    } else {
        (void)fprintf(stderr,
                      "%llu file%s of %llu subtask%s in %s (%llu fetched, %llu there already)\n",
                      (unsigned long long)fetched->files, text_plural(fetched->files),
                      (unsigned long long)fetched->subtasks, text_plural(fetched->subtasks),
                      cell_plain(folder), (unsigned long long)fetched->written,
                      (unsigned long long)fetched->present);
    }
    if (fetched->simulated > 0) {
        (void)fprintf(stderr, "SIMULATED: %llu of %llu results are of simulated devices\n",
                      (unsigned long long)fetched->simulated,
                      (unsigned long long)fetched->subtasks);
    }
}

int command_fetch(struct invocation *invocation)
{
    int status = 0;
    uint32_t missing = 0;
    struct bourse_job_row row;
    char id[BOURSE_ID_SIZE];
    CLEANUP(chosen_fini) struct chosen chosen = {.count = 0};
    if (!command_connect(invocation, &status) || !choose(invocation, id, &chosen, &status)) {
        return status;
    }
    char named[64];
    (void)snprintf(named, sizeof named, "bourse-%.8s", id);
    const char *folder = option_text(invocation, "output", named);
    struct bourse_fetched fetched;
    struct bourse_error error;
    if (!fetch_into(invocation, id, &chosen, folder, &fetched, &error) ||
        !count_missing(invocation, id, &chosen, &fetched, &row, &missing, &error)) {
        return complain_about_job(invocation, id, &error);
    }
    status = missing == 0 ? BOURSE_OK : BOURSE_JOB_FAILED;
    if (invocation->json) {
        return json_print(
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "job", id, "folder",
                      folder, "subtasks", (json_int_t)fetched.subtasks, "simulated",
                      (json_int_t)fetched.simulated, "files", (json_int_t)fetched.files, "written",
                      (json_int_t)fetched.written, "present", (json_int_t)fetched.present, "bytes",
                      (json_int_t)fetched.bytes, "missing", (json_int_t)missing, "left_out",
                      (json_int_t)fetched.left_out),
            status);
    }
    const bool is_empty = fetched.files == 0 && fetched.subtasks == 0;
    if (!invocation->quiet && !(is_empty && missing > 0 && chosen.count > 0)) {
        say_fetched(&fetched, id, folder);
    }
    if (fetched.left_out > 0) {
        CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, id);
        notes_say_left_out(tasks, &fetched);
    }
    if (missing > 0) {
        say_missing(invocation, id, &chosen, &row, missing);
    }
    return status;
}
