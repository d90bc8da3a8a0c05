/* tests/programs/market_client.c - a client that remembers, and the judge of what it remembers.
 *
 *     market-client act MARKET KEY RECORD SEED STOP [mint] [forget]
 *         Submits, watches, fetches, cancels, asks for quotes (and mints) at random from SEED until
 *         the file STOP exists, and keeps a record (record.h) of all that it asked for and was told.
 *         With `forget` it begins a new record whenever 64 jobs have ended, and can go on for ever.
 *     market-client check MARKET KEY final|now RECORD...
 *         Holds the market against the records of one account: what was acknowledged is there once
 *         and as it was shown; what was not is wholly there or wholly absent. With `final` every
 *         job has ended, every subtask is decided once, every attempt is charged once, the outputs
 *         are right, and a request that was never acknowledged can be sent again under its id.
 *
 *     market-client anywhere MARKET KEY JOB
 *         Submits the job file without what it needs of a device, and prints its id: for what an agent makes of work
 *         that is not for it.
 *
 * Built on libbourse, and on its inner calls only where an id must be known beforehand. */
#include "tests/programs/record.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/job/bourse_job.h"
#include "protocol/codec.h"
#include "runtime/entropy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 4000,   /* short, so that some requests are never acknowledged */
    PATIENCE_MS = 60000, /* of the judge */
    OPEN_MAX_JOBS = 4,
    FORGET_JOBS = 64,
    JOBS_MAX = 900,        /* of one account: one page of its list */
    INPUT_MAX = 400 << 10, /* bytes */
    SUBTASKS_MAX = 5,
    TRIES = 20,
    REASON_CANCELLED = 9, /* docs/protocol.md section 6 */
};
#define BUDGET_MICRO INT64_C(2000000)

__attribute__((format(printf, 1, 2), noreturn)) static void wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fputs("market-client: ", stderr);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
    exit(1);
}

