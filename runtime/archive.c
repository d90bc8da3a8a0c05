#include "runtime/archive.h"

#include "runtime/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 512,
    PIECE_BYTES = 1 << 18,
    NAME_BYTES = 100,    /* of a name or link in the header itself */
    RECORDS_BYTES = 9000 /* of a pax header: two paths and a size */
};
#define SIZE_LIMIT (UINT64_C(1) << 33) /* eleven octal digits */

static bool put(struct archive *archive, const void *bytes, size_t length)
{
    if (!file_write_at(archive->fd, bytes, length, archive->length)) {
        problem_set(archive->problem, "the archive cannot be written: %s", strerror(errno));
        return false;
    }
    archive->length += length;
    if (archive->sum != NULL) {
        sha256_add(archive->sum, bytes, length);
    }
    return true;
}

static bool put_padding(struct archive *archive)
{
    static const char zeros[BLOCK_BYTES];
    const size_t over = archive->length % BLOCK_BYTES;
    return over == 0 || put(archive, zeros, BLOCK_BYTES - over);
}

/* Writes a header of ustar, POSIX.1-1988. A longer name or link is cut. */
static bool put_block(struct archive *archive, char type, const char *name, const char *link,
                      unsigned mode, uint64_t size)
{
    char block[BLOCK_BYTES] = {0};
    unsigned sum = 0;
    memcpy(block, name, strnlen(name, NAME_BYTES));
    (void)snprintf(block + 100, 8, "%07o", mode & 07777);
    (void)snprintf(block + 108, 8, "%07o", 0U);
    (void)snprintf(block + 116, 8, "%07o", 0U);
    (void)snprintf(block + 124, 12, "%011llo", (unsigned long long)(size % SIZE_LIMIT));
    (void)snprintf(block + 136, 12, "%011o", 0U);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 157, link, strnlen(link, NAME_BYTES));
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < sizeof block; i++) {
        sum += (unsigned char)block[i];
    }
    (void)snprintf(block + 148, 8, "%06o", sum);
    return put(archive, block, sizeof block);
}

/* Adds a record "LENGTH KEY=VALUE" and a newline, where LENGTH counts all of the record. */
static size_t add_record(char *records, size_t at, const char *key, const char *value)
{
    const size_t rest = strlen(key) + strlen(value) + 3; /* blank, "=" and newline */
    size_t length = rest + 1;
    for (size_t digits = 1; length != rest + digits;) {
        length = rest + digits;
        digits = (size_t)snprintf(NULL, 0, "%zu", length);
    }
    (void)snprintf(records + at, RECORDS_BYTES - at, "%zu %s=%s\n", length, key, value);
    return at + length;
}

/* Writes what the header itself cannot hold. */
static bool put_records(struct archive *archive, const char *name, const char *link, uint64_t size)
{
    char records[RECORDS_BYTES];
    size_t length = 0;
    if (strlen(name) + strlen(link) + 100 > sizeof records) {
        problem_set(archive->problem, "a path and a link of more than %d bytes", RECORDS_BYTES);
        return false;
    }
    if (strlen(name) > NAME_BYTES) {
        length = add_record(records, length, "path", name);
    }
    if (strlen(link) > NAME_BYTES) {
        length = add_record(records, length, "linkpath", link);
    }
    if (size >= SIZE_LIMIT) {
        char number[24];
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)size);
        length = add_record(records, length, "size", number);
    }
    return length == 0 || (put_block(archive, 'x', "pax", "", 0644, length) &&
                           put(archive, records, length) && put_padding(archive));
}

bool archive_put_header(struct archive *archive, char type, const char *name, const char *link,
                        unsigned mode, uint64_t size)
{
    return put_records(archive, name, link, size) &&
           put_block(archive, type, name, link, mode, size);
}

bool archive_put_bytes(struct archive *archive, const void *bytes, size_t length)
{
    return put(archive, bytes, length) && put_padding(archive);
}

bool archive_put_file(struct archive *archive, int fd, uint64_t offset, uint64_t size,
                      const char *name)
{
    const size_t capacity = size < PIECE_BYTES ? (size_t)size : PIECE_BYTES;
    char *piece = malloc(capacity + 1);
    bool good = piece != NULL;
    if (piece == NULL) {
        problem_set(archive->problem, "out of memory");
    }
    for (uint64_t done = 0; good && done < size;) {
        const size_t length = size - done < PIECE_BYTES ? (size_t)(size - done) : PIECE_BYTES;
        good = file_read_at(fd, piece, length, offset + done);
        if (!good) {
            problem_set(archive->problem, "%.300s changed or cannot be read; try again", name);
        }
        good = good && put(archive, piece, length);
        done += length;
    }
    free(piece);
    return good && put_padding(archive);
}

bool archive_put_end(struct archive *archive)
{
    static const char end[2 * BLOCK_BYTES];
    return put(archive, end, sizeof end);
}
