/* This file makes the job of a product, with blocks of A and B as blobs, and a manifest of its
 * tiles. */
#include "consumer/product/product.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "consumer/client/client.h"
#include "consumer/job/manifest.h"
#include "consumer/job/result_checks.h"
#include "formats/limits.h"

#include <inttypes.h>
#include <stdlib.h>

enum { HASHED_BYTES = 1 << 20 };

/* ---------------------------------------------------------------- blocks */

/* Blob `index` counts the blocks of A's rows, then those of B's columns. */
static const struct matrix *block_of(const struct bourse_product *product, size_t index,
                                     struct matrix_block *ret_block)
{
    const struct bourse_product_summary *summary = &product->summary;
    if (index < product->grid.rows) {
        const struct matrix_block *tile = &product->tiles[index * product->grid.columns].block;
        *ret_block =
            (struct matrix_block){.row = tile->row, .rows = tile->rows, .columns = summary->inner};
        return &product->a;
    }
    const struct matrix_block *tile = &product->tiles[index - product->grid.rows].block;
    *ret_block = (struct matrix_block){
        .column = tile->column, .rows = summary->inner, .columns = tile->columns};
    return &product->b;
}

static bool read_block(void *context, size_t index, uint64_t offset, size_t length,
                       uint8_t *ret_bytes, struct problem *ret_problem)
{
    struct matrix_block block;
    const struct matrix *matrix = block_of(context, index, &block);
    return matrix_read_blob(matrix, &block, offset, length, ret_bytes, ret_problem);
}

static bool locate_block(void *context, size_t index, uint64_t offset, struct blob_place *ret_place)
{
    struct matrix_block block;
    const struct matrix *matrix = block_of(context, index, &block);
    ret_place->fd = matrix->fd;
    ret_place->length = matrix_find_blob(matrix, &block, offset, &ret_place->at);
    return ret_place->length > 0;
}

static bool hash_block(struct bourse_product *product, size_t index, uint8_t *buffer,
                       struct made_blob *blob, struct problem *problem)
{
    struct sha256 sum;
    sha256_start(&sum);
    for (uint64_t offset = 0; offset < blob->size;) {
        uint64_t left = blob->size - offset;
        size_t length = left < HASHED_BYTES ? (size_t)left : HASHED_BYTES;
        if (!read_block(product, index, offset, length, buffer, problem)) {
            return false;
        }
        sha256_add(&sum, buffer, length);
        offset += length;
    }
    blob->hash = sha256_end(&sum);
    return true;
}

static bool hash_blocks(struct bourse_product *product, struct made_blobs *made,
                        struct bourse_error *error)
{
    size_t count = (size_t)product->grid.rows + product->grid.columns;
    struct problem problem = {.text = "out of memory"};
    uint8_t *buffer = malloc(HASHED_BYTES);
    made->items = calloc(count, sizeof *made->items);
    bool good = buffer != NULL && made->items != NULL;
    made->count = good ? count : 0;
    made->read = read_block;
    made->locate = locate_block;
    made->context = product;
    for (size_t i = 0; good && i < count; i++) {
        struct matrix_block block;
        (void)block_of(product, i, &block);
        made->items[i].size = matrix_blob_bytes(&block);
        good = hash_block(product, i, buffer, &made->items[i], &problem);
    }
    free(buffer);
    return good || client_fail(error, BOURSE_LOCAL, "%s", problem.text);
}

/* ---------------------------------------------------------------- the job */

struct listing { /* owns the memory that a manifest points to */
    Bourse__V1__ManifestSubtask *subtasks;
    Bourse__V1__ManifestSubtask **pointers;
    Bourse__V1__ManifestInput *inputs; /* two for each subtask */
    Bourse__V1__ManifestInput **input_pointers;
    char (*values)[TILE_VALUE_SIZE];
};

static void listing_fini(struct listing *listing)
{
    free(listing->subtasks);
    free(listing->pointers);
    free(listing->inputs);
    free(listing->input_pointers);
    free(listing->values);
}

