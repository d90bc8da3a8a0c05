#include "tests/crash/scratch.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void scratch_path(const char *name, char ret_path[SCRATCH_PATH_SIZE])
{
    static unsigned serial;
    const char *folder = getenv("TMPDIR");
    struct timespec now; /* a process that was killed leaves folders, and its number comes again */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (access("/dev/shm", W_OK | X_OK) == 0) {
        folder = "/dev/shm";
    }
    (void)snprintf(ret_path, SCRATCH_PATH_SIZE, "%.150s/bourse-crash-%ld-%" PRIx64 "-%u-%.40s",
                   folder == NULL ? "/tmp" : folder, (long)getpid(),
                   (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec, ++serial,
                   name); /* fits */
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void scratch_remove(const char *path)
{
    (void)nftw(path, remove_one, 16,
               FTW_DEPTH | FTW_PHYS); /* what stays is in a temporary folder */
}

bool scratch_is_long(void)
{
    const char *value = getenv("BOURSE_LONG");
    return value != NULL && strcmp(value, "yes") == 0;
}

uint64_t scratch_seed(void)
{
    const char *value = getenv("BOURSE_SEED");
    uint64_t seed = value == NULL ? (uint64_t)time(NULL) : strtoull(value, NULL, 10);
    printf("BOURSE_SEED=%" PRIu64 "\n", seed);
    (void)fflush(stdout);
    return seed;
}
