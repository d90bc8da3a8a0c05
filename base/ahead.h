/* base/ahead.h - brings lines of memory closer to the processor before they are needed.
 *
 * Nothing waits for it, and an address that is nobody's is no fault. The fourth compiler extension
 * that we use. GCC up to 13 takes a function that does nothing else for one that does nothing, and
 * drops the call; the empty statement keeps it. */
#ifndef BOURSE_BASE_AHEAD_H
#define BOURSE_BASE_AHEAD_H

#include <stddef.h>

static inline void line_ahead(const void *line)
{
    __builtin_prefetch(line, 1);
    __asm__ volatile("");
}

/* All lines of so many bytes. */
static inline void memory_ahead(const void *from, size_t size)
{
    enum { LINE = 64 };
    for (size_t at = 0; at < size; at += LINE) {
        line_ahead((const char *)from + at);
    }
}

#endif