static struct bourse *connect_to(const char *market, const char *key, int timeout_ms)
{
    struct bourse *bourse = NULL;
    struct bourse_error error;
    const struct bourse_options options = {
        .market = market, .key = key, .program = "market-client 1", .timeout_ms = timeout_ms};
    if (!bourse_open(&options, &bourse, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    return bourse;
}

/* Returns true when a call that failed may have been heard by a broker that was killed. */
static bool is_silence(const struct bourse_error *error)
{
    bool for_now = error->reject == REJECT_UNAVAILABLE || error->reject == REJECT_BUSY ||
                   error->reject == REJECT_STORAGE_FULL || error->reject == REJECT_SESSION;
    return error->status == BOURSE_UNREACHABLE || error->status == BOURSE_TIMED_OUT || for_now;
}

/* Writes the line that subtask `index` of the job prints. */
static void expected_line(const struct record_job *job, uint32_t index, char *text, size_t capacity)
{
    (void)snprintf(text, capacity, "%s %" PRIu32 "\n", job->name, index);
}

static bool mint_as(struct bourse *bourse, const struct record_mint *mint, int64_t amount_micro,
                    struct bourse_error *error)
{
    struct id128 id;
    struct key32 key = *identity_key(bourse->identity);
    if (!client_id_read(mint->id, &id, error)) {
        return false;
    }
    Bourse__V1__Mint body = BOURSE__V1__MINT__INIT;
    body.account = client_bytes(key.bytes, sizeof key.bytes);
    body.amount_micro = amount_micro;
    return client_call_as(bourse, &id, MESSAGE_MINT, &body.base, 0, NULL, error);
}

/* ---------------------------------------------------------------- acting */

struct actor {
    struct bourse *bourse;
    struct record record;
    struct random random;
    uint64_t seed;
    char folder[256]; /* for inputs */
    uint64_t made;    /* jobs and mints, for unique names and amounts */
    bool mints, forgets;
};

static size_t open_jobs(const struct record *record)
{
    size_t count = 0;
    for (size_t i = 0; i < record->job_count; i++) {
        count += record->jobs[i].accepted && !record->jobs[i].ended;
    }
    return count;
}

/* An accepted job at random; with `open`, one whose end was not seen yet. False: none. */
static bool pick_job(struct actor *actor, bool open, size_t *ret_job)
{
    const struct record *record = &actor->record;
    if (record->job_count == 0) {
        return false;
    }
    size_t start = random_below(&actor->random, record->job_count);
    for (size_t i = 0; i < record->job_count; i++) {
        size_t job = (start + i) % record->job_count;
        if (record->jobs[job].accepted && !(open && record->jobs[job].ended)) {
            *ret_job = job;
            return true;
        }
    }
    return false;
}

static void write_input(struct actor *actor, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        wrong("%s cannot be written", path);
    }
    for (size_t left = 8 + random_below(&actor->random, INPUT_MAX / 8); left > 0; left--) {
        uint64_t bits = random_u64(&actor->random);
        (void)fwrite(&bits, sizeof bits, 1, file);
    }
    if (fclose(file) != 0) {
        wrong("%s cannot be written", path);
    }
}

static struct bourse_job *make_job(struct actor *actor, struct record_job *ret_row)
{
    char text[512];
    char input[400];
    struct bourse_job *job = NULL;
    struct bourse_error error;
    bool with_input = random_below(&actor->random, 2) == 0;
    uint32_t subtasks = 1 + (uint32_t)random_below(&actor->random, SUBTASKS_MAX);
    *ret_row = (struct record_job){.subtasks = subtasks, .budget_micro = BUDGET_MICRO};
    (void)snprintf(ret_row->name, sizeof ret_row->name, "s%" PRIu64 "-%" PRIu64, actor->seed,
                   actor->made++);
    (void)snprintf(input, sizeof input, "%s/%s", actor->folder, ret_row->name);
    if (with_input) {
        write_input(actor, input);
    }
    (void)snprintf(text, sizeof text,
                   "name: %s\nrun: [sh, -c, \"sleep 0.%02u; echo %s {index}\"]\narray: 0-%" PRIu32
                   "\nlimit: 60s\nat_most: 2\nretries: 50\nerror_limit: 1000\n%s%s\n",
                   ret_row->name, (unsigned)random_below(&actor->random, 20), ret_row->name,
                   subtasks - 1, with_input ? "files: " : "", with_input ? ret_row->name : "");
    if (!bourse_job_parse(text, strlen(text), actor->folder, &job, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    text_hex(job->id.bytes, sizeof job->id.bytes, ret_row->id);
    return job;
}

static void submit(struct actor *actor)
{
    struct record_job row;
    struct bourse_error error = {.status = BOURSE_OK};
    char id[BOURSE_ID_SIZE];
    if (open_jobs(&actor->record) >= OPEN_MAX_JOBS ||
        actor->record.job_count >= (actor->forgets ? FORGET_JOBS : JOBS_MAX)) {
        return;
    }
    struct bourse_job *job = make_job(actor, &row);
    size_t tries = random_below(&actor->random, 4) == 0 ? 1 : TRIES;
    bool accepted = false;
    record_asked_job(&actor->record, &row);
    for (size_t i = 0; i < tries && !accepted && (i == 0 || is_silence(&error)); i++) {
        accepted = bourse_submit(actor->bourse, job, row.budget_micro, BUDGET_MICRO, NULL, NULL, id,
                                 &error);
    }
    if (accepted && strcmp(id, row.id) != 0) {
        wrong("submitted as %s, accepted as %s", row.id, id);
    }
    if (accepted) {
        record_accepted_job(&actor->record, actor->record.job_count - 1);
    } else if (!is_silence(&error)) {
        wrong("a job was refused: %s: %s", error.name, error.text);
    }
    char input[400];
    (void)snprintf(input, sizeof input, "%s/%s", actor->folder, row.name);
    (void)unlink(input); /* may never have been there */
    bourse_job_destroy(&job);
}

static void mint(struct actor *actor)
{
    struct record_mint row = {.amount_micro = (int64_t)(1 + actor->seed * 1000000 + actor->made++)};
    struct bourse_error error;
    struct id128 id = entropy_id();
    text_hex(id.bytes, sizeof id.bytes, row.id);
    record_asked_mint(&actor->record, &row);
    if (mint_as(actor->bourse, &row, row.amount_micro, &error)) {
        record_accepted_mint(&actor->record, actor->record.mint_count - 1);
    } else if (!is_silence(&error)) {
        wrong("a mint was refused: %s: %s", error.name, error.text);
    }
}

static void cancel(struct actor *actor)
{
    size_t job;
    struct bourse_error error;
    if (!pick_job(actor, true, &job)) {
        return;
    }
    record_asked_cancel(&actor->record, job);
    if (bourse_cancel(actor->bourse, actor->record.jobs[job].id, &error)) {
        record_accepted_cancel(&actor->record, job);
    } else if (!is_silence(&error) && error.reject != REJECT_STATE) {
        wrong("a cancel was refused: %s: %s", error.name, error.text);
    }
}

struct looking {
    struct record *record;
    size_t job;
};

static void must_agree(const struct record_shown *before, const struct bourse_outcome *now,
                       const char *id)
{
    if (before->status != now->status || before->charge_micro != now->charge_micro ||
        before->log_index != now->log_index || strcmp(before->provider, now->provider) != 0) {
        wrong("attempt %" PRIu32 " of %s:%" PRIu32 " was shown as status %d for %" PRId64
              " at %" PRIu64 ", is now status %d for %" PRId64 " at %" PRIu64,
              now->attempt, id, now->index, before->status, before->charge_micro, before->log_index,
              now->status, now->charge_micro, now->log_index);
    }
}

static bool see_outcome(void *context, const struct bourse_outcome *outcome)
{
    struct looking *looking = context;
    const struct record_shown *before =
        record_find_shown(looking->record, looking->job, outcome->index, outcome->attempt);
    if (before != NULL) {
        must_agree(before, outcome, looking->record->jobs[looking->job].id);
        return true;
    }
    struct record_shown shown = {.job = looking->job,
                                 .index = outcome->index,
                                 .attempt = outcome->attempt,
                                 .status = outcome->status,
                                 .charge_micro = outcome->charge_micro,
                                 .log_index = outcome->log_index};
    (void)snprintf(shown.provider, sizeof shown.provider, "%s", outcome->provider);
    record_shown(looking->record, &shown);
    return true;
}

/* Waits a little for a job, and takes down what is shown of it. */
static void look(struct actor *actor)
{
    struct looking looking = {.record = &actor->record};
    struct bourse_job_row row;
    struct bourse_error error;
    if (!pick_job(actor, true, &looking.job)) {
        return;
    }
    const char *id = actor->record.jobs[looking.job].id;
    bool waited = bourse_wait(actor->bourse, id, 1 + (int64_t)random_below(&actor->random, 300),
                              NULL, NULL, &row, &error);
    bool has_ended = waited && row.state != BOURSE_OPEN;
    if (has_ended) {
        record_ended(&actor->record, looking.job, &row);
    }
    bool seen = waited || is_silence(&error);
    if (!seen || (!bourse_outcomes(actor->bourse, id, 0, see_outcome, &looking, &error) &&
                  !is_silence(&error))) {
        wrong("%s: %s: %s", id, error.name, error.text);
    }
}

static void read_back(int fd, char *text, size_t capacity)
{
    ssize_t length = pread(fd, text, capacity - 1, 0);
    text[length > 0 ? length : 0] = '\0';
}

/* The output of a subtask that was shown as accepted. */
static void must_print(struct bourse *bourse, const struct record_job *job, uint32_t index)
{
    char expected[128];
    char text[128];
    struct bourse_error error;
    FILE *file = tmpfile();
    if (file == NULL) {
        wrong("no temporary file");
    }
    bool got = bourse_log(bourse, job->id, index, false, fileno(file), &error);
    read_back(fileno(file), text, sizeof text);
    (void)fclose(file); /* already removed */
    expected_line(job, index, expected, sizeof expected);
    if (got && strcmp(text, expected) != 0) {
        wrong("%s:%" PRIu32 " printed '%s'", job->id, index, text);
    }
    if (!got && !is_silence(&error)) {
        wrong("the output of %s:%" PRIu32 ": %s: %s", job->id, index, error.name, error.text);
    }
}

static void fetch(struct actor *actor)
{
    if (actor->record.shown_count == 0) {
        return;
    }
    const struct record_shown *shown =
        &actor->record.shown[random_below(&actor->random, actor->record.shown_count)];
    if (shown->status == 0) {
        must_print(actor->bourse, &actor->record.jobs[shown->job], shown->index);
    }
}

static void quote(struct actor *actor)
{
    static const char text[] = "run: [\"true\"]\n";
    struct bourse_job *job = NULL;
    struct bourse_quote offer;
    struct bourse_error error;
    if (!bourse_job_parse(text, strlen(text), ".", &job, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    if (!bourse_quote(actor->bourse, job, &offer, &error) && !is_silence(&error)) {
        wrong("a quote was refused: %s: %s", error.name, error.text);
    }
    bourse_job_destroy(&job);
}

static bool has_word(char **words, int count, const char *word)
{
    for (int i = 5; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static int act(char **words, int count)
{
    struct actor actor = {.seed = strtoull(words[3], NULL, 10),
                          .mints = has_word(words, count, "mint"),
                          .forgets = has_word(words, count, "forget")};
    actor.random = random_seeded(actor.seed);
    record_open(&actor.record, words[2], true);
    (void)snprintf(actor.folder, sizeof actor.folder, "%s.files", words[2]);
    (void)mkdir(actor.folder, 0700); /* may be there from before */
    actor.bourse = connect_to(words[0], words[1], TIMEOUT_MS);
    while (access(words[4], F_OK) != 0) {
        if (actor.forgets && actor.record.job_count >= FORGET_JOBS &&
            open_jobs(&actor.record) == 0) {
            record_forget(&actor.record);
        }
        uint64_t roll = random_below(&actor.random, 100);
        if (roll < 20) {
            submit(&actor);
        } else if (roll < 40) {
            actor.mints ? mint(&actor) : quote(&actor);
        } else if (roll < 45) {
            cancel(&actor);
        } else if (roll < 60) {
            fetch(&actor);
        } else if (roll < 65) {
            quote(&actor);
        } else {
            look(&actor);
        }
    }
    bourse_close(&actor.bourse);
    record_fini(&actor.record);
    return 0;
}

/* ---------------------------------------------------------------- judging */

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
    if (!bourse_outcomes(judge->bourse, job->id, 0, judge_outcome, judge, &error)) {
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

static int check(char **words, int count)
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
    jobs = judge.jobs, absent = judge.absent, mints = judge.mints, there = judge.minted;
    results = judge.results;
    (void)printf("{\"jobs\":%zu,\"absent\":%zu,\"results\":%zu,\"mints\":%zu,\"minted\":%zu}\n",
                 jobs, absent, results, mints, there);
    bourse_close(&judge.bourse);
    return 0;
}

static int anywhere(char **words)
{
    struct bourse *bourse = connect_to(words[0], words[1], PATIENCE_MS);
    struct bourse_job *job = NULL;
    struct bourse_error error;
    char id[BOURSE_ID_SIZE];
    if (!bourse_job_load(words[2], &job, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    job->parts[0].needs.count = 0;
    if (!bourse_submit(bourse, job, BUDGET_MICRO, BUDGET_MICRO, NULL, NULL, id, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    (void)printf("%s\n", id);
    bourse_job_destroy(&job);
    bourse_close(&bourse);
    return 0;
}

int main(int count, char **words)
{
    if (count >= 7 && strcmp(words[1], "act") == 0) {
        return act(words + 2, count - 2);
    }
    if (count >= 6 && strcmp(words[1], "check") == 0) {
        return check(words + 2, count - 2);
    }
    if (count == 5 && strcmp(words[1], "anywhere") == 0) {
        return anywhere(words + 2);
    }
    (void)fputs("usage: market-client act MARKET KEY RECORD SEED STOP [mint] [forget]\n"
                "       market-client check MARKET KEY final|now RECORD...\n"
                "       market-client anywhere MARKET KEY JOB\n",
                stderr);
    return 2;
}
