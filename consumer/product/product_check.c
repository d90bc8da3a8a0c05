#include "consumer/product/product_check.h"

#include "base/cleanup.h"
#include "numeric/freivalds.h"
#include "planner/layout/split.h"
#include "runtime/entropy.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = PRODUCT_CHECK_ROUNDS,
    PIECE = 1 << 18, /* elements of a matrix read at a time */
    BAND = 256,      /* rows whose sums are computed together */
    ANEW = 8,        /* rows computed anew in one reading of B */
};

enum row_state { ROW_RIGHT, ROW_DOUBTFUL, ROW_STRANGE, ROW_WRONG }; /* strange: no residual */

struct check {
    const struct matrix *matrices[3]; /* by enum freivalds_matrix */
    float *pieces[3];                 /* the block of each that was read last */
    struct freivalds_source source;
    struct freivalds freivalds;
    uint8_t *rows; /* enum row_state */
    /* Largest doubtful residual of each row, relative to what right entries reach; or 0. */
    float *doubts;
    struct problem *problem;
};

static bool no_memory(struct check *check)
{
    problem_set(check->problem, "out of memory for checking the product");
    return false;
}

static bool read_block(void *context, const struct freivalds_block *block,
                       struct freivalds_view *ret_view)
{
    struct check *check = context;
    float *piece = check->pieces[block->matrix];
    const struct matrix_block part = {
        .row = block->row, .column = block->column, .rows = block->rows, .columns = block->columns};
    *ret_view = (struct freivalds_view){.elements = piece, .stride = block->columns};
    return matrix_read(check->matrices[block->matrix], &part, piece, check->problem);
}

static void check_fini(struct check *check)
{
    freivalds_fini(&check->freivalds);
    free(check->rows);
    free(check->doubts);
    for (size_t i = 0; i < 3; i++) {
        free(check->pieces[i]);
    }
}

