/* ledger/store/sqlite_wal.h - three things that SQLite leaves undone about a failed fsync (P11),
 * for every database that we acknowledge from.
 *
 * After an fsync has failed the system may call its pages clean and never write them, while a
 * program that starts again still reads them. It would take a transaction for durable that is only
 * in memory, and append to a log that has a hole on the disk, at which the next recovery ends.
 * wal_renew writes the log once more, so that what is read is on the disk too.
 *
 * SQLite fsyncs the folder of a new log and drops the failure: wal_sync_name does it again and does
 * not.
 *
 * SQLite checkpoints by itself after a commit and drops the failure of it, the fsync of the
 * database included, to try again later. Here the commit's owner asks for the checkpoint and hears
 * of it. */
#ifndef BOURSE_LEDGER_STORE_SQLITE_WAL_H
#define BOURSE_LEDGER_STORE_SQLITE_WAL_H

#include <sqlite3.h>
#include <stdbool.h>

enum { WAL_CHECKPOINT_PAGES = 1000 };

struct wal {
    sqlite3 *database;    /* borrowed */
    int pages;            /* in the log after the last commit */
    int checkpoint_pages; /* from so many on it is copied into the database */
};

/* Before the database at `path` is opened by its only writer: writes what is in its log again, byte
 * for byte, and fsyncs it. Readers may have it open. False with errno when that failed; no log is
 * no failure. */
bool wal_renew(const char *path);

/* After the first statement, when the log is there: makes its name durable. False with errno. */
bool wal_sync_name(const char *path);

/* Takes the automatic checkpoint of an open database over. `self` must live as long as the
 * handle. */
void wal_init(struct wal *self, sqlite3 *database);

/* After a commit. A reader that is in the way, and a full disk, only put the checkpoint off:
 * SQLITE_OK. Any other code means that the disk failed: stop. */
int wal_checkpoint_when_due(struct wal *self);

#endif
