/* The target reads any bytes as a ZIP archive. What is found lies within the archive, and has a
 * plain name. */
#include "formats/zip/zip.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const uint8_t *data, const struct zip_folder *folder, const char *name)
{
    struct zip_member member;
    struct problem problem;
    uint64_t offset = 0;
    if (!zip_find(data + folder->offset, folder, name, &member, &problem)) {
        return;
    }
    assert(member.name[0] != '\0' && member.name[0] != '/' && strstr(member.name, "/../") == NULL);
    assert(member.header_offset + ZIP_LOCAL_BYTES + member.packed_bytes <= folder->offset);
    if (zip_read_local(data + member.header_offset, folder, &member, &offset, &problem)) {
        assert(offset >= member.header_offset + ZIP_LOCAL_BYTES);
        assert(offset + member.packed_bytes <= folder->offset);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zip_folder folder;
    struct problem problem;
    const size_t tail = size < ZIP_TAIL_BYTES ? size : ZIP_TAIL_BYTES;
    if (!zip_read_end(data + size - tail, tail, size, &folder, &problem)) {
        return 0;
    }
    assert(folder.offset + folder.size <= size);
    look(data, &folder, NULL);
    look(data, &folder, "x");
    return 0;
}
