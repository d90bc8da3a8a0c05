#include "provider/kernel/product/chain.h"

#include "base/text.h"
#include "provider/kernel/product/product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAND_STEP = 64 };
static const char matrix[] = "a matrix of a challenge";

/* A chain on its way. All buffers are on the device. */
struct chain {
    struct engine *engine;
    const struct kernel_interface *interface;
    struct challenge_product product;
    struct kernel_buffer spread, factor, last; /* V, B and S */
    struct kernel_buffer first;                /* U of a band */
    struct kernel_buffer sums[2];              /* X of a band, and the next one */
    struct kernel_buffer result;               /* Y of a band */
    struct kernel_buffer *made[7];             /* those that were made */
    size_t made_count;
    uint32_t band;            /* rows that go at a time */
    float *values;            /* of the host: room for any matrix that is copied */
    void *multiplies, *folds; /* kernels; NULL: none yet */
    FILE *out;
    struct problem *problem;
};

static bool read_number(const char *word, uint32_t *ret_number)
{
    char *end;
    const unsigned long number = strtoul(word, &end, 10);
    *ret_number = number <= UINT32_MAX ? (uint32_t)number : 0;
    return *end == '\0' && end != word;
}

static bool read_words(const char *const *words, size_t count, struct challenge_product *ret)
{
    *ret = (struct challenge_product){.side = 0};
    return count == CHAIN_WORDS && text_unhex(words[1], ret->seed.bytes, sizeof ret->seed.bytes) &&
           read_number(words[2], &ret->side) && read_number(words[3], &ret->rounds) &&
           read_number(words[4], &ret->rows) && read_number(words[5], &ret->steps) &&
           challenge_product_is_valid(ret) && challenge_product_is_chain(ret);
}

/* ---------------------------------------------------------------- matrices */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Chooses how many rows go at a time. Returns false when BAND_STEP rows do not fit. */
static bool choose_band(struct chain *chain, uint64_t memory_bytes)
{
    const struct challenge_product *product = &chain->product;
    const uint64_t narrow = CHALLENGE_CHAIN_INNER + CHALLENGE_CHAIN_COLUMNS;
    const uint64_t fixed = (product->side + narrow) * product->side * sizeof(float);
    const uint64_t row = (2 * product->side + narrow) * sizeof(float);
    const uint64_t told = chain->engine->device->buffer_bytes;
    const uint64_t fits = memory_bytes > fixed ? (memory_bytes - fixed) / row : 0;
    const uint64_t one = told > 0 ? told / (product->side * sizeof(float)) : fits;
    const uint64_t most = fits < one ? fits : one;
    chain->band = most < product->rows ? (uint32_t)(most / BAND_STEP * BAND_STEP) : product->rows;
    if (chain->band == 0) {
        problem_set(chain->problem, "a chain of %u columns does not fit %s", product->side,
                    text_size(memory_bytes).text);
    }
    return chain->band > 0;
}

static enum operation_status make(struct chain *chain, uint64_t count, const float *values,
                                  struct kernel_buffer *ret_buffer)
{
    const enum operation_status status = chain->interface->make(
        chain->engine, count * sizeof(float), values, matrix, ret_buffer, chain->problem);
    if (status == OPERATION_OK) {
        chain->made[chain->made_count++] = ret_buffer;
    }
    return status;
}

/* Copies `count` entries, `apart` values from one to the next. */
static void place(const int16_t *entries, uint32_t count, size_t apart, float *ret_values)
{
    for (uint32_t i = 0; i < count; i++) {
        ret_values[i * apart] = entries[i];
    }
}

