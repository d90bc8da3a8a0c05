/* broker/storage/remains.h - what is left in a folder of a market whose ledger is lost, and how its
 * log ends on purpose.
 *
 * A log key that has signed never signs a second history (docs/ledger.md section 2). So a folder
 * without a ledger is that of a new market only when nothing in it was left by an older one. */
#ifndef BOURSE_BROKER_STORAGE_REMAINS_H
#define BOURSE_BROKER_STORAGE_REMAINS_H

#include "base/problem.h"

#include <limits.h>
#include <stdbool.h>

enum { REMAINS_TEXT = 128 };

/* Names in ret_text what only a market that was served leaves in `folder`, "" when nothing is left:
 * a log key that has signed (the caller knows), snapshots, the epoch's secret, a history, blobs.
 * False with a problem when the folder cannot be read. */
bool remains_find(const char *folder, bool has_signed, char ret_text[REMAINS_TEXT],
                  struct problem *ret_problem);

/* The refusal of a start without a ledger: what is missing, what was found, and both ways on. */
void remains_refuse(const char *folder, const char *what_is_missing, const char *found,
                    struct problem *ret_problem);

/* Ends the log in `folder`: everything of its market goes into the new folder `ret_aside` inside,
 * and a new log key takes the old one's place. Keys of members and ports, and the config, stay.
 * Whatever ends it midway, no start uses the old log key, and it may be called again. False with a
 * problem also where a broker runs or there is no log that could end. */
bool remains_set_aside(const char *folder, char ret_aside[PATH_MAX], struct problem *ret_problem);

#endif
