/* This file runs shell, a terminal in a jail on a leased device. The job ends with the program, at
 * its limit, or when the user leaves; then the market gives back what was not used. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/offer.h"
#include "consumer/command/job/watch.h"
#include "consumer/command/shell/local_terminal.h"
#include "consumer/command/shell/shell_away.h"
#include "consumer/command/shell/shell_escape.h"
#include "consumer/command/shell/shell_job.h"
#include "consumer/command/show.h"
#include "consumer/job/job_build.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "protocol/limits.h"
#include "runtime/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    INPUT_BYTES = 4096,
    ROUND_MS = 1000,
    END_WAIT_MS = 10000, /* until the job's end is known, after the terminal's */
};
/* A silent provider may come back within this time. */
#define LOST_NS (15 * NS_PER_S)
/* After the job's end, the rest of the output may come within REST_NS from a provider that is
 * there, and within REST_LOST_NS from a provider that may be lost. */
#define REST_NS (10 * NS_PER_S)
#define REST_LOST_NS (2 * NS_PER_S)
/* The times before the limit at which the user is warned. A time above half of the limit is left
 * out. */
static const int64_t warnings_ms[] = {5 * 60000, 60000, 10000};
enum { WARNINGS = sizeof warnings_ms / sizeof warnings_ms[0] };

enum ending {
    SHELL_RUNS,
    SHELL_ENDED,  /* the program ended, or its job */
    SHELL_LEFT,   /* the user typed the escape */
    SHELL_SIGNAL, /* a signal ends this command */
    SHELL_FAILED, /* `error` says why */
};

struct shell {
    struct invocation *invocation;
    struct bourse_terminal *terminal;
    const char *id;
    int64_t limit_ms;
    int signals; /* descriptor of the signals that this command reads */
    bool is_person, is_raw, has_begun, has_input;
    bool has_run;    /* a row said that the program runs */
    int64_t lost_ns; /* since then no row says so; 0: it runs */
    struct shell_escape escape;
    struct shell_away away;
    int64_t begun_ns;
    size_t warned; /* warnings given */
    char reason[BOURSE_TEXT_SIZE];
    struct bourse_job_row row; /* the last that came; state_text NULL: none */
    enum ending ending;
    int signal;
    struct bourse_error error;
};

/* ---------------------------------------------------------------- what the user sees */

/* Says a line of our own. A raw terminal needs the carriage return. */
__attribute__((format(printf, 2, 3))) static void say(const struct shell *shell, const char *format,
                                                      ...)
{
    char text[512];
    va_list arguments;
    if (shell->invocation->quiet) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* cut, never overrun */
    va_end(arguments);
    char line[640];
    const char *begin = shell->is_raw ? "\r\n" : "";
    const int length = snprintf(line, sizeof line, "%sbourse: %s%s", begin, cell_sentence(text),
                                shell->is_raw ? "\r\n" : "\n");
    const ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written; /* nobody is there to be told */
}

