/* tests/support/zip_writer.h writes ZIP archives into memory, so that tests can spoil them. */
#ifndef BOURSE_TESTS_SUPPORT_ZIP_WRITER_H
#define BOURSE_TESTS_SUPPORT_ZIP_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZIP_WRITER_BYTES = 64 << 10, ZIP_WRITER_MEMBERS = 16 };

struct zip_writer {
    uint8_t bytes[ZIP_WRITER_BYTES];
    size_t length;
    size_t folder, end; /* places of the folder and of the end's record */
    struct {
        size_t local, entry; /* places of the two headers */
    } members[ZIP_WRITER_MEMBERS];
    size_t count;
    uint8_t entries[ZIP_WRITER_BYTES];
    size_t entries_length;
};

/* Adds a file, stored or deflated, as numpy.savez and numpy.savez_compressed do. */
void zip_writer_add(struct zip_writer *zip, const char *name, const void *bytes, size_t size,
                    bool is_deflated);
/* Adds the folder and the end. */
void zip_writer_end(struct zip_writer *zip);

#endif
