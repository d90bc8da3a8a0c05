/* The units storage.c and storage_commit.c share these functions. */
#ifndef BOURSE_BROKER_STORAGE_STORAGE_INTERNAL_H
#define BOURSE_BROKER_STORAGE_STORAGE_INTERNAL_H

#include "broker/storage/storage.h"

/* Appends a record to the audit log within the open transaction, with the wall clock of now. */
enum ledger_store_status storage_append_act(struct storage *store, struct act *act);
/* Says what a status of the ledger means, for a person. */
const char *storage_ledger_text(enum ledger_store_status status);

#endif
