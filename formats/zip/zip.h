/* formats/zip/zip.h finds one file in a ZIP archive, such as an array in a .npz file of NumPy.
 *
 *     files:      a local header of 30 bytes, name, extra field, and the bytes of the file
 *     folder:     for each file an entry of 46 bytes, name, extra field and comment
 *     end:        22 bytes and a comment: how many entries, size and place of the folder
 *
 * The reader takes files that are stored or deflated, in archives of one part without encryption.
 * It knows no ZIP64 folder, which archives above 4 GiB have. Archives are not trusted: each place
 * is compared with the size of the archive, and both headers of a file must agree. Pure; the caller
 * reads the bytes, and compares size and CRC-32 with what it unpacks. */
#ifndef BOURSE_FORMATS_ZIP_ZIP_H
#define BOURSE_FORMATS_ZIP_ZIP_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ZIP_TAIL_BYTES = 22 + 65535, /* so many bytes at the end always hold the end's record */
    ZIP_FOLDER_BYTES = 4 << 20,  /* of the folder that is read */
    ZIP_LOCAL_BYTES = 30,
    ZIP_NAME_BYTES = 512,
};

struct zip_folder {
    uint64_t offset;
    uint32_t size;
    uint32_t count;
};

enum zip_method { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_member {
    char name[ZIP_NAME_BYTES + 1];
    enum zip_method method;
    uint32_t crc;
    uint64_t packed_bytes, bytes;
    uint64_t header_offset; /* of the local header */
};

/* Reads the end of an archive of `archive_bytes`, of which `tail` has the last `length` bytes: all,
 * or at least ZIP_TAIL_BYTES. Returns false with the problem; the folder then is unchanged. */
bool zip_read_end(const uint8_t *tail, size_t length, uint64_t archive_bytes,
                  struct zip_folder *ret_folder, struct problem *ret_problem);

/* Finds the file `name`, or "NAME.npy", among the folder's bytes; NULL finds the only file. Refuses
 * an archive in which the file stands twice, or in which a name leads out of a folder. The problem
 * lists names when there is no such file. */
bool zip_find(const uint8_t *bytes, const struct zip_folder *folder, const char *name,
              struct zip_member *ret_member, struct problem *ret_problem);

/* Reads the local header of a member, and computes where the bytes begin. All of them lie before
 * the folder. */
bool zip_read_local(const uint8_t bytes[ZIP_LOCAL_BYTES], const struct zip_folder *folder,
                    const struct zip_member *member, uint64_t *ret_offset,
                    struct problem *ret_problem);

#endif
