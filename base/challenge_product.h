/* base/challenge_product.h computes what a challenge asks for. A challenge is products of matrices
 * that follow from a seed.
 *
 * A challenge has `rounds` products of two square matrices of whole numbers. The left factor has
 * entries from -511 to 511, and the right factor from -7 to 7. So every sum is below 2^24, and
 * float32 holds it exactly, in any order of summation. The answer is one digest of eight bytes for
 * each row of each product.
 *
 * Nobody knows the digest of a row without the row. Whoever checks the answer computes a few rows
 * that only the checker knows, which costs two operations for each entry of one factor. Pure. */
#ifndef BOURSE_BASE_CHALLENGE_PRODUCT_H
#define BOURSE_BASE_CHALLENGE_PRODUCT_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHALLENGE_SIDE_LEAST = 64,
    CHALLENGE_SIDE_MOST = 2048,
    CHALLENGE_ROUNDS_MOST = 16,
    CHALLENGE_DIGEST_BYTES = 8,
    CHALLENGE_ANSWER_MOST = CHALLENGE_ROUNDS_MOST * CHALLENGE_SIDE_MOST * CHALLENGE_DIGEST_BYTES,
};

/* The products of one challenge. */
struct challenge_product {
    struct hash32 seed;
    uint32_t side;   /* a multiple of 64, CHALLENGE_SIDE_LEAST to CHALLENGE_SIDE_MOST */
    uint32_t rounds; /* 1 to CHALLENGE_ROUNDS_MOST */
};

/* Returns true when side and rounds are within their bounds. */
bool challenge_product_is_valid(const struct challenge_product *product);
/* Returns the size of the answer in bytes; the digest of row R of round K is number K side + R. */
uint32_t challenge_product_answer_bytes(const struct challenge_product *product);

/* These two write one row of a factor of one round, `side` entries. */
void challenge_product_left(const struct challenge_product *product, uint32_t round, uint32_t row,
                            int16_t *ret_entries);
void challenge_product_right(const struct challenge_product *product, uint32_t round, uint32_t row,
                             int16_t *ret_entries);
/* Writes the digest of one row of a product. */
void challenge_product_digest(const int32_t *entries, uint32_t side,
                              uint8_t ret_digest[CHALLENGE_DIGEST_BYTES]);

/* Returns true when the digest is that of the row. The function computes the row: side squared
 * multiplications. */
bool challenge_product_holds(const struct challenge_product *product, uint32_t round, uint32_t row,
                             const uint8_t digest[CHALLENGE_DIGEST_BYTES]);

#endif
