/* This file runs `storage`, which shows what the account stores on the broker, and `forget`, which
 * frees the files of ended jobs. */
#include "consumer/command/job/job_words.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "runtime/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_SHOWN = 20, ROWS_MOST = 1 << 30 };

/* ---------------------------------------------------------------- what is stored */

struct stored {
    struct bourse_stored_job *jobs;
    size_t count, capacity;
    bool failed; /* memory is short */
};

static bool keep(void *context, const struct bourse_stored_job *job)
{
    struct stored *stored = context;
    struct bourse_stored_job *jobs =
        array_with_room(stored->jobs, stored->count, &stored->capacity, sizeof *jobs);
    stored->failed = jobs == NULL;
    if (jobs != NULL) {
        stored->jobs = jobs;
        jobs[stored->count++] = *job;
    }
    return jobs != NULL;
}

static void stored_fini(struct stored *stored)
{
    free(stored->jobs);
}

/* Reads all jobs. On failure it prints a message, sets *ret_status and returns false. */
static bool read_stored(struct invocation *invocation, struct stored *stored,
                        struct bourse_storage *ret_storage, int *ret_status)
{
    struct bourse_error error;
    const bool good = bourse_storage(invocation->bourse, keep, stored, ret_storage, &error);
    if (!good || stored->failed) {
        *ret_status = good ? complain(invocation, BOURSE_LOCAL, "out of memory")
                           : complain_with(invocation, &error);
    }
    return good && !stored->failed;
}

