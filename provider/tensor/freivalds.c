#include "provider/tensor/freivalds.h"

#include "base/residual.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 8 }; /* vectors that go through the matrices together */

#define SPECIAL_STEPS UINT64_C(64) /* of one-by-one comparison, as a multiple of one round */

struct dice {
    uint64_t state[4];
};

static uint64_t rotate(uint64_t word, unsigned by)
{
    return (word << by) | (word >> (64 - by));
}

/* xoshiro256** by Blackman and Vigna. */
static uint64_t next(struct dice *dice)
{
    uint64_t *s = dice->state;
    uint64_t drawn = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return drawn;
}

static struct dice dice_of(const uint8_t seed[TENSOR_SEED_BYTES])
{
    struct dice dice = {{0}};
    for (size_t i = 0; i < TENSOR_SEED_BYTES; i++) {
        dice.state[i / 8] |= (uint64_t)seed[i] << (8 * (i % 8));
    }
    if ((dice.state[0] | dice.state[1] | dice.state[2] | dice.state[3]) == 0) {
        dice.state[0] = 1; /* the one state that it never leaves */
    }
    return dice;
}

struct work {
    const struct freivalds *check;
    struct freivalds_result *result;
    struct dice dice;
    bool *odd_columns; /* columns of B with a value that is not finite */
    bool *odd_rows;    /* rows of A likewise, and rows that may have overflowed: no residual */
    double *b_sums;    /* of each row of B: |B| 1 over its finite columns */
    struct residual_bounds *bounds; /* of each row */
    double *signs;                  /* columns x WIDTH: the vectors */
    double *products;               /* inner x WIDTH: B r */
    uint32_t doubtful;              /* vectors with a row between the bounds */
    bool unsure;
};

uint64_t freivalds_bytes(uint64_t rows, uint64_t inner, uint64_t columns)
{
    const uint64_t most = UINT64_C(1) << 48;
    if (rows > most || inner > most || columns > most) {
        return 0;
    }
    return rows * (1 + sizeof(struct residual_bounds)) + inner * (WIDTH + 1) * sizeof(double) +
           columns * (1 + WIDTH * sizeof(double));
}

static bool allocate(struct work *work)
{
    const struct freivalds *check = work->check;
    work->odd_columns = calloc(check->columns + 1, sizeof(bool));
    work->odd_rows = calloc(check->rows + 1, sizeof(bool));
    work->b_sums = calloc(check->inner + 1, sizeof(double));
    work->bounds = calloc(check->rows + 1, sizeof *work->bounds);
    work->signs = calloc((check->columns + 1) * WIDTH, sizeof(double));
    work->products = calloc((check->inner + 1) * WIDTH, sizeof(double));
    return work->odd_columns != NULL && work->odd_rows != NULL && work->b_sums != NULL &&
           work->bounds != NULL && work->signs != NULL && work->products != NULL;
}

static void release(struct work *work)
{
    free(work->odd_columns);
    free(work->odd_rows);
    free(work->b_sums);
    free(work->bounds);
    free(work->signs);
    free(work->products);
}

static void reject(struct work *work, uint64_t row, const char *why)
{
    work->result->verdict = VERDICT_REJECT;
    work->result->row = row;
    work->result->why = why;
}

static bool rejected(const struct work *work)
{
    return work->result->verdict == VERDICT_REJECT;
}

static void doubt(struct work *work, uint64_t row, const char *why)
{
    if (!work->unsure) {
        work->unsure = true;
        work->result->row = row;
        work->result->why = why;
    }
}

/* ---------------------------------------------------------------- what is not finite */

/* How many entries of the product are not finite because of their operands. */
static uint64_t find_odd(struct work *work)
{
    const struct freivalds *check = work->check;
    uint64_t odd_columns = 0;
    uint64_t odd_rows = 0;
    for (uint64_t k = 0; k < check->inner; k++) {
        for (uint64_t j = 0; j < check->columns; j++) {
            work->odd_columns[j] |= !isfinite(check->b[k * check->columns + j]);
        }
    }
    for (uint64_t i = 0; i < check->rows; i++) {
        for (uint64_t k = 0; k < check->inner; k++) {
            work->odd_rows[i] |= !isfinite(check->a[i * check->inner + k]);
        }
        odd_rows += work->odd_rows[i];
    }
    for (uint64_t j = 0; j < check->columns; j++) {
        odd_columns += work->odd_columns[j];
    }
    return odd_rows * check->columns + (check->rows - odd_rows) * odd_columns;
}

