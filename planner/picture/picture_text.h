/* The text of a picture grows as parts are added; this module also prints the few numbers in
 * pictures. The files of picture/ alone use it. */
#ifndef BOURSE_PLANNER_PICTURE_PICTURE_TEXT_H
#define BOURSE_PLANNER_PICTURE_PICTURE_TEXT_H

#include "planner/picture/picture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct picture_text {
    char *bytes; /* the caller owns them after picture_text_take */
    size_t length, capacity;
    bool failed; /* memory was short; then nothing more is added */
};
/* Adds at most 1,000 bytes. */
__attribute__((format(printf, 2, 3))) void picture_text_add(struct picture_text *text,
                                                            const char *format, ...);
/* Returns the text, or NULL when memory was short. */
char *picture_text_take(struct picture_text *text);

/* Writes a time of the picture, rounded down: 1h 02m, 3m 20s, 12.3s, 250ms, 80us if ticks are
 * nanoseconds. Otherwise it uses the picture's unit, as in 12.5ms. */
enum { PICTURE_TIME_SIZE = 48 };
void picture_time_text(const struct picture *picture, int64_t ticks,
                       char ret_text[PICTURE_TIME_SIZE]);

#endif
