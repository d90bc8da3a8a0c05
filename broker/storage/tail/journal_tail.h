/* The engine of the journal's tail appends entries to the two files of tail.h.
 *
 * One append is one write and one fdatasync in a file whose size mostly stays. The engine leads
 * under the epoch of the rows, the journal in ledger.db, which the ledger's thread writes later.
 * Only `append` may be called once that thread runs. An append waits while the tables on the disk
 * are so far behind that neither file may be used. */
#ifndef BOURSE_BROKER_STORAGE_TAIL_JOURNAL_TAIL_H
#define BOURSE_BROKER_STORAGE_TAIL_JOURNAL_TAIL_H

#include "base/problem.h"
#include "broker/core/watermark.h"
#include "broker/storage/journal.h"

#include <stdbool.h>
#include <stddef.h>

struct journal_tail_config {
    const char *folder;
    /* The rows have the entries that are in the files, and outlive the journal. */
    struct journal *rows;
    /* Newest entry that the disk has in the tables; outlives the journal. */
    struct watermark *synced;
    size_t turn_bytes; /* a file is long enough from here on; usually TAIL_TURN_BYTES */
};

/* Opens or makes the files. *ret_journal is NULL on failure. FULL: the disk has no space for the
 * files. */
enum journal_status journal_tail_open(const struct journal_tail_config *config,
                                      struct journal **ret_journal, struct problem *ret_problem);
/* Removes the files, when the tables have everything. A file that stays does no harm. */
void journal_tail_remove(const char *folder);

#endif