/* Prints the program's bytes unchanged, because the program wrote them for a terminal. */
static bool print(const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        const ssize_t put = write(STDOUT_FILENO, at, size);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        at += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

static void leave_raw(struct shell *shell)
{
    local_terminal_restore();
    shell->is_raw = false;
}

static void begin(struct shell *shell)
{
    shell->has_begun = true;
    shell->begun_ns = clock_monotonic_ns();
    if (shell->is_person) {
        say(shell, "connected; exit ends the shell, and so does ~. at the beginning of a line");
        shell->is_raw = local_terminal_raw();
    }
}

/* Says before its end how long the shell still has. */
static void warn_of_limit(struct shell *shell)
{
    const int64_t passed_ms = (clock_monotonic_ns() - shell->begun_ns) / NS_PER_MS;
    while (shell->has_begun && shell->warned < WARNINGS &&
           shell->limit_ms - passed_ms <= warnings_ms[shell->warned]) {
        const int64_t before_ms = warnings_ms[shell->warned++];
        if (2 * before_ms <= shell->limit_ms) {
            char limit[32];
            (void)snprintf(limit, sizeof limit, "%s", cell_duration(shell->limit_ms));
            say(shell, "the limit of %s ends this shell in %s", limit, cell_duration(before_ms));
        }
    }
}

/* ---------------------------------------------------------------- what comes in */

static void tell_size(struct shell *shell)
{
    uint32_t columns = 0;
    uint32_t rows = 0;
    local_terminal_size(&columns, &rows);
    bourse_terminal_resize(shell->terminal, columns, rows);
}

/* Goes on after a stop. Others may have had the terminal meanwhile, and the window may have another
 * size. How long the provider was not heard is not known. */
static void come_back(struct shell *shell)
{
    shell->is_raw = shell->is_raw && local_terminal_raw();
    shell->lost_ns = shell->lost_ns == 0 ? 0 : clock_monotonic_ns();
    tell_size(shell);
}

/* Gives the terminal back as it was, and stops this process until its user goes on with it. The
 * kernel does not stop a process whose session has no shell to go on with it. */
static void suspend(struct shell *shell)
{
    const bool was_raw = shell->is_raw;
    sigset_t stop;
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTSTP);
    say(shell, "suspended; the shell ends after %d s without you", LIMIT_TERMINAL_AWAY_S);
    leave_raw(shell);
    (void)raise(SIGTSTP); /* stops when the signal is let in; cannot fail for this number */
    (void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    shell->is_raw = was_raw;
    come_back(shell);
}

static void read_signal(struct shell *shell)
{
    struct signalfd_siginfo got;
    while (read(shell->signals, &got, sizeof got) == (ssize_t)sizeof got) {
        if (got.ssi_signo == SIGWINCH) {
            tell_size(shell);
        } else if (got.ssi_signo == SIGTSTP) {
            suspend(shell);
        } else if (got.ssi_signo ==
                   SIGCONT) { /* after SIGSTOP, too, which nobody can prepare for */
            come_back(shell);
        } else {
            shell->ending = SHELL_SIGNAL;
            shell->signal = (int)got.ssi_signo;
        }
    }
}

static void type(struct shell *shell, const char *bytes, size_t size)
{
    char mine[INPUT_BYTES + 1];
    while (size > 0) {
        size_t count = 0;
        size_t used = 0;
        const enum shell_action action =
            shell_escape_read(&shell->escape, bytes, size, mine, &count, &used);
        (void)bourse_terminal_type(shell->terminal, mine, count); /* read_input left room */
        if (action == SHELL_LEAVE) {
            shell->ending = SHELL_LEFT;
            return;
        }
        if (action == SHELL_HELP) {
            say(shell, "at the beginning of a line: ~. ends the shell and its job, ~^Z suspends "
                       "this command, ~~ types ~");
        } else if (action == SHELL_SUSPEND) {
            suspend(shell);
        }
        bytes += used;
        size -= used;
    }
}

static void read_input(struct shell *shell)
{
    char bytes[INPUT_BYTES];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0) {
        shell->has_input = false;
        if (shell->is_person) { /* the terminal is gone */
            shell->ending = SHELL_LEFT;
        } else {
            bourse_terminal_type_end(shell->terminal);
        }
    } else if (shell->is_person) {
        type(shell, bytes, (size_t)got);
    } else {
        (void)bourse_terminal_type(shell->terminal, bytes, (size_t)got); /* there is room */
    }
}

static void fail_lost(struct shell *shell)
{
    shell->error = (struct bourse_error){.status = BOURSE_JOB_FAILED, .name = "JOB_FAILED"};
    (void)snprintf(shell->error.text, sizeof shell->error.text,
                   "the device was lost, and the shell on it; start another with `bourse shell`");
    shell->ending = SHELL_FAILED;
}

/* Notes whether the job's row still counts the program as running. The market takes a subtask back
 * from a provider that it does not hear. */
static void note_running(struct shell *shell, const struct bourse_job_row *row)
{
    shell->has_run = shell->has_run || row->running > 0;
    if (row->running > 0) {
        shell->lost_ns = 0;
    } else if (shell->has_begun && shell->has_run && shell->lost_ns == 0) {
        shell->lost_ns = clock_monotonic_ns();
        say(shell, "the market does not hear the provider; waiting for it");
    }
}

/* Says why the job waits, each reason once. A program that has run may have printed something,
 * which can arrive after the job's end. */
static void take_row(struct shell *shell, const struct bourse_job_row *row)
{
    shell->row = *row;
    if (row->state != BOURSE_OPEN) {
        const bool has_program =
            shell->has_begun || shell->has_run || row->accepted > 0 || row->failed > 0;
        shell->ending = has_program ? shell->ending : SHELL_ENDED;
        return;
    }
    note_running(shell, row);
    if (!shell->has_begun && row->running == 0 && row->reason_text[0] != '\0' &&
        strcmp(shell->reason, row->reason_text) != 0) {
        (void)snprintf(shell->reason, sizeof shell->reason, "%s", row->reason_text);
        say(shell, "waiting: %s", shell->reason);
    }
}