/* An entry whose operands make it NaN or infinite. In double nothing else does. */
static void compare_odd(struct work *work, uint64_t i, uint64_t j)
{
    const struct freivalds *check = work->check;
    double sum = 0;
    double finite = 0;
    for (uint64_t k = 0; k < check->inner; k++) {
        double product =
            (double)check->a[i * check->inner + k] * (double)check->b[k * check->columns + j];
        sum += product;
        finite += isfinite(product) ? fabs(product) : 0;
    }
    double given = (double)check->c[i * check->columns + j];
    if (isnan(sum) ? isnan(given) : given == sum) {
        return;
    }
    if (finite < (double)FLT_MAX) {
        reject(work, i, "an entry that NaN or infinity passes through is another");
    } else {
        doubt(work, i, "an entry may have overflowed on its way to NaN or infinity");
    }
}

static void compare_all_odd(struct work *work)
{
    const struct freivalds *check = work->check;
    uint64_t odd = find_odd(work);
    double round = (double)check->rows * (double)check->inner +
                   (double)check->inner * (double)check->columns +
                   (double)check->rows * (double)check->columns;
    if ((double)odd * (double)check->inner > (double)SPECIAL_STEPS * (round + 1e6)) {
        doubt(work, 0, "too many entries are not finite");
        return;
    }
    for (uint64_t i = 0; i < check->rows && odd > 0; i++) {
        for (uint64_t j = 0; j < check->columns && !rejected(work); j++) {
            if (work->odd_rows[i] || work->odd_columns[j]) {
                compare_odd(work, i, j);
            }
        }
    }
}

/* ---------------------------------------------------------------- the bounds */

static void sum_b(struct work *work)
{
    const struct freivalds *check = work->check;
    for (uint64_t k = 0; k < check->inner; k++) {
        const float *row = check->b + k * check->columns;
        double sum = 0;
        for (uint64_t j = 0; j < check->columns; j++) {
            sum += work->odd_columns[j] ? 0 : fabs((double)row[j]);
        }
        work->b_sums[k] = sum;
    }
}

static void bound_row(struct work *work, uint64_t i)
{
    const struct freivalds *check = work->check;
    double reach = 0;
    double magnitude = 0;
    double squares = 0;
    bool finite = true;
    for (uint64_t k = 0; k < check->inner; k++) {
        reach += fabs((double)check->a[i * check->inner + k]) * work->b_sums[k];
    }
    for (uint64_t j = 0; j < check->columns; j++) {
        if (!work->odd_columns[j]) {
            double value = (double)check->c[i * check->columns + j];
            finite = finite && isfinite(value);
            magnitude += fabs(value);
            squares += value * value;
        }
    }
    if (!finite) {
        work->odd_rows[i] = true;
        if (reach < (double)FLT_MAX) {
            reject(work, i, "an entry is not finite, and nothing could make it so");
        } else {
            doubt(work, i, "an entry may have overflowed");
        }
        return;
    }
    work->bounds[i] = residual_bounds(&(struct residual_row){.inner = check->inner,
                                                             .columns = check->columns,
                                                             .reach = reach,
                                                             .magnitude = magnitude,
                                                             .squares = squares});
}

/* ---------------------------------------------------------------- the vectors */

static void draw_signs(struct work *work, uint32_t width)
{
    uint64_t columns = work->check->columns;
    memset(work->signs, 0, columns * WIDTH * sizeof(double));
    for (uint32_t t = 0; t < width; t++) {
        for (uint64_t j = 0; j < columns; j++) {
            double sign = (next(&work->dice) >> 63) != 0 ? 1 : -1;
            work->signs[j * WIDTH + t] = work->odd_columns[j] ? 0 : sign;
        }
    }
}

