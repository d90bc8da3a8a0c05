/* The units storage.c and storage_commit.c share this function. */
#ifndef BOURSE_BROKER_STORAGE_STORAGE_INTERNAL_H
#define BOURSE_BROKER_STORAGE_STORAGE_INTERNAL_H

#include "broker/storage/storage.h"

/* Appends a record to the audit log within the open transaction, with the wall clock of now. */
enum ledger_store_status storage_append_act(struct storage *store, struct act *act);

#endif
