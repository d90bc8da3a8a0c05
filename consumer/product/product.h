/* consumer/product/product.h holds the inside of a product of matrices, for its own files. The
 * header is not installed. */
#ifndef BOURSE_CONSUMER_PRODUCT_PRODUCT_H
#define BOURSE_CONSUMER_PRODUCT_PRODUCT_H

#include "base/limit.h"
#include "consumer/client/bourse.h"
#include "consumer/job/job_build.h"
#include "consumer/product/matrix.h"
#include "consumer/product/tile.h"
#include "planner/layout/split.h"
#include "protocol/codec.h"

/* The plan assumes these figures for a market without measurements; docs/bench.md has the figures
 * of one machine. */
/* A tile of any size takes PRODUCT_TILE_S for dispatch, start, result and settlement. */
#define PRODUCT_TILE_S 0.010
#define PRODUCT_STAGING 1.0e9 /* bytes per second into the jail and out of it */
#define PRODUCT_START_S 0.050 /* lease and jail, once per device */
/* A split gains at least PRODUCT_MARGIN_S; less is within what a start or a transfer varies by. */
#define PRODUCT_MARGIN_S 0.020
#define PRODUCT_LINK 300.0e6 /* bytes per second between broker and agent */
enum {
    PRODUCT_TILES_MAX = 65536,
    /* A tile's matrices take at most 1 / PRODUCT_MEMORY_PARTS of a slot's memory, because the
     * tile's files are in memory too. */
    PRODUCT_MEMORY_PARTS = 4,
};

struct product_tile {
    struct matrix_block block; /* block of C */
    bool is_collected;
    char provider[BOURSE_HEX32_SIZE];
    uint64_t lease;
};

/* A source is a job that makes tiles: the first job of the product, or one that continues it. */
struct product_source {
    char id[BOURSE_ID_SIZE];
    uint32_t *tiles; /* tile of each of its subtasks; owned */
    uint32_t count;
    bool is_done; /* the job has ended, and all its tiles are in C */
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
    bool asks_checks; /* the options or a job of the product asks for checks */
    bool is_right;    /* C was checked against its factors, whole */
    struct bourse_product_summary summary;
    int64_t least_speed, memory_bytes; /* what the plan asks of a device; 0: nothing */
    uint32_t at_most;                  /* present limit of slots at a time; 0: none */
    uint32_t most;                     /* highest limit of slots; 0: none */
    int64_t cap_micro;                 /* or LIMIT_NONE */
    /* Ratio of the tiles' time to the planned time at the last plan; 1 at first. */
    double drift;
};

/* The plan asks this of devices. */
struct product_needs {
    int64_t least_speed;  /* gemm_fp32; 0: any speed */
    int64_t memory_bytes; /* memory of a slot */
    uint32_t at_most;
    int64_t expect_ms, limit_ms;
};

/* Chooses grid and devices, and fills the plan in the summary. */
bool product_choose(struct bourse *bourse, const struct bourse_product_options *options,
                    struct bourse_product *product, struct product_needs *ret_needs,
                    struct bourse_error *error);

/* Makes a product with the file names of the options, which are not opened. Returns NULL when
 * memory is short. */
struct bourse_product *product_create(const struct bourse_product_options *options);
/* Opens both factors and checks that they fit. */
bool product_open_factors(struct bourse_product *product, struct bourse_error *error);
bool product_set_shape(struct bourse_product *product, uint64_t rows, uint64_t inner,
                       uint64_t columns, struct bourse_error *error);
/* Reserves disk space for a product of the set shape. */
bool product_make_room(struct bourse_product *product, const char *output,
                       struct bourse_error *error);
/* Makes the tiles by the grid and the shape. */
bool product_make_tiles(struct bourse_product *product, struct bourse_error *error);
/* Makes the job of the product, whose factors are open and whose tiles are made. */
bool product_make_job(struct bourse_product *product, const struct bourse_product_options *options,
                      const struct product_needs *needs, struct bourse_error *error);
/* Remembers which tiles a job makes. Returns NULL and fills the error on failure. The source is
 * valid until the next one is added. */
struct product_source *product_add_source(struct bourse_product *product, const char *id,
                                          const Bourse__V1__Manifest *manifest,
                                          struct bourse_error *error);

#endif