/* One row of a matrix times the vectors. */
static void times_signs(const struct work *work, const float *row, double ret_sums[WIDTH])
{
    double sums[WIDTH] = {0};
    for (uint64_t j = 0; j < work->check->columns; j++) {
        if (work->odd_columns[j]) {
            continue;
        }
        double value = (double)row[j];
        const double *signs = work->signs + j * WIDTH;
        for (uint32_t t = 0; t < WIDTH; t++) {
            sums[t] += value * signs[t];
        }
    }
    memcpy(ret_sums, sums, sizeof sums);
}

static void judge_row(struct work *work, uint64_t i, uint32_t width, bool doubtful[WIDTH])
{
    const struct freivalds *check = work->check;
    double claimed[WIDTH];
    double right[WIDTH] = {0};
    times_signs(work, check->c + i * check->columns, claimed);
    for (uint64_t k = 0; k < check->inner; k++) {
        double value = (double)check->a[i * check->inner + k];
        for (uint32_t t = 0; t < WIDTH; t++) {
            right[t] += value * work->products[k * WIDTH + t];
        }
    }
    const struct residual_bounds *bounds = &work->bounds[i];
    for (uint32_t t = 0; t < width; t++) {
        double residual = fabs(claimed[t] - right[t]);
        double part = residual <= bounds->right ? residual / fmax(bounds->right, DBL_MIN)
                                                : fmin(residual / bounds->right, 1e300);
        if (part > work->result->worst) {
            work->result->worst = part;
            work->result->row = i;
        }
        switch (residual_judge(bounds, residual)) {
        case RESIDUAL_RIGHT:
            break;
        case RESIDUAL_DOUBTFUL:
            doubtful[t] = true;
            break;
        case RESIDUAL_WRONG:
            reject(work, i, "a row differs by more than any order of summation can");
            return;
        }
    }
}

static void judge(struct work *work, uint32_t width)
{
    const struct freivalds *check = work->check;
    bool doubtful[WIDTH] = {false};
    draw_signs(work, width);
    for (uint64_t k = 0; k < check->inner; k++) {
        times_signs(work, check->b + k * check->columns, work->products + k * WIDTH);
    }
    for (uint64_t i = 0; i < check->rows && !rejected(work); i++) {
        if (!work->odd_rows[i]) {
            judge_row(work, i, width, doubtful);
        }
    }
    for (uint32_t t = 0; t < width; t++) {
        work->doubtful += doubtful[t];
    }
    work->result->rounds += width;
}

static void run(struct work *work)
{
    const struct freivalds *check = work->check;
    compare_all_odd(work);
    sum_b(work);
    for (uint64_t i = 0; i < check->rows && !rejected(work); i++) {
        if (!work->odd_rows[i]) {
            bound_row(work, i);
        }
    }
    for (uint32_t done = 0; done < check->rounds && !rejected(work); done += WIDTH) {
        judge(work, check->rounds - done < WIDTH ? check->rounds - done : WIDTH);
    }
    if (!rejected(work) && work->doubtful == 1) {
        judge(work, 1);
    }
}

/* A row that is wrong beyond the bounds shows in each vector with probability 1/2 at least. It is accepted when
 * none of them shows it, or after one more vector at most one of all. */
static void conclude(struct work *work)
{
    struct freivalds_result *result = work->result;
    if (rejected(work)) {
        return;
    }
    if (work->unsure || work->doubtful > 1) {
        result->verdict = VERDICT_UNSURE;
        result->why = work->unsure ? result->why : "rows lie between the bounds";
        return;
    }
    result->verdict = VERDICT_ACCEPT;
    result->why = "every row is within its bound";
    result->false_accept =
        ldexp(work->doubtful == 0 ? 1 : (double)result->rounds + 1, -(int)result->rounds);
}

bool freivalds_run(const struct freivalds *check, struct freivalds_result *ret_result)
{
    assert(check->rounds >= 1 && check->rounds <= TENSOR_ROUNDS_MOST);

    struct freivalds_result result = {
        .verdict = VERDICT_UNSURE, .false_accept = 1, .why = "nothing was checked"};
    struct work work = {.check = check, .result = &result, .dice = dice_of(check->seed)};
    bool allocated = allocate(&work);
    if (allocated) {
        run(&work);
        conclude(&work);
        *ret_result = result;
    }
    release(&work);
    return allocated;
}
