/* base/problem.h - one line for a person: what is wrong, the limit, what to do next.
 *
 * Shells and file readers pass one along and fill it on failure; cores that talk to programs use status
 * enums instead. The text never holds raw bytes of a peer: run those through text_printable first. */
#ifndef BOURSE_BASE_PROBLEM_H
#define BOURSE_BASE_PROBLEM_H

#include <stdarg.h>
#include <stdio.h>

struct problem {
    char text[512];
};

__attribute__((format(printf, 2, 3))) static inline void problem_set(struct problem *problem,
                                                                     const char *format, ...)
{
    if (problem != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(problem->text, sizeof problem->text, format,
                        arguments); /* cut, never overrun */
        va_end(arguments);
    }
}

#endif
