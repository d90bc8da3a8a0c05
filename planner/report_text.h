/* planner/report_text.h - text that grows, and the few numbers that reports print. Of the report's own files. Pure. */
#ifndef BOURSE_PLANNER_REPORT_TEXT_H
#define BOURSE_PLANNER_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report_text {
    char *bytes; /* the caller's in the end */
    size_t length, capacity;
    bool failed; /* without memory; then nothing is added any more */
};
/* Adds at most 1,000 bytes. */
__attribute__((format(printf, 2, 3))) void report_text_add(struct report_text *text,
                                                           const char *format, ...);
/* The text, or NULL when memory was short. */
char *report_text_take(struct report_text *text);

/* 1h 02m, 3m 20s, 12.3s, 250ms, 80us; rounded down. */
enum { REPORT_TIME_SIZE = 32 };
void report_time_text(int64_t ns, char ret_text[REPORT_TIME_SIZE]);

#endif
