#include "provider/plugin/talk.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the process */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Executes the program in the new process. Returns only on failure, with errno. */
static int become(const char *program, int input, int output)
{
    char *argv[] = {(char *)(uintptr_t)program, NULL};
    (void)signal(SIGPIPE, SIG_DFL); /* an ignored signal would stay ignored */
    (void)signal(SIGXFSZ, SIG_DFL);
    sigset_t none; /* likewise a blocked one would stay blocked */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0) {
        (void)execv(program, argv);
    }
    return errno;
}

static void close_pair(const int pair[2])
{
    (void)close(pair[0]);
    (void)close(pair[1]);
}

bool talk_start(const char *program, struct talk *ret_talk, struct problem *ret_problem)
{
    int to[2];
    int from[2];
    int failure[2]; /* an errno comes through it when the program does not start */
    *ret_talk = (struct talk){.pid = 0};
    if (pipe2(to, O_CLOEXEC) != 0) {
        problem_set(ret_problem, "no pipe to the plug-in: %s", strerror(errno));
        return false;
    }
    if (pipe2(from, O_CLOEXEC) != 0) {
        problem_set(ret_problem, "no pipe from the plug-in: %s", strerror(errno));
        close_pair(to);
        return false;
    }
    if (pipe2(failure, O_CLOEXEC) != 0) {
        problem_set(ret_problem, "no pipe from the plug-in: %s", strerror(errno));
        close_pair(to);
        close_pair(from);
        return false;
    }
    int error = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        error = become(program, to[0], from[1]);
        const ssize_t written = write(failure[1], &error, sizeof error);
        _exit(written > 0 ? 127 : 126);
    }
    error = pid < 0 ? errno : 0;
    (void)close(to[0]);
    (void)close(from[1]);
    (void)close(failure[1]);
    *ret_talk = (struct talk){.pid = pid, .to = to[1], .from = from[0]};
    const bool has_failed = pid < 0 || read(failure[0], &error, sizeof error) > 0;
    (void)close(failure[0]);
    if (has_failed) {
        problem_set(ret_problem, "the plug-in does not start: %s", strerror(error));
        ret_talk->pid = pid < 0 ? 0 : pid;
        if (pid < 0) {
            (void)close(to[1]);
            (void)close(from[0]);
        }
        talk_end(ret_talk);
        return false;
    }
    (void)fcntl(to[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(from[0], F_SETFL, O_NONBLOCK);
    return true;
}

/* Kills the plug-in and returns how it ended. */
static int end(struct talk *talk)
{
    int status = 0;
    (void)close(talk->to);
    (void)close(talk->from);
    (void)kill(talk->pid, SIGKILL);
    while (waitpid(talk->pid, &status, 0) < 0 && errno == EINTR) {
        /* again */
    }
    *talk = (struct talk){.pid = 0};
    return status;
}

void talk_end(struct talk *talk)
{
    if (talk->pid > 0) {
        (void)end(talk);
    }
}

bool talk_is_ready(struct talk *talk)
{
    struct pollfd output = {.fd = talk->from, .events = POLLIN};
    if (talk->pid > 0 && poll(&output, 1, 0) != 0) { /* it has ended, or says more */
        (void)end(talk);
    }
    return talk->pid > 0;
}

/* ---------------------------------------------------------------- requests and answers */

/* Tells how a plug-in ended that has closed its output. */
static void tell_end(struct talk *talk, struct problem *problem)
{
    /* A plug-in that closes its output and goes on is killed, which does not look like a crash. */
    struct timespec moment = {.tv_nsec = 10000000};
    siginfo_t ended = {.si_pid = 0};
    for (int i = 0; i < 50 && ended.si_pid == 0; i++) {
        if (waitid(P_PID, (id_t)talk->pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) {
            break;
        }
        if (ended.si_pid == 0) {
            (void)nanosleep(&moment, NULL);
        }
    }
    const bool is_alive = ended.si_pid == 0;
    const int status = end(talk);
    if (is_alive) {
        problem_set(problem, "the plug-in has closed its output");
    } else if (WIFSIGNALED(status)) {
        problem_set(problem, "the plug-in was ended by signal %d (%s)", WTERMSIG(status),
                    strsignal(WTERMSIG(status)));
    } else {
        problem_set(problem, "the plug-in has ended with status %d", WEXITSTATUS(status));
    }
}

static bool fail(struct talk *talk, struct problem *problem, const char *what)
{
    problem_set(problem, "%s", what);
    (void)end(talk);
    return false;
}

/* Reads what the plug-in has said. Returns false when the plug-in is ended. */
static bool read_more(struct talk *talk, char *line, size_t *used, struct problem *problem)
{
    if (*used == PLUGIN_LINE_BYTES) {
        return fail(talk, problem, "the plug-in's answer is longer than 65536 bytes");
    }
    const ssize_t got = read(talk->from, line + *used, PLUGIN_LINE_BYTES - *used);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    if (got <= 0) {
        tell_end(talk, problem);
        return false;
    }
    const char *newline = memchr(line + *used, '\n', (size_t)got);
    *used += (size_t)got;
    if (newline != NULL && newline + 1 != line + *used) {
        return fail(talk, problem, "the plug-in says more than one line to one request");
    }
    return true;
}

/* One request under way. */
struct exchange {
    const char *request; /* what is sent, or was */
    size_t length, sent;
    int limit_ms;
    int64_t end_ms;
    bool is_cancelled;
};

/* Sends the line that cancels. Returns false when the plug-in is ended instead. */
static bool begin_cancel(struct talk *talk, struct exchange *exchange,
                         const struct talk_cancel *cancel, struct problem *problem)
{
    if (cancel->line == NULL || exchange->sent < exchange->length) {
        return fail(talk, problem, "cancelled, and the plug-in was ended");
    }
    *exchange = (struct exchange){.request = cancel->line,
                                  .length = cancel->length,
                                  .limit_ms = TALK_CANCEL_MS,
                                  .end_ms = now_ms() + TALK_CANCEL_MS,
                                  .is_cancelled = true};
    return true;
}

/* Sends what the pipe takes. Returns false when the plug-in has ended. */
static bool send_more(struct talk *talk, struct exchange *exchange, struct problem *problem)
{
    const ssize_t written =
        write(talk->to, exchange->request + exchange->sent, exchange->length - exchange->sent);
    if (written < 0 && errno != EAGAIN && errno != EINTR) {
        tell_end(talk, problem);
        return false;
    }
    exchange->sent += written > 0 ? (size_t)written : 0;
    return true;
}

bool talk_ask_or_cancel(struct talk *talk, const char *request, size_t length, int limit_ms,
                        const struct talk_cancel *cancel, char ret_line[PLUGIN_LINE_BYTES],
                        size_t *ret_length, struct problem *ret_problem)
{
    struct exchange exchange = {
        .request = request, .length = length, .limit_ms = limit_ms, .end_ms = now_ms() + limit_ms};
    size_t used = 0;
    while (used == 0 || ret_line[used - 1] != '\n') {
        const int64_t left_ms = exchange.end_ms - now_ms();
        const bool has_limit = exchange.limit_ms != TALK_NO_LIMIT;
        struct pollfd polls[3] = {
            {.fd = talk->from, .events = POLLIN},
            {.fd = exchange.sent < exchange.length ? talk->to : -1, .events = POLLOUT},
            {.fd = exchange.is_cancelled ? -1 : cancel->fd, .events = POLLIN}};
        if (has_limit && left_ms <= 0) {
            problem_set(ret_problem, "the plug-in says nothing for %d.%03d s",
                        exchange.limit_ms / 1000, exchange.limit_ms % 1000);
            (void)end(talk);
            return false;
        }
        if (poll(polls, 3, has_limit ? (int)left_ms : -1) <= 0) {
            continue;
        }
        if (polls[1].revents != 0 && !send_more(talk, &exchange, ret_problem)) {
            return false;
        }
        if (polls[0].revents != 0 && !read_more(talk, ret_line, &used, ret_problem)) {
            return false;
        }
        if (polls[2].revents != 0 && !begin_cancel(talk, &exchange, cancel, ret_problem)) {
            return false;
        }
    }
    if (exchange.sent < exchange.length) {
        return fail(talk, ret_problem, "the plug-in answers before it was asked");
    }
    *ret_length = used - 1;
    return true;
}

bool talk_ask(struct talk *talk, const char *request, size_t length, int limit_ms,
              char ret_line[PLUGIN_LINE_BYTES], size_t *ret_length, struct problem *ret_problem)
{
    const struct talk_cancel none = {.fd = -1};
    return talk_ask_or_cancel(talk, request, length, limit_ms, &none, ret_line, ret_length,
                              ret_problem);
}
