#include "tests/support/page.h"

#include "base/problem.h"
#include "runtime/files.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_BYTES_MAX = 1 << 20 };

char *page_read(const char *name)
{
    char path[512];
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct problem problem;
    (void)snprintf(path, sizeof path, "%s/%s", BOURSE_SOURCE_DIR, name);
    ck_assert_msg(file_read(path, PAGE_BYTES_MAX, &bytes, &length, &problem), "%s", problem.text);
    return (char *)bytes;
}

/* Returns true when the line is `indent` blanks and then `text`. */
static bool line_is(const char *line, size_t indent, const char *text)
{
    const size_t length = strlen(text);
    return strspn(line, " ") == indent && strncmp(line + indent, text, length) == 0 &&
           (line[indent + length] == '\n' || line[indent + length] == '\0');
}

/* Returns the line after this one, or NULL at the end of the page. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end == NULL || end[1] == '\0' ? NULL : end + 1;
}

const char *page_example(const char *from, const char *opening, const char *closing,
                         char ret_example[PAGE_EXAMPLE_SIZE])
{
    const char *line = from;
    size_t length = 0;
    while (line != NULL && !line_is(line, strspn(line, " "), opening)) {
        line = next_line(line);
    }
    if (line == NULL) {
        return NULL;
    }
    const size_t indent = strspn(line, " ");
    for (line = next_line(line); line != NULL && !line_is(line, indent, closing);
         line = next_line(line)) {
        const size_t size = strcspn(line, "\n") + 1;
        ck_assert_msg(size == 1 || strspn(line, " ") >= indent, "%.*s", (int)size, line);
        const size_t kept = size == 1 ? 1 : size - indent;
        ck_assert_uint_lt(length + kept, PAGE_EXAMPLE_SIZE);
        memcpy(ret_example + length, line + size - kept, kept);
        length += kept;
    }
    ck_assert_msg(line != NULL, "an example behind %s does not end", opening);
    ret_example[length] = '\0';
    return line;
}
