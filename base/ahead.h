/* base/ahead.h asks the processor to load lines of memory before they are needed.
 *
 * No call waits for the memory, and an invalid address is no fault. The prefetch is the fourth
 * compiler extension that the code uses. GCC up to 13 takes a function without visible effect
 * for an empty one and drops the call. The empty assembler statement keeps the call. */
#ifndef BOURSE_BASE_AHEAD_H
#define BOURSE_BASE_AHEAD_H

#include <stddef.h>

static inline void line_ahead(const void *line)
{
    __builtin_prefetch(line, 1);
    __asm__ volatile("");
}

/* Prefetches every line of the `size` bytes at `from`. */
static inline void memory_ahead(const void *from, size_t size)
{
    enum { LINE = 64 };
    for (size_t at = 0; at < size; at += LINE) {
        line_ahead((const char *)from + at);
    }
}

#endif
