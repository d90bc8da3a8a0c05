#include "numeric/freivalds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = PRECISION_SIDE, DEPTH = FREIVALDS_SAMPLE_DEPTH };

/* The loop looks at all elements, so that it can look at several at once. */
static bool are_finite(const float *elements, uint64_t count)
{
    unsigned odd = 0;
    for (uint64_t i = 0; i < count; i++) {
        odd |= isfinite(elements[i]) ? 0U : 1U;
    }
    return odd == 0;
}

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

struct stretch { /* columns of a block, in sequence */
    uint64_t from, count;
};

/* Returns how many of the `count` columns come before the first whose `odd` is `sought`: 0 or 1. */
static uint64_t run_of(const bool *odd, uint64_t count, int sought)
{
    const bool *end = count == 0 ? NULL : memchr(odd, sought, count);
    return end == NULL ? count : (uint64_t)(end - odd);
}

/* Moves on to the next stretch of the block without odd columns. Returns false after the last. */
static bool next_even(const struct freivalds *check, const struct freivalds_block *block,
                      struct stretch *stretch)
{
    const bool *odd = check->odd_columns + block->column;
    stretch->from += stretch->count;
    stretch->count = block->columns - stretch->from;
    if (check->has_odd_columns) {
        stretch->from += run_of(odd + stretch->from, stretch->count, 0);
        stretch->count = run_of(odd + stretch->from, block->columns - stretch->from, 1);
    }
    return stretch->count > 0;
}

/* Adds elements . vector t to sums[t]. */
static inline void add_row(const float *elements, const double *vectors, uint64_t count,
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

struct products {          /* what a block is multiplied with, and where its rows are summed up */
    const double *vectors; /* from the block's first column on */
    double *sums;          /* for each row of the block and vector */
    bool skips_odd;
};

static inline void add_rows(const struct freivalds *check, const struct freivalds_block *block,
                            const struct freivalds_view *view, const struct products *products,
                            uint32_t width)
{
    for (uint64_t i = 0; i < block->rows; i++) {
        const float *elements = view->elements + i * view->stride;
        double *sums = products->sums + i * width;
        if (!products->skips_odd) {
            add_row(elements, products->vectors, block->columns, width, sums);
            continue;
        }
        struct stretch at = {0, 0};
        while (next_even(check, block, &at)) {
            add_row(elements + at.from, products->vectors + at.from * width, at.count, width, sums);
        }
    }
}

/* Multiplies a block with the vectors. For the callers' two widths, the compiler keeps the sums of
 * a row in registers. */
static void add_products(const struct freivalds *check, const struct freivalds_block *block,
                         const struct freivalds_view *view, const struct products *products)
{
    switch (check->width) {
    case 8:
        add_rows(check, block, view, products, 8);
        break;
    case 20:
        add_rows(check, block, view, products, 20);
        break;
    default:
        add_rows(check, block, view, products, check->width);
        break;
    }
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
    check->has_odd_columns = check->is_spoilt = true;
}

/* Adds up |B| 1, and finds the odd columns by it. Spoilt sums are computed again later. */
static void sum_b(struct freivalds *check, const struct freivalds_block *block,
                  const struct freivalds_view *view)
{
    for (uint64_t i = 0; i < block->rows; i++) {
        const float *elements = view->elements + i * view->stride;
        double *sum = &check->b_sums[block->row + i];
        struct stretch at = {0, 0};
        while (next_even(check, block, &at)) {
            if (!check->is_spoilt) {
                *sum = magnitude_of(elements + at.from, at.count, *sum);
            }
            if (check->is_spoilt ? !are_finite(elements + at.from, at.count) : !isfinite(*sum)) {
                note_odd(check, block->column + at.from, elements + at.from, at.count);
            }
        }
    }
}

static bool take_b(void *context, const struct freivalds_block *block,
                   const struct freivalds_view *view)
{
    struct freivalds *check = context;
    const struct products products = {.vectors = check->signs + block->column * check->width,
                                      .sums = check->products + block->row * check->width,
                                      .skips_odd = check->has_odd_columns};
    if (!check->is_spoilt) {
        add_products(check, block, view, &products);
    }
    if (!check->has_b_sums) {
        sum_b(check, block, view);
    }
    return true;
}

static bool read_b(struct freivalds *check)
{
    const struct freivalds_source *source = check->source;
    const struct freivalds_block all = {
        .matrix = FREIVALDS_B, .rows = source->inner, .columns = source->columns};
    check->is_spoilt = false;
    memset(check->products, 0, source->inner * check->width * sizeof(double));
    if (!check->has_b_sums) {
        memset(check->b_sums, 0, source->inner * sizeof(double));
    }
    return visit(source, &all, take_b, check);
}

bool freivalds_project(struct freivalds *check)
{
    if (!read_b(check) || (check->is_spoilt && !read_b(check))) {
        return false;
    }
    check->has_b_sums = true;
    return true;
}

/* ---------------------------------------------------------------- rows of A and C */

struct band { /* rows whose sums are computed together */
    const struct freivalds *check;
    const struct freivalds_sums *sums;
    uint64_t from;
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
    const uint64_t first = block->row - band->from;
    if (band->sums->right != NULL) {
        const struct products products = {.vectors = check->products + block->column * check->width,
                                          .sums = band->sums->right + first * check->width};
        add_products(check, block, view, &products);
    }
    for (uint64_t i = 0; band->sums->rows != NULL && i < block->rows; i++) {
        bound_by_a(view->elements + i * view->stride, check->b_sums + block->column, block->columns,
                   &band->sums->rows[first + i]);
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
    const uint64_t first = block->row - band->from;
    if (band->sums->left != NULL) {
        const struct products products = {.vectors = check->signs + block->column * check->width,
                                          .sums = band->sums->left + first * check->width,
                                          .skips_odd = check->has_odd_columns};
        add_products(check, block, view, &products);
    }
    for (uint64_t i = 0; band->sums->rows != NULL && i < block->rows; i++) {
        const float *elements = view->elements + i * view->stride;
        struct stretch at = {0, 0};
        while (next_even(check, block, &at)) {
            bound_by_c(elements + at.from, at.count, &band->sums->rows[first + i]);
        }
    }
    return true;
}

bool freivalds_sum_rows(const struct freivalds *check, uint64_t from, uint64_t to,
                        const struct freivalds_sums *sums)
{
    const struct freivalds_source *source = check->source;
    struct band band = {.check = check, .sums = sums, .from = from};
    const struct freivalds_block of_a = {
        .matrix = FREIVALDS_A, .row = from, .rows = to - from, .columns = source->inner};
    const struct freivalds_block of_c = {
        .matrix = FREIVALDS_C, .row = from, .rows = to - from, .columns = source->columns};
    const size_t bytes = (to - from) * check->width * sizeof(double);
    assert(check->has_b_sums && from <= to && to <= source->rows);
    if (sums->left != NULL) {
        memset(sums->left, 0, bytes);
    }
    if (sums->right != NULL) {
        memset(sums->right, 0, bytes);
    }
    if (sums->rows != NULL) {
        memset(sums->rows, 0, (to - from) * sizeof *sums->rows);
    }
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
