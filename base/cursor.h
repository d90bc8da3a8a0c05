/* base/cursor.h reads and writes bytes field by field, and never passes the end.
 *
 * Our own formats (envelope, journal record, snapshot, leaf) are little endian and go through here.
 * A struct is never copied to the wire. Both cursors are sticky: the first field that does not fit
 * sets `failed`. From then on reads yield zeros and writes are dropped. A codec therefore checks
 * once, at the end.
 *
 *     struct reader in = reader_over(bytes, length);
 *     uint32_t count = reader_u32(&in);
 *     if (!reader_finished(&in)) return CODEC_MALFORMED;   all there, and nothing left over
 *
 * Pure. */
#ifndef BOURSE_BASE_CURSOR_H
#define BOURSE_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    const uint8_t *bytes; /* borrowed */
    size_t length;
    size_t position;
    bool failed;
};

struct reader reader_over(const void *bytes, size_t length);
uint8_t reader_u8(struct reader *reader);
uint16_t reader_u16(struct reader *reader);
uint32_t reader_u32(struct reader *reader);
uint64_t reader_u64(struct reader *reader);
int64_t reader_i64(struct reader *reader);
/* Copies `length` bytes to `ret_bytes`. Writes zeros on failure. */
void reader_bytes(struct reader *reader, void *ret_bytes, size_t length);
/* Returns a pointer to `length` bytes of the input, borrowed, or NULL on failure. */
const uint8_t *reader_view(struct reader *reader, size_t length);
size_t reader_left(const struct reader *reader);
/* Returns true when every read fitted and the input is used up. */
bool reader_finished(const struct reader *reader);

/* A writer writes to the caller's memory of `capacity` bytes. A writer whose `bytes` is NULL
 * only counts: `position` then tells the size that the same writes need. */
struct writer {
    uint8_t *bytes;
    size_t capacity;
    size_t position;
    bool failed;
};

struct writer writer_over(void *bytes, size_t capacity);
struct writer writer_counting(void);
void writer_u8(struct writer *writer, uint8_t value);
void writer_u16(struct writer *writer, uint16_t value);
void writer_u32(struct writer *writer, uint32_t value);
void writer_u64(struct writer *writer, uint64_t value);
void writer_i64(struct writer *writer, int64_t value);
void writer_bytes(struct writer *writer, const void *bytes, size_t length);

#endif
