/* Remains are what a market that was served leaves in a folder whose ledger is lost.
 *
 * A log key that has signed never signs a second history (docs/ledger.md section 2). So a folder
 * without a ledger belongs to a new market only when no older one has left anything in it. This
 * file also ends a log on purpose. */
#ifndef BOURSE_BROKER_STORAGE_REMAINS_H
#define BOURSE_BROKER_STORAGE_REMAINS_H

#include "base/problem.h"

#include <limits.h>
#include <stdbool.h>

enum { REMAINS_TEXT = 128 };

/* Names the remains in `folder` in ret_text, "" when there are none: a log key that has signed (the
 * caller knows), snapshots, the epoch's secret, a history, blobs. Returns false with a problem when
 * the folder cannot be read. */
bool remains_find(const char *folder, bool has_signed, char ret_text[REMAINS_TEXT],
                  struct problem *ret_problem);

/* Sets the refusal of a start without a ledger: what is missing, what was found, and both ways
 * on. */
void remains_refuse(const char *folder, const char *what_is_missing, const char *found,
                    struct problem *ret_problem);

/* Ends the log in `folder`: everything of its market moves into the new folder `ret_aside` inside,
 * and a new log key replaces the old one. Keys of members and ports, and the config, stay. A market
 * that starts ends only when `end_market` is its origin; NULL ends none that starts. After a
 * failure midway no start uses the old log key, and the call may be repeated. Returns false with a
 * problem, also when a broker runs or there is no log to end. */
bool remains_set_aside(const char *folder, const char *end_market, char ret_aside[PATH_MAX],
                       struct problem *ret_problem);

#endif
