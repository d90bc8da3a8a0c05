/* The program terminal_user plays a person at a terminal, for tests of `bourse shell`.
 *
 *     terminal_user COLUMNSxROWS PROGRAM [ARGUMENT ...] <script
 *
 * The program gets a pseudo-terminal, and what it prints is copied to standard output. A line of
 * the script is one of:
 *
 *     type TEXT              types the text; \r, \n, \\ and \xHH stand for bytes
 *     expect SECONDS TEXT    waits for the text, in what was printed after the last match
 *     size COLUMNS ROWS      changes the window
 *     echo KEYS              types so many keys, each after the echo of the one before, and prints
 *                            to standard error "echo median N us, longest M us"
 *     signal NUMBER          sends the signal to the program
 *     modes                  fails unless the terminal is as it was at the start
 *     end SECONDS STATUS     waits until the program ends, with this exit status
 *     run COMMAND            runs the command by sh, which must succeed
 *
 * The exit status is 0 when every line succeeded. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, PRINTED_BYTES = 1 << 20, KEYS_MAX = 1000 };

static int master = -1;
static int slave = -1; /* stays open, so that the modes can be read after the program's end */
static pid_t program;
static struct termios start;
static char printed[PRINTED_BYTES];
static size_t printed_count, expected_to;
static unsigned line_number;

static void fail(const char *what, const char *detail)
{
    (void)fprintf(
        stderr, "terminal_user: line %u: %s: %s\n-- printed since the last match:\n%.*s\n",
        line_number, what, detail, (int)(printed_count - expected_to), printed + expected_to);
    (void)kill(program, SIGKILL);
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Reads what the program prints, and copies it to standard output. Returns false when nothing comes
 * within the time. */
static bool read_some(int64_t wait_us)
{
    struct pollfd one = {.fd = master, .events = POLLIN};
    if (poll(&one, 1, (int)((wait_us + 999) / 1000)) <= 0) {
        return false;
    }
    if (printed_count == sizeof printed) { /* the older half is dropped */
        const size_t half = sizeof printed / 2;
        memmove(printed, printed + half, half);
        printed_count -= half;
        expected_to = expected_to > half ? expected_to - half : 0;
    }
    const ssize_t got = read(master, printed + printed_count, sizeof printed - printed_count);
    if (got <= 0) {
        return false;
    }
    const ssize_t put = write(STDOUT_FILENO, printed + printed_count, (size_t)got);
    (void)put; /* the copy is for people, and nothing depends on it */
    printed_count += (size_t)got;
    return true;
}

static bool look_for(const char *text, size_t size)
{
    const char *found = memmem(printed + expected_to, printed_count - expected_to, text, size);
    if (found != NULL) {
        expected_to = (size_t)(found - printed) + size;
    }
    return found != NULL;
}

static bool await(const char *text, size_t size, int64_t wait_us)
{
    const int64_t end_us = now_us() + wait_us;
    while (!look_for(text, size)) {
        const int64_t left_us = end_us - now_us();
        if (left_us <= 0) {
            return false;
        }
        (void)read_some(left_us < 100000 ? left_us : 100000);
    }
    return true;
}

/* Replaces the escapes by their bytes, in place. Returns the number of bytes. */
static size_t unescape(char *text)
{
    size_t size = 0;
    for (char *at = text; *at != '\0'; at++) {
        if (*at != '\\') {
            text[size++] = *at;
        } else if (at[1] == 'x' && at[2] != '\0' && at[3] != '\0') {
            const char digits[3] = {at[2], at[3], '\0'};
            text[size++] = (char)strtol(digits, NULL, 16);
            at += 3;
        } else if (*++at != '\0') {
            text[size++] = (char)(*at == 'r' ? '\r' : *at == 'n' ? '\n' : *at);
        } else {
            break;
        }
    }
    return size;
}

static void type(const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t put = write(master, text, size);
        if (put <= 0) {
            fail("typing", strerror(errno));
        }
        text += put;
        size -= (size_t)put;
    }
}

