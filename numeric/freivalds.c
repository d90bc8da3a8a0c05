#include "numeric/freivalds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = PRECISION_SIDE, DEPTH = FREIVALDS_SAMPLE_DEPTH };

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t freivalds_bytes(uint64_t inner, uint64_t columns, uint32_t width)
{
    return (inner * (width + 1) + columns * width) * sizeof(double) + columns * sizeof(bool);
}

bool freivalds_init(struct freivalds *check, const struct freivalds_source *source, uint32_t width)
{
    assert(width >= 1 && width <= FREIVALDS_WIDTH_MOST);
    assert(source->block_elements >= SIDE);
    *check = (struct freivalds){.source = source,
                                .width = width,
                                .signs = calloc(source->columns + 1, width * sizeof(double)),
                                .products = calloc(source->inner + 1, width * sizeof(double)),
                                .b_sums = calloc(source->inner + 1, sizeof(double)),
                                .odd_columns = calloc(source->columns + 1, sizeof(bool))};
    return check->signs != NULL && check->products != NULL && check->b_sums != NULL &&
           check->odd_columns != NULL;
}

void freivalds_fini(struct freivalds *check)
{
    free(check->signs);
    free(check->products);
    free(check->b_sums);
    free(check->odd_columns);
}

/* ---------------------------------------------------------------- matrices, a block at a time */

/* A visitor gets the blocks of a region, row after row. Returns false when a read fails. */
typedef bool block_visitor(void *context, const struct freivalds_block *block,
                           const struct freivalds_view *view);