/* Makes the matrices that are the same in all rounds. */
static enum operation_status make_fixed(struct chain *chain)
{
    const struct challenge_product *product = &chain->product;
    const uint32_t side = product->side;
    int16_t entries[CHALLENGE_CHAIN_SIDE_MOST];
    for (uint32_t i = 0; i < CHALLENGE_CHAIN_INNER; i++) {
        challenge_chain_spread(product, i, entries);
        place(entries, side, 1, chain->values + (size_t)i * side);
    }
    enum operation_status status =
        make(chain, (uint64_t)CHALLENGE_CHAIN_INNER * side, chain->values, &chain->spread);
    for (uint32_t j = 0; j < side; j++) {
        challenge_chain_column(product, j, entries);
        place(entries, side, side, chain->values + j);
    }
    status = status == OPERATION_OK
                 ? make(chain, (uint64_t)side * side, chain->values, &chain->factor)
                 : status;
    for (uint32_t i = 0; i < side; i++) {
        challenge_chain_last(product, i, entries);
        place(entries, CHALLENGE_CHAIN_COLUMNS, 1,
              chain->values + (size_t)i * CHALLENGE_CHAIN_COLUMNS);
    }
    return status == OPERATION_OK
               ? make(chain, (uint64_t)side * CHALLENGE_CHAIN_COLUMNS, chain->values, &chain->last)
               : status;
}

/* Makes the matrices of a band, of any content. */
static enum operation_status make_band(struct chain *chain)
{
    const uint64_t band = chain->band;
    enum operation_status status = OPERATION_OK;
    for (size_t i = 0; status == OPERATION_OK && i < 2; i++) {
        status = make(chain, band * chain->product.side, NULL, &chain->sums[i]);
    }
    return status == OPERATION_OK
               ? make(chain, band * CHALLENGE_CHAIN_COLUMNS, NULL, &chain->result)
               : status;
}

static enum operation_status find_fold(struct chain *chain)
{
    static const char name[] = "the program of folds";
    const char *source = chain->interface->measure_source;
    void *program;
    const enum operation_status status =
        engine_build(chain->engine, name, source, strlen(source), "", &program, chain->problem);
    return status == OPERATION_OK
               ? chain->interface->find(chain->engine, program, name, "bourse_fold", &chain->folds,
                                        chain->problem)
               : status;
}

/* ---------------------------------------------------------------- the products */

static enum operation_status multiply(struct chain *chain, uint32_t rows, uint32_t inner,
                                      uint32_t columns, struct kernel_buffer a,
                                      struct kernel_buffer b, struct kernel_buffer c)
{
    const struct kernel_multiplication terms = {
        .rows = rows, .inner = inner, .columns = columns, .alpha = 1, .a = a, .b = b, .c = c};
    return product_on_device(chain->engine, &terms, &chain->multiplies, chain->problem);
}

static enum operation_status fold(struct chain *chain, uint32_t rows, struct kernel_buffer sums)
{
    const struct kernel_op op = {.dimensions = 1, .global = {(uint64_t)rows * chain->product.side}};
    const enum operation_status status = chain->interface->set_buffer(
        chain->engine, chain->folds, 0, sums, "folding", chain->problem);
    return status == OPERATION_OK
               ? chain->interface->run(chain->engine, chain->folds, &op, chain->problem)
               : status;
}

static enum operation_status compute(struct chain *chain, uint32_t rows)
{
    const uint32_t side = chain->product.side;
    size_t at = 0;
    enum operation_status status = multiply(chain, rows, CHALLENGE_CHAIN_INNER, side, chain->first,
                                            chain->spread, chain->sums[at]);
    for (uint32_t step = 0; status == OPERATION_OK && step < chain->product.steps; step++) {
        status = fold(chain, rows, chain->sums[at]);
        status = status == OPERATION_OK ? multiply(chain, rows, side, side, chain->sums[at],
                                                   chain->factor, chain->sums[1 - at])
                                        : status;
        at = 1 - at;
    }
    status = status == OPERATION_OK ? fold(chain, rows, chain->sums[at]) : status;
    return status == OPERATION_OK ? multiply(chain, rows, side, CHALLENGE_CHAIN_COLUMNS,
                                             chain->sums[at], chain->last, chain->result)
                                  : status;
}

