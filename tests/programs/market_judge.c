/* market_judge holds the market against what market_client.c took down: what was acknowledged is
 * there once and as it was shown, and what was not is wholly there or wholly absent. */
#include "base/array.h"
#include "consumer/client/client.h"
#include "protocol/reject.h"
#include "tests/programs/market_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASON_CANCELLED = 9 /* docs/protocol.md section 6 */ };

struct judge {
    struct bourse *bourse;
    struct record record;
    struct bourse_jobs *rows;
    bool final;
    struct looking looking;
    size_t outcomes_seen;
    int64_t charged_micro;
    unsigned *decided;                           /* by subtask: how many attempts were accepted */
    size_t jobs, absent, mints, minted, results; /* for the last line */
};

static const struct bourse_job_row *row_of(const struct judge *judge, const char *id)
{
    const struct bourse_job_row *found = NULL;
    for (size_t i = 0; i < bourse_jobs_count(judge->rows); i++) {
        const struct bourse_job_row *row = bourse_jobs_row(judge->rows, i);
        if (strcmp(row->id, id) == 0) {
            if (found != NULL) {
                wrong("%s is there twice", id);
            }
            found = row;
        }
    }
    return found;
}

static bool judge_outcome(void *context, const struct bourse_outcome *outcome)
{
    struct judge *judge = context;
    const struct record_job *job = &judge->record.jobs[judge->looking.job];
    const struct record_shown *before =
        record_find_shown(&judge->record, judge->looking.job, outcome->index, outcome->attempt);
    if (outcome->index >= job->subtasks) {
        wrong("%s has a subtask %" PRIu32, job->id, outcome->index);
    }
    if (before != NULL) {
        must_agree(before, outcome, job->id);
        judge->outcomes_seen++;
    }
    judge->charged_micro += outcome->charge_micro;
    judge->decided[outcome->index] += outcome->status == 0 ? 1 : 0;
    if (outcome->status >= 2 && outcome->charge_micro != 0) {
        wrong("%s:%" PRIu32 " attempt %" PRIu32 " is %s, and was charged", job->id, outcome->index,
              outcome->attempt, outcome->status_text);
    }
    return true;
}

/* The results of one job against what was shown of it. */
static void judge_results(struct judge *judge, size_t index, const struct bourse_job_row *row)
{
    const struct record_job *job = &judge->record.jobs[index];
    struct bourse_error error;
    size_t shown = 0;
    unsigned decided[SUBTASKS_MAX] = {0};
    judge->looking.job = index;
    judge->outcomes_seen = 0;
    judge->charged_micro = 0;
    judge->decided = decided;
    for (size_t i = 0; i < judge->record.shown_count; i++) {
        shown += judge->record.shown[i].job == index;
    }
    /* An attempt that was paid and had to be made again, as one whose term ended, is among the
     * others. */
    if (!bourse_outcomes(judge->bourse, job->id, 0, judge_outcome, judge, &error) ||
        !client_other_outcomes(judge->bourse, job->id, judge_outcome, judge, &error)) {
        wrong("%s: %s: %s", job->id, error.name, error.text);
    }
    if (judge->outcomes_seen != shown) {
        wrong("%zu results of %s were shown, %zu of them are there once", shown, job->id,
              judge->outcomes_seen);
    }
    judge->results += shown;
    if (!judge->final) {
        return;
    }
    if (judge->charged_micro != row->charged_micro) {
        wrong("%s was charged %" PRId64 ", its attempts %" PRId64, job->id, row->charged_micro,
              judge->charged_micro);
    }
    for (uint32_t i = 0; i < job->subtasks; i++) {
        if (decided[i] > 1 || (row->state == BOURSE_DONE && decided[i] != 1)) {
            wrong("%s:%" PRIu32 " was decided %u times", job->id, i, decided[i]);
        }
        if (decided[i] == 1) {
            must_print(judge->bourse, job, i);
        }
    }
}

