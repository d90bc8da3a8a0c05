#include "consumer/product/tile_times.h"

#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/market/measured_load.h"
#include "consumer/product/tile.h"
#include "protocol/work.h"

#include <stdlib.h>

struct tiles { /* tiles of one product */
    uint64_t inner;
    struct measured_works works;
    struct matrix_block blocks[MEASURED_WORKS]; /* by work */
    uint32_t sizes[MEASURED_WORKS];
};

/* Returns the work of a tile, as the manifest of a product describes it (product.c). */
static struct work tile_work(const struct matrix_block *block, uint64_t inner)
{
    static char executor[] = "tensor";
    static const char *const arguments[] = TILE_ARGUMENTS;
    char *copies[sizeof arguments / sizeof *arguments];
    char value[TILE_VALUE_SIZE];
    const struct matrix_block factors[2] = {{.rows = block->rows, .columns = inner},
                                            {.rows = inner, .columns = block->columns}};
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    Bourse__V1__ManifestTerms terms = BOURSE__V1__MANIFEST_TERMS__INIT;
    Bourse__V1__ManifestPart part = BOURSE__V1__MANIFEST_PART__INIT;
    Bourse__V1__ManifestPart *parts[] = {&part};
    Bourse__V1__ManifestSubtask subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&subtask};
    Bourse__V1__ManifestInput inputs[2];
    Bourse__V1__ManifestInput *input_pointers[] = {&inputs[0], &inputs[1]};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        copies[i] = (char *)(uintptr_t)arguments[i]; /* read only */
    }
    for (size_t i = 0; i < 2; i++) {
        bourse__v1__manifest_input__init(&inputs[i]);
        inputs[i].size = matrix_blob_bytes(&factors[i]);
    }
    tile_value(block, value);
    part.subtasks = part.slots = 1;
    terms.n_parts = 1;
    terms.parts = parts;
    subtask.value = value;
    subtask.n_inputs = 2;
    subtask.inputs = input_pointers;
    manifest.executor = executor;
    manifest.n_arguments = sizeof arguments / sizeof *arguments;
    manifest.arguments = copies;
    manifest.terms = &terms;
    manifest.n_subtasks = 1;
    manifest.subtasks = subtasks;
    return work_of(&manifest, 0);
}

static void add_tile(struct tiles *tiles, uint64_t rows, uint64_t columns)
{
    const struct matrix_block block = {.rows = rows, .columns = columns};
    const size_t before = tiles->works.count;
    const struct work work = tile_work(&block, tiles->inner);
    measured_works_add(&tiles->works, &work.name, 0);
    if (tiles->works.count > before) {
        tiles->blocks[before] = block;
        tiles->sizes[before] = work.size;
    }
}

static void tell(const struct tiles *tiles, const struct measured_row *row,
                 tile_time_visitor *visitor, void *context)
{
    const struct matrix_block *block = &tiles->blocks[row->work];
    const struct tile_time tile = {.rows = block->rows,
                                   .columns = block->columns,
                                   .device_class = row->place.device_class,
                                   .samples = row->samples,
                                   .median_ns = row->median_ns,
                                   .p90_ns = row->p90_ns};
    /* The name of the work does not include the inner extent, but the size of the factors does. */
    if (row->place.device[0] == '\0' && row->size == tiles->sizes[row->work]) {
        visitor(context, &tile);
    }
}

bool tile_times_load(struct bourse *bourse, uint64_t rows, uint64_t inner, uint64_t columns,
                     tile_time_visitor *visitor, void *context, struct bourse_error *error)
{
    CLEANUP(measured_times_destroy) struct measured_times *times = NULL;
    struct tiles *tiles = calloc(1, sizeof *tiles);
    if (tiles == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    tiles->inner = inner;
    for (uint64_t i = 1; i <= TILE_GRID && i <= rows; i++) {
        for (uint64_t k = 1; k <= TILE_GRID && k <= columns; k++) {
            add_tile(tiles, rows / i + (rows % i > 0), columns / k + (columns % k > 0));
        }
    }
    const bool good = measured_load(bourse, &tiles->works, &times, error);
    for (size_t i = 0; good && i < measured_times_count(times); i++) {
        tell(tiles, measured_times_row(times, i), visitor, context);
    }
    free(tiles);
    return good;
}
