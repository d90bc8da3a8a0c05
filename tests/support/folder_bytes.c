#include "tests/support/folder_bytes.h"

#include <check.h>
#include <ftw.h>
#include <stdbool.h>

static uint64_t counted_bytes; /* bytes of the files that the walk met */

static int count_file(const char *path, const struct stat *facts, int flag, struct FTW *walk)
{
    const bool is_file = flag == FTW_F && path != NULL && walk != NULL;
    counted_bytes += is_file ? (uint64_t)facts->st_size : 0;
    return 0;
}

uint64_t folder_bytes(const char *folder)
{
    counted_bytes = 0;
    ck_assert_int_eq(nftw(folder, count_file, 8, FTW_PHYS), 0);
    return counted_bytes;
}
