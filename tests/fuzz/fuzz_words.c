/* The small texts of options and files: values, moments, ranges, hours. What is taken is written
 * as a text that reads as the same; what is refused says why. */
#include "formats/hours_text.h"
#include "formats/moment.h"
#include "formats/range.h"
#include "formats/value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(const char *text)
{
    struct problem problem = {""};
    struct value value = {.micro = 0};
    struct value again = {.micro = -1};
    char written[VALUE_TEXT_SIZE];
    if (!value_parse(text, &value, &problem)) {
        assert(problem.text[0] != '\0');
        return;
    }
    value_text(&value, written);
    assert(value_parse(written, &again, &problem));
    assert(value.micro == again.micro && value.rate == again.rate);
}

static void check_range(const char *text)
{
    struct problem problem = {""};
    struct range range = {.first = 0};
    if (!range_parse(text, &range, &problem)) {
        assert(problem.text[0] != '\0');
        return;
    }
    assert(range_count(&range) >= 1 && range_at(&range, range_count(&range) - 1) == range.last);
}

static void check_hours(const char *text)
{
    struct problem problem = {""};
    struct hours_window window = {.days = 0};
    struct hours_window again = {.days = 0};
    char written[HOURS_TEXT_SIZE];
    int32_t offset_min = 0;
    if (hours_read_window(text, &window, &problem)) {
        hours_window_text(&window, written);
        assert(hours_read_window(written, &again, &problem));
        assert(window.days == again.days && window.from_min == again.from_min &&
               window.till_min == again.till_min);
    } else {
        assert(problem.text[0] != '\0');
    }
    if (hours_read_offset(text, &offset_min, &problem)) {
        hours_offset_text(offset_min, written);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    int64_t moment_ms = 0;
    assert(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    check_value(text);
    check_range(text);
    check_hours(text);
    (void)moment_is_meant(text);
    assert(!moment_read(text, &moment_ms) || moment_ms >= 0);
    free(text);
    return 0;
}
