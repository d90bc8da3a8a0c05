/* The tests ask that the arithmetic of Freivalds' check does not depend on how its source cuts the
 * matrices into blocks, and that a read that fails ends it. */
#include "numeric/freivalds.h"
#include "tests/support/matrices.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 40, INNER = 300, COLUMNS = 45, ANEW = 3, FROM = 2, COUNT = 41 };

/* A source that copies each block, and frees the one before. */
struct matrices {
    float *elements[3]; /* by enum freivalds_matrix */
    float *blocks[3];
    uint64_t reads, reads_most;
    struct freivalds_source source;
};

static bool read_block(void *context, const struct freivalds_block *block,
                       struct freivalds_view *ret_view)
{
    struct matrices *matrices = context;
    const struct freivalds_source *source = &matrices->source;
    const uint64_t columns = block->matrix == FREIVALDS_A ? source->inner : source->columns;
    const uint64_t rows = block->matrix == FREIVALDS_B ? source->inner : source->rows;
    ck_assert(block->rows >= 1 && block->columns >= 1);
    ck_assert(block->row + block->rows <= rows && block->column + block->columns <= columns);
    ck_assert_uint_le(block->rows * block->columns, source->block_elements);
    if (matrices->reads++ >= matrices->reads_most) {
        return false;
    }
    float *copy = malloc(block->rows * block->columns * sizeof *copy);
    ck_assert_ptr_nonnull(copy);
    for (uint64_t i = 0; i < block->rows; i++) {
        memcpy(copy + i * block->columns,
               matrices->elements[block->matrix] + (block->row + i) * columns + block->column,
               block->columns * sizeof *copy);
    }
    free(matrices->blocks[block->matrix]);
    matrices->blocks[block->matrix] = copy;
    *ret_view = (struct freivalds_view){.elements = copy, .stride = block->columns};
    return true;
}

static void matrices_init(struct matrices *matrices)
{
    state = 1; /* of the draws */
    *matrices = (struct matrices){
        .elements = {drawn(ROWS * INNER), drawn(INNER * COLUMNS), drawn(ROWS * COLUMNS)},
        .reads_most = UINT64_MAX,
        .source = {.rows = ROWS,
                   .inner = INNER,
                   .columns = COLUMNS,
                   .block_elements = UINT64_MAX,
                   .read = read_block,
                   .context = matrices}};
}

static void matrices_fini(struct matrices *matrices)
{
    for (size_t i = 0; i < 3; i++) {
        free(matrices->elements[i]);
        free(matrices->blocks[i]);
    }
}

/* All that the arithmetic yields. */
struct yield {
    double products[INNER * FREIVALDS_WIDTH_MOST], b_sums[INNER];
    bool odd_columns[COLUMNS];
    double left[ROWS * FREIVALDS_WIDTH_MOST], right[ROWS * FREIVALDS_WIDTH_MOST];
    struct freivalds_row rows[ROWS];
    float found[ANEW * COUNT], plain[ANEW * COUNT];
    double plus[ANEW * COUNT], minus[ANEW * COUNT];
    struct precision_sample sums;
    float sample[PRECISION_SIDE][PRECISION_SIDE];
};

static bool compute_entries(const struct matrices *matrices, struct yield *ret_yield)
{
    static const uint64_t rows[ANEW] = {17, 3, ROWS - 1};
    const struct freivalds_entries entries = {.rows = rows,
                                              .row_count = ANEW,
                                              .column = FROM,
                                              .count = COUNT,
                                              .found = ret_yield->found,
                                              .plus = ret_yield->plus,
                                              .minus = ret_yield->minus};
    return freivalds_recompute(&matrices->source, &entries) &&
           freivalds_recompute_plainly(&matrices->source, &entries, ret_yield->plain);
}