/* Orders jobs by size, the largest first. */
static int by_bytes(const void *one, const void *other)
{
    const struct bourse_stored_job *a = one;
    const struct bourse_stored_job *b = other;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

static json_t *json_stored(const struct bourse_stored_job *job)
{
    json_t *item = json_pack("{s:s, s:s, s:I, s:I}", "job", job->id, "name", job->name, "blobs",
                             (json_int_t)job->blobs, "bytes", (json_int_t)job->bytes);
    if (job->ended_ms > 0) {
        (void)json_object_set_new(item, "ended_ms", json_integer(job->ended_ms));
    }
    if (job->expires_ms > 0) {
        (void)json_object_set_new(item, "expires_ms", json_integer(job->expires_ms));
    }
    return item;
}

static void print_stored(const struct invocation *invocation, const struct stored *stored,
                         const struct bourse_storage *storage, size_t most)
{
    static const char *const titles[] = {"JOB", "NAME", "FILES", "SIZE", "ENDED", "EXPIRES"};
    const size_t shown = stored->count < most ? stored->count : most;
    (void)printf("stored     %s of %s\n", cell_bytes(storage->used_bytes),
                 cell_bytes(storage->quota_bytes));
    if (stored->count == 0) {
        return;
    }
    struct grid table = grid_of(6, titles, "llrrll");
    for (size_t i = 0; i < shown; i++) {
        const struct bourse_stored_job *job = &stored->jobs[i];
        const char *cells[] = {cell_short_id(job->id),
                               job->name,
                               cell_count(job->blobs),
                               cell_bytes(job->bytes),
                               job->ended_ms > 0 ? cell_time(job->ended_ms) : "open",
                               job->expires_ms > 0 ? cell_time(job->expires_ms) : "-"};
        grid_add(&table, cells);
    }
    (void)puts("");
    grid_print(&table, stdout, invocation->color);
    grid_fini(&table);
    if (shown < stored->count) {
        (void)fprintf(stderr, "%zu more jobs, smaller ones; `bourse storage -n %zu` shows all\n",
                      stored->count - shown, stored->count);
    }
}

int command_storage(struct invocation *invocation)
{
    int status = 0;
    int64_t most = ROWS_SHOWN;
    struct bourse_storage storage;
    CLEANUP(stored_fini) struct stored stored = {.count = 0};
    if (!option_count(invocation, "limit", 1, ROWS_MOST, &most)) {
        return BOURSE_USAGE;
    }
    if (!command_connect(invocation, &status) ||
        !read_stored(invocation, &stored, &storage, &status)) {
        return status;
    }
    if (stored.count > 0) {
        qsort(stored.jobs, stored.count, sizeof *stored.jobs, by_bytes);
    }
    if (invocation->json) {
        json_t *jobs = json_array();
        for (size_t i = 0; i < stored.count; i++) {
            (void)json_array_append_new(jobs, json_stored(&stored.jobs[i]));
        }
        return json_print(json_pack("{s:I, s:I, s:I, s:o}", "used_bytes",
                                    (json_int_t)storage.used_bytes, "quota_bytes",
                                    (json_int_t)storage.quota_bytes, "grace_ms",
                                    (json_int_t)storage.grace_ms, "jobs", jobs),
                          BOURSE_OK);
    }
    if (invocation->quiet) {
        (void)printf("%" PRIu64 "\n", storage.used_bytes);
        return BOURSE_OK;
    }
    print_stored(invocation, &stored, &storage, (size_t)most);
    state_say_behind(invocation);
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- forgetting */

struct forgetting {
    struct invocation *invocation;
    bool is_dry;
    json_t *list; /* NULL: lines for people */
    struct bourse_storage storage;
    uint64_t jobs, blobs, bytes; /* forgotten by this command */
    int status;
};

static const char *outcome_text(int outcome, bool is_dry)
{
    switch (outcome) {
    case BOURSE_FORGOTTEN_NOW:
        return is_dry ? "would be forgotten" : "forgotten";
    case BOURSE_FORGOTTEN_BEFORE:
        return "forgotten before";
    case BOURSE_FORGET_OPEN:
        return "open";
    default:
        return "unknown";
    }
}

static void tell(struct forgetting *forgetting, const struct bourse_forgotten *job)
{
    const bool is_now = job->outcome == BOURSE_FORGOTTEN_NOW;
    forgetting->jobs += is_now;
    forgetting->blobs += job->blobs;
    forgetting->bytes += job->bytes;
    if (forgetting->list != NULL) {
        (void)json_array_append_new(
            forgetting->list, json_pack("{s:s, s:s, s:I, s:I}", "job", job->id, "outcome",
                                        outcome_text(job->outcome, forgetting->is_dry), "blobs",
                                        (json_int_t)job->blobs, "bytes", (json_int_t)job->bytes));
    } else if (is_now && forgetting->invocation->quiet) {
        (void)puts(job->id);
    } else if (is_now) {
        (void)printf("%s  %s  %" PRIu64 " file%s\n", cell_short_id(job->id), cell_bytes(job->bytes),
                     job->blobs, text_plural(job->blobs));
    }
    if (job->outcome == BOURSE_FORGET_OPEN) {
        forgetting->status = BOURSE_REFUSED;
        (void)fprintf(stderr,
                      "bourse: job %s is open, and needs its files: `bourse cancel %s` ends it\n",
                      cell_short_id(job->id), cell_short_id(job->id));
    } else if (job->outcome == BOURSE_FORGOTTEN_BEFORE && !forgetting->invocation->quiet) {
        (void)fprintf(stderr, "bourse: the files of job %s are forgotten already\n",
                      cell_short_id(job->id));
    } else if (job->outcome == BOURSE_FORGET_UNKNOWN) {
        forgetting->status = BOURSE_NOT_FOUND;
        (void)fprintf(stderr, "bourse: the broker knows no job %s of this account\n",
                      cell_short_id(job->id));
    }
}

/* Forgets the jobs, BOURSE_FORGET_MAX with each request. On failure it prints a message, sets
 * *ret_status and returns false. */
static bool forget_all(struct forgetting *forgetting, const struct job_ids *ids, int *ret_status)
{
    for (size_t from = 0; from < ids->count; from += BOURSE_FORGET_MAX) {
        struct bourse_forgotten forgotten[BOURSE_FORGET_MAX];
        const char *some[BOURSE_FORGET_MAX];
        struct bourse_error error;
        size_t count = 0;
        for (; count < BOURSE_FORGET_MAX && from + count < ids->count; count++) {
            some[count] = ids->items[from + count];
        }
        if (!bourse_forget(forgetting->invocation->bourse, some, count, forgetting->is_dry,
                           forgotten, &forgetting->storage, &error)) {
            *ret_status = complain_with(forgetting->invocation, &error);
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            tell(forgetting, &forgotten[i]);
        }
    }
    return true;
}

static int forget_ids(struct invocation *invocation, const struct job_ids *ids)
{
    int status = BOURSE_OK;
    struct forgetting forgetting = {.invocation = invocation,
                                    .is_dry = option_given(invocation, "dry-run"),
                                    .list = invocation->json ? json_array() : NULL};
    if (!forget_all(&forgetting, ids, &status)) {
        json_decref(forgetting.list);
        return status;
    }
    if (forgetting.list != NULL) {
        return json_print(json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:I}", "jobs", forgetting.list,
                                    "dry_run", forgetting.is_dry, "freed_blobs",
                                    (json_int_t)forgetting.blobs, "freed_bytes",
                                    (json_int_t)forgetting.bytes, "used_bytes",
                                    (json_int_t)forgetting.storage.used_bytes, "quota_bytes",
                                    (json_int_t)forgetting.storage.quota_bytes, "grace_ms",
                                    (json_int_t)forgetting.storage.grace_ms),
                          forgetting.status);
    }
    if (!invocation->quiet && ids->count > 0) {
        (void)printf("%s %s in %" PRIu64 " file%s of %" PRIu64 " job%s",
                     forgetting.is_dry ? "would free" : "freed", cell_bytes(forgetting.bytes),
                     forgetting.blobs, text_plural(forgetting.blobs), forgetting.jobs,
                     text_plural(forgetting.jobs));
        (void)printf("; stored %s of %s\n", cell_bytes(forgetting.storage.used_bytes),
                     cell_bytes(forgetting.storage.quota_bytes));
    }
    return forgetting.status;
}

