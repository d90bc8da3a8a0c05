/* A reader reads bytes field by field and never passes their end; base/cursor.h has the rules. */
#ifndef BOURSE_BASE_READER_H
#define BOURSE_BASE_READER_H

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

#endif
