/* Headers of tar archives: whatever the bytes are, they are answered, within the limits given. */
#include "formats/tar.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_bytes(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    memcpy(ret_bytes, (const uint8_t *)context + offset, length);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tar_source source = {
        .size = size, .read = read_bytes, .context = (void *)(uintptr_t)data};
    const struct tar_limits wide = {.entries = UINT64_MAX, .bytes = UINT64_MAX};
    const struct tar_limits none = {.entries = 0, .bytes = 0};
    struct problem problem = {.text = ""};
    const enum tar_status status = tar_check(&source, &wide, NULL, &problem);
    assert(status == TAR_OK || status == TAR_UNFIT);
    assert((status == TAR_OK) == (problem.text[0] == '\0'));
    if (status == TAR_OK) { /* an archive that is taken has a file */
        struct problem again = {.text = ""};
        const enum tar_status narrow = tar_check(&source, &none, NULL, &again);
        assert(narrow == TAR_TOO_MANY);
    }
    return 0;
}
