/* ledger/store/sqlite_code.h - what SQLite's error codes mean to us: the data is wrong, or the
 * machine could not. */
#ifndef BOURSE_LEDGER_STORE_SQLITE_CODE_H
#define BOURSE_LEDGER_STORE_SQLITE_CODE_H

#include <sqlite3.h>
#include <stdbool.h>

/* From the first call on, SQLite tells what a disk does as what it is. A write that a quota refuses
 * (EDQUOT) is a full disk, SQLITE_FULL: by itself it knows ENOSPC only. A read that fails (EIO) is
 * SQLITE_IOERR: by itself it says SQLITE_CORRUPT, as of damaged data. For the process, and before
 * it opens a database. */
void sqlite_know_errors(void);

/* Whether a read of a database has failed in this process since that call. What was found wrong
 * then is no finding: the bytes that were not read may be whole. */
bool sqlite_reads_failed(void);

/* Whether the last failure on `database` (NULL: it could not even be opened) says something of the
 * machine (disk, memory, rights, locks) and nothing of the data. False also when nothing failed. */
bool sqlite_could_not(sqlite3 *database);

enum pages_status { PAGES_WHOLE, PAGES_DAMAGED, PAGES_UNREAD };
enum { PAGES_TEXT = 200 };
/* Looks at every page of `table`, or of the whole database where that is NULL. Anything but WHOLE
 * says why: a page that the disk did not give is UNREAD, although SQLite's own check calls it
 * damaged. */
enum pages_status sqlite_check_pages(sqlite3 *database, const char *table,
                                     char ret_why[PAGES_TEXT]);

#endif
