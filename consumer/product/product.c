/* This file plans a product of A and B, and makes C from the returned tiles. */
#include "consumer/product/product.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/client/rows.h"
#include "consumer/product/product_check.h"
#include "formats/limits.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLLECTED_TILES = 64,       /* most tiles of one fetch */
    COLLECTED_BYTES = 64 << 20, /* bytes that start a fetch, so that an interrupt loses little */
};

void bourse_product_destroy(struct bourse_product **self)
{
    struct bourse_product *product = *self;
    if (product != NULL) {
        bourse_job_destroy(&product->job);
        matrix_draft_destroy(&product->draft);
        matrix_close(&product->a);
        matrix_close(&product->b);
        free(product->paths[0]);
        free(product->paths[1]);
        free(product->tiles);
        for (size_t i = 0; i < product->source_count; i++) {
            free(product->sources[i].tiles);
        }
        free(product->sources);
        free(product);
        *self = NULL;
    }
}

struct bourse_job *bourse_product_job(struct bourse_product *product)
{
    return product->job;
}

void bourse_product_summary(const struct bourse_product *product,
                            struct bourse_product_summary *ret_summary)
{
    *ret_summary = product->summary;
}

/* ---------------------------------------------------------------- files */

struct bourse_product *product_create(const struct bourse_product_options *options)
{
    struct bourse_product *product = calloc(1, sizeof *product);
    if (product != NULL) {
        product->a.fd = -1;
        product->b.fd = -1;
        product->asks_checks = options->checks;
        product->paths[0] = strdup(options->a != NULL ? options->a : "");
        product->paths[1] = strdup(options->b != NULL ? options->b : "");
        if (product->paths[0] == NULL || product->paths[1] == NULL) {
            bourse_product_destroy(&product);
        }
    }
    return product;
}

bool product_open_factors(struct bourse_product *product, struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    struct matrix *a = &product->a;
    struct matrix *b = &product->b;
    if (!matrix_open(product->paths[0], a, &problem) ||
        !matrix_open(product->paths[1], b, &problem)) {
        return client_fail(error, BOURSE_LOCAL, "%s", problem.text);
    }
    if (a->columns != b->rows) {
        return client_fail(error, BOURSE_USAGE,
                           "A is %" PRIu64 " x %" PRIu64 " and B is %" PRIu64 " x %" PRIu64
                           ": A must have as many columns as B has rows",
                           a->rows, a->columns, b->rows, b->columns);
    }
    return true;
}

bool product_set_shape(struct bourse_product *product, uint64_t rows, uint64_t inner,
                       uint64_t columns, struct bourse_error *error)
{
    int64_t bytes = 0;
    if (rows > INT64_MAX / 8 || columns > INT64_MAX / 8 ||
        !checked_mul((int64_t)rows, (int64_t)columns, &bytes) || bytes > INT64_MAX / 8) {
        return client_fail(error, BOURSE_USAGE,
                           "the product of %" PRIu64 " rows and %" PRIu64
                           " columns is larger than any file",
                           rows, columns);
    }
    product->summary.rows = rows;
    product->summary.inner = inner;
    product->summary.columns = columns;
    return true;
}

bool product_make_room(struct bourse_product *product, const char *output,
                       struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    product->draft =
        matrix_draft_create(output, product->summary.rows, product->summary.columns, &problem);
    return product->draft != NULL || client_fail(error, BOURSE_LOCAL, "%s", problem.text);
}

