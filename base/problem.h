/* base/problem.h - one line for a person: what is wrong, the limit, what to do next.
 *
 * Shells and file readers pass one along and fill it on failure; cores that talk to programs use
 * status enums instead. The text never holds raw bytes of a peer: run those through text_printable
 * first. */
#ifndef BOURSE_BASE_PROBLEM_H
#define BOURSE_BASE_PROBLEM_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

/* Whether that errno says that a disk did not give or take bytes: nothing is known of the bytes. */
static inline bool problem_is_of_disk(int error)
{
    return error == EIO || error == ENXIO || error == ENODATA || error == ESTALE ||
           error == ETIMEDOUT || error == EREMOTEIO;
}

/* A read that failed is no finding: it may succeed the next time, so nobody shall replace or delete
 * what was not read. */
static inline void problem_set_unread(struct problem *problem, const char *what, int error)
{
    problem_set(problem, "%.250s cannot be read: %s%.100s%s", what,
                problem_is_of_disk(error) ? "the disk did not give it (" : "", strerror(error),
                problem_is_of_disk(error)
                    ? "). Nothing was changed: try again, and look at the disk if it goes on"
                    : "");
}

#endif
