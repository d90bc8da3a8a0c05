/* The target searches any bytes as the loader's index of libraries. Every path found lies in the
 * file and has an end, and every search ends. */
#include "formats/elf/ld_cache.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t index = 0;
    size_t before = 0;
    const char *path;
    while ((path = ld_cache_next(data, size, "libc.so.6", &index)) != NULL) {
        const size_t at = (size_t)((const uint8_t *)path - data);
        assert(at < size);
        assert(memchr(path, '\0', size - at) != NULL);
        assert(index > before);
        before = index;
    }
    return 0;
}
