#include "consumer/command/screen.h"

#include "runtime/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct winsize terminal_size(int fd)
{
    struct winsize size = {.ws_col = 0};
    bool known = isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0;
    if (!known || size.ws_col == 0 || size.ws_row < 2) {
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    }
    return size;
}

unsigned screen_width(int fd)
{
    return terminal_size(fd).ws_col;
}

static unsigned screen_height(int fd)
{
    return terminal_size(fd).ws_row;
}

bool screen_is_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (locale == (locale_t)0) {
        return false;
    }
    bool is_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return is_utf8;
}

/* Returns how many bytes of a line fit in the columns. */
static size_t cut(const char *line, size_t length, size_t columns)
{
    size_t used = 0;
    size_t column = 0;
    for (; used < length; used++) {
        column += ((unsigned char)line[used] & 0xc0) != 0x80;
        if (column > columns) {
            break;
        }
    }
    return used;
}

void screen_draw(struct screen *screen, const char *text)
{
    if (screen->lines > 0) {
        char back[32];
        (void)snprintf(back, sizeof back, "\033[%zuA\033[J", screen->lines);
        terminal_control(stdout, back);
    }
    unsigned columns = screen_width(STDOUT_FILENO);
    size_t most = screen_height(STDOUT_FILENO) - 1;
    screen->lines = 0;
    for (const char *at = text; *at != '\0' && screen->lines < most; screen->lines++) {
        size_t line = strcspn(at, "\n");
        (void)printf("%.*s\n", (int)cut(at, line, columns), at);
        at += line + (at[line] == '\n');
    }
    (void)fflush(stdout);
}

int screen_ask_yes_no(const char *question)
{
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
        return -1;
    }
    (void)fprintf(stderr, "%s [y/N] ", question);
    char answer[16] = "";
    if (fgets(answer, sizeof answer, stdin) == NULL) {
        (void)fputc('\n', stderr); /* an end of input leaves the cursor behind the question */
        return 0;
    }
    return answer[0] == 'y' || answer[0] == 'Y';
}
