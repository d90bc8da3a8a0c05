#include "consumer/product/freivalds.h"

#include "base/cleanup.h"
#include "base/precision.h"
#include "base/residual.h"
#include "planner/layout/split.h"
#include "runtime/entropy.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = FREIVALDS_ROUNDS,
    PIECE = 1 << 18, /* elements read at a time */
    ANEW = 8,        /* rows computed anew in one reading of B */
};

enum row_state { ROW_RIGHT, ROW_DOUBTFUL, ROW_STRANGE, ROW_WRONG }; /* strange: no residual */

struct check {
    const struct matrix *a, *b, *c;
    float *signs;      /* columns x ROUNDS; 0 for a column that is left out */
    bool *left_out;    /* columns of B with a NaN or an infinity */
    double *image;     /* B r: inner x ROUNDS */
    double *magnitude; /* |B| 1: inner */
    uint8_t *rows;     /* enum row_state */
    /* Largest doubtful residual of each row, relative to what right entries reach; or 0. */
    float *doubts;
    float *piece;
    bool has_left_out;
    struct problem *problem;
};

static void check_fini(struct check *check)
{
    free(check->signs);
    free(check->left_out);
    free(check->image);
    free(check->magnitude);
    free(check->rows);
    free(check->doubts);
    free(check->piece);
}

