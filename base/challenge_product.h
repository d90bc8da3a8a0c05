/* base/challenge_product.h computes what a challenge asks for. A challenge is products of matrices
 * that follow from a seed. There are two forms.
 *
 * The first form is for cores, and for plug-ins. It has `rounds` products of two square matrices of
 * whole numbers. The left factor has entries from -511 to 511, and the right factor from -7 to 7.
 * So every sum is below 2^24, and float32 holds it exactly, in any order of summation. The answer
 * is one digest of eight bytes for each row of each product.
 *
 * Nobody knows the digest of a row without the row. Whoever checks the answer computes a few rows
 * that only the checker knows, which costs two operations for each entry of one factor.
 *
 * The second form is a chain. A fast device computes products faster than a core makes their
 * factors and hashes their sums, so the factors stay on the device:
 *
 *     X = U V,    steps times X = fold(X) B,    Y = fold(X) S
 *
 * B is square, U is narrow, V is flat, and S has a few columns. So only `rows` x (INNER + COLUMNS)
 * numbers go to the device and back for the work of `steps` square products. fold() keeps ten bits
 * from the middle of each sum. It is not linear, so nobody can multiply B by itself first. A round
 * has a U of its own, and the rest is the same in all rounds. The answer is one digest of two bytes
 * for each row of Y.
 *
 * Each row of Y follows from the same row of U alone. So the check of one row costs `steps` times
 * the entries of B, which is the device's work divided by all its rows. Pure. */
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
    CHALLENGE_CHAIN_INNER = 16,  /* columns of U, and rows of V */
    CHALLENGE_CHAIN_COLUMNS = 8, /* of S and Y */
    CHALLENGE_CHAIN_SIDE_MOST = 1024,
    CHALLENGE_CHAIN_ROWS_MOST = 65536,
    CHALLENGE_CHAIN_STEPS_MOST = 1024,
    CHALLENGE_CHAIN_DIGEST_BYTES = 2,
};

/* The products of one challenge. */
struct challenge_product {
    struct hash32 seed;
    uint32_t side;   /* a multiple of 64, CHALLENGE_SIDE_LEAST to CHALLENGE_SIDE_MOST */
    uint32_t rounds; /* 1 to CHALLENGE_ROUNDS_MOST */
    /* A chain has both, and the first form has zeros. Rows are a multiple of 64. */
    uint32_t rows, steps;
};

/* Returns true when all figures are within their bounds. */
bool challenge_product_is_valid(const struct challenge_product *product);
bool challenge_product_is_chain(const struct challenge_product *product);
/* Returns the number of digests in the answer, and its bytes. The digest of row R of round K has
 * the number K side + R, and in a chain K rows + R. */
uint32_t challenge_product_digests(const struct challenge_product *product);
uint32_t challenge_product_answer_bytes(const struct challenge_product *product);

/* The next two write one row of a factor of one round, `side` entries. They are for the first form.
 */
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

/* The functions below are for chains. The first four write a row of U, a row of V, a column of B,
 * and a row of S. */
void challenge_chain_first(const struct challenge_product *product, uint32_t round, uint32_t row,
                           int16_t ret_entries[CHALLENGE_CHAIN_INNER]);
void challenge_chain_spread(const struct challenge_product *product, uint32_t row,
                            int16_t *ret_entries);
void challenge_chain_column(const struct challenge_product *product, uint32_t column,
                            int16_t *ret_entries);
void challenge_chain_last(const struct challenge_product *product, uint32_t row,
                          int16_t ret_entries[CHALLENGE_CHAIN_COLUMNS]);
/* Returns an entry of the next step's left factor: CHAIN_FOLD_BITS bits of the sum, above its last
 * CHAIN_FOLD_SHIFT, less the half of their range. Devices compute the same (measure_source). */
enum { CHAIN_FOLD_SHIFT = 2, CHAIN_FOLD_BITS = 10 };
int16_t challenge_chain_fold(int32_t sum);
/* Writes the digest of one row of Y. */
void challenge_chain_digest(const int32_t entries[CHALLENGE_CHAIN_COLUMNS],
                            uint8_t ret_digest[CHALLENGE_CHAIN_DIGEST_BYTES]);

/* Writes B into `ret_factor`, which has side x side entries, column by column. */
void challenge_chain_factor(const struct challenge_product *product, int16_t *ret_factor);
/* Computes one row and writes its digest. `factor` is what challenge_chain_factor wrote for this
 * product. */
void challenge_chain_row(const struct challenge_product *product, const int16_t *factor,
                         uint32_t round, uint32_t row,
                         uint8_t ret_digest[CHALLENGE_CHAIN_DIGEST_BYTES]);

#endif