/* The columns of the sample are partly in sequence. */
static bool compute_sample(const struct matrices *matrices, struct yield *ret_yield)
{
    struct freivalds_sample *sample = calloc(1, sizeof *sample);
    ck_assert_ptr_nonnull(sample);
    for (uint64_t i = 0; i < PRECISION_SIDE; i++) {
        sample->rows[i] = PRECISION_SIDE - i;
        sample->columns[i] = i < PRECISION_SIDE / 2 ? i : COLUMNS + PRECISION_SIDE / 2 - 1 - i;
    }
    const bool is_read = freivalds_take_sample(&matrices->source, sample);
    if (is_read) {
        memcpy(&ret_yield->sums, &sample->sums, sizeof sample->sums);
        memcpy(ret_yield->sample, sample->found, sizeof sample->found);
    }
    free(sample);
    return is_read;
}

static void draw_vectors(struct freivalds *check)
{
    for (size_t i = 0; i < (size_t)COLUMNS * check->width; i++) {
        check->signs[i] = i * i % 7 < 4 ? 1 : -1;
    }
}

static bool sum_rows(const struct freivalds *check, uint64_t from, uint64_t to,
                     struct yield *ret_yield)
{
    const struct freivalds_sums sums = {.left = ret_yield->left + from * check->width,
                                        .right = ret_yield->right + from * check->width,
                                        .rows = ret_yield->rows + from};
    return freivalds_sum_rows(check, from, to, &sums);
}

/* Returns false when a read fails. */
static bool compute(const struct matrices *matrices, uint32_t width, struct yield **ret_yield)
{
    struct freivalds check;
    struct yield *yield = calloc(1, sizeof *yield);
    ck_assert_ptr_nonnull(yield);
    ck_assert(freivalds_init(&check, &matrices->source, width));
    draw_vectors(&check);
    const bool is_read = freivalds_project(&check) && sum_rows(&check, 0, 7, yield) &&
                         sum_rows(&check, 7, ROWS, yield) && compute_entries(matrices, yield) &&
                         compute_sample(matrices, yield);
    memcpy(yield->products, check.products, (size_t)INNER * width * sizeof(double));
    memcpy(yield->b_sums, check.b_sums, sizeof yield->b_sums);
    memcpy(yield->odd_columns, check.odd_columns, sizeof yield->odd_columns);
    freivalds_fini(&check);
    *ret_yield = yield;
    return is_read;
}

static void spoil(struct matrices *matrices)
{
    matrices->elements[FREIVALDS_A][5 * INNER + 77] = INFINITY;
    matrices->elements[FREIVALDS_B][200 * COLUMNS + 16] = NAN;
    matrices->elements[FREIVALDS_B][201 * COLUMNS] = -INFINITY;
    matrices->elements[FREIVALDS_C][6 * COLUMNS + 20] = NAN;
    matrices->elements[FREIVALDS_C][7 * COLUMNS + 16] = NAN; /* in an odd column */
}

START_TEST(blocks_of_any_size_give_the_same_bytes)
{
    static const uint64_t sizes[] = {32, 44, 45, 46, 90, 299, 1000, 13500};
    static const uint32_t widths[] = {1, 3, 8, 20};
    struct matrices matrices;
    matrices_init(&matrices);
    if (_i == 1) {
        spoil(&matrices);
    }
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct yield *expected;
        matrices.source.block_elements = UINT64_MAX;
        ck_assert(compute(&matrices, widths[w], &expected));
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            struct yield *found;
            matrices.source.block_elements = sizes[s];
            ck_assert(compute(&matrices, widths[w], &found));
            ck_assert_mem_eq(found, expected, sizeof *found);
            free(found);
        }
        free(expected);
    }
    matrices_fini(&matrices);
}
END_TEST