static bool check_init(struct check *check)
{
    size_t inner = (size_t)check->b->rows;
    size_t columns = (size_t)check->b->columns;
    check->signs = reallocarray(NULL, columns, ROUNDS * sizeof(float));
    check->left_out = calloc(columns, sizeof(bool));
    check->image = reallocarray(NULL, inner, ROUNDS * sizeof(double));
    check->magnitude = calloc(inner, sizeof(double));
    check->rows = calloc((size_t)check->c->rows, 1);
    check->doubts = calloc((size_t)check->c->rows, sizeof(float));
    check->piece = malloc(PIECE * sizeof(float));
    if (check->signs == NULL || check->left_out == NULL || check->image == NULL ||
        check->magnitude == NULL || check->rows == NULL || check->doubts == NULL ||
        check->piece == NULL) {
        problem_set(check->problem, "out of memory for checking the product");
        return false;
    }
    for (size_t j = 0; j < columns; j++) {
        uint64_t bits = entropy_u64();
        for (size_t t = 0; t < ROUNDS; t++) {
            check->signs[j * ROUNDS + t] = (bits >> t & 1) != 0 ? 1.0F : -1.0F;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- matrices, a piece at a time */

/* A visitor gets elements of one row from `column` on. */
typedef void row_visitor(void *context, uint64_t row, uint64_t column, const float *elements,
                         size_t count);

/* Visits every row of [from, to); short rows are read several at a time. */
static bool visit_rows(struct check *check, const struct matrix *matrix, uint64_t from, uint64_t to,
                       row_visitor *visitor, void *context)
{
    uint64_t columns = matrix->columns;
    uint64_t together = columns < PIECE ? PIECE / columns : 1;
    uint64_t width = columns < PIECE ? columns : PIECE;
    for (uint64_t row = from; row < to; row += together) {
        uint64_t rows = to - row < together ? to - row : together;
        for (uint64_t column = 0; column < columns; column += width) {
            struct matrix_block block = {
                .row = row, .column = column, .rows = rows, .columns = width};
            block.columns = columns - column < width ? columns - column : width;
            if (!matrix_read(matrix, &block, check->piece, check->problem)) {
                return false;
            }
            for (uint64_t i = 0; i < rows; i++) {
                visitor(context, row + i, column, check->piece + i * block.columns,
                        (size_t)block.columns);
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- B r */

/* The two functions compute ret_sums[t] += elements . vectors[.][t], for doubles and for floats. */
static void add_products(const float *elements, const double *vectors, size_t count,
                         double ret_sums[ROUNDS])
{
    double sums[ROUNDS];
    memcpy(sums, ret_sums, sizeof sums);
    for (size_t j = 0; j < count; j++) {
        double element = elements[j];
        for (size_t t = 0; t < ROUNDS; t++) {
            sums[t] += element * vectors[j * ROUNDS + t];
        }
    }
    memcpy(ret_sums, sums, sizeof sums);
}

static void add_signed(const float *elements, const float *signs, size_t count,
                       double ret_sums[ROUNDS])
{
    double sums[ROUNDS];
    memcpy(sums, ret_sums, sizeof sums);
    for (size_t j = 0; j < count; j++) {
        double element = elements[j];
        for (size_t t = 0; t < ROUNDS; t++) {
            sums[t] += element * (double)signs[j * ROUNDS + t];
        }
    }
    memcpy(ret_sums, sums, sizeof sums);
}

static void take_b(void *context, uint64_t row, uint64_t column, const float *elements,
                   size_t count)
{
    struct check *check = context;
    double sum = 0;
    add_signed(elements, check->signs + column * ROUNDS, count, check->image + row * ROUNDS);
    for (size_t j = 0; j < count; j++) {
        sum += fabs((double)elements[j]);
    }
    check->magnitude[row] += sum;
    if (!isfinite(sum)) {
        for (size_t j = 0; j < count; j++) {
            check->left_out[column + j] = check->left_out[column + j] || !isfinite(elements[j]);
        }
        check->has_left_out = true;
    }
}

/* Skips the columns that are left out, otherwise like take_b. */
static void take_rest_of_b(void *context, uint64_t row, uint64_t column, const float *elements,
                           size_t count)
{
    struct check *check = context;
    for (size_t j = 0; j < count; j++) {
        float element = check->left_out[column + j] ? 0 : elements[j];
        add_signed(&element, check->signs + (column + j) * ROUNDS, 1, check->image + row * ROUNDS);
        check->magnitude[row] += fabs((double)element);
    }
}

static bool project_b(struct check *check)
{
    size_t inner = (size_t)check->b->rows;
    memset(check->image, 0, inner * ROUNDS * sizeof(double));
    if (!visit_rows(check, check->b, 0, check->b->rows, take_b, check)) {
        return false;
    }
    if (!check->has_left_out) {
        return true;
    }
    memset(check->image, 0, inner * ROUNDS * sizeof(double));
    memset(check->magnitude, 0, inner * sizeof(double));
    return visit_rows(check, check->b, 0, check->b->rows, take_rest_of_b, check);
}

/* ---------------------------------------------------------------- residuals */

struct band { /* rows that are judged together */
    struct check *check;
    uint64_t from;
    struct row_sums {
        double left[ROUNDS];  /* C r */
        double right[ROUNDS]; /* A (B r) */
        double magnitude;     /* sum of |c| over the row of C */
        double squares;       /* sum of squares over the row of C */
        double reach;         /* (|A| (|B| 1))_i */
        bool is_strange;
    } * sums;
};

static void take_a(void *context, uint64_t row, uint64_t column, const float *elements,
                   size_t count)
{
    const struct band *band = context;
    struct row_sums *sums = &band->sums[row - band->from];
    double reach = 0;
    double sum = 0;
    add_products(elements, band->check->image + column * ROUNDS, count, sums->right);
    for (size_t k = 0; k < count; k++) {
        double magnitude = fabs((double)elements[k]);
        sum += magnitude;
        reach += magnitude * band->check->magnitude[column + k];
    }
    sums->reach += reach;
    sums->is_strange = sums->is_strange || !isfinite(sum);
}

static void take_c(void *context, uint64_t row, uint64_t column, const float *elements,
                   size_t count)
{
    const struct band *band = context;
    struct row_sums *sums = &band->sums[row - band->from];
    const bool *left_out = band->check->left_out + column;
    double magnitude = 0;
    double squares = 0;
    if (!band->check->has_left_out) {
        add_signed(elements, band->check->signs + column * ROUNDS, count, sums->left);
    }
    for (size_t j = 0; j < count; j++) {
        double element = left_out[j] ? 0 : elements[j];
        magnitude += fabs(element);
        squares += element * element;
        if (band->check->has_left_out) {
            float kept = left_out[j] ? 0 : elements[j];
            add_signed(&kept, band->check->signs + (column + j) * ROUNDS, 1, sums->left);
        }
    }
    sums->magnitude += magnitude;
    sums->squares += squares;
    sums->is_strange = sums->is_strange || !isfinite(squares);
}

static enum row_state judge(const struct check *check, const struct row_sums *sums,
                            float *ret_doubt)
{
    const struct residual_row row = {.inner = check->b->rows,
                                     .columns = check->b->columns,
                                     .reach = sums->reach,
                                     .magnitude = sums->magnitude,
                                     .squares = sums->squares};
    const struct residual_bounds bounds = residual_bounds(&row);
    enum row_state state = ROW_RIGHT;
    if (sums->is_strange) {
        return ROW_STRANGE;
    }
    for (size_t t = 0; t < ROUNDS; t++) {
        const double residual = fabs(sums->left[t] - sums->right[t]);
        switch (residual_judge(&bounds, residual)) {
        case RESIDUAL_RIGHT:
            break;
        case RESIDUAL_DOUBTFUL:
            state = ROW_DOUBTFUL;
            *ret_doubt = fmaxf(*ret_doubt, (float)(residual / bounds.close));
            break;
        case RESIDUAL_WRONG:
            return ROW_WRONG;
        }
    }
    return state;
}

static bool judge_rows(struct check *check, struct freivalds *verdict)
{
    enum { BAND = 256 };
    struct band band = {.check = check, .sums = calloc(BAND, sizeof *band.sums)};
    bool good = band.sums != NULL;
    if (!good) {
        problem_set(check->problem, "out of memory for checking the product");
    }
    for (uint64_t from = 0; good && from < check->c->rows; from += BAND) {
        uint64_t to = check->c->rows - from < BAND ? check->c->rows : from + BAND;
        band.from = from;
        memset(band.sums, 0, BAND * sizeof *band.sums);
        good = visit_rows(check, check->a, from, to, take_a, &band) &&
               visit_rows(check, check->c, from, to, take_c, &band);
        for (uint64_t row = from; good && row < to; row++) {
            enum row_state state = judge(check, &band.sums[row - from], &check->doubts[row]);
            check->rows[row] = (uint8_t)state;
            verdict->wrong_rows += state == ROW_WRONG;
            verdict->doubtful_rows += state == ROW_DOUBTFUL;
            verdict->unchecked_rows += state == ROW_STRANGE;
        }
    }
    free(band.sums);
    return good;
}

/* ---------------------------------------------------------------- rows anew */

struct anew { /* rows of C to compute in one reading of B */
    struct check *check;
    size_t count;
    uint64_t rows[ANEW];
    float *factors; /* rows of A: count x inner */
    float *found;   /* rows of C: count x columns */
    double *plus;   /* positive terms of each entry, in double */
    double *minus;  /* negative terms */
};

static void take_anew(void *context, uint64_t row, uint64_t column, const float *elements,
                      size_t count)
{
    const struct anew *anew = context;
    for (size_t i = 0; i < anew->count; i++) {
        const size_t at = i * anew->check->b->columns + column;
        residual_add_terms(anew->factors[i * anew->check->b->rows + row], elements, count,
                           anew->plus + at, anew->minus + at);
    }
}

static uint32_t block_of(uint64_t length, uint32_t blocks, uint64_t index)
{
    uint32_t at = (uint32_t)((double)index / (double)length * blocks); /* an estimate */
    at = at < blocks ? at : blocks - 1;
    while (split_edge(length, blocks, at) > index) {
        at--;
    }
    while (split_edge(length, blocks, at + 1) <= index) {
        at++;
    }
    return at;
}

static void name_tile(struct freivalds *verdict, const struct freivalds_tile *tile)
{
    size_t named =
        verdict->wrong_tiles < FREIVALDS_NAMED ? (size_t)verdict->wrong_tiles : FREIVALDS_NAMED;
    for (size_t i = 0; i < named; i++) {
        if (verdict->tiles[i].row == tile->row && verdict->tiles[i].column == tile->column) {
            return;
        }
    }
    if (named < FREIVALDS_NAMED) {
        verdict->tiles[named] = *tile;
    }
    verdict->wrong_tiles++;
}

/* Compares one row, and returns true when it is right. */
static bool compare(const struct anew *anew, size_t index, const struct freivalds_grid *grid,
                    struct freivalds *verdict)
{
    const struct matrix *c = anew->check->c;
    const float *found = anew->found + index * c->columns;
    const double *plus = anew->plus + index * c->columns;
    const double *minus = anew->minus + index * c->columns;
    double squares = 0;
    double largest = 0;
    bool is_right = true;
    uint32_t last_block = UINT32_MAX;
    for (uint64_t j = 0; j < c->columns; j++) {
        const double sum = plus[j] - minus[j];
        if (isfinite(sum) && isfinite(found[j])) {
            squares += sum * sum;
            largest = fmax(largest, fabs((double)found[j] - sum));
        }
        if (residual_judge_entry(anew->check->b->rows, plus[j], minus[j], found[j]) !=
            RESIDUAL_WRONG) {
            continue;
        }
        is_right = false;
        uint32_t block = block_of(c->columns, grid->columns, j);
        if (block != last_block) {
            const struct freivalds_tile tile = {
                .row = block_of(c->rows, grid->rows, anew->rows[index]),
                .column = block,
                .at_row = anew->rows[index],
                .at_column = j,
                .found = found[j],
                .expected = sum};
            name_tile(verdict, &tile);
            last_block = block;
        }
    }
    double scale = sqrt(squares / (double)c->columns);
    verdict->max_rel_error =
        scale > 0 ? fmax(verdict->max_rel_error, largest / scale) : verdict->max_rel_error;
    return is_right;
}

static bool read_rows(const struct anew *anew)
{
    const struct check *check = anew->check;
    uint64_t inner = check->b->rows;
    uint64_t columns = check->b->columns;
    for (size_t i = 0; i < anew->count; i++) {
        const struct matrix_block of_a = {.row = anew->rows[i], .rows = 1, .columns = inner};
        const struct matrix_block of_c = {.row = anew->rows[i], .rows = 1, .columns = columns};
        if (!matrix_read(check->a, &of_a, anew->factors + i * inner, check->problem) ||
            !matrix_read(check->c, &of_c, anew->found + i * columns, check->problem)) {
            return false;
        }
    }
    return true;
}

static void take_verdicts(const struct anew *anew, const struct freivalds_grid *grid,
                          struct freivalds *verdict)
{
    for (size_t i = 0; i < anew->count; i++) {
        uint8_t *state = &anew->check->rows[anew->rows[i]];
        bool is_right = compare(anew, i, grid, verdict);
        verdict->unchecked_rows -= *state == ROW_STRANGE;
        verdict->wrong_rows += !is_right && *state != ROW_WRONG;
        verdict->rows_anew++;
        *state = is_right && *state != ROW_WRONG ? ROW_RIGHT : ROW_WRONG;
    }
}

/* Computes the listed rows and empties the list. */
static bool compute_anew(struct anew *anew, const struct freivalds_grid *grid,
                         struct freivalds *verdict)
{
    struct check *check = anew->check;
    if (anew->count == 0) {
        return true;
    }
    memset(anew->plus, 0, anew->count * (size_t)check->b->columns * sizeof(double));
    memset(anew->minus, 0, anew->count * (size_t)check->b->columns * sizeof(double));
    if (!read_rows(anew) || !visit_rows(check, check->b, 0, check->b->rows, take_anew, anew)) {
        return false;
    }
    take_verdicts(anew, grid, verdict);
    anew->count = 0;
    return true;
}

static bool add_row(struct anew *anew, uint64_t row, const struct freivalds_grid *grid,
                    struct freivalds *verdict)
{
    for (size_t i = 0; i < anew->count; i++) {
        if (anew->rows[i] == row) {
            return true;
        }
    }
    anew->rows[anew->count++] = row;
    return anew->count < ANEW || compute_anew(anew, grid, verdict);
}

/* Two rows of each row of tiles name every tile in it that is wrong throughout. */
static bool add_wrong_rows(struct anew *anew, const struct freivalds_grid *grid,
                           struct freivalds *verdict)
{
    uint64_t rows = anew->check->c->rows;
    size_t added = 0;
    for (uint32_t block = 0; block < grid->rows && added < FREIVALDS_WRONG; block++) {
        uint64_t end = split_edge(rows, grid->rows, block + 1);
        size_t here = 0;
        for (uint64_t row = split_edge(rows, grid->rows, block); row < end && here < 2; row++) {
            if (anew->check->rows[row] == ROW_WRONG) {
                here++;
                if (!add_row(anew, row, grid, verdict)) {
                    return false;
                }
            }
        }
        added += here;
    }
    return true;
}

/* The most doubtful rows are unknown to everybody before the vectors are drawn. */
static bool add_worst_rows(struct anew *anew, const struct freivalds_grid *grid,
                           struct freivalds *verdict)
{
    float *doubts = anew->check->doubts;
    for (int i = 0; i < FREIVALDS_WORST; i++) {
        uint64_t worst = 0;
        for (uint64_t row = 1; row < anew->check->c->rows; row++) {
            worst = doubts[row] > doubts[worst] ? row : worst;
        }
        if (doubts[worst] <= 0) {
            break;
        }
        doubts[worst] = 0;
        if (!add_row(anew, worst, grid, verdict)) {
            return false;
        }
    }
    return true;
}

/* Adds some rows that the residual could not decide. */
static bool add_unsure_rows(struct anew *anew, const struct freivalds_grid *grid,
                            struct freivalds *verdict)
{
    uint64_t chosen[FREIVALDS_UNSURE];
    uint64_t seen = 0;
    for (uint64_t row = 0; row < anew->check->c->rows; row++) {
        enum row_state state = (enum row_state)anew->check->rows[row];
        if (state != ROW_DOUBTFUL && state != ROW_STRANGE) {
            continue;
        }
        uint64_t place =
            seen < FREIVALDS_UNSURE ? seen : entropy_u64() % (seen + 1); /* all as likely */
        seen++;
        if (place < FREIVALDS_UNSURE) {
            chosen[place] = row;
        }
    }
    for (uint64_t i = 0; i < seen && i < FREIVALDS_UNSURE; i++) {
        if (!add_row(anew, chosen[i], grid, verdict)) {
            return false;
        }
    }
    return true;
}

static bool add_any_rows(struct anew *anew, const struct freivalds_grid *grid,
                         struct freivalds *verdict)
{
    for (int i = 0; i < FREIVALDS_SAMPLE; i++) {
        if (!add_row(anew, entropy_u64() % anew->check->c->rows, grid, verdict)) {
            return false;
        }
    }
    return true;
}

static bool look_closely(struct check *check, const struct freivalds_grid *grid,
                         struct freivalds *verdict)
{
    size_t inner = (size_t)check->b->rows;
    size_t columns = (size_t)check->b->columns;
    struct anew anew = {.check = check,
                        .factors = reallocarray(NULL, inner, ANEW * sizeof(float)),
                        .found = reallocarray(NULL, columns, ANEW * sizeof(float)),
                        .plus = reallocarray(NULL, columns, ANEW * sizeof(double)),
                        .minus = reallocarray(NULL, columns, ANEW * sizeof(double))};
    bool good =
        anew.factors != NULL && anew.found != NULL && anew.plus != NULL && anew.minus != NULL;
    if (!good) {
        problem_set(check->problem, "out of memory for checking the product");
    }
    good = good && add_wrong_rows(&anew, grid, verdict) && add_worst_rows(&anew, grid, verdict) &&
           add_unsure_rows(&anew, grid, verdict) && add_any_rows(&anew, grid, verdict) &&
           compute_anew(&anew, grid, verdict);
    free(anew.factors);
    free(anew.found);
    free(anew.plus);
    free(anew.minus);
    return good;
}

/* ---------------------------------------------------------------- lower precision */

enum { SIDE = PRECISION_SIDE, DEEP = 1024 }; /* DEEP: inner elements read at a time */

struct sample { /* SIDE adjacent rows of A and columns of B, and their part of C */
    float a[SIDE][DEEP], b[DEEP][SIDE], c[SIDE][SIDE];
    struct precision_sample sums;
};

static bool all_finite(const float *elements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(elements[i])) {
            return false;
        }
    }
    return true;
}

/* Sums up a sample from (row, column) of C on. *ret_is_odd says that a NaN or an infinity makes it
 * useless. */
static bool take_sample(const struct check *check, uint64_t row, uint64_t column,
                        struct sample *sample, bool *ret_is_odd)
{
    const struct matrix_block of_c = {.row = row, .column = column, .rows = SIDE, .columns = SIDE};
    const uint64_t inner = check->b->rows;
    memset(&sample->sums, 0, sizeof sample->sums);
    if (!matrix_read(check->c, &of_c, &sample->c[0][0], check->problem)) {
        return false;
    }
    *ret_is_odd = !all_finite(&sample->c[0][0], (size_t)SIDE * SIDE);
    for (uint64_t from = 0; from < inner && !*ret_is_odd; from += DEEP) {
        const uint64_t deep = inner - from < DEEP ? inner - from : DEEP;
        const struct matrix_block of_b = {
            .row = from, .column = column, .rows = deep, .columns = SIDE};
        bool good = matrix_read(check->b, &of_b, &sample->b[0][0], check->problem);
        for (uint64_t i = 0; good && i < SIDE; i++) {
            const struct matrix_block of_a = {
                .row = row + i, .column = from, .rows = 1, .columns = deep};
            good = matrix_read(check->a, &of_a, sample->a[i], check->problem);
            *ret_is_odd = *ret_is_odd || !all_finite(sample->a[i], (size_t)deep);
        }
        if (!good) {
            return false;
        }
        *ret_is_odd = *ret_is_odd || !all_finite(&sample->b[0][0], (size_t)deep * SIDE);
        for (uint64_t k = 0; k < deep && !*ret_is_odd; k++) {
            float of_rows[SIDE];
            for (size_t i = 0; i < SIDE; i++) {
                of_rows[i] = sample->a[i][k];
            }
            precision_add(&sample->sums, of_rows, sample->b[k]);
        }
    }
    return true;
}

/* Names the tile by the entry of the sample with the largest error. */
static void name_reduced(const struct sample *sample, struct freivalds_tile *tile,
                         struct freivalds *verdict)
{
    const uint64_t row = tile->at_row;
    const uint64_t column = tile->at_column;
    double worst = -1;
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            const double exact = sample->sums.entries[i][j].product;
            const double off = fabs((double)sample->c[i][j] - exact);
            if (off > worst) {
                worst = off;
                tile->at_row = row + i;
                tile->at_column = column + j;
                tile->found = sample->c[i][j];
                tile->expected = exact;
            }
        }
    }
    verdict->reduced_tiles++;
    name_tile(verdict, tile);
}

static bool look_at_tile(const struct check *check, const struct freivalds_grid *grid,
                         uint64_t number, struct sample *sample, struct freivalds *verdict)
{
    struct freivalds_tile tile = {.row = (uint32_t)(number / grid->columns),
                                  .column = (uint32_t)(number % grid->columns)};
    const uint64_t top = split_edge(check->c->rows, grid->rows, tile.row);
    const uint64_t left = split_edge(check->c->columns, grid->columns, tile.column);
    const uint64_t rows = split_edge(check->c->rows, grid->rows, tile.row + 1) - top;
    const uint64_t columns = split_edge(check->c->columns, grid->columns, tile.column + 1) - left;
    bool is_odd = true;
    if (rows < SIDE || columns < SIDE) {
        return true;
    }
    tile.at_row = top + entropy_u64() % (rows - SIDE + 1);
    tile.at_column = left + entropy_u64() % (columns - SIDE + 1);
    if (!take_sample(check, tile.at_row, tile.at_column, sample, &is_odd)) {
        return false;
    }
    if (!is_odd && precision_judge(&sample->sums, sample->c) == PRECISION_REDUCED) {
        name_reduced(sample, &tile, verdict);
    }
    return true;
}

static bool look_at_precision(const struct check *check, const struct freivalds_grid *grid,
                              struct freivalds *verdict)
{
    const uint64_t tiles = (uint64_t)grid->rows * grid->columns;
    struct sample *sample = malloc(sizeof *sample);
    bool good = sample != NULL;
    if (!good) {
        problem_set(check->problem, "out of memory for checking the product");
    }
    uint64_t next = 0;
    for (uint64_t left = tiles < FREIVALDS_PRECISE ? tiles : FREIVALDS_PRECISE; good && left > 0;
         left--) { /* in order, each as likely as any other */
        while (entropy_u64() % (tiles - next) >= left) {
            next++;
        }
        good = look_at_tile(check, grid, next++, sample, verdict);
    }
    free(sample);
    return good;
}

/* ---------------------------------------------------------------- whole */

bool freivalds_check(const struct matrix *a, const struct matrix *b, const struct matrix *c,
                     const struct freivalds_grid *grid, struct freivalds *ret_verdict,
                     struct problem *ret_problem)
{
    assert(a->columns == b->rows);
    assert(c->rows == a->rows && c->columns == b->columns);
    assert(grid->rows >= 1 && grid->columns >= 1);
    CLEANUP(check_fini) struct check check = {.a = a, .b = b, .c = c, .problem = ret_problem};
    struct freivalds verdict = {.is_right = false};
    if (!check_init(&check) || !project_b(&check) || !judge_rows(&check, &verdict) ||
        !look_closely(&check, grid, &verdict) ||
        (verdict.wrong_rows == 0 && !look_at_precision(&check, grid, &verdict))) {
        return false;
    }
    for (uint64_t j = 0; j < b->columns; j++) {
        verdict.unchecked_columns += check.left_out[j];
    }
    verdict.is_right = verdict.wrong_rows == 0 && verdict.reduced_tiles == 0;
    *ret_verdict = verdict;
    return true;
}
