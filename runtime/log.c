#include "runtime/log.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MESSAGE_BYTES = 1024,
    VISIBLE_BYTES = TEXT_VISIBLE_PER_BYTE * MESSAGE_BYTES + TEXT_VISIBLE_END_SIZE,
    LINE_BYTES = 8 * MESSAGE_BYTES,
};

static const char *const level_names[] = {"error", "warning", "info", "debug"};
enum { LEVEL_COUNT = sizeof level_names / sizeof level_names[0] };

/* The settings hold for the whole process, like stderr itself. */
static atomic_int least_level = LOG_LEVEL_INFO;
static atomic_bool as_json;

void log_setup(enum log_level least, bool json)
{
    atomic_store(&least_level, (int)least);
    atomic_store(&as_json, json);
}

bool log_level_from(const char *name, enum log_level *ret_level)
{
    for (int level = 0; level < LEVEL_COUNT; level++) {
        if (strcmp(name, level_names[level]) == 0) {
            *ret_level = (enum log_level)level;
            return true;
        }
    }
    return false;
}

static void time_text(char *ret_text, size_t capacity)
{
    struct timespec now;
    struct tm parts;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || gmtime_r(&now.tv_sec, &parts) == NULL) {
        (void)snprintf(ret_text, capacity, "?");
        return;
    }
    char seconds[32];
    (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(ret_text, capacity, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
}

/* Writes the text inside a JSON string. Bytes outside ASCII pass, because log values went through
 * text_printable. */
static void json_text(const char *text, char *ret_text, size_t capacity)
{
    size_t at = 0;
    for (; *text != '\0' && at + 7 < capacity; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            ret_text[at++] = '\\';
            ret_text[at++] = *text;
        } else if (byte < 0x20 || byte == 0x7f) {
            at += (size_t)snprintf(ret_text + at, capacity - at, "\\u%04x", byte);
        } else {
            ret_text[at++] = *text;
        }
    }
    ret_text[at] = '\0';
}

void log_line(enum log_level level, const char *format, ...)
{
    if ((int)level > atomic_load(&least_level)) {
        return;
    }
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments); /* cut, never overrun */
    va_end(arguments);

    char stamp[48];
    time_text(stamp, sizeof stamp);
    char line[LINE_BYTES];
    int length;
    if (atomic_load(&as_json)) {
        char escaped[6 * MESSAGE_BYTES + 8];
        json_text(message, escaped, sizeof escaped);
        length =
            snprintf(line, sizeof line, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"%s\"}\n",
                     stamp, level_names[level], escaped);
    } else {
        for (char *at = message; (at = strpbrk(at, "\r\n")) != NULL;) {
            *at = ' '; /* SQLite's texts have several lines, a log line has one */
        }
        /* Logs are read on terminals, so control characters are made visible. */
        char visible[VISIBLE_BYTES];
        struct text_visible state = {.held_count = 0};
        size_t written = text_visible(&state, message, strlen(message), visible);
        written += text_visible_end(&state, visible + written);
        length = snprintf(line, sizeof line, "%s %s %.*s\n", stamp, level_names[level],
                          (int)written, visible);
    }
    /* One write per line keeps the lines of threads apart. A missing stderr cannot be reported. */
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}
