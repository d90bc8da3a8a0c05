#include "consumer/command/shell/local_terminal.h"

#include "protocol/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, ROWS_DEFAULT = 24 };

/* The handler of fatal signals reads these two. */
static struct termios former; /* the modes of the terminal at the start */
static volatile sig_atomic_t is_raw;

bool local_terminal_is_there(void)
{
    return isatty(STDIN_FILENO) == 1;
}

static bool is_size(unsigned number)
{
    return number >= 1 && number <= LIMIT_TERMINAL_SIZE;
}

void local_terminal_size(uint32_t *ret_columns, uint32_t *ret_rows)
{
    struct winsize size;
    const bool is_known = (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 ||
                           ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) &&
                          is_size(size.ws_col) && is_size(size.ws_row);
    *ret_columns = is_known ? size.ws_col : COLUMNS_DEFAULT;
    *ret_rows = is_known ? size.ws_row : ROWS_DEFAULT;
}

void local_terminal_restore(void)
{
    if (is_raw != 0) {
        const int error = errno;
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN,
                        &former); /* fails only when the terminal is gone */
        is_raw = 0;
        errno = error;
    }
}

static void on_fatal_signal(int number)
{
    local_terminal_restore();
    (void)raise(number); /* SA_RESETHAND restored the default action, so the process ends */
}

bool local_terminal_raw(void)
{
    static const int fatal[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGALRM};
    static bool is_registered;
    static bool is_known;
    struct sigaction action = {.sa_handler = on_fatal_signal,
                               .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    struct termios raw;
    if (!is_known && tcgetattr(STDIN_FILENO, &former) != 0) {
        return false;
    }
    is_known = true;
    for (size_t i = 0; !is_registered && i < sizeof fatal / sizeof fatal[0]; i++) {
        (void)sigaction(fatal[i], &action, NULL); /* cannot fail for these numbers */
    }
    is_registered = is_registered || atexit(local_terminal_restore) == 0;
    raw = former;
    cfmakeraw(&raw);
    is_raw = 1;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0) {
        is_raw = 0;
        return false;
    }
    return true;
}