static bool list_subtasks(const struct bourse_product *product, struct made_blobs *made,
                          struct listing *listing)
{
    static char names[2][sizeof "a.npy"] = {"a.npy", "b.npy"};
    size_t count = (size_t)product->summary.tiles;
    listing->subtasks = calloc(count, sizeof *listing->subtasks);
    listing->pointers = calloc(count, sizeof(void *));
    listing->inputs = calloc(2 * count, sizeof *listing->inputs);
    listing->input_pointers = calloc(2 * count, sizeof(void *));
    listing->values = calloc(count, sizeof *listing->values);
    if (listing->subtasks == NULL || listing->pointers == NULL || listing->inputs == NULL ||
        listing->input_pointers == NULL || listing->values == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t blobs[] = {i / product->grid.columns,
                                product->grid.rows + i % product->grid.columns};
        Bourse__V1__ManifestSubtask *subtask = listing->pointers[i] = &listing->subtasks[i];
        bourse__v1__manifest_subtask__init(subtask);
        tile_value(&product->tiles[i].block, listing->values[i]);
        subtask->value = listing->values[i];
        subtask->n_inputs = 2;
        subtask->inputs = &listing->input_pointers[2 * i];
        for (size_t k = 0; k < 2; k++) {
            Bourse__V1__ManifestInput *input = subtask->inputs[k] = &listing->inputs[2 * i + k];
            struct made_blob *blob = &made->items[blobs[k]];
            bourse__v1__manifest_input__init(input);
            input->name = names[k];
            input->hash = client_bytes(blob->hash.bytes, sizeof blob->hash.bytes);
            input->size = blob->size;
        }
    }
    return true;
}

static bool write_manifest(const struct bourse_product *product, struct bourse_job *job,
                           struct bourse_error *error)
{
    CLEANUP(listing_fini) struct listing listing = {.subtasks = NULL};
    if (!list_subtasks(product, &job->made, &listing)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    return manifest_make_of(job, listing.pointers, (size_t)product->summary.tiles, error);
}

/* Returns how many bytes the file of the largest tile may have. The header may be longer than the
 * one that the client would write. */
static int64_t tile_bytes_most(const struct bourse_product *product)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < product->summary.tiles; i++) {
        const struct matrix_block *block = &product->tiles[i].block;
        const uint64_t bytes = block->rows * block->columns * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    return (int64_t)(NPY_PREFIX_BYTES + most);
}

static bool fill_file(struct job_file *file, const struct bourse_product *product,
                      const struct bourse_product_options *options,
                      const struct product_needs *needs)
{
    static const char *const arguments[] = TILE_ARGUMENTS;
    const struct bourse_product_summary *summary = &product->summary;
    char name[FORMAT_NAME_BYTES + 1];
    (void)snprintf(name, sizeof name, "matmul %" PRIu64 " x %" PRIu64 " x %" PRIu64, summary->rows,
                   summary->inner, summary->columns);
    bool good =
        job_file_set(&file->name, name) && job_strings_add(&file->outputs, FORMAT_OUTPUTS, "c.npy");
    for (size_t i = 0; good && i < sizeof arguments / sizeof *arguments; i++) {
        good = job_strings_add(&file->run, FORMAT_ARGUMENTS, arguments[i]);
    }
    good = good && (!options->checks || job_file_set(&file->verify, "cheap"));
    file->is_tensor = true;
    file->limits.output_bytes = tile_bytes_most(product); /* no provider stores more for the job */
    file->at_most = needs->at_most;
    file->limit_ms = needs->limit_ms;
    file->expect_ms = needs->expect_ms;
    file->budget_micro = options->budget_micro;
    file->cap_micro = options->cap_micro;
    return good;
}

bool product_make_job(struct bourse_product *product, const struct bourse_product_options *options,
                      const struct product_needs *needs, struct bourse_error *error)
{
    struct problem problem = {.text = "out of memory"};
    CLEANUP(bourse_job_destroy) struct bourse_job *job = job_build_begin(job_file_create());
    if (job == NULL || job->file == NULL || !fill_file(job->file, product, options, needs) ||
        !job_file_check(job->file, &problem)) {
        return client_fail(error, BOURSE_LOCAL, "%s", problem.text);
    }
    job->subtasks = product->summary.tiles;
    if (!job_build_part(job, error)) {
        return false;
    }
    /* The few terms leave room for more. */
    struct requirement *part_needs = &job->parts[0].needs;
    (void)order_add_least(part_needs, "memory", needs->memory_bytes);
    (void)order_add_least(part_needs, "disk", needs->memory_bytes / PRODUCT_MEMORY_PARTS);
    job->check = job->parts[0]; /* any device with the room may check, fast or not */
    if (!result_checks_need_referee(&job->check.needs) ||
        (needs->least_speed > 0 && !order_add_least(part_needs, "gemm_fp32", needs->least_speed)) ||
        !hash_blocks(product, &job->made, error) || !write_manifest(product, job, error)) {
        return false;
    }
    product->summary.checks = job->checks;
    product->job = job;
    job = NULL;
    return true;
}
