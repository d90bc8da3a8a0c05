#include "numeric/seeded_check.h"

#include "numeric/freivalds.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 8,       /* vectors that pass through the matrices together */
    BAND = 64,       /* rows whose sums are computed together */
    BLOCK = 1 << 15, /* elements that pass through the processor's cache together */
};

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
    struct freivalds_source source; /* the matrices in memory */
    struct freivalds freivalds;
    uint32_t drawn; /* vectors of the WIDTH that are in use */
    /* Rows of A with a value that is not finite, and rows that may have overflowed, have no
     * residual. */
    bool *odd_rows;
    struct residual_bounds *bounds; /* for each row */
    /* The array holds each row's largest doubtful residual as a part of `close`, or 0. */
    double *doubts;
    float *found; /* recomputed entries of one row: in C */
    double *plus;
    double *minus;
    float *plain;             /* the same entries, term by term in float32 */
    struct suspect *suspects; /* rows to recompute */
    struct freivalds_sample *sample;
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
    return rows * (sizeof(bool) + sizeof(struct residual_bounds) + sizeof(double) +
                   sizeof(struct suspect)) +
           freivalds_bytes(inner, columns, WIDTH) + columns * 2 * (sizeof(double) + sizeof(float)) +
           sizeof(struct freivalds_sample);
}

/* A block of a matrix in memory lies where the matrix lies. */
static bool read_block(void *context, const struct freivalds_block *block,
                       struct freivalds_view *ret_view)
{
    const struct work *work = context;
    const struct seeded_check *check = work->check;
    const float *matrices[] = {
        [FREIVALDS_A] = check->a, [FREIVALDS_B] = check->b, [FREIVALDS_C] = check->c};
    ret_view->stride = block->matrix == FREIVALDS_A ? check->inner : check->columns;
    ret_view->elements = matrices[block->matrix] + block->row * ret_view->stride + block->column;
    return true;
}

/* The source cannot fail. */
static void must(bool is_read)
{
    assert(is_read);
}

static bool allocate(struct work *work)
{
    const struct seeded_check *check = work->check;
    bool has_memory = freivalds_init(&work->freivalds, &work->source, WIDTH);
    work->odd_rows = calloc(check->rows + 1, sizeof(bool));
    work->bounds = calloc(check->rows + 1, sizeof *work->bounds);
    work->doubts = calloc(check->rows + 1, sizeof(double));
    work->found = calloc(check->columns + 1, sizeof(float));
    work->plus = calloc(check->columns + 1, sizeof(double));
    work->minus = calloc(check->columns + 1, sizeof(double));
    work->plain = calloc(check->columns + 1, sizeof(float));
    work->suspects = calloc(check->rows + 1, sizeof *work->suspects);
    work->sample = calloc(1, sizeof *work->sample);
    return has_memory && work->odd_rows != NULL && work->bounds != NULL && work->doubts != NULL &&
           work->found != NULL && work->plus != NULL && work->minus != NULL &&
           work->plain != NULL && work->suspects != NULL && work->sample != NULL;
}

static void release(struct work *work)
{
    freivalds_fini(&work->freivalds);
    free(work->odd_rows);
    free(work->bounds);
    free(work->doubts);
    free(work->found);
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

/* ---------------------------------------------------------------- the bounds */

static void bound_row(struct work *work, uint64_t i, const struct freivalds_row *row)
{
    work->odd_rows[i] = row->is_odd_a || row->is_odd_c;
    if (!work->odd_rows[i]) {
        work->bounds[i] = freivalds_bounds(&work->freivalds, row);
    } else if (!row->is_odd_a && !residual_may_overflow(work->check->inner, row->reach)) {
        reject(work, i, "an entry is not finite, and nothing could make it so");
    }
}

static void bound_rows(struct work *work)
{
    const uint64_t rows = work->check->rows;
    struct freivalds_row band[BAND];
    for (uint64_t from = 0; from < rows && !rejected(work); from += BAND) {
        const uint64_t to = rows - from < BAND ? rows : from + BAND;
        must(
            freivalds_sum_rows(&work->freivalds, from, to, &(struct freivalds_sums){.rows = band}));
        for (uint64_t i = from; i < to && !rejected(work); i++) {
            bound_row(work, i, &band[i - from]);
        }
    }
}

/* ---------------------------------------------------------------- the vectors */

/* Draws the next vectors, one after the other. The first call also finds the odd columns and the
 * sums of B. */
static void draw_vectors(struct work *work)
{
    const uint64_t columns = work->check->columns;
    const uint32_t left = work->check->rounds - work->result->rounds;
    double *signs = work->freivalds.signs;
    work->drawn = left < WIDTH ? left : WIDTH;
    for (uint32_t t = 0; t < work->drawn; t++) {
        for (uint64_t j = 0; j < columns; j++) {
            signs[j * WIDTH + t] = (next(&work->dice) >> 63) != 0 ? 1 : -1;
        }
    }
    must(freivalds_project(&work->freivalds));
}

static void judge_vector(struct work *work, uint64_t i, double residual)
{
    const struct residual_bounds *bounds = &work->bounds[i];
    const double least = bounds->right > DBL_MIN ? bounds->right : DBL_MIN;
    double part =
        residual <= bounds->right ? residual / least : fmin(residual / bounds->right, 1e300);
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
        break;
    }
}

