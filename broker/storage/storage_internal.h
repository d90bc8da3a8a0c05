/* The units storage.c, storage_commit.c and storage_catch_up.c share these functions. */
#ifndef BOURSE_BROKER_STORAGE_STORAGE_INTERNAL_H
#define BOURSE_BROKER_STORAGE_STORAGE_INTERNAL_H

#include "broker/storage/storage.h"

/* Appends a record to the audit log within the open transaction, with the wall clock of now. */
enum ledger_store_status storage_append_act(struct storage *store, struct act *act);
/* Appends one ledger record within the open transaction. `said` is the translation of its command,
 * or NULL for a command of the broker itself. */
enum ledger_store_status storage_append_record(struct storage *store,
                                               const struct translation *said,
                                               const struct ledger_record *record);
/* Signs the tree within the open transaction, if it grew since it had `size_before` leaves. */
enum ledger_store_status storage_sign_tree(struct storage *store, uint64_t size_before);
/* Writes an entry to the table journal within the open transaction. A failure rolls back. */
enum ledger_store_status storage_append_row(struct storage *store, uint64_t index,
                                            const uint8_t *bytes, size_t length);
/* Settles the tables when the disk has them: HEAD, `applied` and `synced` follow. */
void storage_tables_reach(struct storage *store, const struct journal_last *end);
/* Writes HEAD for the entry `end` and what the tables have. */
void storage_write_head(struct storage *store, const struct journal_last *end);
/* Says why the last call on the ledger or the audit log failed. */
const char *storage_why_failed(const struct storage *store);
/* Says what a status of the ledger means, for a person. */
const char *storage_ledger_text(enum ledger_store_status status);

#endif
