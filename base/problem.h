/* base/problem.h carries one line that tells a person what is wrong, the limit, and what to do
 * next.
 *
 * Programs and file readers pass a problem along and fill it on failure. Pure rooms that answer
 * to programs use status enums instead. The text never holds raw bytes of a peer: pass those
 * through text_printable first. */
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
        /* The text is cut when it is too long. */
        (void)vsnprintf(problem->text, sizeof problem->text, format, arguments);
        va_end(arguments);
    }
}

/* Returns true when `error` is an errno by which a disk did not give or take bytes. Nothing is
 * known about the bytes then. */
static inline bool problem_is_of_disk(int error)
{
    return error == EIO || error == ENXIO || error == ENODATA || error == ESTALE ||
           error == ETIMEDOUT || error == EREMOTEIO;
}

/* The advice follows a read that the disk failed. Nothing is known to be damaged. The words suit a
 * start, a check and a restore alike. */
#define PROBLEM_TRY_AGAIN                                                                          \
    "Nothing was changed: try again before you turn to an older backup, and look at the disk if "  \
    "it goes on"

/* Returns what to add to a message about `error`: what the operator does after a disk's error. */
static inline const char *problem_advice(int error)
{
    return problem_is_of_disk(error) ? ". " PROBLEM_TRY_AGAIN : "";
}

/* Reports a read that failed. The read may succeed the next time, so the caller must not replace
 * or delete what it could not read. */
static inline void problem_set_unread(struct problem *problem, const char *what, int error)
{
    problem_set(problem, "%.250s cannot be read: %s%.100s%s%s", what,
                problem_is_of_disk(error) ? "the disk did not give it (" : "", strerror(error),
                problem_is_of_disk(error) ? ")" : "", problem_advice(error));
}

/* Reports that `what` could not be opened or looked at, and nothing was changed. `doing` is such as
 * ": cannot be opened". */
static inline void problem_set_unseen(struct problem *problem, const char *what, const char *doing,
                                      int error)
{
    problem_set(problem, "%.250s%s: %s%s", what, doing, strerror(error), problem_advice(error));
}

/* Returns true when the problem is that a disk did not give bytes: nothing is known to be wrong. */
static inline bool problem_is_unread(const struct problem *problem)
{
    return strstr(problem->text, PROBLEM_TRY_AGAIN) != NULL;
}

#endif
