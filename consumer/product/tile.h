/* consumer/product/tile.h is the description of one tile in a product's manifest. The header is not
 * installed, and the code is pure. */
#ifndef BOURSE_CONSUMER_PRODUCT_TILE_H
#define BOURSE_CONSUMER_PRODUCT_TILE_H

#include "consumer/product/matrix.h"

/* The agent of a tile gets these arguments. */
#define TILE_ARGUMENTS                                                                             \
    {                                                                                              \
        "matmul", "a.npy", "b.npy", "c.npy"                                                        \
    }

enum { TILE_VALUE_SIZE = 96 };

/* Writes a tile's place in C as the value of its subtask, so that C can be put together without A
 * and B. */
void tile_value(const struct matrix_block *block, char ret_value[TILE_VALUE_SIZE]);

#endif
