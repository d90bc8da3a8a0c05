/* This file holds the rules of the messages of challenges, for the table in codec_shapes.c. */
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
SHARED_SHAPE(challenge, challenge, NULL, ID, HASH, NUMBER(1, UINT32_MAX), NUMBER(1, UINT32_MAX));
