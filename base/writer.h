/* A writer writes bytes field by field and never passes their end; base/cursor.h has the rules. */
#ifndef BOURSE_BASE_WRITER_H
#define BOURSE_BASE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
