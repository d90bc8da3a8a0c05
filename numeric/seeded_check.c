#include "numeric/seeded_check.h"

#include "base/precision.h"
#include "base/residual.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 8 }; /* vectors that pass through the matrices together */

/* Caps on the terms that are added for recomputed entries. Each is a multiple of the terms of one
 * vector, and STEPS_LEAST is a minimum. */
#define DOUBTFUL_STEPS 32.0
#define ODD_STEPS 16.0
#define STEPS_LEAST 3e7

struct dice {
    uint64_t state[4];
};

static uint64_t rotate(uint64_t word, unsigned by)
{
    return (word << by) | (word >> (64 - by));
}

/* The generator is xoshiro256** by Blackman and Vigna. */
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

static struct dice dice_of(const uint8_t seed[SEEDED_SEED_BYTES])
{
    struct dice dice = {{0}};
    for (size_t i = 0; i < SEEDED_SEED_BYTES; i++) {
        dice.state[i / 8] |= (uint64_t)seed[i] << (8 * (i % 8));
    }
    if ((dice.state[0] | dice.state[1] | dice.state[2] | dice.state[3]) == 0) {
        dice.state[0] = 1; /* the generator never leaves the zero state */
    }
    return dice;
}

struct work {
    const struct seeded_check *check;
    struct seeded_result *result;
    struct dice dice;
    bool *odd_columns; /* columns of B with a value that is not finite */
    /* Rows of A with a value that is not finite, and rows that may have overflowed, have no
     * residual. */
    bool *odd_rows;
    double *b_sums;                 /* for each row of B: |B| 1 over its finite columns */
    struct residual_bounds *bounds; /* for each row */
    /* The array holds each row's largest doubtful residual as a part of `close`, or 0. */
    double *doubts;
    double *signs;    /* columns x WIDTH: the vectors */
    double *products; /* inner x WIDTH: B r */
    double *plus;     /* one row of recomputed entries */
    double *minus;
    float *plain;             /* the same row, term by term in float32 */
    struct suspect *suspects; /* rows to recompute */
    struct precision_sample *sample;
    bool unsure;
    double unseen; /* unchecked part of the rows without a residual */
};

struct suspect {
    double urgency;
    uint64_t row;
};

uint64_t seeded_check_bytes(uint64_t rows, uint64_t inner, uint64_t columns)
{
    const uint64_t most = UINT64_C(1) << 48;
    if (rows > most || inner > most || columns > most) {
        return 0;
    }
    return rows * (1 + sizeof(struct residual_bounds) + sizeof(double) + sizeof(struct suspect)) +
           inner * (WIDTH + 1) * sizeof(double) +
           columns * (1 + (WIDTH + 2) * sizeof(double) + sizeof(float)) +
           sizeof(struct precision_sample);
}

static bool allocate(struct work *work)
{
    const struct seeded_check *check = work->check;
    work->odd_columns = calloc(check->columns + 1, sizeof(bool));
    work->odd_rows = calloc(check->rows + 1, sizeof(bool));
    work->b_sums = calloc(check->inner + 1, sizeof(double));
    work->bounds = calloc(check->rows + 1, sizeof *work->bounds);
    work->signs = calloc((check->columns + 1) * WIDTH, sizeof(double));
    work->products = calloc((check->inner + 1) * WIDTH, sizeof(double));
    work->doubts = calloc(check->rows + 1, sizeof(double));
    work->plus = calloc(check->columns + 1, sizeof(double));
    work->minus = calloc(check->columns + 1, sizeof(double));
    work->plain = calloc(check->columns + 1, sizeof(float));
    work->suspects = calloc(check->rows + 1, sizeof *work->suspects);
    work->sample = calloc(1, sizeof *work->sample);
    return work->odd_columns != NULL && work->odd_rows != NULL && work->b_sums != NULL &&
           work->bounds != NULL && work->signs != NULL && work->products != NULL &&
           work->doubts != NULL && work->plus != NULL && work->minus != NULL &&
           work->plain != NULL && work->suspects != NULL && work->sample != NULL;
}

