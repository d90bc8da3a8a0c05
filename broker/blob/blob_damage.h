/* Damage is the list of lost blobs, and the hashing that finds them while they are read.
 *
 * A blob is lost when its file is missing or too short, or when its bytes do not have its hash. The
 * table `lost` of blobs.db keeps that across restarts, with the looks of the file then. A file that
 * looks different later was put there by someone, and must be hashed before it is trusted.
 *
 * A blob that is read from its first byte to its last is hashed meanwhile: a reading. One thread
 * uses this. */
#ifndef BOURSE_BROKER_BLOB_BLOB_DAMAGE_H
#define BOURSE_BROKER_BLOB_BLOB_DAMAGE_H

#include "base/id.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOB_DAMAGE_SCHEMA                                                                         \
    "CREATE TABLE IF NOT EXISTS lost (hash BLOB PRIMARY KEY, looks TEXT NOT NULL) STRICT, "        \
    "WITHOUT ROWID;"

enum { BLOB_READINGS_MAX = 64 }; /* a further one replaces the oldest */

enum blob_health {
    BLOB_HEALTH_GOOD,    /* no damage is known */
    BLOB_HEALTH_LOST,    /* lost until the blob is sent again */
    BLOB_HEALTH_DOUBTED, /* the blob was lost, and its file looks different now */
    BLOB_HEALTH_UNKNOWN, /* blobs.db could not be read */
};

struct blob_damage;

/* Creates the list; the caller keeps `database` open. Returns NULL when memory is short or the
 * table is missing. */
struct blob_damage *blob_damage_create(sqlite3 *database);
void blob_damage_destroy(struct blob_damage **self);

/* Returns the health of a blob; `path` is where its file is, or would be. */
enum blob_health blob_damage_look(struct blob_damage *damage, const struct hash32 *hash,
                                  const char *path);
/* Marks the blob as lost. The text tells what was lost, why, and whether blobs.db could not be
 * written. */
void blob_damage_mark(struct blob_damage *damage, const struct hash32 *hash, const char *path,
                      const char *why, char *ret_text, size_t capacity);
/* Marks the blob as one whose file was put there by someone. Returns false when blobs.db could not
 * be written. */
bool blob_damage_doubt(struct blob_damage *damage, const struct hash32 *hash);
/* Writes what is known of the blob: its file, or its row where its bytes are in blobs.db, and
 * `what`. */
void blob_damage_tell(struct blob_damage *damage, const struct hash32 *hash, const char *path,
                      const char *what, char *ret_text, size_t capacity);
/* Removes the mark. Returns false when blobs.db could not be written. */
bool blob_damage_mend(struct blob_damage *damage, const struct hash32 *hash);

/* Notes bytes that were read at `offset` of a blob of `size` bytes. Returns false when they end a
 * reading and the bytes of the reading do not have the hash. */
bool blob_damage_read(struct blob_damage *damage, const struct hash32 *hash, uint64_t offset,
                      const uint8_t *bytes, size_t length, uint64_t size);

#endif