static void judge_row(struct work *work, uint64_t i, const double *left, const double *right)
{
    for (uint32_t t = 0; t < work->drawn && !rejected(work); t++) {
        judge_vector(work, i, fabs(left[t] - right[t]));
    }
}

/* Judges the rows by the vectors, in order, until one is rejected. */
static void judge_rows(struct work *work)
{
    const uint64_t rows = work->check->rows;
    double left[BAND * WIDTH];
    double right[BAND * WIDTH];
    for (uint64_t from = 0; from < rows && !rejected(work); from += BAND) {
        const uint64_t to = rows - from < BAND ? rows : from + BAND;
        must(freivalds_sum_rows(&work->freivalds, from, to,
                                &(struct freivalds_sums){.left = left, .right = right}));
        for (uint64_t i = from; i < to && !rejected(work); i++) {
            if (!work->odd_rows[i]) {
                judge_row(work, i, left + (i - from) * WIDTH, right + (i - from) * WIDTH);
            }
        }
    }
    work->result->rounds += work->drawn;
}

/* ---------------------------------------------------------------- recomputed entries */

struct stretch { /* entries [from, from + count) of a row */
    uint64_t row, from, count;
};

static void look_again(struct work *work, uint64_t row, uint64_t j)
{
    if (!residual_agrees(work->check->inner, work->plus[j], work->minus[j], work->found[j],
                         work->plain[j])) {
        doubt(work, row, "an entry is further off than usual, but not than rounding can be");
    }
}

static void compute_anew(struct work *work, const struct stretch *at)
{
    const uint64_t inner = work->check->inner;
    const struct freivalds_entries entries = {.rows = &at->row,
                                              .row_count = 1,
                                              .column = at->from,
                                              .count = at->count,
                                              .found = work->found,
                                              .plus = work->plus,
                                              .minus = work->minus};
    bool has_plain = false;
    must(freivalds_recompute(&work->source, &entries));
    for (uint64_t j = 0; j < at->count && !rejected(work); j++) {
        switch (residual_judge_entry(inner, work->plus[j], work->minus[j], work->found[j])) {
        case RESIDUAL_RIGHT:
            break;
        case RESIDUAL_DOUBTFUL:
            if (!has_plain) {
                must(freivalds_recompute_plainly(&work->source, &entries, work->plain));
                has_plain = true;
            }
            look_again(work, at->row, j);
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
    const bool *odd_columns = work->freivalds.odd_columns;
    uint64_t odd = 0;
    for (uint64_t j = 0; j < columns; j++) {
        odd += odd_columns[j];
    }
    uint64_t count = odd == 0 ? 0 : draw_rows(work, false);
    uint64_t most = affordable(work, ODD_STEPS, (double)odd * (double)work->check->inner);
    for (uint64_t at = 0; at < count && at < most; at++) {
        for (uint64_t j = 0; j < columns && !rejected(work); j++) {
            if (odd_columns[j]) {
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
    struct freivalds_sample *sample = work->sample;
    if (!draw_even(work, work->odd_rows, check->rows, sample->rows) ||
        !draw_even(work, work->freivalds.odd_columns, check->columns, sample->columns)) {
        return;
    }
    must(freivalds_take_sample(&work->source, sample));
    switch (precision_judge(&sample->sums, sample->found)) {
    case PRECISION_FULL:
        break;
    case PRECISION_DOUBTFUL:
        doubt(work, sample->rows[0], "one factor may have been rounded to fewer bits");
        break;
    case PRECISION_REDUCED:
        reject(work, sample->rows[0],
               "it is the product of factors that were rounded to fewer bits");
        break;
    }
}

static void run(struct work *work)
{
    draw_vectors(work);
    bound_rows(work);
    for (uint32_t done = 0; done < work->check->rounds && !rejected(work); done += WIDTH) {
        if (done > 0) {
            draw_vectors(work);
        }
        judge_rows(work);
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
    struct work work = {.check = check,
                        .result = &result,
                        .dice = dice_of(check->seed),
                        .source = {.rows = check->rows,
                                   .inner = check->inner,
                                   .columns = check->columns,
                                   .block_elements = BLOCK,
                                   .read = read_block,
                                   .context = &work}};
    bool allocated = allocate(&work);
    if (allocated) {
        run(&work);
        conclude(&work);
        *ret_result = result;
    }
    release(&work);
    return allocated;
}
