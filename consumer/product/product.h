/* consumer/product/product.h - inside of a product of matrices: what its files share. Not
 * installed. */
#ifndef BOURSE_CONSUMER_PRODUCT_PRODUCT_H
#define BOURSE_CONSUMER_PRODUCT_PRODUCT_H

#include "consumer/client/bourse.h"
#include "consumer/job/job_build.h"
#include "consumer/product/matrix.h"
#include "consumer/product/tile.h"
#include "planner/layout/split.h"
#include "protocol/codec.h"

/* What the plan assumes of a market it has not measured; docs/bench.md has what was measured on one
 * machine. */
#define PRODUCT_TILE_S                                                                             \
    0.010                     /* of a tile, whatever its size: dispatch, start, result, settlement \
                               */
#define PRODUCT_STAGING 1.0e9 /* bytes per second: into the jail, and the result out of it */
#define PRODUCT_START_S 0.050 /* lease and jail, once per device */
#define PRODUCT_MARGIN_S                                                                           \
    0.020 /* that a split gains at the least: less is within what a start or a transfer varies by  \
           */
#define PRODUCT_LINK 300.0e6 /* bytes per second between broker and agent */
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

/* A job that makes tiles: the one that began the product, or one that continues it. */
struct product_source {
    char id[BOURSE_ID_SIZE];
    uint32_t *tiles; /* of each of its subtasks; owned */
    uint32_t count;
    bool is_done; /* it has ended, and all that it made is in C */
};

struct bourse_product {
    struct matrix a, b; /* closed: not given */
    char *paths[2];
    struct matrix_draft *draft;
    struct bourse_job *job; /* NULL: submitted before */
    struct split_grid grid;
    struct product_tile *tiles;     /* row after row */
    struct product_source *sources; /* newest first, as far as their manifests were read */
    size_t source_count;
    bool asks_checks; /* by the options, or a job of it has checks */
    bool is_right;    /* was checked against its factors, whole */
    struct bourse_product_summary summary;
    int64_t least_speed, memory_bytes; /* of devices, as the plan asks; 0: any */
    uint32_t at_most;                  /* slots that the job may have at a time; 0: any */
    uint32_t most;                     /* that it may ever; 0: any */
    int64_t cap_micro;                 /* -1: none */
    double drift; /* so many times as long as planned tiles took when it was planned last; 1 at
                     first */
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

/* With the names of the options' files, which are not opened. NULL: out of memory. */
struct bourse_product *product_create(const struct bourse_product_options *options);
/* Both, and that they fit. */
bool product_open_factors(struct bourse_product *product, struct bourse_error *error);
bool product_set_shape(struct bourse_product *product, uint64_t rows, uint64_t inner,
                       uint64_t columns, struct bourse_error *error);
/* For a product of that shape, on the disk. */
bool product_make_room(struct bourse_product *product, const char *output,
                       struct bourse_error *error);
/* By the grid and the shape. */
bool product_make_tiles(struct bourse_product *product, struct bourse_error *error);
/* Remembers which tiles a job makes; NULL with the error. It lives until the next one is added. */
struct product_source *product_add_source(struct bourse_product *product, const char *id,
                                          const Bourse__V1__Manifest *manifest,
                                          struct bourse_error *error);

#endif
