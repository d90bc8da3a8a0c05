/* planner/picture/picture_text.h - text that grows, and the few numbers that pictures print. Of the
 * pictures' own files. Pure. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_TEXT_H
#define BOURSE_PLANNER_PICTURE_PICTURE_TEXT_H

#include "planner/picture/picture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct picture_text {
    char *bytes; /* the caller's in the end */
    size_t length, capacity;
    bool failed; /* without memory; then nothing is added any more */
};
/* Adds at most 1,000 bytes. */
__attribute__((format(printf, 2, 3))) void picture_text_add(struct picture_text *text,
                                                            const char *format, ...);
/* The text, or NULL when memory was short. */
char *picture_text_take(struct picture_text *text);

/* A time of the picture: 1h 02m, 3m 20s, 12.3s, 250ms, 80us, rounded down, where ticks are
 * nanoseconds; else 12.5ms, by its unit. */
enum { PICTURE_TIME_SIZE = 48 };
void picture_time_text(const struct picture *picture, int64_t ticks,
                       char ret_text[PICTURE_TIME_SIZE]);

#endif
