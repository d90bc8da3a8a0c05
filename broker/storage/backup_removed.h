/* broker/storage/backup_removed.h makes a backup right that was taken while blobs were removed.
 *
 * A backup copies blobs.db before the files. A broker that runs beside may remove a forgotten blob
 * in between. The copy's index then names a file that the copy lacks, and a restore would refuse
 * the backup. Such rows leave the copy, and a blob that was stored again meanwhile is copied. A
 * file that the market itself lacks stays named: it is lost, and a restore says so. */
#ifndef BOURSE_BROKER_STORAGE_BACKUP_REMOVED_H
#define BOURSE_BROKER_STORAGE_BACKUP_REMOVED_H

#include "base/problem.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Compares the copied folder of blobs with the market's. Returns false with a problem when one
 * cannot be read or the copy cannot be changed. */
bool backup_removed_drop(const char *market_blobs, const char *copied_blobs,
                         struct problem *ret_problem);
/* Makes an index look as if the blobs without a row had never been stored: their owners may send
 * them again. Blobs that their owner forgot count against no quota. Returns false when the database
 * says so. */
bool backup_removed_forget_owners(sqlite3 *database);

#endif
