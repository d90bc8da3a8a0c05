/* tests/programs/market_client.c - a client that remembers; market_judge.c judges what it knows.
 *
 *     market-client act MARKET KEY RECORD SEED STOP [mint] [forget]
 *         Submits, watches, fetches, cancels, asks for quotes (and mints) at random from SEED until
 *         the file STOP exists, and keeps a record (record.h) of all that it asked for and was
 *         told. With `forget` it begins a new record whenever 64 jobs have ended, and can go on for
 *         ever.
 *     market-client check MARKET KEY final|now RECORD...
 *         Holds the market against the records of one account: what was acknowledged is there once
 *         and as it was shown; what was not is wholly there or wholly absent. With `final` every
 *         job has ended, every subtask is decided once, every attempt is charged once, the outputs
 *         are right, and a request that was never acknowledged can be sent again under its id.
 *
 *     market-client anywhere MARKET KEY JOB
 *         Submits the job file without what it needs of a device, and prints its id: for what an
 *         agent makes of work that is not for it.
 *
 *     market-client many MARKET KEY JOB COUNT
 *         Submits the job file COUNT times over one connection.
 *
 * Built on libbourse, and on its inner calls only where an id must be known beforehand. */
#include "tests/programs/market_client.h"

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
    TIMEOUT_MS = 4000, /* short, so that some requests are never acknowledged */
    OPEN_MAX_JOBS = 4,
    FORGET_JOBS = 64,
    JOBS_MAX = 900,        /* of one account: one page of its list */
    INPUT_MAX = 400 << 10, /* bytes */
    TRIES = 20,
};
#define BUDGET_MICRO INT64_C(2000000)
#define SMALL_BUDGET_MICRO INT64_C(1000) /* of each of many jobs */

void wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fputs("market-client: ", stderr);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
    exit(1);
}

struct bourse *connect_to(const char *market, const char *key, int timeout_ms)
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
                   error->reject == REJECT_STORAGE_FULL || error->reject == REJECT_SESSION ||
                   error->reject == REJECT_NO_QUORUM;
    return error->status == BOURSE_UNREACHABLE || error->status == BOURSE_TIMED_OUT || for_now;
}

/* Writes the line that subtask `index` of the job prints. */
static void expected_line(const struct record_job *job, uint32_t index, char *text, size_t capacity)
{
    (void)snprintf(text, capacity, "%s %" PRIu32 "\n", job->name, index);
}

bool mint_as(struct bourse *bourse, const struct record_mint *mint, int64_t amount_micro,
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

void must_agree(const struct record_shown *before, const struct bourse_outcome *now, const char *id)
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

void must_print(struct bourse *bourse, const struct record_job *job, uint32_t index)
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

static void submit_file(struct bourse *bourse, const char *path, bool is_for_any,
                        int64_t budget_micro)
{
    struct bourse_job *job = NULL;
    struct bourse_error error;
    char id[BOURSE_ID_SIZE];
    if (!bourse_job_load(path, &job, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    job->parts[0].needs.count = is_for_any ? 0 : job->parts[0].needs.count;
    if (!bourse_submit(bourse, job, budget_micro, budget_micro, NULL, NULL, id, &error)) {
        wrong("%s: %s", error.name, error.text);
    }
    (void)printf("%s\n", id);
    bourse_job_destroy(&job);
}

static int anywhere(char **words)
{
    struct bourse *bourse = connect_to(words[0], words[1], PATIENCE_MS);
    submit_file(bourse, words[2], true, BUDGET_MICRO);
    bourse_close(&bourse);
    return 0;
}

static int many(char **words)
{
    struct bourse *bourse = connect_to(words[0], words[1], PATIENCE_MS);
    const long count = strtol(words[3], NULL, 10);
    for (long i = 0; i < count; i++) {
        submit_file(bourse, words[2], false, SMALL_BUDGET_MICRO);
    }
    bourse_close(&bourse);
    return 0;
}

int main(int count, char **words)
{
    if (count >= 7 && strcmp(words[1], "act") == 0) {
        return act(words + 2, count - 2);
    }
    if (count >= 6 && strcmp(words[1], "check") == 0) {
        return market_judge(words + 2, count - 2);
    }
    if (count == 5 && strcmp(words[1], "anywhere") == 0) {
        return anywhere(words + 2);
    }
    if (count == 6 && strcmp(words[1], "many") == 0) {
        return many(words + 2);
    }
    (void)fputs("usage: market-client act MARKET KEY RECORD SEED STOP [mint] [forget]\n"
                "       market-client check MARKET KEY final|now RECORD...\n"
                "       market-client anywhere MARKET KEY JOB\n"
                "       market-client many MARKET KEY JOB COUNT\n",
                stderr);
    return 2;
}
