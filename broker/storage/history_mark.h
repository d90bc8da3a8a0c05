/* broker/storage/history_mark.h compares the mark of history.db with the ledger.
 *
 * history.db (broker/answer/measuring.h) stores the number of the last result that it has counted.
 * The ledger shows a result to readers only once the result is durable. So history.db is never
 * ahead of its own ledger, not even after a power cut. A mark ahead of the ledger is evidence that
 * entries are lost. */
#ifndef BOURSE_BROKER_STORAGE_HISTORY_MARK_H
#define BOURSE_BROKER_STORAGE_HISTORY_MARK_H

#include "base/problem.h"

#include <sqlite3.h>
#include <stdbool.h>

enum history_found {
    HISTORY_FITS,   /* also when there is no file, or a damaged one, which is no evidence */
    HISTORY_BEYOND, /* the file has counted a result that the ledger lacks: entries are lost */
    HISTORY_UNREAD, /* the ledger or the file could not be read */
};

/* Compares `folder`/history.db with the results of `ledger`. With `adopts` a file that is ahead is
 * renamed and logged instead: the operator knows what is given up. BEYOND and UNREAD come with a
 * problem, and UNREAD also when the file cannot be renamed. Call sqlite_know_errors before, so that
 * a failed read is not taken for a damaged file. */
enum history_found history_mark_look(const char *folder, sqlite3 *ledger, bool adopts,
                                     struct problem *ret_problem);

#endif
