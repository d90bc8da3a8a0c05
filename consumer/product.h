/* consumer/product.h - inside of a product of matrices: what its files share. Not installed. */
#ifndef BOURSE_CONSUMER_PRODUCT_H
#define BOURSE_CONSUMER_PRODUCT_H

#include "consumer/bourse.h"
#include "consumer/matrix.h"
#include "consumer/prepare.h"
#include "planner/split.h"

/* What the plan assumes of a market it has not measured; docs/bench.md has what was measured on one machine. */
#define PRODUCT_TILE_S 0.010 /* of a tile, whatever its size: dispatch, start, result, settlement */
#define PRODUCT_STAGING 1.0e9 /* bytes per second: into the jail, and the result out of it */
#define PRODUCT_START_S 0.050 /* lease and jail, once per device */
#define PRODUCT_LINK 300.0e6  /* bytes per second between broker and agent */
enum {
    PRODUCT_TILES_MAX = 65536,
    PRODUCT_MEMORY_PARTS =
        4, /* a tile's matrices take this part of a slot's memory at most: files live there too */
};

struct product_tile {
    struct matrix_block block; /* of C */
    bool is_collected;
    char provider[BOURSE_HEX32_SIZE];
    uint64_t lease;
};

struct bourse_product {
    struct matrix a, b; /* closed: not given */
    char *paths[2];
    struct matrix_draft *draft;
    struct bourse_job *job; /* NULL: submitted before */
    struct split_grid grid;
    struct product_tile *tiles; /* row after row */
    struct bourse_product_summary summary;
};

/* What the plan asks of devices. */
struct product_needs {
    int64_t least_speed;  /* gemm_fp32; 0: any */
    int64_t memory_bytes; /* of a slot */
    uint32_t at_most;
    int64_t expect_ms, limit_ms;
};

/* Chooses grid and devices; fills the summary's plan. */
bool product_choose(struct bourse *bourse, const struct bourse_product_options *options,
                    struct bourse_product *product, struct product_needs *ret_needs,
                    struct bourse_error *error);

#endif
