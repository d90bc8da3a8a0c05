/* consumer/command/grid.h prints tables for people. Every cell passes text_printable, because its
 * text may come from another account. */
#ifndef BOURSE_CONSUMER_COMMAND_GRID_H
#define BOURSE_CONSUMER_COMMAND_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { GRID_COLUMNS_MAX = 13, CELL_SIZE = 160 };

/* A grid holds rows of text and prints each column as wide as it needs. */
struct grid {
    size_t columns;
    const char *titles[GRID_COLUMNS_MAX];
    bool right[GRID_COLUMNS_MAX]; /* columns of numbers */
    char (*cells)[CELL_SIZE];
    size_t rows, capacity;
};
struct grid grid_of(size_t columns, const char *const *titles, const char *right_columns);
/* Appends a row; `cells` has one text per column. A row is left out when memory is short. */
void grid_add(struct grid *table, const char *const *cells);
void grid_print(const struct grid *table, FILE *to, bool color);
void grid_fini(struct grid *table);

#endif
