/* This file holds the rules of the messages of challenges, and of those between brokers, for the
 * table in codec_shapes.c. */
#include "protocol/codec_check.h"
#include "protocol/codec_rules.h"
#include "protocol/limits.h"

/* An answer names the device and the seed of its challenge, both or none. */
static bool check_ready(const struct sighting *sighting, struct codec_error *ret_error)
{
    return (sighting->counts[0] == sighting->counts[1] ||
            codec_check_refuse(ret_error, "seed", sighting->counts[1], sighting->counts[0])) &&
           (sighting->counts[2] <= sighting->counts[0] ||
            codec_check_refuse(ret_error, "device", 0, 1));
}

SHARED_SHAPE(challenge_ready, challenge_ready, check_ready, ID, HASH,
             SIZED(1, LIMIT_CHALLENGE_BYTES));
/* A chain has both of its figures, and products have none. */
static bool check_challenge(const struct sighting *sighting, struct codec_error *ret_error)
{
    return sighting->counts[4] == sighting->counts[5] ||
           codec_check_refuse(ret_error, "steps", sighting->counts[5], sighting->counts[4]);
}

SHARED_SHAPE(challenge, challenge, check_challenge, ID, HASH, NUMBER(1, UINT32_MAX),
             NUMBER(1, UINT32_MAX), NUMBER(1, UINT32_MAX), NUMBER(1, UINT32_MAX));

/* ---- between brokers ---- */

SHAPE(blob_change, blob_change, COUNT, NUMBER(1, UINT8_MAX), SIZED(1, LIMIT_BLOB_KEY_BYTES),
      SIZED(0, LIMIT_BLOB_VALUE_BYTES), MOMENT, SIZED(0, LIMIT_BLOB_INLINE_BYTES), COUNT);
SHARED_SHAPE(blob_feed, blob_feed, NULL, NAME(1, LIMIT_WORD_BYTES * 2), COUNT, COUNT, COUNT, COUNT,
             COUNT, NUMBER(0, LIMIT_FEED_WAIT_MS), MANY(blob_change, LIMIT_BLOB_CHANGES),
             MANY_SIZED(32, 32, LIMIT_BLOB_WANTS));
SHARED_SHAPE(blob_changes, blob_changes, NULL, MANY(blob_change, LIMIT_BLOB_CHANGES), COUNT, COUNT,
             COUNT, COUNT, MANY_SIZED(32, 32, LIMIT_BLOB_WANTS));