bool product_make_tiles(struct bourse_product *product, struct bourse_error *error)
{
    const struct split_grid *grid = &product->grid;
    struct bourse_product_summary *summary = &product->summary;
    summary->tile_rows = grid->rows;
    summary->tile_columns = grid->columns;
    summary->tiles = (uint64_t)grid->rows * grid->columns;
    if (summary->tiles > PRODUCT_TILES_MAX) {
        return client_fail(error, BOURSE_USAGE, "%" PRIu64 " tiles; at most %d", summary->tiles,
                           PRODUCT_TILES_MAX);
    }
    product->tiles = calloc((size_t)summary->tiles, sizeof *product->tiles);
    if (product->tiles == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    for (size_t i = 0; i < summary->tiles; i++) {
        uint32_t row = (uint32_t)(i / grid->columns);
        uint32_t column = (uint32_t)(i % grid->columns);
        struct matrix_block *block = &product->tiles[i].block;
        block->row = split_edge(summary->rows, grid->rows, row);
        block->rows = split_edge(summary->rows, grid->rows, row + 1) - block->row;
        block->column = split_edge(summary->columns, grid->columns, column);
        block->columns = split_edge(summary->columns, grid->columns, column + 1) - block->column;
    }
    return true;
}

/* ---------------------------------------------------------------- the plan */

bool bourse_product_plan(struct bourse *bourse, const struct bourse_product_options *options,
                         struct bourse_product **ret_product, struct bourse_error *ret_error)
{
    struct product_needs needs = {.at_most = 0};
    CLEANUP(bourse_product_destroy) struct bourse_product *product = product_create(options);
    if (product == NULL || sodium_init() < 0) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    if (!product_open_factors(product, ret_error) ||
        !product_set_shape(product, product->a.rows, product->a.columns, product->b.columns,
                           ret_error)) {
        return false;
    }
    if (options->tile_rows > product->a.rows || options->tile_columns > product->b.columns) {
        return client_fail(ret_error, BOURSE_USAGE,
                           "%u x %u tiles of a product of %" PRIu64 " x %" PRIu64
                           " entries; a tile has one entry at least",
                           options->tile_rows, options->tile_columns, product->a.rows,
                           product->b.columns);
    }
    if (!product_choose(bourse, options, product, &needs, ret_error) ||
        !product_make_tiles(product, ret_error) ||
        !product_make_room(product, options->output, ret_error) ||
        !product_make_job(product, options, &needs, ret_error)) {
        return false;
    }
    *ret_product = product;
    product = NULL;
    return true;
}

/* ---------------------------------------------------------------- results */

static bool wrong_tile(struct bourse_error *error, uint32_t index, const char *provider,
                       const char *why)
{
    return client_fail(error, BOURSE_UNVERIFIED,
                       "the tile of subtask %u, by provider %.16s, is no such block: %s", index,
                       provider, why);
}

/* An arriving tile is on its way into C. */
struct arriving {
    struct matrix_draft *draft;
    const struct matrix_block *block;
    uint64_t size;       /* size of its file */
    uint64_t data_at;    /* offset in its file; 0: unknown */
    atomic_ullong taken; /* bytes of its file so far */
    struct problem wrong;
    atomic_bool is_unwritten;
};

/* A file that is no such block is still read to its end, because only its hash tells whose fault it
 * is. */
static bool take_piece(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                       struct problem *ret_problem)
{
    struct arriving *tile = context;
    size_t header = 0;
    (void)atomic_fetch_add(&tile->taken, length);
    if (offset == 0) {
        atomic_store(&tile->taken, length);
        tile->data_at = 0;
        if (!matrix_blob_begin(bytes, length, tile->size, tile->block, &tile->data_at,
                               &tile->wrong)) {
            return true;
        }
        header = (size_t)tile->data_at;
    }
    if (tile->data_at == 0 ||
        matrix_draft_write_bytes(tile->draft, tile->block, offset + header - tile->data_at,
                                 bytes + header, length - header, ret_problem)) {
        return true;
    }
    atomic_store(&tile->is_unwritten, true);
    return false;
}

/* Awaited results have tiles that are fetched together. */
struct awaited {
    struct product_tile *tile;
    uint32_t index; /* index of its subtask */
    char provider[BOURSE_HEX32_SIZE];
    uint64_t lease;
    bool is_judged; /* a referee checked it */
    struct hash32 hash;
    struct arriving arriving;
};

struct collecting {
    struct bourse *bourse;
    struct bourse_product *product;
    const struct product_source *source;
    struct bourse_error *error;
    bool failed;
    struct awaited *awaited; /* room for COLLECTED_TILES */
    size_t count;
    uint64_t bytes;
};

static bool fetch_tiles(struct collecting *collecting)
{
    struct blob_want wants[COLLECTED_TILES];
    struct problem problem = {.text = ""};
    enum reject_code reject = REJECT_NONE;
    size_t failed = 0;
    for (size_t i = 0; i < collecting->count; i++) {
        struct awaited *awaited = &collecting->awaited[i];
        wants[i] = (struct blob_want){
            .hash = awaited->hash, .size = awaited->arriving.size, .context = &awaited->arriving};
    }
    struct blob_client *blobs = client_blobs_begin(collecting->bourse, collecting->error);
    if (blobs == NULL) {
        return false;
    }
    bool good = blob_client_get_many(blobs, wants, collecting->count, NULL, take_piece, &failed,
                                     &reject, &problem);
    client_blobs_end(collecting->bourse);
    client_breathe(collecting->bourse);
    if (!good && atomic_load(&collecting->awaited[failed].arriving.is_unwritten)) {
        return client_fail(collecting->error, BOURSE_LOCAL, "%s", problem.text);
    }
    return good || client_blob_failed(collecting->bourse, collecting->error, reject, &problem);
}

static bool accept_tile(struct collecting *collecting, struct awaited *awaited)
{
    const struct arriving *arriving = &awaited->arriving;
    struct bourse_product *product = collecting->product;
    struct product_tile *tile = awaited->tile;
    if (arriving->data_at == 0) {
        return wrong_tile(collecting->error, awaited->index, awaited->provider,
                          arriving->wrong.text);
    }
    if (atomic_load(&arriving->taken) != arriving->size) {
        return wrong_tile(collecting->error, awaited->index, awaited->provider,
                          "the file is shorter than was said");
    }
    tile->is_collected = true;
    memcpy(tile->provider, awaited->provider, sizeof tile->provider);
    tile->lease = awaited->lease;
    product->summary.collected++;
    product->summary.unjudged += !awaited->is_judged;
    product->summary.collected_bytes += arriving->size;
    return true;
}

/* Fetches the awaited tiles. */
static bool collect_tiles(struct collecting *collecting)
{
    bool good = collecting->count == 0;
    if (!good && client_interrupted(collecting->bourse)) {
        return client_fail(collecting->error, BOURSE_INTERRUPTED, "interrupted");
    }
    good = good || fetch_tiles(collecting);
    for (size_t i = 0; good && i < collecting->count; i++) {
        good = accept_tile(collecting, &collecting->awaited[i]);
    }
    collecting->count = 0;
    collecting->bytes = 0;
    return good;
}

static bool await_tile(struct collecting *collecting, struct product_tile *tile,
                       const struct bourse_outcome *outcome)
{
    struct awaited *awaited = &collecting->awaited[collecting->count];
    uint64_t most_bytes = NPY_PREFIX_BYTES + tile->block.rows * tile->block.columns * sizeof(float);
    if (outcome->output_count != 1 || outcome->outputs[0].size > most_bytes) {
        return wrong_tile(collecting->error, outcome->index, outcome->provider,
                          "the file has another size");
    }
    *awaited = (struct awaited){.tile = tile,
                                .index = outcome->index,
                                .lease = outcome->lease,
                                .is_judged = outcome->checked,
                                .arriving = {.draft = collecting->product->draft,
                                             .block = &tile->block,
                                             .size = outcome->outputs[0].size,
                                             .wrong = {"the file is empty"}}};
    memcpy(awaited->provider, outcome->provider, sizeof awaited->provider);
    if (!text_unhex(outcome->outputs[0].hash, awaited->hash.bytes, sizeof awaited->hash.bytes)) {
        return client_fail(collecting->error, BOURSE_UNVERIFIED,
                           "the broker sent a tile without its hash");
    }
    collecting->count++;
    collecting->bytes += awaited->arriving.size;
    return (collecting->count < COLLECTED_TILES && collecting->bytes < COLLECTED_BYTES) ||
           collect_tiles(collecting);
}

static bool is_awaited(const struct collecting *collecting, const struct product_tile *tile)
{
    bool found = false;
    for (size_t i = 0; i < collecting->count; i++) {
        found = found || collecting->awaited[i].tile == tile;
    }
    return found;
}

/* Returns NULL when there is no tile, or the tile is in C or on its way. */
static struct product_tile *tile_of(const struct collecting *collecting, uint32_t index)
{
    const struct product_source *source = collecting->source;
    struct bourse_product *product = collecting->product;
    if (index >= source->count || source->tiles[index] >= product->summary.tiles) {
        return NULL;
    }
    struct product_tile *tile = &product->tiles[source->tiles[index]];
    return tile->is_collected || is_awaited(collecting, tile) ? NULL : tile;
}

static bool collect_outcome(void *context, const struct bourse_outcome *outcome)
{
    struct collecting *collecting = context;
    struct product_tile *tile =
        outcome->status == ATTEMPT_ACCEPTED ? tile_of(collecting, outcome->index) : NULL;
    collecting->failed = tile != NULL && !await_tile(collecting, tile, outcome);
    return !collecting->failed;
}

static bool know_source(struct bourse *bourse, struct bourse_product *product, const char *id,
                        struct bourse_error *error)
{
    for (size_t i = 0; i < product->source_count; i++) {
        if (strcmp(product->sources[i].id, id) == 0) {
            return true;
        }
    }
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    return client_manifest(bourse, id, &manifest, error) &&
           product_add_source(product, id, manifest, error) != NULL;
}

static bool collect_source(struct collecting *collecting, const struct product_source *source)
{
    collecting->source = source;
    return bourse_outcomes(collecting->bourse, source->id, 0, collect_outcome, collecting,
                           collecting->error) &&
           !collecting->failed && collect_tiles(collecting);
}

bool bourse_product_collect(struct bourse *bourse, struct bourse_product *product, const char *id,
                            struct bourse_error *ret_error)
{
    if (!know_source(bourse, product, id, ret_error)) {
        return false;
    }
    struct collecting collecting = {.bourse = bourse, .product = product, .error = ret_error};
    collecting.awaited = calloc(COLLECTED_TILES, sizeof *collecting.awaited);
    bool good = collecting.awaited != NULL || client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    for (size_t i = 0; good && i < product->source_count; i++) {
        struct product_source *source = &product->sources[i];
        if (!source->is_done) {
            good = collect_source(&collecting, source);
            source->is_done = good && strcmp(source->id, id) != 0; /* a continued job has ended */
        }
    }
    free(collecting.awaited);
    return good;
}

uint32_t bourse_product_tiles_by(const struct bourse_product *product, uint64_t lease)
{
    uint32_t tiles = 0;
    for (size_t i = 0; i < product->summary.tiles; i++) {
        tiles += product->tiles[i].is_collected && product->tiles[i].lease == lease;
    }
    return tiles;
}

static void tell_tile(const struct bourse_product *product, const struct product_check_tile *from,
                      struct bourse_wrong_tile *ret_tile)
{
    *ret_tile =
        (struct bourse_wrong_tile){.index = from->row * product->grid.columns + from->column,
                                   .row = from->row,
                                   .column = from->column,
                                   .at_row = from->at_row,
                                   .at_column = from->at_column,
                                   .found = (double)from->found,
                                   .expected = from->expected};
    memcpy(ret_tile->provider, product->tiles[ret_tile->index].provider, sizeof ret_tile->provider);
}

bool bourse_product_check(struct bourse *bourse, struct bourse_product *product,
                          struct bourse_product_check *ret_check, struct bourse_error *ret_error)
{
    const struct product_check_grid grid = {product->grid.rows, product->grid.columns};
    struct problem problem = {.text = ""};
    struct product_check verdict;
    client_breathe(bourse);
    if (product->a.fd < 0 || product->b.fd < 0) {
        return client_fail(ret_error, BOURSE_USAGE,
                           "a product is checked against its factors: name A and B");
    }
    if (!product_check_run(&product->a, &product->b, matrix_draft_matrix(product->draft), &grid,
                           &verdict, &problem)) {
        return client_fail(ret_error, BOURSE_LOCAL, "the product cannot be checked: %s",
                           problem.text);
    }
    client_breathe(bourse);
    *ret_check = (struct bourse_product_check){.is_right = verdict.is_right,
                                               .rounds = PRODUCT_CHECK_ROUNDS,
                                               .wrong_rows = verdict.wrong_rows,
                                               .doubtful_rows = verdict.doubtful_rows,
                                               .unchecked_rows = verdict.unchecked_rows,
                                               .unchecked_columns = verdict.unchecked_columns,
                                               .max_rel_error = verdict.max_rel_error,
                                               .wrong_tiles = verdict.wrong_tiles,
                                               .reduced_tiles = verdict.reduced_tiles};
    product->is_right = verdict.is_right;
    for (size_t i = 0; i < verdict.wrong_tiles && i < BOURSE_WRONG_TILES_MAX; i++) {
        tell_tile(product, &verdict.tiles[i], &ret_check->tiles[i]);
    }
    if (verdict.wrong_rows > 0) {
        return client_fail(ret_error, BOURSE_UNVERIFIED,
                           "this is not the product: %" PRIu64
                           " row%s further off than rounding can be; if A and B are the files it "
                           "was made of, multiply again with --verify cheap, which has wrong "
                           "tiles computed by others",
                           verdict.wrong_rows, verdict.wrong_rows == 1 ? " is" : "s are");
    }
    return verdict.is_right ||
           client_fail(ret_error, BOURSE_UNVERIFIED,
                       "this is the product of factors that were rounded to "
                       "fewer bits than float32 has: %" PRIu64 " of the tiles that were looked at; "
                       "multiply again with --verify cheap, which has them computed by others",
                       verdict.reduced_tiles);
}

bool bourse_product_keep(struct bourse_product *product, struct bourse_error *ret_error)
{
    struct problem problem = {.text = ""};
    if (product->summary.collected < product->summary.tiles) {
        return client_fail(ret_error, BOURSE_JOB_FAILED,
                           "%" PRIu64 " of %" PRIu64 " tile%s missing",
                           product->summary.tiles - product->summary.collected,
                           product->summary.tiles, product->summary.tiles == 1 ? " is" : "s are");
    }
    if ((product->asks_checks || product->summary.checks > 0) && product->summary.unjudged > 0 &&
        !product->is_right) {
        return client_fail(ret_error, BOURSE_UNVERIFIED,
                           "%" PRIu64 " of %" PRIu64
                           " tiles were taken without a referee's check, as their job ended first; "
                           "name A and B, without --no-check, and the product is checked here",
                           product->summary.unjudged, product->summary.tiles);
    }
    return matrix_draft_keep(product->draft, &problem) ||
           client_fail(ret_error, BOURSE_LOCAL, "%s", problem.text);
}
