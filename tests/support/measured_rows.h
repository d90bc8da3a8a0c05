/* tests/support/measured_rows.h counts and finds the rows of what work was measured to take. One
 * program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_MEASURED_ROWS_H
#define BOURSE_TESTS_SUPPORT_MEASURED_ROWS_H

#include "broker/answer/measured.h"

#include <check.h>

static inline bool count_row(void *context, const struct measured_row *row)
{
    (void)row;
    (*(size_t *)context)++;
    return true;
}

static inline size_t count_rows(const struct measured *measured)
{
    size_t count = 0;
    ck_assert(measured_each(measured, NULL, count_row, &count));
    return count;
}

static inline bool copy_row(void *context, const struct measured_row *row)
{
    *(struct measured_row *)context = *row;
    return true;
}

/* Returns the one row of a name; its count is 0 when there is none. */
static inline struct measured_row row_of(const struct measured *measured, const struct work *work)
{
    struct measured_row row = {.at_ns = 0};
    (void)measured_each(measured, &work->name, copy_row, &row);
    return row;
}

#endif
