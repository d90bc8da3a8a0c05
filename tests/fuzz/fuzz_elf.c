/* The target reads any bytes as an ELF file. What is read keeps within the caps, every text has an
 * end, and no read leads out of the file. */
#include "formats/elf/elf.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *data;
    size_t size;
};

static bool read_bytes(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct bytes *bytes = context;
    assert(offset <= bytes->size);
    assert(length <= bytes->size - offset);
    memcpy(ret_bytes, bytes->data + offset, length);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct elf elf;
    struct problem problem;
    struct bytes bytes = {.data = data, .size = size};
    const struct elf_source source = {.size = size, .read = read_bytes, .context = &bytes};
    if (elf_read(&source, &elf, &problem) != ELF_OK) {
        return 0;
    }
    assert(elf.machine != NULL);
    assert(elf.needed_count <= ELF_NEEDED_MAX);
    assert(memchr(elf.interpreter, '\0', sizeof elf.interpreter) != NULL);
    assert(memchr(elf.folders, '\0', sizeof elf.folders) != NULL);
    for (size_t i = 0; i < elf.needed_count; i++) {
        assert(memchr(elf.needed[i], '\0', sizeof elf.needed[i]) != NULL);
    }
    return 0;
}
