/* Headers of .npy files: what is taken is as long as it says, and a matrix's header written anew
 * says the same, as does any other header. */
#include "formats/npy.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const struct npy *npy)
{
    size_t size = NPY_MATRIX_BYTES + (size_t)npy->data_bytes;
    uint8_t *file = calloc(1, size);
    if (file == NULL) {
        return;
    }
    struct npy again;
    npy_write_matrix(npy->shape[0], npy->shape[1], file);
    assert(npy_read(file, size, size, &again, NULL) && npy_is_matrix(&again, NULL));
    assert(again.shape[0] == npy->shape[0] && again.shape[1] == npy->shape[1]);
    assert(again.data_bytes == npy->data_bytes && again.data_offset == NPY_MATRIX_BYTES);
    free(file);
}

/* Every header that is written is read as what it was written of. */
static void write_any(const struct npy *npy)
{
    uint8_t header[NPY_HEADER_MOST];
    const size_t length = npy_write(npy, header);
    size_t size = length + (size_t)npy->data_bytes;
    uint8_t *file = calloc(1, size);
    if (file == NULL) {
        return;
    }
    struct npy again;
    memcpy(file, header, length);
    assert(npy_read(file, size, size, &again, NULL));
    assert(again.kind == npy->kind && again.item_bytes == npy->item_bytes);
    assert(again.dimension_count == npy->dimension_count && again.data_offset == length);
    assert(memcmp(again.shape, npy->shape, sizeof npy->shape) == 0);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy npy;
    char type[NPY_TYPE_SIZE];
    if (!npy_read(data, size, size, &npy, NULL)) {
        return 0;
    }
    assert(npy.dimension_count <= NPY_DIMENSIONS);
    assert(npy.data_offset + npy.data_bytes == size);
    assert(npy.element_count * npy.item_bytes == npy.data_bytes);
    npy_type_text(&npy, type);
    write_any(&npy);
    if (npy_is_matrix(&npy, NULL)) {
        write_again(&npy);
    }
    return 0;
}