static void release(struct work *work)
{
    free(work->odd_columns);
    free(work->odd_rows);
    free(work->b_sums);
    free(work->bounds);
    free(work->signs);
    free(work->products);
    free(work->doubts);
    free(work->plus);
    free(work->minus);
    free(work->plain);
    free(work->suspects);
    free(work->sample);
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

/* ---------------------------------------------------------------- values that are not finite */

static void find_odd(struct work *work)
{
    const struct seeded_check *check = work->check;
    for (uint64_t k = 0; k < check->inner; k++) {
        for (uint64_t j = 0; j < check->columns; j++) {
            work->odd_columns[j] |= !isfinite(check->b[k * check->columns + j]);
        }
    }
    for (uint64_t i = 0; i < check->rows; i++) {
        for (uint64_t k = 0; k < check->inner; k++) {
            work->odd_rows[i] |= !isfinite(check->a[i * check->inner + k]);
        }
    }
}

/* ---------------------------------------------------------------- the bounds */

static void sum_b(struct work *work)
{
    const struct seeded_check *check = work->check;
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
    const struct seeded_check *check = work->check;
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
        if (!residual_may_overflow(check->inner, reach)) {
            reject(work, i, "an entry is not finite, and nothing could make it so");
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

/* Multiplies one row of a matrix with the vectors. */
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

static void judge_row(struct work *work, uint64_t i, uint32_t width)
{
    const struct seeded_check *check = work->check;
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
            work->doubts[i] = fmax(work->doubts[i], residual / bounds->close);
            break;
        case RESIDUAL_WRONG:
            reject(work, i, "a row differs by more than any order of summation can");
            return;
        }
    }
}

static void judge(struct work *work, uint32_t width)
{
    const struct seeded_check *check = work->check;
    draw_signs(work, width);
    for (uint64_t k = 0; k < check->inner; k++) {
        times_signs(work, check->b + k * check->columns, work->products + k * WIDTH);
    }
    for (uint64_t i = 0; i < check->rows && !rejected(work); i++) {
        if (!work->odd_rows[i]) {
            judge_row(work, i, width);
        }
    }
    work->result->rounds += width;
}

/* ---------------------------------------------------------------- recomputed entries */

struct stretch { /* entries [from, from + count) of a row */
    uint64_t row, from, count;
};

static void add_up(struct work *work, const struct stretch *at)
{
    const struct seeded_check *check = work->check;
    memset(work->plus, 0, at->count * sizeof(double));
    memset(work->minus, 0, at->count * sizeof(double));
    for (uint64_t k = 0; k < check->inner; k++) {
        residual_add_terms(check->a[at->row * check->inner + k],
                           check->b + k * check->columns + at->from, at->count, work->plus,
                           work->minus);
    }
}

static void add_up_plainly(struct work *work, const struct stretch *at)
{
    const struct seeded_check *check = work->check;
    memset(work->plain, 0, at->count * sizeof(float));
    for (uint64_t k = 0; k < check->inner; k++) {
        const float factor = check->a[at->row * check->inner + k];
        const float *others = check->b + k * check->columns + at->from;
        for (uint64_t j = 0; j < at->count; j++) {
            work->plain[j] += factor * others[j];
        }
    }
}

static void look_again(struct work *work, const struct stretch *at, uint64_t j, float found)
{
    if (!residual_agrees(work->check->inner, work->plus[j], work->minus[j], found,
                         work->plain[j])) {
        doubt(work, at->row, "an entry is further off than usual, but not than rounding can be");
    }
}

static void compute_anew(struct work *work, const struct stretch *at)
{
    const struct seeded_check *check = work->check;
    bool has_plain = false;
    add_up(work, at);
    for (uint64_t j = 0; j < at->count && !rejected(work); j++) {
        float found = check->c[at->row * check->columns + at->from + j];
        switch (residual_judge_entry(check->inner, work->plus[j], work->minus[j], found)) {
        case RESIDUAL_RIGHT:
            break;
        case RESIDUAL_DOUBTFUL:
            if (!has_plain) {
                add_up_plainly(work, at);
                has_plain = true;
            }
            look_again(work, at, j, found);
            break;
        case RESIDUAL_WRONG:
            reject(work, at->row, "an entry is none that any order of summation leads to");
            break;
        }
    }
}

static void compute_row_anew(struct work *work, uint64_t row)
{
    compute_anew(work, &(struct stretch){.row = row, .count = work->check->columns});
}

static int compare_suspects(const void *left, const void *right)
{
    const struct suspect *a = left;
    const struct suspect *b = right;
    return a->urgency != b->urgency ? (a->urgency < b->urgency) - (a->urgency > b->urgency)
                                    : (a->row > b->row) - (a->row < b->row);
}

/* Returns how many rows the check can afford to recompute, at `terms` terms a row. */
static uint64_t affordable(const struct work *work, double rounds, double terms)
{
    const struct seeded_check *check = work->check;
    double rows = (double)check->rows;
    double inner = (double)check->inner;
    double columns = (double)check->columns;
    double round = rows * inner + inner * columns + rows * columns;
    double affordable = (rounds * round + STEPS_LEAST) / fmax(terms, 1);
    return affordable >= rows ? check->rows : (uint64_t)affordable;
}

static double row_terms(const struct work *work)
{
    return (double)work->check->inner * (double)work->check->columns;
}

/* The worst rows come first; the vectors decide which these are. The rest counts as right by its
 * residuals, if they do not imply a wrong entry. */
static void look_at_doubtful(struct work *work)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < work->check->rows; i++) {
        if (work->doubts[i] > 0) {
            work->suspects[count++] = (struct suspect){work->doubts[i], i};
        }
    }
    uint64_t most = affordable(work, DOUBTFUL_STEPS, row_terms(work));
    qsort(work->suspects, count, sizeof *work->suspects, compare_suspects);
    for (uint64_t at = 0; at < count && at < most && !rejected(work); at++) {
        compute_row_anew(work, work->suspects[at].row);
    }
    if (count > most && work->suspects[most].urgency > 1) {
        doubt(work, work->suspects[most].row, "too many rows lie between the bounds");
    }
}

