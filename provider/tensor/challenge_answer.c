#include "provider/tensor/challenge_answer.h"

#include "base/challenge_product.h"
#include "base/text.h"
#include "provider/tensor/gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool read_product(const char *const *words, size_t count, struct challenge_product *ret)
{
    char *end_of_side = NULL;
    char *end_of_rounds = NULL;
    *ret = (struct challenge_product){.side = 0};
    if (count != CHALLENGE_WORDS ||
        !text_unhex(words[1], ret->seed.bytes, sizeof ret->seed.bytes)) {
        return false;
    }
    const unsigned long side = strtoul(words[2], &end_of_side, 10);
    const unsigned long rounds = strtoul(words[3], &end_of_rounds, 10);
    ret->side = side <= CHALLENGE_SIDE_MOST ? (uint32_t)side : 0;
    ret->rounds = rounds <= CHALLENGE_ROUNDS_MOST ? (uint32_t)rounds : 0;
    return *end_of_side == '\0' && *end_of_rounds == '\0' && challenge_product_is_valid(ret);
}

static void fill(const struct challenge_product *product, uint32_t round, float *left, float *right)
{
    int16_t entries[CHALLENGE_SIDE_MOST];
    for (uint32_t row = 0; row < product->side; row++) {
        challenge_product_left(product, round, row, entries);
        for (uint32_t i = 0; i < product->side; i++) {
            left[(size_t)row * product->side + i] = entries[i];
        }
        challenge_product_right(product, round, row, entries);
        for (uint32_t i = 0; i < product->side; i++) {
            right[(size_t)row * product->side + i] = entries[i];
        }
    }
}

/* Sums are whole numbers below 2^24. A multiplier that says otherwise gets a wrong digest. */
static void say(const struct challenge_product *product, const float *sums)
{
    int32_t entries[CHALLENGE_SIDE_MOST];
    uint8_t digest[CHALLENGE_DIGEST_BYTES];
    char text[2 * CHALLENGE_DIGEST_BYTES + 1];
    for (uint32_t row = 0; row < product->side; row++) {
        for (uint32_t i = 0; i < product->side; i++) {
            const float sum = sums[(size_t)row * product->side + i];
            entries[i] = fabsf(sum) < 0x1p24F ? (int32_t)sum : INT32_MAX;
        }
        challenge_product_digest(entries, product->side, digest);
        text_hex(digest, sizeof digest, text);
        (void)fputs(text, stdout);
    }
}

enum operation_status challenge_answer_run(const char *const *words, size_t count,
                                           const struct operation_multiplier *multiplier,
                                           struct problem *ret_problem)
{
    static const struct operation_places nowhere = {.a = {.name = ""}, .b = {.name = ""}};
    struct challenge_product product;
    if (!read_product(words, count, &product)) {
        problem_set(ret_problem, "a challenge needs a seed, a side and rounds within their bounds");
        return OPERATION_FAILED;
    }
    const size_t cells = (size_t)product.side * product.side;
    float *values = malloc(3 * cells * sizeof *values);
    if (values == NULL) {
        problem_set(ret_problem, "no memory for the factors of a challenge");
        return OPERATION_MEMORY;
    }
    enum operation_status status = OPERATION_OK;
    for (uint32_t round = 0; status == OPERATION_OK && round < product.rounds; round++) {
        const struct gemm gemm = {.rows = product.side,
                                  .inner = product.side,
                                  .columns = product.side,
                                  .alpha = 1,
                                  .a = values,
                                  .b = values + cells,
                                  .c = values + 2 * cells};
        fill(&product, round, values, values + cells);
        status = multiplier->multiply(multiplier->context, &gemm, &nowhere, ret_problem);
        if (status == OPERATION_OK) {
            say(&product, gemm.c);
        }
    }
    free(values);
    return status;
}
