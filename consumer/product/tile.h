/* consumer/product/tile.h is how the manifest of a product describes one tile. Not installed. Pure. */
#ifndef BOURSE_CONSUMER_PRODUCT_TILE_H
#define BOURSE_CONSUMER_PRODUCT_TILE_H

#include "consumer/product/matrix.h"

/* What a tile's agent is asked to do. */
#define TILE_ARGUMENTS                                                                             \
    {                                                                                              \
        "matmul", "a.npy", "b.npy", "c.npy"                                                        \
    }

enum { TILE_VALUE_SIZE = 96 };

/* Writes where a tile lies in C, as the value of its subtask, so that C can be put together without
 * A and B. */
void tile_value(const struct matrix_block *block, char ret_value[TILE_VALUE_SIZE]);

#endif