static bool check_init(struct check *check)
{
    const size_t rows = (size_t)check->source.rows;
    bool has_memory = freivalds_init(&check->freivalds, &check->source, ROUNDS);
    check->rows = calloc(rows, 1);
    check->doubts = calloc(rows, sizeof(float));
    for (size_t i = 0; i < 3; i++) {
        check->pieces[i] = malloc(PIECE * sizeof(float));
        has_memory = has_memory && check->pieces[i] != NULL;
    }
    if (!has_memory || check->rows == NULL || check->doubts == NULL) {
        return no_memory(check);
    }
    for (uint64_t j = 0; j < check->source.columns; j++) {
        uint64_t bits = entropy_u64();
        for (size_t t = 0; t < ROUNDS; t++) {
            check->freivalds.signs[j * ROUNDS + t] = (bits >> t & 1) != 0 ? 1 : -1;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- residuals */

static enum row_state judge(const struct check *check, const struct freivalds_sums *band,
                            uint64_t index, float *ret_doubt)
{
    const struct freivalds_row *row = &band->rows[index];
    const struct residual_bounds bounds = freivalds_bounds(&check->freivalds, row);
    enum row_state state = ROW_RIGHT;
    if (row->is_odd_a || row->is_odd_c) {
        return ROW_STRANGE;
    }
    for (uint32_t t = 0; t < ROUNDS; t++) {
        const uint64_t at = index * ROUNDS + t;
        const double residual = fabs(band->left[at] - band->right[at]);
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

static bool judge_rows(struct check *check, struct product_check *verdict)
{
    const uint64_t rows = check->source.rows;
    const struct freivalds_sums band = {.left = calloc(BAND, ROUNDS * sizeof(double)),
                                        .right = calloc(BAND, ROUNDS * sizeof(double)),
                                        .rows = calloc(BAND, sizeof *band.rows)};
    bool good = (band.left != NULL && band.right != NULL && band.rows != NULL) || no_memory(check);
    for (uint64_t from = 0; good && from < rows; from += BAND) {
        uint64_t to = rows - from < BAND ? rows : from + BAND;
        good = freivalds_sum_rows(&check->freivalds, from, to, &band);
        for (uint64_t row = from; good && row < to; row++) {
            enum row_state state = judge(check, &band, row - from, &check->doubts[row]);
            check->rows[row] = (uint8_t)state;
            verdict->wrong_rows += state == ROW_WRONG;
            verdict->doubtful_rows += state == ROW_DOUBTFUL;
            verdict->unchecked_rows += state == ROW_STRANGE;
        }
    }
    free(band.left);
    free(band.right);
    free(band.rows);
    return good;
}

/* ---------------------------------------------------------------- rows anew */

struct anew { /* rows of C to compute in one reading of B */
    struct check *check;
    uint64_t rows[ANEW];
    struct freivalds_entries entries; /* all columns of the first row_count rows */
};

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

static void name_tile(struct product_check *verdict, const struct product_check_tile *tile)
{
    size_t named = verdict->wrong_tiles < PRODUCT_CHECK_NAMED ? (size_t)verdict->wrong_tiles
                                                              : PRODUCT_CHECK_NAMED;
    for (size_t i = 0; i < named; i++) {
        if (verdict->tiles[i].row == tile->row && verdict->tiles[i].column == tile->column) {
            return;
        }
    }
    if (named < PRODUCT_CHECK_NAMED) {
        verdict->tiles[named] = *tile;
    }
    verdict->wrong_tiles++;
}

/* Compares one row, and returns true when it is right. */
static bool compare(const struct anew *anew, size_t index, const struct product_check_grid *grid,
                    struct product_check *verdict)
{
    const struct freivalds_source *source = &anew->check->source;
    const float *found = anew->entries.found + index * source->columns;
    const double *plus = anew->entries.plus + index * source->columns;
    const double *minus = anew->entries.minus + index * source->columns;
    double squares = 0;
    double largest = 0;
    bool is_right = true;
    uint32_t last_block = UINT32_MAX;
    for (uint64_t j = 0; j < source->columns; j++) {
        const double sum = plus[j] - minus[j];
        if (isfinite(sum) && isfinite(found[j])) {
            squares += sum * sum;
            largest = fmax(largest, fabs((double)found[j] - sum));
        }
        if (residual_judge_entry(source->inner, plus[j], minus[j], found[j]) != RESIDUAL_WRONG) {
            continue;
        }
        is_right = false;
        uint32_t block = block_of(source->columns, grid->columns, j);
        if (block != last_block) {
            const struct product_check_tile tile = {
                .row = block_of(source->rows, grid->rows, anew->rows[index]),
                .column = block,
                .at_row = anew->rows[index],
                .at_column = j,
                .found = found[j],
                .expected = sum};
            name_tile(verdict, &tile);
            last_block = block;
        }
    }
    double scale = sqrt(squares / (double)source->columns);
    verdict->max_rel_error =
        scale > 0 ? fmax(verdict->max_rel_error, largest / scale) : verdict->max_rel_error;
    return is_right;
}

static void take_verdicts(const struct anew *anew, const struct product_check_grid *grid,
                          struct product_check *verdict)
{
    for (size_t i = 0; i < anew->entries.row_count; i++) {
        uint8_t *state = &anew->check->rows[anew->rows[i]];
        bool is_right = compare(anew, i, grid, verdict);
        verdict->unchecked_rows -= *state == ROW_STRANGE;
        verdict->wrong_rows += !is_right && *state != ROW_WRONG;
        verdict->rows_anew++;
        *state = is_right && *state != ROW_WRONG ? ROW_RIGHT : ROW_WRONG;
    }
}

/* Computes the listed rows and empties the list. */
static bool compute_anew(struct anew *anew, const struct product_check_grid *grid,
                         struct product_check *verdict)
{
    if (anew->entries.row_count == 0) {
        return true;
    }
    if (!freivalds_recompute(&anew->check->source, &anew->entries)) {
        return false;
    }
    take_verdicts(anew, grid, verdict);
    anew->entries.row_count = 0;
    return true;
}

static bool add_row(struct anew *anew, uint64_t row, const struct product_check_grid *grid,
                    struct product_check *verdict)
{
    for (size_t i = 0; i < anew->entries.row_count; i++) {
        if (anew->rows[i] == row) {
            return true;
        }
    }
    anew->rows[anew->entries.row_count++] = row;
    return anew->entries.row_count < ANEW || compute_anew(anew, grid, verdict);
}

/* Two rows of each row of tiles name every tile in it that is wrong throughout. */
static bool add_wrong_rows(struct anew *anew, const struct product_check_grid *grid,
                           struct product_check *verdict)
{
    uint64_t rows = anew->check->source.rows;
    size_t added = 0;
    for (uint32_t block = 0; block < grid->rows && added < PRODUCT_CHECK_WRONG; block++) {
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
static bool add_worst_rows(struct anew *anew, const struct product_check_grid *grid,
                           struct product_check *verdict)
{
    float *doubts = anew->check->doubts;
    for (int i = 0; i < PRODUCT_CHECK_WORST; i++) {
        uint64_t worst = 0;
        for (uint64_t row = 1; row < anew->check->source.rows; row++) {
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
static bool add_unsure_rows(struct anew *anew, const struct product_check_grid *grid,
                            struct product_check *verdict)
{
    uint64_t chosen[PRODUCT_CHECK_UNSURE];
    uint64_t seen = 0;
    for (uint64_t row = 0; row < anew->check->source.rows; row++) {
        enum row_state state = (enum row_state)anew->check->rows[row];
        if (state != ROW_DOUBTFUL && state != ROW_STRANGE) {
            continue;
        }
        /* All places are equally likely. */
        uint64_t place = seen < PRODUCT_CHECK_UNSURE ? seen : entropy_u64() % (seen + 1);
        seen++;
        if (place < PRODUCT_CHECK_UNSURE) {
            chosen[place] = row;
        }
    }
    for (uint64_t i = 0; i < seen && i < PRODUCT_CHECK_UNSURE; i++) {
        if (!add_row(anew, chosen[i], grid, verdict)) {
            return false;
        }
    }
    return true;
}

static bool add_any_rows(struct anew *anew, const struct product_check_grid *grid,
                         struct product_check *verdict)
{
    for (int i = 0; i < PRODUCT_CHECK_SAMPLE; i++) {
        if (!add_row(anew, entropy_u64() % anew->check->source.rows, grid, verdict)) {
            return false;
        }
    }
    return true;
}

static bool look_closely(struct check *check, const struct product_check_grid *grid,
                         struct product_check *verdict)
{
    const size_t columns = (size_t)check->source.columns;
    struct anew anew = {.check = check,
                        .entries = {.count = columns,
                                    .found = reallocarray(NULL, columns, ANEW * sizeof(float)),
                                    .plus = reallocarray(NULL, columns, ANEW * sizeof(double)),
                                    .minus = reallocarray(NULL, columns, ANEW * sizeof(double))}};
    anew.entries.rows = anew.rows;
    bool good =
        (anew.entries.found != NULL && anew.entries.plus != NULL && anew.entries.minus != NULL) ||
        no_memory(check);
    good = good && add_wrong_rows(&anew, grid, verdict) && add_worst_rows(&anew, grid, verdict) &&
           add_unsure_rows(&anew, grid, verdict) && add_any_rows(&anew, grid, verdict) &&
           compute_anew(&anew, grid, verdict);
    free(anew.entries.found);
    free(anew.entries.plus);
    free(anew.entries.minus);
    return good;
}

/* ---------------------------------------------------------------- lower precision */

enum { SIDE = PRECISION_SIDE };

/* Names the tile by the entry of the sample with the largest error. */
static void name_reduced(const struct freivalds_sample *sample, struct product_check_tile *tile,
                         struct product_check *verdict)
{
    double worst = -1;
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            const double exact = sample->sums.entries[i][j].product;
            const double off = fabs((double)sample->found[i][j] - exact);
            if (off > worst) {
                worst = off;
                tile->at_row = sample->rows[i];
                tile->at_column = sample->columns[j];
                tile->found = sample->found[i][j];
                tile->expected = exact;
            }
        }
    }
    verdict->reduced_tiles++;
    name_tile(verdict, tile);
}

static bool look_at_tile(const struct check *check, const struct product_check_grid *grid,
                         uint64_t number, struct freivalds_sample *sample,
                         struct product_check *verdict)
{
    struct product_check_tile tile = {.row = (uint32_t)(number / grid->columns),
                                      .column = (uint32_t)(number % grid->columns)};
    const uint64_t top = split_edge(check->source.rows, grid->rows, tile.row);
    const uint64_t left = split_edge(check->source.columns, grid->columns, tile.column);
    const uint64_t rows = split_edge(check->source.rows, grid->rows, tile.row + 1) - top;
    const uint64_t columns =
        split_edge(check->source.columns, grid->columns, tile.column + 1) - left;
    if (rows < SIDE || columns < SIDE) {
        return true;
    }
    const uint64_t row = top + entropy_u64() % (rows - SIDE + 1);
    const uint64_t column = left + entropy_u64() % (columns - SIDE + 1);
    for (size_t i = 0; i < SIDE; i++) {
        sample->rows[i] = row + i;
        sample->columns[i] = column + i;
    }
    if (!freivalds_take_sample(&check->source, sample)) {
        return false;
    }
    if (!sample->is_odd && precision_judge(&sample->sums, sample->found) == PRECISION_REDUCED) {
        name_reduced(sample, &tile, verdict);
    }
    return true;
}

static bool look_at_precision(struct check *check, const struct product_check_grid *grid,
                              struct product_check *verdict)
{
    const uint64_t tiles = (uint64_t)grid->rows * grid->columns;
    struct freivalds_sample *sample = malloc(sizeof *sample);
    bool good = sample != NULL || no_memory(check);
    uint64_t next = 0;
    for (uint64_t left = tiles < PRODUCT_CHECK_PRECISE ? tiles : PRODUCT_CHECK_PRECISE;
         good && left > 0; left--) { /* in order, each as likely as any other */
        while (entropy_u64() % (tiles - next) >= left) {
            next++;
        }
        good = look_at_tile(check, grid, next++, sample, verdict);
    }
    free(sample);
    return good;
}

/* ---------------------------------------------------------------- whole */

bool product_check_run(const struct matrix *a, const struct matrix *b, const struct matrix *c,
                       const struct product_check_grid *grid, struct product_check *ret_verdict,
                       struct problem *ret_problem)
{
    assert(a->columns == b->rows);
    assert(c->rows == a->rows && c->columns == b->columns);
    assert(grid->rows >= 1 && grid->columns >= 1);
    CLEANUP(check_fini)
    struct check check = {.matrices = {[FREIVALDS_A] = a, [FREIVALDS_B] = b, [FREIVALDS_C] = c},
                          .source = {.rows = c->rows,
                                     .inner = b->rows,
                                     .columns = c->columns,
                                     .block_elements = PIECE,
                                     .read = read_block},
                          .problem = ret_problem};
    struct product_check verdict = {.is_right = false};
    check.source.context = &check;
    if (!check_init(&check) || !freivalds_project(&check.freivalds) ||
        !judge_rows(&check, &verdict) || !look_closely(&check, grid, &verdict) ||
        (verdict.wrong_rows == 0 && !look_at_precision(&check, grid, &verdict))) {
        return false;
    }
    for (uint64_t j = 0; j < b->columns; j++) {
        verdict.unchecked_columns += check.freivalds.odd_columns[j];
    }
    verdict.is_right = verdict.wrong_rows == 0 && verdict.reduced_tiles == 0;
    *ret_verdict = verdict;
    return true;
}