static void judge_end(const struct judge *judge, const struct record_job *job,
                      const struct bourse_job_row *row)
{
    if (job->ended &&
        ((int)row->state != job->state || row->accepted != job->subtasks_accepted ||
         row->failed != job->subtasks_failed || row->cancelled != job->subtasks_cancelled ||
         row->charged_micro != job->charged_micro)) {
        wrong("%s ended as %d (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ") for %" PRId64
              ", is now %d (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ") for %" PRId64,
              job->id, job->state, job->subtasks_accepted, job->subtasks_failed,
              job->subtasks_cancelled, job->charged_micro, (int)row->state, row->accepted,
              row->failed, row->cancelled, row->charged_micro);
    }
    /* A running subtask is answered for: until then the job is open, and says why it ends. */
    bool is_ending = !judge->final && row->state == BOURSE_OPEN && row->reason == REASON_CANCELLED;
    if (job->cancelled && row->state != BOURSE_WAS_CANCELLED && !is_ending) {
        wrong("the cancel of %s was acknowledged, and it is %s", job->id, row->state_text);
    }
    if (judge->final && row->state == BOURSE_WAS_CANCELLED && !job->cancel_asked) {
        wrong("nobody cancelled %s", job->id);
    }
    if (judge->final && (row->state == BOURSE_OPEN || row->state == BOURSE_FAILED ||
                         row->accepted + row->failed + row->cancelled != row->subtasks)) {
        wrong("%s is %s (%s) with %" PRIu32 " accepted, %" PRIu32 " failed, %" PRIu32
              " cancelled of %" PRIu32,
              job->id, row->state_text, row->reason_text, row->accepted, row->failed,
              row->cancelled, row->subtasks);
    }
}

static void judge_job(struct judge *judge, size_t index)
{
    const struct record_job *job = &judge->record.jobs[index];
    const struct bourse_job_row *row = row_of(judge, job->id);
    judge->jobs++;
    if (row == NULL) {
        struct bourse_jobs *none = NULL;
        struct bourse_error error;
        if (job->accepted) {
            wrong("%s was acknowledged, and is gone", job->id);
        }
        bool known = bourse_jobs(judge->bourse, job->id, &none, &error);
        bourse_jobs_destroy(&none);
        if (known ? judge->final : error.status != BOURSE_NOT_FOUND) {
            wrong("%s is not in the list of jobs, but by id: %s", job->id,
                  known ? "there" : error.text);
        }
        judge->absent++;
        return;
    }
    if (row->subtasks != job->subtasks || row->budget_micro != job->budget_micro ||
        strcmp(row->name, job->name) != 0) {
        wrong("%s is there by half: %" PRIu32 " subtasks, budget %" PRId64 ", name %s", job->id,
              row->subtasks, row->budget_micro, row->name);
    }
    judge_end(judge, job, row);
    judge_results(judge, index, row);
}

struct counting {
    int64_t amount_micro;
    size_t count;
};

static bool count_amount(void *context, const struct bourse_entry *entry)
{
    struct counting *counting = context;
    counting->count +=
        strcmp(entry->kind_text, "transfer") == 0 && entry->amount_micro == counting->amount_micro;
    return true;
}

/* All amounts of the account's mints, sorted. */
struct amounts {
    int64_t *items;
    size_t count, capacity;
};

static bool collect_amount(void *context, const struct bourse_entry *entry)
{
    struct amounts *amounts = context;
    if (strcmp(entry->kind_text, "transfer") != 0) {
        return true;
    }
    amounts->items =
        array_with_room(amounts->items, amounts->count, &amounts->capacity, sizeof *amounts->items);
    if (amounts->items == NULL) {
        wrong("out of memory");
    }
    amounts->items[amounts->count++] = entry->amount_micro;
    return true;
}

