/* This target reads units, ranges and templates. An accepted text is written again, and reads back
 * as the same number. */
#include "formats/range.h"
#include "formats/template.h"
#include "formats/units.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_numbers(const char *text)
{
    int64_t number;
    int64_t again;
    char written[UNITS_TEXT_SIZE];
    char explained[200];
    enum units_status status = units_duration(text, &number);
    if (status == UNITS_OK) {
        units_duration_text(number, written);
        assert(units_duration(written, &again) == UNITS_OK && again == number);
        units_duration_short(number, written);
        units_duration_near(number, written);
    } else {
        units_explain(UNITS_DURATION, status, text, explained, sizeof explained);
    }
    if (units_bytes(text, &number) == UNITS_OK) {
        units_text(UNITS_BYTES, number, written);
        assert(units_bytes(written, &again) == UNITS_OK && again == number);
        units_bytes_short(number, written);
    }
    if (units_money(text, &number) == UNITS_OK) {
        units_money_text(number, written);
        assert(units_money(written, &again) == UNITS_OK && again == number);
    }
    assert(units_count(text, &number) != UNITS_OK || number >= 0);
    for (enum units_kind kind = UNITS_BANDWIDTH; kind <= UNITS_OPS; kind++) {
        status = units_read(kind, text, &number);
        if (status == UNITS_OK) {
            units_text(kind, number, written);
            assert(units_read(kind, written, &again) == UNITS_OK && again == number);
            units_short(kind, number, written);
        } else {
            units_explain(kind, status, text, explained, sizeof explained);
        }
    }
}

static void check_range(const char *text)
{
    struct range range;
    if (range_parse(text, &range, NULL)) {
        int64_t count = range_count(&range);
        assert(count >= 1 && range_at(&range, count - 1) == range.last);
    }
}

static void check_template(const char *text)
{
    const struct template_values values = {.in = "a/b", .value = "a/b", .index = 7};
    char expanded[128];
    size_t length;
    bool good = template_check(text, TEMPLATE_ANY, NULL);
    enum template_status status =
        template_expand(text, &values, expanded, sizeof expanded, &length);
    assert(good == (template_size(text, &values) > 0));
    assert(good == (status != TEMPLATE_MALFORMED));
    assert(status != TEMPLATE_OK || strlen(expanded) == length);
    (void)template_path_safe(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    check_numbers(text);
    check_range(text);
    check_template(text);
    free(text);
    return 0;
}
