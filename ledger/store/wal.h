/* ledger/store/wal.h says when a commit is durable, for every database whose commits we
 * acknowledge. It also closes three gaps of SQLite after a failed fsync (P11).
 *
 * After a failed fsync the system may call its pages clean and never write them, while a restarted
 * program still reads them. The program would take a transaction for durable that is only in
 * memory. The next transaction would then go behind a hole on the disk, where the next recovery
 * ends. wal_renew writes the log once more, so that all bytes read are on the disk too.
 *
 * SQLite fsyncs the folder of a new log and ignores a failure; wal_sync_name repeats the fsync and
 * reports it.
 *
 * SQLite checkpoints by itself after a commit and ignores a failure, that of the database's fsync
 * included, to try again later. Here the owner of the commit runs the checkpoint and gets its
 * result. */
#ifndef BOURSE_LEDGER_STORE_WAL_H
#define BOURSE_LEDGER_STORE_WAL_H

#include "base/problem.h"

#include <sqlite3.h>
#include <stdbool.h>

enum { WAL_CHECKPOINT_PAGES = 1000 };

struct wal {
    sqlite3 *database;    /* borrowed */
    int pages;            /* in the log after the last commit */
    int checkpoint_pages; /* the log is copied into the database from so many pages on */
    bool is_lazy;         /* commits do not wait for the disk */
    bool is_synced;       /* the disk has every commit */
};

/* Writes the log of the database at `path` again, byte for byte, and fsyncs it. The only writer
 * calls it before it opens the database; readers may have it open. Returns false with errno and a
 * problem when this failed. A missing log is no failure. */
bool wal_renew(const char *path, struct problem *ret_problem);

/* Makes the log's name durable, after the first statement, when the log exists. Returns false with
 * errno. */
bool wal_sync_name(const char *path);

/* Takes over the automatic checkpoint of an open database. `self` must live as long as the
 * handle. */
void wal_init(struct wal *self, sqlite3 *database);

/* Sets whether the commits from now on return before the disk has them. The disk gets them in their
 * order, so a power cut takes only the newest. No transaction may be open. */
int wal_set_lazy(struct wal *self, bool is_lazy);
/* Waits until the disk has every commit. Any code but SQLITE_OK means that the disk failed: the
 * caller stops. */
int wal_sync(struct wal *self);

/* Runs a due checkpoint after a commit. A reader in the way or a full disk only delays the
 * checkpoint: SQLITE_OK. Any other code means that the disk failed: the caller stops. */
int wal_checkpoint_when_due(struct wal *self);

#endif