static void take_event(struct shell *shell, const struct bourse_terminal_event *event)
{
    switch (event->type) {
    case BOURSE_TERMINAL_NOTHING:
        break;
    case BOURSE_TERMINAL_READABLE:
        if (event->which == 0) {
            read_signal(shell);
        } else {
            read_input(shell);
        }
        break;
    case BOURSE_TERMINAL_BEGUN:
        begin(shell);
        break;
    case BOURSE_TERMINAL_OUTPUT:
        if (!print(event->bytes, event->size)) {
            shell->ending = SHELL_LEFT; /* nobody reads any more */
        }
        break;
    case BOURSE_TERMINAL_ENDED:
        shell->ending = SHELL_ENDED;
        break;
    case BOURSE_TERMINAL_REPLACED:
        fail_lost(shell);
        break;
    case BOURSE_TERMINAL_JOB:
        take_row(shell, &event->row);
        break;
    case BOURSE_TERMINAL_LOST:
        shell_away_lost(&shell->away);
        break;
    case BOURSE_TERMINAL_BACK:
        if (shell_away_found(&shell->away)) {
            say(shell, "the broker is back");
        }
        break;
    }
}

/* Gives the terminal some time, after the job's end, to bring the rest. A provider that has sent a
 * result keeps the rest as long as the longer time. */
static bool has_waited(const struct shell *shell, int64_t *ended_ns)
{
    if (shell->row.state_text == NULL || shell->row.state == BOURSE_OPEN) {
        return false;
    }
    const bool has_result = shell->row.accepted > 0 || shell->row.failed > 0;
    *ended_ns = *ended_ns == 0 ? clock_monotonic_ns() : *ended_ns;
    return clock_monotonic_ns() >= *ended_ns + (has_result ? REST_NS : REST_LOST_NS);
}

static void run(struct shell *shell)
{
    int64_t ended_ns = 0;
    while (shell->ending == SHELL_RUNS) {
        struct bourse_terminal_event event;
        const bool reads = shell->has_input && (shell->has_begun || !shell->is_person) &&
                           bourse_terminal_room(shell->terminal) > INPUT_BYTES;
        const int descriptors[] = {shell->signals, reads ? STDIN_FILENO : -1};
        if (!bourse_terminal_next(shell->terminal, descriptors, 2, ROUND_MS, &event,
                                  &shell->error)) {
            shell->ending = SHELL_FAILED;
            break;
        }
        shell_away_turn(&shell->away, clock_monotonic_ns(), clock_wall_ns() / NS_PER_MS);
        take_event(shell, &event);
        if (shell_away_tells(&shell->away, clock_monotonic_ns())) {
            say(shell, "the broker cannot be reached; the shell goes on, waiting for it");
        }
        warn_of_limit(shell);
        if (shell->lost_ns != 0 && clock_monotonic_ns() >= shell->lost_ns + LOST_NS) {
            fail_lost(shell);
        }
        if (has_waited(shell, &ended_ns)) {
            shell->ending = SHELL_ENDED;
        }
    }
    leave_raw(shell);
}

/* ---------------------------------------------------------------- the end */

struct result {
    bool is_there;
    int status; /* exit status of the program */
    bool has_run_to_end;
    char text[BOURSE_TEXT_SIZE];
};

static bool take_outcome(void *context, const struct bourse_outcome *outcome)
{
    struct result *result = context;
    result->is_there = true;
    result->has_run_to_end = outcome->has_exit_code || outcome->outcome == 0;
    result->status = outcome->signal != 0 ? 128 + outcome->signal : outcome->exit_code;
    (void)snprintf(result->text, sizeof result->text, "%s%s%s", outcome->outcome_text,
                   outcome->detail[0] != '\0' ? ": " : "", outcome->detail);
    return false;
}

/* Goes on with the wait until the job is open, and nothing of it runs any more. */
static bool is_under_way(void *context, const struct bourse_job_row *row)
{
    bool *is_given_back = context;
    *is_given_back = row != NULL && row->state == BOURSE_OPEN && row->running == 0;
    return !*is_given_back;
}

/* Waits until the job has ended. A job that goes on without its program was given back by the
 * provider. The job then ends, because nobody would sit at the terminal of its next attempt. */
static bool await_end(struct shell *shell, struct bourse_job_row *ret_row,
                      struct bourse_error *ret_error)
{
    struct bourse *bourse = shell->invocation->bourse;
    bool is_given_back = false;
    if (shell->ending == SHELL_ENDED) {
        const bool is_known = bourse_wait(bourse, shell->id, END_WAIT_MS, is_under_way,
                                          &is_given_back, ret_row, ret_error);
        if (is_known && !is_given_back) {
            return true;
        }
        struct bourse_error ignored; /* the wait below tells whether the job has ended */
        fail_lost(shell);
        (void)bourse_cancel(bourse, shell->id, &ignored);
    }
    return bourse_wait(bourse, shell->id, END_WAIT_MS, NULL, NULL, ret_row, ret_error);
}

/* Ends the job where it goes on, and waits until its cost is known. */
static void settle(struct shell *shell)
{
    struct invocation *invocation = shell->invocation;
    struct bourse_job_row row;
    struct bourse_error error;
    if (shell->ending != SHELL_ENDED) {
        /* A job that has ended meanwhile cannot be cancelled, and any other ends by itself once
         * nobody asks for its terminal. The wait below tells. */
        (void)bourse_cancel(invocation->bourse, shell->id, &error);
    }
    if (await_end(shell, &row, &error)) {
        shell->row = row;
    } else {
        say(shell, "the end of job %.8s is not known yet (%s); `bourse ps %.8s` tells", shell->id,
            error.text, shell->id);
    }
}