/* Draws an order of the rows that are odd, or of those that are not. */
static uint64_t draw_rows(struct work *work, bool odd)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < work->check->rows; i++) {
        if (work->odd_rows[i] == odd) {
            work->suspects[count++] = (struct suspect){(double)(next(&work->dice) >> 11), i};
        }
    }
    qsort(work->suspects, count, sizeof *work->suspects, compare_suspects);
    return count;
}

static void leave_unseen(struct work *work, uint64_t count, uint64_t seen)
{
    if (count > seen) {
        work->unseen = fmax(work->unseen, 1 - (double)seen / (double)count);
    }
}

static void look_at_odd_rows(struct work *work)
{
    uint64_t count = draw_rows(work, true);
    uint64_t most = affordable(work, ODD_STEPS, row_terms(work));
    for (uint64_t at = 0; at < count && at < most && !rejected(work); at++) {
        compute_row_anew(work, work->suspects[at].row);
    }
    leave_unseen(work, count, most);
}

/* The residuals leave these columns out, so their entries are recomputed in the rows that have a
 * residual. */
static void look_at_odd_columns(struct work *work)
{
    const uint64_t columns = work->check->columns;
    uint64_t odd = 0;
    for (uint64_t j = 0; j < columns; j++) {
        odd += work->odd_columns[j];
    }
    uint64_t count = odd == 0 ? 0 : draw_rows(work, false);
    uint64_t most = affordable(work, ODD_STEPS, (double)odd * (double)work->check->inner);
    for (uint64_t at = 0; at < count && at < most; at++) {
        for (uint64_t j = 0; j < columns && !rejected(work); j++) {
            if (work->odd_columns[j]) {
                compute_anew(work,
                             &(struct stretch){work->suspects[at].row, .from = j, .count = 1});
            }
        }
    }
    leave_unseen(work, count, most);
}

