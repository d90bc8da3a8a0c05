#include "runtime/terminal.h"

#include "base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* These sequences are the colours of tables and pictures (consumer/command/grid.c,
 * planner/picture/picture_timeline.c). The guard lets them pass in foreign text, too, where they do
 * no harm. */
static const char *const styles[] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[34m"};
enum { STYLES = sizeof styles / sizeof styles[0], STYLE_SIZE = 8, PIECE_BYTES = 512 };

struct guard {
    int fd;
    FILE *stream; /* NULL: the descriptor is no terminal */
    struct text_visible visible;
    char style[STYLE_SIZE]; /* the first bytes of what may become one of the styles */
    size_t style_length;
};
static struct guard guards[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

static bool write_whole(int fd, const char *bytes, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t wrote = write(fd, bytes + sent, length - sent);
        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        sent += wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

enum match { MATCH_NONE, MATCH_BEGINNING, MATCH_WHOLE };

static enum match match_style(const char *text, size_t length)
{
    for (size_t i = 0; i < STYLES; i++) {
        if (strncmp(styles[i], text, length) == 0) {
            return styles[i][length] == '\0' ? MATCH_WHOLE : MATCH_BEGINNING;
        }
    }
    return MATCH_NONE;
}

/* Takes one more byte of output. Writes what can be decided now to `ret_text`: the visible form of
 * at most STYLE_SIZE bytes and of those that `visible` held back, or a whole style. Returns the
 * number of bytes written. */
static size_t take_byte(struct guard *guard, char byte, char *ret_text)
{
    size_t written = 0;
    if (guard->style_length > 0 || byte == '\033') {
        guard->style[guard->style_length++] = byte;
        switch (match_style(guard->style, guard->style_length)) {
        case MATCH_BEGINNING:
            return 0;
        case MATCH_WHOLE:
            written = text_visible_end(&guard->visible, ret_text);
            memcpy(ret_text + written, guard->style, guard->style_length);
            written += guard->style_length;
            guard->style_length = 0;
            return written;
        case MATCH_NONE:
            written =
                text_visible(&guard->visible, guard->style, guard->style_length - 1, ret_text);
            guard->style[0] = byte;
            guard->style_length = byte == '\033';
            return byte == '\033'
                       ? written
                       : written + text_visible(&guard->visible, &byte, 1, ret_text + written);
        }
    }
    return text_visible(&guard->visible, &byte, 1, ret_text);
}

/* A write function for fopencookie: it returns 0 on failure. */
static ssize_t write_guarded(void *cookie, const char *bytes, size_t size)
{
    struct guard *guard = cookie;
    char text[(PIECE_BYTES + STYLE_SIZE) * TEXT_VISIBLE_PER_BYTE + TEXT_VISIBLE_END_SIZE];
    for (size_t done = 0; done < size;) {
        size_t written = 0;
        for (size_t i = 0; i < PIECE_BYTES && done < size; i++) {
            written += take_byte(guard, bytes[done++], text + written);
        }
        if (!write_whole(guard->fd, text, written)) {
            return 0;
        }
    }
    return (ssize_t)size;
}

static bool guard_begin(struct guard *guard, int mode)
{
    const cookie_io_functions_t functions = {.write = write_guarded};
    if (guard->stream != NULL || isatty(guard->fd) != 1) {
        return false;
    }
    guard->stream = fopencookie(guard, "w", functions);
    if (guard->stream == NULL) {
        return false;
    }
    (void)setvbuf(guard->stream, NULL, mode, 0); /* as stdio does for a terminal */
    return true;
}

void terminal_guard(void)
{
    if (guard_begin(&guards[0], _IOLBF)) {
        stdout = guards[0].stream; /* the C library allows it, and printf then writes there */
    }
    if (guard_begin(&guards[1], _IONBF)) {
        stderr = guards[1].stream;
    }
}

void terminal_control(FILE *to, const char *sequence)
{
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        if (guards[i].stream == to) {
            (void)fflush(to); /* earlier output comes first */
            /* The failure of this write is ignored; a later write of stdio meets the same error. */
            (void)write_whole(guards[i].fd, sequence, strlen(sequence));
            return;
        }
    }
    (void)fputs(sequence, to);
}
