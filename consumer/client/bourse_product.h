/* consumer/client/bourse_product.h computes a product of two matrices as a job, and checks the
 * tiles. Include consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_PRODUCT_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_PRODUCT_H

#include "consumer/client/bourse_jobs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A product C = A B is one job: C is cut into tiles. Each tile is a subtask with a block of A's
 * rows and a block of B's columns. The matrices are .npy files of float32 in row order; no matrix
 * is ever whole in memory. */
struct bourse_product;

struct bourse_product_options {
    const char *a, *b;  /* files */
    const char *output; /* file of C; it gets this name when complete and checked */
    /* Blocks of A's rows and B's columns; 0: chosen from the devices on offer. */
    uint32_t tile_rows, tile_columns;
    uint32_t at_most;                /* slots at a time; 0: as many as help */
    int64_t budget_micro, cap_micro; /* -1: not given */
    bool checks;                     /* a referee checks each tile before it is paid */
};
/* Reads both headers, asks the market for its devices, chooses the tiles, makes room for C on the
 * disk, and hashes every block. The call sends nothing. */
bool bourse_product_plan(struct bourse *bourse, const struct bourse_product_options *options,
                         struct bourse_product **ret_product, struct bourse_error *ret_error);
/* Continues a submitted product. `id` is any job in the chain of jobs that made it. `ret_newest` is
 * the newest job of the chain, for the caller to collect. A newest job that ended without all tiles
 * leaves the rest as a job to submit and collect. `options` must name `output`. Nothing can be
 * checked without `a` and `b`. `budget_micro` and `cap_micro` are for the new job; `checks` keeps
 * unchecked tiles out of C. Other options are ignored. */
bool bourse_product_resume(struct bourse *bourse, const char *id,
                           const struct bourse_product_options *options,
                           struct bourse_product **ret_product, char ret_newest[BOURSE_ID_SIZE],
                           struct bourse_error *ret_error);
void bourse_product_destroy(struct bourse_product **self);
/* Returns the job to quote and submit, or NULL when there is none. The product owns the job. */
struct bourse_job *bourse_product_job(struct bourse_product *product);
struct bourse_product_summary {
    uint64_t rows, inner, columns;    /* inner: 0 when unknown */
    uint32_t tile_rows, tile_columns; /* blocks along each side of C */
    uint64_t tiles, collected;        /* all tiles, and those written into C */
    uint64_t checks;                  /* one for each tile; 0: tiles are paid unchecked */
    uint64_t collected_bytes;
    uint64_t unjudged; /* collected tiles that no referee has checked */
    /* A plan fills these. */
    uint32_t devices, devices_used; /* devices that can multiply, and those of the plan */
    uint32_t slots;                 /* slots in use at a time */
    int64_t least_mflops;           /* least speed of a slot; 0: no bound */
    bool is_split;                  /* over several devices */
    /* Time by the devices' measured speeds: of the plan, and on the best single device. */
    int64_t predicted_ms, single_ms;
};
void bourse_product_summary(const struct bourse_product *product,
                            struct bourse_product_summary *ret_summary);

/* Writes accepted tiles of the job, and of the jobs that it continues, into C. Each new tile is
 * checked for its shape and against the hash in its provider's signed result. */
bool bourse_product_collect(struct bourse *bourse, struct bourse_product *product, const char *id,
                            struct bourse_error *ret_error);

struct bourse_replan {
    bool is_made;   /* the times of tiles led to a new plan */
    uint32_t slots; /* slots that the job may have at a time now; 0: no bound */
};
/* Plans the remaining tiles of a running product anew when tiles take over a fifth more or less
 * than planned. The new plan uses the present offers and the measured speed, and gives the job more
 * slots where they help. `row` is a row as the watcher of bourse_wait gets it. The product was
 * planned by this process. */
bool bourse_product_replan(struct bourse *bourse, struct bourse_product *product,
                           const struct bourse_job_row *row, struct bourse_replan *ret_replan,
                           struct bourse_error *ret_error);

/* Returns the number of tiles in C that came by the lease. */
uint32_t bourse_product_tiles_by(const struct bourse_product *product, uint64_t lease);

enum { BOURSE_WRONG_TILES_MAX = 8 };
struct bourse_wrong_tile {
    uint32_t index, row, column; /* index of the subtask; row and column of the tile */
    char provider[BOURSE_HEX32_SIZE];
    uint64_t at_row, at_column; /* the tile's first wrong entry, in C */
    double found, expected;
};
struct bourse_product_check {
    bool is_right;
    uint32_t rounds;
    uint64_t wrong_rows;
    uint64_t doubtful_rows; /* error above the usual, within what rounding can do */
    /* Rows and columns with NaN or infinity, of which only a sample was checked. */
    uint64_t unchecked_rows, unchecked_columns;
    double max_rel_error; /* over sampled rows: error / root mean square of the row */
    uint64_t wrong_tiles;
    struct bourse_wrong_tile tiles[BOURSE_WRONG_TILES_MAX]; /* the first wrong tiles */
    /* Wrong tiles that come from factors rounded to fewer bits; at most 8 tiles are examined. */
    uint64_t reduced_tiles;
};
/* Checks C by Freivalds' method in double (docs/consumer.md), once all tiles are collected. Fails
 * with UNVERIFIED when C is wrong; *ret_check is filled then too. */
bool bourse_product_check(struct bourse *bourse, struct bourse_product *product,
                          struct bourse_product_check *ret_check, struct bourse_error *ret_error);
/* Makes C durable and gives it its name; a file of that name is replaced. Call it once, after all
 * tiles are collected. Fails with UNVERIFIED when checks were asked for, a tile lacks one, and C
 * was not found right. */
bool bourse_product_keep(struct bourse_product *product, struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