/* Says how the shell ended, and when, to a user who was not there. */
static void tell_end(struct shell *shell, const struct result *result)
{
    const struct bourse_job_row *row = &shell->row;
    const bool is_missed = shell_away_missed(&shell->away, row->ended_ms);
    const bool has_left = shell->ending == SHELL_LEFT || shell->ending == SHELL_SIGNAL;
    const bool is_hung_up = is_missed && result->is_there && result->status == 128 + SIGHUP &&
                            shell->away.stopped_ns >= LIMIT_TERMINAL_AWAY_S * NS_PER_S;
    char away[64];
    (void)snprintf(away, sizeof away, "nobody asked for its terminal for %d s",
                   LIMIT_TERMINAL_AWAY_S);
    if (is_missed) {
        say(shell, "the lease ended at %s, while this command was suspended",
            cell_time(row->ended_ms));
    }
    say(shell, "shell ended (%s), %s credits paid; job %.8s",
        has_left && !is_missed ? "you left"
        : is_hung_up           ? away
        : result->is_there     ? result->text
                               : row->reason_text,
        cell_money(row->charged_micro), row->id);
}

static int finish(struct shell *shell)
{
    struct result result = {.is_there = false};
    struct bourse_error ignored;
    settle(shell);
    const struct bourse_job_row *row = &shell->row;
    const bool has_ended = row->state_text != NULL && row->state != BOURSE_OPEN;
    (void)bourse_outcomes(shell->invocation->bourse, shell->id, 0, take_outcome, &result, &ignored);
    if (has_ended) {
        tell_end(shell, &result);
    }
    switch (shell->ending) {
    case SHELL_RUNS:
    case SHELL_ENDED:
        return result.is_there && result.has_run_to_end ? result.status
               : result.is_there && result.status > 128 ? result.status
               : has_ended                              ? job_exit_status(row)
                                                        : BOURSE_TIMED_OUT;
    case SHELL_LEFT:
        return BOURSE_CANCELLED;
    case SHELL_SIGNAL:
        return 128 + shell->signal;
    case SHELL_FAILED:
        return complain_with(shell->invocation, &shell->error);
    }
    return BOURSE_LOCAL;
}

/* ---------------------------------------------------------------- the job */

/* Lets signals be read from here on, so that none ends this command before its job. */
static int read_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGQUIT);
    (void)sigaddset(&set, SIGWINCH);
    (void)sigaddset(&set, SIGTSTP);
    (void)sigaddset(&set, SIGCONT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Shows the price and asks. Returns false and the exit status when there is no job. */
static bool place(struct invocation *invocation, struct bourse_job *job, int *ret_signals,
                  char ret_id[BOURSE_ID_SIZE], int *ret_status)
{
    struct offer *offer = calloc(1, sizeof *offer);
    if (offer == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    offer->job = job;
    bool ok =
        offer_make(invocation, offer, ret_status) && offer_agree(invocation, offer, ret_status);
    if (ok && (*ret_signals = read_signals()) < 0) {
        *ret_status = complain(invocation, BOURSE_LOCAL,
                               "signals cannot be read: %s; nothing was "
                               "submitted",
                               strerror(errno));
        ok = false;
    }
    ok = ok && offer_place(invocation, offer, ret_id, ret_status);
    free(offer);
    return ok;
}

int command_shell(struct invocation *invocation)
{
    int status = 0;
    int64_t ignored = 0;
    char id[BOURSE_ID_SIZE];
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct shell shell = {.invocation = invocation,
                          .id = id,
                          .signals = -1,
                          .is_person = local_terminal_is_there(),
                          .has_input = true};
    struct job_file *file = option_money(invocation, "budget", &ignored)
                                ? shell_job(invocation, shell.is_person)
                                : NULL;
    if (file == NULL) {
        return BOURSE_USAGE;
    }
    shell.limit_ms = file->limit_ms;
    if (!job_build(file, ".", NULL, &job, &shell.error)) {
        return complain_with(invocation, &shell.error);
    }
    if (!command_connect(invocation, &status) ||
        !place(invocation, job, &shell.signals, id, &status)) {
        return status;
    }
    if (bourse_terminal_open(invocation->bourse, id, &shell.terminal, &shell.error)) {
        run(&shell);
        bourse_terminal_close(&shell.terminal);
    } else {
        shell.ending = SHELL_FAILED;
    }
    status = finish(&shell);
    (void)close(shell.signals); /* reads only */
    return status;
}
