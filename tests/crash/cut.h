/* tests/crash/cut.h - what a power cut leaves of a watched disk.
 *
 * What was synced stays. Of the rest any part may: each write, resize and name is kept or lost by
 * itself, whatever came after it, one write is torn at a 512-byte boundary, and of a lost one the
 * size of the file may stay, with zeros for its bytes. Names are the
 * folder's: without an fsync of the folder a file may be there under its old name, its new one, or
 * none. What survives is applied in the order in which it was asked. */
#ifndef BOURSE_TESTS_CRASH_CUT_H
#define BOURSE_TESTS_CRASH_CUT_H

#include <stddef.h>
#include <stdint.h>

enum cut_rest {
    CUT_LOSES_ALL,  /* that was not synced */
    CUT_KEEPS_ALL,  /* but the last write is torn */
    CUT_SOME_STAYS, /* by the seed */
};

struct cut {
    size_t before; /* this change the power goes: it did not happen */
    enum cut_rest rest;
    uint64_t seed;
};

/* Writes the files that are left into the new folder `target`. */
void cut_power(const struct cut *cut, const char *target);
/* One line that names the change: "write 4096 bytes at 512 of market/ledger.db-wal". */
void cut_describe(const struct cut *cut, char *ret_text, size_t capacity);

#endif