static size_t minted(struct bourse *bourse, int64_t amount_micro)
{
    struct counting counting = {.amount_micro = amount_micro};
    struct bourse_error error;
    if (!bourse_statement(bourse, 0, count_amount, &counting, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    return counting.count;
}

/* The same request under the same id: done once, whether it was known or not; and another request
 * under that id is refused. */
static void judge_again(struct judge *judge, const struct record_mint *mint)
{
    struct bourse_error error;
    if (!mint_as(judge->bourse, mint, mint->amount_micro, &error)) {
        wrong("mint %s, sent again: %s: %s", mint->id, error.name, error.text);
    }
    if (mint_as(judge->bourse, mint, mint->amount_micro + 1, &error) ||
        error.reject != REJECT_ID_REUSED) {
        wrong("mint %s with another amount was not refused as ID_REUSED", mint->id);
    }
    if (minted(judge->bourse, mint->amount_micro) != 1) {
        wrong("mint %s, sent again, is not there once", mint->id);
    }
}

static void judge_mints(struct judge *judge)
{
    enum { AGAIN_MAX = 8 };
    struct amounts amounts = {.items = NULL};
    struct bourse_error error;
    size_t again = 0;
    if (!bourse_statement(judge->bourse, 0, collect_amount, &amounts, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    for (size_t i = 0; i < judge->record.mint_count; i++) {
        const struct record_mint *mint = &judge->record.mints[i];
        size_t count = 0;
        for (size_t k = 0; k < amounts.count; k++) {
            count += amounts.items[k] == mint->amount_micro;
        }
        if (count > 1 || (mint->accepted && count != 1)) {
            wrong("mint %s of %" PRId64 " (%s) is there %zu times", mint->id, mint->amount_micro,
                  mint->accepted ? "acknowledged" : "not acknowledged", count);
        }
        judge->mints++;
        judge->minted += count;
        bool last_ones = i + 2 >= judge->record.mint_count;
        if (judge->final && (!mint->accepted || last_ones) && again++ < AGAIN_MAX) {
            judge_again(judge, mint);
        }
    }
    free(amounts.items);
}

/* Awaits the end of jobs that were acknowledged before the last sitting and are still open. */
static void await_all(struct judge *judge)
{
    for (size_t i = 0; i < judge->record.job_count; i++) {
        struct bourse_job_row row;
        struct bourse_error error;
        if (!bourse_wait(judge->bourse, judge->record.jobs[i].id, PATIENCE_MS, NULL, NULL, &row,
                         &error) &&
            error.status != BOURSE_NOT_FOUND) {
            wrong("%s does not end: %s: %s", judge->record.jobs[i].id, error.name, error.text);
        }
    }
}

/* The log's newest tree head is signed, and the log never gets shorter. */
static void judge_log(struct judge *judge)
{
    uint64_t sizes[2];
    for (size_t i = 0; i < 2; i++) {
        struct bourse_error error;
        char *text = NULL;
        if (!bourse_checkpoint(judge->bourse, &text, &sizes[i], &error)) {
            wrong("checkpoint: %s: %s", error.name, error.text);
        }
        if (strchr(text, '\n') == NULL) {
            wrong("checkpoint: no signed note: %s", text);
        }
        bourse_free(text);
    }
    if (sizes[0] == 0 || sizes[1] < sizes[0]) {
        wrong("the log had %" PRIu64 " leaves and then %" PRIu64, sizes[0], sizes[1]);
    }
}

int market_judge(char **words, int count)
{
    struct judge judge = {.final = strcmp(words[2], "final") == 0};
    size_t jobs = 0, absent = 0, mints = 0, there = 0, results = 0;
    judge.bourse = connect_to(words[0], words[1], PATIENCE_MS);
    for (int i = 3; i < count; i++) {
        struct bourse_error error;
        record_open(&judge.record, words[i], false);
        if (judge.final) {
            await_all(&judge);
        }
        /* The record was read before: whatever it says, the market knows by now. */
        if (!bourse_jobs(judge.bourse, NULL, &judge.rows, &error)) {
            wrong("%s: %s", error.name, error.text);
        }
        for (size_t k = 0; k < judge.record.job_count; k++) {
            judge_job(&judge, k);
        }
        judge_mints(&judge);
        bourse_jobs_destroy(&judge.rows);
        record_fini(&judge.record);
    }
    judge_log(&judge);
    jobs = judge.jobs, absent = judge.absent, mints = judge.mints, there = judge.minted;
    results = judge.results;
    (void)printf("{\"jobs\":%zu,\"absent\":%zu,\"results\":%zu,\"mints\":%zu,\"minted\":%zu}\n",
                 jobs, absent, results, mints, there);
    bourse_close(&judge.bourse);
    return 0;
}
