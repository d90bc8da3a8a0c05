/* The copy log is the table of a blobs.db from which other brokers copy it.
 *
 *   copy(kind, key, version, stamp, value, gone_s)   the newest value of each key
 *   copy_meta(name, value)                           built, position, led, floor
 *
 * A leader writes each change of its blobs here, in the transaction of the change. A follower
 * writes what it copied, under the leader's versions. Each broker has a *position*: it has every
 * change up to that version. A new leader notes the position that it began with, as its reign. A
 * broker that returns with a position of an earlier epoch then knows which of its own changes the
 * new leader may lack, and offers them.
 *
 * Values that are gone stay for COPY_GONE_KEPT_S. *floor* is the highest version that went after
 * that. A broker whose position is below the leader's floor cannot tell what is gone, and begins
 * anew. One thread uses the log. */
#ifndef BOURSE_BROKER_COPIES_COPY_LOG_H
#define BOURSE_BROKER_COPIES_COPY_LOG_H

#include "broker/copies/copy_change.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COPY_LOG_SCHEMA                                                                            \
    "CREATE TABLE IF NOT EXISTS copy (kind INTEGER NOT NULL, key BLOB NOT NULL, "                  \
    "version INTEGER NOT NULL, stamp INTEGER NOT NULL, value BLOB NOT NULL, "                      \
    "gone_s INTEGER NOT NULL, "                                                                    \
    "PRIMARY KEY (kind, key)) STRICT, WITHOUT ROWID;"                                              \
    "CREATE INDEX IF NOT EXISTS copy_version ON copy (version);"                                   \
    "CREATE INDEX IF NOT EXISTS copy_gone ON copy (gone_s) WHERE gone_s > 0;"                      \
    "CREATE TABLE IF NOT EXISTS copy_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;"

enum {
    COPY_GONE_KEPT_S = 7 * 24 * 3600,
    COPY_TRIMMED_AT_ONCE = 256, /* values that are gone, of one call */
};

struct copy_log;

/* Creates the log; the caller keeps `database` open, which has the schema. Returns NULL when memory
 * is short or the tables cannot be read. */
struct copy_log *copy_log_create(sqlite3 *database);
void copy_log_destroy(struct copy_log **self);

/* The three functions come between begin and commit. They return false when blobs.db failed.
 *
 * Notes no changes from now on, and forgets the table, which would miss them. */
bool copy_log_be_alone(struct copy_log *log);
/* Notes changes from now on, as the leader of `epoch`. */
bool copy_log_lead(struct copy_log *log, uint64_t epoch);
/* Prepares to take a leader's changes. */
bool copy_log_follow(struct copy_log *log);
/* Removes every row but the blobs themselves, for a broker that begins anew. */
bool copy_log_begin_anew(struct copy_log *log);

/* Writes a change of the leader, under the next version. Does nothing unless the log leads, and
 * while it is silenced. Returns false when blobs.db failed. */
bool copy_log_note(struct copy_log *log, enum copy_kind kind, const struct copy_facts *facts);
/* Writes what a former leader had noted, with its stamp, under the next version. */
bool copy_log_note_late(struct copy_log *log, const struct copy_change *change);
/* Silences the log while changes of another broker are applied. */
void copy_log_silence(struct copy_log *log, bool is_silent);
/* Writes a change under its own version, as it came from the leader. */
bool copy_log_take(struct copy_log *log, const struct copy_change *change);
/* Sets *ret_version and *ret_stamp to those of the change's key; 0: there is none. */
bool copy_log_find(struct copy_log *log, const struct copy_change *change, uint64_t *ret_version,
                   uint64_t *ret_stamp);

/* Notes that the transaction was committed, or undone. */
void copy_log_committed(struct copy_log *log);
void copy_log_rolled_back(struct copy_log *log);
/* Returns the newest committed version of the leader; 0: the log does not lead. */
uint64_t copy_log_last(const struct copy_log *log);
uint64_t copy_log_epoch(const struct copy_log *log);
/* Sets the time, above 0, with which values that are gone are noted. */
void copy_log_set_time(struct copy_log *log, int64_t now_s);

/* Reads the changes above `after`, up to `until`, in the order of their versions, at most `most`.
 * Returns their number, or -1 when blobs.db failed. */
int copy_log_read(struct copy_log *log, uint64_t after, uint64_t until, size_t most,
                  struct copy_change *ret_changes);
/* Sets *ret_version to the version above which a broker of `epoch` may have changes that this one
 * never saw; UINT64_MAX: it has none. */
bool copy_log_offers_after(struct copy_log *log, uint64_t epoch, uint64_t *ret_version);

/* Returns the position that is on the disk. */
uint64_t copy_log_position(const struct copy_log *log);
/* Comes between begin and commit, and counts from the commit on. */
bool copy_log_set_position(struct copy_log *log, uint64_t position);
uint64_t copy_log_floor(const struct copy_log *log);
/* Removes values that are gone for long, between begin and commit. */
bool copy_log_trim(struct copy_log *log);

/* Reads up to `most` lost blobs whose hash is above `after`, with their sizes, in the order of
 * their hashes. Returns their number, or -1 when blobs.db failed. */
int copy_log_lost(struct copy_log *log, const struct hash32 *after, size_t most,
                  struct hash32 *ret_hashes, uint64_t *ret_sizes);

#endif
