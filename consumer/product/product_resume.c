/* This file continues a product. The first job gives its tiles, later jobs made some of them, and a
 * new job makes the rest. */
#include "consumer/product/product.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/job/result_checks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- what the first job says */

static bool read_value(const Bourse__V1__ManifestSubtask *subtask, struct matrix_block *ret_block)
{
    char again[TILE_VALUE_SIZE];
    return subtask->value != NULL &&
           sscanf(subtask->value, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &ret_block->row,
                  &ret_block->column, &ret_block->rows, &ret_block->columns) == 4 &&
           (tile_value(ret_block, again), strcmp(again, subtask->value) == 0);
}

/* Reads the shape and the tiles of C from the first job's manifest. The last tile ends where C
 * ends. The number of tiles in the first row is the number of columns of tiles. */
static bool read_tiles(const Bourse__V1__Manifest *manifest, struct bourse_product *product,
                       struct bourse_error *error)
{
    static const char no_product[] =
        "this job was not made by `bourse run matmul`; `bourse fetch` brings its outputs";
    struct matrix_block block = {.row = 0};
    uint32_t columns = 0;
    uint32_t count =
        manifest->n_subtasks > 0 ? manifest->subtask_count - result_checks_count(manifest) : 0;
    if (strcmp(manifest->executor, "tensor") != 0 || manifest->n_arguments != 4 ||
        strcmp(manifest->arguments[0], "matmul") != 0 || count < 1 || count > PRODUCT_TILES_MAX) {
        return client_fail(error, BOURSE_USAGE, "%s", no_product);
    }
    while (columns < count && read_value(manifest->subtasks[columns], &block) && block.row == 0) {
        columns++;
    }
    if (columns == 0 || count % columns != 0 ||
        !read_value(manifest->subtasks[count - 1], &block) || block.rows > UINT64_MAX - block.row ||
        block.columns > UINT64_MAX - block.column) {
        return client_fail(error, BOURSE_USAGE, "%s", no_product);
    }
    product->grid = (struct split_grid){count / columns, columns};
    if (!product_set_shape(product, block.row + block.rows, 0, block.column + block.columns,
                           error) ||
        !product_make_tiles(product, error)) {
        return false;
    }
    assert(product->tiles != NULL);
    for (size_t i = 0; i < count; i++) {
        if (!read_value(manifest->subtasks[i], &block) ||
            memcmp(&block, &product->tiles[i].block, sizeof block) != 0 || block.rows == 0 ||
            block.columns == 0) {
            return client_fail(error, BOURSE_USAGE, "%s", no_product);
        }
    }
    return true;
}

static bool match_factors(struct bourse_product *product, struct bourse_error *error)
{
    const struct bourse_product_summary *summary = &product->summary;
    if (product->paths[0][0] == '\0') {
        return true;
    }
    if (!product_open_factors(product, error)) {
        return false;
    }
    if (product->a.rows != summary->rows || product->b.columns != summary->columns) {
        return client_fail(error, BOURSE_USAGE,
                           "the job's product is %" PRIu64 " x %" PRIu64
                           ", but the product of these files is %" PRIu64 " x %" PRIu64,
                           summary->rows, summary->columns, product->a.rows, product->b.columns);
    }
    product->summary.inner = product->a.columns;
    return true;
}

/* ---------------------------------------------------------------- the jobs of a product */

static bool read_continued(const Bourse__V1__Manifest *manifest, char ret_id[BOURSE_ID_SIZE])
{
    if (manifest->has_continues && 2 * manifest->continues.len == BOURSE_ID_SIZE - 1) {
        text_hex(manifest->continues.data, manifest->continues.len, ret_id);
        return true;
    }
    return false;
}

struct product_source *product_add_source(struct bourse_product *product, const char *id,
                                          const Bourse__V1__Manifest *manifest,
                                          struct bourse_error *error)
{
    struct product_source *sources =
        reallocarray(product->sources, product->source_count + 1, sizeof *sources);
    if (sources == NULL) {
        (void)client_fail(error, BOURSE_LOCAL, "out of memory");
        return NULL;
    }
    product->sources = sources;
    struct product_source *source = &sources[product->source_count];
    *source =
        (struct product_source){.count = manifest->subtask_count - result_checks_count(manifest)};
    client_copy(source->id, sizeof source->id, id);
    source->tiles = calloc(source->count + 1, sizeof *source->tiles);
    if (source->tiles == NULL) {
        (void)client_fail(error, BOURSE_LOCAL, "out of memory");
        return NULL;
    }
    for (uint32_t i = 0; i < source->count; i++) {
        bool has_number = i < manifest->n_subtasks && manifest->subtasks[i]->has_number;
        source->tiles[i] = has_number ? manifest->subtasks[i]->number : i;
    }
    product->source_count++;
    return source;
}

