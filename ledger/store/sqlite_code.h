/* ledger/store/sqlite_code.h interprets SQLite's error codes. Either the data is wrong, or the
 * machine failed. */
#ifndef BOURSE_LEDGER_STORE_SQLITE_CODE_H
#define BOURSE_LEDGER_STORE_SQLITE_CODE_H

#include "base/problem.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Makes SQLite report disk failures as they are, from the first call on. A write that a quota
 * refuses (EDQUOT) becomes a full disk, SQLITE_FULL; SQLite itself knows ENOSPC only. A failed read
 * (EIO) becomes SQLITE_IOERR; SQLite itself reports damaged data, SQLITE_CORRUPT. The call is for
 * the whole process, before it opens a database. */
void sqlite_know_errors(void);

/* Returns true when the disk has failed to read or to open a file of a database, in this process
 * since sqlite_know_errors. A fault found then proves nothing: the unread bytes may be intact. */
bool sqlite_reads_failed(void);

/* Names the file that the disk failed first, and what the operator does. The call is for after
 * sqlite_reads_failed has returned true. */
void sqlite_explain_unread(struct problem *ret_problem);

/* Returns true when the database and its WAL are open for writing. SQLite opens a file for reading
 * only, and says nothing, when the disk fails to open the file for both. */
bool sqlite_can_write(sqlite3 *database, struct problem *ret_problem);

/* Returns true when the last failure on `database` concerns the machine (disk, memory, rights,
 * locks) and not the data. NULL stands for a database that could not be opened. Returns false also
 * when nothing failed. */
bool sqlite_could_not(sqlite3 *database);

enum pages_status { PAGES_WHOLE, PAGES_DAMAGED, PAGES_UNREAD };
enum { PAGES_TEXT = 200 };
/* Checks every page of `table`, or of the whole database for NULL. For any status but PAGES_WHOLE,
 * ret_why gets the reason. A page that the disk did not give is PAGES_UNREAD, although SQLite's own
 * check calls it damaged. */
enum pages_status sqlite_check_pages(sqlite3 *database, const char *table,
                                     char ret_why[PAGES_TEXT]);

#endif
