#include "tests/programs/record.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 256, WORDS_MAX = 8 };

__attribute__((format(printf, 1, 2), noreturn)) static void stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fputs("record: ", stderr);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
    exit(3);
}

/* Returns the items with one more behind them, which is zeros. */
static void *grown(void *items, size_t count, size_t *capacity, size_t size)
{
    items = array_with_room(items, count, capacity, size);
    if (items == NULL) {
        stop("out of memory");
    }
    memset((char *)items + count * size, 0, size);
    return items;
}

static struct record_job *job_add(struct record *self)
{
    self->jobs = grown(self->jobs, self->job_count, &self->job_capacity, sizeof *self->jobs);
    return &self->jobs[self->job_count++];
}

static struct record_mint *mint_add(struct record *self)
{
    self->mints = grown(self->mints, self->mint_count, &self->mint_capacity, sizeof *self->mints);
    return &self->mints[self->mint_count++];
}

static struct record_shown *shown_add(struct record *self)
{
    self->shown = grown(self->shown, self->shown_count, &self->shown_capacity, sizeof *self->shown);
    return &self->shown[self->shown_count++];
}

/* ---------------------------------------------------------------- reading */

static struct record_job *job_of(struct record *self, const char *id)
{
    for (size_t i = self->job_count; i > 0; i--) {
        if (strcmp(self->jobs[i - 1].id, id) == 0) {
            return &self->jobs[i - 1];
        }
    }
    stop("%s was never asked for", id);
}

static struct record_mint *mint_of(struct record *self, const char *id)
{
    for (size_t i = self->mint_count; i > 0; i--) {
        if (strcmp(self->mints[i - 1].id, id) == 0) {
            return &self->mints[i - 1];
        }
    }
    stop("%s was never asked for", id);
}

static int64_t number(const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text) {
        stop("%s is no number", text);
    }
    return value;
}

static void copy(char *to, size_t capacity, const char *text)
{
    if (snprintf(to, capacity, "%s", text) >= (int)capacity) {
        stop("%s is too long", text);
    }
}

static void read_asked(struct record *self, char *const *words, size_t count)
{
    if (strcmp(words[1], "job") == 0 && count == 6) {
        struct record_job *job = job_add(self);
        copy(job->id, sizeof job->id, words[2]);
        job->subtasks = (uint32_t)number(words[3]);
        job->budget_micro = number(words[4]);
        copy(job->name, sizeof job->name, words[5]);
    } else if (strcmp(words[1], "mint") == 0 && count == 4) {
        struct record_mint *mint = mint_add(self);
        copy(mint->id, sizeof mint->id, words[2]);
        mint->amount_micro = number(words[3]);
    } else if (strcmp(words[1], "cancel") == 0 && count == 3) {
        job_of(self, words[2])->cancel_asked = true;
    } else {
        stop("asked %s?", words[1]);
    }
}

static void read_accepted(struct record *self, char *const *words, size_t count)
{
    if (count != 3) {
        stop("accepted, with %zu words", count);
    }
    if (strcmp(words[1], "job") == 0) {
        job_of(self, words[2])->accepted = true;
    } else if (strcmp(words[1], "mint") == 0) {
        mint_of(self, words[2])->accepted = true;
    } else {
        job_of(self, words[2])->cancelled = true;
    }
}

static void read_shown(struct record *self, char *const *words)
{
    size_t job = (size_t)(job_of(self, words[1]) - self->jobs);
    struct record_shown *shown = shown_add(self);
    shown->job = job;
    shown->index = (uint32_t)number(words[2]);
    shown->attempt = (uint32_t)number(words[3]);
    shown->status = (int)number(words[4]);
    shown->charge_micro = number(words[5]);
    shown->log_index = (uint64_t)number(words[6]);
    copy(shown->provider, sizeof shown->provider, words[7]);
}

static void read_ended(struct record *self, char *const *words)
{
    struct record_job *job = job_of(self, words[1]);
    job->ended = true;
    job->state = (int)number(words[2]);
    job->subtasks_accepted = (uint32_t)number(words[3]);
    job->subtasks_failed = (uint32_t)number(words[4]);
    job->subtasks_cancelled = (uint32_t)number(words[5]);
    job->charged_micro = number(words[6]);
}