/* Reads the jobs from `id` back to the first job, whose manifest names all tiles. */
static bool read_jobs(struct bourse *bourse, const char *id, struct bourse_product *product,
                      struct bourse_error *error)
{
    char at[BOURSE_ID_SIZE];
    char before[BOURSE_ID_SIZE];
    client_copy(at, sizeof at, id);
    for (;;) {
        CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
        struct bourse_error missing;
        if (!client_manifest(bourse, at, &manifest, &missing)) {
            if (product->source_count == 0 || missing.status != BOURSE_NOT_FOUND) {
                *error = missing;
                return false;
            }
            return client_fail(
                error, BOURSE_NOT_FOUND,
                "the broker has forgotten job %.8s, which began this product; submit "
                "the product again, without --resume",
                at);
        }
        const struct product_source *source = product_add_source(product, at, manifest, error);
        if (source == NULL) {
            return false;
        }
        product->summary.checks += result_checks_count(manifest);
        if (!read_continued(manifest, before)) {
            return read_tiles(manifest, product, error);
        }
        memcpy(at, before, sizeof at);
    }
}

/* Replaces `id` by the id of a newer job that continues job `id`. *ret_found is false when there is
 * no such job. Returns false with an error when a manifest cannot be had. */
static bool find_next(struct bourse *bourse, char id[BOURSE_ID_SIZE],
                      const struct bourse_jobs *jobs, bool *ret_found, struct bourse_error *error)
{
    size_t at = 0;
    const size_t count = bourse_jobs_count(jobs);
    while (at < count && strcmp(bourse_jobs_row(jobs, at)->id, id) != 0) {
        at++;
    }
    *ret_found = false;
    for (size_t i = 0; i < at && at < count; i++) { /* newest first */
        const struct bourse_job_row *row = bourse_jobs_row(jobs, i);
        char continued[BOURSE_ID_SIZE];
        if (strcmp(row->name, bourse_jobs_row(jobs, at)->name) != 0) {
            continue;
        }
        CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
        if (!client_manifest(bourse, row->id, &manifest, error)) {
            return false;
        }
        if (read_continued(manifest, continued) && strcmp(continued, id) == 0) {
            client_copy(id, BOURSE_ID_SIZE, row->id);
            *ret_found = true;
            return true;
        }
    }
    return true;
}

/* Finds the newest job of the product and its state. A newer job may have made the tiles that an
 * older job did not make. */
static bool find_newest(struct bourse *bourse, const char *id, char ret_id[BOURSE_ID_SIZE],
                        enum bourse_job_state *ret_state, struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    bool found = true;
    client_copy(ret_id, BOURSE_ID_SIZE, id);
    if (!bourse_jobs(bourse, NULL, &jobs, error)) {
        return false;
    }
    while (found) {
        if (!find_next(bourse, ret_id, jobs, &found, error)) {
            return false;
        }
    }
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *newest = NULL;
    if (!bourse_jobs(bourse, ret_id, &newest, error)) {
        return false;
    }
    *ret_state = bourse_jobs_row(newest, 0)->state;
    return true;
}

/* ---------------------------------------------------------------- what is left */

/* Makes a new job for the tiles that an ended job did not make. The product gets no job when all
 * tiles were made. */
static bool continue_product(struct bourse *bourse, const char *id,
                             const struct bourse_product_options *options,
                             struct bourse_product *product, struct bourse_error *error)
{
    struct bourse_error why;
    if (!bourse_job_resume(bourse, id, options->cap_micro, NULL, 0, &product->job, &why)) {
        *error = why;
        return why.status == BOURSE_NOT_FOUND; /* nothing is left */
    }
    product->job->file->budget_micro = options->budget_micro;
    product->summary.checks += product->job->checks;
    return true;
}

bool bourse_product_resume(struct bourse *bourse, const char *id,
                           const struct bourse_product_options *options,
                           struct bourse_product **ret_product, char ret_newest[BOURSE_ID_SIZE],
                           struct bourse_error *ret_error)
{
    char newest[BOURSE_ID_SIZE];
    enum bourse_job_state state = BOURSE_OPEN;
    CLEANUP(bourse_product_destroy) struct bourse_product *product = product_create(options);
    if (product == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    if (!find_newest(bourse, id, newest, &state, ret_error) ||
        !read_jobs(bourse, newest, product, ret_error) || !match_factors(product, ret_error) ||
        !product_make_room(product, options->output, ret_error)) {
        return false;
    }
    if (state != BOURSE_OPEN && state != BOURSE_DONE &&
        !continue_product(bourse, newest, options, product, ret_error)) {
        return false;
    }
    memcpy(ret_newest, newest, sizeof newest);
    *ret_product = product;
    product = NULL;
    return true;
}