static bool visit(const struct freivalds_source *source, const struct freivalds_block *region,
                  block_visitor *visitor, void *context)
{
    if (region->rows == 0 || region->columns == 0) {
        return true;
    }
    const uint64_t width = least(region->columns, source->block_elements);
    const uint64_t together = source->block_elements / width; /* short rows, at a time */
    const uint64_t end_row = region->row + region->rows;
    const uint64_t end_column = region->column + region->columns;
    for (uint64_t row = region->row; row < end_row; row += least(together, end_row - row)) {
        for (uint64_t column = region->column; column < end_column;
             column += least(width, end_column - column)) {
            const struct freivalds_block block = {.matrix = region->matrix,
                                                  .row = row,
                                                  .column = column,
                                                  .rows = least(together, end_row - row),
                                                  .columns = least(width, end_column - column)};
            struct freivalds_view view;
            if (!source->read(source->context, &block, &view) || !visitor(context, &block, &view)) {
                return false;
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- vectors */

static inline void add_wide(const float *elements, const double *vectors, uint64_t count,
                            uint32_t width, double *sums)
{
    double local[FREIVALDS_WIDTH_MOST];
    for (uint32_t t = 0; t < width; t++) {
        local[t] = sums[t];
    }
    for (uint64_t j = 0; j < count; j++) {
        const double element = (double)elements[j];
        for (uint32_t t = 0; t < width; t++) {
            local[t] += element * vectors[j * width + t];
        }
    }
    for (uint32_t t = 0; t < width; t++) {
        sums[t] = local[t];
    }
}

/* Adds elements . vector t to sums[t]. For the callers' two widths, the compiler keeps the sums in
 * registers. */
static void add_products(const float *elements, const double *vectors, uint64_t count,
                         uint32_t width, double *sums)
{
    switch (width) {
    case 8:
        add_wide(elements, vectors, count, 8, sums);
        break;
    case 20:
        add_wide(elements, vectors, count, 20, sums);
        break;
    default:
        add_wide(elements, vectors, count, width, sums);
        break;
    }
}

struct stretch { /* columns of a block, in sequence */
    uint64_t from, count;
};

/* Moves on to the next stretch of the block without odd columns. Returns false after the last. */
static bool next_even(const struct freivalds *check, const struct freivalds_block *block,
                      struct stretch *stretch)
{
    const bool *odd = check->odd_columns + block->column;
    stretch->from += stretch->count;
    if (!check->has_odd_columns) {
        stretch->count = block->columns - stretch->from;
        return stretch->count > 0;
    }
    while (stretch->from < block->columns && odd[stretch->from]) {
        stretch->from++;
    }
    stretch->count = 0;
    while (stretch->from + stretch->count < block->columns &&
           !odd[stretch->from + stretch->count]) {
        stretch->count++;
    }
    return stretch->count > 0;
}

static const double *signs_of(const struct freivalds *check, uint64_t column)
{
    return check->signs + column * check->width;
}

/* ---------------------------------------------------------------- B r */

static double magnitude_of(const float *elements, uint64_t count, double sum)
{
    for (uint64_t j = 0; j < count; j++) {
        sum += fabs((double)elements[j]);
    }
    return sum;
}

static void note_odd(struct freivalds *check, uint64_t column, const float *elements,
                     uint64_t count)
{
    for (uint64_t j = 0; j < count; j++) {
        check->odd_columns[column + j] = check->odd_columns[column + j] || !isfinite(elements[j]);
    }
    check->has_odd_columns = true;
}

static bool take_b(void *context, const struct freivalds_block *block,
                   const struct freivalds_view *view)
{
    struct freivalds *check = context;
    for (uint64_t i = 0; i < block->rows; i++) {
        const uint64_t row = block->row + i;
        const float *elements = view->elements + i * view->stride;
        struct stretch at = {0, 0};
        while (next_even(check, block, &at)) {
            const uint64_t column = block->column + at.from;
            add_products(elements + at.from, signs_of(check, column), at.count, check->width,
                         check->products + row * check->width);
            if (check->has_b_sums) {
                continue;
            }
            check->b_sums[row] = magnitude_of(elements + at.from, at.count, check->b_sums[row]);
            if (!isfinite(check->b_sums[row])) {
                note_odd(check, column, elements + at.from, at.count);
            }
        }
    }
    return true;
}

static bool read_b(struct freivalds *check)
{
    const struct freivalds_source *source = check->source;
    const struct freivalds_block all = {
        .matrix = FREIVALDS_B, .rows = source->inner, .columns = source->columns};
    memset(check->products, 0, source->inner * check->width * sizeof(double));
    if (!check->has_b_sums) {
        memset(check->b_sums, 0, source->inner * sizeof(double));
    }
    return visit(source, &all, take_b, check);
}

bool freivalds_project(struct freivalds *check)
{
    const bool had_odd_columns = check->has_odd_columns;
    if (!read_b(check)) {
        return false;
    }
    /* The rows before an odd column was found contain it. */
    if (check->has_odd_columns && !had_odd_columns && !read_b(check)) {
        return false;
    }
    check->has_b_sums = true;
    return true;
}

/* ---------------------------------------------------------------- rows of A and C */

struct band { /* rows whose sums are computed together */
    const struct freivalds *check;
    unsigned what;
    uint64_t from;
    struct freivalds_row *rows;
};

static void bound_by_a(const float *elements, const double *b_sums, uint64_t count,
                       struct freivalds_row *row)
{
    double reach = row->reach;
    double sum = 0;
    for (uint64_t k = 0; k < count; k++) {
        const double magnitude = fabs((double)elements[k]);
        sum += magnitude;
        reach += magnitude * b_sums[k];
    }
    row->reach = reach;
    row->is_odd_a = row->is_odd_a || !isfinite(sum);
}

static bool take_a(void *context, const struct freivalds_block *block,
                   const struct freivalds_view *view)
{
    const struct band *band = context;
    const struct freivalds *check = band->check;
    for (uint64_t i = 0; i < block->rows; i++) {
        const float *elements = view->elements + i * view->stride;
        struct freivalds_row *row = &band->rows[block->row + i - band->from];
        if ((band->what & FREIVALDS_RESIDUALS) != 0) {
            add_products(elements, check->products + block->column * check->width, block->columns,
                         check->width, row->right);
        }
        if ((band->what & FREIVALDS_BOUNDS) != 0) {
            bound_by_a(elements, check->b_sums + block->column, block->columns, row);
        }
    }
    return true;
}

static void bound_by_c(const float *elements, uint64_t count, struct freivalds_row *row)
{
    double magnitude = row->magnitude;
    double squares = row->squares;
    for (uint64_t j = 0; j < count; j++) {
        const double element = (double)elements[j];
        magnitude += fabs(element);
        squares += element * element;
    }
    row->magnitude = magnitude;
    row->squares = squares;
    row->is_odd_c = !isfinite(squares);
}

static bool take_c(void *context, const struct freivalds_block *block,
                   const struct freivalds_view *view)
{
    const struct band *band = context;
    const struct freivalds *check = band->check;
    for (uint64_t i = 0; i < block->rows; i++) {
        const float *elements = view->elements + i * view->stride;
        struct freivalds_row *row = &band->rows[block->row + i - band->from];
        struct stretch at = {0, 0};
        while (next_even(check, block, &at)) {
            if ((band->what & FREIVALDS_RESIDUALS) != 0) {
                add_products(elements + at.from, signs_of(check, block->column + at.from), at.count,
                             check->width, row->left);
            }
            if ((band->what & FREIVALDS_BOUNDS) != 0) {
                bound_by_c(elements + at.from, at.count, row);
            }
        }
    }
    return true;
}

bool freivalds_sum_rows(const struct freivalds *check, unsigned what, uint64_t from, uint64_t to,
                        struct freivalds_row *ret_rows)
{
    const struct freivalds_source *source = check->source;
    struct band band = {.check = check, .what = what, .from = from, .rows = ret_rows};
    const struct freivalds_block of_a = {
        .matrix = FREIVALDS_A, .row = from, .rows = to - from, .columns = source->inner};
    const struct freivalds_block of_c = {
        .matrix = FREIVALDS_C, .row = from, .rows = to - from, .columns = source->columns};
    assert(check->has_b_sums && from <= to && to <= source->rows);
    memset(ret_rows, 0, (to - from) * sizeof *ret_rows);
    return visit(source, &of_a, take_a, &band) && visit(source, &of_c, take_c, &band);
}

struct residual_bounds freivalds_bounds(const struct freivalds *check,
                                        const struct freivalds_row *row)
{
    return residual_bounds(&(struct residual_row){.inner = check->source->inner,
                                                  .columns = check->source->columns,
                                                  .reach = row->reach,
                                                  .magnitude = row->magnitude,
                                                  .squares = row->squares});
}

double freivalds_residual(const struct freivalds_row *row, uint32_t vector)
{
    return fabs(row->left[vector] - row->right[vector]);
}

/* ---------------------------------------------------------------- entries */

struct recomputation {
    const struct freivalds_source *source;
    const struct freivalds_entries *entries;
    float *plain; /* NULL: in double */
};

static void add_plainly(float factor, const float *elements, uint64_t count, float *sums)
{
    for (uint64_t j = 0; j < count; j++) {
        sums[j] += factor * elements[j];
    }
}

/* Adds the terms of a block of B to the entries. Its factors are a part of each row of A. */
static bool take_terms(void *context, const struct freivalds_block *block,
                       const struct freivalds_view *view)
{
    const struct recomputation *work = context;
    const struct freivalds_entries *entries = work->entries;
    for (size_t i = 0; i < entries->row_count; i++) {
        const struct freivalds_block of_a = {.matrix = FREIVALDS_A,
                                             .row = entries->rows[i],
                                             .column = block->row,
                                             .rows = 1,
                                             .columns = block->rows};
        const size_t at = i * entries->count + (block->column - entries->column);
        struct freivalds_view factors;
        if (!work->source->read(work->source->context, &of_a, &factors)) {
            return false;
        }
        for (uint64_t k = 0; k < block->rows; k++) {
            const float *elements = view->elements + k * view->stride;
            if (work->plain != NULL) {
                add_plainly(factors.elements[k], elements, block->columns, work->plain + at);
            } else {
                residual_add_terms(factors.elements[k], elements, block->columns,
                                   entries->plus + at, entries->minus + at);
            }
        }
    }
    return true;
}

static bool add_terms(struct recomputation *work)
{
    const struct freivalds_block of_b = {.matrix = FREIVALDS_B,
                                         .column = work->entries->column,
                                         .rows = work->source->inner,
                                         .columns = work->entries->count};
    return visit(work->source, &of_b, take_terms, work);
}

struct copy { /* a region and where its elements go */
    const struct freivalds_block *region;
    float *elements;
    uint64_t stride;
};

static bool take_copy(void *context, const struct freivalds_block *block,
                      const struct freivalds_view *view)
{
    const struct copy *copy = context;
    for (uint64_t i = 0; i < block->rows; i++) {
        float *row = copy->elements + (block->row + i - copy->region->row) * copy->stride;
        memcpy(row + (block->column - copy->region->column), view->elements + i * view->stride,
               block->columns * sizeof *row);
    }
    return true;
}

static bool copy_region(const struct freivalds_source *source, const struct freivalds_block *region,
                        float *ret_elements, uint64_t stride)
{
    struct copy copy = {.region = region, .elements = ret_elements, .stride = stride};
    return visit(source, region, take_copy, &copy);
}

bool freivalds_recompute(const struct freivalds_source *source,
                         const struct freivalds_entries *entries)
{
    struct recomputation work = {.source = source, .entries = entries};
    memset(entries->plus, 0, entries->row_count * entries->count * sizeof(double));
    memset(entries->minus, 0, entries->row_count * entries->count * sizeof(double));
    for (size_t i = 0; i < entries->row_count; i++) {
        const struct freivalds_block of_c = {.matrix = FREIVALDS_C,
                                             .row = entries->rows[i],
                                             .column = entries->column,
                                             .rows = 1,
                                             .columns = entries->count};
        if (!copy_region(source, &of_c, entries->found + i * entries->count, entries->count)) {
            return false;
        }
    }
    return add_terms(&work);
}

bool freivalds_recompute_plainly(const struct freivalds_source *source,
                                 const struct freivalds_entries *entries, float *ret_plain)
{
    struct recomputation work = {.source = source, .entries = entries, .plain = ret_plain};
    memset(ret_plain, 0, entries->row_count * entries->count * sizeof(float));
    return add_terms(&work);
}

/* ---------------------------------------------------------------- samples */

static bool are_finite(const float *elements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(elements[i])) {
            return false;
        }
    }
    return true;
}

/* Reads the sample's columns from `rows` rows of B or C, columns in sequence together. */
static bool read_columns(const struct freivalds_source *source, struct freivalds_sample *sample,
                         struct freivalds_block region, float *ret_elements)
{
    for (size_t at = 0; at < SIDE; at += region.columns) {
        region.column = sample->columns[at];
        region.columns = 1;
        while (at + region.columns < SIDE &&
               sample->columns[at + region.columns] == region.column + region.columns) {
            region.columns++;
        }
        if (!copy_region(source, &region, ret_elements + at, SIDE)) {
            return false;
        }
        for (uint64_t i = 0; i < region.rows; i++) {
            sample->is_odd =
                sample->is_odd || !are_finite(ret_elements + at + i * SIDE, region.columns);
        }
    }
    return true;
}

static bool read_found(const struct freivalds_source *source, struct freivalds_sample *sample)
{
    for (size_t i = 0; i < SIDE; i++) {
        const struct freivalds_block of_c = {
            .matrix = FREIVALDS_C, .row = sample->rows[i], .rows = 1};
        if (!read_columns(source, sample, of_c, sample->found[i])) {
            return false;
        }
    }
    return true;
}

static bool read_factors(const struct freivalds_source *source, struct freivalds_sample *sample,
                         uint64_t from, uint64_t depth)
{
    for (size_t i = 0; i < SIDE; i++) {
        const struct freivalds_block of_a = {.matrix = FREIVALDS_A,
                                             .row = sample->rows[i],
                                             .column = from,
                                             .rows = 1,
                                             .columns = depth};
        if (!copy_region(source, &of_a, sample->a[i], DEPTH)) {
            return false;
        }
        sample->is_odd = sample->is_odd || !are_finite(sample->a[i], depth);
    }
    const struct freivalds_block of_b = {.matrix = FREIVALDS_B, .row = from, .rows = depth};
    return read_columns(source, sample, of_b, sample->b[0]);
}

bool freivalds_take_sample(const struct freivalds_source *source, struct freivalds_sample *sample)
{
    memset(&sample->sums, 0, sizeof sample->sums);
    sample->is_odd = false;
    if (!read_found(source, sample)) {
        return false;
    }
    for (uint64_t from = 0; from < source->inner && !sample->is_odd; from += DEPTH) {
        const uint64_t depth = least(DEPTH, source->inner - from);
        if (!read_factors(source, sample, from, depth)) {
            return false;
        }
        for (uint64_t k = 0; k < depth && !sample->is_odd; k++) {
            float of_rows[SIDE];
            for (size_t i = 0; i < SIDE; i++) {
                of_rows[i] = sample->a[i][k];
            }
            precision_add(&sample->sums, of_rows, sample->b[k]);
        }
    }
    return true;
}
