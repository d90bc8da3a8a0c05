/* The table of docs/devices.md has every kind of device once, and every executor of the code. */
#include "base/device_kind.h"
#include "formats/requirement.h"

#include "tests/support/page.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 7, CELL_EXECUTORS = 3, EXECUTORS_MOST = 16 };
#define TITLES                                                                                     \
    "| kind | detected by | declared by | `executor` | executed by | tested on | never tried on |"

struct table {
    char *text; /* the page */
    char *rows; /* the first row; rows end with an empty line */
};

static struct table open_table(void)
{
    struct table table = {.text = page_read("docs/devices.md")};
    char *titles = strstr(table.text, TITLES "\n");
    ck_assert_msg(titles != NULL, "docs/devices.md has no table with the titles " TITLES);
    table.rows = strchr(strchr(titles, '\n') + 1, '\n') + 1;
    char *end = strstr(table.rows, "\n\n");
    ck_assert_ptr_nonnull(end);
    end[1] = '\0';
    return table;
}

/* Splits the row at `from` into its cells. Returns the next row, or NULL behind the last. */
static char *read_row(char *from, char *ret_cells[CELLS])
{
    char *end = strchr(from, '\n');
    if (from[0] != '|' || end == NULL) {
        return NULL;
    }
    *end = '\0';
    for (size_t i = 0; i < CELLS; i++) {
        ck_assert_msg(from[0] == '|', "a row has fewer than %d cells", CELLS);
        ret_cells[i] = from + 1;
        from = strchr(from + 1, '|');
        ck_assert_ptr_nonnull(from);
    }
    ck_assert_str_eq(from, "|");
    for (size_t i = 1; i < CELLS; i++) {
        ret_cells[i][-1] = '\0';
        ck_assert_msg(strlen(ret_cells[i]) > 2, "cell %zu of%s is empty", i, ret_cells[0]);
    }
    return end + 1;
}

START_TEST(every_kind_has_one_row_and_no_row_another)
{
    struct table table = open_table();
    char *cells[CELLS];
    size_t count;
    size_t rows = 0;
    const struct device_kind *kinds = device_kinds(&count);
    for (char *row = table.rows; (row = read_row(row, cells)) != NULL; rows++) {
        char wanted[64] = "";
        ck_assert_msg(rows < count, "a row too many:%s", cells[0]);
        (void)snprintf(wanted, sizeof wanted, " `%s` ", kinds[rows].name);
        char kind[64];
        (void)snprintf(kind, sizeof kind, "%s", cells[0]);
        kind[strcspn(kind, "|")] = '\0';
        ck_assert_str_eq(kind, wanted);
    }
    ck_assert_uint_eq(rows, count);
    free(table.text);
}
END_TEST

START_TEST(the_executors_are_those_of_the_code)
{
    struct table table = open_table();
    char *cells[CELLS];
    size_t count;
    bool is_named[EXECUTORS_MOST] = {false};
    const char *const *executors = requirement_executors(&count);
    ck_assert_uint_le(count, EXECUTORS_MOST);
    for (char *row = table.rows; (row = read_row(row, cells)) != NULL;) {
        char *rest = NULL;
        char *words = cells[CELL_EXECUTORS];
        size_t named = 0;
        for (char *word = strtok_r(words, " ,`", &rest); word != NULL;
             word = strtok_r(NULL, " ,`", &rest)) {
            size_t at = 0;
            while (at < count && strcmp(executors[at], word) != 0) {
                at++;
            }
            ck_assert_msg(at < count, "no executor is called \"%s\"", word);
            is_named[at] = true;
            named++;
        }
        ck_assert_uint_gt(named, 0);
    }
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(is_named[i], "no kind has the executor %s", executors[i]);
    }
    free(table.text);
}
END_TEST

SUITE("devices_page", NULL, NULL, TEST(every_kind_has_one_row_and_no_row_another),
      TEST(the_executors_are_those_of_the_code))
