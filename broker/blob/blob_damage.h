/* broker/blob/blob_damage.h - which blobs are lost, and the hashing that finds them while they are
 * read.
 *
 * A blob is lost when its file is gone or too short, or when its bytes do not have its hash. The
 * table `lost` of blobs.db keeps that across restarts, with what the file looked like then. A file
 * that looks otherwise since was put there by somebody, and is to be hashed before it is believed.
 *
 * A blob that is read from its first byte to its last is hashed as it is read: a reading. One
 * thread. */
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

enum { BLOB_READINGS_MAX = 64 }; /* a further one takes the place of the oldest */

enum blob_health {
    BLOB_HEALTH_GOOD,    /* as far as anybody knows */
    BLOB_HEALTH_LOST,    /* until it is sent again */
    BLOB_HEALTH_DOUBTED, /* it was lost, and its file looks otherwise since */
    BLOB_HEALTH_UNKNOWN, /* blobs.db could not be read */
};

struct blob_damage;

/* NULL: out of memory, or the table is not there. `database` is borrowed. */
struct blob_damage *blob_damage_create(sqlite3 *database);
void blob_damage_destroy(struct blob_damage **self);

/* `path` is where the blob's file is, or would be. */
enum blob_health blob_damage_look(struct blob_damage *damage, const struct hash32 *hash,
                                  const char *path);
/* False: blobs.db could not be written. */
bool blob_damage_mark(struct blob_damage *damage, const struct hash32 *hash, const char *path);
/* Takes the mark away. False: blobs.db could not be written. */
bool blob_damage_mend(struct blob_damage *damage, const struct hash32 *hash);

/* The bytes of a blob of `size` bytes were read from `offset`. False: they are the last of a
 * reading, and all that were read do not have the hash. */
bool blob_damage_read(struct blob_damage *damage, const struct hash32 *hash, uint64_t offset,
                      const uint8_t *bytes, size_t length, uint64_t size);

#endif