/* ---------------------------------------------------------------- lower precision */

/* Draws PRECISION_SIDE of the numbers below `count` whose `odd` is false. Returns false when there
 * are not enough. */
static bool draw_even(struct work *work, const bool *odd, uint64_t count,
                      uint64_t ret_drawn[PRECISION_SIDE])
{
    uint64_t seen = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (odd[i]) {
            continue;
        }
        uint64_t place = seen < PRECISION_SIDE ? seen : next(&work->dice) % (seen + 1);
        seen++;
        if (place < PRECISION_SIDE) {
            ret_drawn[place] = i;
        }
    }
    return seen >= PRECISION_SIDE;
}

static void look_at_precision(struct work *work)
{
    const struct seeded_check *check = work->check;
    uint64_t rows[PRECISION_SIDE];
    uint64_t columns[PRECISION_SIDE];
    float a[PRECISION_SIDE];
    float b[PRECISION_SIDE];
    float found[PRECISION_SIDE][PRECISION_SIDE];
    if (!draw_even(work, work->odd_rows, check->rows, rows) ||
        !draw_even(work, work->odd_columns, check->columns, columns)) {
        return;
    }
    for (uint64_t k = 0; k < check->inner; k++) {
        for (size_t s = 0; s < PRECISION_SIDE; s++) {
            a[s] = check->a[rows[s] * check->inner + k];
            b[s] = check->b[k * check->columns + columns[s]];
        }
        precision_add(work->sample, a, b);
    }
    for (size_t i = 0; i < PRECISION_SIDE; i++) {
        for (size_t j = 0; j < PRECISION_SIDE; j++) {
            found[i][j] = check->c[rows[i] * check->columns + columns[j]];
        }
    }
    switch (precision_judge(work->sample, found)) {
    case PRECISION_FULL:
        break;
    case PRECISION_DOUBTFUL:
        doubt(work, rows[0], "one factor may have been rounded to fewer bits");
        break;
    case PRECISION_REDUCED:
        reject(work, rows[0], "it is the product of factors that were rounded to fewer bits");
        break;
    }
}

static void run(struct work *work)
{
    const struct seeded_check *check = work->check;
    find_odd(work);
    sum_b(work);
    for (uint64_t i = 0; i < check->rows && !rejected(work); i++) {
        if (!work->odd_rows[i]) {
            bound_row(work, i);
        }
    }
    for (uint32_t done = 0; done < check->rounds && !rejected(work); done += WIDTH) {
        judge(work, check->rounds - done < WIDTH ? check->rounds - done : WIDTH);
    }
    if (!rejected(work)) {
        look_at_odd_rows(work);
        look_at_odd_columns(work);
        look_at_doubtful(work);
    }
    if (!rejected(work)) {
        look_at_precision(work);
    }
}

/* A row that is wrong beyond its bound shows in each vector with probability 1/2 at least. */
static void conclude(struct work *work)
{
    struct seeded_result *result = work->result;
    if (rejected(work)) {
        return;
    }
    if (work->unsure) {
        result->verdict = VERDICT_UNSURE;
        return;
    }
    result->verdict = VERDICT_ACCEPT;
    result->why = "every row is within its bound";
    result->false_accept = fmax(ldexp(1, -(int)result->rounds), work->unseen);
}

bool seeded_check_run(const struct seeded_check *check, struct seeded_result *ret_result)
{
    assert(check->rounds >= 1 && check->rounds <= SEEDED_ROUNDS_MOST);

    struct seeded_result result = {
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
