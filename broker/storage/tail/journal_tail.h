/* The engine of the journal's tail appends entries to the two files of tail.h.
 *
 * One append is one write and one fdatasync in a file whose size mostly stays. The engine leads
 * under the epoch of the rows, the journal in ledger.db, which the ledger's thread writes later.
 * Only `append` may be called once that thread runs. An append waits while the tables are so far
 * behind that neither file may be used. */
#ifndef BOURSE_BROKER_STORAGE_TAIL_JOURNAL_TAIL_H
#define BOURSE_BROKER_STORAGE_TAIL_JOURNAL_TAIL_H

#include "base/problem.h"
#include "broker/core/watermark.h"
#include "broker/storage/journal.h"

#include <stdbool.h>

/* Opens or makes the files in `folder`, whose entries the rows already have. `rows` and `applied`,
 * the newest entry that the tables have, outlive the journal. *ret_journal is NULL on failure.
 * FULL: the disk has no space for the files. */
enum journal_status journal_tail_open(const char *folder, struct journal *rows,
                                      struct watermark *applied, struct journal **ret_journal,
                                      struct problem *ret_problem);
/* Removes the files, when the tables have everything. A file that stays does no harm. */
void journal_tail_remove(const char *folder);

#endif
