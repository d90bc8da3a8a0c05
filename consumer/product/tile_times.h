/* consumer/product/tile_times.h reads what tiles of a matrix product were measured to take on a
 * market. The header is not installed. */
#ifndef BOURSE_CONSUMER_PRODUCT_TILE_TIMES_H
#define BOURSE_CONSUMER_PRODUCT_TILE_TIMES_H

#include "consumer/client/bourse.h"

enum { TILE_GRID = 32 };

struct tile_time { /* measured times of one shape on one class of devices */
    uint64_t rows, columns;
    const char *device_class; /* instrument; lives as long as the call */
    uint32_t samples;
    int64_t median_ns;
    int64_t p90_ns; /* -1: too few samples */
};
typedef void tile_time_visitor(void *context, const struct tile_time *tile);

/* Visits the measured times of tiles of a float32 product. The tiles are those of grids up to
 * TILE_GRID x TILE_GRID. */
bool tile_times_load(struct bourse *bourse, uint64_t rows, uint64_t inner, uint64_t columns,
                     tile_time_visitor *visitor, void *context, struct bourse_error *error);

#endif