static int compare(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void measure_echo(size_t keys)
{
    static int64_t took_us[KEYS_MAX];
    for (size_t i = 0; i < keys && i < KEYS_MAX; i++) {
        const char key = (char)('a' + i % 26);
        const int64_t begin_us = now_us();
        type(&key, 1);
        if (!await(&key, 1, 5000000)) {
            fail("echo", "no echo within 5 s");
        }
        took_us[i] = now_us() - begin_us;
    }
    qsort(took_us, keys, sizeof took_us[0], compare);
    (void)fprintf(stderr, "echo median %lld us, longest %lld us\n", (long long)took_us[keys / 2],
                  (long long)took_us[keys - 1]);
}

static void check_modes(void)
{
    struct termios now;
    if (tcgetattr(slave, &now) != 0) {
        fail("modes", strerror(errno));
    }
    if (now.c_iflag != start.c_iflag || now.c_oflag != start.c_oflag ||
        now.c_lflag != start.c_lflag || now.c_cflag != start.c_cflag) {
        fail("modes", "the terminal is not as it was");
    }
}

static void await_end(int64_t wait_us, int expected)
{
    const int64_t end_us = now_us() + wait_us;
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(program, &status, WNOHANG)) == 0 && now_us() < end_us) {
        (void)read_some(20000);
    }
    if (ended != program) {
        fail("end", "the program goes on");
    }
    while (read_some(0)) {
        /* the rest */
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    char text[64];
    (void)snprintf(text, sizeof text, "exit status %d, expected %d", code, expected);
    if (code != expected) {
        fail("end", text);
    }
}

static void set_size(unsigned columns, unsigned rows)
{
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    if (ioctl(master, TIOCSWINSZ, &size) != 0) {
        fail("size", strerror(errno));
    }
}

static void obey(char *line)
{
    unsigned first = 0;
    unsigned second = 0;
    int at = 0;
    if (strncmp(line, "type ", 5) == 0) {
        const size_t size = unescape(line + 5);
        type(line + 5, size);
    } else if (sscanf(line, "expect %u %n", &first, &at) == 1 && at > 0) {
        const size_t size = unescape(line + at);
        if (!await(line + at, size, first * INT64_C(1000000))) {
            fail("not printed", line + at);
        }
    } else if (sscanf(line, "size %u %u", &first, &second) == 2) {
        set_size(first, second);
    } else if (sscanf(line, "echo %u", &first) == 1 && first > 0) {
        measure_echo(first);
    } else if (sscanf(line, "signal %u", &first) == 1) {
        (void)kill(program, (int)first);
    } else if (strcmp(line, "modes") == 0) {
        check_modes();
    } else if (sscanf(line, "end %u %u", &first, &second) == 2) {
        await_end(first * INT64_C(1000000), (int)second);
    } else if (strncmp(line, "run ", 4) == 0) {
        if (system(line + 4) != 0) { /* the script is the test's own */
            fail("failed", line + 4);
        }
    } else {
        fail("no such line", line);
    }
}

static void begin(const char *size, char **words)
{
    unsigned columns = 0;
    unsigned rows = 0;
    master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        (slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0 ||
        tcgetattr(slave, &start) != 0 || sscanf(size, "%ux%u", &columns, &rows) != 2) {
        perror("terminal_user: no terminal");
        exit(1);
    }
    set_size(columns, rows);
    program = fork();
    if (program == 0) {
        (void)setsid();
        if (ioctl(slave, TIOCSCTTY, 0) == 0 && dup2(slave, 0) == 0 && dup2(slave, 1) == 1 &&
            dup2(slave, 2) == 2) {
            (void)execvp(words[0], words);
        }
        _exit(127);
    }
}

int main(int count, char **words)
{
    char line[LINE_BYTES];
    if (count < 3) {
        (void)fputs("usage: terminal_user COLUMNSxROWS PROGRAM [ARGUMENT ...] <script\n", stderr);
        return 2;
    }
    begin(words[1], words + 2);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line_number++;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0' && line[0] != '#') {
            obey(line);
        }
    }
    return 0;
}
