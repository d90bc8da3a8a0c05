/* bench/give_up.h ends a measuring program that cannot measure. The program prints one line with
 * its name and exits with 1. Nothing is freed. */
#ifndef BOURSE_BENCH_GIVE_UP_H
#define BOURSE_BENCH_GIVE_UP_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static inline _Noreturn void die(const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
    exit(1);
}

/* Returns zeroed memory, which the caller frees; never NULL. */
static inline void *memory(size_t count, size_t size)
{
    void *bytes = calloc(count, size);
    if (bytes == NULL) {
        die("out of memory");
    }
    return bytes;
}

#endif