static void read_line(struct record *self, char *line)
{
    char *words[WORDS_MAX];
    char *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(line, " ", &rest); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        words[count++] = word;
    }
    if (count > 2 && strcmp(words[0], "asked") == 0) {
        read_asked(self, words, count);
    } else if (count > 2 && strcmp(words[0], "accepted") == 0) {
        read_accepted(self, words, count);
    } else if (count == 8 && strcmp(words[0], "shown") == 0) {
        read_shown(self, words);
    } else if (count == 7 && strcmp(words[0], "ended") == 0) {
        read_ended(self, words);
    } else {
        stop("a line of %zu words makes no sense", count);
    }
}

void record_open(struct record *self, const char *path, bool append)
{
    *self = (struct record){.fd = -1};
    FILE *file = fopen(path, append ? "a+" : "r");
    if (file == NULL) {
        stop("%s: %s", path, strerror(errno));
    }
    rewind(file);
    char line[LINE_SIZE];
    off_t whole = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        size_t length = strlen(line);
        if (line[length - 1] != '\n') {
            break;
        }
        whole += (off_t)length;
        line[length - 1] = '\0';
        read_line(self, line);
    }
    if (append) {
        self->fd = dup(fileno(file));
        if (self->fd < 0 || ftruncate(self->fd, whole) != 0) {
            stop("%s: %s", path, strerror(errno));
        }
    }
    (void)fclose(file); /* only read through */
}

void record_fini(struct record *self)
{
    if (self->fd >= 0) {
        (void)close(self->fd); /* every line was synced */
    }
    free(self->jobs);
    free(self->mints);
    free(self->shown);
}

void record_forget(struct record *self)
{
    if (ftruncate(self->fd, 0) != 0) {
        stop("cannot be emptied: %s", strerror(errno));
    }
    self->job_count = self->mint_count = self->shown_count = 0;
}

/* ---------------------------------------------------------------- writing */

__attribute__((format(printf, 2, 3))) static void put(struct record *self, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (length <= 0 || (size_t)length >= sizeof line ||
        write(self->fd, line, (size_t)length) != length || fdatasync(self->fd) != 0) {
        stop("cannot be written: %s", strerror(errno));
    }
}

void record_asked_job(struct record *self, const struct record_job *job)
{
    put(self, "asked job %s %" PRIu32 " %" PRId64 " %s\n", job->id, job->subtasks,
        job->budget_micro, job->name);
    *job_add(self) = *job;
}

void record_asked_mint(struct record *self, const struct record_mint *mint)
{
    put(self, "asked mint %s %" PRId64 "\n", mint->id, mint->amount_micro);
    *mint_add(self) = *mint;
}

void record_accepted_job(struct record *self, size_t job)
{
    put(self, "accepted job %s\n", self->jobs[job].id);
    self->jobs[job].accepted = true;
}

void record_accepted_mint(struct record *self, size_t mint)
{
    put(self, "accepted mint %s\n", self->mints[mint].id);
    self->mints[mint].accepted = true;
}

void record_asked_cancel(struct record *self, size_t job)
{
    put(self, "asked cancel %s\n", self->jobs[job].id);
    self->jobs[job].cancel_asked = true;
}

void record_accepted_cancel(struct record *self, size_t job)
{
    put(self, "accepted cancel %s\n", self->jobs[job].id);
    self->jobs[job].cancelled = true;
}

void record_shown(struct record *self, const struct record_shown *shown)
{
    put(self, "shown %s %" PRIu32 " %" PRIu32 " %d %" PRId64 " %" PRIu64 " %s\n",
        self->jobs[shown->job].id, shown->index, shown->attempt, shown->status, shown->charge_micro,
        shown->log_index, shown->provider);
    *shown_add(self) = *shown;
}

void record_ended(struct record *self, size_t job, const struct bourse_job_row *row)
{
    put(self, "ended %s %d %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRId64 "\n", row->id,
        (int)row->state, row->accepted, row->failed, row->cancelled, row->charged_micro);
    struct record_job *ended = &self->jobs[job];
    ended->ended = true;
    ended->state = (int)row->state;
    ended->subtasks_accepted = row->accepted;
    ended->subtasks_failed = row->failed;
    ended->subtasks_cancelled = row->cancelled;
    ended->charged_micro = row->charged_micro;
}

const struct record_shown *record_find_shown(const struct record *self, size_t job, uint32_t index,
                                             uint32_t attempt)
{
    for (size_t i = self->shown_count; i > 0; i--) {
        const struct record_shown *shown = &self->shown[i - 1];
        if (shown->job == job && shown->index == index && shown->attempt == attempt) {
            return shown;
        }
    }
    return NULL;
}
