#include "planner/picture/picture_text.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM_AT_FIRST = 4096, PIECE = 1000 };

static bool make_room(struct picture_text *text)
{
    if (text->capacity - text->length > PIECE) {
        return true;
    }
    size_t capacity = text->capacity == 0 ? ROOM_AT_FIRST : text->capacity * 2;
    char *bytes = realloc(text->bytes, capacity);
    if (bytes == NULL) {
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void picture_text_add(struct picture_text *text, const char *format, ...)
{
    text->failed = text->failed || !make_room(text);
    if (text->failed) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    int wrote = vsnprintf(text->bytes + text->length, PIECE, format, arguments);
    va_end(arguments);
    size_t added = wrote < 0 ? 0 : wrote >= PIECE ? PIECE - 1 : (size_t)wrote;
    text->length += added;
}

char *picture_text_take(struct picture_text *text)
{
    if (text->failed) {
        free(text->bytes);
        text->bytes = NULL;
    }
    return text->bytes;
}

static void write_ns(int64_t ns, char ret_text[PICTURE_TIME_SIZE])
{
    int64_t seconds = ns / NS_PER_S;
    if (seconds >= 3600) {
        (void)snprintf(ret_text, PICTURE_TIME_SIZE, "%" PRId64 "h %02" PRId64 "m", seconds / 3600,
                       seconds / 60 % 60);
    } else if (seconds >= 60) {
        (void)snprintf(ret_text, PICTURE_TIME_SIZE, "%" PRId64 "m %02" PRId64 "s", seconds / 60,
                       seconds % 60);
    } else if (seconds >= 1) {
        (void)snprintf(ret_text, PICTURE_TIME_SIZE, "%" PRId64 ".%" PRId64 "s", seconds,
                       ns % NS_PER_S / (NS_PER_S / 10));
    } else if (ns >= NS_PER_MS || ns <= 0) {
        (void)snprintf(ret_text, PICTURE_TIME_SIZE, "%" PRId64 "ms", ns / NS_PER_MS);
    } else {
        (void)snprintf(ret_text, PICTURE_TIME_SIZE, "%" PRId64 "us", ns / 1000);
    }
}

void picture_time_text(const struct picture *picture, int64_t ticks,
                       char ret_text[PICTURE_TIME_SIZE])
{
    if (picture->tick > 0) {
        (void)snprintf(ret_text, PICTURE_TIME_SIZE, "%.4g%.20s", (double)ticks * picture->tick,
                       picture->unit);
    } else {
        write_ns(ticks, ret_text);
    }
}
