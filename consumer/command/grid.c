#include "consumer/command/grid.h"

#include "base/array.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct grid grid_of(size_t columns, const char *const *titles, const char *right_columns)
{
    assert(columns <= GRID_COLUMNS_MAX);
    assert(strlen(right_columns) == columns); /* one 'l' or 'r' for each column */
    struct grid table = {.columns = columns};
    for (size_t i = 0; i < columns; i++) {
        table.titles[i] = titles[i];
        table.right[i] = right_columns[i] == 'r';
    }
    return table;
}

void grid_add(struct grid *table, const char *const *cells)
{
    void *grown =
        array_with_room(table->cells, table->rows, &table->capacity, table->columns * CELL_SIZE);
    if (grown == NULL) {
        return;
    }
    table->cells = grown;
    for (size_t i = 0; i < table->columns; i++) {
        text_printable(cells[i], strlen(cells[i]), table->cells[table->rows * table->columns + i],
                       CELL_SIZE);
    }
    table->rows++;
}

/* Counts characters by their first bytes; a wide one counts as one column. */
static int width_of(const char *text)
{
    int width = 0;
    for (const char *c = text; *c != '\0'; c++) {
        width += ((unsigned char)*c & 0xc0) != 0x80;
    }
    return width;
}

static void print_cell(FILE *to, const char *text, int width, bool right, bool last)
{
    int padding = width - width_of(text);
    if (right) {
        (void)fprintf(to, "%*s%s", padding, "", text);
    } else {
        (void)fprintf(to, "%s%*s", text, last ? 0 : padding, "");
    }
    (void)fputs(last ? "\n" : "  ", to);
}

void grid_print(const struct grid *table, FILE *to, bool color)
{
    int widths[GRID_COLUMNS_MAX];
    for (size_t i = 0; i < table->columns; i++) {
        widths[i] = width_of(table->titles[i]);
        for (size_t r = 0; r < table->rows; r++) {
            int width = width_of(table->cells[r * table->columns + i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    (void)fputs(color ? "\033[1m" : "", to);
    for (size_t i = 0; i < table->columns; i++) {
        print_cell(to, table->titles[i], widths[i], table->right[i], i + 1 == table->columns);
    }
    (void)fputs(color ? "\033[0m" : "", to);
    for (size_t r = 0; r < table->rows; r++) {
        for (size_t i = 0; i < table->columns; i++) {
            print_cell(to, table->cells[r * table->columns + i], widths[i], table->right[i],
                       i + 1 == table->columns);
        }
    }
}

void grid_fini(struct grid *table)
{
    free(table->cells);
    table->cells = NULL;
}
