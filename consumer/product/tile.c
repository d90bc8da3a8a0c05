#include "consumer/product/tile.h"

#include <inttypes.h>
#include <stdio.h>

void tile_value(const struct matrix_block *block, char ret_value[TILE_VALUE_SIZE])
{
    (void)snprintf(ret_value, TILE_VALUE_SIZE, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                   block->row, block->column, block->rows, block->columns);
}
