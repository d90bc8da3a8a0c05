/* tests/crash/scratch.h - folders for a while, in memory where there is /dev/shm, and how long and
 * from which seed a sweep runs. */
#ifndef BOURSE_TESTS_CRASH_SCRATCH_H
#define BOURSE_TESTS_CRASH_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { SCRATCH_PATH_SIZE = 256 };

/* A path of this process for `name`, where nothing is. */
void scratch_path(const char *name, char ret_path[SCRATCH_PATH_SIZE]);
void scratch_remove(const char *path); /* with all that is in it */

bool scratch_is_long(void);  /* BOURSE_LONG=yes: sweep everything */
uint64_t scratch_seed(void); /* BOURSE_SEED, or one from the clock; printed */

#endif