/* The sums are those of their definitions, term after term. */
START_TEST(each_sum_is_its_definition)
{
    enum { WIDTH = 8, T = 5, I = 9 };
    struct matrices matrices;
    struct freivalds check;
    struct freivalds_row row;
    double lefts[WIDTH];
    double rights[WIDTH];
    matrices_init(&matrices);
    if (_i == 1) {
        spoil(&matrices);
    }
    ck_assert(freivalds_init(&check, &matrices.source, WIDTH));
    draw_vectors(&check);
    ck_assert(freivalds_project(&check));
    const struct freivalds_sums sums = {.left = lefts, .right = rights, .rows = &row};
    ck_assert(freivalds_sum_rows(&check, I, I + 1, &sums));
    double left = 0;
    double right = 0;
    double reach = 0;
    double magnitude = 0;
    double squares = 0;
    for (size_t k = 0; k < INNER; k++) {
        const double factor = (double)matrices.elements[FREIVALDS_A][I * INNER + k];
        double product = 0;
        double sum = 0;
        for (size_t j = 0; j < COLUMNS; j++) {
            if (_i == 0 || (j != 16 && j != 0)) {
                const double element = (double)matrices.elements[FREIVALDS_B][k * COLUMNS + j];
                product += element * check.signs[j * WIDTH + T];
                sum += fabs(element);
            }
        }
        right += factor * product;
        reach += fabs(factor) * sum;
    }
    for (size_t j = 0; j < COLUMNS; j++) {
        ck_assert(check.odd_columns[j] == (_i == 1 && (j == 16 || j == 0)));
        if (!check.odd_columns[j]) {
            const double element = (double)matrices.elements[FREIVALDS_C][I * COLUMNS + j];
            left += element * check.signs[j * WIDTH + T];
            magnitude += fabs(element);
            squares += element * element;
        }
    }
    ck_assert(lefts[T] == left && rights[T] == right && row.reach == reach);
    ck_assert(row.magnitude == magnitude && row.squares == squares);
    ck_assert(!row.is_odd_a && !row.is_odd_c);
    freivalds_fini(&check);
    matrices_fini(&matrices);
}
END_TEST

START_TEST(rows_that_are_not_finite_are_odd)
{
    struct matrices matrices;
    struct yield *yield;
    matrices_init(&matrices);
    spoil(&matrices);
    ck_assert(compute(&matrices, 8, &yield));
    for (size_t i = 0; i < ROWS; i++) {
        ck_assert(yield->rows[i].is_odd_a == (i == 5));
        ck_assert(yield->rows[i].is_odd_c == (i == 6)); /* the NaN of row 7 is in an odd column */
    }
    free(yield);
    matrices_fini(&matrices);
}
END_TEST

START_TEST(a_sample_that_is_not_finite_is_odd)
{
    static const size_t places[3] = {3 * INNER + 299, 299 * COLUMNS + 3, 3 * COLUMNS + 3};
    struct freivalds_sample *sample = calloc(1, sizeof *sample);
    ck_assert_ptr_nonnull(sample);
    for (uint64_t i = 0; i < PRECISION_SIDE; i++) {
        sample->rows[i] = sample->columns[i] = i;
    }
    for (size_t matrix = 0; matrix < 3; matrix++) {
        struct matrices matrices;
        matrices_init(&matrices);
        ck_assert(freivalds_take_sample(&matrices.source, sample));
        ck_assert(!sample->is_odd);
        matrices.elements[matrix][places[matrix]] = NAN;
        ck_assert(freivalds_take_sample(&matrices.source, sample));
        ck_assert(sample->is_odd);
        matrices_fini(&matrices);
    }
    free(sample);
}
END_TEST

START_TEST(each_read_that_fails_ends_the_check)
{
    struct matrices matrices;
    struct yield *yield;
    matrices_init(&matrices);
    spoil(&matrices); /* B is read a second time */
    matrices.source.block_elements = 4000;
    ck_assert(compute(&matrices, 8, &yield));
    free(yield);
    const uint64_t reads = matrices.reads;
    ck_assert_uint_gt(reads, 50);
    for (uint64_t most = 0; most <= reads; most++) {
        matrices.reads = 0;
        matrices.reads_most = most;
        ck_assert(compute(&matrices, 8, &yield) == (most == reads));
        ck_assert_uint_eq(matrices.reads, most < reads ? most + 1 : reads); /* none after it */
        free(yield);
    }
    matrices_fini(&matrices);
}
END_TEST

SUITE("freivalds", NULL, NULL, LOOP(blocks_of_any_size_give_the_same_bytes, 0, 2),
      LOOP(each_sum_is_its_definition, 0, 2), TEST(rows_that_are_not_finite_are_odd),
      TEST(a_sample_that_is_not_finite_is_odd), TEST(each_read_that_fails_ends_the_check))