/* Sums are whole numbers below 2^24. A device that says otherwise gets a wrong digest. */
static void say(const float *sums, uint32_t rows, FILE *out)
{
    int32_t entries[CHALLENGE_CHAIN_COLUMNS];
    uint8_t digest[CHALLENGE_CHAIN_DIGEST_BYTES];
    char text[2 * CHALLENGE_CHAIN_DIGEST_BYTES + 1];
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t i = 0; i < CHALLENGE_CHAIN_COLUMNS; i++) {
            const float sum = sums[(size_t)row * CHALLENGE_CHAIN_COLUMNS + i];
            entries[i] = fabsf(sum) < 0x1p24F ? (int32_t)sum : INT32_MAX;
        }
        challenge_chain_digest(entries, digest);
        text_hex(digest, sizeof digest, text);
        (void)fputs(text, out);
    }
}

static enum operation_status run_band(struct chain *chain, uint32_t round, uint32_t begin,
                                      uint32_t rows)
{
    int16_t entries[CHALLENGE_CHAIN_INNER];
    for (uint32_t i = 0; i < rows; i++) {
        challenge_chain_first(&chain->product, round, begin + i, entries);
        place(entries, CHALLENGE_CHAIN_INNER, 1, chain->values + (size_t)i * CHALLENGE_CHAIN_INNER);
    }
    enum operation_status status = chain->interface->make(
        chain->engine, (uint64_t)rows * CHALLENGE_CHAIN_INNER * sizeof(float), chain->values,
        matrix, &chain->first, chain->problem);
    if (status != OPERATION_OK) {
        return status;
    }
    status = compute(chain, rows);
    status = status == OPERATION_OK
                 ? chain->interface->read(chain->engine, chain->result, 0,
                                          (size_t)rows * CHALLENGE_CHAIN_COLUMNS * sizeof(float),
                                          chain->values, matrix, chain->problem)
                 : status;
    if (status == OPERATION_OK) {
        say(chain->values, rows, chain->out);
    }
    chain->interface->drop_buffer(chain->engine, chain->first);
    return status;
}

static enum operation_status run_all(struct chain *chain)
{
    const struct challenge_product *product = &chain->product;
    enum operation_status status = make_fixed(chain);
    status = status == OPERATION_OK ? make_band(chain) : status;
    status = status == OPERATION_OK ? find_fold(chain) : status;
    for (uint32_t round = 0; round < product->rounds; round++) {
        for (uint32_t row = 0; status == OPERATION_OK && row < product->rows; row += chain->band) {
            const uint32_t left = product->rows - row;
            status = run_band(chain, round, row, left < chain->band ? left : chain->band);
        }
    }
    return status;
}

static void end(struct chain *chain)
{
    for (size_t i = 0; i < chain->made_count; i++) {
        chain->interface->drop_buffer(chain->engine, *chain->made[i]);
    }
    if (chain->multiplies != NULL) {
        chain->interface->drop_kernel(chain->engine, chain->multiplies);
    }
    if (chain->folds != NULL) {
        chain->interface->drop_kernel(chain->engine, chain->folds);
    }
    free(chain->values);
}

enum operation_status chain_run(struct engine *engine, const char *const *words, size_t count,
                                uint64_t memory_bytes, FILE *out, struct problem *ret_problem)
{
    struct chain chain = {.engine = engine,
                          .interface = engine->device->interface,
                          .out = out,
                          .problem = ret_problem};
    if (!read_words(words, count, &chain.product)) {
        problem_set(ret_problem, "a chain needs a seed and four figures within their bounds");
        return OPERATION_FAILED;
    }
    if (!choose_band(&chain, memory_bytes)) {
        return OPERATION_MEMORY;
    }
    const uint64_t side = chain.product.side;
    chain.values = malloc((size_t)larger(side * larger(side, CHALLENGE_CHAIN_INNER),
                                         (uint64_t)chain.band * CHALLENGE_CHAIN_INNER) *
                          sizeof *chain.values);
    if (chain.values == NULL) {
        problem_set(ret_problem, "no memory for the factors of a challenge");
        return OPERATION_MEMORY;
    }
    const enum operation_status status = run_all(&chain);
    end(&chain);
    return status;
}
