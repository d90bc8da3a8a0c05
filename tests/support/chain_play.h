/* tests/support/chain_play.h has a device compute a chain, and checks each digest of the answer. */
#ifndef BOURSE_TESTS_SUPPORT_CHAIN_PLAY_H
#define BOURSE_TESTS_SUPPORT_CHAIN_PLAY_H

#include "base/text.h"
#include "provider/kernel/product/chain.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Computes the chain in so much memory. Returns its answer in hex, which the caller frees, or NULL
 * with the status and the problem. */
static inline char *chain_play(struct engine *engine, const struct challenge_product *product,
                               uint64_t memory_bytes, enum operation_status *ret_status,
                               struct problem *ret_problem)
{
    char seed[2 * sizeof product->seed.bytes + 1];
    char figures[4][16];
    char *said = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&said, &length);
    ck_assert_ptr_nonnull(out);
    text_hex(product->seed.bytes, sizeof product->seed.bytes, seed);
    const uint32_t numbers[] = {product->side, product->rounds, product->rows, product->steps};
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(figures[i], sizeof figures[i], "%u", numbers[i]);
    }
    const char *const words[CHAIN_WORDS] = {"challenge", seed,       figures[0],
                                            figures[1],  figures[2], figures[3]};
    *ret_status = chain_run(engine, words, CHAIN_WORDS, memory_bytes, out, ret_problem);
    ck_assert_int_eq(fclose(out), 0);
    if (*ret_status != OPERATION_OK) {
        free(said);
        said = NULL;
    }
    return said;
}

/* Returns how many digests of the answer are those of their rows. */
static inline uint32_t chain_right(const struct challenge_product *product, const char *hex)
{
    const uint32_t digests = challenge_product_digests(product);
    const uint32_t bytes = challenge_product_answer_bytes(product);
    uint8_t *answer = malloc(bytes);
    int16_t *factor = malloc((size_t)product->side * product->side * sizeof *factor);
    uint32_t right = 0;
    ck_assert(answer != NULL && factor != NULL);
    ck_assert(text_unhex(hex, answer, bytes));
    challenge_chain_factor(product, factor);
    for (uint32_t i = 0; i < digests; i++) {
        uint8_t own[CHALLENGE_CHAIN_DIGEST_BYTES];
        challenge_chain_row(product, factor, i / product->rows, i % product->rows, own);
        right += memcmp(answer + (size_t)i * sizeof own, own, sizeof own) == 0;
    }
    free(factor);
    free(answer);
    return right;
}

#endif
