/* base/ahead.h - brings a line of memory closer to the processor before it is needed.
 *
 * Nothing waits for it, and an address that is nobody's is no fault. The fourth compiler extension that we use. GCC up to 13 takes a
 * function that does nothing else for one that does nothing, and drops the call; the empty statement keeps it. */
#ifndef BOURSE_BASE_AHEAD_H
#define BOURSE_BASE_AHEAD_H

static inline void line_ahead(const void *line)
{
    __builtin_prefetch(line, 1);
    __asm__ volatile("");
}

#endif
