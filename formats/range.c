#include "formats/range.h"

#include "base/text.h"
#include "formats/limits.h"
#include "formats/units.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Reads a number at the front of *text, up to `stop` or the end, and moves *text behind the
 * stop. Returns false when there is no number. *ret_stopped says whether the stop was there. */
static bool cut_number(const char **text, char stop, int64_t *ret_number, bool *ret_stopped)
{
    char digits[FORMAT_UNIT_BYTES + 1];
    const char *end = strchr(*text, stop);
    size_t length = end != NULL ? (size_t)(end - *text) : strlen(*text);
    if (length > FORMAT_UNIT_BYTES) {
        return false;
    }
    memcpy(digits, *text, length);
    digits[length] = '\0';
    if (units_count(digits, ret_number) != UNITS_OK) {
        return false;
    }
    *ret_stopped = end != NULL;
    *text += length + (end != NULL);
    return true;
}

static bool parse(const char *text, struct range *ret_range)
{
    bool more;
    struct range range = {.step = 1};
    if (!cut_number(&text, '-', &range.first, &more)) {
        return false;
    }
    range.last = range.first;
    if (more && !cut_number(&text, ':', &range.last, &more)) {
        return false;
    }
    if (more && (!cut_number(&text, '\0', &range.step, &more) || range.step == 0)) {
        return false;
    }
    *ret_range = range;
    return true;
}

bool range_parse(const char *text, struct range *ret_range, struct problem *ret_problem)
{
    char shown[FORMAT_UNIT_BYTES + 1];
    text_printable(text, strlen(text), shown, sizeof shown);
    struct range range;
    if (!parse(text, &range)) {
        problem_set(ret_problem, "\"%s\" is not a range; write for example 1-100 or 0-100:25",
                    shown);
        return false;
    }
    if (range.last < range.first) {
        problem_set(ret_problem, "the range \"%s\" runs backwards; write the smaller number first",
                    shown);
        return false;
    }
    range.last -= (range.last - range.first) % range.step;
    if ((range.last - range.first) / range.step >= FORMAT_SUBTASKS) {
        problem_set(ret_problem, "the range \"%s\" has more than %d numbers", shown,
                    FORMAT_SUBTASKS);
        return false;
    }
    *ret_range = range;
    return true;
}

int64_t range_count(const struct range *range)
{
    return (range->last - range->first) / range->step + 1;
}

int64_t range_at(const struct range *range, int64_t index)
{
    assert(index >= 0 && index < range_count(range));
    return range->first + index * range->step;
}