/* Finds the ended jobs that still have files and are old enough, the largest first. On failure it
 * prints a message, sets *ret_status and returns false. */
static bool find_ended(struct invocation *invocation, struct job_ids *ret_ids, uint64_t *ret_bytes,
                       int *ret_status)
{
    int64_t older_ms = 0;
    struct bourse_storage storage;
    CLEANUP(stored_fini) struct stored stored = {.count = 0};
    if (!option_duration_ms(invocation, "older", &older_ms)) {
        *ret_status = BOURSE_USAGE;
        return false;
    }
    if (!command_connect(invocation, ret_status) ||
        !read_stored(invocation, &stored, &storage, ret_status)) {
        return false;
    }
    const int64_t until_ms = clock_wall_ns() / INT64_C(1000000) - older_ms;
    if (stored.count > 0) {
        qsort(stored.jobs, stored.count, sizeof *stored.jobs, by_bytes);
    }
    for (size_t i = 0; i < stored.count; i++) {
        const struct bourse_stored_job *job = &stored.jobs[i];
        if (job->ended_ms == 0 || job->ended_ms > until_ms) {
            continue;
        }
        if (!job_ids_add(ret_ids, job->id)) {
            (void)fprintf(stderr,
                          "bourse: these are the %d largest jobs; run the command again for the "
                          "others\n",
                          JOB_WORDS_MAX);
            break;
        }
        *ret_bytes += job->bytes;
    }
    return true;
}

/* Asks before the files of all ended jobs are freed. Sets *ret_status and returns false when the
 * answer is no. */
static bool agree(struct invocation *invocation, size_t count, uint64_t bytes, int *ret_status)
{
    if (count == 0 || option_given(invocation, "yes") || option_given(invocation, "dry-run")) {
        return true;
    }
    char question[128];
    (void)snprintf(question, sizeof question, "Forget the files of %zu ended job%s, up to %s?",
                   count, text_plural(count), cell_bytes(bytes));
    char unasked[200];
    (void)snprintf(unasked, sizeof unasked,
                   "the files of %zu ended job%s would be forgotten, and there is no terminal to "
                   "ask on; say -y to agree, or --dry-run to look",
                   count, text_plural(count));
    return command_agrees(invocation, question, unasked, "nothing was forgotten", ret_status);
}

static int forget_ended(struct invocation *invocation, struct job_ids *ids)
{
    int status = 0;
    uint64_t bytes = 0;
    if (!find_ended(invocation, ids, &bytes, &status) ||
        !agree(invocation, ids->count, bytes, &status)) {
        return status;
    }
    if (ids->count == 0 && !invocation->quiet && !invocation->json) {
        (void)fputs(option_given(invocation, "older")
                        ? "bourse: no job of this account that ended so long ago has files left\n"
                        : "bourse: no ended job of this account has files left\n",
                    stderr);
    }
    return forget_ids(invocation, ids);
}

int command_forget(struct invocation *invocation)
{
    int status = 0;
    const bool ended = option_given(invocation, "ended");
    if (ended == (invocation->word_count > 0)) {
        return complain(invocation, BOURSE_USAGE,
                        ended                               ? "give jobs or --ended, not both"
                        : option_given(invocation, "older") ? "--older goes with --ended"
                                                            : "give one JOB or more, or --ended");
    }
    if (!ended && option_given(invocation, "older")) {
        return complain(invocation, BOURSE_USAGE, "--older goes with --ended, and not with a JOB");
    }
    struct job_ids *ids = calloc(1, sizeof *ids);
    if (ids == NULL) {
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    if (ended) {
        status = forget_ended(invocation, ids);
    } else if (command_connect(invocation, &status) &&
               job_words_resolve(invocation, ids, &status)) {
        status = forget_ids(invocation, ids);
    }
    free(ids);
    return status;
}
